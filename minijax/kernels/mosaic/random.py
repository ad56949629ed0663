"""The rules of random keys and bits: Threefry, written out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.kernels.mosaic.elementwise import converted
from minijax.kernels.mosaic.verbs import Key, Value, ints, vector
from minijax.kernels.mosaic.walk import Kernel, Site, rule
from minijax.kernels.operations.keys import core_impl, stateful_impl

_WORD, _UINT32 = np.dtype(np.int32), np.dtype(np.uint32)
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY, _ROUNDS = 0x1BD11BDA, 5


def _check_threefry(site: Site, dtype: Any) -> None:
    name = getattr(getattr(dtype, "_impl", None), "name", "threefry2x32")
    if name != "threefry2x32":
        raise NotImplementedError(f"{site.name}: kernels for TPUs have keys of threefry2x32, not of {name}")


def _shift(k: Kernel, name: str, x: Value, count: int) -> Value:
    return k.one(f"arith.{name}", [x, k.fill(count, x.shape, _WORD)], x.type)


def _hash(k: Kernel, key0: Value, key1: Value, x0: Value, x1: Value) -> tuple[Value, Value]:
    """Hashes pairs of words by two words of a key."""
    k.enter_scope("threefry2x32")
    add = lambda x, y: k.binary("add", x, k.broadcast(y, x.shape))  # noqa: E731
    key2 = k.binary("xor", k.binary("xor", key0, key1), k.fill(_PARITY, key0.shape, _WORD))
    keys = (key1, key2, key0)
    x0 = add(x0, key0)
    x1 = add(x1, key1)
    for i in range(_ROUNDS):
        for turn in _ROTATIONS[i % 2]:
            x0 = k.binary("add", x0, x1)
            turned = k.binary("or", _shift(k, "shli", x1, turn), _shift(k, "shrui", x1, 32 - turn))
            x1 = k.binary("xor", x0, turned)
        x0 = add(x0, keys[i % 3])
        x1 = add(x1, keys[(i + 1) % 3])
        x1 = k.binary("add", x1, k.fill(i + 1, x1.shape, _WORD))
    k.op("tpu.trace_stop")
    return x0, x1


def _words(k: Kernel, key: Value) -> list[Value]:
    """The words of a key, as numbers."""
    return [k.extract(k.slice(key, [i], [1])) for i in range(2)]


def _seeded(k: Kernel, seed: Value) -> Value:
    """The words of the key of a number."""
    high = k.broadcast(k.one("arith.shrui", [seed, k.i32(32)], seed.type), (1,))
    low = k.broadcast(k.binary("and", seed, k.i32(-1)), (1,))
    return k.concatenate([high, low], 0)


@rule("random_seed")
def _seed(k: Kernel, site: Site, seed: Value, impl: Any) -> Value | Key:
    if impl is stateful_impl:
        return Key((seed, k.i32(0)))
    if impl is core_impl:
        raise ValueError(
            "All seed data must be scalar integers: kernels for TPUs get a Pallas key as an operand in SMEM"
        )
    _check_threefry(site, site.out.dtype)
    return _seeded(k, seed)


@rule("random_wrap", "random_unwrap")
def _wrap(k: Kernel, site: Site, words: Any, **_: Any) -> list[Any]:
    if type(words) is Key:
        raise ValueError("key_data not support for Pallas PRNG keys: they stay in registers")
    return [words]


@rule("random_fold_in")
def _fold_in(k: Kernel, site: Site, key: Value | Key, number: Value) -> Value | Key:
    if type(key) is Key:
        return _fold_into_core_key(k, key, number)
    _check_threefry(site, site.out.dtype)
    words = _seeded(k, number)
    key0, key1 = _words(k, key)
    return k.concatenate(_hash(k, key0, key1, *[k.slice(words, [i], [1]) for i in range(2)]), 0)


def _fold_into_core_key(k: Kernel, key: Key, number: Value) -> Key:
    high, low = key.words
    low = k.binary("add", low, number)
    high = k.binary("add", high, low)
    left = _shift(k, "shli", low, 13)
    right = k.binary("sub", k.i32(32), k.i32(13))
    turned = k.binary("or", left, k.one("arith.shrui", [low, right], low.type))
    return Key((high, k.binary("xor", high, turned)))


def _bits_of_core(k: Kernel, site: Site, key: Key, bit_width: int) -> Value:
    """Bits by the core's generator, which a key seeds unless it means the state as it is."""
    if bit_width != 32:
        raise AssertionError(f"Only 32-bit PRNG supported: the core draws words of 32 bits, not of {bit_width}.")
    if site.ins[0].dtype._impl is core_impl:
        if len(site.out.shape) < 2:
            raise NotImplementedError("random_bits only supports rank>=2 outputs.")
        k.op("tpu.prng_set_seed_32", key.words)
    return k.op("tpu.prng_random_bits", (), [site.type])[0]


@rule("threefry2x32")
def _threefry(k: Kernel, site: Site, key0: Value, key1: Value, x0: Value, x1: Value) -> Sequence[Value]:
    return _hash(k, key0, key1, x0, x1)


@rule("iota_2x32_shape")
def _positions(k: Kernel, site: Site, shape: Sequence[int]) -> list[Value]:
    return _numbered(k, shape)


def _numbered(k: Kernel, shape: Sequence[int]) -> list[Value]:
    """The high and the low words of the row-major positions of an array's elements."""
    low, stride = k.fill(0, shape, _WORD), 1
    for axis in reversed(range(len(shape))):
        numbers = k.one("tpu.iota", (), vector(shape, _WORD), dimensions=ints([axis], "i32"))
        low = k.binary("add", low, k.binary("mul", numbers, k.fill(stride, shape, _WORD)))
        stride *= shape[axis]
    return [k.fill(0, shape, _WORD), low]


@rule("random_bits")
def _bits(k: Kernel, site: Site, key: Value | Key, bit_width: int, shape: Sequence[int]) -> Value:
    if type(key) is Key:
        return _bits_of_core(k, site, key, bit_width)
    _check_threefry(site, site.ins[0].dtype)
    if bit_width > 32:
        raise NotImplementedError(f"random_bits: kernels for TPUs draw up to 32 bits, not {bit_width}")
    key0, key1 = _words(k, key)
    bits = k.binary("xor", *_hash(k, key0, key1, *_numbered(k, shape)))
    return converted(k, bits, _UINT32, dtypes.BY_NAME[f"uint{bit_width}"])
