"""Shapes and dtypes in place of arrays."""

import math
from collections.abc import Sequence
from typing import Any

from minijax.base.dtypes import canonicalize_dtype
from minijax.ir.refs import AbstractRef, Ref
from minijax.ir.types import AbstractValue, ShapedArray, checked_type
from minijax.partition.memory import Device
from minijax.partition.shardings import PartitionSpec, Sharding
from minijax.run.array import ArrayImpl


class ShapeDtypeStruct:
    """The shape and dtype of an array that there need not be."""

    __slots__ = ("shape", "dtype", "sharding", "weak_type", "vma", "is_ref", "__weakref__")

    def __init__(self, shape: Sequence[int], dtype: Any, *, sharding: Sharding | PartitionSpec | None = None,
                 weak_type: bool = False, vma: Any = None, is_ref: bool = False):  # fmt: skip
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        aval = ShapedArray(tuple(shape), dtype, weak_type)
        self.shape, self.dtype = aval.shape, aval.dtype
        self.sharding, self.weak_type, self.vma, self.is_ref = sharding, bool(weak_type), vma, is_ref

    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))

    @staticmethod
    def like(a: Any) -> "ShapeDtypeStruct":
        """The shape, dtype and weak type of a value, and the sharding of a committed array.

        Raises TypeError for what is no value.
        """
        aval = abstract(a)
        sharding = a.sharding if isinstance(a, ShapeDtypeStruct) or isinstance(a, ArrayImpl) and a.committed else None
        return described(aval).update(sharding=sharding)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **fields: Any) -> "ShapeDtypeStruct":
        """A copy with some fields changed."""
        names = ("shape", "dtype", "sharding", "weak_type", "vma", "is_ref")
        return ShapeDtypeStruct(**{**{n: getattr(self, n) for n in names}, **fields})

    def _fields(self):
        return self.shape, self.dtype, self.sharding, self.weak_type, self.is_ref

    def __eq__(self, other):
        return type(other) is ShapeDtypeStruct and self._fields() == other._fields()

    def __hash__(self):
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self):
        sharding = "" if self.sharding is None else f", sharding={self.sharding}"
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"


def typeof(x: Any) -> AbstractValue:
    """The type of a value: an array, tracer, key array, NumPy array, Python scalar or `ShapeDtypeStruct`.

    Raises TypeError if `x` is none of these, OverflowError for an int that its type cannot hold.
    """
    return abstract(x) if isinstance(x, ShapeDtypeStruct) else checked_type(x)


def abstract(x: Any) -> Any:
    """The type of a value, or of a `ShapeDtypeStruct` in place of one."""
    if isinstance(x, ShapeDtypeStruct):
        space = x.sharding._memory_space if isinstance(x.sharding, Sharding) else Device
        aval = ShapedArray(x.shape, canonicalize_dtype(x.dtype, True), x.weak_type, memory_space=space)
        return AbstractRef(aval) if x.is_ref else aval
    if isinstance(x, Ref):
        return x.aval
    if isinstance(x, ShapedArray):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return ShapedArray(x.shape, canonicalize_dtype(x.dtype, True), getattr(x, "weak_type", False))
    return checked_type(x)


def described(aval: ShapedArray) -> ShapeDtypeStruct:
    """A type as the user sees it."""
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
