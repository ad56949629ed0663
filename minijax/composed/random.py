"""Operations on arrays of random keys, and the generators that they call."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from minijax.base import config, dtypes
from minijax.base.naming import is_installed_as_jax, known_as
from minijax.base.symbolic.dimension import Dim, is_int
from minijax.base.thread import entered, thread
from minijax.composed.linalg.matrices import map_over_batch
from minijax.dispatch.jitted import jitted
from minijax.dispatch.operands import operand
from minijax.hlo.spell import physical
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import NOT_MANUAL, ShapedArray, typeof
from minijax.primitives import counting, elementwise as ops, moving, structural
from minijax.primitives.convert import convert, scalar_as
from minijax.primitives.families import SameShape, broadcast_shapes_of_op, scalar_like
from minijax.primitives.random_bits import (
    WordHash,
    philox2x32_p,
    philox4x32_p,
    rng_bit_generator,
    threefry2x32_p,
    threefry4x32_p,
    threefry_2x32,
)
from minijax.primitives.zeros import ZeroJvp
from minijax.run.arrays.keys import key_array

UINT32, UINT64 = np.dtype("uint32"), np.dtype("uint64")
_WORD = 32
_partitionable = config.option("threefry_partitionable")


@known_as("jax._src.random.prng.PRNGImpl")
@dataclass(frozen=True)
class PRNGImpl:
    """A generator: functions of one key's words, of shape `key_shape`.

    `seed(integer) -> words`, `split(words, shape) -> words`, `random_bits(words, bit_width, shape) -> bits`,
    `fold_in(words, uint32) -> words`; `tag` is the short name that dtypes show.
    """

    key_shape: tuple[int, ...]
    seed: Callable
    split: Callable
    random_bits: Callable
    fold_in: Callable
    name: str = "<unnamed>"
    tag: str = "?"

    # jax's pickles create an instance without a call of the class.
    def __new__(cls, *args, **kwargs):
        new = object.__new__(cls)
        if args:
            new.__init__(*args, **kwargs)
        return new

    def __str__(self):
        return self.tag

    def wrapped(self, words: Any) -> Any:
        """The keys with these words."""
        return random_wrap_p.bind(words, impl=self)

    def unwrapped(self, keys: Any) -> Any:
        """The words of keys."""
        return random_unwrap_p.bind(keys)

    def __reduce__(self):
        if not is_installed_as_jax() and NAMED_IMPLS.get(self.name) == self:
            return _named, (self.name,)
        functions = self.seed, self.split, self.random_bits, self.fold_in
        return PRNGImpl, (self.key_shape, *functions, self.name, self.tag)


NAMED_IMPLS: dict[str, PRNGImpl] = {}


def _named(name: str) -> PRNGImpl:
    return NAMED_IMPLS[name]


# ---- primitives -------------------------------------------------------------------------------------


@state.traced_cache
def _defined(primitive: Any, ins: tuple, params: tuple) -> ClosedJaxpr:
    """The definition of an operation on words of these types, as a jaxpr."""
    # Positions in arrays are counted in 64 bits, whether or not jax_enable_x64 is set.
    wide = config.enable_x64(primitive.counts or config.enable_x64.value)
    with state.set_current_trace(None), wide, config.numpy_dtype_promotion("standard"):
        fun = primitive.definition(*ins, **dict(params))
        is_joint = len({a.entries for a in ins if a.ndim}) <= 1  # the generator's function may map over all of them
        avals = [_words_of(a) if is_joint else physical(a.update(sharding=None)) for a in ins]
        jaxpr, consts = trace_to_jaxpr(lambda *xs: [fun(*xs)], avals, DebugInfo("jit", primitive.name))
    return ClosedJaxpr(jaxpr, consts)


def _words_of(keys: ShapedArray) -> ShapedArray:
    """The type of the words of keys, with the sharding of the keys."""
    words = physical(keys)
    if not keys.has_mesh or words is keys:
        return words
    return words.sharded_over(
        keys.own_sharding.mesh, (*keys.entries, *[None] * (words.ndim - keys.ndim)), *keys.reduction_state
    )


def _mapped(fun: Callable, shape: Sequence[int], dims: Sequence[int | None]) -> Callable:
    """Maps `fun` over the leading axes `shape` of the operands whose dim is 0."""
    batched = map_over_batch(lambda *xs: [fun(*xs)], shape, dims)
    return lambda *xs: batched(*xs)[0]


class KeyOperation(ZeroJvp):
    """An operation of a generator, lowered by tracing the generator's function."""

    counts = True

    def sharding_rule(self, mesh, avals, outs, **params):
        """The leading axes are sharded as the keys or seeds are. The axes of words and drawn values are not sharded."""
        return [(*avals[0].entries[: out.ndim], *[None] * (out.ndim - avals[0].ndim)) for out in outs]

    def definition(self, *avals: ShapedArray, **params: Any) -> Callable:
        """The function from the operands' words to the words, or bits, of the result."""
        raise NotImplementedError

    def lower(self, e, ins, outs, *operands, **params):
        ins = tuple([a.update(manual_axis_type=NOT_MANUAL) for a in ins])  # loops are traced as if on one device
        closed = _defined(self, ins, tuple(params.items()))
        return e.inlined(closed.jaxpr, e.constants(closed), operands)

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), [dims[0]]


class SharedWords(KeyOperation):
    """Converts keys and words, which are the same array in memory: nothing is computed."""

    def lower(self, e, ins, outs, x, **params):
        return [x]


class RandomSeed(KeyOperation):
    """Keys from integers."""

    name = "random_seed"
    counts = False

    def infer(self, seeds, *, impl):
        return [ShapedArray(seeds.shape, dtypes.KeyType(impl))]

    def definition(self, seeds, *, impl):
        return _mapped(impl.seed, seeds.shape, (0,))


class RandomWrap(SharedWords):
    """Keys from their words."""

    name = "random_wrap"

    def sharding_rule(self, mesh, avals, outs, *, impl):
        if any(avals[0].entries[outs[0].ndim :]):
            raise AssertionError(f"random_wrap: the words of a key must be replicated, but have type {avals[0].text}")
        return super().sharding_rule(mesh, avals, outs)

    def infer(self, words, *, impl):
        check_words(words, impl)
        return [ShapedArray(words.shape[: words.ndim - len(impl.key_shape)], dtypes.KeyType(impl))]

    def at_once(self, words, *, impl):
        words = operand(words)
        check_words(words, impl)
        return [key_array(impl, words)]

    def batch(self, axis, operands, dims, *, impl):
        return self.bind_all([moving.move_axis(operands[0], dims[0], 0)], dict(impl=impl)), [0]


class RandomUnwrap(SharedWords):
    """The words of keys."""

    name = "random_unwrap"

    def infer(self, keys):
        return [physical(keys)]

    def at_once(self, keys):
        return [keys._base_array]


class RandomClone(SharedWords):
    """The same keys, which count as unused."""

    name = "random_clone"

    def infer(self, keys):
        return [keys]

    def at_once(self, keys):
        keys = operand(keys)
        return [keys._as(keys._sig)]


class DependsOnPartitionable(KeyOperation):
    """An operation that depends on threefry_partitionable. The option's value when the equation is recorded is used."""

    def bind(self, *operands, **params):
        return self._as_recorded(super().bind, *operands, **params)

    def rebind(self, trace, operands, params):
        return self._as_recorded(super().rebind, trace, operands, params)

    def _as_recorded(self, run, *args, **kwargs):
        partitionable = self._recorded()
        if thread.trace is None and partitionable == _partitionable.value:
            return run(*args, **kwargs)
        with entered(thread.context._replace(threefry_partitionable=partitionable)), _partitionable(partitionable):
            return run(*args, **kwargs)

    def lower(self, e, ins, outs, *operands, **params):
        with _partitionable(self._recorded()):
            return super().lower(e, ins, outs, *operands, **params)

    def _recorded(self):
        recorded = thread.context.threefry_partitionable
        return _partitionable.value if recorded is None else recorded


class RandomBits(DependsOnPartitionable):
    """Uniform bits, an array of `shape` for each key."""

    defaults_to_context_mesh = True
    name = "random_bits"

    def infer(self, keys, *, bit_width, shape):
        return [ShapedArray((*keys.shape, *shape), dtypes.BY_NAME[f"uint{bit_width}"])]

    def definition(self, keys, *, bit_width, shape):
        impl = keys.dtype._impl
        return _mapped(lambda words: impl.random_bits(words, bit_width, shape), keys.shape, (0,))


class RandomSplit(DependsOnPartitionable):
    """New keys, an array of `shape` for each key."""

    defaults_to_context_mesh = True
    name = "random_split"

    def infer(self, keys, *, shape):
        return [ShapedArray((*keys.shape, *shape), keys.dtype)]

    def definition(self, keys, *, shape):
        impl = keys.dtype._impl
        return _mapped(lambda words: impl.split(words, shape), keys.shape, (0,))


class RandomFoldIn(KeyOperation):
    """New keys from keys and integers."""

    defaults_to_context_mesh = True
    name = "random_fold_in"
    batch, sharding_rule = SameShape.batch, SameShape.sharding_rule

    def infer(self, keys, data):
        return [ShapedArray(broadcast_shapes_of_op(self.name, keys.shape, data.shape), keys.dtype)]

    def definition(self, keys, data):
        shape = broadcast_shapes_of_op(self.name, keys.shape, data.shape)
        fold = _mapped(keys.dtype._impl.fold_in, shape, [0 if a.shape else None for a in (keys, data)])

        def run(words, data_):
            if keys.shape and keys.shape != shape:
                wide = (*shape, *keys.dtype._impl.key_shape)
                words = moving.broadcast_in_dim(words, wide, tuple(range(len(wide))))
            return fold(words, moving.broadcast_to_shape(data_, shape) if data.shape else data_)

        return run


random_seed_p, random_wrap_p, random_unwrap_p = RandomSeed(), RandomWrap(), RandomUnwrap()
random_clone_p, random_bits_p = RandomClone(), RandomBits()
random_split_p, random_fold_in_p = RandomSplit(), RandomFoldIn()


_MAKE_KEY = "Make a key with jax.random.key(seed)."


def check_words(words: Any, impl: PRNGImpl) -> None:
    """Raises TypeError unless `words` can be the words of keys of this generator."""
    say, x = "JAX encountered invalid PRNG key data: expected key_data", getattr(words, "aval", words)
    if not all(hasattr(x, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(f"{say} to have ndim, shape, and dtype attributes. Got {words}. {_MAKE_KEY}")
    if x.ndim < 1:
        raise TypeError(f"{say}.ndim >= 1; got ndim={x.ndim}")
    if tuple(x.shape[-len(impl.key_shape) :]) != impl.key_shape:
        raise TypeError(f"{say}.shape to end with {impl.key_shape}; got shape={x.shape} for impl={impl.name}")
    if x.dtype not in (UINT32, dtypes.float0):
        raise TypeError(f"{say}.dtype = uint32; got dtype={x.dtype}. {_MAKE_KEY}")


# ---- threefry ---------------------------------------------------------------------------------------


def threefry_seed(seed: Any) -> Any:
    """The high and the low 32 bits of an integer."""
    return _stack_words(_seed_halves(seed))


def _seed_halves(seed: Any) -> Iterator[Any]:
    wide = dtypes.result_type(seed, UINT32)
    yield convert(ops.shift_right_logical(seed, scalar_like(seed, _WORD)), UINT32)
    yield convert(ops.bitwise_and(convert(seed, wide), np.uint32(0xFFFFFFFF).astype(wide)), UINT32)


def _stack_words(parts: Iterable[Any]) -> Any:
    """Stacks arrays of words along a new last axis."""
    parts = [moving.append_axes(part, 1) for part in parts]
    return structural.concatenate(parts, typeof(parts[0]).ndim - 1)


@jitted("_threefry_split", static=("shape",))
def threefry_split(words: Any, shape: tuple[int, ...]) -> Any:
    """The words of an array of new keys."""
    if not _partitionable.value:
        return moving.reshape(threefry_2x32(words, _count(2 * prod(shape))), (*shape, 2))
    return _stack_words(_encrypt_positions(words, shape))


@jitted("_threefry_fold_in")
def threefry_fold_in(words: Any, data: Any) -> Any:
    """The words of the key for a number."""
    return threefry_2x32(words, threefry_seed(data))


def threefry_random_bits(words: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Uniform bits, 8 to 64 for each element."""
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"random_bits: requires 8-, 16-, 32- or 64-bit field width, got {bit_width}.")
    if not _partitionable.value:
        return moving.reshape_to(_bits_in_order(words, bit_width, prod(shape)), shape)
    high, low = _encrypt_positions(words, shape)
    if bit_width == 64:
        return _join_words((high, low))
    bits = ops.bitwise_xor(high, low)
    return bits if bit_width == _WORD else convert(bits, dtypes.BY_NAME[f"uint{bit_width}"])


def _unstack_words(words: Any) -> list[Any]:
    if typeof(words).shape == (1,):
        return [structural.squeeze(words, (0,))]
    return [structural.index_in_dim(words, i, keepdims=False) for i in range(typeof(words).shape[0])]


def _encrypt_positions(words: Any, shape: tuple[int, ...]) -> Sequence:
    """Two words for each position in an array, which depend only on the position: shards need not communicate."""
    return threefry2x32_p.bind(*_unstack_words(words), *_positions(shape))


def _positions(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The high and the low words of the row-major positions of an array's elements."""
    if not shape:
        return np.uint32(0), np.uint32(0)
    axes = range(len(shape))
    iotas = [_iota(UINT64, shape, i) for i in axes]
    strides = [scalar_as(prod(shape[i + 1 :]), UINT64) for i in axes]
    position = functools.reduce(ops.add, list(map(ops.mul, strides, iotas)))
    high = ops.shift_right_logical(position, scalar_as(_WORD, UINT64))
    low = convert(position, UINT32)
    return convert(high, UINT32), low


def _count(size: Dim) -> Any:
    if is_int(size) and size > np.iinfo(UINT32).max:
        raise NotImplementedError(
            f"random bits of more than 2**32 - 1 words ({size}) need the option jax_threefry_partitionable"
        )
    return _iota(UINT32, (size,), 0)


def _iota(dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> Any:
    return counting.iota_p.bind(dtype=dtype, shape=shape, dimension=dimension, sharding=None)


def _bits_in_order(words: Any, bit_width: int, size: int) -> Any:
    """Bits of a flat array, taken one after the other from a sequence of words."""
    bits = threefry_2x32(words, _count(-(-bit_width * size // _WORD)))
    if bit_width == _WORD:
        return bits
    if bit_width == 64:
        return _join_words(structural.slice(bits, (i * size,), ((i + 1) * size,)) for i in range(2))
    parts = _WORD // bit_width
    (count,) = bits.aval.shape
    shifts = ops.mul(np.uint32(bit_width), _iota(UINT32, (parts, 1), 0))
    shifted = ops.shift_right_logical(moving.broadcast_in_dim(bits, (1, count), (1,)), shifts)
    fields = ops.bitwise_and(np.uint32(2**bit_width - 1), shifted)
    flat = moving.reshape(moving.transpose(fields, (1, 0)), (parts * count,))
    return structural.slice(convert(flat, dtypes.BY_NAME[f"uint{bit_width}"]), (0,), (size,))


def _join_words(words: Iterable[Any]) -> Any:
    """64 bits from their high and their low words."""
    high, low = (convert(word, UINT64) for word in words)
    return ops.bitwise_or(ops.shift_left(high, np.uint64(_WORD)), low)


threefry_prng_impl = PRNGImpl(
    (2,), threefry_seed, threefry_split, threefry_random_bits, threefry_fold_in, "threefry2x32", "fry"
)

# ---- generators that hash only the position ---------------------------------------------------------


def _counter_based(hash_p: WordHash, tag: str, key_size: int) -> PRNGImpl:
    """The generator that hashes positions by keys of `key_size` words. Philox has fewer of them than are hashed."""
    none, is_philox = np.uint32(0), key_size < hash_p.words
    rest = (none,) * (hash_p.words - 2)

    def keys(hashed: Sequence) -> Any:
        return _stack_words(hashed[:key_size])

    def seed(number: Any) -> Any:
        halves = _seed_halves(number)
        if is_philox:
            return keys(hash_p.bind(*(none,) * key_size, *halves, *rest))
        hashed = [moving.expand_dims(x, (0,)) for x in hash_p.bind(*halves, *(none,) * (2 * key_size - 2))]
        return moving.reshape(structural.stack(hashed), (key_size,))

    def hashed(words: Any, shape: tuple[int, ...], is_sharded: bool) -> Sequence:
        # In the order of jax's module, where a single word comes last.
        key = _unstack_words(words) if rest else None
        halves = _positions(shape)
        zeros = [moving.filled(shape, none)] * len(rest) if shape else rest
        return hash_p.bind(*(key or _unstack_words(words)), *((*zeros, *halves) if is_sharded else (*halves, *zeros)))

    def split(words: Any, shape: tuple[int, ...]) -> Any:
        return keys(hashed(words, shape, True))

    def random_bits(words: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
        drawn = hashed(words, shape, False)
        if bit_width == 64:
            halves_of_64 = drawn[:2] if is_philox else map(ops.bitwise_xor, drawn[:2], drawn[2:])
            return _join_words(halves_of_64)
        bits = functools.reduce(ops.bitwise_xor, drawn)
        return bits if bit_width == _WORD else convert(bits, dtypes.BY_NAME[f"uint{bit_width}"])

    @jitted(f"_{hash_p.name}_fold_in")
    def fold_in(words: Any, data: Any) -> Any:
        return keys(hash_p.bind(*_unstack_words(words), *(none,) * (hash_p.words - 1), data))

    return PRNGImpl((key_size,), seed, split, random_bits, fold_in, hash_p.name, tag)


# ---- XLA's own generator ----------------------------------------------------------------------------


def _doubled(by_half: Callable) -> Callable:
    """Applies a function of two words and another operand to both halves of four words."""

    def over_both(words: Any, operand: Any) -> Any:
        halves = moving.reshape(words, (2, 2))
        results = [by_half(structural.index_in_dim(halves, i, keepdims=False), operand) for i in range(2)]
        return structural.concatenate(results, len(typeof(results[0]).shape) - 1)

    return over_both


def _rbg_seed(seed: Any) -> Any:
    half = threefry_seed(seed)
    return structural.concatenate([half, half], 0)


def _rbg_random_bits(words: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    return rng_bit_generator(words, shape, dtypes.BY_NAME[f"uint{bit_width}"])[1]


def _unsafe_rbg_split(words: Any, shape: tuple[int, ...]) -> Any:
    # Every tenth of the drawn keys, so that they are further apart.
    drawn = _rbg_random_bits(words, _WORD, (10 * prod(shape), 4))
    return moving.reshape(structural.slice(drawn, (0, 0), typeof(drawn).shape, (10, 1)), (*shape, 4))


def _unsafe_rbg_fold_in(words: Any, data: Any) -> Any:
    drawn = _rbg_random_bits(_rbg_seed(data), _WORD, (10, 4))
    return ops.bitwise_xor(words, structural.index_in_dim(drawn, 9, keepdims=False))


rbg_prng_impl = PRNGImpl(
    (4,), _rbg_seed, _doubled(threefry_split), _rbg_random_bits, _doubled(threefry_fold_in), "rbg", "rbg"
)
unsafe_rbg_prng_impl = PRNGImpl(
    (4,), _rbg_seed, _unsafe_rbg_split, _rbg_random_bits, _unsafe_rbg_fold_in, "unsafe_rbg", "urbg"
)
philox2x32_prng_impl = _counter_based(philox2x32_p, "phx2", 1)
philox4x32_prng_impl = _counter_based(philox4x32_p, "phx4", 2)
threefry4x32_prng_impl = _counter_based(threefry4x32_p, "fry4", 4)


def register(impl: PRNGImpl, module: str = "", names: str = "") -> None:
    """Registers a generator by name, and names its functions as in that module of jax's."""
    NAMED_IMPLS[impl.name] = impl
    for function, name in zip((impl.seed, impl.split, impl.random_bits, impl.fold_in), names.split(), strict=False):
        known_as(f"jax._src.random.{module}.{name}")(function)


register(threefry_prng_impl, "threefry2x32", "threefry_seed threefry_split threefry_random_bits threefry_fold_in")
register(unsafe_rbg_prng_impl, "rbg", "_rbg_seed _unsafe_rbg_split _rbg_random_bits _unsafe_rbg_fold_in")
register(rbg_prng_impl, "rbg", "_rbg_seed _rbg_split _rbg_random_bits _rbg_fold_in")
for _impl in (philox2x32_prng_impl, philox4x32_prng_impl, threefry4x32_prng_impl):
    register(_impl, _impl.name, f"{_impl.name}_seed {_impl.name}_split {_impl.name}_random_bits {_impl.name}_fold_in")
