"""Rules of operations on shapes, of reductions and of products, for Triton."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.kernels.text import Value
from minijax.kernels.triton.elementwise import identity
from minijax.kernels.triton.verbs import F32, I32, kind


def _broadcast_in_dim(k, eqn, x, *sizes):
    return broadcast_in_dim(k, k.tile(x), eqn.params["shape"], eqn.params["broadcast_dimensions"])


def broadcast_in_dim(k: Any, x: Value, shape: Sequence[int], axes: Sequence[int]) -> Value:
    """With its axes at `axes` of a shape."""
    if x.shape:
        for axis in sorted(set(range(len(shape))) - set(axes)):
            x = k.expand(x, axis)
    return k.broadcast(x, shape)


def _reshape(k, eqn, x, *sizes):
    return k.reshape(k.tile(x), eqn.outvars[0].aval.shape)


def _transpose(k, eqn, x):
    return k.transpose(k.tile(x), eqn.params["permutation"])


def _iota(k, eqn, *sizes):
    aval, axis = eqn.outvars[0].aval, eqn.params["dimension"]
    return broadcast_in_dim(k, k.cast(k.arange(0, aval.shape[axis]), aval.dtype), aval.shape, [axis])


def _swapped_in(k: Any, x: Value, axis: int) -> Value:
    """An axis as the last one: (..., axis, rest) -> (..., rest, axis)."""
    order = [*range(axis), *range(axis + 1, len(x.shape)), axis]
    return k.transpose(x, order)


def halves_of(k: Any, x: Value, axis: int) -> list[Value]:
    """The two halves along an axis."""
    half = x.shape[axis] // 2
    x = k.reshape(x, (*x.shape[:axis], 2, half, *x.shape[axis + 1 :]))
    return k.halves(_swapped_in(k, x, axis))


def joined(k: Any, x: Value, y: Value, axis: int) -> Value:
    """Two values of one shape, one after the other along an axis."""
    n = len(x.shape)
    both = k.transpose(k.join(x, y), [*range(axis), n, *range(axis, n)])
    return k.reshape(both, (*x.shape[:axis], 2 * x.shape[axis], *x.shape[axis + 1 :]))


def parts_of(k: Any, x: Value, sizes: Sequence[int], axis: int) -> list[Value]:
    """The parts of given sizes along an axis; they have to be parts of halves of halves."""
    parts = [(x, sizes)]
    while any(len(sizes) > 1 for _, sizes in parts):
        halved = []
        for part, sizes in parts:
            if len(sizes) > 1:
                halved += zip(halves_of(k, part, axis), _in_two(sizes, "split"), strict=True)
            else:
                halved.append((part, sizes))
        parts = halved
    return [part for part, _ in parts]


def _in_two(sizes: Sequence[int], name: str) -> tuple[Sequence[int], Sequence[int]]:
    """The sizes of the first and of the second half."""
    total = 0
    for i, size in enumerate(sizes):
        total += size
        if 2 * total == sum(sizes):
            return sizes[: i + 1], sizes[i + 1 :]
    raise NotImplementedError(
        f"{name} with sizes {tuple(sizes)} in a Triton kernel: only parts of halves, and of their halves, are supported"
    )


def _split(k, eqn, x):
    return parts_of(k, k.tile(x), eqn.params["sizes"], eqn.params["axis"])


def _concatenate(k, eqn, *xs):
    return concatenated(k, list(map(k.tile, xs)), eqn.params["dimension"])


def concatenated(k: Any, xs: Sequence[Value], axis: int) -> Value:
    """The values one after the other, put together by halves."""
    if len(xs) == 1:
        return xs[0]
    if len(xs) == 2 and axis == len(xs[0].shape) - 1 and {x.shape[-1] for x in xs} == {1} and len(xs[0].shape) > 1:
        return k.join(*[k.reshape(x, x.shape[:-1]) for x in xs])
    first, _ = _in_two([x.shape[axis] for x in xs], "concatenate")
    return joined(k, concatenated(k, xs[: len(first)], axis), concatenated(k, xs[len(first) :], axis), axis)


def _stack(k, eqn, *xs):
    axis, xs = eqn.params["axis"], list(map(k.tile, xs))
    if len(xs) == 2 and axis == len(xs[0].shape):
        return k.join(*xs)
    return concatenated(k, [k.expand(x, axis) for x in xs], axis)


def _unstack(k, eqn, x):
    x, axis = k.tile(x), eqn.params["axis"]
    if x.shape[axis] == 2 and axis == len(x.shape) - 1:
        return k.halves(x)
    parts = parts_of(k, x, [1] * x.shape[axis], axis)
    return [k.reshape(p, (*p.shape[:axis], *p.shape[axis + 1 :])) for p in parts]


# ---- reductions -----------------------------------------------------------------------------------------


def _reduce(name: str) -> Callable:
    return lambda k, eqn, x: k.reduce_axes(k.tile(x), eqn.params["axes"], name)


def _argument(nearer: str, extremum: str) -> Callable:
    """argmax and argmin: of equal elements the first one."""

    def rule(k, eqn, x):
        x, (axis,) = k.tile(x), eqn.params["axes"]
        places = broadcast_in_dim(k, k.arange(0, x.shape[axis]), x.shape, [axis])

        def combine(a, i, b, j):
            above, below = k.compare("gt", a, b), k.compare("lt", a, b)
            is_first, is_second = (above, below) if nearer == "gt" else (below, above)
            place = k.arith("min", i, j)
            place = k.select(is_first, i, k.select(is_second, j, place))
            return [k.arith(extremum, a, b), place]

        found = k.reduce([x, places], axis, combine)[1]
        return k.cast(found, eqn.params["index_dtype"])

    return rule


def _cumulative(name: str) -> Callable:
    def rule(k, eqn, x):
        combine = lambda a, b: [k.combine(name, a, b)]  # noqa: E731
        return k.scan(k.tile(x), eqn.params["axis"], eqn.params["reverse"], combine)

    return rule


# ---- products -------------------------------------------------------------------------------------------

# The algorithms of products: the dtype of the operands and of the sum; the operation's precision.
_ALGORITHMS = {
    "F16_F16_F16": ("float16", "float16", "ieee"),
    "F16_F16_F32": ("float16", "float32", "ieee"),
    "BF16_BF16_BF16": ("bfloat16", "float32", "ieee"),  # no GPU adds up in bfloat16
    "BF16_BF16_F32": ("bfloat16", "float32", "ieee"),
    "BF16_BF16_F32_X3": ("float32", "float32", "ieee"),
    "BF16_BF16_F32_X6": ("float32", "float32", "ieee"),
    "BF16_BF16_F32_X9": ("float32", "float32", "ieee"),
    "TF32_TF32_F32": ("float32", "float32", "tf32"),
    "TF32_TF32_F32_X3": ("float32", "float32", "tf32x3"),
    "F32_F32_F32": ("float32", "float32", "ieee"),
}
# Products of parts, 0 being the highest, in the order of adding them up; the last one, of the highest parts, apart.
_BF16 = dtypes.bfloat16
_PARTS = {
    "X3": [(1, 0), (0, 1)],
    "X6": [(2, 0), (0, 2), (1, 1), (1, 0), (0, 1)],
    "X9": [(2, 1), (2, 2), (1, 2), (2, 0), (0, 2), (1, 1), (1, 0), (0, 1)],
}


def _dot_general(k, eqn, x, y):
    p, out = eqn.params, eqn.outvars[0].aval
    x, y = _as_matrices(k, k.tile(x), k.tile(y), p["dimension_numbers"])
    if kind(x.dtype) == 2 or kind(y.dtype) == 2:
        raise NotImplementedError(
            f"Unsigned integer dtype {x.dtype} is not supported for dot_general (matmul) on the Pallas Triton GPU "
            "backend, which takes all integers for signed ones. Convert the operands to a signed dtype."
        )
    algorithm = getattr(p["precision"], "name", None)
    if len(x.shape) == 3 and 1 in (x.shape[1], y.shape[2]) or len(out.shape) < 2:
        result = _by_sums(k, x, y, out.dtype)
    elif algorithm not in (None, "DEFAULT"):
        result = _by_algorithm(k, algorithm, x, y, out.dtype)
    else:
        result = _product(k, x, y, out.dtype, "ieee" if _is_highest(p["precision"]) else "tf32")
    return k.reshape(result, out.shape)


def _total(dtype: Any, out: Any) -> Any:
    """The dtype in which products of a dtype are added up."""
    return I32 if kind(dtype) else out if out in (np.float16, np.float64) else F32


def _of_one_dtype(k: Any, x: Value, y: Value) -> tuple[Value, Value]:
    if x.dtype == y.dtype:
        return x, y
    wide = np.promote_types(x.dtype, y.dtype) if kind(x.dtype) and kind(y.dtype) else F32
    wide = np.dtype(np.float64) if np.float64 in (x.dtype, y.dtype) else wide
    return k.cast(x, wide), k.cast(y, wide)


def _product(k, x, y, out, precision):
    x, y = _of_one_dtype(k, x, y)
    return k.cast(k.dot(x, y, _zeros(k, x, y, _total(x.dtype, out)), precision), out)


def _by_sums(k, x, y, out):
    """The product of a matrix and a vector: (..., m, k), (..., k, n) -> (..., m, n), where m or n is 1."""
    x, y = _of_one_dtype(k, x, y)
    x, y = (k.cast(v, _total(x.dtype, out)) for v in (x, y))
    axis = len(x.shape) - 1
    y = k.transpose(y, [*range(axis - 1), axis, axis - 1])
    shape = (*x.shape[:-2], max(x.shape[-2], y.shape[-2]), x.shape[-1])
    return k.cast(k.reduce_axes(k.arith("mul", k.broadcast(x, shape), k.broadcast(y, shape)), [axis], "add"), out)


def _is_highest(precision: Any) -> bool:
    names = [getattr(x, "name", None) for x in (precision if isinstance(precision, tuple) else [precision])]
    return all(name == "HIGHEST" for name in names)


def _as_matrices(k, x, y, numbers):
    """The operands as (m, k) and (k, n), with at most one axis in front for a batch; vectors have m or n of 1."""
    (a, b), (batch, other) = numbers
    if len(a) != 1 or len(batch) > 1 or max(len(x.shape), len(y.shape)) > 2 + len(batch):
        raise ValueError(f"a and b must be 2D, but got: {[*x.shape]} and {[*y.shape]}")
    x, y = _ordered(k, x, [*batch], [*a], last=True), _ordered(k, y, [*other], [*b], last=False)
    return x, y


def _ordered(k, x, batch, contracted, last):
    rest = [i for i in range(len(x.shape)) if i not in (*batch, *contracted)]
    x = k.transpose(x, [*batch, *rest, *contracted] if last else [*batch, *contracted, *rest])
    return x if rest else k.expand(x, len(batch) + (not last))


def _zeros(k, x, y, dtype):
    return k.full(0, dtype, (*x.shape[:-1], y.shape[-1]))


def _by_algorithm(k, algorithm, x, y, out):
    if algorithm not in _ALGORITHMS:
        raise NotImplementedError(f"Unsupported dot algorithm: {algorithm}.")
    operands, total, precision = _ALGORITHMS[algorithm]
    x, y = k.cast(x, operands), k.cast(y, operands)
    result, parts = _zeros(k, x, y, total), _PARTS.get(algorithm[-2:])
    if parts and algorithm.startswith("BF16"):
        result = _in_parts(k, x, y, result, parts)
    else:
        result = k.dot(x, y, result, precision)
    return k.cast(result, out)


def _in_parts(k, x, y, result, parts):
    """A product of float32 as a sum of products of bfloat16."""
    highs = [k.cast(v, _BF16) for v in (x, y)]
    rests = [k.arith("sub", v, k.cast(high, F32)) for v, high in zip((x, y), highs, strict=True)]
    middles = [k.cast(rest, _BF16) for rest in rests]
    pairs = zip(rests, middles, strict=True)
    lows = [k.cast(k.arith("sub", rest, k.cast(middle, F32)), _BF16) for rest, middle in pairs]
    pieces = list(zip(highs, middles, lows, strict=True))
    for i, j in parts:
        result = k.dot(pieces[0][i], pieces[1][j], result)
    # Infinities have parts that are NaN; the highest ones alone tell the product.
    result = k.select(k.unordered(result), k.full_like(0, result), result)
    return k.dot(highs[0], highs[1], result)


RULES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "broadcast_to": lambda k, eqn, x: k.tile(x, eqn.outvars[0].aval.shape),
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": _transpose,
    "iota": _iota,
    "split": _split,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "copy": identity,
    "reduce_sum": _reduce("add"),
    "reduce_max": _reduce("max"),
    "reduce_min": _reduce("min"),
    "reduce_prod": _reduce("mul"),
    "reduce_and": _reduce("and"),
    "reduce_or": _reduce("or"),
    "reduce_xor": _reduce("xor"),
    "argmax": _argument("gt", "max"),
    "argmin": _argument("lt", "min"),
    "cumsum": _cumulative("add"),
    "cumprod": _cumulative("mul"),
    "cummax": _cumulative("max"),
    "cummin": _cumulative("min"),
    "dot_general": _dot_general,
}
