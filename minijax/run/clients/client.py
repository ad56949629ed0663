"""Finds, creates and queries the XLA clients; devices, and shardings as jaxlib objects."""

import math
import os
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jaxlib import _hlo, _jax, utils, xla_client as xc

from minijax.base import cache, config
from minijax.base.lazy import defer
from minijax.base.mask import Mask
from minijax.partition.shardings import GSPMDSharding, Sharding, SingleDeviceSharding
from minijax.run.clients import distributed, plugins

if TYPE_CHECKING:
    from minijax.run.clients.device import Device
else:
    Device = xc.Device
DeviceList = _jax.DeviceList
ifrt_proxy = defer("jaxlib._ifrt_proxy")

# ---- backends ---------------------------------------------------------------------------------------


def _make_cpu_client() -> Any:
    count = config.num_cpu_devices.value
    return xc.make_cpu_client(
        asynchronous=config.cpu_enable_async_dispatch.value,
        num_devices=None if count < 0 else count,
        **distributed.cpu_options(),
    )


# Platform -> (priority, factory); the default backend is the one with the highest priority that starts.
_factories: dict[str, tuple[int, Callable[[], Any]]] = {"cpu": (0, _make_cpu_client)}
_aliases = {"gpu": ("cuda", "rocm", "oneapi"), "cuda": ("cuda",), "rocm": ("rocm",)}
_lock = threading.RLock()
_clients: dict[str, Any] = {}
_failures: dict[str, str] = {}
_default: list[Any] = []


def register_platform(
    name: str, make: Callable[[], Any], priority: int = 100, make_topology: Callable[..., Any] | None = None
) -> None:
    """Adds a platform whose client is `make()`; for accelerator plugins."""
    with _lock:
        _factories[name] = (priority, make)
        if make_topology is not None:
            _topologies[name] = make_topology


# Platform -> function (name, **options) that returns a topology description.
_topologies: dict[str, Callable[..., Any]] = {"tpu": plugins.tpu_topology, "cuda": plugins.cuda_topology}


def topology_of(platform: str, name: str, options: dict[str, Any]) -> Any:
    """The topology description of a platform with that name.

    Raises NotImplementedError if the platform has no topologies, and RuntimeError if its plugin is not installed.
    """
    if platform in _aliases and len(_aliases[platform]) > 1:
        platform = get_client(platform).platform
    quieten()
    if platform not in _topologies:
        raise NotImplementedError(f"topology not implemented for {platform}")
    return _topologies[platform](name, **options)


def clients() -> dict[str, Any]:
    """The clients by platform, created at the first call.

    Raises RuntimeError if a requested platform does not start.
    """
    if not _default:
        with _lock:
            if not _default:
                _start()
    return _clients


def quieten() -> None:
    """Makes jaxlib log only warnings and errors, unless the environment sets a level."""
    if "TF_CPP_MIN_LOG_LEVEL" not in os.environ:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
        utils.absl_set_min_log_level(1)


def _start() -> None:
    quieten()
    for name, plugin in plugins.discover().items():
        _factories.setdefault(name, plugin)
    requested = config.platforms.value
    if requested:
        _clients.update(_start_requested(requested))
        _default.append(next(iter(_clients.values())))
        return
    names = sorted(_factories, key=lambda name: -_factories[name][0])
    for name in names:
        try:
            _clients[name] = _factories[name][1]()
        except RuntimeError as error:
            _failures[name] = str(error)
    if not _clients:
        raise RuntimeError(f"No backend could be initialized: {_failures}")
    _default.append(_clients.get(config.platform_name.value) or next(iter(_clients.values())))


def _start_requested(platforms: str) -> dict[str, Any]:
    started = {}
    hint = "(set JAX_PLATFORMS='' to automatically choose an available backend)"
    for name in _concrete_names(platforms):
        if name not in _factories:
            raise RuntimeError(
                f"Unable to initialize backend '{name}': Backend '{name}' is not in the list of known "
                f"backends: {sorted(_factories)}. {hint}"
            )
        try:
            started[name] = _clients.get(name) or _factories[name][1]()
        except RuntimeError as error:
            raise RuntimeError(f"Unable to initialize backend '{name}': {error} {hint}") from error
        _clients[name] = started[name]
    return started


def _concrete_names(platforms: str) -> list[str]:
    names = []
    for name in filter(None, platforms.split(",")):
        kinds = [kind for kind in _aliases.get(name, (name,)) if kind in _factories]
        names.extend(kinds or _aliases.get(name, (name,))[:1])
    return names


def known_platforms() -> set[str]:
    """The names of all platforms, available or not, and the aliases for several platforms."""
    return {*_factories, *_aliases, *sum(_aliases.values(), ()), "tpu"}


def failures() -> dict[str, str]:
    """The platforms that did not start, and why."""
    return dict(_failures)


def is_started() -> bool:
    """Returns whether the clients have been created."""
    return bool(_default)


def _warn_of_fork() -> None:
    if is_started():
        warnings.warn(
            "os.fork() was called. os.fork() is incompatible with multithreaded code, and JAX is "
            "multithreaded, so this will likely lead to a deadlock.",
            RuntimeWarning,
            stacklevel=2,
        )


os.register_at_fork(before=_warn_of_fork)


def default_client() -> Any:
    """The client of the default backend."""
    if not _default:
        clients()
    return _default[0]


def get_client(backend: Any = None) -> Any:
    """The client of a platform, by name; the default client for None.

    Raises RuntimeError if the platform is unknown or did not start.
    """
    if backend is None:
        return default_client()
    if not isinstance(backend, str):
        return backend
    started = clients()
    if backend in started:
        return started[backend]
    for name in _aliases.get(backend, ()):
        if name in started:
            return started[name]
    if backend == "gpu":
        raise RuntimeError(
            "Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. "
            f"Platforms present are: {','.join(started)}"
        )
    if backend in _failures:
        raise RuntimeError(
            f"Backend '{backend}' failed to initialize: {_failures[backend]}. Available backends are {list(started)}"
        )
    raise RuntimeError(f"Unknown backend {backend}. Available backends are {list(started)}. Use one of them.")


def clear_backends() -> None:
    """Drops the clients; existing arrays and programs are unusable afterwards."""
    with _lock:
        for store in (_clients, _failures, _default, _device_lists, _natives, _single):
            store.clear()
    cache.clear_caches()


def _check_not_started(value: Any, thread_only: bool) -> None:
    if is_started():
        raise RuntimeError(
            "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any "
            "JAX operation is executed."
        )


config.num_cpu_devices.on_change(_check_not_started)


# ---- public queries ---------------------------------------------------------------------------------


def devices(backend: Any = None) -> list[Device]:
    """Returns a list of all devices of a backend, those of other processes included.

    Args:
        backend: The name of a platform: `"cpu"`, `"gpu"`, `"cuda"`, `"rocm"`, `"tpu"`. By default, the default one.

    Returns:
        A list of `jax.Device`s; each has `id`, `platform`, `device_kind`, `process_index` and `memory_stats()`.

    Raises:
        RuntimeError: If the platform is unknown or not present.

    See also: `jax.local_devices`, `jax.device_count`, `jax.default_device`.

    Example:
        >>> jax.devices("cpu")[0].platform
        'cpu'
    """
    return list(get_client(backend).devices())


def local_devices(process_index: int | None = None, backend: Any = None, host_id: int | None = None) -> list[Device]:
    """Returns a list of the devices of one process, by default of this one.

    Args:
        process_index: The index of a process.
        backend: The name of a platform, by default the default one.
        host_id: The older name of `process_index`; it gives a warning.

    Raises:
        ValueError: If there is no such process.
        RuntimeError: If the platform is unknown or not present.

    See also: `jax.devices`.

    Example:
        >>> all(device.process_index == jax.process_index() for device in jax.local_devices())
        True
    """
    if host_id is not None:
        _warn_renamed("The argument `host_id` of jax.local_devices", "process_index")
        process_index = host_id
    client = get_client(backend)
    if process_index is None:
        process_index = client.process_index()
    if not 0 <= process_index < process_count(backend):
        raise ValueError(f"Unknown process_index {process_index}")
    return [device for device in client.devices() if device.process_index == process_index]


def device_count(backend: Any = None) -> int:
    """Returns the number of devices of a backend, in all processes.

    Args:
        backend: The name of a platform, by default the default one.

    Raises:
        RuntimeError: If the platform is unknown or not present.

    See also: `jax.local_device_count`, `jax.devices`.

    Example:
        >>> jax.device_count() == len(jax.devices())
        True
    """
    return int(get_client(backend).device_count())


def local_device_count(backend: Any = None) -> int:
    """Returns the number of devices of a backend in this process.

    Args:
        backend: The name of a platform, by default the default one.

    Raises:
        RuntimeError: If the platform is unknown or not present.

    See also: `jax.device_count`, `jax.local_devices`.

    Example:
        >>> jax.local_device_count() == len(jax.local_devices())
        True
    """
    return int(get_client(backend).local_device_count())


def default_backend() -> str:
    """Returns the name of the default platform: `"cpu"`, `"gpu"` or `"tpu"`.

    The first call starts the backend. The option `jax_platforms`, or the environment variable `JAX_PLATFORMS`,
    selects it; otherwise accelerators are preferred.

    See also: `jax.devices`, `jax.default_device`.

    Example:
        >>> jax.default_backend() == jax.devices()[0].platform
        True
    """
    return get_client().platform


def lowering_platform(device: Device) -> str:
    """The platform for which programs are lowered: `cuda` or `rocm`, where the client's platform is `gpu`."""
    client = device.client
    if client.platform != "gpu":
        return client.platform
    return "rocm" if "rocm" in client.platform_version.lower() else "cuda"


def process_index(backend: Any = None) -> int:
    """Returns the index of this process among those of the program; 0 for a program of one process.

    Example:
        >>> jax.process_index()
        0
    """
    return get_client(backend).process_index()


def process_count(backend: Any = None) -> int:
    """Returns the number of processes of the program, which `jax.distributed.initialize` connects.

    Args:
        backend: The name of a platform, by default the default one.

    See also: `jax.process_index`, `jax.experimental.multihost_utils`.

    Example:
        >>> jax.process_count()
        1
    """
    return max((device.process_index for device in devices(backend)), default=0) + 1


def process_indices(backend: Any = None) -> list[int]:
    """Returns a list of the indices of all processes.

    Example:
        >>> jax.process_indices()
        [0]
    """
    return list(range(process_count(backend)))


def _warn_renamed(old: str, new: str) -> None:
    warnings.warn(f"{old} has been renamed to {new}; please update your code.", stacklevel=3)


def host_id(backend: Any = None) -> int:
    """Returns the index of this process; the older name of `process_index`, which gives a warning.

    Example:
        >>> jax.process_index()
        0
    """
    _warn_renamed("jax.host_id", "jax.process_index")
    return process_index(backend)


def host_count(backend: Any = None) -> int:
    """Returns the number of processes; the older name of `process_count`, which gives a warning.

    Example:
        >>> jax.process_count()
        1
    """
    _warn_renamed("jax.host_count", "jax.process_count")
    return process_count(backend)


def host_ids(backend: Any = None) -> list[int]:
    """Returns the indices of all processes; the older name of `process_indices`, which gives a warning.

    Example:
        >>> jax.process_indices()
        [0]
    """
    _warn_renamed("jax.host_ids", "jax.process_indices")
    return process_indices(backend)


def default_device() -> Device:
    """The device of uncommitted values: `jax_default_device`, or the first device of the default backend."""
    chosen = config.state().default_device
    if chosen is None:
        return default_client().local_devices()[0]
    return local_devices(backend=chosen)[0] if isinstance(chosen, str) else chosen


def is_attached(device: Device) -> bool:
    """Returns whether programs run on the device; False for a device that programs are only compiled for."""
    return not isinstance(device.client, _jax.CompileOnlyPyClient)


def cpu_device() -> Device:
    """The device of arrays in host memory: the first CPU device."""
    return get_client("cpu").local_devices()[0]


# ---- shardings as jaxlib objects --------------------------------------------------------------------

_device_lists: dict[tuple, Any] = {}
_natives: dict[tuple, Any] = {}
_single: dict[tuple, SingleDeviceSharding] = {}


def single_device_sharding(device: Device, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Returns the interned sharding for a device and memory kind."""
    sharding = _single.get((device, memory_kind))
    if sharding is None:
        sharding = SingleDeviceSharding(device, memory_kind=memory_kind)
        sharding = _single[device, memory_kind] = _single.setdefault((device, sharding.memory_kind), sharding)
    return sharding


def device_list(devices: tuple[Device, ...]) -> Any:
    """Returns jaxlib's interned list of these devices."""
    native = _device_lists.get(devices)
    return native if native is not None else _device_lists.setdefault(devices, _jax.DeviceList(devices))


def native_sharding(sharding: Sharding, ndim: int) -> Any:
    """Returns jaxlib's interned object for a sharding of arrays of rank `ndim`."""
    native = _natives.get((sharding, ndim))
    if native is None:
        native = native_layout(sharding._device_assignment, hlo_sharding(sharding, ndim), sharding.memory_kind)
        native = _natives.setdefault((sharding, ndim), native)
    return native


def native_layout(devices: tuple[Device, ...], hlo: Any, memory_kind: str | None) -> Any:
    """Returns jaxlib's interned sharding for devices and an HLO sharding; jaxlib compares by identity."""
    key = (devices, hlo, memory_kind)
    native = _natives.get(key)
    if native is None:
        native = _natives.setdefault(key, _jax.GSPMDSharding(device_list(devices), hlo, memory_kind=memory_kind))
    return native


def hlo_sharding(sharding: Sharding, ndim: int) -> Any:
    """The HLO sharding for arrays of rank `ndim`."""
    if sharding.num_devices == 1:
        return _hlo.HloSharding.replicate()
    if isinstance(sharding, GSPMDSharding):
        return sharding.tiles
    names, sizes = sharding.mesh.axis_names, sharding.mesh.axis_sizes
    used = [i for axes in sharding.axis_numbers(ndim) for i in axes]
    tiles = list(sharding.tiling(ndim))
    unused = [i for i in range(len(names)) if i not in used]
    replicated, unreduced = Mask(names[i] in sharding.spec.unreduced for i in unused).partition(unused)
    if all(count == 1 for count in tiles) and not unreduced:
        return _hlo.HloSharding.replicate()
    kinds = []
    for kind, axes in ((_hlo.OpSharding_Type.REPLICATED, replicated), (_hlo.OpSharding_Type.UNREDUCED, unreduced)):
        count = math.prod([sizes[i] for i in axes])
        if count > 1:
            tiles.append(count)
            kinds.append(kind)
    return _hlo.HloSharding.iota_tile(tiles, list(sizes), [*used, *replicated, *unreduced], kinds)
