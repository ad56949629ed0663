"""Where references of kernels are: memory spaces, types with a memory space, and semaphores."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dims import shape_of
from minijax.base.dtypes import DTypeLike
from minijax.ir.refs import AbstractRef
from minijax.ir.types import AbstractValue, ShapedArray, typeof


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Is the type of a reference in a memory space, as `pl.ANY(shape, dtype)` and `pltpu.VMEM(shape, dtype)` are.

    Example:
        >>> pltpu.VMEM((8, 128), jnp.float32)
        MemoryRef(inner_aval=ShapedArray(float32[8,128]), memory_space=VMEM)
    """

    inner_aval: Any
    memory_space: Any

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)

    def get_array_aval(self) -> Any:
        """The type of the value."""
        return self.inner_aval

    def get_ref_aval(self) -> AbstractRef:
        """The type of the reference."""
        return AbstractRef(self.inner_aval, self.memory_space)

    def __matmul__(self, mesh: Any) -> MemoryRef:
        if not _is_mesh(mesh) or not isinstance(self.memory_space, TpuMemorySpace):
            return NotImplemented
        return dataclasses.replace(self, memory_space=self.memory_space @ mesh)


def _is_mesh(x: Any) -> bool:
    """Whether `x` is a mesh of cores."""
    return hasattr(x, "supported_memory_spaces")


@dataclasses.dataclass(frozen=True, repr=False)
class CoreMemorySpace:
    """Is the memory space of the cores of a mesh, as `pltpu.VMEM @ mesh` is.

    Raises ValueError for a memory space that these cores do not have.
    """

    memory_space: TpuMemorySpace
    mesh: Any

    def __post_init__(self):
        if self.memory_space not in self.mesh.supported_memory_spaces:
            raise ValueError(f"Memory space {self.memory_space} is not supported by mesh {self.mesh}")

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        return MemoryRef(ShapedArray(tuple(shape), dtypes.canonicalize_dtype(dtype)), self)

    def __str__(self):
        return f"{self.memory_space}@{self.mesh.core_type}"

    def __repr__(self):
        return f"{self.memory_space!r}@{self.mesh.core_type!r}"

    name = property(lambda self: f"{self.memory_space}@{self.mesh.core_type.name}")


def of_core(ref: AbstractRef, core_type: Any) -> AbstractRef:
    """The type of a reference on a kind of core, which need not be told of its own memory whose it is."""
    space = ref.memory_space
    if not isinstance(space, CoreMemorySpace) or space.mesh.core_type is not core_type:
        return ref
    return AbstractRef(ref.inner_aval, space.memory_space)


class _Space(enum.Enum):
    """A memory space: called with a shape and a dtype, it is the type of a reference in it."""

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        return self.from_type(ShapedArray(tuple(shape), dtypes.canonicalize_dtype(dtype)))

    def from_type(self, ty: AbstractValue) -> MemoryRef:
        """The type of references to values of type `ty` in this memory space."""
        return MemoryRef(ty, self)

    def __str__(self):
        return self.value


class MemorySpace(_Space):
    """Names the memory spaces that all kinds of devices have.

    A member that is called with a shape and a dtype is the type of a reference, for `scratch_shapes` and `run_scoped`.

    Members:
      ANY: the memory that the compiler chooses; the kernel gets the whole array, which is not copied.
      DEFAULT: the memory of blocks whose spec names none.
      HOST: memory of the host.
      ERROR, INDEX, KEY: for values of checkify, scalars of index maps, and random keys.

    Example:
        >>> pl.ANY((8, 128), jnp.float32).shape
        (8, 128)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


class TpuMemorySpace(_Space):
    """Names the memory spaces of a TPU.

    A member that is called with a shape and a dtype is the type of a reference, for `scratch_shapes` and `run_scoped`.
    `member @ mesh` is that memory of the cores of a mesh.

    Members:
      VMEM: vector memory, from which the core computes.
      SMEM: scalar memory.
      HBM: main memory, from which kernels copy.
      SEMAPHORE: memory of semaphores.
      CMEM: common memory of TPU v4.
      VMEM_SHARED: memory that the subcores of a SparseCore share.

    Example:
        >>> pltpu.VMEM((8, 128), jnp.float32).memory_space
        VMEM
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __repr__(self):
        return self.name

    def like(self, ty: Any) -> MemoryRef:
        """The type of a reference in this memory space with the shape and dtype of `ty`."""
        return self.from_type(ty if isinstance(ty, AbstractValue) else typeof(ty))

    def __matmul__(self, mesh: Any) -> CoreMemorySpace:
        return CoreMemorySpace(self, mesh) if _is_mesh(mesh) else NotImplemented


TpuMemorySpace.__name__ = TpuMemorySpace.__qualname__ = "MemorySpace"


def placed(ref: AbstractRef, mesh: Any) -> AbstractRef:
    """The type of a reference; one in no memory space is in the default one of the mesh."""
    return ref if ref.memory_space is not None else AbstractRef(ref.inner_aval, mesh.default_memory_space)


# ---- semaphores --------------------------------------------------------------------------------------


class semaphore_dtype(dtypes.extended):
    """Is the kind of the dtypes of all semaphores."""


class semaphore(semaphore_dtype):
    """Is the kind of the dtypes of semaphores that count signals: use it in `issubdtype`.

    Example:
        >>> jnp.issubdtype(pltpu.SemaphoreType.REGULAR.dtype, pl.semaphore)
        True
    """


class dma_semaphore(semaphore_dtype):
    """Is the kind of the dtypes of semaphores that copies signal: use it in `issubdtype`.

    Example:
        >>> jnp.issubdtype(pltpu.SemaphoreType.DMA.dtype, pltpu.dma_semaphore)
        True
    """


class barrier_semaphore(semaphore_dtype):
    """Is the kind of the dtypes of semaphores that several devices wait for: use it in `issubdtype`."""


class _SemaphoreRules:
    """How a semaphore is represented outside of kernels: by its number."""

    @staticmethod
    def physical_element_aval(dtype: Any) -> ShapedArray:
        return ShapedArray((), np.dtype(np.int32))

    @staticmethod
    def tangent_dtype(dtype: Any) -> np.dtype:
        return dtypes.float0


class SemaphoreTy(dtypes.ExtendedDType):
    """Is the dtype of semaphores of a kind."""

    __slots__ = ("name", "type")
    _rules = _SemaphoreRules
    itemsize = 4

    def __init__(self, name: str, kind: type):
        self.name, self.type = name, kind

    def __repr__(self):
        return self.name

    __str__ = __repr__

    def __eq__(self, other: object):
        return type(other) is SemaphoreTy and self.name == other.name

    def __hash__(self):
        return hash((SemaphoreTy, self.name))


_SEMAPHORES = {
    "regular": SemaphoreTy("semaphore", semaphore),
    "dma": SemaphoreTy("dma_sem", dma_semaphore),
    "barrier": SemaphoreTy("barrier_semaphore", barrier_semaphore),
}


class SemaphoreType(enum.Enum):
    """Names the kinds of semaphores. Each is a type for `scratch_shapes` and `run_scoped`.

    A member that is called with a shape is the type of an array of semaphores. `member @ mesh` is the type of one that
    belongs to the cores of a mesh.

    Members:
      REGULAR: counts the signals of `semaphore_signal`.
      DMA: is signalled by a copy that ends.
      BARRIER: is shared by several devices.

    Example:
        >>> pltpu.SemaphoreType.DMA((2,)).shape
        (2,)
    """

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int] | int) -> MemoryRef:
        return MemoryRef(ShapedArray(shape_of(shape), self.dtype), TpuMemorySpace.SEMAPHORE)

    def __matmul__(self, mesh: Any) -> MemoryRef:
        return self(()) @ mesh if _is_mesh(mesh) else NotImplemented

    dtype = property(lambda self: _SEMAPHORES[self.value])
    shape = property(lambda self: ())

    def get_array_aval(self) -> Any:
        """The type of one semaphore."""
        return self(()).get_array_aval()

    def get_ref_aval(self) -> AbstractRef:
        """The type of a reference to one semaphore."""
        return self(()).get_ref_aval()


def is_semaphore(dtype: Any) -> bool:
    """Returns whether this is the dtype of semaphores."""
    return type(dtype) is SemaphoreTy
