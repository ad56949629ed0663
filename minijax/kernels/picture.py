"""Pages that show which blocks a kernel reads and writes in each step of its grid."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minijax.api.jit import make_jaxpr
from minijax.base import tree
from minijax.base.dtypes import itemsize_bits
from minijax.base.html import amount
from minijax.base.thread import named_axis
from minijax.dispatch.jit import Jit
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxprs_in_params
from minijax.kernels.grid import dynamic_grid_dim
from minijax.kernels.mapping import GridMapping
from minijax.kernels.mosaic.windows import has_window
from minijax.kernels.mpmd import mpmd_map_p
from minijax.kernels.primitive import pallas_call_p
from minijax.kernels.starts import starts_of
from minijax.kernels.timeline import Copied, Timeline, Watch, timeline
from minijax.kernels.writes import written

MOST_STEPS = 65536
_KERNELS = (pallas_call_p, mpmd_map_p)
_TEMPLATE = Path(__file__).with_name("picture.html")


@dataclasses.dataclass
class Operand:
    """The blocks of an operand or result, in each step of the grid."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    block: tuple[int, ...]
    starts: np.ndarray  # (steps, dimensions): the first element
    role: str  # "read", "written", or "read and written"
    itemsize: float

    @property
    def block_bytes(self) -> int:
        """The bytes of a block."""
        return int(math.prod(self.block) * self.itemsize)

    @property
    def changed(self) -> np.ndarray:
        """For each step, whether the block is another one than in the step before."""
        different = np.any(self.starts[1:] != self.starts[:-1], axis=1)
        return np.concatenate([np.ones(min(len(self.starts), 1), bool), different])

    @property
    def moved(self) -> int:
        """The bytes that are copied: a block once for all steps in a row that have it."""
        return int(self.changed.sum()) * self.block_bytes

    @property
    def least(self) -> int:
        """The bytes of all elements that some step has, each counted once."""
        distinct = np.unique(self.starts, axis=0)
        if not distinct.size and self.shape:
            return 0
        low = np.maximum(distinct, 0)
        high = np.minimum(distinct + np.array(self.block, np.int64), np.array(self.shape, np.int64))
        whole = int(np.prod(np.maximum(high - low, 0), axis=1).sum())
        return int(min(whole, math.prod(self.shape)) * self.itemsize)

    @property
    def outside(self) -> np.ndarray:
        """For each step, whether a part of the block is beyond the end of the array."""
        return np.any((self.starts < 0) | (self.starts + self.block > np.array(self.shape, np.int64)), axis=1)


@dataclasses.dataclass
class Picture:
    """The steps of a kernel's grid as a page, which `visualize` returns: notebooks show it, and `save` writes it.

    `pipelines` are the timelines of its copies: of the grid, if its blocks are copied, and of the pipelines that the
    kernel runs by `pltpu.emit_pipeline`.
    """

    name: str
    grid: tuple[int, ...]
    operands: list[Operand]
    scratch_bytes: int
    pipelines: list[Timeline] = dataclasses.field(default_factory=list)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return math.prod(self.grid)

    @property
    def bytes_per_step(self) -> int:
        """The memory that a step needs: two buffers for each block, and the scratch."""
        return 2 * sum(o.block_bytes for o in self.operands) + self.scratch_bytes

    @property
    def bytes_moved(self) -> int:
        """The bytes that are copied in all steps."""
        return sum(o.moved for o in self.operands)

    @property
    def bytes_least(self) -> int:
        """The bytes that must be copied at least: each element once."""
        return sum(o.least for o in self.operands)

    def html(self) -> str:
        """The page."""
        operands = [
            dict(
                name=o.name,
                shape=o.shape,
                dtype=o.dtype,
                block=o.block,
                role=o.role,
                starts=o.starts.tolist(),
                moved=amount(o.moved),
                least=amount(o.least),
                changed=int(o.changed.sum()),
                outside=int(o.outside.sum()),
                bytes=amount(o.block_bytes),
            )
            for o in self.operands
        ]
        data = dict(
            name=self.name,
            grid=self.grid,
            operands=operands,
            perStep=amount(self.bytes_per_step),
            moved=amount(self.bytes_moved),
            least=amount(self.bytes_least),
            pipelines=[
                dict(
                    title=repr(p).split("\n", 1)[0],
                    lanes=[[f"{lane.name}, buffer {lane.slot}", *lane.marks] for lane in p.lanes],
                    waits=p.wait_marks(),
                )
                for p in self.pipelines
            ],
        )
        text = json.dumps(data).replace("</", "<\\/")
        return _TEMPLATE.read_text().replace("{{title}}", html.escape(self.name)).replace("{{data}}", text)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.html())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        page = html.escape(self.html(), quote=True)
        return {"text/html": f'<iframe srcdoc="{page}" style="width:100%;height:620px;border:0"></iframe>'}

    def __repr__(self):
        lines = [f"{self.name} over the grid {self.grid}: {self.steps} steps, {amount(self.bytes_per_step)} a step"]
        for o in self.operands:
            lines.append(
                f"  {o.name}: {o.dtype}{list(o.shape)} in blocks {list(o.block)}, {o.role}; {int(o.changed.sum())} "
                f"copies, {amount(o.moved)} moved, {amount(o.least)} at least"
                + (f"; {int(o.outside.sum())} blocks reach beyond the end" if o.outside.any() else "")
            )
        return "\n".join(lines)


def visualize(call: Callable, *args: Any) -> Picture:
    """Returns a page that walks through the grid of a kernel, step by step.

    It shows which block of each array is read and written, which blocks are used again, which reach beyond the end of
    the array, how much memory a step needs, and how many bytes are moved, beside the least that is possible. Its
    `pipelines` show what is copied while what is computed, and where a pipeline waits.

    Args:
      call: function that calls one kernel by `pl.pallas_call` or `pl.kernel`; nothing of it is run.
      *args: its arguments.

    Returns:
      A `Picture`: a notebook shows it, `save(path)` writes it as an HTML file, `print` shows the table.

    Raises ValueError if the function calls no kernel or several, or its grid has more than 65,536 steps.

    Example:
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = 2 * x_ref[...]
        >>> spec = pl.BlockSpec((2,), lambda i: (i,))
        >>> f = pl.pallas_call(double, jax.ShapeDtypeStruct((5,), jnp.float32), grid=3, in_specs=[spec], out_specs=spec)
        >>> print(minijax.kernels.visualize(f, jnp.ones(5)))
        double over the grid (3,): 3 steps, 32 bytes a step
          args[0]: float32[5] in blocks [2], read; 3 copies, 24 bytes moved, 20 bytes at least; 1 blocks reach ...
          outputs: float32[5] in blocks [2], written; 3 copies, 24 bytes moved, 20 bytes at least; 1 blocks reach ...
    """
    watch = Watch()
    # The watch is part of the key of all traces, so that pipelines that were traced before are traced again.
    with named_axis(watch, 1):
        closed = make_jaxpr(call)(*args)
    found = list(_kernels(closed, tree.tree_leaves(args)))
    if len(found) != 1:
        raise ValueError(f"visualize: the function must call one kernel, but it calls {len(found)}")
    ((eqn, operands),) = found
    picture = _picture(eqn, operands) if eqn.primitive is pallas_call_p else _picture_of_cores(eqn)
    picture.pipelines += watch.found
    return picture


def _kernels(closed: ClosedJaxpr, values: Sequence) -> Iterator[tuple[JaxprEqn, list | None]]:
    """The calls of kernels, each with the values of its operands; None inside of loops and branches."""
    env = dict(zip(closed.jaxpr.invars, values, strict=True)) | dict(
        zip(closed.jaxpr.constvars, closed.consts, strict=True)
    )
    for eqn in closed.jaxpr.eqns:
        operands = [a.val if isinstance(a, Literal) else env[a] for a in eqn.invars]
        inner = [j for j in jaxprs_in_params(eqn.params) if _calls_a_kernel(j)]
        if eqn.primitive in _KERNELS:
            yield eqn, operands
        elif inner and isinstance(eqn.primitive, Jit):
            yield from _kernels(eqn.params["jaxpr"], operands)
        elif inner:
            yield from ((e, None) for j in inner for e in j.eqns if e.primitive in _KERNELS)
        else:
            env.update(zip(eqn.outvars, eqn.primitive.bind_all(operands, eqn.params), strict=True))
            continue
        # Kernels are not run: their results are not known.
        env.update((v, np.zeros(v.aval.shape, v.aval.dtype)) for v in eqn.outvars)


def _calls_a_kernel(jaxpr: Jaxpr) -> bool:
    return any(e.primitive in _KERNELS for e in jaxpr.eqns) or any(map(_calls_a_kernel, jaxpr.inner))


def _picture(eqn: JaxprEqn, operands: list | None) -> Picture:
    mapping: GridMapping = eqn.params["grid_mapping"]
    needs_values = mapping.num_dynamic_grid_bounds or mapping.num_index_operands
    if operands is None and needs_values:
        raise ValueError("visualize: the blocks depend on values of a loop or branch; call it with the kernel alone")
    operands = operands or []
    bounds = iter(operands[: mapping.num_dynamic_grid_bounds])
    grid = tuple([int(next(bounds)) if n is dynamic_grid_dim else n for n in mapping.grid])
    steps = math.prod(grid)
    if steps > MOST_STEPS:
        raise ValueError(f"visualize: the grid {grid} has {steps} steps, more than {MOST_STEPS}; show a smaller one")
    first = mapping.num_dynamic_grid_bounds
    scalars = operands[first : first + mapping.num_index_operands]
    name = eqn.params["name"] or eqn.params["jaxpr"].debug_info.func_name
    scratch = sum(
        int(a.size * itemsize_bits(getattr(a.dtype, "physical_dtype", a.dtype)) // 8) for a in mapping.scratch_avals
    )
    changes = written(eqn.params["jaxpr"])
    shown = []
    for k, block in enumerate(mapping.block_mappings, mapping.num_index_operands):
        is_result = k >= mapping.num_index_operands + mapping.num_inputs
        role = "written" if is_result else "read and written" if k in changes else "read"
        starts = starts_of(block, mapping, grid, scalars)
        dtype = block.array_aval.dtype
        shown.append(
            Operand(
                block.origin, block.array_aval.shape, str(dtype), block.sizes, starts, role, itemsize_bits(dtype) / 8
            )
        )
    copied = _copied(mapping, shown)
    return Picture(name, grid, shown, scratch, [timeline(name, grid, copied)] if copied and steps else [])


def _copied(mapping: GridMapping, operands: list[Operand]) -> list[Copied]:
    """The operands whose blocks a TPU copies."""
    found = []
    for k, (block, operand) in enumerate(zip(mapping.block_mappings, operands, strict=True)):
        if has_window(block):
            is_result = k >= mapping.num_inputs
            buffers = 2 if block.pipeline_mode is None else block.pipeline_mode.buffer_count
            is_whole = block.is_everything()
            found.append(Copied(block.origin, operand.changed, buffers, not is_result, is_result, is_whole))
    return found


def _picture_of_cores(eqn: JaxprEqn) -> Picture:
    """The picture of a kernel that cores run, which has whole arrays."""
    body = eqn.params["jaxprs"][0]
    return Picture(eqn.params["name"] or body.debug_info.func_name, (), [], 0)
