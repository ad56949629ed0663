"""`map` runs a function on slices one after the other; `associative_scan` computes all prefixes in parallel."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dims, source, tree
from minijax.higher.scan import scan
from minijax.ir.body import Flat, with_name_of
from minijax.ir.primitive import Axis
from minijax.ir.types import ShapedArray, typeof
from minijax.partition.meshes import P
from minijax.primitives.elementwise import add, bitwise_or
from minijax.primitives.moving import reshape
from minijax.primitives.sharding import cotangent_sharding, with_auto_axes
from minijax.primitives.structural import concatenate, pad, rev, slice, slice_in_dim
from minijax.transforms.batch import batch_flat, move_batch_dim


@source.boundary
def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Applies a function to the slices of arrays along their leading axis, one after the other.

    The results equal those of `jax.vmap(f)(xs)`. The loop needs less memory, and `f` runs for one slice at a time.

    Args:
        f: A function of one slice.
        xs: An array, or a pytree of arrays with leading axes of one size.
        batch_size: If given, each step applies `jax.vmap(f)` to that many slices, and a last one to the rest.

    Returns:
        The results, stacked along a leading axis.

    Raises:
        ValueError: If the leading axes have different sizes.

    See also: `jax.vmap`, `jax.lax.scan`.

    Example:
        >>> jax.lax.map(lambda x: x**2, jnp.arange(4))
        Array([0, 1, 4, 9], dtype=int32)
    """
    if batch_size is None:
        return scan(with_name_of(lambda _, x: ((), f(x)), f), (), xs)[1]
    if not hasattr(batch_size, "__index__"):
        raise TypeError(f"map: batch_size must be an int or None, got {batch_size!r}")
    if batch_size < 0:
        raise ValueError(f"map: batch_size must not be negative. Got {batch_size}.")
    leaves, treedef = tree.flatten(xs)
    sizes = {typeof(x).shape[0] for x in leaves}
    if len(sizes) != 1:
        raise ValueError(f"map got values with different leading axis sizes: {sorted(sizes)}.")
    (length,) = sizes
    trips, rest = divmod(length, batch_size) if batch_size else (0, length)
    if not trips:
        return _vmapped(f, treedef.unflatten([_reshaped_rows(x, 0, length, (length,)) for x in leaves]), length)
    blocks, last = [], []
    for x in leaves:
        blocks.append(_reshaped_rows(x, 0, trips * batch_size, (trips, batch_size)))
        if rest:
            last.append(_reshaped_rows(x, trips * batch_size, length, (rest,)))
    out = scan(lambda _, x: ((), _vmapped(f, x, batch_size)), (), treedef.unflatten(blocks))[1]
    if not rest:
        return tree.tree_map(_flattened, out)
    end = _vmapped(f, treedef.unflatten(last), rest)
    return tree.tree_map(lambda x, y: concatenate([_flattened(x), y], 0), out, end)


def _reshaped_rows(x: Any, start: int, end: int, sizes: tuple[int, ...]) -> Any:
    """The rows from `start` to `end`, reshaped to leading axes of `sizes`. XLA shards the intermediate values."""
    if isinstance(x, np.ndarray):
        return x[start:end].reshape(*sizes, *x.shape[1:])
    aval = typeof(x)
    tail, zeros = aval.shape[1:], (0,) * (aval.ndim - 1)

    def rows_of(x):
        rows = x if end - start == aval.shape[0] else slice(x, (start, *zeros), (end, *tail))
        return reshape(rows, (*sizes, *tail))

    sharding = None if type(aval) is not ShapedArray else cotangent_sharding(aval)
    if sharding is None:
        return rows_of(x)
    if sharding.spec[:1] not in ((), (None,)):
        raise ValueError(
            f"0th dimension of leaf passed to `jax.lax.map` should be replicated. Got {aval.str_short(True)}"
        )
    return with_auto_axes(
        "jax.lax.map", rows_of, [x], sharding.update(spec=P(*[None] * len(sizes), *sharding.spec[1:]))
    )


def _flattened(x: Any) -> Any:
    a, b, *tail = typeof(x).shape
    return reshape(x, (a * b, *tail))


def _vmapped(f: Callable, xs: Any, size: int) -> Any:
    leaves, treedef = tree.flatten(xs)
    flat, axis = Flat(f, tree.treedef_tuple((treedef,))), Axis(None, size)
    results, out_dims = batch_flat(flat, axis, leaves, [0] * len(leaves))
    return flat.out_tree.unflatten([move_batch_dim(x, d, 0, axis) for x, d in zip(results, out_dims, strict=True)])


@source.boundary
def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Combines all prefixes of arrays by an associative function, in a logarithmic number of parallel steps.

    The result at index i combines the elements 0 to i. For addition this is a cumulative sum.

    Args:
        fn: An associative function of two trees like `elems`. It is called with slices along `axis`, which hold many
            elements at a time, hence it must work element by element along this axis.
        elems: An array, or a pytree of arrays with equal sizes along `axis`.
        reverse: If true, the result at index i combines the elements from i to the last.
        axis: The axis, by default 0.

    Returns:
        The combined prefixes, with the tree and shapes of `elems`.

    Raises:
        ValueError: If sizes differ, or the axis is out of bounds.

    See also: `jax.lax.scan`, `jax.lax.cumsum`.

    Example:
        >>> jax.lax.associative_scan(jnp.maximum, jnp.array([3, 1, 4, 1, 5]))
        Array([3, 3, 4, 4, 5], dtype=int32)
    """
    if not callable(fn):
        raise TypeError(f"lax.associative_scan: fn argument should be callable. Got {fn!r}.")
    leaves, treedef = tree.flatten(elems)
    axis = dims.canonical_axis(axis, typeof(leaves[0]).ndim)
    shapes = [typeof(x).shape for x in leaves]
    if len({shape[axis] for shape in shapes}) > 1:
        raise ValueError(
            f"associative_scan: Array inputs to associative_scan must have the same first dimension. (saw: {shapes})"
        )
    if reverse:
        leaves = [rev(x, (axis,)) for x in leaves]

    def combine(a: Sequence, b: Sequence) -> list:
        combined, out_tree = tree.flatten(fn(treedef.unflatten(a), treedef.unflatten(b)))
        if len(combined) != len(leaves):
            raise ValueError(f"associative_scan: fn returned the tree {out_tree}; wanted {treedef}.")
        return combined

    results = _prefixes(combine, leaves, axis)
    if reverse:
        results = [rev(x, (axis,)) for x in results]
    return treedef.unflatten(results)


def _prefixes(combine: Callable, elems: Sequence, axis: int) -> list:
    """Combines pairs of neighbours, computes the prefixes of the pairs, then the prefixes in between."""
    size = typeof(elems[0]).shape[axis]
    if size < 2:
        return list(elems)
    pairs = combine(
        [slice_in_dim(x, 0, -1, stride=2, axis=axis) for x in elems],
        [slice_in_dim(x, 1, None, stride=2, axis=axis) for x in elems],
    )
    odd = _prefixes(combine, pairs, axis)
    before = [slice_in_dim(x, 0, -1, axis=axis) for x in odd] if size % 2 == 0 else odd
    even = combine(before, [slice_in_dim(x, 2, None, stride=2, axis=axis) for x in elems])
    even = [concatenate([slice_in_dim(x, 0, 1, axis=axis), y], axis) for x, y in zip(elems, even, strict=True)]
    return [_interleaved(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Interleaves the elements of both, as the sum of both padded with zeros."""
    have, other = typeof(even), typeof(odd)
    more = have.shape[axis] - other.shape[axis]
    zero = np.zeros((), have.dtype)[()]
    configs = [[(0, 0, 0)] * have.ndim for _ in range(2)]
    configs[0][axis] = (0, 1 - more, 1)
    configs[1][axis] = (1, more, 1)
    parts = [pad(x, zero, config) for x, config in zip((even, odd), configs, strict=True)]
    return (bitwise_or if have.dtype == np.bool_ else add)(*parts)
