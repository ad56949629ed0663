"""The Taylor rules of primitives.

Series hold Taylor coefficients, not derivatives: there are no factorials. The recurrences are those of Griewank and
Walther, "Evaluating Derivatives" (2008), chapter 13.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import minijax.numpy as jnp
from minijax.composed.arrays import cumulative
from minijax.composed.arrays.fft import fft_p
from minijax.dispatch.jit import jit_p
from minijax.experimental.jet.tracing import jet_flat, jet_of, jet_rules, zero_series
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.primitive import Primitive
from minijax.ir.trace import jaxpr_as_fun, trace_to_jaxpr
from minijax.ir.types import typeof
from minijax.primitives import convert, elementwise as ops, moving, reduce, structural
from minijax.primitives.conv import conv_general_dilated_p
from minijax.primitives.device import device_put_p
from minijax.primitives.dot import dot_general_p
from minijax.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p, gather_p
from minijax.primitives.gather_scatter import scatter_add_p
from minijax.primitives.window import reduce_window_sum_p
from minijax.primitives.zeros import add_any_p

# ---- kinds of rules ---------------------------------------------------------------------------------


def linear_prop(prim: Primitive, primals_in: Sequence, series_in: Sequence, **params: Any) -> tuple[Any, Any]:
    """Applies the rule of an operation that is jointly linear in its operands.

    Example:
        >>> from minijax.experimental.jet import linear_prop
        >>> linear_prop(lax.add_p, (1.0, 2.0), ([1.0], [3.0]))
        (Array(3., dtype=float32, weak_type=True), [Array(4., dtype=float32, weak_type=True)])
    """
    out = prim.bind(*primals_in, **params)
    terms = [prim.bind(*ts, **params) for ts in zip(*series_in, strict=True)]
    return out, list(zip(*terms, strict=True)) if prim.multiple_results else terms


def deflinear(prim: Primitive) -> None:
    """Registers the rule of linear operations for a primitive.

    Example:
        >>> from minijax.experimental.jet import deflinear, jet
        >>> from minijax.extend.core import Primitive
        >>> same_p = Primitive('same')
        >>> _ = same_p.def_impl(lambda x: x)
        >>> deflinear(same_p)
        >>> jet(same_p.bind, (2.0,), ([1.0],))
        (2.0, [Array(1., dtype=float32, weak_type=True)])
    """
    jet_rules[prim] = functools.partial(linear_prop, prim)


def zero_prop(prim: Primitive, primals_in: Sequence, series_in: Sequence, **params: Any) -> tuple[Any, Any]:
    """Applies the rule of a piecewise constant operation.

    Example:
        >>> from minijax.experimental.jet import zero_prop
        >>> zero_prop(lax.floor_p, (1.5,), ([1.0],))[0]
        Array(1., dtype=float32, weak_type=True)
    """
    out = prim.bind(*primals_in, **params)
    return out, [zero_series] * len(out) if prim.multiple_results else zero_series


def defzero(prim: Primitive) -> None:
    """Registers the rule of piecewise constant operations for a primitive.

    Example:
        >>> from minijax.experimental.jet import defzero, jet
        >>> from minijax.extend.core import Primitive
        >>> rank_p = Primitive('rank')
        >>> _ = rank_p.def_impl(jnp.ndim)
        >>> defzero(rank_p)
        >>> jet(rank_p.bind, (2.0,), ([1.0],))
        (0, [Array(0., dtype=float32, weak_type=True)])
    """
    jet_rules[prim] = functools.partial(zero_prop, prim)


def deriv_prop(prim: Primitive, deriv: Callable, primals_in: Sequence, series_in: Sequence) -> tuple[Any, list]:
    """Applies the rule of an operation of one operand with the derivative `deriv(x)`.

    Example:
        >>> from minijax.experimental.jet import deriv_prop
        >>> deriv_prop(lax.sin_p, jnp.cos, (0.0,), ([1.0],))
        (Array(0., dtype=float32, weak_type=True), [Array(1., dtype=float32, weak_type=True)])
    """
    (x,), (series,) = primals_in, series_in
    out = prim.bind(x)
    slope, slopes = jet_of(deriv, primals_in, series_in)
    return out, integral([slope, *slopes], series)


def def_deriv(prim: Primitive, deriv: Callable) -> None:
    """Registers the rule that follows from the derivative `deriv` for a primitive of one operand.

    Example:
        >>> from minijax.experimental.jet import def_deriv, jet
        >>> from minijax.extend.core import Primitive
        >>> half_square_p = Primitive('half_square')
        >>> _ = half_square_p.def_impl(lambda x: x * x / 2)
        >>> def_deriv(half_square_p, lambda x: x)
        >>> jet(half_square_p.bind, (2.0,), ([1.0],))
        (2.0, [Array(2., dtype=float32, weak_type=True)])
    """
    jet_rules[prim] = functools.partial(deriv_prop, prim, deriv)


def def_comp(prim: Primitive, comp: Callable, **kwargs: Any) -> None:
    """Registers the Taylor rule of `comp(*operands, **params)`, an equal composition of other operations.

    Example:
        >>> from minijax.experimental.jet import def_comp, jet
        >>> from minijax.extend.core import Primitive
        >>> cube_p = Primitive('cube')
        >>> def_comp(cube_p, lambda x: x * x * x)
        >>> jet(cube_p.bind, (2.0,), ([1.0],))
        (Array(8., dtype=float32, weak_type=True), [Array(12., dtype=float32, weak_type=True)])
    """

    def rule(primals_in, series_in, **params):
        return jet_of(functools.partial(comp, **kwargs, **params), primals_in, series_in)

    jet_rules[prim] = rule


def rule_of(*prims: Primitive) -> Callable[[Callable], Callable]:
    """Registers `rule(primals, series, **params)` for primitives."""

    def register(rule):
        for prim in prims:
            jet_rules[prim] = rule
        return rule

    return register


# ---- sums over coefficients -------------------------------------------------------------------------


def total(terms: Iterable) -> Any:
    """The sum of the terms, starting from 0."""
    return functools.reduce(jnp.add, terms, 0)


def weighted(k: int, first: Sequence, second: Sequence) -> Any:
    """Coefficient k of the integral of `first` times the derivative of `second`, which omits coefficient 0."""
    terms = (jnp.multiply(jnp.multiply(j, first[k - j]), second[j - 1]) for j in range(1, k + 1))
    return jnp.divide(total(terms), k)


def integral(slopes: Sequence, series: Sequence) -> list:
    """The series whose derivative is `slopes` times that of `series`."""
    return [weighted(k, slopes, series) for k in range(1, len(series) + 1)]


def product(k: int, u: Sequence, w: Sequence, multiply: Callable = jnp.multiply) -> Any:
    """Coefficient k of `multiply(u, w)`, a bilinear operation."""
    return total(multiply(u[j], w[k - j]) for j in range(k + 1))


def quotient(u: Sequence, w: Sequence, known: Sequence = ()) -> list:
    """The coefficients of u / w; `known` are the first of them."""
    v = list(known)
    for k in range(len(v), len(u)):
        v.append(jnp.divide(jnp.subtract(u[k], total(jnp.multiply(v[j], w[k - j]) for j in range(k))), w[0]))
    return v


def exponential(first: Any, series: Sequence) -> list:
    """The coefficients of exp(x), from its value `first` and the series of x."""
    v = [first]
    for k in range(1, len(series) + 1):
        v.append(weighted(k, v, series))
    return v


# ---- rules by name ----------------------------------------------------------------------------------

for p in (
    ops.neg_p, ops.real_p, ops.imag_p, ops.conj_p, ops.complex_p, ops.add_p, ops.sub_p, add_any_p,
    convert.copy_p, device_put_p, moving.broadcast_in_dim_p, moving.reshape_p,
    moving.transpose_p, moving.reduce_sum_p, structural.concatenate_p, structural.pad_p, structural.rev_p,
    structural.slice_p, structural.split_p, structural.squeeze_p, structural.stack_p, structural.unstack_p,
    cumulative.cumsum_p, fft_p, reduce_window_sum_p,
):  # fmt: skip
    deflinear(p)

for p in (
    ops.le_p, ops.lt_p, ops.gt_p, ops.ge_p, ops.eq_p, ops.ne_p, ops.not_p, ops.and_p, ops.or_p, ops.xor_p,
    ops.floor_p, ops.ceil_p, ops.round_p, ops.sign_p, ops.is_finite_p, ops.shift_left_p,
    ops.shift_right_arithmetic_p, ops.shift_right_logical_p, convert.bitcast_convert_type_p, convert.stop_gradient_p,
):  # fmt: skip
    defzero(p)


@rule_of(convert.convert_element_type_p)
def convert_rule(primals: Sequence, series: Sequence, *, new_dtype: Any, weak_type: bool, **params: Any) -> tuple:
    """Coefficients that have the dtype already, such as zeros, are not converted."""
    bind = functools.partial(convert.convert_element_type_p.bind, new_dtype=new_dtype, weak_type=weak_type, **params)
    out = bind(*primals)
    types = [(typeof(t).dtype, typeof(t).weak_type) for t in series[0]]
    terms = [t if have == (new_dtype, weak_type) else bind(t) for t, have in zip(series[0], types, strict=True)]
    return out, terms


def power(x: Any, y: int) -> Any:
    """An integer power by repeated squaring."""
    if y == 0:
        return 1
    if y < 0:
        return power(1 / x, -y)
    rest = power(x * x, y // 2)
    return x * rest if y % 2 else rest


def integer_power(x: Any, *, y: int) -> Any:
    return jnp.ones_like(x) if y == 0 else power(x, y)


def remainder(x: Any, y: Any) -> Any:
    return x - y * ops.floor(ops.div(x, y))


def_deriv(ops.erf_p, lambda x: 2 / math.sqrt(math.pi) * ops.exp(-ops.square(x)))
def_comp(ops.expm1_p, lambda x, **accuracy: ops.exp(x, **accuracy) - 1)
def_comp(ops.log1p_p, lambda x, **accuracy: ops.log(1 + x, **accuracy))
def_comp(ops.sqrt_p, lambda x, **accuracy: ops.pow(x, 0.5))
def_comp(ops.rsqrt_p, lambda x, **accuracy: ops.pow(x, -0.5))
def_comp(ops.asinh_p, lambda x: ops.log(x + ops.sqrt(ops.square(x) + 1)))
def_comp(ops.acosh_p, lambda x: ops.log(x + ops.sqrt(ops.square(x) - 1)))
def_comp(ops.atanh_p, lambda x: 0.5 * ops.log((1 + x) / (1 - x)))
def_comp(ops.erfc_p, lambda x: 1 - ops.erf(x))
def_comp(ops.square_p, lambda x: x * x)
def_comp(ops.rem_p, remainder)
def_comp(ops.integer_pow_p, integer_power)
def_comp(ops.clamp_p, lambda low, x, high: ops.min(ops.max(low, x), high))
for p in (cumulative.cumprod_p, cumulative.cummax_p, cumulative.cummin_p):
    def_comp(p, functools.partial(cumulative.scanned, p.combine))


@rule_of(ops.exp_p)
def exp_rule(primals: Sequence, series: Sequence, **params: Any) -> tuple[Any, list]:
    first, *rest = exponential(ops.exp_p.bind(*primals, **params), series[0])
    return first, rest


@rule_of(ops.log_p)
def log_rule(primals: Sequence, series: Sequence, **params: Any) -> tuple[Any, list]:
    (x,), (u,) = primals, series
    out, v = ops.log_p.bind(x, **params), []
    for k in range(1, len(u) + 1):
        terms = (jnp.multiply(jnp.multiply(j, v[j - 1]), u[k - j - 1]) for j in range(1, k))
        known = jnp.divide(total(terms), k) if v else 0.0
        v.append(jnp.divide(jnp.subtract(u[k - 1], known), x))
    return out, v


@rule_of(ops.pow_p)
def pow_rule(primals: Sequence, series: Sequence) -> tuple[Any, list]:
    (x, y), (u, w) = primals, series
    log, logs = log_rule([x], [u], accuracy=None)
    _, exponents = product_rule(ops.mul_p, [log, y][::-1], [logs, w][::-1])
    first, *rest = exponential(ops.pow_p.bind(x, y), exponents)
    return first, rest


def product_rule(prim: Primitive, primals: Sequence, series: Sequence, **params: Any) -> tuple[Any, list]:
    u, w = ([p, *s] for p, s in zip(primals, series, strict=True))
    multiply = functools.partial(prim.bind, **params)
    first, *rest = (product(k, u, w, multiply) for k in range(len(u)))
    return first, rest


for p in (ops.mul_p, dot_general_p, conv_general_dilated_p):
    jet_rules[p] = functools.partial(product_rule, p)


@rule_of(ops.div_p)
def div_rule(primals: Sequence, series: Sequence) -> tuple[Any, list]:
    first, *rest = quotient(*([p, *s] for p, s in zip(primals, series, strict=True)))
    return first, rest


def circular(first: Primitive, second: Primitive, sign: float, which: int) -> Callable:
    """The rule of `first` or `second` (`which`), with first' = second and second' = sign * first."""

    def rule(primals, series, **params):
        (x,), (u,) = primals, series
        sines, cosines = [first.bind(x, **params)], [second.bind(x, **params)]
        for k in range(1, len(u) + 1):
            sine, cosine = circular_term(k, u, cosines), circular_term(k, u, sines)
            sines.append(sine)
            cosines.append(jnp.multiply(cosine, sign))
        out, *rest = (sines, cosines)[which]
        return out, rest

    return rule


def circular_term(k: int, u: Sequence, other: Sequence) -> Any:
    terms = (jnp.multiply(jnp.multiply(j, u[j - 1]), other[k - j]) for j in range(1, k + 1))
    return jnp.divide(total(terms), k)


jet_rules[ops.sin_p] = circular(ops.sin_p, ops.cos_p, -1.0, 0)
jet_rules[ops.cos_p] = circular(ops.sin_p, ops.cos_p, -1.0, 1)
jet_rules[ops.sinh_p] = circular(ops.sinh_p, ops.cosh_p, 1.0, 0)
jet_rules[ops.cosh_p] = circular(ops.sinh_p, ops.cosh_p, 1.0, 1)


@rule_of(ops.logistic_p)
def logistic_rule(primals: Sequence, series: Sequence, **params: Any) -> tuple[Any, list]:
    (x,), (u,) = primals, series
    v = [ops.logistic_p.bind(x, **params)]
    slopes = [v[0] * (1 - v[0])]
    for k in range(1, len(u) + 1):
        v.append(weighted(k, slopes, u))
        first = (1 - v[0]) * v[k]
        slopes.append(jnp.subtract(first, total(jnp.multiply(v[j], v[k - j]) for j in range(1, k + 1))))
    return v[0], v[1:]


@rule_of(ops.tanh_p)
def tanh_rule(primals: Sequence, series: Sequence, **params: Any) -> tuple[Any, list]:
    x, *u = (jnp.multiply(2, t) for t in (primals[0], *series[0]))
    out, terms = logistic_rule([x], [u], **params)
    terms = [jnp.multiply(2, t) for t in terms]
    return 2 * out - 1, terms


@rule_of(ops.erf_inv_p)
def erf_inv_rule(primals: Sequence, series: Sequence) -> tuple[Any, list]:
    """By its derivative sqrt(pi)/2 exp(v^2), whose coefficients follow from those of v found before."""
    (x,), (u,) = primals, series
    v, scale = [ops.erf_inv_p.bind(x)], math.sqrt(math.pi) / 2
    slopes = [scale * ops.exp(ops.square(v[0]))]
    exps, squares = [ops.exp(ops.square(v[0]))], []
    for k in range(1, len(u) + 1):
        v.append(weighted(k, slopes, u))
        if k < len(u):
            squares.append(product(k, v[::-1], v[::-1]))
            exps.append(weighted(k, exps, squares))
            slopes.append(jnp.multiply(scale, exps[k]))
    return v[0], v[1:]


@rule_of(ops.atan2_p)
def atan2_rule(primals: Sequence, series: Sequence) -> tuple[Any, list]:
    out = ops.atan2_p.bind(*primals)
    ratio, ratios = div_rule(primals, series)
    square, squares = product_rule(ops.mul_p, [ratio, ratio], [ratios, ratios])
    u = [jnp.add(1, square), *(jnp.add(0, s) for s in squares)]
    slopes = quotient([1.0] + [0.0] * len(ratios), u, [jnp.divide(1.0, u[0])])
    return out, integral(slopes, ratios)


@rule_of(ops.abs_p)
def abs_rule(primals: Sequence, series: Sequence) -> tuple[Any, list]:
    (x,), (u,) = primals, series
    out, negative = ops.abs_p.bind(x), ops.lt(x, jnp.zeros((), typeof(x).dtype))
    down, up = jnp.full_like(x, -1), jnp.full_like(x, 1)
    sign = ops.select(negative, down, up)
    return out, [jnp.multiply(sign, t) for t in u]


def extremum_of_two(pred: Callable) -> Callable:
    """The rule of max or min; each of two equal operands contributes half."""

    def rule(primals, series):
        x, y = jnp.broadcast_arrays(*primals)  # one operand may be a scalar
        first, equal = pred(x, y), ops.eq(x, y)
        out = ops.select(first, x, y)
        terms = []
        for s, t in map(jnp.broadcast_arrays, *series):
            chosen = ops.select(first, s, t)
            terms.append(ops.select(equal, jnp.divide(jnp.add(s, t), 2), chosen))
        return out, terms

    return rule


jet_rules[ops.max_p], jet_rules[ops.min_p] = extremum_of_two(ops.gt), extremum_of_two(ops.lt)


def total_over(x: Any, axes: Sequence[int]) -> Any:
    return moving.reduce_sum_p.bind(x, axes=tuple(axes), out_sharding=None)


def extremum(prim: Primitive) -> Callable:
    """The rule of reduce_max or reduce_min: the mean over all elements that attain it."""

    def rule(primals, series, *, axes, **params):
        (x,), (u,) = primals, series
        out = prim.bind(x, axes=axes, **params)
        shape = tuple([1 if i in axes else n for i, n in enumerate(typeof(x).shape)])
        places = convert.convert_element_type(ops.eq_p.bind(x, moving.reshape_to(out, shape)), typeof(x).dtype)
        count = total_over(places, axes)
        return out, [jnp.divide(total_over(jnp.multiply(t, places), axes), count) for t in u]

    return rule


for p in (reduce.reduce_max_p, reduce.reduce_min_p):
    jet_rules[p] = extremum(p)


@rule_of(ops.select_n_p)
def select_rule(primals: Sequence, series: Sequence) -> tuple[Any, list]:
    which, *cases = primals
    out = ops.select_n_p.bind(which, *cases)
    return out, [ops.select_n_p.bind(which, *ts) for ts in zip(*series[1:], strict=True)]


def linear_in(prim: Primitive, linear: Callable[[int], Sequence[int]]) -> Callable:
    """The rule of an operation linear in the operands `linear(number of operands)`; the others are indices."""

    def rule(primals, series, **params):
        places = linear(len(primals))
        out, terms = prim.bind(*primals, **params), []
        for ts in zip(*(series[i] for i in places), strict=True):
            operands = list(primals)
            for i, t in zip(places, ts, strict=True):
                operands[i] = t
            terms.append(prim.bind(*operands, **params))
        return out, terms

    return rule


rule_of(dynamic_slice_p)(linear_in(dynamic_slice_p, lambda n: (0,)))
rule_of(gather_p)(linear_in(gather_p, lambda n: (0,)))
rule_of(dynamic_update_slice_p)(linear_in(dynamic_update_slice_p, lambda n: (0, 1)))
rule_of(scatter_add_p)(linear_in(scatter_add_p, lambda n: (0, 2)))


@state.traced_cache
def jet_jaxpr(closed: ClosedJaxpr, order: int, avals: tuple) -> ClosedJaxpr:
    """The flat jaxpr (primals, series of each) -> (results, series of each). `avals`: of all coefficients."""
    n = len(closed.in_avals)

    def run(*args):
        series = [args[n + i * order : n + (i + 1) * order] for i in range(n)]
        out, out_series = jet_flat(jaxpr_as_fun(closed), order, args[:n], series)
        return [*out, *(t for s in out_series for t in s)]

    info = closed.debug_info._replace(arg_names=None, result_paths=None)
    return ClosedJaxpr(*trace_to_jaxpr(run, [*closed.in_avals, *avals], info))


@rule_of(jit_p)
def jit_rule(primals: Sequence, series: Sequence, *, jaxpr: ClosedJaxpr, **params: Any) -> tuple[list, list]:
    order, n, m = len(series[0]), len(primals), len(jaxpr.out_avals)
    terms = [t for s in series for t in s]
    closed = jet_jaxpr(jaxpr, order, tuple(map(typeof, terms)))
    ins, outs = ([*range(k), *(i for i in range(k) for _ in range(order))] for k in (n, m))
    operands, params = jit_p.calling({"jaxpr": jaxpr, **params}, closed, [*primals, *terms], ins, outs)
    results = jit_p.bind_all(operands, params)
    return results[:m], [results[m + i * order : m + (i + 1) * order] for i in range(m)]
