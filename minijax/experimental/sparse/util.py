"""Helpers for all formats of sparse arrays: warnings, errors, and a vmap that broadcasts axes of size one."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.api.vmap import vmap
from minijax.base import tree
from minijax.base.faces import listing
from minijax.ir.types import typeof

__all__, __dir__ = listing(
    __name__,
    """
    CuSparseEfficiencyWarning Shape SparseEfficiencyError SparseEfficiencyWarning SparseInfo broadcasting_vmap
    nfold_vmap
""",
)

Shape = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """Is raised where an operation would be inefficient in the layout of a sparse array.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.eye(3))
        >>> try:
        ...     x.update_layout(n_batch=1)
        ... except jax.experimental.sparse.SparseEfficiencyError as error:
        ...     print(type(error).__name__)
        SparseEfficiencyError
    """


class SparseEfficiencyWarning(UserWarning):
    """Warns that an operation is inefficient in the layout of a sparse array.

    Example:
        >>> import warnings
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.eye(3))
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = x.update_layout(n_batch=1, on_inefficient="warn")
        >>> caught[0].category.__name__
        'SparseEfficiencyWarning'
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """Warns that cuSPARSE has no routine for an operation.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", jax.experimental.sparse.CuSparseEfficiencyWarning)
    """


class SparseInfo(NamedTuple):
    """The metadata of a sparse array that its primitives take as a parameter."""

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


def broadcasting_vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """As `jax.vmap`, but mapped axes of size one are broadcast. Raises ValueError if other sizes differ."""

    @functools.wraps(fun)
    def batched(*args):
        leaves, structure = tree.tree_flatten(args)
        axes = tree.flatten_axes("broadcasting_vmap in_axes", structure, in_axes)
        sizes = {typeof(x).shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None}
        if len(sizes - {1}) > 1:
            raise ValueError(f"broadcasting_vmap: mismatched input shapes: mapped axes have sizes {sorted(sizes)}")
        if len(sizes) > 1:
            ones = [axis is not None and typeof(x).shape[axis] == 1 for x, axis in zip(leaves, axes, strict=True)]
            leaves = [lax.squeeze(x, (a,)) if one else x for x, a, one in zip(leaves, axes, ones, strict=True)]
            axes = [None if one else axis for axis, one in zip(axes, ones, strict=True)]
        call = lambda *xs: fun(*structure.unflatten(xs))  # noqa: E731
        return vmap(call, in_axes=tuple(axes), out_axes=out_axes)(*leaves)

    return batched


def nfold_vmap(fun: Callable, N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable:
    """`fun` mapped over N leading axes, which are broadcast if `broadcasted`."""
    mapped = broadcasting_vmap if broadcasted else vmap
    for _ in range(N):
        fun = mapped(fun, in_axes=in_axes)
    return fun


def count_stored(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    """The number of nonzero elements of `mat`: the maximum over its batches."""
    mask = stored_mask(mat, n_dense)
    return mask.sum(tuple(range(n_batch, mask.ndim))).max()


def stored_mask(mat: Any, n_dense: int) -> Any:
    """A mask of the elements, over the batch and sparse axes, that a sparse array must store."""
    mask = mat != 0
    return mask.any(tuple(range(mask.ndim - n_dense, mask.ndim))) if n_dense else mask


def batch_sizes(buffers: Sequence[Any], n_batch: int) -> tuple[int, ...]:
    """The sizes of the batch axes of buffers, with axes of size one broadcast."""
    return tuple(map(max, zip(*[x.shape[:n_batch] for x in buffers], strict=True)))


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The inverse permutation."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def is_padding(indices: Any, sizes: Sequence[int]) -> Any:
    """A mask of the rows of (..., n_sparse) indices that are out of bounds of the sparse axes' `sizes`."""
    return (indices >= row(sizes, indices)).any(-1)


def row(values: Sequence[int], like: Any) -> Any:
    """The values as one row of indices, of the dtype and rank of `like`."""
    return lax.expand_dims(jnp.array(values, typeof(like).dtype), range(typeof(like).ndim - 1))
