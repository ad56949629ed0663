"""Which blocks of a mask a kernel visits, and which parts of the data it needs there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.kernels.ops.splash_masks import FullMask, Mask, MultiHeadMask, _ComputableMask

EMPTY, PARTIAL, FULL = 0, 1, 2
MaskFunction = Callable[[Any, Any], Any]


class MaskInfo(NamedTuple):
    """Tells a kernel which blocks of scores it computes. The arrays have the axes (heads, blocks of queries, of keys).

    Attributes:
      data_next: number of the block of keys that a step reads, or of queries in the kernel for derivatives by keys.
      mask_next: number of the block of the mask that a step reads.
      block_mask: 0 for blocks that are not seen, 1 for those that are seen in part, 2 for those that are seen.
      partial_mask_blocks: the different blocks of masks that are seen in part.
      q_sequence: the numbers of the queries, for masks that are computed in the kernel.
      is_dynamic_mask: whether the mask was an array of the program.
    """

    data_next: Any
    mask_next: Any
    block_mask: Any
    partial_mask_blocks: Any
    q_sequence: Any
    is_dynamic_mask: bool | None = None


def check_mask(mask: Mask) -> None:
    """Raises ValueError if a query sees no key: its softmax is undefined."""
    rows = mask.shape[-2]
    step = max(1, 2**26 // mask.shape[-1])
    for start in range(0, rows, step):
        if not np.all(np.any(mask[slice(start, min(start + step, rows)), slice(None)], axis=-1)):
            raise ValueError(
                "Some rows of the mask (along the kv dimension) are all zeros. This is an invalid softmax: let each "
                "query see a key."
            )


class _Cut(NamedTuple):
    """How a mask is cut: the size of blocks, the parts of heads and queries, and the kernel that it is for."""

    block: tuple[int, int]
    head_shards: int
    q_seq_shards: int
    is_dkv: bool

    def check(self, shape: Sequence[int]) -> None:
        """Raises ValueError if the parts do not divide a mask of this shape."""
        heads, q_len, kv_len = shape
        per_shard = q_len // self.q_seq_shards
        for name, part, of, total in (
            ("head_shards", self.head_shards, "head_count", heads),
            ("q_seq_shards", self.q_seq_shards, "q_seq_len", q_len),
            ("q_block_size", self.block[0], "q_seq_len_per_shard", per_shard),
            ("kv_block_size", self.block[1], "kv_seq_len", kv_len),
        ):
            if total % part:
                raise ValueError(f"{name}={part} should divide {of}={total}.")


def _small(array: np.ndarray, downcast: bool) -> np.ndarray:
    """Indices in the smallest type that holds them."""
    if not downcast:
        return array.astype(np.int32)
    kinds = (np.int8, np.int16, np.int32)
    return array.astype(next(k for k in kinds if array.size == 0 or array.max() <= np.iinfo(k).max))


class _Blocks:
    """The kinds of a mask's blocks, and the numbers of those that are seen in part among all different ones."""

    def __init__(self, mask: Mask, block: tuple[int, int], known: dict[bytes, int], partial: list[np.ndarray]):
        rows, columns = (n // size for n, size in zip(mask.shape, block, strict=True))
        self.kinds = np.full((rows, columns), FULL, np.int8)
        self.numbers = np.zeros((rows, columns), np.int64)
        if isinstance(mask, FullMask):
            return
        for i, j in np.ndindex(rows, columns):
            part = np.asarray(mask[tuple([slice(n * s, (n + 1) * s) for n, s in zip((i, j), block, strict=True)])])
            if part.all():
                continue
            self.kinds[i, j] = PARTIAL if part.any() else EMPTY
            if self.kinds[i, j] == PARTIAL:
                number = known.setdefault(part.tobytes(), len(known))
                if number == len(partial):
                    partial.append(part)
                self.numbers[i, j] = number


def process_mask(
    mask: MultiHeadMask,
    block_shape: tuple[int, int],
    *,
    is_dkv: bool = False,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    shrink_grid: bool = True,
) -> tuple[MaskInfo, MaskFunction | None]:
    """Finds the blocks of a mask that a kernel visits.

    Args:
      mask: mask of all heads.
      block_shape: number of queries and number of keys of a block.
      is_dkv: whether it is for the kernel that computes derivatives by keys and values.
      downcast_smem_data: whether indices have the smallest type that holds them.
      head_shards: number of devices among which the heads are divided.
      q_seq_shards: number of devices among which the queries are divided.
      shrink_grid: whether blocks that are not seen are left out, if all heads have the same mask.

    Returns:
      A `MaskInfo`, and the function that computes the mask in the kernel, or None if its blocks are read.

    Raises ValueError for sizes that do not divide the mask.
    """
    cut = _Cut((block_shape[0], block_shape[1]), head_shards, q_seq_shards, is_dkv)
    cut.check(mask.shape)
    return _processed(mask, cut, downcast_smem_data, shrink_grid)


process_mask_dkv = functools.partial(process_mask, is_dkv=True)


@functools.lru_cache(maxsize=12)
def _processed(mask: MultiHeadMask, cut: _Cut, downcast: bool, shrinks: bool) -> tuple[MaskInfo, MaskFunction | None]:
    unique: dict[Mask, int] = {}
    numbers = [unique.setdefault(head, len(unique)) for head in mask.masks]
    known: dict[bytes, int] = {}
    partial: list[np.ndarray] = []
    blocks = [_Blocks(head, cut.block, known, partial) for head in unique]
    parts = [_Part([blocks[n] for n in shard], cut.is_dkv) for shard in _shards(numbers, cut.head_shards)]
    only = next(iter(unique)) if len(unique) == 1 else None
    kinds, data_next, mask_next = _joined(parts, cut, shrinks and only is not None)
    computed = only if isinstance(only, _ComputableMask) else None
    stacked = np.stack(partial) if partial and computed is None else None
    info = MaskInfo(
        _small(data_next, downcast),
        None if stacked is None else _small(mask_next, downcast),
        _small(kinds, downcast),
        np.swapaxes(stacked, -1, -2) if stacked is not None and cut.is_dkv else stacked,
        None if computed is None else computed.q_sequence,
    )
    return info, None if computed is None else computed.mask_function


def _shards(numbers: Sequence[int], count: int) -> list[Sequence[int]]:
    """The masks of each device's heads; one of a device if its heads have the same, on all devices."""
    heads = len(numbers) // count
    shards = [numbers[i : i + heads] for i in range(0, len(numbers), heads)]
    return [shard[:1] for shard in shards] if all(len(set(shard)) == 1 for shard in shards) else shards


def _joined(parts: Sequence[_Part], cut: _Cut, shrinks: bool) -> Sequence[np.ndarray]:
    """The arrays of all devices, with as many blocks in a row for each, or in a column for derivatives by keys."""
    found = [list(part.cut(cut.q_seq_shards, shrinks)) for part in parts]
    axis = -2 if cut.is_dkv else -1
    most = max(piece[0].shape[axis] for pieces in found for piece in pieces)
    whole = [[[_filled(a, most, axis, k > 0) for k, a in enumerate(piece)] for piece in pieces] for pieces in found]
    rows = [[np.concatenate(arrays, 1) for arrays in zip(*pieces, strict=True)] for pieces in whole]
    return [np.concatenate(arrays) for arrays in zip(*rows, strict=True)]


def _filled(array: np.ndarray, size: int, axis: int, with_last: bool) -> np.ndarray:
    """The array with more blocks at the end, which are not seen."""
    missing = [(0, 0)] * array.ndim
    missing[axis] = (0, size - array.shape[axis])
    return np.pad(array, missing, mode="edge") if with_last else np.pad(array, missing)


class _Part:
    """The blocks of the heads of one device."""

    def __init__(self, blocks: Sequence[_Blocks], is_dkv: bool):
        self.kinds = np.stack([b.kinds for b in blocks])
        self.numbers = np.stack([b.numbers for b in blocks])
        self.is_dkv = is_dkv

    def cut(self, shards: int, shrinks: bool) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each part of the queries the kinds of blocks, and which data and blocks of masks come next."""
        for kinds, numbers in zip(np.split(self.kinds, shards, 1), np.split(self.numbers, shards, 1), strict=True):
            places = np.broadcast_to(np.indices(kinds.shape)[1 if self.is_dkv else 2], kinds.shape)
            arrays = [kinds, places, numbers]
            if shrinks:
                arrays = self._without_empty(arrays)
            kinds, places, numbers = arrays
            yield kinds, self._next(places, kinds != EMPTY), self._next(numbers, kinds == PARTIAL)

    def _without_empty(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The blocks that are seen: first in each row of blocks, or last in each column for derivatives by keys."""
        axis = 1 if self.is_dkv else 2
        seen = arrays[0] != EMPTY
        order = np.argsort(seen if self.is_dkv else ~seen, axis=axis, kind="stable")
        count = max(1, int(seen.sum(axis).max()))
        kept = slice(seen.shape[axis] - count, None) if self.is_dkv else slice(count)
        at = (slice(None), kept) if self.is_dkv else (slice(None), slice(None), kept)
        return [np.take_along_axis(a, order, axis)[at] for a in arrays]

    def _next(self, values: np.ndarray, needed: np.ndarray) -> np.ndarray:
        """The value of the next step that needs one, in the order of the steps, where a step needs none."""
        turn = (0, 2, 1) if self.is_dkv else (0, 1, 2)
        flat, is_needed = values.transpose(turn).reshape(-1), needed.transpose(turn).reshape(-1)
        if not is_needed.any():
            return np.zeros(values.shape, np.int64)
        steps = np.flatnonzero(is_needed)
        after = steps[np.searchsorted(steps, np.arange(flat.size)) % len(steps)]
        shape = values.transpose(turn).shape
        return flat[after].reshape(shape).transpose(turn)


# ---- masks that are arrays of the program --------------------------------------------------------------


def process_dynamic_mask(
    mask: Any,
    block_shape: tuple[int, int],
    *,
    is_dkv: bool = False,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    shrink_grid: bool = True,
) -> tuple[MaskInfo, None]:
    """Finds the blocks that a kernel visits, for a mask that is an array of the program. See `process_mask`.

    Args:
      mask: array of bools, of the shape (heads, queries, keys).
      block_shape: number of queries and number of keys of a block.
      is_dkv: whether it is for the kernel that computes derivatives by keys and values.
      downcast_smem_data: whether indices have the smallest type that holds them.
      head_shards: number of devices among which the heads are divided.
      q_seq_shards: number of devices among which the queries are divided.
      shrink_grid: ignored: which blocks are seen is known only when the program runs.

    Raises ValueError for sizes that do not divide the mask, or a mask without three axes.
    """
    if len(mask.shape) != 3:
        raise ValueError(f"Expected a 3-dim mask, instead got: mask.shape={mask.shape}")
    if mask.dtype != jnp.bool_:
        raise ValueError(f"Expected a bool mask, instead got: mask.dtype={mask.dtype}")
    cut = _Cut((block_shape[0], block_shape[1]), head_shards, q_seq_shards, is_dkv)
    cut.check(mask.shape)
    heads, q_len, kv_len = mask.shape
    rows, columns = q_len // block_shape[0], kv_len // block_shape[1]
    blocks = mask.reshape(heads, rows, block_shape[0], columns, block_shape[1]).swapaxes(2, 3)
    some, every = jnp.any(blocks, (3, 4)), jnp.all(blocks, (3, 4))
    kinds = jnp.where(every, FULL, jnp.where(some, PARTIAL, EMPTY))
    shape = heads, rows, columns
    head, row, column = np.indices(shape)
    own_head, own_row = head % (heads // head_shards), row % (rows // q_seq_shards)  # numbers on one device
    places = own_row if is_dkv else column
    numbers = (own_head * (rows // q_seq_shards) + own_row) * columns + column
    size = np.int8 if downcast_smem_data else np.int32
    kind_of = lambda a: np.int32 if not downcast_smem_data else _small(a, True).dtype  # noqa: E731
    info = MaskInfo(
        jnp.where(some, places, 0).astype(kind_of(places)),
        jnp.where(kinds == PARTIAL, numbers, 0).astype(kind_of(numbers)),
        kinds.astype(size),
        blocks.swapaxes(-1, -2) if is_dkv else blocks,
        None,
        True,
    )
    return info, None


process_dynamic_mask_dkv = functools.partial(process_dynamic_mask, is_dkv=True)
