"""Where the blocks of a kernel are in each step of its grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from minijax.api.jit import jit
from minijax.api.vmap import vmap
from minijax.base.thread import outside_traces
from minijax.ir.refs import Ref
from minijax.kernels.blocks import Blocked
from minijax.kernels.expanded import Step, evaluate
from minijax.kernels.mapping import BlockMapping, GridMapping


def starts_of(block: BlockMapping, mapping: GridMapping, grid: tuple[int, ...], scalars: Sequence = ()) -> np.ndarray:
    """The first element of a block on each dimension, in each step: an array (steps, dimensions).

    `scalars` are the values of prefetched scalars.
    """
    closed = block.index_map_jaxpr
    seen = [i for i in range(len(grid)) if i not in mapping.vmapped_dims]
    sizes = tuple([np.int32(grid[i]) for i in seen])
    steps = math.prod(grid)

    def numbers(*now):
        step = Step(tuple([now[i] for i in seen]), sizes, mapping.grid_names or ())
        return evaluate(closed.jaxpr, closed.consts, [*now, *map(Ref, scalars)], step)

    ids = [n.reshape(-1).astype(np.int32) for n in np.indices(grid)]
    with outside_traces():
        found = jit(vmap(numbers, axis_size=steps))(*ids) if ids else numbers()
    columns = [np.broadcast_to(np.asarray(n), (steps,)).astype(np.int64) for n in found[: len(block.sizes)]]
    pairs = zip(columns, block.block_shape, block.sizes, strict=True)
    columns = [c * size if type(d) is Blocked else c for c, d, size in pairs]
    return np.stack(columns, 1) if columns else np.zeros((steps, 0), np.int64)
