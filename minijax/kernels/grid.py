"""The grid that a kernel runs over, as it is seen from within: `program_id` and `num_programs`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from minijax.base import thread
from minijax.base.thread import named_axis
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray

INDEX = ShapedArray((), np.dtype(np.int32))


class DynamicGridDim:
    """Marks an axis of a grid whose size is an operand."""

    def __repr__(self):
        return "DynamicGridDim"


dynamic_grid_dim = DynamicGridDim()


class Grid(NamedTuple):
    """The grid of the kernel that is being traced: the name of a named axis, so that it is part of trace keys."""

    sizes: tuple[Any, ...]
    is_hidden = True  # from messages that list the names of axes

    def size(self, axis: int) -> Any:
        """The size of an axis. Raises ValueError for an axis that the grid does not have."""
        if not 0 <= axis < len(self.sizes):
            raise ValueError(f"Axis {axis} is out of bounds for grid {self.sizes}")
        return self.sizes[axis]


class PipelineGrid:
    """The grid of a pipeline within a kernel, while the body of a step is traced: its sizes and the step's indices."""

    is_hidden = True

    def __init__(self, sizes: tuple[Any, ...], ids: tuple[Any, ...]):
        self.sizes, self.ids = sizes, ids

    size = Grid.size


def within(grid: Grid | PipelineGrid, names: Sequence[Any] | None = None) -> ExitStack:
    """Context manager: traces a kernel, or an index map, over the grid, whose axes may have names."""
    axes = ExitStack()
    for name, size in zip(names or (), grid.sizes, strict=False):
        if isinstance(size, int):
            axes.enter_context(named_axis(name, size))
    axes.enter_context(named_axis(grid, 1))
    return axes


def _current(name: str) -> Any:
    for axis, *_ in reversed(thread.thread.axes):
        if type(axis) in (Grid, PipelineGrid):
            return axis
    raise AssertionError(f"{name} is called outside of a kernel. Call it in the function that is given to pallas_call.")


class ProgramId(Primitive):
    """The number of the step on an axis of the grid."""

    name = "program_id"
    prints_alike, has_bodies = True, False

    def infer(self, *, axis):
        return [INDEX]

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), [None]


class NumPrograms(ProgramId):
    """The size of an axis of the grid, which is known only when the program runs."""

    name = "num_programs"


program_id_p, num_programs_p = ProgramId(), NumPrograms()


def program_id(axis: int) -> Any:
    """Returns the number of the step in which the kernel runs, on an axis of the grid.

    Args:
      axis: number of the axis, from 0.

    Returns:
      An int32 scalar.

    Raises ValueError for an axis that the grid does not have, AssertionError outside of a kernel.

    See also: `pl.num_programs`.

    Example:
        >>> def kernel(o_ref):
        ...     o_ref[...] = jnp.full((2,), pl.program_id(0))
        >>> spec = pl.BlockSpec((2,), lambda i: (i,))
        >>> six = jax.ShapeDtypeStruct((6,), jnp.int32)
        >>> print(pl.pallas_call(kernel, six, grid=3, out_specs=spec, interpret=True)())
        [0 0 1 1 2 2]
    """
    axis = operator.index(axis)
    grid = _current("program_id")
    grid.size(axis)
    if type(grid) is PipelineGrid:
        return grid.ids[axis]
    return program_id_p.bind(axis=axis)


def num_programs(axis: int) -> Any:
    """Returns the size of an axis of the grid that the kernel runs over.

    Args:
      axis: number of the axis, from 0.

    Returns:
      An int; an int32 scalar if the size is known only when the program runs.

    Raises ValueError for an axis that the grid does not have, AssertionError outside of a kernel.

    Example:
        >>> kernel = lambda o: o.set(jnp.full((1,), pl.num_programs(0)))
        >>> out, one = jax.ShapeDtypeStruct((3,), jnp.int32), pl.BlockSpec((1,), lambda i: i)
        >>> pl.pallas_call(kernel, out, grid=3, out_specs=one, interpret=True)()
        Array([3, 3, 3], dtype=int32)
    """
    axis = operator.index(axis)
    size = _current("num_programs").size(axis)
    return num_programs_p.bind(axis=axis) if size is dynamic_grid_dim else size
