"""Universal functions: elementwise functions with reductions, accumulations and indexed updates."""

from __future__ import annotations

from collections.abc import Callable
from math import log as math_log
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.api.jit import eval_shape
from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.base.naming import known_as
from minijax.composed.arrays.selecting import where as choose
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.higher.scan import scan
from minijax.ir.types import ShapedArray, typeof
from minijax.numpy import custom_rules, reductions, taking, ufuncs, vectorizing
from minijax.numpy.creation import asarray, astype, zeros
from minijax.numpy.shaping import append, broadcast_to, expand_dims, moveaxis, ravel
from minijax.numpy.subscripts import getitem, update
from minijax.primitives import elementwise as lax, moving, reduce as lax_reduce, structural
from minijax.primitives.families import scalar_like
from minijax.primitives.promote import arrays, check_arraylike, promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike


@known_as("jax.numpy.ufunc")
class ufunc:
    """A function of scalars applied elementwise, as `numpy.ufunc`; `at` returns the updated array.

    `call`, `reduce`, `accumulate`, `at` and `reduceat`, if given, replace the implementations by `func`.
    """

    def __init__(
        self,
        func: Callable,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable | None = None,
        reduce: Callable | None = None,
        accumulate: Callable | None = None,
        at: Callable | None = None,
        reduceat: Callable | None = None,
    ):
        self.__name__ = name or func.__name__
        self.__doc__ = func.__doc__
        self._nin, self._nout, self._identity = nin, nout, identity
        self._nargs = nin if nargs is None else nargs
        self._impls = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        self._call = call or self._vectorized
        self._key = (func, nin, nout, self.__name__, self.nargs, str(identity), call, *self._impls.values())

    nin = property(lambda self: self._nin)
    nout = property(lambda self: self._nout)
    nargs = property(lambda self: self._nargs)
    identity = property(lambda self: self._identity)
    _func = property(lambda self: self._key[0])

    def __hash__(self):
        return hash(self._key)

    def __eq__(self, other):
        return isinstance(other, ufunc) and self._key == other._key

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            raise NotImplementedError(f"{'where' if out is None else 'out'} argument of {self}")
        return self._call(*args)

    @jitted("_call_vectorized", static=("self",))
    def _vectorized(self, *args):
        check_arraylike(self.__name__, *args)
        return vectorizing.vectorize(self._func)(*args)

    def _check(self, method: str, out: None = None) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.{method}()")

    def _dtype(self, method: str, dtype: Any, *args: Any) -> Any:
        if dtype is not None:
            return dtypes.check_and_canonicalize_user_dtype(dtype, f"{self.__name__}.{method}")
        return eval_shape(self._call, *(ShapedArray((), t.dtype, t.weak_type) for t in map(typeof, args))).dtype

    @jitted("reduce", static=("self", "axis", "dtype", "out", "keepdims"))
    def reduce(
        self,
        a: Any,
        axis: int | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """Reduces all elements along `axis`, from the first on."""
        self._check("reduce", out)
        check_arraylike(f"{self.__name__}.reduce", a)
        if where is not None:
            check_arraylike(f"{self.__name__}.reduce", where)
            if self.identity is None and initial is None:
                raise ValueError(
                    f"reduction operation {self.__name__!r} does not have an identity, so to use a where "
                    "mask one has to specify 'initial'."
                )
            if typeof(where).dtype != np.bool_:
                raise ValueError(f"where argument must have dtype=bool; got dtype={typeof(where).dtype}")
        by = self._impls["reduce"] or self._reduce_by_loop
        return by(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    def _reduce_by_loop(self, a, axis, dtype, keepdims, initial, where):
        shape = typeof(a).shape
        dtype = self._dtype("reduce", dtype, a, a)
        if isinstance(axis, tuple):
            raise NotImplementedError("tuple of axes")
        if where is not None:
            where = broadcast_to(where, shape)
        if axis is None:
            a = ravel(a)
            where = None if where is None else ravel(where)
            reduced_shape = (1,) * len(shape)
        else:
            axis = dims.canonical_axis(axis, len(shape))
            a = moveaxis(a, axis, 0)
            where = None if where is None else moveaxis(where, axis, 0)
            reduced_shape = (*shape[:axis], 1, *shape[axis + 1 :])
        count, *rest = typeof(a).shape
        start = self.identity if initial is None else initial
        if start is None:
            if not count:
                raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
            carry = astype(getitem(a, 0), dtype)
        else:
            carry = astype(asarray(start), dtype)
            if not count:
                return broadcast_to(carry, reduced_shape if keepdims else tuple(rest))
            carry = broadcast_to(carry, tuple(rest))

        def step(i, carry):
            is_counted = None if where is None else getitem(where, i)
            new = self._call(carry, astype(getitem(a, i), dtype))
            return new if is_counted is None else choose(is_counted, new, carry)

        result = fori_loop(int(start is None), count, step, carry)
        return moving.reshape(result, reduced_shape) if keepdims else result

    @jitted("accumulate", static=("self", "axis", "dtype", "out"))
    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """The partial reductions along `axis`: of the first element, the first two, and so on."""
        self._check("accumulate", out)
        check_arraylike(f"{self.__name__}.accumulate", a)
        return (self._impls["accumulate"] or self._accumulate_by_scan)(a, axis=axis, dtype=dtype)

    def _accumulate_by_scan(self, a, axis, dtype):
        if axis is None or isinstance(axis, tuple):
            raise ValueError("accumulate does not allow multiple axes")
        axis = dims.canonical_axis(axis, typeof(a).ndim)
        dtype = self._dtype("accumulate", dtype, a, a)
        a = moveaxis(a, axis, 0)
        if not typeof(a).size:
            return moveaxis(zeros(typeof(a).shape, dtype), 0, axis)

        def step(carry, _):
            i, so_far = carry
            is_first, first = lax.eq(i, scalar_like(i, 0)), astype(getitem(a, 0), dtype)
            so_far = choose(is_first, first, self._call(astype(so_far, dtype), astype(getitem(a, i), dtype)))
            return (i + 1, so_far), so_far

        _, partial_results = scan(step, (0, astype(getitem(a, 0), dtype)), None, typeof(a).shape[0])
        return moveaxis(partial_results, 0, axis)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """A copy of `a` with the function applied to the elements at `indices` (and to `b`), once for each index.

        Raises NotImplementedError unless `inplace=False`: arrays are immutable.
        """
        if inplace:
            raise NotImplementedError(
                f"jnp.{self.__name__}.at() cannot operate in place, as arrays are immutable: "
                f"arr = jnp.{self.__name__}.at(arr, indices, values, inplace=False) gives the updated array"
            )
        return self._at(a, indices) if b is None else self._at(a, indices, b)

    @jitted("at", static=("self",))
    def _at(self, a, indices, b=None):
        return (self._impls["at"] or self._at_by_scan)(a, indices, *(() if b is None else (b,)))

    def _at_by_scan(self, a, indices, *values):
        indices = indices if isinstance(indices, tuple) else (indices,)
        check_arraylike(f"{self.__name__}.at", a, *indices, *values)
        dtype = self._dtype("at", None, a, *values)
        a = astype(asarray(a), dtype)
        indices = [asarray(i) for i in indices]
        shape = np.broadcast_shapes(*(typeof(i).shape for i in indices))
        values = [astype(asarray(b), dtype) for b in values]
        if not shape:
            place = tuple(indices)
            return update(a, place, astype(self._call(getitem(a, place), *values), dtype), "set")
        count = int(np.prod(shape))
        places = [ravel(broadcast_to(i, shape)) for i in indices]
        rest = typeof(a).shape[len(indices) :]
        tails = [rest if typeof(b).ndim > len(shape) else () for b in values]
        values = [
            moving.reshape(broadcast_to(b, (*shape, *t)), (count, *t)) for b, t in zip(values, tails, strict=True)
        ]

        def step(carry, _):
            i, a = carry
            place = tuple(getitem(p, i) for p in places)
            new = self._call(getitem(a, place), *(getitem(b, i) for b in values))
            updated = update(a, place, astype(new, dtype), "set")
            return (i + 1, updated), None

        return scan(step, (0, a), None, count)[0][1]

    @jitted("reduceat", static=("self", "axis", "dtype", "out"))
    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Reduces the elements from each index up to the next; only one element if the next is not larger."""
        self._check("reduceat", out)
        a, indices = arrays(f"{self.__name__}.reduceat", a, indices)
        if typeof(indices).ndim != 1:
            raise ValueError(f"reduceat: indices must be one-dimensional, got indices.shape={typeof(indices).shape}")
        if not typeof(a).ndim:
            raise ValueError(f"reduceat: a must have 1 or more dimension, got a.shape={typeof(a).shape}")
        if axis is None or isinstance(axis, tuple):
            raise ValueError("reduceat requires a single integer axis.")
        axis = dims.canonical_axis(axis, typeof(a).ndim)
        return (self._impls["reduceat"] or self._reduceat_by_loop)(a, indices, axis)

    def _reduceat_by_loop(self, a, indices, axis):
        count, parts = typeof(a).shape[axis], typeof(indices).shape[0]
        heads = taking.take(a, indices, axis=axis)
        bounds = expand_dims(append(indices, count), [i for i in range(typeof(a).ndim) if i != axis])
        first = structural.slice_in_dim(bounds, 0, parts, axis=axis)
        last = structural.slice_in_dim(bounds, 1, parts + 1, axis=axis)

        def step(i, totals):
            inside = ufuncs.logical_and(ufuncs.greater(i, first), ufuncs.less(i, last))
            return choose(inside, self._call(totals, taking.take(a, expand_dims(i, 0), axis=axis)), totals)

        return fori_loop(0, count, step, heads)

    @jitted("outer", static=("self",))
    def outer(self, A: Any, B: Any, /) -> Any:
        """Applies the function to each pair of an element of `A` and one of `B`."""
        self._check("outer")
        A, B = arrays(f"{self.__name__}.outer", A, B)
        pairs = vmap(vmap(self._call, (None, 0)), (0, None))(ravel(A), ravel(B))
        return moving.reshape(pairs, (*typeof(A).shape, *typeof(B).shape))


def frompyfunc(func: Callable, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Makes a ufunc of a function of scalars.

    `func` has `nin` arguments and `nout` results. Unlike in NumPy it must be traceable, and results are arrays of
    numbers. `identity` is the result of a reduction of no elements.

    Example:
      >>> total = jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1, identity=0)
      >>> total.reduce(jnp.array([1, 2, 3]))
      Array(12, dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


# ---- the ufuncs of this package ---------------------------------------------------------------------


class _Bits(reductions.Reducer):
    """A bitwise reduction of integers."""

    def __call__(self, a, *args):
        dtype = typeof(a).dtype
        if dtype.kind != "b" and not dtypes.issubdtype(dtype, np.integer):
            raise ValueError(f"{self.name}: integer argument required; got dtype={dtype}")
        return super().__call__(a, *args)

    def unit(self, dtype):
        return np.asarray(self.start).astype(dtype)


def _reduce_with(reducer: reductions.Reducer) -> Callable:
    def reduce(a, axis, dtype, keepdims, initial, where):
        dtype = dtypes.requested_dtype(dtype, reducer.name)
        return reducer(a, reductions.static_axis(axis), dtype, keepdims, initial, where, True)

    return reduce


def _logsumexp_reduce(combine: Callable, unit: float | None = None) -> Callable:
    """The logarithm of a sum of powers of e, or of the base with the natural logarithm `unit`."""

    def reduce(a, axis, dtype, keepdims, initial, where):
        a, *initial = promote_args_inexact("logsumexp", *((a,) if initial is None else (a, initial)))
        scaled = [ufuncs.multiply(x, unit) if unit else x for x in (*initial, a)]
        total, shift = custom_rules.shifted_sum(scaled.pop(), axis, keepdims, where)
        log = lax.add(lax.log(total), astype(shift, typeof(total).dtype))
        log = combine(scaled[0], log) if scaled else log
        return ufuncs.divide(log, unit) if unit else log

    return reduce


def _updating(name: str) -> Callable:
    return lambda a, indices, b: update(asarray(a), indices, b, name)


def _ufunc(
    function: Callable, nin: int = 2, identity: Any = None, reducer: reductions.Reducer | None = None, **impls: Any
) -> Any:
    if reducer:
        impls["reduce"] = _reduce_with(reducer)
    return ufunc(function, nin, 1, name=function.__name__, nargs=nin, identity=identity, call=function, **impls)


if TYPE_CHECKING:

    class UnaryUfunc(ufunc):
        def __call__(self, x: ArrayLike, /, out: None = None, where: None = None) -> Array: ...

    class BinaryUfunc(ufunc):
        def __call__(self, x: ArrayLike, y: ArrayLike, /, out: None = None, where: None = None) -> Array: ...


_AND, _OR = lax_reduce.reduce_and, lax_reduce.reduce_or
_XOR = lax_reduce.reduce_xor

add: BinaryUfunc = _ufunc(ufuncs.add, 2, 0, reductions.SUM, accumulate=reductions.cumsum, at=_updating("add"))
multiply: BinaryUfunc = _ufunc(
    ufuncs.multiply, 2, 1, reductions.PROD, accumulate=reductions.cumprod, at=_updating("multiply")
)
subtract: BinaryUfunc = _ufunc(ufuncs.subtract, at=_updating("subtract"))
negative: UnaryUfunc = _ufunc(ufuncs.negative, 1)
maximum: BinaryUfunc = _ufunc(ufuncs.maximum, reducer=reductions.MAX)
minimum: BinaryUfunc = _ufunc(ufuncs.minimum, reducer=reductions.MIN)
bitwise_and: BinaryUfunc = _ufunc(ufuncs.bitwise_and, 2, -1, _Bits("bitwise_and", _AND, lax.bitwise_and, -1))
bitwise_or: BinaryUfunc = _ufunc(ufuncs.bitwise_or, 2, 0, _Bits("bitwise_or", _OR, lax.bitwise_or, 0))
bitwise_xor: BinaryUfunc = _ufunc(ufuncs.bitwise_xor, 2, 0, _Bits("bitwise_xor", _XOR, lax.bitwise_xor, 0))
logical_and: BinaryUfunc = _ufunc(
    ufuncs.logical_and, 2, True, reductions.Logical("logical_and", _AND, lax.bitwise_and, True)
)
logical_or: BinaryUfunc = _ufunc(
    ufuncs.logical_or, 2, False, reductions.Logical("logical_or", _OR, lax.bitwise_or, False)
)
logical_xor: BinaryUfunc = _ufunc(
    ufuncs.logical_xor, 2, False, reductions.Logical("logical_xor", _XOR, lax.bitwise_xor, False)
)
logaddexp: BinaryUfunc = _ufunc(custom_rules.logaddexp, 2, -np.inf, reduce=_logsumexp_reduce(custom_rules.logaddexp))
logaddexp2: BinaryUfunc = _ufunc(
    custom_rules.logaddexp2, 2, -np.inf, reduce=_logsumexp_reduce(custom_rules.logaddexp, math_log(2))
)
