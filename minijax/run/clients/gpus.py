"""Describes common GPUs to their compiler, which compiles for them where none is attached.

The figures are NVIDIA's published ones, and those that CUDA reports for the device.
"""

from typing import NamedTuple


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
