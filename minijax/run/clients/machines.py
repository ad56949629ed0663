"""Names machines that need not be attached: "tpu:v5e:4x4", "cuda:h100:8"."""

from typing import Any, NamedTuple

from minijax.run.clients.client import topology_of

_FORMS = '"tpu:v5e:4x4" (a topology), "cuda:h100:8" (a number of GPUs), "cuda:h100:4x8" (hosts × GPUs of a host)'
_OF_A_HOST = 8  # GPUs


def devices_of(machine: str, **options: Any) -> list[Any]:
    """Returns the devices of a machine that need not be attached, to compile for it.

    The machine's compiler must be installed: `libtpu`, or CUDA's plugin with `nvidia-cuda-nvcc` and `nvidia-nvvm`.
    Programs are lowered and compiled for these devices by types with a sharding over them. They cannot hold arrays, and
    compiled programs cannot be called.

    Args:
      machine: `"tpu:"` and the name of a topology (`"tpu:v5e:4x4"`, `"tpu:v5p:2x2x4"`); or `"cuda:"`, the name of a GPU
        (a100, b200, h100, h200, l4, l40s, rtx4090, t4) and how many there are: a number, by default 1, or hosts × GPUs
        of a host, or slices × hosts × GPUs of a host (`"cuda:h100:2x4x8"`). More than 8 are in hosts of 8.
      options: passed on to the plugin, such as `num_slices=2` for TPUs.

    Returns:
      A list of devices, as `jax.devices()` has them.

    Raises:
      ValueError: the text names no machine.
      RuntimeError: the plugin is not installed, or does not know the topology.

    Example:

        devices = minijax.devices_of("tpu:v5e:4x4")
        mesh = jax.make_mesh((4, 4), ("data", "model"), devices=devices)
        x = jax.ShapeDtypeStruct((64, 64), jnp.bfloat16, sharding=jax.NamedSharding(mesh, jax.P("data", "model")))
        jax.jit(jnp.tanh).lower(x).compile().cost_analysis()

    Example:
        >>> minijax.devices_of("abacus")
        Traceback (most recent call last):
        ValueError: devices_of: machine must be of the form "tpu:v5e:4x4" (a topology), ...
    """
    platform, _, name = machine.partition(":") if isinstance(machine, str) else (None, "", "")
    if platform == "tpu" and name:
        topology = topology_of("tpu", name, options)
    elif platform == "cuda" and name:
        gpu, _, count = name.partition(":")
        topology = _gpus(machine, gpu, count or "1", options)
    else:
        raise ValueError(f"devices_of: machine must be of the form {_FORMS}; got {machine!r}")
    return topology._make_compile_only_devices()


def _gpus(machine: str, gpu: str, count: str, options: dict[str, Any]) -> Any:
    if gpu not in GPUS:
        raise ValueError(f"devices_of: machine must name one of the GPUs {', '.join(GPUS)}; got {machine!r}")
    sizes = count.split("x")
    if len(sizes) > 3 or not all(size.isdecimal() and int(size) for size in sizes):
        raise ValueError(f"devices_of: machine must be of the form {_FORMS}; got {machine!r}")
    grid = [1] * (3 - len(sizes)) + [int(size) for size in sizes]
    if len(sizes) == 1 and grid[-1] > _OF_A_HOST:
        hosts, rest = divmod(grid[-1], _OF_A_HOST)
        if rest:
            raise ValueError(f"devices_of: more than {_OF_A_HOST} GPUs must be hosts of {_OF_A_HOST}; got {machine!r}")
        grid = [1, hosts, _OF_A_HOST]
    topology = "x".join(map(str, grid))
    return topology_of("cuda", "", dict(target_config=GPUS[gpu].target_config(), topology=topology) | options)


class Gpu(NamedTuple):
    """What the compiler must know about a GPU."""

    name: str
    capability: tuple[int, int]
    cores: int  # streaming multiprocessors
    lanes: int  # float32 units of a core
    threads: int  # resident on a core
    shared_memory: int  # of a core, in KiB
    cache: float  # of the second level, in MiB
    memory: int  # in MiB
    bandwidth: float  # of the memory, in GB/s
    clock: float  # in GHz

    def target_config(self) -> str:
        """The text of XLA's GpuTargetConfigProto."""
        major, minor = self.capability
        reserved = 1 if major >= 8 else 0  # KiB of a core's shared memory that no block gets
        return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {self.shared_memory << 10}
  shared_memory_per_block_optin: {self.shared_memory - reserved << 10}
  threads_per_core_limit: {self.threads}
  core_count: {self.cores}
  fpus_per_core: {self.lanes}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  memory_bandwidth: {round(self.bandwidth * 1e9)}
  l2_cache_size: {round(self.cache * 2**20)}
  device_memory_size: {self.memory << 20}
  clock_rate_ghz: {self.clock}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
device_description_str: "{self.name}"
"""


GPUS = {
    "a100": Gpu("NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 2048, 164, 40, 81_158, 2039.04, 1.41),
    "b200": Gpu("NVIDIA B200", (10, 0), 148, 128, 2048, 228, 126.5, 182_642, 7672.32, 1.965),
    "h100": Gpu("NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 2048, 228, 50, 81_008, 3352.32, 1.98),
    "h200": Gpu("NVIDIA H200", (9, 0), 132, 128, 2048, 228, 50, 143_167, 4916.736, 1.98),
    "l4": Gpu("NVIDIA L4", (8, 9), 58, 128, 1536, 100, 48, 22_563, 300.096, 2.04),
    "l40s": Gpu("NVIDIA L40S", (8, 9), 142, 128, 1536, 100, 96, 45_373, 864.096, 2.52),
    "rtx4090": Gpu("NVIDIA GeForce RTX 4090", (8, 9), 128, 128, 1536, 100, 72, 24_080, 1008.096, 2.52),
    "t4": Gpu("Tesla T4", (7, 5), 40, 64, 1024, 64, 4, 14_913, 320.064, 1.59),
}
