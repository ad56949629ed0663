"""Facts about the chips of TPUs."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.kernels.parameters import Tiling
from minijax.partition.meshes import abstract_context
from minijax.run.clients.client import default_device


class ChipVersion(enum.Enum):
    """Names the versions of TPUs' chips.

    Example:
        >>> pltpu.ChipVersion.TPU_V5E
        <ChipVersion.TPU_V5E: 'v5e'>
    """

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"

    def __str__(self):
        return self.value

    @property
    def is_lite(self) -> bool:
        """Whether the chip has one core."""
        return self in (ChipVersion.TPU_V4I, ChipVersion.TPU_V5E, ChipVersion.TPU_V6E)

    @property
    def num_physical_tensor_cores_per_chip(self) -> int:
        """The number of TensorCores."""
        return 1 if self.is_lite else 2

    @property
    def supports_megacore(self) -> bool:
        """Whether both cores may be one device."""
        return self in (ChipVersion.TPU_V4, ChipVersion.TPU_V5P)


@dataclasses.dataclass(frozen=True)
class SparseCoreInfo:
    """Says what the SparseCores of a chip are made of.

    Args:
      num_cores: number of SparseCores of a chip.
      num_subcores: number of vector subcores of each.
      num_lanes: number of 32-bit elements of a register.
      vmem_capacity_bytes: size of the vector memory of a subcore.
      dma_granule_size_bytes: number of bytes that copies move at least.
    """

    num_cores: int
    num_subcores: int
    num_lanes: int
    vmem_capacity_bytes: int
    dma_granule_size_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class TpuInfo:
    """Says what a device is made of and how fast it is.

    Args:
      chip_version: version of the chip.
      generation: number of the generation.
      num_cores: number of TensorCores of the device.
      num_lanes: number of columns of a register of 32-bit elements.
      num_sublanes: number of its rows.
      mxu_column_size: number of columns of a matrix unit.
      num_mxus: number of matrix units of a core.
      num_accumulators: number of accumulators of a matrix unit that programs may name.
      vmem_capacity_bytes: size of the vector memory.
      cmem_capacity_bytes: size of the common memory.
      smem_capacity_bytes: size of the scalar memory.
      hbm_capacity_bytes: size of the main memory.
      mem_bw_bytes_per_second: how much is read from it in a second.
      bf16_ops_per_second: number of operations on bfloat16 in a second.
      int8_ops_per_second: the same for int8.
      fp8_ops_per_second: the same for floats of 8 bits.
      int4_ops_per_second: the same for int4.
      sparse_core: the SparseCores; None for a chip without them.

    Example:
        >>> info = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1)
        >>> info.num_sublanes, info.num_lanes
        (8, 128)
    """

    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: SparseCoreInfo | None = None

    @property
    def is_lite(self) -> bool:
        """Whether the chip has one core."""
        return self.chip_version.is_lite

    @property
    def is_megacore(self) -> bool:
        """Whether both cores of the chip are this device."""
        return self.chip_version.supports_megacore and self.num_cores > 1

    @property
    def is_split_chip(self) -> bool:
        """Whether each core of the chip is a device."""
        return self.num_cores < self.chip_version.num_physical_tensor_cores_per_chip

    def get_sublane_tiling(self, dtype: DTypeLike) -> int:
        """Returns the number of rows of a tile of a dtype.

        Raises NotImplementedError for chips whose tiling is not known.
        """
        if self.generation > 7:
            raise NotImplementedError("TPU generation is not supported")
        bits = dtypes.itemsize_bits(np.dtype(dtype))
        packs = bits < (32 if self.generation == 7 else 16)
        return self.num_sublanes * (32 // bits) if packs else self.num_sublanes

    def is_matmul_supported(self, lhs_dtype: DTypeLike, rhs_dtype: DTypeLike) -> bool:
        """Returns whether the matrix units multiply these dtypes."""
        names = tuple(np.dtype(d).name for d in (lhs_dtype, rhs_dtype))
        return any(all(n in kinds for n, kinds in zip(names, pair, strict=True)) for pair in _products(self.generation))


_WIDE, _OLD, _NEW = ("float32", "bfloat16"), ("float8_e5m2", "float8_e4m3b11fnuz"), ("float8_e5m2", "float8_e4m3fn")


def _products(generation: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pairs of groups of dtypes that are multiplied with each other."""
    if generation < 4:
        return [(("float32",), ("float32",))]
    if generation == 4:
        return [(_WIDE, (*_WIDE, "int8"))]
    if generation < 7:
        floats, bytes_, halves = (*_WIDE, *_OLD), ("int8", "uint8"), ("int4", "uint4")
        return [(floats, floats), (bytes_, bytes_), (halves, halves)]
    return [(_WIDE, (*_WIDE, *_NEW)), (_NEW, _NEW)]


# Generation; columns, number and accumulators of matrix units; MiB of VMEM; MB of CMEM; KiB of SMEM; MB of HBM; GB a
# second; tera-operations a second on bf16, int8, f8, int4; SparseCores.
_CHIPS: dict[str, tuple] = {
    "v2": (2, 128, 1, 0, 16, 0, 16, 8000, 358, 23, 0, 0, 0, None),
    "v3": (3, 128, 2, 0, 16, 0, 16, 17200, 412.5, 70, 0, 0, 0, None),
    "v4i": (4, 128, 4, 0, 16, 134, 1024, 8590, 614, 137, 0, 0, 0, None),
    "v4": (4, 128, 4, 0, 16, 67, 1024, 17200, 615, 137.5, 0, 0, 0, None),
    "v5e": (5, 128, 4, 0, 128, 0, 1024, 17200, 820, 197, 394, 0, 788, None),
    "v5p": (5, 128, 4, 0, 64, 0, 1024, 51500, 1230, 229.5, 459, 0, 920, (4, 16, 8, 512, 32)),
    "v6e": (6, 256, 2, 0, 128, 0, 1024, 34400, 1640, 920, 1840, 920, 3680, (2, 16, 8, 256, 32)),
    "7": (7, 256, 2, 128, 64, 0, 1024, 103000, 3700, 1155, 0, 2300, 0, (2, 16, 16, 512, 32)),
    "7x": (7, 256, 2, 128, 64, 0, 1024, 103000, 3700, 1155, 0, 2300, 0, (2, 16, 16, 512, 32)),
    "8i": (8, 256, 2, 256, 192, 0, 1024, 154500, 4300, 550.5, 0, 4404, 0, (1, 4, 16, 512, 64)),
}
_KINDS = {
    "TPU v2": "v2",
    "TPU v3": "v3",
    "TPU v4": "v4",
    "TPU v4 lite": "v4i",
    "TPU v5": "v5p",
    "TPU v5p": "v5p",
    "TPU v5 lite": "v5e",
    "TPU v5e": "v5e",
    "TPU v6 lite": "v6e",
    "TPU v6e": "v6e",
    "TPU7": "7",
    "TPU7x": "7x",
    "TPU8i": "8i",
}
_MILLION, _BILLION = 10**6, 10**9


def get_tpu_info_for_chip(chip_version: ChipVersion, num_tensor_cores_per_logical_device: int) -> TpuInfo:
    """Returns what a device is made of.

    Args:
      chip_version: version of the chip.
      num_tensor_cores_per_logical_device: number of TensorCores of a device: 2 if both of a chip are one.

    Raises ValueError if cores of such chips cannot be one device.

    Example:
        >>> pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1).num_lanes
        128
    """
    version, cores = ChipVersion(chip_version), num_tensor_cores_per_logical_device
    if cores != 1 and not version.supports_megacore:
        raise ValueError(
            "Lite chips and dual-core chips that do not support Megacore must have "
            f"num_tensor_cores_per_logical_device=1, but got {cores}."
        )
    return _info(version, cores)


def _info(version: ChipVersion, cores: int) -> TpuInfo:
    generation, columns, mxus, accumulators, vmem, cmem, smem, hbm, speed, *ops, sparse = _CHIPS[version.value]
    if sparse is not None:
        *counts, kib, granule = sparse
        sparse = SparseCoreInfo(*counts, kib * 1024, granule)
    bf16, int8, fp8, int4 = [int(n * 1000 * _BILLION) for n in ops]
    return TpuInfo(
        chip_version=version,
        generation=generation,
        num_cores=cores,
        num_lanes=128,
        num_sublanes=8,
        mxu_column_size=columns,
        num_mxus=mxus,
        num_accumulators=accumulators,
        vmem_capacity_bytes=vmem * 1024**2,
        cmem_capacity_bytes=cmem * _MILLION,
        smem_capacity_bytes=smem * 1024,
        hbm_capacity_bytes=hbm * _MILLION,
        mem_bw_bytes_per_second=int(speed * _BILLION),
        bf16_ops_per_second=bf16,
        int8_ops_per_second=int8,
        fp8_ops_per_second=fp8,
        int4_ops_per_second=int4,
        sparse_core=sparse,
    )


def _device() -> Any:
    """The device of the context: that of its abstract mesh, or else the first one there is."""
    mesh = abstract_context()
    described = None if mesh is None else mesh.abstract_device
    return default_device() if described is None else described


def get_tpu_info() -> TpuInfo:
    """Returns what the device is made of: that of the context's abstract mesh if it has one.

    Raises ValueError if it is no TPU.

    Example:
        >>> device = jax.sharding.AbstractDevice('TPU v5e', 1, 'tpu')
        >>> with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device)):
        ...     print(pltpu.get_tpu_info().num_lanes)
        128
    """
    return kind_info(_device())


def kind_info(device: Any) -> TpuInfo:
    """The facts about a device. Raises ValueError for one of another kind than TPUs."""
    if device.device_kind not in _KINDS:
        raise ValueError(f"Unsupported TPU device kind: {device.device_kind}")
    return _info(ChipVersion(_KINDS[device.device_kind]), getattr(device, "num_cores", None) or 1)


def is_tpu_device() -> bool:
    """Returns whether the device, as in `pltpu.get_tpu_info`, is a TPU.

    Example:
        >>> pltpu.is_tpu_device()
        False
    """
    return _device().device_kind in _KINDS


def infer_tiling(aval: Any, tiling: Tiling | None = None) -> tuple[int, ...]:
    """The shape of the tiles of an array in memory, 1 for leading axes.

    Without a TPU, those of newer generations. Raises ValueError for an array of a smaller rank.
    """
    tiling, packing, rank = tiling or Tiling.COMPACT, 32 // dtypes.itemsize_bits(aval.dtype), len(aval.shape)
    least = packing * (1 + (is_tpu_device() and get_tpu_info().generation < 4))
    if rank == 1 and tiling is Tiling.COMPACT:
        return (least * tiling.shape[1],)
    if rank < len(tiling.shape):
        raise ValueError(
            f"emit_pipeline: an array of shape {aval.shape} has no tiles of {len(tiling.shape)} dimensions"
        )
    if tiling is Tiling.SPARSE_CORE:
        return (*[1] * (rank - 1), tiling.shape[0] * packing)
    rows = least
    while rows < min(aval.shape[-2], tiling.shape[0]):
        rows *= 2
    return (*[1] * (rank - 2), rows, tiling.shape[1])
