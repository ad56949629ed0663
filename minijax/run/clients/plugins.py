"""Finds installed accelerator plugins, and creates their clients.

A plugin's own `__init__` imports jax, so it is never imported: its library is found by its path.
"""

import contextlib
import ctypes
import functools
import importlib.util
import logging
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from jaxlib import _jax, _profiler, xla_client as xc

from minijax.base import config
from minijax.base.lazy import defer
from minijax.run.clients import distributed

_PARTITIONED = (defer("jaxlib.gpu_linalg"), defer("jaxlib.gpu_solver"), defer("jaxlib.gpu_sparse"))
_LINALG = (*_PARTITIONED, defer("jaxlib.gpu_prng"))
_EXTENSIONS = {
    13: defer("jax_cuda13_plugin.cuda_plugin_extension"),
    12: defer("jax_cuda12_plugin.cuda_plugin_extension"),
}
_libtpu = defer("libtpu")
_visible = config.option("cuda_visible_devices")
_logger = logging.getLogger("jax._src.xla_bridge")  # the same name as in jax, by which programs silence it

# In order of dependence; {v} is the version of CUDA, {s} that of its solvers.
_CUDA_LIBRARIES = """
cudart.so.{v} nvrtc.so.{v} cublas.so.{v} cublasLt.so.{v} nccl.so.2 cupti.so.{v} cusparse.so.12 cusolver.so.{s}
cufft.so.{s} nvshmem_host.so.3 cudnn.so.9
""".split()
loaded: list[Any] = []  # the plugins' C interfaces
_batch_partitionable: list[str] = []
_GPU_PRIORITY, _TPU_PRIORITY = 200, 300
_GOOGLE = "0x1ae0"  # the PCI vendor of TPU chips
# The library would ask a metadata server, which is not there, for minutes, warn, and refuse a second process.
_WITHOUT_TPU = dict(
    TPU_SKIP_MDS_QUERY="1",
    TPU_ACCELERATOR_TYPE="v5litepod-1",
    TPU_WORKER_HOSTNAMES="localhost",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)


def discover() -> dict[str, tuple[int, Callable[[], Any]]]:
    """For each platform with an installed plugin: its priority, and a function that creates a client."""
    platforms: dict[str, tuple[int, Callable[[], Any]]] = {}
    cuda = find_cuda()
    if cuda is not None:
        platforms["cuda"] = _GPU_PRIORITY, functools.partial(_make_cuda_client, *cuda)
    elif os.path.exists("/dev/nvidiactl") and "cpu" not in (config.platforms.value or ""):
        _logger.warning(
            "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. "
            "Falling back to cpu."
        )
    if (library := find_tpu()) is not None:
        platforms["tpu"] = _TPU_PRIORITY, functools.partial(_make_tpu_client, library)
    return platforms


def _folders(package: str) -> Iterator[pathlib.Path]:
    spec = importlib.util.find_spec(package)
    return map(pathlib.Path, (spec and spec.submodule_search_locations) or ())


# ---- CUDA -------------------------------------------------------------------------------------------


def find_cuda() -> tuple[int, str] | None:
    """The version and the library of the newest installed CUDA plugin."""
    for version in _EXTENSIONS:
        for folder in _folders("jax_plugins"):
            library = folder / f"xla_cuda{version}" / "xla_cuda_plugin.so"
            if library.exists():
                return version, str(library)
    return None


def _load_cuda_libraries(version: int) -> None:
    """Loads NVIDIA's libraries from pip's folders; the system's loader finds the ones that are not there."""
    for pattern in _CUDA_LIBRARIES:
        name = "lib" + pattern.format(v=version, s="12" if version == 13 else "11")
        for folder in _folders("nvidia"):
            for path in sorted(folder.glob(f"*/lib/{name}"))[:1]:
                with contextlib.suppress(OSError):
                    ctypes.CDLL(str(path))


def cudnn_version() -> int | None:
    """The version of cuDNN, such as 91002; None without a CUDA plugin or cuDNN's library."""
    cuda = find_cuda()
    if cuda is None:
        return None
    _load_cuda_libraries(cuda[0])
    try:
        return ctypes.CDLL("libcudnn.so.9").cudnnGetVersion()
    except OSError:
        return None


def _make_cuda_client(version: int, library: str) -> Any:
    _load_cuda(version, library)
    options = dict(xc.generate_pjrt_gpu_plugin_options())
    if _visible.value != "all":
        options["visible_devices"] = [int(i) for i in _visible.value.split(",")]
    state = distributed.state
    if state.client is not None:
        options |= dict(node_id=state.process_id, num_nodes=state.num_processes)
        if state.partition_index is not None:
            options["partition_index"] = state.partition_index
    return xc.make_c_api_client("cuda", options, state.client)


def _load_cuda(version: int, library: str) -> None:
    _load_cuda_libraries(version)
    if not _jax.pjrt_plugin_loaded("cuda"):
        plugin = xc.load_pjrt_plugin_dynamically("cuda", library)
        loaded.append(plugin)
        _profiler.register_plugin_profiler(plugin)
        _register_cuda_calls(version, plugin)
    if not xc.pjrt_plugin_initialized("cuda"):
        xc.initialize_pjrt_plugin("cuda")


def cuda_topology(name: str, **options: Any) -> Any:
    """A topology of CUDA devices, which need not be attached.

    `target_config` is the text of a GpuTargetConfigProto and `topology` "slices x hosts x devices of a host", such as
    "1x1x8". Raises NotImplementedError if no CUDA plugin is installed, JaxRuntimeError for options that it refuses.
    """
    if (cuda := find_cuda()) is None:
        raise NotImplementedError(
            "topology not implemented for cuda: there is no CUDA plugin; its packages are jax-cuda13-plugin, "
            "jax-cuda13-pjrt, nvidia-cuda-nvcc and nvidia-nvvm"
        )
    _load_cuda(*cuda)
    return _jax.get_default_c_api_topology("cuda", name, options)


def _register_cuda_calls(version: int, plugin: Any) -> None:
    extension = _EXTENSIONS[version]
    # The handlers come first, since they also receive earlier registrations.
    xc.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, plugin))
    xc.register_custom_call_handler("CUDA", functools.partial(extension.register_custom_call_target, plugin))
    for name, value in extension.ffi_types().items():
        xc.register_custom_type(name, value, platform="CUDA")
    for name, value in extension.ffi_handlers().items():
        xc.register_custom_call_target(name, value, platform="CUDA", api_version=1)
    for module in _LINALG:
        for name, value, api_version in module.registrations().get("CUDA", ()):
            xc.register_custom_call_target(name, value, platform="CUDA", api_version=api_version)
    for module in _PARTITIONED:
        for name in module.batch_partitionable_targets():
            xc.register_custom_call_as_batch_partitionable(name, c_api=plugin)
    for name in _batch_partitionable:
        xc.register_custom_call_as_batch_partitionable(name, c_api=plugin)


def register_batch_partitionable(name: str) -> None:
    """Lets XLA, and plugins loaded before or after, partition a target's calls along their batch axes."""
    _batch_partitionable.append(name)
    for plugin in (None, *loaded):
        xc.register_custom_call_as_batch_partitionable(name, c_api=plugin)


# ---- TPU --------------------------------------------------------------------------------------------


def find_tpu() -> str | None:
    """The TPU library, if it is installed."""
    path = os.environ.get("TPU_LIBRARY_PATH")
    if path is None and importlib.util.find_spec("libtpu") is not None:
        path = _libtpu.get_library_path()
    return path


def _has_tpu() -> bool:
    for vendor in pathlib.Path("/sys/bus/pci/devices").glob("*/vendor"):
        with contextlib.suppress(OSError):
            if vendor.read_text().strip() == _GOOGLE:
                return True
    return False


def tpu_topology(name: str, **options: Any) -> Any:
    """The TPU topology of that name. Raises RuntimeError if the TPU library is not installed."""
    if (library := find_tpu()) is None:
        raise RuntimeError("JAX TPU support not installed; cannot generate TPU topology: there is no `libtpu`.")
    _load_tpu(library)
    return xc.make_tfrt_tpu_c_api_device_topology(name, **options)


def _make_tpu_client(library: str) -> Any:
    if not _has_tpu() and "tpu" not in (config.platforms.value or ""):
        # The library would look for a second before it says so.
        raise RuntimeError("NOT_FOUND: TPU initialization failed: No jellyfish device found: no TPU is attached.")
    _load_tpu(library)
    return _jax.get_c_api_client("tpu", {"ml_framework_name": "JAX"}, None)


def _load_tpu(library: str) -> None:
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    os.environ.setdefault("TPU_ML_PLATFORM", "JAX")
    os.environ.setdefault("ENABLE_RUNTIME_UPTIME_TELEMETRY", "1")
    if not _has_tpu():
        for name, value in _WITHOUT_TPU.items():
            os.environ.setdefault(name, value)
    arguments = os.environ.get("LIBTPU_INIT_ARGS", "")
    barrier = "--xla_tpu_use_enhanced_launch_barrier"
    if barrier not in arguments:
        os.environ["LIBTPU_INIT_ARGS"] = f"{arguments} {barrier}=true".strip()
    if not _jax.pjrt_plugin_loaded("tpu"):
        loaded.append(xc.load_pjrt_plugin_dynamically("tpu", library))
        _profiler.register_plugin_profiler(loaded[-1])
    if not _jax.pjrt_plugin_initialized("tpu"):
        _jax.initialize_pjrt_plugin("tpu")
