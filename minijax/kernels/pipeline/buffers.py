"""The buffers of a block that is copied while a kernel runs."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, errors, tree
from minijax.base.thread import outside_traces
from minijax.ir.types import ShapedArray
from minijax.kernels.blocks import BlockDim, Blocked, BlockSpec, Element, Indirect, Squeezed, size_of
from minijax.kernels.chips import infer_tiling
from minijax.kernels.mapping import dims_of
from minijax.kernels.memory import MemoryRef, MemorySpace, SemaphoreType, TpuMemorySpace
from minijax.kernels.operations.base import type_of
from minijax.kernels.operations.copies import make_async_copy, sync_copy
from minijax.kernels.operations.helpers import align_to
from minijax.kernels.operations.values import multiple_of
from minijax.kernels.parameters import Tiling
from minijax.kernels.pipeline.indices import Indices, has_indirect, numbers_of
from minijax.numpy.taking import where
from minijax.primitives.elementwise import add, rem, select
from minijax.primitives.gather_dims import Slice


class BufferType(enum.Enum):
    """Says how a pipeline uses the buffers of a block.

    Members:
      INPUT: blocks are copied in.
      OUTPUT: blocks are copied out.
      INPUT_OUTPUT: blocks are copied in and out, so that the body can add to them.
      MANUAL: the body copies.

    Example:
        >>> pltpu.BufferedRef.output(pl.BlockSpec((8, 128), lambda i: (i, 0)), jnp.float32).buffer_type
        <BufferType.OUTPUT: 2>
    """

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4


class BufferedRefBase:
    """Is the base class of what a pipeline can use as the buffers of a block.

    Example:
        >>> buffers = pltpu.BufferedRef.input(pl.BlockSpec((8, 128), lambda i: (i, 0)), jnp.float32)
        >>> isinstance(buffers, pltpu.BufferedRefBase), buffers.is_input
        (True, True)
    """

    @property
    def spec(self) -> BlockSpec:
        """The spec of the block."""
        raise NotImplementedError

    @property
    def buffer_type(self) -> BufferType:
        """How the pipeline uses the buffers."""
        raise NotImplementedError

    is_input = property(lambda self: self.buffer_type in (BufferType.INPUT, BufferType.INPUT_OUTPUT))
    is_output = property(lambda self: self.buffer_type in (BufferType.OUTPUT, BufferType.INPUT_OUTPUT))
    is_input_output = property(lambda self: self.buffer_type is BufferType.INPUT_OUTPUT)
    is_manual = property(lambda self: self.buffer_type is BufferType.MANUAL)
    is_buffered = is_trivial_windowing = property(lambda self: False)
    block_shape = property(lambda self: self.spec.block_shape)
    compute_index = property(lambda self: self.spec.index_map)
    has_indirect = property(lambda self: has_indirect(self.spec))

    @property
    def has_allocated_buffer(self) -> bool:
        """Whether the buffers are memory of the caller."""
        raise NotImplementedError

    def _of_subclasses(self, *args: Any) -> Any:
        raise NotImplementedError

    initialize_slots = advance_copy_in_slot = advance_wait_in_slot = advance_copy_out_slot = _of_subclasses
    advance_wait_out_slot = bind_existing_ref = unbind_refs = with_spec = get_dma_slice = _of_subclasses


@dataclasses.dataclass(frozen=True)
class BufferedRef(BufferedRefBase):
    """Is the buffers of a block, the numbers of those in use, and the semaphores of their copies.

    It is a pytree. `pltpu.BufferedRef.input(spec, dtype)` and its like make one of types of memory, for
    `pl.run_scoped`; then it holds references.

    Example:
        >>> spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        >>> pltpu.BufferedRef.input(spec, jnp.float32).window_ref.shape
        (2, 8, 128)
    """

    _spec: BlockSpec
    _buffer_type: BufferType
    _buffer_count: int
    _grid_rank: int | None
    window_ref: Any
    copy_in_slot: Any
    wait_in_slot: Any
    copy_out_slot: Any
    wait_out_slot: Any
    next_fetch: Any
    sem_recvs: Any
    sem_sends: Any
    tiling: Tiling | None
    is_trivial_windowing: bool = False
    has_allocated_buffer: bool = False

    spec = property(lambda self: self._spec)
    buffer_type = property(lambda self: self._buffer_type)
    buffer_count = property(lambda self: self._buffer_count)

    @classmethod
    def create(
        cls,
        spec: BlockSpec,
        dtype_or_type: Any,
        buffer_type: BufferType,
        buffer_count: int,
        grid_rank: int | None = None,
        use_lookahead: bool = False,
        source_memory_space: Any = MemorySpace.ANY,
        tiling: Tiling | None = None,
        is_trivial_windowing: bool = False,
    ) -> BufferedRef:
        """Returns the types of the buffers of a block, for `pl.run_scoped`.

        Args:
          spec: spec of the block.
          dtype_or_type: dtype of the array, or the type of the array, whose shape is that of the block without one.
          buffer_type: how the pipeline uses the buffers.
          buffer_count: number of buffers.
          grid_rank: number of axes of the grid.
          use_lookahead: whether blocks of later steps are copied as soon as a buffer is free.
          source_memory_space: memory space of the array: blocks of one in the block's own are not copied.
          tiling: tiling of the buffers.
          is_trivial_windowing: whether all steps have the same block, the whole array, which needs one buffer.
        """
        space = TpuMemorySpace.VMEM if spec.memory_space is None else spec.memory_space
        is_whole = spec.block_shape is None
        shape = dtype_or_type.shape if is_whole else tuple([n for n in map(size_of, _dims(spec)) if n is not None])
        dtype = getattr(dtype_or_type, "dtype", dtype_or_type)
        spec = spec.replace(block_shape=shape) if is_whole else spec
        slots = dict.fromkeys(("copy_in_slot", "wait_in_slot", "copy_out_slot", "wait_out_slot", "next_fetch"))
        shared: dict[str, Any] = dict(tiling=tiling, is_trivial_windowing=is_trivial_windowing, **slots)
        if buffer_type is BufferType.MANUAL or source_memory_space == space:
            return cls(spec, buffer_type, 0, grid_rank, None, sem_recvs=None, sem_sends=None, **shared)
        if is_trivial_windowing:
            buffer = MemoryRef(_array_type(shape, dtype), space)
            return cls(spec, buffer_type, 1, grid_rank, buffer, sem_recvs=None, sem_sends=None, **shared)
        if buffer_count < 1:
            raise ValueError(f"BufferedRef: buffer_count must be at least 1, got {buffer_count}")
        copies_in = buffer_type in (BufferType.INPUT, BufferType.INPUT_OUTPUT)
        copies_out = buffer_type in (BufferType.OUTPUT, BufferType.INPUT_OUTPUT)
        if copies_out and buffer_count > 2:
            raise NotImplementedError(
                f"BufferedRef: Buffer count >2 not supported for output buffered refs, got {buffer_count}. Use 2."
            )
        return cls(
            spec,
            buffer_type,
            buffer_count,
            grid_rank,
            MemoryRef(_array_type(_of_slots(buffer_count, shape, tiling), dtype), space),
            sem_recvs=SemaphoreType.DMA((buffer_count,)) if copies_in else None,
            sem_sends=SemaphoreType.DMA((buffer_count,)) if copies_out else None,
            has_allocated_buffer=True,
            **shared,
        )

    @classmethod
    def input(cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **kwargs: Any) -> BufferedRef:
        """Returns the types of the buffers of a block that is copied in; arguments as those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT, buffer_count, **kwargs)

    @classmethod
    def output(cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **kwargs: Any) -> BufferedRef:
        """Returns the types of the buffers of a block that is copied out; arguments as those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.OUTPUT, buffer_count, **kwargs)

    @classmethod
    def input_output(cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **kwargs: Any) -> BufferedRef:
        """Returns the types of the buffers of a block that is copied in and out; arguments as those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT_OUTPUT, buffer_count, **kwargs)

    @property
    def block_shape(self) -> Any:
        """The shape of the block, as in the spec."""
        return self.spec.block_shape

    @property
    def compute_index(self) -> Callable[..., Any] | None:
        """The index map of the spec."""
        return self.spec.index_map

    @property
    def is_buffered(self) -> bool:
        """Whether there are buffers."""
        return self._buffer_count > 0

    @property
    def use_lookahead(self) -> bool:
        """Whether the spec asks for copies of blocks further ahead."""
        return bool(self.spec.pipeline_mode and self.spec.pipeline_mode.use_lookahead)

    @property
    def has_indirect(self) -> bool:
        """Whether a dimension of the block takes elements by an array of indices."""
        return has_indirect(self.spec)

    def changes(self, grid: tuple[int, ...]) -> np.ndarray:
        """For each step of a grid, whether its block is another one than in the step before.

        Raises ValueError if the index map reads values that are known only when the kernel runs.
        """
        with outside_traces():
            try:
                rows = [[*map(_place, numbers_of(self.spec, ids))] for ids in np.ndindex(grid)]
            except (TypeError, ValueError, AssertionError, errors.JAXTypeError) as error:
                raise ValueError(
                    f"visualize: the blocks {self.spec.block_shape} of a pipeline depend on values of the kernel"
                ) from error
        return np.array([not i or row != rows[i - 1] for i, row in enumerate(rows)], bool)

    # ---- slots: numbers of copies, whose remainders are those of buffers -------------------------------

    def _slot(self, count: Any) -> Any:
        return rem(count, np.uint32(self._buffer_count))

    current_copy_in_slot = property(lambda self: self._slot(self.copy_in_slot))
    current_wait_in_slot = property(lambda self: self._slot(self.wait_in_slot))
    current_copy_out_slot = property(lambda self: self._slot(self.copy_out_slot))
    current_wait_out_slot = property(lambda self: self._slot(self.wait_out_slot))
    cumulative_copy_in = property(lambda self: self.copy_in_slot)
    cumulative_wait_in = property(lambda self: self.wait_in_slot)
    cumulative_copy_out = property(lambda self: self.copy_out_slot)
    cumulative_wait_out = property(lambda self: self.wait_out_slot)
    next_fetch_indices = property(lambda self: self.next_fetch)

    def initialize_slots(self) -> BufferedRef:
        """The same buffers, before the first copy."""
        if not self.is_buffered:
            return self
        zero = np.uint32(0)
        ins = dict(copy_in_slot=zero, wait_in_slot=zero) if self.is_input else {}
        outs = dict(copy_out_slot=zero, wait_out_slot=zero) if self.is_output else {}
        return self._with(**ins, **outs)

    def _with(self, **changes: Any) -> BufferedRef:
        return dataclasses.replace(self, **changes)

    def with_spec(self, spec: BlockSpec) -> BufferedRef:
        """The same buffers of a block with another spec."""
        return self._with(_spec=spec)

    def with_slot_index(
        self, copy_in_slot: Any = None, copy_out_slot: Any = None, wait_in_slot: Any = None, wait_out_slot: Any = None
    ) -> BufferedRef:
        """The same buffers with other slots; None leaves one as it is."""
        given = dict(
            copy_in_slot=copy_in_slot,
            copy_out_slot=copy_out_slot,
            wait_in_slot=wait_in_slot,
            wait_out_slot=wait_out_slot,
        )
        return self._with(**{name: slot for name, slot in given.items() if slot is not None})

    @property
    def slots(self) -> list[Any]:
        """The slots that change from step to step."""
        return [getattr(self, name) for name in self._slot_names()]

    def with_slots(self, slots: Sequence[Any]) -> BufferedRef:
        """The same buffers with other slots, in the order of `slots`."""
        return self._with(**dict(zip(self._slot_names(), slots, strict=True)))

    def captured_by(self, trace: Any, is_serial: bool) -> BufferedRef:
        """The same buffers in the body of a loop, which captures what stays from step to step, in jax's order.

        Where steps run one after the other, no slot changes.
        """
        trace.capture([] if self.window_ref is None else [self.window_ref])
        names = [*self._slot_names(True), *(self._slot_names() if is_serial else [])]
        steady = {name: trace.instantiated(np.uint32(0)) for name in names}
        trace.capture([x for x in (self.sem_recvs, self.sem_sends) if x is not None])
        return self._with(**steady)

    def _slot_names(self, steady: bool = False) -> list[str]:
        names = "copy_in_slot", "wait_in_slot", "next_fetch", "copy_out_slot", "wait_out_slot"
        stays = lambda name: self.is_trivial_windowing and name != "wait_in_slot"  # noqa: E731
        return [name for name in names if getattr(self, name) is not None and stays(name) == steady]

    def with_next_fetch(self, next_fetch: Any = None) -> BufferedRef:
        """The same buffers with the indices of the block that is fetched next."""
        return self._with(next_fetch=next_fetch)

    def _advanced(self, name: str, predicate: Any) -> BufferedRef:
        slot = getattr(self, name)
        if slot is None:
            return self
        return self._with(**{name: select(predicate, add(slot, np.uint32(1)), slot)})

    def advance_copy_in_slot(self, predicate: Any = True) -> BufferedRef:
        """The buffers after the start of a copy in, if `predicate` holds."""
        return self._advanced("copy_in_slot", predicate)

    def advance_wait_in_slot(self, predicate: Any = True) -> BufferedRef:
        """The buffers after the last use of a block that was copied in, if `predicate` holds."""
        return self._advanced("wait_in_slot", predicate)

    def advance_copy_out_slot(self, predicate: Any = True) -> BufferedRef:
        """The buffers after the start of a copy out, if `predicate` holds."""
        return self._advanced("copy_out_slot", predicate)

    def advance_wait_out_slot(self, predicate: Any = True) -> BufferedRef:
        """The buffers after the end of a copy out, if `predicate` holds."""
        return self._advanced("wait_out_slot", predicate)

    # ---- references ------------------------------------------------------------------------------------

    @property
    def current_ref(self) -> Any:
        """The reference to the block that the body uses."""
        if self.is_trivial_windowing or not self.is_buffered:
            return self.window_ref
        slot = self.current_copy_out_slot if self.is_output else self.current_wait_in_slot
        return self.window_at(slot)

    def bind_existing_ref(self, window_ref: Any, indices: Indices) -> BufferedRef:
        """The block as a view of an array that is in the block's memory already; with buffers, the same."""
        if self.is_buffered:
            return self
        return self._with(window_ref=window_ref.at[self.compute_slice(indices)])

    def unbind_refs(self) -> BufferedRef:
        """The same without the views that `bind_existing_ref` made."""
        return self if self.is_buffered else self._with(window_ref=None)

    def compute_slice(self, grid_indices: Indices) -> tuple:
        """The index of the block of a step in its array."""
        pairs = zip(_dims(self.spec), numbers_of(self.spec, grid_indices), strict=True)
        return tuple([_selected(d, i) for d, i in pairs])

    def get_dma_slice(self, src_ty: Any, grid_indices: Indices) -> tuple:
        """The index of the block of a step in its array.

        The last block on an axis may stick out of the array; then it is copied as far as the array's tiles go. Raises
        ValueError for a block that does not consist of tiles.
        """
        numbers, tiles = numbers_of(self.spec, grid_indices), infer_tiling(src_ty, self.tiling)
        return tuple(map(_tiled, _dims(self.spec), numbers, src_ty.shape, tiles))

    def kept(self, selected: Sequence[Any]) -> tuple:
        """The index in a buffer of the elements that an index selects in the array."""
        return tuple(
            [Slice(0, _count(s)) for s, d in zip(selected, _dims(self.spec), strict=True) if type(d) is not Squeezed]
        )

    def window_at(self, slot: Any, kept: tuple = ()) -> Any:
        """The view of a buffer, or of the elements that an index selects in it."""
        length, *rest = type_of(self.window_ref).shape
        if rest:
            return self.window_ref.at[(slot, *(kept or [slice(None)] * len(rest)))]
        first = slot * (n := length // self._buffer_count)  # the buffers of vectors stand one after the other
        return self.window_ref.at[Slice(first + kept[0].start, kept[0].size) if kept else Slice(first, n)]

    def _window(self, slot: Any, selected: Sequence[Any]) -> Any:
        return self.window_at(slot, self.kept(selected))

    def copy_in(self, src_ref: Any, grid_indices: Indices) -> None:
        """Starts the copy of a step's block into a buffer."""
        slot = self.current_copy_in_slot
        selected = self.get_dma_slice(type_of(src_ref), grid_indices)
        make_async_copy(src_ref.at[selected], self._window(slot, selected), self.sem_recvs.at[slot]).start()

    def wait_in(self, src_ref: Any, grid_indices: Indices) -> None:
        """Waits until the block of a step is in its buffer."""
        selected = self.get_dma_slice(type_of(src_ref), grid_indices)
        slot = self.current_wait_in_slot
        make_async_copy(src_ref.at[selected], self._window(slot, selected), self.sem_recvs.at[slot]).wait()

    def copy_out(self, dst_ref: Any, grid_indices: Indices) -> None:
        """Starts the copy of a step's block out of its buffer."""
        slot = self.current_copy_out_slot
        selected = self.get_dma_slice(type_of(dst_ref), grid_indices)
        buffer, target = self._window(slot, selected), dst_ref.at[selected]
        if self._buffer_count == 1:  # the body writes into the one buffer again in the next step
            sync_copy(buffer, target)
        else:
            make_async_copy(buffer, target, self.sem_sends.at[slot]).start()

    def wait_out(self, dst_ref: Any, grid_indices: Indices) -> None:
        """Waits until the block of a step is out of its buffer."""
        slot = self.current_wait_out_slot
        selected = self.get_dma_slice(type_of(dst_ref), grid_indices)
        if self._buffer_count > 1:
            make_async_copy(self._window(slot, selected), dst_ref.at[selected], self.sem_sends.at[slot]).wait()


_STATIC = ("_spec", "_buffer_type", "_buffer_count", "_grid_rank", "tiling", "is_trivial_windowing")
tree.register_dataclass(
    BufferedRef,
    data_fields=[f.name for f in dataclasses.fields(BufferedRef) if f.name not in (*_STATIC, "has_allocated_buffer")],
    meta_fields=[*_STATIC, "has_allocated_buffer"],
)


def _of_slots(count: int, shape: Sequence[int], tiling: Tiling | None) -> tuple[int, ...]:
    """The shape of the buffers of a block: those of vectors are one vector, which has no unused tiles."""
    is_vector = len(shape) == 1 and tiling is not Tiling.SPARSE_CORE
    return (count * shape[0],) if is_vector else (count, *shape)


def _place(number: Any) -> tuple[int, ...]:
    return (int(number.start), int(number.size)) if isinstance(number, Slice) else (int(number),)


def _count(selected: Any) -> Any:
    """The number of elements that an entry of an index selects: a slice, or indices."""
    return selected.size if isinstance(selected, Slice) else math.prod(selected.shape)


def _dims(spec: BlockSpec) -> tuple[BlockDim, ...]:
    return dims_of(spec.block_shape or (), "emit_pipeline")


def _array_type(shape: tuple, dtype: Any) -> ShapedArray:
    return ShapedArray(tuple(shape), dtypes.canonicalize_dtype(dtype))


def _selected(dim: BlockDim, number: Any) -> Any:
    """The elements of a dimension that a block takes."""
    if type(dim) in (Squeezed, Indirect) or isinstance(number, Slice):
        return number
    if type(dim) is Element:
        return Slice(number, dim.block_size)
    if not isinstance(dim, Blocked):
        raise NotImplementedError(f"emit_pipeline: a block with the dimension {dim} is not supported")
    size = dim.block_size
    return Slice(size * number, size)


def _tiled(dim: BlockDim, number: Any, n: int, tile: int) -> Any:
    """The elements of a dimension of size `n` that a copy takes, a number of tiles where a block sticks out."""
    part = _selected(dim, number)
    if type(dim) in (Squeezed, Indirect) or type(dim) is Blocked and not n % dim.block_size:
        return part
    if dim.block_size % tile:
        raise ValueError(
            f"emit_pipeline: a block of {dim.block_size} elements must be a multiple of the tile of {tile}"
        )
    if type(dim) is Blocked:
        size = where(number == n // dim.block_size, align_to(n % dim.block_size, tile), dim.block_size)
        size = multiple_of(size, tile)
        return Slice(number * dim.block_size, size)
    is_beyond = part.start + part.size > n
    size = where(is_beyond, align_to(n - part.start, tile), part.size)
    return Slice(part.start, multiple_of(size, tile))
