"""Sums, products, means, extrema and other reductions over axes, cumulative ones, and those that skip NaN."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from math import prod as product
from typing import Any

import numpy as np

from minijax.base import cache, config, dims, dtypes, errors
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import ShardingTypeError
from minijax.base.source import hide_frames
from minijax.base.util import named
from minijax.composed.arrays import cumulative
from minijax.composed.arrays.selecting import where as choose
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir import state
from minijax.ir.state import axis_size
from minijax.ir.trace import Tracer
from minijax.ir.types import is_value, offers_array, typeof
from minijax.numpy import creation, ufuncs
from minijax.numpy.ufuncs import truth
from minijax.primitives import elementwise as lax, moving, reduce as lax_reduce, structural
from minijax.primitives.convert import as_type
from minijax.primitives.families import const_like, is_complex, scalar_like
from minijax.primitives.promote import (
    arrays,
    check_arraylike,
    check_out,
    is_inexact,
    promote_args,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
)
from minijax.run.arrays.array import Array, ArrayLike, Axis

_HALVES = (np.dtype(np.float16), dtypes.bfloat16)


def static_axis(axis: Axis) -> Any:
    """An axis or tuple of axes as plain ints. Raises ConcretizationTypeError for traced ones."""
    try:
        if axis is None or type(axis) is int:
            return axis
        if isinstance(axis, Tracer):
            raise errors.ConcretizationTypeError(
                axis, f"The axis argument must be known statically. {errors.MAKE_STATIC}"
            )
        try:
            return operator.index(axis)
        except TypeError as error:
            if isinstance(axis, str):
                raise TypeError(f"{error}. Axes are numbered, got axis={axis!r}.") from None
        return tuple(operator.index(a) if isinstance(a, Tracer) else static_axis(a) for a in axis)
    except Exception as error:
        hide_frames(error)
        raise


def _reduced_axis(name: str, axis: Axis) -> Any:
    """As `static_axis`. Raises NameError for the name of an unbound axis, as collectives do."""
    if isinstance(axis, str):
        if name in ("all", "any", "prod"):
            raise NotImplementedError(
                f"Named reductions not implemented for jnp.{name}(). Reduce what `lax.all_gather` gives for {axis!r}."
            )
        axis_size(axis, "psum")
    return static_axis(axis)


def canonical_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes to reduce as nonnegative indices; all axes for None."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(dims.canonical_axis(a, ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def _for_computation(dtype: Any) -> Any:
    """The dtype to accumulate in: float32 for half precision."""
    return dtypes.float32 if dtype in _HALVES else dtype


@dataclass(eq=False)
class Reducer:
    """A reduction: how elements combine, and its identity (None for an extremum).

    A reduction of numbers has a logical one, which replaces it if the requested dtype is bool.
    """

    name: str
    reduce: Callable
    combine: Callable
    start: Any
    logical: Reducer | None = None

    def operand(self, a: Any) -> Any:
        """`a` converted to a dtype that this reduction supports."""
        return promote_dtypes_numeric(a)[0] if self.logical and typeof(a).dtype == np.bool_ else a

    def unit(self, dtype: Any) -> Any:
        """The identity of the reduction in a dtype."""
        return self.start

    def types(self, have: Any, dtype: Any, promote_integers: bool) -> tuple[Any, Any]:
        """The dtypes of the computation and of the result."""
        if dtype is not None:
            return dtype, dtype
        if not self.logical:
            return have, have
        if promote_integers and dtypes.issubdtype(have, np.integer):
            have = dtypes.available(have, "convert_element_type")
            unsigned = dtypes.issubdtype(have, np.unsignedinteger)
            default = dtypes.default_uint_dtype() if unsigned else dtypes.default_int_dtype()
            have = default if default.itemsize > have.itemsize else have
        wide = _for_computation(have)
        computed = dtypes.available(wide, "convert_element_type")
        return computed, computed if wide == have else dtypes.canonicalize_dtype(have, True)

    def __call__(
        self, a: Any, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any, promote_integers: bool
    ) -> Any:
        if dtype == np.bool_ and self.logical:
            a = as_type(self.operand(*arrays(self.name, a)), dtype)
            return self.logical(a, axis, None, keepdims, initial, where, False)
        (a,) = arrays(self.name, a)
        a = self.operand(a)
        if dtypes.is_extended(typeof(a).dtype):
            raise TypeError(f"jnp.{self.name} cannot interpret {typeof(a).dtype} as the dtype of numbers.")
        axes = canonical_axes(axis, typeof(a).ndim)
        computed, result = self.types(typeof(a).dtype, dtype, promote_integers)
        a = as_type(a, computed)
        extremum = self.start is None
        if extremum and initial is None and not size_along(a, axes):
            raise ValueError(
                f"zero-size array to reduction operation {self.name} which has no identity. Pass `initial`."
            )
        if where is not None:
            if extremum and initial is None:
                raise ValueError(
                    f"reduction operation {self.name} does not have an identity, so to use a where mask one "
                    "has to specify 'initial'"
                )
            where = checked_mask(self.name, where)
            highest = self.name == "min"
            a = choose(
                where, a, lax_reduce.lowest(computed, highest) if extremum else scalar_like(a, self.unit(computed))
            )
        out = self.reduce(a, axes)
        if initial is not None:
            if typeof(initial).shape:
                raise ValueError(f"initial value must be a scalar. Got array of shape {typeof(initial).shape}")
            out = self.combine(as_type(initial, computed), out)
        return as_type(moving.expand_dims(out, axes) if keepdims else out, result)


def checked_mask(name: str, where: Any) -> Any:
    if where is None:
        return None
    (where,) = arrays(name, where)
    if typeof(where).dtype != np.bool_:
        raise ValueError(f"jnp.{name}: where must be None or a boolean array; got where.dtype={typeof(where).dtype!r}")
    return where


class Logical(Reducer):
    """A reduction of booleans."""

    def operand(self, a):
        return as_type(lax.real(a) if is_complex(a) else a, np.dtype(bool))


def size_along(a: Any, axes: tuple[int, ...]) -> int:
    """The number of elements along `axes`."""
    shape = typeof(a).shape
    return product(shape[i] for i in axes)


MAX = Reducer("max", lax_reduce.reduce_max, lax.max, None)
MIN = Reducer("min", lax_reduce.reduce_min, lax.min, None)
ALL = Logical("all", lax_reduce.reduce_and, lax.bitwise_and, True)
ANY = Logical("any", lax_reduce.reduce_or, lax.bitwise_or, False)
SUM = Reducer("sum", lax_reduce.reduce_sum, lax.add, 0, ANY)
PROD = Reducer("prod", lax_reduce.reduce_prod, lax.mul, 1, ALL)


def _operand_if_infinite(a: Any, initial: Any) -> Any:
    """An initial value for integers that XLA converts, as in an eager call of jax, and not NumPy."""
    if type(initial) is not float or np.isfinite(initial) or not state.is_eager() or not isinstance(a, Array):
        return initial
    return initial if is_inexact(a) else creation.asarray(initial)


@cache.cache
def _requested(dtype: DTypeLike, name: str, call: tuple) -> Any:
    """The dtype of a reduction. Each kind of call warns once of one that is narrowed, since jax caches its trace."""
    # In jax the conversion is asked for the same dtype, and warns too.
    return [dtypes.requested_dtype(dtype, function) for function in (name, "convert_element_type")][0]


@jitted("_reduce", static=("reducer", "axis", "dtype", "keepdims", "promote_integers"), inline=True)
def _reduce(
    a: Any, reducer: Reducer, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any, promote_integers: bool
) -> Any:
    if dtype is not None:
        types = tuple([typeof(x) for x in (a, initial, where) if x is not None])
        dtype = _requested(dtype, reducer.name, (type(dtype), types, axis, keepdims, promote_integers, config.state()))
    return reducer(a, axis, dtype, keepdims, initial, where, promote_integers)


def _sum_or_prod(reducer: Reducer, **texts: str) -> Callable:
    name = reducer.name

    def function(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """Computes the {what} of elements, of all or along axes.

        Args:
          a: array or number.
          axis: axis or tuple of axes to reduce, static under `jit`. By default all axes.
          dtype: dtype of the computation and of the result. By default that of `a`, but see `promote_integers`.
          out: must be `None`.
          keepdims: whether reduced axes stay, with length 1.
          initial: scalar to start with.
          where: booleans that broadcast to `a`: elements to include. By default all.
          promote_integers: whether booleans and narrow integers are {done} in the default integer dtype (int32, or
            int64 with `jax_enable_x64`). Otherwise they keep their own dtype and may wrap around.

        Returns:
          An array of a smaller rank. It is {unit} where axes are empty.

        Raises:
          ConcretizationTypeError: if `axis` is traced.
          NotImplementedError: for `out`.

        Differences from NumPy:
          `promote_integers` is an addition. float16 and bfloat16 are {done} in float32, then rounded.

        See also: {related}.

        Example:
          >>> x = jnp.array([[1, 2], [3, 4]])
          >>> {all_call}
          {all_result}
          >>> {axis_call}
          {axis_result}
        """
        check_out(name, out)
        initial = _operand_if_infinite(a, initial)
        return _reduce(a, reducer, _reduced_axis(name, axis), dtype, keepdims, initial, where, promote_integers)

    return fused(whole=True)(named(function, name, filled(function, texts)))


sum = _sum_or_prod(
    SUM,
    **dict(what="sum", done="summed", unit="0", related="`jax.numpy.mean`, `jax.numpy.cumsum`, `jax.numpy.nansum`"),
    **dict(all_call="jnp.sum(x)", all_result="Array(10, dtype=int32)"),
    **dict(axis_call="jnp.sum(x, axis=0, keepdims=True)", axis_result="Array([[4, 6]], dtype=int32)"),
)
prod = _sum_or_prod(
    PROD,
    **dict(what="product", done="multiplied", unit="1", related="`jax.numpy.sum`, `jax.numpy.cumprod`"),
    **dict(all_call="jnp.prod(x)", all_result="Array(24, dtype=int32)"),
    **dict(axis_call="jnp.prod(x, axis=0)", axis_result="Array([3, 8], dtype=int32)"),
)


def _extremum(reducer: Reducer, **texts: str) -> Callable:
    name = reducer.name

    def function(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Returns the {most} element, of all or along axes, and NaN if one is NaN.

        Args:
          a: array or number.
          axis: axis or tuple of axes to reduce, static under `jit`. By default all axes.
          out: must be `None`.
          keepdims: whether reduced axes stay, with length 1.
          initial: scalar to compare with too. It is needed for `where` and for axes of length 0.
          where: booleans that broadcast to `a`: elements to include. By default all.

        Returns:
          An array of a smaller rank and the dtype of `a`.

        Raises:
          ValueError: if axes are empty, or for `where`, and `initial` is not given.
          NotImplementedError: for `out`.

        Differences from NumPy:
          Gradients are divided equally among elements that are equal.

        See also: `jax.numpy.arg{name}`, `jax.numpy.nan{name}`, `jax.numpy.{most_of}`.

        Example:
          >>> x = jnp.array([[1, 7], [5, 3]])
          >>> jnp.{name}(x)
          {all_result}
          >>> jnp.{name}(x, axis=1)
          {axis_result}
        """
        check_out(name, out)
        initial = _operand_if_infinite(a, initial)
        return _reduce(a, reducer, _reduced_axis(name, axis), None, keepdims, initial, where, False)

    return fused(whole=True)(named(function, name, filled(function, dict(texts, name=name))))


def _truth(reducer: Reducer, **texts: str) -> Callable:
    name = reducer.name

    def function(
        a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Returns whether {which} true, of all elements or along axes.

        Args:
          a: array or number. Numbers are true where they are not zero.
          axis: axis or tuple of axes to reduce, static under `jit`. By default all axes.
          out: must be `None`.
          keepdims: whether reduced axes stay, with length 1.
          where: booleans that broadcast to `a`: elements to include. By default all.

        Returns:
          An array of booleans of a smaller rank. It is {unit} where axes are empty.

        Raises:
          NotImplementedError: for `out`.

        Differences from NumPy:
          The result is an array, hence no condition of an `if` under `jit`: use `jax.lax.cond` or `jnp.where`.

        See also: `jax.numpy.{other}`, `jax.numpy.logical_{logic}`, `jax.numpy.count_nonzero`.

        Example:
          >>> x = jnp.array([[True, False], [True, True]])
          >>> jnp.{name}(x)
          {all_result}
          >>> jnp.{name}(x, axis=1)
          {axis_result}
        """
        check_out(name, out)
        return _reduce(a, reducer, _reduced_axis(name, axis), None, keepdims, None, where, False)

    return fused(whole=True)(named(function, name, filled(function, dict(texts, name=name))))


IN_ROWS = "Array([{}], dtype=int32)".format
max = _extremum(MAX, most="largest", most_of="maximum", all_result="Array(7, dtype=int32)", axis_result=IN_ROWS("7, 5"))
min = _extremum(
    MIN, most="smallest", most_of="minimum", all_result="Array(1, dtype=int32)", axis_result=IN_ROWS("1, 3")
)
all = _truth(
    ALL,
    **dict(which="all elements are", unit="true", other="any", logic="and"),
    **dict(all_result="Array(False, dtype=bool)", axis_result="Array([False,  True], dtype=bool)"),
)
any = _truth(
    ANY,
    **dict(which="one or more elements are", unit="false", other="all", logic="or"),
    **dict(all_result="Array(True, dtype=bool)", axis_result="Array([ True,  True], dtype=bool)"),
)


@jitted("_ptp", static=("axis", "keepdims"))
def _ptp(a: Any, axis: Axis, keepdims: bool) -> Any:
    return ufuncs.subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Computes the difference between the largest and the smallest element, of all or along axes.

    `axis` is static. `out` must be `None`.

    Example:
      >>> jnp.ptp(jnp.array([[1, 7], [5, 3]]), axis=1)
      Array([6, 2], dtype=int32)
    """
    check_out("ptp", out)
    return _ptp(*arrays("ptp", a), axis=static_axis(axis), keepdims=keepdims)


# ---- positions of extrema ---------------------------------------------------------------------------


def position_function(name: str, find: Callable, what: str, nan: str, example: str) -> Callable:
    """The public function whose jitted core `find` finds the positions of extrema."""

    def place(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """Returns the index of the first {what} element, of all or along an axis.

        Args:
          a: array.
          axis: axis along which to search, static under `jit`. By default `a` is flattened.
          out: must be `None`.
          keepdims: whether the axis stays, with length 1.

        Returns:
          An array of indices, of the default integer dtype (int32, or int64 with `jax_enable_x64`). {nan}

        Raises:
          ValueError: if axes are empty.
          NotImplementedError: for `out`.

        See also: `jax.numpy.take_along_axis`, `jax.numpy.argsort`, `jax.lax.top_k`.

        Example:
          >>> jnp.{name}(jnp.array([[3, 9, 1], [8, 2, 7]]), axis=1)
          {example}
        """
        check_out(name, out)
        number = static_axis(axis) if axis is None or isinstance(axis, str) else operator.index(axis)
        return find(*arrays(name, a), axis=number, keepdims=bool(keepdims))

    texts = dict(name=name, what=what, nan=nan, example=example)
    return fused(whole=True)(named(place, name, filled(place, texts)))


def _extremal_place(name: str, op: Callable, what: str, example: str) -> Callable:
    @jitted(name, static=("axis", "keepdims"), inline=True)
    def find(a, axis, keepdims):
        shape = typeof(a).shape
        if axis is None:
            a, at = moving.reshape(a, (product(shape),)), 0
        else:
            at = axis
        if axis is not None and not -len(shape) <= axis < len(shape):
            raise IndexError(f"{name}: axis {axis} is out of bounds for an array of {len(shape)} dimensions")
        if not typeof(a).shape[at]:
            raise ValueError(f"attempt to get {name} of an empty sequence. Check the size of axis {at} first.")
        index = op(a, dims.canonical_axis(at, typeof(a).ndim), dtypes.default_int_dtype())
        return moving.expand_dims(index, canonical_axes(axis, len(shape))) if keepdims else index

    return position_function(name, find, what, "It is that of a NaN if there is one.", example)


argmax = _extremal_place("argmax", lax_reduce.argmax, "largest", IN_ROWS("1, 0"))
argmin = _extremal_place("argmin", lax_reduce.argmin, "smallest", IN_ROWS("2, 1"))


@jitted(static=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Counts the elements that are not zero, of all or along axes.

    The result is an array of the default integer dtype. `axis` is static.

    Example:
      >>> jnp.count_nonzero(jnp.array([[0, 1], [2, 3]]), axis=1)
      Array([1, 2], dtype=int32)
    """
    (a,) = arrays("count_nonzero", a)
    return sum(lax.ne(a, const_like(a, 0)), axis, dtypes.default_int_dtype(), keepdims=keepdims)


# ---- means and variances ----------------------------------------------------------------------------


@jitted("_mean", static=("axis", "dtype", "keepdims"), inline=True)
def _mean(a: Any, axis: Axis, dtype: Any, keepdims: bool, where: Any) -> Any:
    (a,) = arrays("mean", a)
    result = dtypes.available(dtypes.to_inexact_dtype(typeof(a).dtype), "astype") if dtype is None else dtype
    computed = _for_computation(result) if dtype is None else result
    if where is not None:
        mask = moving.broadcast_to_shape(checked_mask("mean", where), typeof(a).shape)
        count = sum(mask, axis, computed, keepdims=keepdims)
        total = sum(a, axis, computed, keepdims=keepdims, where=where)
    else:
        shape = typeof(a).shape
        sizes = shape if axis is None else (shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))
        size = product(sizes)
        total = sum(a, axis, computed, keepdims=keepdims)
        count = scalar_like(total, size)
    return as_type(lax.div(total, count), result)


@fused(whole=True)
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Computes the arithmetic mean of elements, of all or along axes.

    Args:
      a: array.
      axis: axis or tuple of axes to reduce, static under `jit`. By default all axes.
      dtype: dtype of the computation and of the result. By default that of `a`, or the default floating dtype for
        integers and booleans.
      out: must be `None`.
      keepdims: whether reduced axes stay, with length 1.
      where: booleans that broadcast to `a`: elements to include. By default all.

    Returns:
      An array of a smaller rank. It is NaN where axes are empty.

    Raises:
      ConcretizationTypeError: if `axis` is traced.
      NotImplementedError: for `out`.

    Differences from NumPy:
      float16 and bfloat16 are summed in float32, then rounded.

    See also: `jax.numpy.sum`, `jax.numpy.average`, `jax.numpy.nanmean`.

    Example:
      >>> x = jnp.array([[1.0, 2.0], [3.0, 6.0]])
      >>> jnp.mean(x)
      Array(3., dtype=float32)
      >>> jnp.mean(x, axis=0)
      Array([2., 4.], dtype=float32)
      >>> jnp.mean(x, axis=1, where=x > 1)
      Array([2. , 4.5], dtype=float32)
    """
    check_out("mean", out)
    return _mean(a, _reduced_axis("mean", axis), dtypes.requested_dtype(dtype, "mean"), keepdims, where)


def variance_types(name: str, have: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtypes of the computation and of the result of a variance."""
    if dtype is not None and dtypes.is_complex(have) and not dtypes.is_complex(dtype):
        raise ValueError(
            f"jax.numpy.{name} does not yet support real dtype parameters when computing the variance of an "
            f"array of complex values. The semantics of numpy.{name} seem unclear in this case: cast the "
            "input first."
        )
    inexact = dtypes.to_inexact_dtype(have)
    if dtype is None:
        return _for_computation(inexact), lax.real_dtype(inexact)
    return _for_computation(dtype), dtype


def squared(x: Any) -> Any:
    return lax.real(lax.mul(x, lax.conj(x))) if is_complex(x) else lax.square(x)


@jitted(static=("axis", "dtype", "keepdims"))
def _var(a: Any, axis: Axis, dtype: Any, keepdims: bool, mean_: Any, correction: Any, where: Any) -> Any:
    computed, result = variance_types("var", typeof(a).dtype, dtype)
    a = as_type(a, computed)
    if mean_ is None:
        mean_ = mean(a, axis, computed, keepdims=True, where=where)
    squares = squared(ufuncs.subtract(a, mean_))
    part = typeof(squares).dtype
    if where is None:
        count = scalar_like(squares, size_along(a, canonical_axes(axis, typeof(a).ndim)))
    else:
        count = sum(moving.broadcast_to_shape(where, typeof(a).shape), axis, part, keepdims=keepdims)
    count = lax.sub(count, as_type(correction, part))
    total = sum(squares, axis, part, keepdims=keepdims, where=where)
    variance = lax.div(total, count)
    variance = as_type(variance, result) if is_inexact(variance) else variance
    return choose(lax.gt(count, scalar_like(count, 0)), variance, np.nan)


@jitted("_std", static=("axis", "dtype", "keepdims"))
def _sqrt_var(a: Any, axis: Axis, dtype: Any, keepdims: bool, correction: Any, mean_: Any, where: Any) -> Any:
    return lax.sqrt(_var(a, axis, dtype, keepdims, mean_, correction, where))


def _std(a: Any, axis: Axis, dtype: Any, keepdims: bool, mean_: Any, correction: Any, where: Any) -> Any:
    # jax's program takes its operands in this order.
    return _sqrt_var(a, axis, dtype, keepdims, correction, mean_, where)


def _deviation(name: str, core: Callable, **texts: str) -> Callable:
    def function(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """Computes the {what} of elements, of all or along axes.

        Args:
          a: array.
          axis: axis or tuple of axes to reduce, static under `jit`. By default all axes.
          dtype: dtype of the computation and of the result. By default that of `a`, or the default floating dtype for
            integers; of complex numbers the result is real.
          out: must be `None`.
          ddof: number that is subtracted from the number of elements, before dividing by it.
          keepdims: whether reduced axes stay, with length 1.
          where: booleans that broadcast to `a`: elements to include. By default all.
          mean: the mean, if it is known, with the reduced axes kept.
          correction: another name of `ddof`. Only one of them may be given.

        Returns:
          An array of a smaller rank. It is NaN where the number of elements less `ddof` is not positive.

        Raises:
          ValueError: for both `ddof` and `correction`, and for a real `dtype` with complex numbers.
          NotImplementedError: for `out`.

        Differences from NumPy:
          float16 and bfloat16 are computed in float32, then rounded.{gradient}

        See also: `jax.numpy.{other}`, `jax.numpy.nan{name}`, `jax.numpy.mean`.

        Example:
          >>> x = jnp.array([1.0, 3.0, 5.0, 7.0])
          >>> jnp.{name}(x)
          {result}
        """
        check_out(name, out)
        if correction is None:
            correction = ddof
        elif not isinstance(ddof, int) or ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        (a,), where = arrays(name, a), checked_mask(name, where)
        result_dtype = dtypes.requested_dtype(dtype, name)
        if name == "std" and result_dtype is not None and not dtypes.is_inexact(result_dtype):
            raise ValueError(f"dtype argument to jnp.{name} must be inexact; got {dtype}")
        return core(a, _reduced_axis(name, axis), result_dtype, keepdims, mean, correction, where)

    return named(function, name, filled(function, dict(texts, name=name)))


var = _deviation("var", _var, what="variance", gradient="", other="std", result="Array(5., dtype=float32)")
_AT_ZERO = " The gradient is NaN where it is 0."
std = _deviation(
    "std", _std, what="standard deviation", gradient=_AT_ZERO, other="var", result="Array(2.236068, dtype=float32)"
)


@jitted(static=("axis", "returned", "keepdims"), inline=True)
def _average(a: Any, axis: Axis, weights: Any, returned: bool, keepdims: bool) -> Any:
    if weights is None:
        (a,) = promote_dtypes_inexact(a)
        count = size_along(a, canonical_axes(axis, typeof(a).ndim))
        average = mean(a, axis, keepdims=keepdims)
        shape = typeof(average).shape
        return (average, moving.filled(shape, scalar_like(average, count))) if returned else average
    a, weights = promote_dtypes_inexact(a, weights)
    shape, weights_shape = typeof(a).shape, typeof(weights).shape
    if shape != weights_shape:
        weights = _weights_along(weights, shape, axis)
    total = sum(weights, axis, keepdims=keepdims)
    average = ufuncs.divide(sum(ufuncs.multiply(a, weights), axis, keepdims=keepdims), total)
    return (average, moving.broadcast_to_shape(total, typeof(average).shape)) if returned else average


def _weights_along(weights: Any, shape: tuple, axis: Axis) -> Any:
    """Weights of some axes, in the order of `axis`, as an array that broadcasts to `shape`."""
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    axes, have = canonical_axes(axis, len(shape)), typeof(weights).shape
    if have != tuple(shape[i] for i in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis: "
            f"weights of shape {have} over axes {axes} of shape {shape}"
        )
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return moving.reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(shape)), order)


def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Computes the mean of elements with weights, of all or along axes.

    `weights` have the shape of `a`, or that of its axes `axis`. With `returned` the result is a pair: means and sums of
    weights. A sum of zero gives NaN or infinity, where NumPy raises.

    Example:
      >>> jnp.average(jnp.array([1.0, 2.0, 6.0]), weights=jnp.array([1.0, 1.0, 2.0]))
      Array(3.75, dtype=float32)
    """
    (a,) = arrays("average", a)
    if weights is not None:
        (weights,) = arrays("average", weights)
    return _average(a, static_axis(axis), weights, returned, keepdims)


# ---- equality of whole arrays -----------------------------------------------------------------------


@jitted(static=("equal_nan",))
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Returns whether two arrays are equal within a tolerance, in all elements.

    Args:
      a: array or number.
      b: array or number, which broadcasts with `a`. The relative tolerance is relative to it.
      rtol: relative tolerance.
      atol: absolute tolerance.
      equal_nan: whether NaN counts as equal to NaN. It must be static.

    Returns:
      A boolean scalar array: true if `abs(a - b) <= atol + rtol * abs(b)` for all elements.

    Differences from NumPy:
      The result is an array, hence no condition of an `if` under `jit`. The default tolerances suit float64: for
      float32 of wide ranges give larger ones.

    See also: `jax.numpy.isclose`, `jax.numpy.array_equal`.

    Example:
      >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.000001]))
      Array(True, dtype=bool)
      >>> jnp.allclose(1.0, 1.1, atol=0.2)
      Array(True, dtype=bool)
    """
    a, b = arrays("allclose", a, b)
    return all(ufuncs.isclose(a, b, rtol, atol, equal_nan))


@jitted(static=("equal_nan",), inline=True)
def _array_equal(a1: Any, a2: Any, equal_nan: bool) -> Any:
    if typeof(a1).shape != typeof(a2).shape:
        return np.bool_(False)
    a1, a2 = promote_args("array_equal", a1, a2)
    same = lax.eq(a1, a2)
    if equal_nan:
        same = ufuncs.logical_or(same, ufuncs.logical_and(lax.ne(a1, a1), lax.ne(a2, a2)))
    return all(same)


@jitted(inline=True)
def _array_equiv(a1: Any, a2: Any) -> Any:
    try:
        same = ufuncs.equal(a1, a2)
    except ValueError:
        return np.bool_(False)
    return all(same)


def _as_value(x: Any) -> Any:
    return x if is_value(x) and not offers_array(x) else creation.asarray(x)


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Returns whether two arrays have one shape and equal elements.

    The result is a boolean scalar array. With `equal_nan`, which is static, NaN equals NaN.

    Example:
      >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2, 3]))
      Array(False, dtype=bool)
    """
    return _array_equal(_as_value(a1), _as_value(a2), equal_nan)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Returns whether two arrays broadcast and have equal elements then.

    The result is a boolean scalar array.

    Example:
      >>> jnp.array_equiv(jnp.array([1, 1]), 1)
      Array(True, dtype=bool)
    """
    return _array_equiv(_as_value(a1), _as_value(a2))


# ---- without NaN -------------------------------------------------------------------------------------


def _without_nan(a: Any, value: Any) -> Any:
    return choose(lax.ne(a, a), scalar_like(a, value), a)


def _nan_total(name: str, reduce: Callable, unit: int, what: str, result: int) -> Callable:
    def function(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Computes the {what} of the elements that are not NaN, of all or along axes.

        It is {unit} where all are NaN. `initial` is a scalar to start with, and `where` selects elements. `axis` and
        `dtype` are static. `out` must be `None`.

        Example:
          >>> jnp.{name}(jnp.array([2.0, jnp.nan, 3.0]))
          Array({result}., dtype=float32)
        """
        check_out(name, out)
        (a,), where = arrays(name, a), checked_mask(name, where)
        dtype = dtypes.requested_dtype(dtype, "nanprod")  # jax names it for both
        return reduce(_without_nan(a, unit) if is_inexact(a) else a, axis, dtype, None, keepdims, initial, where)

    texts = dict(name=name, what=what, unit=unit, result=result)
    return jitted(static=("axis", "dtype", "keepdims"))(named(function, name, filled(function, texts)))


nansum, nanprod = _nan_total("nansum", sum, 0, "sum", 5), _nan_total("nanprod", prod, 1, "product", 6)


def _nan_extremum(name: str, reduce: Callable, highest: bool) -> Callable:
    def function(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Returns the {most} of the elements that are not NaN, of all or along axes.

        It is NaN where all elements are, without a warning. `initial` is a scalar to compare with too, and `where`
        selects elements. `axis` is static. `out` must be `None`.

        Example:
          >>> jnp.{name}(jnp.array([2.0, jnp.nan, 3.0]))
          Array({result}., dtype=float32)
        """
        check_out(name, out)
        (a,), where = arrays(name, a), checked_mask(name, where)
        if not is_inexact(a):
            return reduce(a, axis, None, keepdims, initial, where)
        worst = lax_reduce.lowest(typeof(a).dtype, highest)
        extremum = reduce(_without_nan(a, worst), axis, None, keepdims, initial, where)
        if initial is not None:
            return extremum
        return choose(all(lax.ne(a, a), axis, keepdims=keepdims), const_like(a, np.nan), extremum)

    most, result = ("smallest", 2) if highest else ("largest", 3)
    doc = filled(function, dict(name=name, most=most, result=result))
    return jitted(static=("axis", "keepdims"))(named(function, name, doc))


nanmax, nanmin = _nan_extremum("nanmax", max, False), _nan_extremum("nanmin", min, True)


def _nan_place(name: str, find: Callable, worst: float, what: str, example: str) -> Callable:
    @jitted(f"_{name}", static=("axis", "keepdims"))
    def search(a, axis, keepdims):
        if not is_inexact(a):
            return find(a, axis, keepdims=keepdims)
        nans = lax.ne(a, a)
        index = find(choose(nans, worst, a), axis, keepdims=keepdims)
        return choose(all(nans, axis, keepdims=keepdims), -1, index)

    return position_function(name, search, what, "NaN is left out; it is -1 where all are NaN.", example)


nanargmax = _nan_place("nanargmax", argmax, -np.inf, "largest", IN_ROWS("1, 0"))
nanargmin = _nan_place("nanargmin", argmin, np.inf, "smallest", IN_ROWS("2, 1"))


@jitted(static=("axis", "dtype", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Computes the mean of the elements that are not NaN, of all or along axes.

    It is NaN where all elements are, without a warning. `where` selects elements. `out` must be `None`.

    Example:
      >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
      Array(2., dtype=float32)
    """
    check_out("nanmean", out)
    (a,), where = arrays("nanmean", a), checked_mask("nanmean", where)
    dtype = dtypes.requested_dtype(dtype, "mean")
    if not is_inexact(a):
        return mean(a, axis, dtype, None, keepdims, where=where)
    result = typeof(a).dtype if dtype is None else dtype
    count = sum(lax.bitwise_not(lax.ne(a, a)), axis, result, keepdims=keepdims, where=where)
    return lax.div(nansum(a, axis, dtype=result, keepdims=keepdims, where=where), count)


@jitted(static=("axis", "dtype", "keepdims"))
def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:  # fmt: skip
    """Computes the variance of the elements that are not NaN, of all or along axes.

    Sums are divided by the number of elements less `ddof`; the result is NaN where this is not positive, without a
    warning. `where` selects elements, and `mean` is a known mean. `out` must be `None`.

    Example:
      >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
      Array(1., dtype=float32)
    """
    check_out("nanvar", out)
    (a,), where = arrays("nanvar", a), checked_mask("nanvar", where)
    computed, result = variance_types("nanvar", typeof(a).dtype, dtypes.requested_dtype(dtype, "nanvar"))
    a = as_type(a, computed)
    if mean is None:
        mean = nanmean(a, axis, dtype=computed, keepdims=True, where=where)
    squares = squared(choose(lax.ne(a, a), 0, ufuncs.subtract(a, mean)))
    count = sum(lax.bitwise_not(lax.ne(a, a)), axis, keepdims=keepdims, where=where)
    count = ufuncs.subtract(count, ddof)
    few = lax.le(count, scalar_like(count, 0))
    total = choose(few, np.nan, sum(squares, axis, keepdims=keepdims, where=where))
    return as_type(lax.div(total, as_type(choose(few, 1, count), typeof(total).dtype)), result)


@jitted(static=("axis", "dtype", "keepdims"))
def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:  # fmt: skip
    """Computes the standard deviation of the elements that are not NaN, of all or along axes.

    It is the square root of `nanvar`, with the same arguments.

    Example:
      >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
      Array(1., dtype=float32)
    """
    check_out("nanstd", out)
    where = checked_mask("nanstd", where)
    dtype = dtypes.requested_dtype(dtype, "nanstd")
    return lax.sqrt(nanvar(a, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean))


# ---- cumulative functions ----------------------------------------------------------------------------


def _accumulate(name: str, op: Callable, start: int, skips_nan: bool, promotes: bool = False) -> Callable:
    """The jitted core of a cumulative function."""

    @jitted(name, static=("axis", "dtype"))
    def core(a, axis=None, dtype=None):
        if axis is None:
            if typeof(a).is_sharded:
                raise ShardingTypeError(
                    f"{name}: The input should be fully replicated where axis is None, but it is {typeof(a).text}"
                )
            a, axis = moving.reshape(a, (typeof(a).size,)), 0
        axis = dims.canonical_axis(axis, typeof(a).ndim)
        if skips_nan:
            a = _without_nan(a, start)
        return _promoted(op, a, axis, dtype, promotes)

    return core


def _promoted(op: Callable, a: Any, axis: int, dtype: Any, promotes: bool) -> Any:
    have = typeof(a).dtype
    if dtype == np.bool_:
        return as_type(op(as_type(truth(a), dtypes.default_int_dtype()), axis), dtype)
    return op(as_type(a, _dtype_of(have, dtype, promotes)), axis)


def _dtype_of(have: Any, dtype: Any, promotes: bool) -> Any:
    if dtype is not None:
        return dtype
    if have == np.bool_ or promotes and dtypes.issubdtype(have, np.signedinteger):
        return dtypes.default_int_dtype()
    if promotes and dtypes.issubdtype(have, np.unsignedinteger):
        return dtypes.default_uint_dtype()
    return dtypes.available(have, "convert_element_type")


def _cumulative(name: str, op: Callable, start: int, what: str, result: str, skips_nan: bool = False) -> Callable:
    core = _accumulate(name, op, start, skips_nan)

    def function(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Computes the {what} of the first elements along an axis: of one, of two, and so on.

        Args:
          a: array.
          axis: axis along which to accumulate, static under `jit`. By default `a` is flattened.
          dtype: dtype of the computation and of the result. By default that of `a`, or the default integer dtype for
            booleans.
          out: must be `None`.

        Returns:
          An array of the shape of `a`, or a vector if `axis` is `None`.{nan}

        Raises:
          NotImplementedError: for `out`.

        Differences from NumPy:
          Narrow integers keep their dtype and may wrap around.

        See also: `jax.lax.{name}`, `jax.lax.associative_scan`.

        Example:
          >>> jnp.{public}(jnp.array([1, 2, 3, 4]))
          {result}
        """
        check_out(name, out)
        result_dtype = dtypes.requested_dtype(dtype, name)
        check_arraylike(name, a)
        return core(a, static_axis(axis), result_dtype)

    nan = f" NaN counts as {start}." if skips_nan else ""
    texts = dict(what=what, nan=nan, name=name.removeprefix("nan"), public=name, result=result)
    return fused(whole=True)(named(function, name, filled(function, texts)))


_SUMS, _PRODUCTS = (
    ("sums", "Array([ 1,  3,  6, 10], dtype=int32)"),
    ("products", "Array([ 1,  2,  6, 24], dtype=int32)"),
)
cumsum = _cumulative("cumsum", cumulative.cumsum, 0, *_SUMS)
cumprod = _cumulative("cumprod", cumulative.cumprod, 1, *_PRODUCTS)
nancumsum = _cumulative("nancumsum", cumulative.cumsum, 0, *_SUMS, skips_nan=True)
nancumprod = _cumulative("nancumprod", cumulative.cumprod, 1, *_PRODUCTS, skips_nan=True)
_cumsum_promoted = _accumulate("_cumsum_with_promotion", cumulative.cumsum, 0, False, promotes=True)


def _with_initial(name: str, x: Any, axis: int | None, dtype: Any, include: bool, core: Callable, start: int) -> Any:
    (x,) = arrays(name, x)
    rank = typeof(x).ndim
    if not rank:
        raise ValueError(
            f"The input must be non-scalar to take a {name.replace('_', ' ')}, however a scalar was given."
        )
    if axis is None and rank > 1:
        raise ValueError(
            f"The input array has rank {rank}, however axis was not set to an explicit value. "
            f"The axis argument is only optional for one-dimensional arrays."
        )
    axis = dims.canonical_axis(static_axis(axis) or 0, rank)
    out = core(x, axis, dtypes.requested_dtype(dtype, ""))
    if not include:
        return out
    shape = (*typeof(out).shape[:axis], 1, *typeof(out).shape[axis + 1 :])
    return structural.concatenate([moving.filled(shape, scalar_like(out, start)), out], axis)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Computes the sums of the first elements along an axis.

    `axis` may be left out for a vector only; the argument of a scalar raises ValueError. With `include_initial` the
    result starts with 0 and is longer by 1. Narrow integers are summed in the default integer dtype.

    Example:
      >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
      Array([0, 1, 3, 6], dtype=int32)
    """
    return _with_initial("cumulative_sum", x, axis, dtype, include_initial, _cumsum_promoted, 0)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Computes the products of the first elements along an axis.

    `axis` may be left out for a vector only; the argument of a scalar raises ValueError. With `include_initial` the
    result starts with 1 and is longer by 1. Unlike in `cumulative_sum`, integers keep their dtype.

    Example:
      >>> jnp.cumulative_prod(jnp.array([1, 2, 3]))
      Array([1, 2, 6], dtype=int32)
    """

    def core(x, axis, dtype):
        return _promoted(cumulative.cumprod, x, axis, dtype, promotes=False)

    return _with_initial("cumulative_prod", x, axis, dtype, include_initial, core, 1)
