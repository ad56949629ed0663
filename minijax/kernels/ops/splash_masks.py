"""Masks of splash attention: which queries see which keys, computed for one block at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Window = tuple[int | None, int | None]


class Mask:
    """Says which queries see which keys. A slice `mask[rows, columns]` is a NumPy array of bools.

    `|` and `&` combine masks.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> (masks.CausalMask((2, 3)) | masks.CausalMask((2, 3), 1))[:, :]
        array([[ True,  True, False],
               [ True,  True,  True]])
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of queries and the number of keys."""
        raise NotImplementedError(f"{type(self).__name__} must define `shape`")

    def __getitem__(self, idx):
        raise NotImplementedError(f"{type(self).__name__} must define `__getitem__`")

    def __bool__(self) -> bool:
        raise NotImplementedError(
            "Conversion to bool is unsupported. Could be caused by using logical instead of bitwise operations on "
            "masks."
        )

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, _of_shape(other, self.shape))

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, _of_shape(other, self.shape))


def _of_shape(other: Mask, shape: tuple[int, ...]) -> Mask:
    if other.shape != shape:
        raise ValueError(f"Invalid shape for other: {other.shape}, expected: {shape}")
    return other


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """Returns the mask of queries that see the keys that are not after them.

    Args:
      shape: number of queries and number of keys.
      offset: number of keys that queries see besides.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.make_causal_mask((2, 3))
        array([[ True, False, False],
               [ True,  True, False]])
    """
    return CausalMask(shape, offset)[:, :]


def make_local_attention_mask(shape: tuple[int, int], window_size: Window, *, offset: int = 0) -> np.ndarray:
    """Returns the mask of queries that see the keys near them.

    Args:
      shape: number of queries and number of keys.
      window_size: how many keys before and how many after it a query sees; None: all.
      offset: number by which queries are moved to later keys.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.make_local_attention_mask((3, 3), (1, 0))
        array([[ True, False, False],
               [ True,  True, False],
               [False,  True,  True]])
    """
    return LocalMask(shape, window_size, offset)[:, :]


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> np.ndarray:
    """Returns the mask of queries that see the keys that are not after them, in the same chunk.

    Args:
      shape: number of queries and number of keys.
      chunk_size: number of queries of a chunk.

    Raises ValueError if `chunk_size` is not positive.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.make_chunk_attention_mask((4, 4), 2)
        array([[ True, False, False, False],
               [ True,  True, False, False],
               [False, False,  True, False],
               [False, False,  True,  True]])
    """
    return ChunkedCausalMask(shape, chunk_size)[:, :]


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> np.ndarray:
    """Returns a mask of random flags.

    Args:
      shape: number of queries and number of keys.
      sparsity: share of the keys that a query does not see.
      seed: seed of NumPy's generator.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.make_random_mask((2, 4), sparsity=0.5, seed=0).shape
        (2, 4)
    """
    np.random.seed(seed)
    return np.random.binomial(n=1, p=1.0 - sparsity, size=shape).astype(np.bool_)


class LogicalOr(Mask):
    """Is true where one of two masks is.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.LogicalOr(masks.CausalMask((2, 2)), masks.CausalMask((2, 2), 1))[:, :]
        array([[ True,  True],
               [ True,  True]])
    """

    def __init__(self, left: Mask, right: Mask):
        self.left, self.right = left, _of_shape(right, left.shape)

    @property
    def shape(self):
        return self.left.shape

    def __getitem__(self, idx):
        return self.left[idx] | self.right[idx]

    def __eq__(self, other):
        return type(self) is type(other) and (self.left, self.right) == (other.left, other.right)

    def __hash__(self):
        return hash((type(self), self.left, self.right))

    def __repr__(self):
        return f"{type(self).__name__}(left={self.left!r}, right={self.right!r})"


class LogicalAnd(LogicalOr):
    """Is true where two masks are.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.LogicalAnd(masks.CausalMask((2, 2)), masks.CausalMask((2, 2), -1))[:, :]
        array([[False, False],
               [ True, False]])
    """

    def __getitem__(self, idx):
        return self.left[idx] & self.right[idx]


@dataclasses.dataclass
class MultiHeadMask(Mask):
    """Has a mask for each head, all of the same shape; its slices have the heads first.

    Args:
      masks: the masks.

    Raises ValueError for no masks, masks of different shapes, or masks of several heads.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.MultiHeadMask([masks.CausalMask((2, 2)), masks.FullMask((2, 2))])[:, :, :].shape
        (2, 2, 2)
    """

    masks: Sequence[Mask]

    def __post_init__(self):
        if not self.masks:
            raise ValueError("Unsupported empty tuple of masks")
        shape = self.masks[0].shape
        for mask in self.masks[1:]:
            if mask.shape != shape:
                raise ValueError(f"Unexpected mask shape, got: {mask.shape}, expected: {shape}")
        if any(isinstance(mask, MultiHeadMask) for mask in self.masks):
            raise ValueError("Nesting MultiHeadMasks is not supported")

    @property
    def shape(self):
        return (len(self.masks), *self.masks[0].shape)

    def __getitem__(self, idx):
        if len(idx) != 3:
            raise NotImplementedError(f"Unsupported slice: {idx}. A mask of several heads has three axes.")
        head, *rest = idx
        if isinstance(head, int):
            return self.masks[head][tuple(rest)]
        return np.stack([mask[tuple(rest)] for mask in self.masks[head]])

    def __eq__(self, other):
        return isinstance(other, MultiHeadMask) and self.masks == other.masks

    def __hash__(self):
        return hash((type(self), tuple(self.masks)))


class _ComputableMask(Mask):
    """A mask that a function of the numbers of queries and keys gives, also in a kernel."""

    def __init__(self, shape: tuple[int, int], mask_function: Callable[[Any, Any], Any], shard_count: int = 1):
        self._shape, self.mask_function = shape, mask_function
        if shape[0] % shard_count**2:
            raise ValueError(f"Shard count squared ({shard_count**2}) must divide Q seq_len ({shape[0]}) evenly.")
        self.q_sequence = np.arange(shape[0], dtype=np.int32)

    @property
    def shape(self):
        return self._shape

    def __getitem__(self, idx):
        if len(idx) != 2 or not all(isinstance(part, slice) for part in idx):
            raise NotImplementedError(f"Unsupported slice: {idx}. A mask takes two slices.")
        rows, columns = idx
        keys = np.arange(self.shape[1], dtype=np.int32)[columns]
        return self.mask_function(self.q_sequence[rows][:, None], keys[None, :])

    def _key(self) -> tuple:
        return type(self), self.shape

    def __eq__(self, other):
        if not isinstance(other, _ComputableMask):
            return NotImplemented
        return self._key() == other._key() and np.array_equal(self.q_sequence, other.q_sequence)

    def __hash__(self):
        return hash(self._key())


class CausalMask(_ComputableMask):
    """Lets queries see the keys that are not after them.

    Args:
      shape: number of queries and number of keys.
      offset: number of keys that queries see besides.
      shard_count: number of parts of the queries, whose square divides their number.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.CausalMask((2, 3), offset=1)[:, :]
        array([[ True,  True, False],
               [ True,  True,  True]])
    """

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1):
        self.offset = offset
        super().__init__(shape, lambda q_ids, kv_ids: q_ids + offset >= kv_ids, shard_count)

    def _key(self):
        return *super()._key(), self.offset


class ChunkedCausalMask(_ComputableMask):
    """Lets queries see the keys of their chunk that are not after them.

    Args:
      shape: number of queries and number of keys.
      chunk_size: number of queries of a chunk.
      shard_count: number of parts of the queries, whose square divides their number.

    Raises ValueError if `chunk_size` is not positive.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.ChunkedCausalMask((4, 4), chunk_size=2)[:, :]
        array([[ True, False, False, False],
               [ True,  True, False, False],
               [False, False,  True, False],
               [False, False,  True,  True]])
    """

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1):
        if chunk_size <= 0:
            raise ValueError("chunk_size must be positive")
        self.chunk_size = chunk_size

        def function(q_ids, kv_ids):
            return (q_ids // chunk_size == kv_ids // chunk_size) & (q_ids >= kv_ids)

        super().__init__(shape, function, shard_count)

    def _key(self):
        return *super()._key(), self.chunk_size


class LocalMask(_ComputableMask):
    """Lets queries see the keys near them.

    Args:
      shape: number of queries and number of keys.
      window_size: how many keys before and how many after it a query sees; None: all.
      offset: number by which queries are moved to later keys.
      shard_count: number of parts of the queries, whose square divides their number.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.LocalMask((3, 3), window_size=(1, 0), offset=0)[:, :]
        array([[ True, False, False],
               [ True,  True, False],
               [False,  True,  True]])
    """

    def __init__(self, shape: tuple[int, int], window_size: Window, offset: int, shard_count: int = 1):
        self.window_size, self.offset = window_size, offset

        def function(q_ids, kv_ids):
            left, right = window_size
            seen = kv_ids == kv_ids + 0 * q_ids
            if left is not None:
                seen = seen & (q_ids + (offset - left) <= kv_ids)
            return seen if right is None else seen & (q_ids + (offset + right) >= kv_ids)

        super().__init__(shape, function, shard_count)

    def _key(self):
        return *super()._key(), self.window_size, self.offset


@dataclasses.dataclass
class NumpyMask(Mask):
    """Is a mask that is written out.

    Args:
      array: array of bools with two axes.

    Raises ValueError for another array.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.NumpyMask(np.eye(2, dtype=bool))[0]
        array([ True, False])
    """

    array: np.ndarray

    def __post_init__(self):
        if self.array.ndim != 2:
            raise ValueError("Expected a 2-dim array")
        if self.array.dtype != np.bool_:
            raise ValueError("Mask must be a boolean array")

    @property
    def shape(self):
        return self.array.shape

    def __getitem__(self, idx):
        return self.array[idx]

    def __eq__(self, other):
        return isinstance(other, NumpyMask) and np.array_equal(self.array, other.array)

    def __hash__(self):
        return hash((type(self), self.array.tobytes()))


@dataclasses.dataclass(eq=False)
class FullMask(Mask):
    """Lets all queries see all keys.

    Args:
      _shape: number of queries and number of keys.

    Raises ValueError if it is not a tuple.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.FullMask((2, 2))[:, :]
        array([[ True,  True],
               [ True,  True]])
    """

    _shape: tuple[int, int]

    def __post_init__(self):
        if not isinstance(self._shape, tuple):
            raise ValueError(f"Unsupported shape type: {type(self._shape)}")

    @property
    def shape(self):
        return self._shape

    def __getitem__(self, idx):
        if len(idx) != 2:
            raise NotImplementedError(f"Unsupported slice: {idx}. A mask takes two slices.")
        return np.ones([len(range(n)[part]) for n, part in zip(self.shape, idx, strict=True)], np.bool_)

    def __eq__(self, other):
        return isinstance(other, FullMask) and self.shape == other.shape

    def __hash__(self):
        return hash((type(self), self.shape))
