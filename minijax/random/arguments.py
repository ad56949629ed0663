"""The arguments that samplers share: their checks, and the decorators that add these checks to a function."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, config, dims, dtypes
from minijax.base.dtypes import DTypeLike as DTypeLike  # for the annotations of samplers, which are read in this module
from minijax.base.source import hide_frames
from minijax.base.util import named
from minijax.composed.random import NAMED_IMPLS
from minijax.dispatch import key_reuse
from minijax.dispatch.jitted import jitted
from minijax.ir import state
from minijax.ir.concrete import concrete_or_error
from minijax.ir.types import typeof, unwrapped
from minijax.primitives import moving, sharding, structural
from minijax.primitives.structural import broadcast_shapes
from minijax.random.keys import single_key
from minijax.random.steps import in_two_steps
from minijax.run.arrays.array import (
    Array,
    ArrayImpl,
    ArrayLike as ArrayLike,
    Shape as Shape,
    ShardingLike as ShardingLike,
)
from minijax.run.watching import watch

Sampler = Callable[..., Array]


# ---- checks -----------------------------------------------------------------------------------------


def drawn_shape(shape: Any) -> tuple[int, ...]:
    """The canonical shape of an argument `shape`, an int or a sequence of ints."""
    return dims.canonical_shape((shape,) if isinstance(shape, int) else shape)


def optional_shape(shape: Any) -> tuple[int, ...] | None:
    return None if shape is None else drawn_shape(shape)


def check_shape(name: str, shape: tuple[int, ...], *parameters: Any) -> None:
    """Raises ValueError unless the parameters broadcast to exactly `shape`."""
    shapes = [p if isinstance(p, tuple) else typeof(p).shape for p in parameters]
    broadcast = broadcast_shapes(shape, *shapes)
    if broadcast != shape:
        raise ValueError(
            f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result of "
            f"broadcasting the shapes must equal the shape argument, but got result {broadcast} for {shape}"
        )


def shape_of(name: str, shape: tuple[int, ...] | None, *parameters: Any) -> tuple[int, ...]:
    """The shape of the samples: `shape` if given, else the broadcast shape of the parameters (values or shapes)."""
    if shape is None:
        return broadcast_shapes(*[p if isinstance(p, tuple) else typeof(p).shape for p in parameters])
    check_shape(name, shape, *parameters)
    return shape


_INTEGERS = "jax.random.randint draws integers; `astype` rounds what was drawn to zero."


def float_dtype(name: str, dtype: Any, kind: type = np.floating, called: str = "float") -> np.dtype:
    """The dtype of the samples, by default that of Python floats. Raises ValueError if it is not a `kind`."""
    dtype = dtypes.requested_dtype(dtype, name, float)
    if not dtypes.issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be a {called} dtype, got {dtype}. {_INTEGERS}")
    return dtype


def inexact_dtype(name: str, dtype: Any) -> np.dtype:
    """As `float_dtype`, but complex dtypes are allowed."""
    return float_dtype(name, dtype, np.inexact, "float or complex")


def integer_dtype(name: str, dtype: Any) -> np.dtype:
    """The dtype of the samples, by default that of Python ints."""
    return dtypes.requested_dtype(dtype, name, int)


def check_cast(name: str, dtype: Any, *parameters: Any) -> None:
    """Raises TypePromotionError if a parameter cannot be cast to the requested dtype without losing precision."""
    for aval in map(typeof, parameters):
        if dtypes.is_complex(aval.dtype) or (not aval.weak_type and dtypes.promote_types(aval.dtype, dtype) != dtype):
            raise dtypes.TypePromotionError(
                f"In arguments to {name}, cannot safely cast argument of type {aval.dtype} to {dtype}"
            )


# ---- decorators -------------------------------------------------------------------------------------

_PLAIN = frozenset((int, float, bool, tuple, str, type, type(None)))
_STATIC = {"shape", "dtype", "axis", "independent", "replace", "n", "m", "d"}
_OUT_SHARDING = inspect.Parameter(
    "out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="ShardingLike | None"
)


def _is_static(name: str, x: Any) -> bool:
    return name in _STATIC or x is None or type(x) is str or name == "x" and type(x) is int


def _binding(function: Callable) -> Callable[[tuple, dict], list]:
    """`bind(args, options)` -> the arguments of a call in order. Raises TypeError as calling `function` does."""
    parameters = inspect.signature(function).parameters
    place = {name: i for i, name in enumerate(parameters)}
    defaults = [p.default for p in parameters.values()]

    def bind(args: tuple, options: dict) -> list:
        values = [*args, *defaults[len(args) :]]
        for name, value in options.items():
            if place.get(name, -1) < len(args):
                function(*args, **options)
            values[place[name]] = value
        if len(args) > len(defaults) or any(x is inspect.Parameter.empty for x in values):
            function(*args, **options)
        return values

    return bind


def takes_key(draw: Sampler) -> Sampler:
    """Makes a public sampler of a function whose first argument is a typed key: checks it, and adds `out_sharding`."""
    return _public(draw, draw)


def _public(draw: Sampler, like: Sampler) -> Sampler:
    """A sampler that calls `draw` with all arguments in order; it has the name and the signature of `like`.

    With `out_sharding` the samples are sharded over these Explicit axes.
    """
    name, signature, bind = like.__name__, inspect.signature(like), _binding(like)
    names = list(signature.parameters)
    at_shape = names.index("shape") if name in BY_PLACE else None
    at_dtype = names.index("dtype") if "dtype" in names else None

    def call(*args: Any, out_sharding: Any = None, **options: Any) -> Array:
        try:
            values = [x if type(x) in _PLAIN else unwrapped(x) for x in bind(args, options)]
            values[0] = single_key(name, values[0])[0]
            if out_sharding is None:
                dtype = None if at_dtype is None else values[at_dtype]
                if at_shape is None or not is_shared(name, values, values[at_shape], dtype):
                    return draw(*values)
            dynamic = [i for i, n in enumerate(names) if not _is_static(n, values[i])]
            if out_sharding is None:
                return drawn(draw, name, values, dynamic, at_shape)

            def compute(*xs: Any) -> Array:
                given = dict(zip(dynamic, xs, strict=True))
                return draw(*[given.get(i, x) for i, x in enumerate(values)])

            return sharding.with_auto_axes(name, compute, tuple(values[i] for i in dynamic), out_sharding)
        except Exception as error:
            hide_frames(error)
            raise

    call = named(call, name, like.__doc__ or "")
    call.__module__ = like.__module__
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), _OUT_SHARDING])
    return call


def sampler(
    dtype_of: Callable[[str, Any], np.dtype] = float_dtype,
    shape_of: Callable[..., tuple[int, ...]] = shape_of,
    *,
    static: Sequence[str] = (),
    casts: bool = False,
    inline: bool = False,
) -> Callable[[Sampler], Sampler]:
    """Makes a public sampler of `sample(key, *parameters, shape, dtype, ...)`, which runs under jit as `_name`.

    The key, dtype and shape are checked before. If the default shape is None, `sample` gets that of the parameters.
    With `casts` the parameters must be castable to the dtype. `static` names other static arguments.
    """

    def wrap(sample: Sampler) -> Sampler:
        name, signature = sample.__name__, inspect.signature(sample)
        names = list(signature.parameters)
        at_shape, at_dtype, *others = map(names.index, ("shape", "dtype", *static))
        is_optional = signature.parameters["shape"].default is None

        def traced(*values: Any) -> Array:
            shape = shape_of(name, values[at_shape], *values[1:at_shape])
            return sample(*values[:at_shape], shape, *values[at_shape + 1 :])

        traced.__signature__ = signature
        run = jitted(f"_{name}", static=("shape", "dtype", *static), inline=inline)(traced if is_optional else sample)

        def draw(*args: Any) -> Array:
            values = list(args)
            values[at_dtype] = dtype_of(name, values[at_dtype])
            if casts:
                check_cast(name, values[at_dtype], *values[1:at_shape])
            for at in map(names.index, static):
                if getattr(values[at], "shape", None) == ():
                    values[at] = concrete_or_error(operator.index, values[at], f"It arose in jax.random.{name}.")
            values[at_shape] = (optional_shape if is_optional else drawn_shape)(values[at_shape])
            return run(*values)

        return _public(draw, sample)

    return wrap


# Samplers whose numbers are functions of the bits at their own place.
BY_PLACE = frozenset(
    "bernoulli bits cauchy exponential gumbel laplace logistic normal rademacher randint truncated_normal "
    "uniform".split()
)
_TWO_ROWS = ("high", "highest")  # modes that draw two rows of bits at once
SIZES = tuple(4**power for power in range(6, 11))
_partitionable = config.option("threefry_partitionable")
SHARED = 1 << 18  # numbers, after which draws of a shape get a program of their own, which runs faster

_draws = cache.BoundedDict(64)  # the name of a sampler -> how many numbers were drawn for each shape


@jitted("_cut", static=("shape",))
def _cut(flat, shape):
    return moving.reshape(structural.slice(flat, (0,), (math.prod(shape),), (1,)), shape)


def is_shared(name: str, values: Sequence, shape: Any, dtype: Any) -> bool:
    """Returns whether a draw of this shape uses the programs of its class: the shape has not been drawn often."""
    counts = _draws.get(name)
    if counts is None:
        counts = _draws.once(name, cache.BoundedDict, 4096)
    try:
        count = counts.get(shape, 0)
    except TypeError:  # a list
        return False
    if count >= SHARED or type(shape) is not tuple or not all([type(n) is int for n in shape]):
        return False
    if not 0 < math.prod(shape) <= SIZES[-1] or not _draws_by_place(values) or not _is_kept(dtype):
        return False
    if key_reuse.is_on() or watch.is_on():  # they name the program
        return False
    counts[shape] = count + _class_of(shape)
    return True


def _is_kept(dtype: Any) -> bool:
    """Returns whether numbers get the requested dtype; of others each call warns, or it raises."""
    if dtype is None or type(dtype) is type and dtype in dtypes.python_scalar_dtypes:
        return True
    if not isinstance(dtype, (type, str, np.dtype)) or dtypes.is_extended(dtype):
        return False
    try:
        return dtypes.canonicalize_dtype(dtype) == dtypes.canonical(dtype)
    except TypeError:
        return False


def _class_of(shape: tuple[int, ...]) -> int:
    size = math.prod(shape)
    return next(s for s in SIZES if s >= size)


def _draws_by_place(values: Sequence) -> bool:
    """Returns whether this is a draw at once, on one device, by partitionable threefry, with scalar parameters."""
    if not state.is_eager() or not _partitionable.value or not isinstance(key := values[0], ArrayImpl):
        return False
    if typeof(key).dtype._impl is not NAMED_IMPLS["threefry2x32"] or len(key.devices()) > 1:
        return False
    return all([getattr(x, "shape", ()) == () and not (type(x) is str and x in _TWO_ROWS) for x in values[1:]])


def drawn(draw: Callable[..., Array], name: str, values: Sequence, dynamic: Sequence[int], at: int) -> Array:
    """The result of `draw(*values)`, whose argument number `at` is the shape, by programs for its class of sizes.

    The operands are at the places `dynamic`.
    """
    values, shape = list(values), values[at]
    values[at] = (_class_of(shape),)
    (device,) = values[0].devices()
    flat = in_two_steps(draw, name, values, dynamic) if device.platform == "cpu" else draw(*values)
    return _cut(flat, shape)
