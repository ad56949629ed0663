"""Random bits by kernels for TPUs: each element is the hash of its number in the array, by Philox or Threefry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.shapes import ShapeDtypeStruct
from minijax.composed.random import PRNGImpl, register, threefry_fold_in, threefry_seed, threefry_split
from minijax.kernels.blocks import BlockSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.grid import program_id
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.operations.helpers import align_to
from minijax.primitives.random_bits import threefry2x32_p
from minijax.run.arrays.array import Array

BLOCK_SIZE = (256, 256)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_FACTORS = 0xCD9E8D57, 0xD2511F53
_MOST = 2**32 - 1


def round_up(x: int, y: int) -> int:
    """Returns the least multiple of `y` that is not below `x`."""
    return align_to(x, y)


def blocked_iota(block_shape: Sequence[int], total_shape: Sequence[int]) -> Array:
    """Returns the numbers of the elements of the first block of an array, row by row.

    Args:
      block_shape: shape of the block.
      total_shape: shape of the array; of more dimensions, the first ones are used.
    """
    numbers, stride = jnp.zeros(block_shape, jnp.uint32), 1
    for axis in reversed(range(len(block_shape))):
        numbers += lax.broadcasted_iota(jnp.uint32, block_shape, axis) * stride
        stride *= total_shape[axis]
    return numbers


def compute_scalar_offset(iteration_index: Sequence[Any], total_size: Sequence[int], block_size: Sequence[int]) -> Any:
    """Returns the number of the first element of a block.

    Args:
      iteration_index: numbers of the block, one for each axis.
      total_size: shape of the array.
      block_size: shape of the block.
    """
    offset, stride = 0, 1
    for i, total, size in reversed(list(zip(iteration_index, total_size, block_size, strict=False))):
        offset += i * size * stride
        stride *= total
    return offset


def mul32_hi_lo(x: Array, y: Array) -> tuple[Array, Array]:
    """Returns the upper and the lower 32 bits of the products of two arrays of uint32."""
    (x_high, x_low), (y_high, y_low) = ((a >> 16, a & 0xFFFF) for a in (x, y))
    one, other, low = x_high * y_low, x_low * y_high, x_low * y_low
    middle = (one & 0xFFFF) + (other & 0xFFFF) + (low >> 16)
    return x_high * y_high + (one >> 16) + (other >> 16) + (middle >> 16), (middle << 16) + (low & 0xFFFF)


def philox_4x32(hi0: Any, lo0: Any, hi1: Any, lo1: Any, k_hi: Any, k_lo: Any, rounds: int = 10) -> tuple:
    """Returns the Philox hash of four arrays of uint32.

    Args:
      hi0, lo0, hi1, lo1: arrays of words.
      k_hi, k_lo: words of the key.
      rounds: how often they are mixed.

    Returns:
      Four arrays of words.
    """
    first, second = (jnp.array(n, jnp.uint32) for n in _FACTORS)
    steps = [jnp.array(n, jnp.uint32) for n in _KEY_STEPS]
    for i in range(rounds):
        (a, b), (c, d) = mul32_hi_lo(first, hi1), mul32_hi_lo(second, hi0)
        hi0, lo0, hi1, lo1 = a ^ lo0 ^ k_hi, b, c ^ lo1 ^ k_lo, d
        if i + 1 < rounds:
            k_hi, k_lo = k_hi + steps[0], k_lo + steps[1]
    return hi0, lo0, hi1, lo1


def _philox(counts: Array, key0: Any, key1: Any) -> Sequence[Array]:
    zeros = jnp.zeros_like(counts)
    return philox_4x32(zeros, counts, zeros, zeros, key0, key1)[:2]


def _threefry(counts: Array, key0: Any, key1: Any) -> Sequence[Array]:
    return threefry2x32_p.bind(key0, key1, jnp.zeros_like(counts), counts)


def _hashed(
    mix: Callable, key: Any, shape: Sequence[int], whole: Sequence[int], block: tuple, offset: Any, fuses: bool
) -> Array:
    """The hashes of the numbers of the elements of an array, by a kernel over its blocks."""
    shape = tuple(shape)
    if prod(shape) > _MOST:
        raise ValueError(f"Shape too large: {prod(shape)} > {_MOST}")
    if shape[-2] % block[0] or shape[-1] % block[1]:
        raise ValueError(f"Shape dimension {shape[-2:]} must be divisible by {block}")
    offsets = [] if offset is None else [_as_offset(offset)]
    block_shape = (*[1] * (len(shape) - 2), *block)
    grid = (*shape[:-2], shape[-2] // block[0], shape[-1] // block[1])

    def kernel(*refs):
        *starts, key_ref, out_ref = refs
        first = compute_scalar_offset([program_id(i) for i in range(len(grid))], whole, block_shape)
        counts = blocked_iota(block, whole) + first.astype(jnp.uint32) + sum(ref[0] for ref in starts)
        words = mix(counts.astype(jnp.uint32), *[key_ref[0, i].reshape(1, 1) for i in range(2)])
        if fuses:
            out_ref[...] = (words[0] ^ words[1]).reshape(out_ref.shape)
            return
        for i, word in enumerate(words):
            out_ref[i, ...] = word.reshape(out_ref.shape[1:])

    spec = BlockSpec(block_shape, lambda *ids: ids) if fuses else BlockSpec((2, *block_shape), lambda *ids: (0, *ids))
    out = ShapeDtypeStruct(shape if fuses else (2, *shape), jnp.uint32)
    scalars = [BlockSpec(memory_space=TpuMemorySpace.SMEM)] * (len(offsets) + 1)
    return pallas_call(kernel, out, in_specs=scalars, out_specs=spec, grid=grid)(*offsets, key.reshape(1, 2))


def _as_offset(offset: Any) -> Array:
    offset = jnp.array(offset, jnp.uint32)
    if offset.ndim:
        raise ValueError(f"Offset must be scalar, got {offset.shape}")
    return offset.reshape(1)


def _padded(mix: Callable, key: Any, shape: Sequence[int], offset: Any, fuses: bool) -> Array:
    """As `_hashed`, for an array of any shape."""
    if (rank := len(shape)) < 2:
        return _padded(mix, key, (*[1] * (2 - rank), *shape), offset, fuses)[
            (..., *[0] * (2 - rank), *[slice(None)] * rank)
        ]
    room = [round_up(n, size) for n, size in zip(shape[-2:], BLOCK_SIZE, strict=True)]
    found = _hashed(mix, key, (*shape[:-2], *room), shape, BLOCK_SIZE, offset, fuses)
    return found if room == [*shape[-2:]] else found[..., : shape[-2], : shape[-1]]


def philox_4x32_kernel(
    key: Any,
    shape: Sequence[int],
    unpadded_shape: Sequence[int],
    block_size: tuple[int, int],
    offset: Any = 0,
    fuse_output: bool = True,
) -> Array:
    """Returns the Philox hashes of the numbers of the elements of an array, by a kernel for TPUs.

    Args:
      key: two words of uint32.
      shape: shape of the result, which blocks must divide.
      unpadded_shape: shape of the array whose elements are numbered.
      block_size: rows and columns of the blocks.
      offset: number of the first element.
      fuse_output: whether the two words of an element become one; if not, the result has a first axis of size 2.

    Raises ValueError for a shape that blocks do not divide, or one with more than 2**32 - 1 elements.
    """
    return _hashed(_philox, key, shape, unpadded_shape, block_size, offset, fuse_output)


def philox_4x32_count(key: Any, shape: Sequence[int], offset: Any = 0, fuse_output: bool = True) -> Array:
    """Returns Philox hashes of any shape. Arguments: as those of `philox_4x32_kernel`."""
    return _padded(_philox, key, shape, offset, fuse_output)


def philox_random_bits(key: Any, bit_width: int, shape: Sequence[int]) -> Array:
    """Returns random bits by Philox.

    Args:
      key: two words of uint32.
      bit_width: 32.
      shape: shape of the result.

    Raises ValueError for another width.
    """
    _check_width(bit_width)
    return philox_4x32_count(key, shape)


def philox_split(key: Any, shape: Sequence[int]) -> Array:
    """Returns the words of keys of a shape, made of one key."""
    words = philox_4x32_count(key, shape, fuse_output=False)
    return jnp.stack([words[0], words[1]], axis=len(shape))


def philox_fold_in(key: Any, data: Any) -> Array:
    """Returns the words of a key for a key and a number."""
    return philox_4x32_count(key, (), offset=data, fuse_output=False)


def threefry_2x32_count(
    key: Any, shape: Sequence[int], unpadded_shape: Sequence[int], block_size: tuple[int, int]
) -> Array:
    """Returns Threefry hashes, by a kernel for TPUs. Arguments and errors: as those of `philox_4x32_kernel`."""
    return _hashed(_threefry, key, shape, unpadded_shape, block_size, None, True)


def plthreefry_random_bits(key: Any, bit_width: int, shape: Sequence[int]) -> Array:
    """Returns random bits by Threefry. Arguments and errors: as those of `philox_random_bits`."""
    _check_width(bit_width)
    return _padded(_threefry, key, shape, None, True)


def _check_width(bit_width: int) -> None:
    if bit_width != 32:
        raise ValueError(f"random_bits: Only 32-bit PRNG supported, got bit_width={bit_width}.")


plphilox_prng_impl = PRNGImpl(
    (2,), threefry_seed, philox_split, philox_random_bits, philox_fold_in, "pallas_philox4x32", "pllox"
)
plthreefry_prng_impl = PRNGImpl(
    (2,), threefry_seed, threefry_split, plthreefry_random_bits, threefry_fold_in, "pallas_threefry2x32", "plfry"
)
register(plphilox_prng_impl)
register(plthreefry_prng_impl)
