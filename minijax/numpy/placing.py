"""Inserting elements into copies of arrays, choosing among arrays, and functions applied along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import switch
from minijax.indexing.language import Options
from minijax.ir.types import typeof
from minijax.numpy import creation, grids, ranges, reductions, searching, shaping, subscripts, taking, ufuncs
from minijax.numpy.creation import concrete, value, values
from minijax.numpy.reductions import cumsum
from minijax.numpy.vectorizing import vectorize
from minijax.primitives import moving, structural
from minijax.primitives.gather_dims import PROMISE_IN_BOUNDS
from minijax.primitives.promote import check_out
from minijax.run.arrays.array import Array, ArrayLike

_DROPPED = Options("drop")


def _check_copies(name: str, inplace: bool, kind: type[Exception] = ValueError) -> None:
    if inplace:
        raise kind(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable: must use inplace=False"
        )


def _repeated_to(x: Any, size: int) -> Any:
    """The first `size` elements of `x`, repeated as often as needed."""
    if x.size < size:
        x = shaping.tile(x, -(-size // x.size))
    return x if x.size == size else subscripts.getitem(x, slice(0, size))


# ---- put into ----------------------------------------------------------------------------------------


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """Returns a copy of an array with the elements at flat indices replaced.

    Values are repeated if there are too few. `mode` is what happens to indices out of bounds: "clip" (the default)
    takes the first or last one, "wrap" takes them modulo the size. `inplace` must be false, unlike NumPy's default,
    since arrays are immutable.

    Example:
      >>> jnp.put(jnp.zeros(3), jnp.array([0, 2]), jnp.array([1.0, 2.0]), inplace=False)
      Array([1., 0., 2.], dtype=float32)
    """
    _check_copies("put", inplace)
    a, ind, v = values("put", a, ind, v)
    ind, v = shaping.ravel(ind), shaping.ravel(v)
    if not (a.size and ind.size and v.size):
        return a
    v, scattered = _repeated_to(v, ind.size), "drop"
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    if mode in ("clip", "wrap"):
        ind = ufuncs.clip(ind, 0, a.size - 1) if mode == "clip" else ufuncs.remainder(ind, a.size)
        scattered = PROMISE_IN_BOUNDS
    elif mode is not None:
        raise ValueError(f"put: mode should be one of 'wrap' or 'clip'; got {mode=}")
    return subscripts.update(a, grids.unravel_index(ind, a.shape), v, "set", Options(scattered))


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Returns a copy of an array with the elements where a mask is true replaced.

    The values are taken in order and repeated if there are too few. `inplace` must be false, unlike NumPy's default,
    since arrays are immutable.

    Example:
      >>> jnp.place(jnp.arange(4), jnp.array([False, True, False, True]), jnp.array([8, 9]), inplace=False)
      Array([0, 8, 2, 9], dtype=int32)
    """
    arr, mask, vals = values("place", arr, mask, vals)
    _check_copies("place", inplace)
    vals = shaping.ravel(vals)
    if arr.size != mask.size:
        raise ValueError(f"place: arr and mask must be the same size, got {arr.size} and {mask.size}")
    if not vals.size:
        raise ValueError("Cannot place values from an empty array")
    if not arr.size:
        return arr
    where_ = taking.flatnonzero(mask, size=mask.size, fill_value=mask.size)
    vals = _repeated_to(vals, where_.size)
    updated = subscripts.update(shaping.ravel(arr), where_, vals, "set", _DROPPED)
    return shaping.reshape(updated, arr.shape)


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """Inserts values before given indices along an axis.

    `obj` are the indices: an integer, a slice or a vector. Integers may be traced. For `axis=None` the array is
    flattened. Values are cast to the dtype of `arr`.

    Example:
      >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
      Array([1, 9, 2, 3], dtype=int32)
    """
    a, new_values = creation.values("insert", arr, values)
    a, axis = shaping.flattened_if_no_axis(a, concrete(axis, "insert", "axis"))
    n = a.shape[axis]
    places = _places(obj, n)
    is_scalar = places.ndim == 0
    put_in = creation.array(new_values, dtype=a.dtype, copy=False, ndmin=a.ndim)
    places = shaping.ravel(places)
    if places.size == 1:
        # A single index inserts all values along the axis; several indices take one value each.
        place_ = subscripts.getitem(places, 0)
        if is_scalar:
            put_in = shaping.moveaxis(put_in, 0, axis)
        places = creation.full((put_in.shape[axis],), place_)
    (count,) = shaping.broadcast_shapes(places.shape, (put_in.shape[axis],))
    out = structural.blank((*a.shape[:axis], n + count, *a.shape[axis + 1 :]), a.dtype, typeof(a).weak_type)
    places = ufuncs.clip(where(ufuncs.less(places, 0), ufuncs.add(places, n), places), 0, n)
    order = searching.argsort(places)
    steps = ranges.arange(count, dtype=places.dtype)
    new = subscripts.update(places, order, steps, "add")
    is_old = subscripts.update(creation.ones((n + count,), bool), new, False, "set")
    (old,) = taking.nonzero(is_old, size=n)
    before = (slice(None),) * axis
    out = subscripts.update(out, (*before, new), put_in, "set")
    return subscripts.update(out, (*before, old), a, "set")


def _places(obj: Any, n: int) -> Any:
    """The positions before which `insert` inserts, as an array."""
    if isinstance(obj, slice):
        return ranges.arange(*obj.indices(n))
    places = value("insert", obj)
    if places.ndim > 1:
        raise ValueError(f"jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; got {obj}")
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise ValueError(f"jnp.insert(): index array must be integer typed; got {obj}")
    return places


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """Returns a copy of an array with values on its main diagonal.

    `inplace` must be false, unlike NumPy's default, since arrays are immutable. `wrap` must be false. `val` is a
    number, or a vector that is repeated if it is too short.

    Example:
      >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 1, inplace=False)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    _check_copies("fill_diagonal", inplace, NotImplementedError)
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not implemented, must use wrap=False")
    a, val = values("fill_diagonal", a, val)
    if a.ndim < 2:
        raise ValueError("fill_diagonal: array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("fill_diagonal: All dimensions of input must be of equal length")
    n = min(a.shape)
    diagonal = taking.diag_indices(n, a.ndim)
    val = val if val.ndim == 0 else _repeated_to(shaping.ravel(val), n)
    return subscripts.update(a, diagonal, val, "set")


# ---- choose among ------------------------------------------------------------------------------------


def choose(
    a: ArrayLike, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Takes each element from one of several arrays, whose number an index array gives.

    Arrays broadcast with `a`. An index out of bounds is an error in mode "raise"; "wrap" takes it modulo the number of
    arrays and "clip" limits it. A traced `a` needs one of these. `out` must be `None`.

    Example:
      >>> jnp.choose(jnp.array([0, 1]), [jnp.array([1, 2]), jnp.array([3, 4])])
      Array([1, 4], dtype=int32)
    """
    check_out("choose", out)
    a, *options = values("choose", a, *choices)
    if not dtypes.issubdtype(a.dtype, np.integer):
        raise ValueError(f"choose: `a` array must be integer typed, got {a.dtype}")
    n = len(options)
    if mode == "raise":
        known = concrete(a, "choose", "a, with mode='raise'")
        if np.any((known < 0) | (known >= n)):
            raise ValueError("choose: invalid entry in choice array")
    elif mode == "wrap":
        a = ufuncs.remainder(a, n)
    elif mode == "clip":
        a = ufuncs.clip(a, 0, n - 1)
    else:
        raise ValueError(f"choose: {mode=} not understood. Must be 'raise', 'wrap', or 'clip'")
    a, *options = shaping.broadcast_arrays(a, *options)
    joined = creation.array(options)
    return subscripts.getitem(joined, (a, *ranges.indices(a.shape, sparse=True)))


def piecewise(x: ArrayLike, condlist: Array | Sequence[ArrayLike], funclist: list, *args: Any, **kw: Any) -> Array:
    """Evaluates a function that is given by conditions and a function or constant for each.

    The first condition that is true decides; one more function than conditions is the default, else 0. Unlike in NumPy,
    functions take scalars and are mapped over all elements by `vmap`; hence each is computed for all elements. Further
    arguments are passed to them.

    Example:
      >>> jnp.piecewise(jnp.array([-2.0, 3.0]), [jnp.array([True, False])], [0.0, lambda x: x**2])
      Array([0., 9.], dtype=float32)
    """
    (x,) = values("piecewise", x)
    count, functions = len(condlist), list(funclist)
    if len(functions) == count + 1:
        functions = functions[-1:] + functions[:-1]
    elif len(functions) == count:
        functions = [0, *functions]
    else:
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; got {len(functions)}"
        )
    fixed = {i: f for i, f in enumerate(functions) if callable(f)}
    constants = {i: f for i, f in enumerate(functions) if not callable(f)}
    conditions = creation.asarray(condlist, dtype=bool)
    return _piecewise(x, conditions, constants, tuple(fixed.items()), len(functions), *args, **kw)


@jitted("_piecewise", static=("fixed", "count"))
def _piecewise(x, conditions, constants, fixed, count, *args, **kw):
    calls = {i: (lambda u, f=f: f(u, *args, **kw).astype(x.dtype)) for i, f in fixed}
    calls |= {i: (lambda u, c=c: creation.array(c, dtype=x.dtype)) for i, c in constants.items()}
    none = creation.zeros_like(subscripts.getitem(conditions, slice(0, 1)))
    passed = cumsum(shaping.concatenate([none, conditions], 0), 0)
    branches = [calls[i] for i in range(count)]
    return vectorize(lambda i, u: switch(i, branches, u))(reductions.argmax(passed, 0), x)


# ---- along axes --------------------------------------------------------------------------------------


def apply_along_axis(func1d: Callable, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Calls a function of vectors on each vector along an axis.

    Further arguments are passed to it. It is mapped by `vmap`, hence must be traceable. Its results have any rank and
    replace the axis.

    Example:
      >>> jnp.apply_along_axis(jnp.sum, 1, jnp.array([[1, 2], [3, 4]]))
      Array([3, 7], dtype=int32)
    """
    arr = value("apply_along_axis", arr)
    axis = dims.canonical_axis(axis, arr.ndim)

    def mapped(x):
        return func1d(x, *args, **kwargs)

    for i in range(1, arr.ndim - axis):
        mapped = vmap(mapped, in_axes=i, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    return mapped(arr)


def apply_over_axes(func: Callable, a: ArrayLike, axes: Sequence[int]) -> Array:
    """Calls a function of an array and an axis for one axis after another.

    Its result must have the rank of the array, or a rank smaller by 1; the axis is then put back with length 1.

    Example:
      >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), [0, 2]).shape
      (1, 3, 1)
    """
    a = value("apply_over_axes", a)
    for axis in axes:
        result = func(a, axis)
        if result.ndim == a.ndim:
            a = result
        elif result.ndim == a.ndim - 1:
            a = moving.expand_dims(result, (dims.canonical_axis(axis, a.ndim),))
        else:
            raise ValueError("apply_over_axes: function is not returning an array of the correct shape")
    return a
