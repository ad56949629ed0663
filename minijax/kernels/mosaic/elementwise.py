"""The rules of elementwise operations and conversions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.kernels.mosaic.verbs import Value, is_float, is_unsigned
from minijax.kernels.mosaic.walk import Kernel, Site, rule, unchanged
from minijax.kernels.text import element_of

_INT_OF_BITS = {8: np.int8, 16: np.int16, 32: np.int32}


def aligned(k: Kernel, site: Site, operands: Sequence[Value]) -> list[Value]:
    """The operands, broadcast to the shape of the result."""
    return [k.broadcast(x, site.out.shape) for x in operands]


def _binary(name: str) -> Callable:
    def lower(k: Kernel, site: Site, x: Value, y: Value, **_: Any) -> Value:
        return k.binary(name, *aligned(k, site, (x, y)), unsigned=is_unsigned(site.out.dtype))

    return lower


for _name in ("add", "sub", "mul", "div", "rem", "max", "min", "and", "or", "xor"):
    rule(_name, late=True)(_binary(_name))
rule("add_any", late=True)(_binary("add"))


def _shift(name: str) -> Callable:
    return lambda k, site, x, y: k.one(f"arith.{name}", aligned(k, site, (x, y)), site.type)


for _name, _op in (("left", "shli"), ("right_logical", "shrui"), ("right_arithmetic", "shrsi")):
    rule(f"shift_{_name}", late=True)(_shift(_op))


def _math(name: str) -> Callable:
    return lambda k, site, *xs, **_: k.math(name, *aligned(k, site, xs))


for _name in "exp exp2 log log1p sin cos tan tanh sqrt rsqrt erf floor ceil atan2".split():
    rule(_name, late=_name in ("exp2", "atan2"))(_math(_name))
rule("clz")(_math("ctlz"))
rule("population_count")(_math("ctpop"))


def _compare(name: str) -> Callable:
    def lower(k: Kernel, site: Site, x: Value, y: Value) -> Value:
        x, y = aligned(k, site, (x, y))
        dtype = site.ins[0].dtype
        if dtype == np.bool_:
            return _compared_flags(k, name, x, y)
        return k.compare(name, x, y, unsigned=is_unsigned(dtype))

    return lower


def _compared_flags(k: Kernel, name: str, x: Value, y: Value) -> Value:
    """A comparison of flags by logic."""
    if name in ("eq", "ne"):
        differs = k.binary("xor", x, y)
        return differs if name == "ne" else k.negated(differs)
    if name in ("lt", "gt"):
        return k.binary("and", *((k.negated(x), y) if name == "lt" else (x, k.negated(y))))
    return k.binary("or", *((k.negated(x), y) if name == "le" else (x, k.negated(y))))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    rule(_name)(_compare(_name))


@rule("abs")
def _abs(k: Kernel, site: Site, x: Value) -> Value:
    return k.math("absf" if is_float(x.element) else "absi", x)


@rule("neg", late=True)
def _neg(k: Kernel, site: Site, x: Value) -> Value:
    return k.binary("sub", k.fill(0, x.shape, site.out.dtype), x)


@rule("not")
def _not(k: Kernel, site: Site, x: Value) -> Value:
    if site.out.dtype == np.bool_:
        return k.negated(x)
    signed = _INT_OF_BITS[dtypes.itemsize_bits(site.out.dtype)]
    return k.binary("xor", x, k.dense(-1, x.shape, signed))


@rule("sign")
def _sign(k: Kernel, site: Site, x: Value) -> Value:
    dtype, shape = site.out.dtype, x.shape
    zero = lambda: k.fill(0, shape, dtype)  # noqa: E731
    if is_unsigned(dtype):
        return k.cast("extui", k.compare("ne", x, zero()), x.element)
    if not is_float(x.element):
        above = k.cast("extui", k.compare("gt", x, zero()), x.element)
        return k.binary("sub", above, k.cast("extui", k.compare("lt", x, zero()), x.element))
    # One with the sign bit of x, and x itself where it is zero or no number.
    bits = _INT_OF_BITS[dtypes.itemsize_bits(dtype)]
    pattern = k.bitcast(x, shape, element_of(bits))
    of_sign = k.binary("and", pattern, k.fill(np.iinfo(bits).min, shape, bits))
    one = np.array(1, dtype).view(bits)[()]
    unit = k.bitcast(k.binary("or", k.fill(one, shape, bits), of_sign), shape, x.element)
    return k.select(k.compare("gt", k.math("absf", x), zero()), unit, x)


@rule("pow", arguments=unchanged, late=True)
def _pow(k: Kernel, site: Site, x: Any, y: Any) -> Value:
    if not isinstance(x, Value) and x == 2 and dtypes.issubdtype(site.ins[1].dtype, np.floating):
        return k.math("exp2", k.value(y, site.ins[1]))
    x, y = (k.value(v, a) for v, a in zip((x, y), site.ins, strict=True))
    if not is_float(y.element):
        y = k.cast("uitofp" if is_unsigned(site.ins[1].dtype) else "sitofp", y, x.element)
    return k.math("powf", *aligned(k, site, (x, y)))


@rule("integer_pow")
def _integer_pow(k: Kernel, site: Site, x: Value, y: int) -> Value:
    one = lambda: k.fill(1, x.shape, site.out.dtype)  # noqa: E731
    if y == 0:
        return one()
    result, power, rest = None, x, abs(y)
    while rest:
        if rest & 1:
            result = power if result is None else k.binary("mul", result, power)
        rest >>= 1
        if rest:
            power = k.binary("mul", power, power)
    assert result is not None
    return k.binary("div", one(), result) if y < 0 else result


@rule("square")
def _square(k: Kernel, site: Site, x: Value) -> Value:
    return k.binary("mul", x, x)


@rule("round")
def _round(k: Kernel, site: Site, x: Value, rounding_method: Any) -> Value:
    return k.math("roundeven" if int(rounding_method) == 1 else "round", x)


@rule("logistic")
def _logistic(k: Kernel, site: Site, x: Value, **_: Any) -> Value:
    power = k.math("exp", k.one("arith.negf", [x], x.type))
    one = k.fill(1, x.shape, site.out.dtype)
    return k.binary("div", one, k.binary("add", one, power))


@rule("is_finite")
def _is_finite(k: Kernel, site: Site, x: Value) -> Value:
    return k.negated(k.one("tpu.weird", [x], site.type))


@rule("clamp")
def _clamp(k: Kernel, site: Site, low: Value, x: Value, high: Value) -> Value:
    unsigned = is_unsigned(site.out.dtype)
    above = k.binary("max", x, k.broadcast(low, x.shape), unsigned)
    return k.binary("min", above, k.broadcast(high, x.shape), unsigned)


@rule("select_n")
def _select(k: Kernel, site: Site, which: Value, *cases: Value) -> Value:
    if len(cases) > 2:
        raise NotImplementedError(f"select_n in a kernel for TPUs selects from two cases, not {len(cases)}")
    if site.ins[0].dtype != np.bool_:
        which = k.compare("ne", which, k.fill(0, which.shape, site.ins[0].dtype))
    return k.select(which, *reversed(cases)) if len(cases) == 2 else cases[0]


@rule("stop_gradient", "copy", "copy_p", "optimization_barrier", "reshard", "pvary")
def _same(k: Kernel, site: Site, *xs: Value, **_: Any) -> Sequence[Value]:
    return list(xs)


# The polynomials of Giles' approximation of the inverse error function: where the logarithm is below 5, and above.
_ERF_INV = (
    (2.81022636e-08, -0.000200214257), (3.43273939e-07, 0.000100950558), (-3.5233877e-06, 0.00134934322),
    (-4.39150654e-06, -0.00367342844), (0.00021858087, 0.00573950773), (-0.00125372503, -0.0076224613),
    (-0.00417768164, 0.00943887047), (0.246640727, 1.00167406), (1.50140941, 2.83297682),
)  # fmt: skip


@rule("erf_inv")
def _erf_inv(k: Kernel, site: Site, x: Value) -> Value:
    if x.element != "f32":
        raise NotImplementedError(f"erf_inv in a kernel for TPUs takes float32, not {site.out.dtype}")
    shape, dtype = x.shape, site.out.dtype
    fill = lambda number: k.fill(number, shape, dtype)  # noqa: E731
    minus = lambda v: k.binary("sub", fill(0), v)  # noqa: E731
    w = minus(k.math("log1p", k.binary("mul", x, minus(x))))
    is_small = k.compare("lt", w, fill(5))
    near = k.binary("sub", w, fill(2.5))
    root = k.math("sqrt", w)
    w = k.select(is_small, near, k.binary("sub", root, fill(3)))
    result = None
    for coefficients in _ERF_INV:
        constants = [k.constant(c, dtype) for c in coefficients]
        c = k.select(is_small, *[k.broadcast(c, shape) for c in constants])
        result = c if result is None else k.binary("add", c, k.binary("mul", result, w))
    assert result is not None
    is_edge = k.compare("eq", k.math("absf", x), fill(1))
    infinite = k.binary("mul", fill(np.inf), x)
    return k.select(is_edge, infinite, k.binary("mul", result, x))


@rule("nextafter")
def _nextafter(k: Kernel, site: Site, x: Value, y: Value) -> Value:
    shape, bits = x.shape, _INT_OF_BITS[dtypes.itemsize_bits(site.out.dtype)]
    low = np.iinfo(bits).min
    fill = lambda number: k.fill(number, shape, bits)  # noqa: E731
    from_bits, to_bits = (k.bitcast(v, shape, element_of(bits)) for v in (x, y))
    is_nan = k.binary("or", k.compare("ne", x, x), k.compare("ne", y, y))
    nan = fill(np.array(np.nan, site.out.dtype).view(bits)[()])
    positive = k.binary("xor", k.constant(low, bits), k.constant(-1, bits))
    from_size = k.binary("and", from_bits, k.broadcast(positive, shape))
    to_size = k.binary("and", to_bits, k.broadcast(positive, shape))
    same = k.compare("eq", x, y)
    zero = fill(0)
    from_zero, to_zero = k.compare("eq", from_size, zero), k.compare("eq", to_size, zero)
    from_sign, to_sign = (k.binary("and", v, fill(low)) for v in (from_bits, to_bits))
    one = fill(1)
    smallest = k.binary("or", to_sign, one)
    turns = k.compare("ne", from_sign, to_sign)
    shrinks = k.binary("or", k.compare("gt", from_size, to_size, unsigned=True), turns)
    step = k.select(shrinks, fill(-1), one)
    moved = k.binary("add", from_bits, step)
    at_zero = k.select(to_zero, to_bits, smallest)
    result = k.select(same, to_bits, k.select(from_zero, at_zero, moved))
    return k.bitcast(k.select(is_nan, nan, result), shape, x.element)


# ---- conversions ---------------------------------------------------------------------------------------


def converted(k: Kernel, x: Value, old: Any, new: Any) -> Value:
    """A value in another dtype, without clamping."""
    element = element_of(new)
    if old == new or (element == x.element and not dtypes.issubdtype(old, np.bool_)):
        return x
    if new == np.bool_:
        return _to_bool(k, x, old)
    if old == np.bool_:
        return _from_bool(k, x, element)
    wider = dtypes.itemsize_bits(new) > dtypes.itemsize_bits(old)
    unsigned = is_unsigned(old)
    if is_float(x.element):
        if is_float(element):
            return k.cast("extf" if wider else "truncf", x, element)
        return k.cast("fptoui" if is_unsigned(new) else "fptosi", x, element)
    if is_float(element):
        return k.cast("uitofp" if unsigned else "sitofp", x, element)
    return k.cast(("extui" if unsigned else "extsi") if wider else "trunci", x, element)


def _to_bool(k: Kernel, x: Value, old: Any) -> Value:
    if not is_float(x.element) and dtypes.itemsize_bits(old) < 32:
        x, old = converted(k, x, old, np.dtype(np.int32)), np.dtype(np.int32)
    return k.compare("ne", x, k.fill(0, x.shape, old))


def _from_bool(k: Kernel, x: Value, element: str) -> Value:
    if not is_float(element):
        return k.cast("extui", x, element)
    number = k.cast("sitofp", k.cast("extui", x, "i32"), "f32")
    return number if element == "f32" else k.cast("truncf", number, element)


@rule("convert_element_type")
def _convert(k: Kernel, site: Site, x: Value, new_dtype: Any, **_: Any) -> Value:
    return converted(k, x, site.ins[0].dtype, np.dtype(new_dtype))


@rule("bitcast_convert_type")
def _bitcast_convert(k: Kernel, site: Site, x: Value, new_dtype: Any) -> Value:
    old, new = (dtypes.itemsize_bits(d) for d in (site.ins[0].dtype, new_dtype))
    if old != new:
        raise NotImplementedError(f"Changing bitwidths not supported: {site.ins[0].dtype} to {np.dtype(new_dtype)}")
    return k.bitcast(x, site.out.shape, element_of(new_dtype))


@rule("reciprocal")
def _reciprocal(k: Kernel, site: Site, x: Value, approx: bool, full_range: bool) -> Value:
    if x.element != "f32":
        raise ValueError(f"reciprocal: Only float32 is supported. Got {site.out.dtype}")
    flags = dict(approx=str(bool(approx)).lower(), full_range=str(bool(full_range)).lower())
    return k.one("tpu.reciprocal", [x], x.type, **flags)
