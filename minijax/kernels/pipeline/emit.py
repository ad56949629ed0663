"""`emit_pipeline`: a loop over a grid within a kernel, which copies blocks while its body runs."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.ir import state
from minijax.ir.body import argument_names, signature_of
from minijax.ir.context import extended_name_stack
from minijax.ir.types import typeof
from minijax.kernels.blocks import BlockSpec
from minijax.kernels.grid import PipelineGrid, within
from minijax.kernels.memory import MemorySpace
from minijax.kernels.operations.base import is_view, type_of
from minijax.kernels.operations.copies import sync_copy
from minijax.kernels.operations.helpers import when
from minijax.kernels.operations.scoped import run_scoped
from minijax.kernels.parameters import GridDimensionSemantics, Tiling
from minijax.kernels.pipeline.buffers import BufferedRef, BufferType
from minijax.kernels.pipeline.indices import (
    Indices,
    after,
    before,
    both,
    differ,
    either,
    following,
    is_static,
    is_zero,
    moved,
    negated,
    part_of_core,
    without_single,
)
from minijax.kernels.timeline import Copied, Timeline, timeline, watches
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import add, bitwise_and, bitwise_or, select


@dataclasses.dataclass(frozen=True)
class _Pipeline:
    """A pipeline: its body, and the grid of this core with its offsets on the whole grid."""

    body: Callable[..., None]
    grid: Indices
    offsets: Indices
    specs: tuple[Any, Any]
    tiling: Tiling | None
    traces_scopes: bool
    is_serial: bool
    gives_indices: bool

    def scope(self, name: str) -> AbstractContextManager:
        return extended_name_stack(name) if self.traces_scopes else nullcontext()

    def __call__(
        self, *refs: Any, scratches: Any = None, allocations: Any = None, body_prologue: Callable | None = None
    ) -> None:
        steps = self.count()
        run = lambda brefs: self._run(refs, brefs, steps, tuple(scratches or ()), body_prologue)  # noqa: E731
        if allocations is None:
            run_scoped(run, self.allocations(*refs))
            return
        run(tuple(allocations) if isinstance(allocations, list) else allocations)

    # ---- memory ----------------------------------------------------------------------------------------

    def allocations(self, *refs: Any) -> tuple:
        """The types of the buffers of all blocks. Raises ValueError unless there is a reference for each spec."""
        ins, outs = self.specs
        _, *found = self._flat(refs)
        kinds = [BufferType.INPUT] * len(found[0]) + [BufferType.OUTPUT] * len(found[1])
        leaves = [*found[0], *found[1]]
        made = [self._buffers(s, r, kind) for (s, r), kind in zip(leaves, kinds, strict=True)]
        n = len(found[0])
        trees = [tree.tree_structure(specs, _is_spec) for specs in (tuple(ins), _tuple(outs))]
        return (*trees[0].unflatten(made[:n]), *trees[1].unflatten(made[n:]))

    def _flat(self, refs: Sequence) -> tuple:
        """The trees of references, and the pairs of specs and references of inputs and of results."""
        ins, outs = tuple(self.specs[0]), _tuple(self.specs[1])
        if len(refs) != len(ins) + len(outs):
            raise ValueError(
                f"emit_pipeline: the pipeline takes {len(ins)} inputs and {len(outs)} results, as there are specs, got "
                f"{len(refs)} references"
            )
        given = refs[: len(ins)], refs[len(ins) :]
        pairs = []
        for specs, part in zip((ins, outs), given, strict=True):
            leaves, treedef = tree.flatten(specs, _is_spec)
            found, other = tree.flatten(part, is_view)
            if treedef != other:
                raise ValueError(f"emit_pipeline: specs {treedef} and references {other} are different trees")
            pairs.append(list(zip(leaves, found, strict=True)))
        return given, *pairs

    def _buffers(self, spec: BlockSpec, ref: Any, kind: BufferType) -> BufferedRef:
        aval = type_of(ref)
        if spec.block_shape is not None and len(spec.block_shape) != len(aval.shape):
            raise ValueError(
                f"emit_pipeline: the block shape {tuple(spec.block_shape)} must have as many dimensions as the array, "
                f"whose shape is {aval.shape}"
            )
        mode = spec.pipeline_mode
        space = getattr(typeof(getattr(ref, "ref", ref)), "memory_space", None)
        return BufferedRef.create(
            spec,
            aval,
            kind,
            2 if mode is None else mode.buffer_count,
            source_memory_space=MemorySpace.ANY if space is None else space,
            tiling=self.tiling,
            is_trivial_windowing=self._is_whole(spec, aval),
        )

    def _is_whole(self, spec: BlockSpec, aval: Any) -> bool:
        """Whether each step has the whole array as its block."""
        if spec.block_shape is not None and tuple(spec.block_shape) != tuple(aval.shape):
            return False
        if spec.pipeline_mode is not None:
            return False
        return is_zero(spec.replace(block_shape=aval.shape), len(self.grid))

    # ---- the loop --------------------------------------------------------------------------------------

    def _run(self, refs: Sequence, allocations: tuple, steps: Any, scratches: tuple, prologue: Callable | None) -> None:
        _, ins, outs = self._flat(refs)
        brefs, treedef = tree.flatten(tuple(allocations), lambda x: isinstance(x, BufferedRef))
        arrays = [r for _, r in (*ins, *outs)]
        if len(brefs) != len(arrays):
            raise ValueError(f"emit_pipeline: allocations hold {len(brefs)} buffers for {len(arrays)} references")
        run = _Run(self, arrays, treedef, scratches, prologue, steps, max([2, *[b.buffer_count for b in brefs]]))
        for watch in watches():
            if (shown := self._shown(brefs)) is not None:
                watch.found.append(shown)
        brefs = [b.initialize_slots() for b in brefs]
        if is_static(steps):
            if steps:
                run.loop(brefs)
        else:
            when(steps > 0)(lambda: run.loop(brefs))

    def _shown(self, brefs: Sequence[BufferedRef]) -> Timeline | None:
        """The copies of each step; None if the grid is known only when the kernel runs."""
        if not all(map(is_static, self.grid)):
            return None
        grid = tuple(map(int, self.grid))
        trees = [tree.tree_structure(tuple(specs), _is_spec) for specs in (self.specs[0], _tuple(self.specs[1]))]
        given = tree.treedef_tuple([*trees[0].children(), *trees[1].children()])
        names = argument_names(signature_of(self.body), tree.treedef_tuple((given, tree.tree_structure({}))), ())
        copied = [
            Copied(name, b.changes(grid), b.buffer_count, b.is_input, b.is_output, b.is_trivial_windowing)
            for name, b in zip(names, brefs, strict=True)
            if b.is_buffered
        ]
        return timeline(getattr(self.body, "__name__", "body"), grid, copied, self.is_serial)

    def count(self) -> Any:
        """The number of steps."""
        if all(map(is_static, self.grid)):
            return math.prod(map(int, self.grid))
        total: Any = 1
        for n in self.grid:
            total = total * n
        return total


@dataclasses.dataclass(frozen=True)
class _Moment:
    """A step, and the indices around it: those before it, its own, and those after it."""

    step: Any
    steps: Any  # the number of steps
    is_first: Any
    is_last: Any
    around: tuple[Indices, ...]
    counted: Indices  # the indices of the step on the grid of this core

    own = property(lambda self: self.around[1])


@dataclasses.dataclass(frozen=True)
class _Run:
    """A run of a pipeline on arrays."""

    pipeline: _Pipeline
    arrays: Sequence[Any]
    treedef: Any  # of the buffers, as the body gets their references
    scratches: tuple
    prologue: Callable | None
    steps: Any
    ahead: int  # number of steps whose indices are computed, after each step

    def moment(self, step: Any, indices: Indices) -> _Moment:
        """A step with the indices around it."""
        grid, offsets = self.pipeline.grid, self.pipeline.offsets
        steps = self.pipeline.count()
        first, is_last = step == 0, step == steps - 1
        own = moved(indices, offsets)
        around = [moved(at := before(indices, grid), offsets), own]
        at = indices
        for _ in range(self.ahead):
            at = after(at, grid)
            around.append(moved(at, offsets))
        return _Moment(step, steps, first, is_last, tuple(around), indices)

    def loop(self, brefs: list[BufferedRef]) -> None:
        """Runs all steps."""
        zeros, is_serial = (0,) * len(self.pipeline.grid), self.pipeline.is_serial
        if not is_serial:
            now = self.moment(0, zeros)
            brefs = [b.with_next_fetch((np.int32(0),) * len(zeros) if self._is_far_ahead(b) else None) for b in brefs]
            brefs = [self.begun(b, x, now) for b, x in zip(brefs, self.arrays, strict=True)]
        slots_of = lambda brefs: [] if is_serial else [b.slots for b in brefs]  # noqa: E731
        with_slots = lambda brefs, slots: [b.with_slots(own) for b, own in zip(brefs, slots, strict=True)]  # noqa: E731

        def body(i, carry):
            slots, indices = carry[0], without_single(carry[1], self.pipeline.grid)
            trace = state.current_trace()
            own = [b.captured_by(trace, is_serial) for b in brefs]
            stepped = self.stepped(own if is_serial else with_slots(own, slots), self.moment(i, indices))
            return slots_of(stepped), after(indices, self.pipeline.grid)

        slots, indices = fori_loop(0, self.steps, body, (slots_of(brefs), zeros))
        if is_serial:
            return
        brefs = with_slots(brefs, slots)
        last = before(indices, self.pipeline.grid)
        end = self.moment(self.steps - 1, last)
        for b, x in zip(brefs, self.arrays, strict=True):
            when(end.is_last)(lambda b=b, x=x: self.ended(b, x, end))

    @staticmethod
    def _is_far_ahead(b: BufferedRef) -> bool:
        return b.is_buffered and b.is_input and b.use_lookahead and not b.is_trivial_windowing

    def begun(self, b: BufferedRef, array: Any, now: _Moment) -> BufferedRef:
        """The buffers after the copies that are started before the first step."""
        if b.is_trivial_windowing:
            if b.is_input and b.is_buffered:
                sync_copy(array, b.window_ref)
            return b
        if not (b.is_input and b.is_buffered):
            return b
        for k in range(b.buffer_count - 1):
            with self.pipeline.scope(f"ep_initialize_{k}"):
                if k == 0:
                    b.copy_in(array, now.own if b.next_fetch is None else self._recorded(b.next_fetch))
                    b = b.advance_copy_in_slot(True)
                    continue
                if b.next_fetch is not None:
                    b = self._copied_far_ahead(b, array, 1)
                    continue
                changed = both(True, differ(b.spec, now.around[k + 1], now.around[k]))
                when(changed)(lambda k=k, b=b: b.copy_in(array, now.around[k + 1]))
                b = b.advance_copy_in_slot(changed)
        return b

    def _recorded(self, indices: Indices) -> Indices:
        """As `moved`, by operations that are recorded for ints too, as in jax's jaxprs."""
        number = lambda i: np.int32(i) if is_static(i) else i  # noqa: E731
        return tuple([add(i, number(o)) for i, o in zip(indices, self.pipeline.offsets, strict=True)])

    def ended(self, b: BufferedRef, array: Any, end: _Moment) -> None:
        """Waits for the last copy out."""
        if not (b.is_output and b.is_buffered):
            return
        with self.pipeline.scope("ep_finalize"):
            if b.is_trivial_windowing:
                sync_copy(b.window_ref, array)
            else:
                b.wait_out(array, end.own)

    def stepped(self, brefs: list[BufferedRef], now: _Moment) -> list[BufferedRef]:
        """The buffers after a step."""
        pairs = list(zip(brefs, self.arrays, strict=True))
        if self.pipeline.is_serial:
            self._serial(pairs, now)
            return brefs
        brefs = [self._copied_in(b, x, now) for b, x in pairs]
        pairs = list(zip(brefs, self.arrays, strict=True))
        for b, x in pairs:
            self._awaited(b, x, now)
        self._call_body([b.bind_existing_ref(x, now.own).current_ref for b, x in pairs], now)
        brefs = [self._copied_out(b, x, now) for b, x in pairs]
        brefs = [self._waited_out(b, x, now) for b, x in zip(brefs, self.arrays, strict=True)]
        return [self._released(b, now) for b in brefs]

    def _guarded(self, predicate: Any, scope: str, does: Callable[[], None] | None) -> None:
        def run():
            if does is not None:
                with self.pipeline.scope(scope):
                    does()

        when(predicate)(run)

    def _copied_in(self, b: BufferedRef, array: Any, now: _Moment) -> BufferedRef:
        """Starts the copy of a block ahead."""
        if b.is_trivial_windowing or not b.is_buffered:
            return b
        k = b.buffer_count
        target = now.around[k]
        is_other = differ(b.spec, now.around[max(k - 1, 1)], now.around[k if k > 1 else 0])
        predicate = both(is_other, negated(now.step >= now.steps - k + 1))
        if k == 1:
            predicate = either(predicate, now.is_first)
        if not b.is_input:  # jax's jaxprs have the condition for results too
            return b
        if b.next_fetch is not None:
            return self._copied_far_ahead(b, array)
        self._guarded(predicate, "ep_copy_in", lambda: b.copy_in(array, target))
        return b.advance_copy_in_slot(both(predicate, b.is_input))

    def _copied_far_ahead(self, b: BufferedRef, array: Any, most: int | None = None) -> BufferedRef:
        """Starts copies of the next other blocks, as many as there are free buffers, and at most `most`."""
        grid, offsets = self.pipeline.grid, self.pipeline.offsets
        limit = add(b.wait_in_slot, np.uint32(b.buffer_count))
        if most is not None:
            end = add(b.copy_in_slot, np.uint32(most))
            limit = select(limit < end, limit, end)

        def is_free(state):
            _, at, slot = state
            has_buffer, is_true = slot < limit, np.bool_(True)
            is_there = functools.reduce(bitwise_and, [i < n for i, n in zip(at, grid, strict=True)], is_true)
            return bitwise_and(bitwise_and(is_true, has_buffer), is_there)

        def fetch(state):
            last, at, slot = state
            before, now = moved(last, offsets), moved(at, offsets)
            changed = differ(b.spec, before, now, lambda x, y: bitwise_or(np.bool_(x) if is_static(x) else x, y))
            when(changed)(lambda: b.with_slot_index(copy_in_slot=slot).copy_in(array, now))
            slot = add(slot, convert(changed, np.dtype(np.uint32)))
            return at, following(at, grid), slot

        state = b.next_fetch, following(b.next_fetch, grid), b.copy_in_slot
        last, _, slot = while_loop(is_free, fetch, state)
        return b.with_slot_index(copy_in_slot=slot).with_next_fetch(last)

    def _awaited(self, b: BufferedRef, array: Any, now: _Moment) -> None:
        """Waits for the copy of the block of this step, unless the step before had the same one."""
        if b.is_trivial_windowing or not b.is_buffered:
            return
        predicate = either(differ(b.spec, now.own, now.around[0]), now.is_first)
        self._guarded(predicate, "ep_wait_in", (lambda: b.wait_in(array, now.own)) if b.is_input else None)

    def _copied_out(self, b: BufferedRef, array: Any, now: _Moment) -> BufferedRef:
        """Starts the copy of the block of this step, unless the next step has the same block."""
        if b.is_trivial_windowing or not b.is_buffered:
            return b
        predicate = either(differ(b.spec, now.own, now.around[2]), now.is_last)
        does = (lambda: b.copy_out(array, now.own)) if b.is_output else None
        self._guarded(predicate, "ep_copy_out", does)
        return b.advance_copy_out_slot(both(predicate, b.is_output))

    def _waited_out(self, b: BufferedRef, array: Any, now: _Moment) -> BufferedRef:
        """Waits for the copy of the block of the step before, unless this step has the same block."""
        if b.is_trivial_windowing or not b.is_buffered:
            return b
        predicate = both(differ(b.spec, now.own, now.around[0]), negated(now.is_first))
        does = (lambda: b.wait_out(array, now.around[0])) if b.is_output else None
        self._guarded(predicate, "ep_wait_out", does)
        return b.advance_wait_out_slot(both(predicate, b.is_output))

    def _released(self, b: BufferedRef, now: _Moment) -> BufferedRef:
        """The buffers after the last use of the block of this step, unless the next step has the same one."""
        if b.wait_in_slot is None:
            return b
        changed = False if b.is_trivial_windowing else differ(b.spec, now.own, now.around[2])
        return b.advance_wait_in_slot(either(changed, now.is_last))

    def _call_body(self, refs: list, now: _Moment) -> None:
        pipeline = self.pipeline
        given = [now.own] if pipeline.gives_indices else []
        grid = PipelineGrid(tuple(pipeline.grid), now.own)
        with within(grid), pipeline.scope("ep_run_kernel"):
            if self.prologue is not None:
                self.prologue()
            pipeline.body(*given, *self.treedef.unflatten(refs), *self.scratches)

    def _serial(self, pairs: list, now: _Moment) -> None:
        """Copies, runs the body, and copies back, one after the other."""
        for b, x in pairs:
            if b.is_input and b.is_buffered:
                self._copy_now(b, x, now, True)
        self._call_body([b.bind_existing_ref(x, now.own).current_ref for b, x in pairs], now)
        for b, x in pairs:
            if b.is_output and b.is_buffered:
                self._copy_now(b, x, now, False)

    def _copy_now(self, b: BufferedRef, array: Any, now: _Moment, is_in: bool) -> None:
        if b.is_trivial_windowing:
            ends = (array, b.window_ref) if is_in else (b.window_ref, array)
        else:
            buffer = b.window_at(b.current_wait_in_slot if is_in else b.current_copy_out_slot)
            selected = b.get_dma_slice(
                type_of(array), moved(now.counted, self.pipeline.offsets) if any(self.pipeline.offsets) else now.counted
            )
            views = array.at[selected], buffer.at[b.kept(selected)]
            ends = views if is_in else views[::-1]
        sync_copy(*ends)


def _is_spec(x: Any) -> bool:
    return isinstance(x, BlockSpec)


def _tuple(x: Any) -> tuple:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _pipeline(body: Callable[..., None], grid: Any, in_specs: Any, out_specs: Any, **options: Any) -> _Pipeline:
    """The pipeline of a body. Raises ValueError for axes of cores that are given twice."""
    core_axis, core_axis_name = options.pop("core_axis", None), options.pop("core_axis_name", None)
    semantics = options.pop("dimension_semantics", None)
    if core_axis is not None and core_axis_name is not None:
        raise ValueError("emit_pipeline: core_axis and core_axis_name cannot both be provided.")
    grid = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if any(not is_static(n) and _is_no_size(n) for n in grid):
        raise ValueError(f"emit_pipeline: grid must be a tuple of integers or scalar arrays of them, got {grid}")
    is_named = core_axis_name is not None
    local, offsets = part_of_core(grid, core_axis_name if is_named else core_axis, semantics, is_named)
    return _Pipeline(
        body,
        local,
        offsets,
        (_tuple(in_specs), out_specs),
        options.get("tiling"),
        options.get("trace_scopes", True),
        options.get("no_pipelining", False),
        options.get("_explicit_indices", False),
    )


def _is_no_size(n: Any) -> bool:
    """Returns whether `n` cannot be the size of an axis."""
    aval = typeof(n)
    return aval.shape != () or not np.issubdtype(aval.dtype, np.integer)


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: tuple[Any, ...],
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Tiling | None = None,
    core_axis: tuple[int, ...] | int | None = None,
    core_axis_name: tuple[str, ...] | str | None = None,
    dimension_semantics: tuple[GridDimensionSemantics, ...] | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """Creates a loop over a grid within a kernel, which copies blocks of arrays while a body runs on others.

    Args:
      body: function of references: those of the operands' blocks and of the results' blocks.
      grid: size of each axis, ints or int32 scalars; the last axis is the fastest.
      in_specs: sequence of the operands' `pl.BlockSpec`s. `pl.Buffered` sets their numbers of buffers.
      out_specs: specs of the results.
      tiling: tiling of the buffers.
      core_axis: axis of the kernel's grid, whose steps run on different cores. They divide the axis of `grid` that is
        `pltpu.PARALLEL`.
      core_axis_name: the same by its name in the mesh of cores.
      dimension_semantics: for each axis of `grid` `pltpu.PARALLEL` or `pltpu.ARBITRARY`.
      trace_scopes: whether profiles show the parts of each step.
      no_pipelining: whether copies and the body run one after the other.

    Returns:
      A function of the references to the arrays, operands and then results. `scratches=` are further references for
      the body, `allocations=` buffers as `pltpu.BufferedRef`s, and `body_prologue=` a function that runs before
      the body in each step.

    Raises:
      ValueError: if references and specs do not fit, or axes of cores are given twice.

    See also: `pltpu.emit_pipeline_with_allocations`, `pl.pallas_call`.

    Example:
        >>> block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        >>> def kernel(x_ref, o_ref):
        ...     def double(x, o):
        ...         o[...] = 2 * x[...]
        ...     pltpu.emit_pipeline(double, grid=(4,), in_specs=[block], out_specs=block)(x_ref, o_ref)
        >>> whole = pl.BlockSpec(memory_space=pl.ANY)
        >>> x = jnp.ones((32, 128))
        >>> f = pl.pallas_call(kernel, jax.typeof(x), in_specs=[whole], out_specs=whole, interpret=True)
        >>> f(x).sum()
        Array(8192., dtype=float32)
    """
    return _pipeline(
        body,
        grid,
        in_specs,
        out_specs,
        tiling=tiling,
        core_axis=core_axis,
        core_axis_name=core_axis_name,
        dimension_semantics=dimension_semantics,
        trace_scopes=trace_scopes,
        no_pipelining=no_pipelining,
        _explicit_indices=_explicit_indices,
    )


def emit_pipeline_with_allocations(
    body: Callable[..., None], *, grid: tuple[Any, ...], in_specs: Any = (), out_specs: Any = ()
) -> tuple[Callable[..., None], Callable[..., tuple]]:
    """Creates a pipeline as `pltpu.emit_pipeline`, and a function that gives the types of its buffers.

    Args:
      body, grid, in_specs, out_specs: as in `pltpu.emit_pipeline`.

    Returns:
      The pipeline, and a function of the references to its arrays that returns `pltpu.BufferedRef`s of types for
      `pl.run_scoped`; the references to these are the pipeline's `allocations=`.

    Example:
        >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((4, 128), jnp.float32)
        >>> block = pl.BlockSpec((2, 128), lambda i: (i, 0))
        >>> def double(a, b):
        ...     b[...] = 2 * a[...]
        >>> def kernel(x, o):
        ...     specs = dict(in_specs=[block], out_specs=[block])
        ...     pipeline, types = pltpu.emit_pipeline_with_allocations(double, grid=(2,), **specs)
        ...     pl.run_scoped(lambda memory: pipeline(x, o, allocations=memory), types(x, o))
        >>> f = pl.pallas_call(kernel, out, in_specs=[anywhere], out_specs=anywhere, interpret=True)
        >>> f(jnp.ones((4, 128))).sum()
        Array(1024., dtype=float32)
    """
    pipeline = _pipeline(body, grid, in_specs, out_specs)
    return pipeline, pipeline.allocations
