"""References that are chosen by a number while a kernel runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.ir.types import typeof
from minijax.primitives.convert import convert
from minijax.primitives.moving import as_array_or_constant


@tree.register_pytree_node_class
class SelectedRef:
    """Is one of several references, or views, of one type. Only copies take it."""

    def __init__(self, index: Any, refs: Sequence[Any]):
        self.index, self.refs = index, tuple(refs)

    shape = property(lambda self: self.refs[0].shape)
    dtype = property(lambda self: self.refs[0].dtype)

    def reshape(self, *shape: Any) -> SelectedRef:
        """The same, viewed in another shape."""
        return SelectedRef(self.index, [r.reshape(*shape) for r in self.refs])

    def bitcast(self, dtype: Any) -> SelectedRef:
        """The same, viewed as another dtype."""
        return SelectedRef(self.index, [r.bitcast(dtype) for r in self.refs])

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("ref_get with multi-ref TransformedRef is not supported: only copies take it")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError("ref_swap with multi-ref TransformedRef is not supported: only copies take it")

    def tree_flatten(self) -> tuple:
        return (*self.refs, self.index), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: Sequence) -> SelectedRef:
        return cls(leaves[-1], leaves[:-1])


def select_ref(idx: Any, *refs: Any) -> SelectedRef:
    """Returns the reference of a number, which is known while the kernel runs. Only copies take it.

    Args:
      idx: integer scalar.
      *refs: references, or views, of one shape and dtype.

    Example:
        >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((2,), jnp.int32)
        >>> def kernel(x, y, o):
        ...     pltpu.sync_copy(pl.select_ref(pl.program_id(0), x, y), o)
        >>> f = pl.pallas_call(kernel, out, grid=(2,), in_specs=[anywhere] * 2, out_specs=anywhere, interpret=True)
        >>> f(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([3, 4], dtype=int32)
    """
    if len(refs) < 2:
        raise ValueError("At least two refs are required for pl.select_ref.")
    if len({(tuple(r.shape), r.dtype) for r in refs}) != 1:
        types = ", ".join(f"{r.dtype}{list(r.shape)}" for r in refs)
        raise ValueError(f"select_ref: all references must have the same shape and dtype, got {types}")
    index = as_array_or_constant(idx)
    aval = typeof(index)
    if aval.shape or not np.issubdtype(aval.dtype, np.integer):
        raise ValueError(f"select_ref: the index must be an integer scalar, got {aval.str_short()}")
    return SelectedRef(convert(index, np.dtype(np.int32)), refs)
