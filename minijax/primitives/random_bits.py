"""Random bits: the hashes Threefry and Philox of Salmon et al. (2011), and XLA's generators."""

import enum
from collections.abc import Callable, Sequence
from functools import partialmethod
from typing import Any, NamedTuple, cast

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.symbolic.dimension import is_int
from minijax.ir.primitive import Primitive
from minijax.ir.result_types import state_of_first
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import sharding_in_type
from minijax.primitives import moving
from minijax.primitives.dynamic_slice import dynamic_update_slice
from minijax.primitives.families import INT, SameShape, broadcast_shapes_of_op, emit_broadcast, emit_nary
from minijax.primitives.sharding import requested_sharding
from minijax.primitives.structural import concatenate, slice, slice_in_dim, split, squeeze

_U32, _I32 = np.dtype(np.uint32), np.dtype(np.int32)
_UNIT, _COUNT, _TURNS = ShapedArray((), _U32), ShapedArray((), _I32), ShapedArray((4,), _U32)
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_ROUNDS = 5


class WordHash(SameShape):
    """Hashes `words` words by the words of a key, which come first; all operands are broadcast together."""

    multiple_results = True

    def __init__(self, name: str, words: int, build: Callable[..., Sequence["_Value"]] | None = None):
        super().__init__(name, INT)
        self.words, self.build = words, build

    def infer(self, *avals):
        if any(a.dtype != _U32 for a in avals):
            raise TypeError(f"{self.name}: operands must be uint32, got {', '.join(map(str, avals))}")
        out = ShapedArray(broadcast_shapes_of_op(self.name, *(a.shape for a in avals)), _U32)
        return [out] * self.words

    def lower(self, e, ins, outs, *operands):
        return e.call_shared(self.name, "rounds", operands, ins, outs, lambda *xs: self.rounds(e, ins, outs[0], *xs))

    def rounds(self, e: Any, ins: Sequence, out: ShapedArray, *operands: str) -> list[str]:
        """The names of the hashed words."""
        return [v.name for v in cast("Any", self).build(*(_Value(e, x, a) for x, a in zip(operands, ins, strict=True)))]

    def jvp(self, primals, tangents):
        results = self.bind(*primals)
        return results, [Zero(typeof(r).to_tangent_aval()) for r in results]

    def batch(self, axis, operands, dims):
        results, (d,) = cast("Any", super()).batch(axis, operands, dims)
        return results, [d] * self.words


class Threefry2x32(WordHash):
    """Hashes pairs of words by pairs of key words."""

    def rounds(self, e, ins, out, *operands):
        # A loop compiles faster and is as fast on CPUs; the rounds are unrolled on other platforms.
        build = _looped if e.platform == "cpu" else _unrolled
        return build(e, ins, out, *operands)


def _initial_state(e: Any, ins: Sequence, out: ShapedArray, key0: str, key1: str, x0: str, x1: str) -> tuple:
    """Returns (words with the key added, the three words of the key, their type)."""
    key = ShapedArray(broadcast_shapes_of_op("threefry2x32", ins[0].shape, ins[1].shape), _U32)
    both = [_broadcast(e, k, a, key) for k, a in zip((key0, key1), ins, strict=False)]
    third = e.binary("xor", e.binary("xor", *both, key), e.full(_PARITY, key), key)
    x0 = e.binary("add", _broadcast(e, x0, ins[2], out), _broadcast(e, key0, ins[0], out), out)
    x1 = e.binary("add", _broadcast(e, x1, ins[3], out), _broadcast(e, key1, ins[1], out), out)
    return x0, x1, [both[1], third, both[0]], key


def _broadcast(e: Any, x: str, aval: ShapedArray, out: ShapedArray) -> str:
    return x if aval.shape == out.shape else emit_broadcast(e, x, aval, out.shape)


def _unrolled(e: Any, ins: Sequence, out: ShapedArray, key0: str, key1: str, x0: str, x1: str) -> list[str]:
    x0, x1, keys, key = _initial_state(e, ins, out, key0, key1, x0, x1)
    for i in range(_ROUNDS):
        for turn in _ROTATIONS[i % 2]:
            x0 = e.binary("add", x0, x1, out)
            left = e.binary("shift_left", x1, e.full(turn, out), out)
            right = e.binary("shift_right_logical", x1, e.full(32 - turn, out), out)
            x1 = e.binary("xor", x0, e.binary("or", left, right, out), out)
        x0 = e.binary("add", x0, _broadcast(e, keys[i % 3], key, out), out)
        x1 = e.binary("add", x1, _broadcast(e, keys[(i + 1) % 3], key, out), out)
        x1 = e.binary("add", x1, e.full(i + 1, out), out)
    return [x0, x1]


def _looped(e: Any, ins: Sequence, out: ShapedArray, key0: str, key1: str, x0: str, x1: str) -> list[str]:
    turns = [e.constant(np.array(r, _U32), _TURNS) for r in _ROTATIONS]
    x0, x1, keys, key = _initial_state(e, ins, out, key0, key1, x0, x1)
    step, count = e.constant(0, _COUNT), e.constant(0, _COUNT)
    state = [_COUNT, out, out, key, key, key, _TURNS, _TURNS]

    def more(count, *_):
        return [e.compare("LT", count, e.constant(_ROUNDS, _COUNT), _COUNT)]

    def body(count, *values):
        results = e.call_shared("closed_call", "threefry", values, state, state, round_)
        return [e.binary("add", count, e.constant(1, _COUNT), _COUNT), *results]

    def round_(i, x0, x1, a, b, c, now, then):
        following = e.binary("add", i, e.constant(1, _COUNT), _COUNT)
        for r in range(4):
            one = ShapedArray((1,), _U32)
            turn = e.reshape(e.slice(now, _TURNS, one, (r,), (r + 1,)), one, _UNIT)
            x0 = e.binary("add", x0, x1, out)
            left = e.binary("shift_left", x1, _broadcast(e, turn, _UNIT, out), out)
            back = e.binary("subtract", e.constant(32, _UNIT), turn, _UNIT)
            right = e.binary("shift_right_logical", x1, _broadcast(e, back, _UNIT, out), out)
            x1 = e.binary("xor", x0, e.binary("or", left, right, out), out)
        x0 = e.binary("add", x0, _broadcast(e, a, key, out), out)
        x1 = e.binary("add", x1, _broadcast(e, b, key, out), out)
        word = e.convert(e.binary("add", i, e.constant(1, _COUNT), _COUNT), _COUNT, _UNIT)
        x1 = e.binary("add", x1, _broadcast(e, word, _UNIT, out), out)
        return [following, x0, x1, b, c, a, then, now]

    inits = [count, step, x0, x1, *keys, *turns]
    return e.while_(inits, [_COUNT, *state], more, body)[2:4]


class _Value(NamedTuple):
    """A value in a module, with operators that broadcast and emit operations."""

    e: Any
    name: str
    aval: ShapedArray

    def _with(self, hlo: str, other: "_Value | int") -> "_Value":
        e, aval = self.e, self.aval
        if isinstance(other, int):
            other = _Value(e, e.full(other, aval), aval)
        out = ShapedArray(broadcast_shapes_of_op(hlo, aval.shape, other.aval.shape), _U32)
        names = [_broadcast(e, v.name, v.aval, out) for v in (self, other)]
        return _Value(e, emit_nary(e, hlo, names, (out, out), out), out)

    __add__ = partialmethod(_with, "add")  # pyright: ignore[reportAssignmentType]
    __xor__ = partialmethod(_with, "xor")

    def times(self, factor: int) -> tuple["_Value", "_Value"]:
        """Returns the low and the high word of the product with a number."""
        low, high = (
            _Value(self.e, self.e.full(factor, self.aval), self.aval)._with(hlo, self)
            for hlo in ("multiply", "chlo.mulhi")
        )
        return low, high

    def threefry_step(self, other: Any, turn: int) -> tuple["_Value", "_Value"]:
        """Threefry's step: returns the sum, and the sum xor the rotated second word."""
        total: Any = self + other
        left, right = other._with("shift_left", turn), other._with("shift_right_logical", 32 - turn)
        return total, total ^ left._with("or", right)


def _philox2x32(key: Any, a: Any, b: Any) -> Sequence[_Value]:
    for i in range(10):
        if i:
            key = key + 0x9E3779B9
        low, high = a.times(0xD256D193)
        a, b = high ^ b ^ key, low
    return a, b


def _philox4x32(key0: Any, key1: Any, a: Any, b: Any, c: Any, d: Any) -> Sequence[_Value]:
    for i in range(10):
        if i:
            key0, key1 = key0 + 0x9E3779B9, key1 + 0xBB67AE85
        (low0, high0), (low1, high1) = a.times(0xD2511F53), c.times(0xCD9E8D57)
        a, b, c, d = high1 ^ b ^ key0, low1, high0 ^ d ^ key1, low0
    return a, b, c, d


_TURNS4 = (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)


def _threefry4x32(*operands: Any) -> Sequence[_Value]:
    keys, words = operands[:4], operands[4:]
    keys = (*keys, keys[0] ^ keys[1] ^ keys[2] ^ keys[3] ^ _PARITY)
    a, b, c, d = (x + k for x, k in zip(words, keys, strict=False))
    for i in range(20):
        first, second = _TURNS4[i % 8]
        if i % 2:
            (a, d), (c, b) = a.threefry_step(d, first), c.threefry_step(b, second)
        else:
            (a, b), (c, d) = a.threefry_step(b, first), c.threefry_step(d, second)
        if i % 4 == 3:
            n = i // 4 + 1
            a, b, c, d = (x + keys[(n + k) % 5] for k, x in enumerate((a, b, c, d)))
            d = d + n
    return a, b, c, d


class RandomAlgorithm(enum.IntEnum):
    """Names the generators of `rng_bit_generator`.

    Example:
        >>> key = jnp.zeros(4, jnp.uint32)
        >>> key, bits = jax.lax.rng_bit_generator(key, (2,), algorithm=jax.lax.RandomAlgorithm.RNG_THREE_FRY)
        >>> key, bits
        (Array([0, 0, 1, 0], dtype=uint32), Array([1797259609, 2579123966], dtype=uint32))
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self):
        return self.name


class RngBitGenerator(Primitive):
    """Returns a new key and random bits."""

    has_bodies = False
    name = "rng_bit_generator"
    multiple_results = True

    def infer(self, key, *, shape, dtype, algorithm, out_sharding):
        if dtype not in (np.uint8, np.uint16, np.uint32, np.uint64):
            raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
        sharding = None if out_sharding is None else sharding_in_type(out_sharding, len(shape))
        return [key.strip_weak_type(), ShapedArray(shape, dtype, sharding=sharding)]

    def lower(self, e, ins, outs, key, *, shape, dtype, algorithm, out_sharding):
        name = algorithm.name.removeprefix("RNG_")
        (aval,), halves = ins, _halves(ins[0])
        if aval.dtype == np.uint64 and aval.shape == (2,):
            return e.rng_bit_generator(key, aval, outs[1], name)
        wide = ShapedArray((2,), np.dtype(np.uint64))
        state = e.bitcast_convert(e.reshape(key, aval, halves), halves, wide)
        state, bits = e.rng_bit_generator(state, wide, outs[1], name)
        return [e.reshape(e.bitcast_convert(state, wide, halves), halves, aval), bits]

    def jvp(self, primals, tangents, **params):
        results = self.bind(*primals, **params)
        return results, [Zero(typeof(r).to_tangent_aval()) for r in results]

    def batch(self, axis, operands, dims, *, shape, **params):
        keys = moving.move_axis(operands[0], dims[0], 0)
        # As in jax, the first key draws for the whole batch, and only that key advances.
        first = squeeze(slice_in_dim(keys, 0, 1), (0,))
        key, bits = self.bind(first, shape=(axis.size, *shape), **params)
        start = [np.int32(0)] * typeof(keys).ndim
        return [dynamic_update_slice(keys, moving.expand_dims(key, (0,)), start), bits], [0, 0]


def _halves(key: ShapedArray) -> ShapedArray:
    """The type of a key of four words, as two rows of two. Raises TypeError for any other key."""
    if key.shape != (4,) or key.dtype != _U32:
        raise TypeError(f"rng_bit_generator: key must be uint32[4] or uint64[2], got {key.str_short(True)}")
    return ShapedArray((2, 2), _U32)


class RngUniform(Primitive):
    """Uniform numbers from XLA's stateful generator."""

    has_bodies = False
    name = "rng_uniform"

    def infer(self, a, b, *, shape):
        if a.dtype != b.dtype:
            raise ValueError(f"rng_uniform: the bounds must have one dtype, got {a.dtype} and {b.dtype}.")
        if a.shape or b.shape:
            raise ValueError(f"rng_uniform: the bounds must be scalars, got shapes {a.shape} and {b.shape}.")
        return [ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)]

    def sharding_rule(self, mesh, avals, outs, *, shape):
        return [(None,) * len(shape)]

    reduction_state: Any = state_of_first

    def lower(self, e, ins, outs, a, b, *, shape):
        # XLA aborts the process for other dtypes.
        if (
            not dtypes.is_inexact(ins[0].dtype)
            and dtypes.itemsize_bits(ins[0].dtype) < 32
            or (ins[0].dtype.name.startswith(("complex", "float8", "float4", "float6")))
        ):
            raise TypeError(f"rng_uniform: unsupported dtype {ins[0].dtype.name}")
        return [e.rng_uniform(a, b, ins[0], outs[0])]


threefry2x32_p = Threefry2x32("threefry2x32", 2)
threefry4x32_p = WordHash("threefry4x32", 4, _threefry4x32)
philox2x32_p, philox4x32_p = WordHash("philox2x32", 2, _philox2x32), WordHash("philox4x32", 4, _philox4x32)
rng_bit_generator_p = RngBitGenerator()
rng_uniform_p = RngUniform()


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """Hashes an array of uint32 words by a key of two words; the result has the shape of `count`."""
    if isinstance(keypair, (tuple, list)):
        key0, key1 = keypair
    else:
        key0, key1 = (squeeze(slice_in_dim(keypair, i, i + 1), (0,)) for i in range(2))
    aval = typeof(count)
    names = [typeof(x).dtype.name for x in (key0, key1, count)]
    if names != ["uint32"] * 3:
        raise TypeError(f"threefry_2x32: arguments must be uint32, got {', '.join(names)}")
    flat, odd = count if aval.ndim == 1 else moving.reshape(count, (aval.size,)), aval.size % 2
    if odd:
        flat = concatenate([flat, np.zeros(1, np.uint32)], 0)
    half = (aval.size + 1) // 2
    # For a symbolic size that may be even, slices of size `half` leave out the padding word.
    halves = split(flat, (half, half)) if is_int(odd) else [slice(flat, (i,), (i + half,)) for i in (0, half)]
    words = concatenate(threefry2x32_p.bind(key0, key1, *halves), 0)
    if odd:
        words = slice(words, (0,), (aval.size,))
    return words if aval.ndim == 1 else moving.reshape(words, aval.shape)


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple:
    """Returns a new key and random bits from XLA's generator. The bits differ between platforms and versions.

    Args:
        key: The state: four uint32 numbers, or two uint64 numbers.
        shape, dtype: Those of the bits; dtype is an unsigned integer dtype.
        algorithm: A `jax.lax.RandomAlgorithm`.
        out_sharding: The sharding of the bits over Explicit mesh axes.

    Raises TypeError for a key that is neither, or another dtype.

    Example:
        >>> key, bits = jax.lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (2, 3))
        >>> key.shape, bits.shape, bits.dtype
        ((4,), (2, 3), dtype('uint32'))
    """
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "rng_bit_generator")
    shape = dims.shape_of(shape)
    requested = requested_sharding("rng_bit_generator", out_sharding, len(shape))
    params = dict(shape=shape, dtype=dtype, out_sharding=requested)
    return tuple(rng_bit_generator_p.bind(key, algorithm=RandomAlgorithm(int(algorithm)), **params))


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Any:
    """Draws numbers in [a, b) from XLA's stateful generator. For tests only, because calls are not reproducible.

    Example:
        >>> x = jax.lax.rng_uniform(0.0, 1.0, (3,))
        >>> x.shape, bool(jnp.all((0 <= x) & (x < 1)))
        ((3,), True)
    """
    return rng_uniform_p.bind(a, b, shape=dims.canonical_shape(shape))
