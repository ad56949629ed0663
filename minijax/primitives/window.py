"""Reductions over sliding windows: sums and extrema, and the derivatives of extrema."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, errors
from minijax.base.dims import as_index, stride_dim
from minijax.base.symbolic.dimension import is_int, max_dim
from minijax.hlo.emitter import jaxpr_body
from minijax.ir.primitive import Linear1, Primitive, is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import check_divides
from minijax.primitives import moving
from minijax.primitives.elementwise import ORDERED, Compare, ge_p, le_p
from minijax.primitives.families import NUMBER, check_kinds, scalar_like, zero_like
from minijax.primitives.moving import axis_to_front
from minijax.primitives.reduce import Reduction, lowest, reduce_max_p, reduce_min_p
from minijax.primitives.structural import pad, slice


class Pairs:
    """Packs floats of a dtype with an Emitter's operations.

    Drops the lower half of those wider than 32 bits, with a warning.
    """

    def __init__(self, e: Any, dtype: Any):
        info = dtypes.finfo(dtype)
        self.e, self.dtype, self.fits = e, dtype, info.bits <= 32
        self.width = info.bits if self.fits else info.bits // 2
        self.format = info.nexp, self.width - info.nexp - 1
        self.word, self.pair = (np.dtype(f"uint{n}") for n in (info.bits, 2 * self.width))
        if not self.fits:
            errors.warn(
                "Using reduced precision for gradient of reduce-window min/max operator: on GPUs half of the "
                "bits of 64-bit numbers are dropped. This is likely from a second or higher derivative of a "
                "max-pooling operation."
            )

    def aval(self, shape: tuple[int, ...]) -> ShapedArray:
        """The type of an array of packed pairs."""
        return ShapedArray(shape, self.pair)

    def pack(self, x: str, y: str, shape: tuple[int, ...]) -> str:
        """The bits of `x` above those of `y`."""
        high, low = self._bits(x, shape), self._bits(y, shape)
        if self.fits:
            high = self._shift("left", high, shape)
        else:
            low = self._shift("right_logical", low, shape)
        return self.e.binary("or", high, low, self.aval(shape))

    def first(self, pair: str) -> str:
        """The first number of a pair of rank 0."""
        if self.fits:
            return self._number(self._shift("right_logical", pair, ()), ())
        mask = self.e.constant(((1 << self.width) - 1) << self.width, self.aval(()))
        return self._number(self.e.binary("and", pair, mask, self.aval(())), ())

    def second(self, pairs: str, shape: tuple[int, ...]) -> str:
        """The second numbers of an array of pairs."""
        return self._number(pairs if self.fits else self._shift("left", pairs, shape), shape)

    def _bits(self, x, shape):
        numbers, words = ShapedArray(shape, self.dtype), ShapedArray(shape, self.word)
        if not self.fits:
            x = self.e.reduce_precision(x, numbers, *self.format)
        x = self.e.bitcast_convert(x, numbers, words)
        return self.e.convert(x, words, self.aval(shape)) if self.fits else x

    def _number(self, x, shape):
        words = ShapedArray(shape, self.word)
        x = self.e.convert(x, self.aval(shape), words) if self.fits else x
        return self.e.bitcast_convert(x, words, ShapedArray(shape, self.dtype))

    def _shift(self, way, x, shape):
        return self.e.binary(f"shift_{way}", x, self.e.full(self.width, self.aval(shape)), self.aval(shape))


# ---- sizes ------------------------------------------------------------------------------------------

PaddingPairs = Sequence[tuple[int, int]]

# The value of each parameter for an axis along which the window does not slide.
_FIXED = {"window_dimensions": 1, "window_strides": 1, "padding": (0, 0), "base_dilation": 1, "window_dilation": 1}
_GPUS = ("cuda", "rocm", "oneapi")
_SIZES = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")


def dilated(sizes: Sequence[int], dilation: Sequence[int] | None, op: str = "reduce_window") -> tuple[int, ...]:
    """The sizes of axes after dilation, which puts `dilation - 1` gaps between elements; None: no gaps."""
    if dilation is None:
        return tuple(sizes)
    if not all(d > 0 for d in dilation):
        raise TypeError(f"{op}: All dilations must be positive, got {tuple(dilation)}.")
    wide = tuple((n - 1) * d + 1 if n and d != 1 else n for n, d in zip(sizes, dilation, strict=True))
    if any(is_int(n) and n >= 2**62 for n in wide):  # XLA aborts the process if sizes overflow
        raise OverflowError(f"{op}: the sizes {tuple(sizes)} with dilations {tuple(dilation)} do not fit 64 bits")
    return wide


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Converts "VALID", "SAME" or "SAME_LOWER" to the padding before and after each axis.

    "SAME" gives as many windows as strides fit into the axis, and puts an odd element of padding at the end,
    "SAME_LOWER" at the start. Raises TypeError for a value that is not a string, RuntimeError for other strings.

    Example:
        >>> jax.lax.padtype_to_pads((10,), (4,), (2,), "SAME"), jax.lax.padtype_to_pads((10,), (4,), (2,), "VALID")
        ([(1, 1)], [(0, 0)])
    """
    if not isinstance(padding, str):
        raise TypeError(f"padtype_to_pads: Unknown padding type: {padding}.")
    kind = padding.upper()
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}. "
            "Or give a pair (before, after) for each axis."
        )
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max_dim(0, (-(-size // stride) - 1) * stride + window - size)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if kind == "SAME" else (large, small))
    return pads


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: PaddingPairs,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Returns the number of windows along each axis. Raises TypeError for dilations that are not positive.

    Example:
        >>> jax.lax.reduce_window_shape_tuple((10,), (3,), (2,), [(0, 0)])
        (4,)
    """
    sizes = dilated(operand_shape, base_dilation), dilated(window_dimensions, window_dilation)
    axes = zip(*sizes, window_strides, padding, strict=True)
    counts: list[Any] = [stride_dim(low + n + high, window, stride) for n, window, stride, (low, high) in axes]
    return tuple(counts)


def _ints(name: str, values: Sequence) -> tuple[int, ...]:
    try:
        return tuple(map(as_index, values))
    except TypeError:
        raise TypeError(f"reduce_window {name} must have every element be an integer type, got {values}") from None


def canonical_window(
    shape: tuple[int, ...],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | PaddingPairs,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> dict[str, tuple]:
    """Converts a user's window over an operand of `shape` to the parameters of primitives."""
    sizes = (window_dimensions, window_strides, base_dilation, window_dilation)
    ones = (1,) * len(window_dimensions)
    window = {n: ones if v is None else _ints(n, v) for n, v in zip(_SIZES, sizes, strict=True)}
    check_window(shape, **window)
    if isinstance(padding, str):
        wide = dilated(window["window_dimensions"], window["window_dilation"])
        padding = padtype_to_pads(shape, wide, window["window_strides"], padding)
    pairs = tuple([(as_index(low), as_index(high)) for low, high in padding])
    return {**window, "padding": pairs}


def check_window(
    shape: tuple, *, window_dimensions: tuple, window_strides: tuple, base_dilation: tuple, window_dilation: tuple
) -> None:
    """Raises TypeError for windows that do not fit the rank of `shape`, or with sizes below 1."""
    dims, sizes = window_dimensions, (window_dimensions, window_strides, base_dilation, window_dilation)
    if len(dims) != len(shape):
        raise TypeError(
            f"reduce_window got the wrong number of window_dimensions for operand: got operand shape {shape} "
            f"with window_dimensions {dims}. Give one size for each axis, 1 where the window has no extent."
        )
    for name, values in zip(_SIZES, sizes, strict=True):
        if len(values) != len(dims):
            raise TypeError(
                f"reduce_window got inconsistent {name} and window_dimensions: got {name} {values} and "
                f"window_dimensions {dims}."
            )
        if not all(n > 0 for n in values):
            raise TypeError(f"reduce_window {name} must have every element be strictly positive, got {values}.")


def window_shape(shape: tuple[int, ...], *, padding: tuple, **sizes: tuple) -> tuple[int, ...]:
    """Checks a window over an operand of `shape`, and returns the shape of the results."""
    check_window(shape, **sizes)
    if len(padding) != len(shape):
        raise ValueError(f"reduce_window got padding {padding} for operand shape {shape}.")
    return reduce_window_shape_tuple(shape, padding=padding, **sizes)


def with_axis(window: dict[str, tuple], at: int) -> dict[str, tuple]:
    """Adds an axis to the parameters of a window, along which the window does not slide."""
    return {name: (*v[:at], _FIXED[name], *v[at:]) for name, v in window.items()}


# ---- sums and extrema -------------------------------------------------------------------------------


def window_init_value(e: Any, value: Any, unit: ShapedArray) -> str:
    """Emits the initial value of windows in the form that jax emits, and returns its name."""
    return e.broadcast_in_dim(e.constant(value, unit), unit, unit, ())


class ReduceWindow(moving.AxisWise):
    """Combines the elements in each window."""

    entries = _FIXED

    def infer(self, x, **window):
        return [ShapedArray(window_shape(x.shape, **window), x.dtype, x.weak_type)]

    def sharding_rule(self, mesh, avals, outs, **window):
        return [check_divides("reduce_window", mesh, avals[0], outs[0].shape)]

    def start(self, dtype: Any) -> Any:
        """The identity element of the reduction."""
        raise NotImplementedError

    def reducer(self, e: Any, dtype: Any) -> Any:
        """The function that combines two scalars, as the Emitter's `reducer`."""
        raise NotImplementedError

    def lower(self, e, ins, outs, x, **window):
        unit = ShapedArray((), ins[0].dtype)
        start = window_init_value(e, self.start(unit.dtype), unit)
        return e.reduce_window([x], [start], ins, outs, self.reducer(e, unit.dtype), **window)


class ReduceWindowSum(ReduceWindow, Linear1):
    """The sum of each window."""

    name = "reduce_window_sum"
    reduction_state = None

    def infer(self, x, **window):
        if not NUMBER.accepts(x.dtype):
            raise TypeError(f"operand to reduce_window_sum must have a number dtype, got {x.dtype}")
        return super().infer(x, **window)

    def start(self, dtype):
        return 0

    def reducer(self, e, dtype):
        return "add"

    def transposed(self, ct, aval, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
        """Each element sums the cotangents of the windows it was in: `ct` is dilated by the strides and padded."""
        ones = (1,) * aval.ndim
        wide = dilated(window_dimensions, window_dilation)
        have = dilated(aval.shape, base_dilation)
        dilated_sizes = dilated(typeof(ct).shape, window_strides)
        config = []
        for i, (low, _) in enumerate(padding):
            before = wide[i] - 1 - low
            after = have[i] + wide[i] - 1 - dilated_sizes[i] - before
            config.append((before, after, window_strides[i] - 1))
        window = dict(window_dimensions=window_dimensions, window_strides=base_dilation, base_dilation=ones)
        window |= dict(window_dilation=window_dilation, padding=((0, 0),) * aval.ndim)
        return self.bind(pad(ct, zero_like(ct), config), **window)


class ReduceWindowExtremum(ReduceWindow):
    """The largest or smallest element of each window; its derivative is that of the first element that wins."""

    def __init__(self, name: str, reduction: Reduction, wins: Compare):
        self.name = name
        self.wins = wins
        self.start, self.reducer = reduction.start, reduction.reducer

    def jvp(self, primals, tangents, **window):
        (x,), (t,) = primals, tangents
        out = self.bind(x, **window)
        if type(t) is Zero:
            return [out], [Zero.from_primal_value(out)]
        return [out], [select_and_gather_add_p.bind(t, x, select_prim=self.wins, **window)]


# ---- elements where others win ----------------------------------------------------------------------


class ByWinners(Primitive):
    """Moves elements of the first operand to or from the positions of the second operand's window winners.

    Linear in the first operand; `select_prim` is ge (the largest element wins) or le (the smallest).
    """

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return [out], [Zero.from_primal_value(out)]
        return [out], [self.bind(tangents[0], primals[1], **params)]

    def transpose(self, cts, x, operand, **params):
        (ct,) = cts
        if not is_undefined_primal(x):
            return [None, None]
        return [Zero(x.aval) if type(ct) is Zero else self.transposed(ct, operand, **params), None]

    def transposed(self, ct: Any, operand: Any, **params: Any) -> Any:
        """The cotangent of the first operand."""
        raise NotImplementedError

    def batch(self, axis, operands, dims, *, select_prim, **window):
        ready = [axis_to_front(x, d, axis) for x, d in zip(operands, dims, strict=True)]
        return [self.bind(*ready, select_prim=select_prim, **with_axis(window, 0))], [0]


def _losing_value(select_prim: Compare, dtype: Any) -> Any:
    """The value that never wins a window."""
    return lowest(dtype, highest=select_prim is le_p)


class SelectAndScatterAdd(ByWinners):
    """Adds each element of the source to the position that wins its window."""

    name = "select_and_scatter_add"

    def infer(self, source, operand, *, select_prim, window_dimensions, window_strides, padding):
        return [ShapedArray(operand.shape, source.dtype)]

    def sharding_rule(self, mesh, avals, outs, **params):
        return [avals[1].entries]

    def lower(self, e, ins, outs, source, x, *, select_prim, padding, **window):
        source_aval, aval = ins
        check_kinds(select_prim.name, ORDERED, aval)
        unit = ShapedArray((), aval.dtype)
        add = "or" if aval.dtype == np.bool_ else "add"

        def scatter(x, aval, padding):
            wins = lambda a, b: e.compare(select_prim.direction, a, b, unit)  # noqa: E731
            return e.select_and_scatter(
                x, source, e.constant(0, unit), aval, source_aval, wins, add, padding=padding, **window
            )

        if not padding:
            return [source]  # XLA aborts the process for select_and_scatter of rank 0
        if e.platform == "tpu":
            return [scatter(x, aval, padding)]
        # On other platforms an element of the padding could win, unless it is the value that never wins.
        low, high = zip(*padding, strict=True)
        none = (0,) * aval.ndim
        whole = ShapedArray(tuple(n + sum(p) for n, p in zip(aval.shape, padding, strict=True)), aval.dtype)
        losing = e.constant(_losing_value(select_prim, aval.dtype), unit)
        padded = scatter(e.pad(x, losing, aval, whole, low, high, none), whole, ((0, 0),) * aval.ndim)
        if min(*low, *high) >= 0:
            return [e.slice(padded, whole, aval, low, tuple(map(operator.add, low, aval.shape)))]
        back = tuple(map(operator.neg, low)), tuple(map(operator.neg, high))
        return [e.pad(padded, e.constant(0, unit), whole, aval, *back, none)]

    def transposed(self, ct, operand, **params):
        ones = (1,) * typeof(operand).ndim
        return select_and_gather_add_p.bind(ct, operand, base_dilation=ones, window_dilation=ones, **params)


class SelectAndGatherAdd(ByWinners):
    """Gathers the tangents at the positions that win the windows."""

    name = "select_and_gather_add"

    def infer(self, tangents, operand, *, select_prim, **window):
        if tangents.shape != operand.shape:
            raise TypeError(
                f"select_and_gather_add tangents and operand shapes must match, got {tangents.shape} and "
                f"{operand.shape}."
            )
        return [ShapedArray(window_shape(operand.shape, **window), tangents.dtype)]

    def sharding_rule(self, mesh, avals, outs, **params):
        return [check_divides("reduce_window", mesh, avals[1], outs[0].shape)]

    def lower(self, e, ins, outs, tangents, x, *, select_prim, **window):
        tangent_aval, aval = ins
        check_kinds(select_prim.name, ORDERED, aval)
        unit, tangent_unit = ShapedArray((), aval.dtype), ShapedArray((), tangent_aval.dtype)
        flag = ShapedArray((), np.bool_)
        starts = [e.constant(_losing_value(select_prim, aval.dtype), unit), e.constant(0, tangent_unit)]
        if e.platform in _GPUS and aval.dtype == tangent_aval.dtype:
            pairs = Pairs(e, aval.dtype)

            def better_pair(x, y):
                wins = e.compare(select_prim.direction, pairs.first(x), pairs.first(y), unit)
                return e.select(wins, x, y, flag, pairs.aval(()))

            value, start = pairs.pack(x, tangents, aval.shape), pairs.pack(starts[0], starts[1], ())
            types = [pairs.aval(aval.shape)], [pairs.aval(outs[0].shape)]
            (winners,) = e.reduce_window([value], [start], *types, better_pair, **window)
            return [pairs.second(winners, outs[0].shape)]

        def better(a, s, b, t):
            wins = e.compare(select_prim.direction, a, b, unit)
            return e.select(wins, a, b, flag, unit), e.select(wins, s, t, flag, tangent_unit)

        results = [ShapedArray(outs[0].shape, aval.dtype), outs[0]]
        return e.reduce_window([x, tangents], starts, [aval, tangent_aval], results, better, **window)[1:]

    def transposed(self, ct, operand, *, select_prim, base_dilation, window_dilation, **window):
        if any(d != 1 for d in window_dilation):
            raise NotImplementedError(
                "VJP not implemented for select_and_gather (MaxPool) with window dilation, got "
                f"window_dilation={window_dilation}."
            )
        has_gaps = any(d != 1 for d in base_dilation)
        if has_gaps:
            losing = scalar_like(operand, _losing_value(select_prim, typeof(operand).dtype))
            operand = pad(operand, losing, [(0, 0, d - 1) for d in base_dilation])
        source = select_and_scatter_add_p.bind(ct, operand, select_prim=select_prim, **window)
        if not has_gaps:
            return source
        shape = typeof(source).shape
        return slice(source, (0,) * len(shape), shape, base_dilation)


class SelectAndScatter(Primitive):
    """Combines each element of the source, by one jaxpr, into the position in its window that another selects."""

    name = "select_and_scatter"

    def infer(
        self,
        operand,
        source,
        init,
        *,
        select_jaxpr,
        select_consts,
        scatter_jaxpr,
        scatter_consts,
        window_dimensions,
        window_strides,
        padding,
    ):
        return [ShapedArray(operand.shape, operand.dtype)]

    def lower(
        self, e, ins, outs, x, source, init, *, select_jaxpr, select_consts, scatter_jaxpr, scatter_consts, **window
    ):
        select, scatter = (
            lambda *names, jaxpr=jaxpr, consts=consts: jaxpr_body(
                e, jaxpr, [e.constant_of(c, typeof(c)) for c in consts], names
            )
            for jaxpr, consts in ((select_jaxpr, select_consts), (scatter_jaxpr, scatter_consts))
        )
        return [e.select_and_scatter(x, source, init, *ins[:2], select, scatter, **window)]


reduce_window_sum_p = ReduceWindowSum()
reduce_window_max_p = ReduceWindowExtremum("reduce_window_max", reduce_max_p, ge_p)
reduce_window_min_p = ReduceWindowExtremum("reduce_window_min", reduce_min_p, le_p)
select_and_scatter_p, select_and_scatter_add_p = SelectAndScatter(), SelectAndScatterAdd()
select_and_gather_add_p = SelectAndGatherAdd()
