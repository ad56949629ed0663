"""Keys of the random generator that a TPU's core has, which `jax.random` takes as any other keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import random
from minijax.composed.random import PRNGImpl, register
from minijax.kernels.grid import program_id
from minijax.kernels.operations.tpu import prng_random_bits, prng_seed
from minijax.numpy.shaping import concatenate
from minijax.primitives import elementwise
from minijax.primitives.convert import convert
from minijax.primitives.moving import broadcast_in_dim
from minijax.primitives.structural import index_in_dim
from minijax.random.keys import is_key, random_seed, wrap_key_data
from minijax.run.arrays.array import ArrayLike

_UINT32 = np.dtype(np.uint32)
_SHAPE = (1, 2)  # two words, which the core reads one by one
_TURN = 13


def _seed(seed: Any) -> Any:
    return broadcast_in_dim(convert(seed, _UINT32), _SHAPE, ())


def _split(words: Any, shape: Sequence[int]) -> Any:
    raise NotImplementedError("Cannot split a Pallas key. Use fold_in instead to generate new keys.")


def _words(words: Any) -> list[Any]:
    row = index_in_dim(words, 0, keepdims=False)
    return [index_in_dim(row, i, keepdims=False) for i in range(2)]


def _random_bits(words: Any, bit_width: int, shape: Sequence[int]) -> Any:
    prng_seed(*_words(words))
    return convert(prng_random_bits(shape), _UINT32)


def _fold_in(words: Any, number: Any) -> Any:
    high, low = _words(words)
    low = elementwise.add(low, number)
    high = elementwise.add(high, low)
    left = elementwise.shift_left(low, np.uint32(_TURN))
    right = elementwise.shift_right_logical(low, np.uint32(32 - _TURN))
    low = elementwise.bitwise_xor(high, elementwise.bitwise_or(left, right))
    return concatenate([broadcast_in_dim(x, (1, 1), ()) for x in (high, low)], 1)


core_impl = PRNGImpl(_SHAPE, _seed, _split, _random_bits, _fold_in, "pallas_tpu", "pl")
# Its keys have no words of their own: they mean the state of the core's generator, which `pltpu.prng_seed` sets.
stateful_impl = PRNGImpl(_SHAPE, _seed, _split, _random_bits, _fold_in, "_pallas_tpu_stateful", "_pl_stateful")
register(core_impl)


def to_pallas_key(key: Any) -> Any:
    """Returns a key of the core's generator, made of the bits of another key.

    A kernel gets it as an operand in SMEM, and passes it to functions of `jax.random` other than `split`.

    Args:
      key: random key, or the words of one of the default generator.

    Example:
        >>> pltpu.to_pallas_key(jax.random.key(0)).dtype
        key<pl>
    """
    key = key if is_key(key) else wrap_key_data(key)
    return core_impl.wrapped(random.bits(key, _SHAPE, _UINT32))


def _stateful(draw: Callable, summary: str) -> Callable:
    """The function of `jax.random` without a key."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return draw(random_seed(0, stateful_impl), *args, **kwargs)

    function.__name__ = function.__qualname__ = f"stateful_{draw.__name__}"
    function.__doc__ = (
        f"Returns {summary}, by the core's generator, which `pltpu.prng_seed` seeds.\n\n"
        f"    The arguments are those of `jax.random.{draw.__name__}` without the key.\n\n"
        "    Example:\n"
        "        >>> def kernel(o):\n"
        "        ...     pltpu.prng_seed(0)\n"
        f"        ...     o[...] = pltpu.stateful_{draw.__name__}(shape=(8, 128)).astype(jnp.float32)\n"
        "        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.float32))\n"
        "        >>> jax.eval_shape(f).shape\n"
        "        (8, 128)"
    )
    return function


stateful_bits = _stateful(random.bits, "an array of random bits")
stateful_uniform = _stateful(random.uniform, "an array of numbers between two bounds")
stateful_normal = _stateful(random.normal, "an array of numbers of the normal distribution")
stateful_bernoulli = _stateful(random.bernoulli, "an array of flags that are true with a probability")


def sample_block(
    sampler_fn: Callable,
    global_key: Any,
    block_size: Sequence[int],
    tile_size: Sequence[int],
    total_size: Sequence[int],
    block_index: Sequence[ArrayLike] | None = None,
    **kwargs: Any,
) -> Any:
    """Returns a block of an array of random numbers, the same in however large blocks the array is drawn.

    The array is drawn in tiles, each by its own key.

    Args:
      sampler_fn: function of a key and a shape.
      global_key: key of the whole array.
      block_size: shape of the block.
      tile_size: shape of a tile, which divides that of the block.
      total_size: shape of the whole array.
      block_index: number of the block on each axis, by default those of the kernel's step.
      **kwargs: arguments of `sampler_fn` by name.

    Example:
        >>> key = jax.random.key(0)
        >>> whole = pltpu.sample_block(jax.random.normal, key, (4, 4), (2, 2), (4, 4), (0, 0))
        >>> part = pltpu.sample_block(jax.random.normal, key, (2, 2), (2, 2), (4, 4), (1, 0))
        >>> print((whole[2:, :2] == part).all())
        True
    """
    if len(block_size) != len(tile_size):
        raise ValueError(f"block_size ({len(block_size)}) and tile_size ({len(tile_size)}) must have the same length.")
    if block_index is None:
        block_index = [program_id(axis) for axis in range(len(block_size))]
    counts = [size // tile for size, tile in zip(block_size, tile_size, strict=True)]
    totals = [size // tile for size, tile in zip(total_size, tile_size, strict=True)]
    places = itertools.product(*map(range, counts))
    keys = {p: random.fold_in(global_key, _number_of_tile(p, counts, totals, block_index)) for p in places}
    return _joined(lambda place: sampler_fn(keys[place], tuple(tile_size), **kwargs), counts)


def _number_of_tile(place: Sequence[int], counts: Sequence[int], totals: Sequence[int], block: Sequence[Any]) -> Any:
    """The row-major number of a tile in the whole array."""
    number, stride = 0, 1
    for axis in reversed(range(len(place))):
        number = number + (place[axis] + block[axis] * counts[axis]) * stride
        stride *= totals[axis]
    return number


def _joined(draw: Callable, counts: Sequence[int], place: tuple[int, ...] = ()) -> Any:
    """The tiles whose number begins with `place`, put together on the last axis first."""
    axis = len(place)
    if axis == len(counts):
        return draw(place)
    parts = [_joined(draw, counts, (*place, i)) for i in range(counts[axis])]
    return parts[0] if len(parts) == 1 else concatenate(parts, axis)
