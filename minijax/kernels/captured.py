"""Calls of kernels that capture references and scalars: their values become operands and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minijax.composed.refs import empty_ref
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from minijax.ir.refs import AbstractRef, Ref
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray
from minijax.kernels.blocks import Blocked
from minijax.kernels.grid import INDEX
from minijax.kernels.mapping import BlockMapping
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.operations.copies import sync_copy
from minijax.kernels.parameters import CoreType
from minijax.kernels.subcores import get_sparse_core_info
from minijax.transforms.discharge import dereferenced


def as_operands(operands: Sequence, refs: Sequence[Ref], params: dict) -> tuple[list, dict, Callable]:
    """Makes each captured reference an input that is aliased to a result, both whole arrays.

    Returns operands, parameters, and a function: results -> (results, last values of the references).
    """
    jaxpr, mapping = params["jaxpr"], params["grid_mapping"]
    count = len(jaxpr.constvars)
    values = dereferenced(operands[:count])
    first_in = mapping.num_index_operands
    split = first_in + mapping.num_inputs
    taken, n = [Var(v.aval) for v in jaxpr.constvars], mapping.num_outputs
    # (captured; scalars, inputs, results, scratch) -> (; scalars, inputs, captured, results, captured, scratch)
    invars = [
        *jaxpr.invars[:split],
        *taken,
        *jaxpr.invars[split : split + n],
        *jaxpr.constvars,
        *jaxpr.invars[split + n :],
    ]
    info = jaxpr.debug_info._replace(arg_names=None)
    whole = [whole_array(v.aval, mapping.index_map_avals) for v in jaxpr.constvars]
    ins, outs = mapping.in_mappings, mapping.block_mappings_output
    changed = mapping.replace(
        block_mappings=(*ins, *whole, *outs, *whole), num_inputs=mapping.num_inputs + count, num_outputs=n + count
    )
    avals = tuple([v.aval.inner_aval for v in jaxpr.constvars])
    params = {
        **params,
        "jaxpr": jaxpr.replace(constvars=[], invars=invars, debug_info=info),
        "grid_mapping": changed,
        "out_avals": (*params["out_avals"], *avals),
        "input_output_aliases": (*params["input_output_aliases"], *[(split + i, n + i) for i in range(count)]),
    }
    rest = operands[count:]
    # (captured, bounds, scalars, inputs) -> (bounds, scalars, inputs, captured)
    places = [refs.index(x) for x in operands[:count]]
    order = [places.index(i) for i in range(len(refs))]
    return [*rest, *values], params, lambda results: (results[:n], [results[n + i] for i in order])


def scalars_as_refs(jaxpr: Jaxpr, core: CoreType, is_copied: bool, place: int | None = None) -> Jaxpr:
    """The kernel with references to vectors of one element instead of the scalars that it captures.

    They are in SMEM; if `is_copied`, in HBM, from where the kernel copies them, as SparseCores need it: to its own
    memory, or to scratch, which its inputs have from `place` on.
    """
    is_scalar = [type(v.aval) is not AbstractRef for v in jaxpr.invars]
    space = TpuMemorySpace.HBM if is_copied else TpuMemorySpace.SMEM
    avals = [
        AbstractRef(ShapedArray((1,), v.aval.dtype), space) if s else v.aval
        for v, s in zip(jaxpr.invars, is_scalar, strict=True)
    ]
    own = [AbstractRef(a.inner_aval, TpuMemorySpace.SMEM) for a, s in zip(avals, is_scalar, strict=True) if s]
    if place is not None:
        avals[place:place] = own

    def run(*refs):
        near = None if place is None else refs[place : place + len(own)]
        refs = refs if place is None else (*refs[:place], *refs[place + len(own) :])
        sources = [r for r, s in zip(refs, is_scalar, strict=True) if s]
        values = iter(_copied(sources, core, near) if is_copied else [r[0] for r in sources])
        operands = [next(values) if s else r for r, s in zip(refs, is_scalar, strict=True)]
        state.current_trace().inline(ClosedJaxpr(jaxpr), operands)
        return []

    return trace_to_jaxpr(run, avals, jaxpr.debug_info._replace(arg_names=None))[0]


def _copied(sources: Sequence, core: CoreType, near: Sequence | None) -> list:
    """The scalars in HBM, which the kernel copies first, all at once, to `near` if it is given."""
    if core is not CoreType.SC_VECTOR_SUBCORE:
        near = near or [empty_ref(ShapedArray((1,), r.dtype), memory_space=TpuMemorySpace.SMEM) for r in sources]
        sync_copy(tuple(sources), tuple(near))
        return [r[0] for r in near]
    lanes = get_sparse_core_info().num_lanes
    near = [empty_ref(ShapedArray((lanes,), r.dtype), memory_space=TpuMemorySpace.VMEM) for r in sources]
    sync_copy(tuple(sources), tuple([r.at[:1] for r in near]))
    return [r[...][0] for r in near]


def whole_array(ref: AbstractRef, index_avals: Sequence, origin: str = "a captured reference") -> BlockMapping:
    """The mapping of an array that the kernel gets as a whole, by a reference of a type."""
    aval = ref.inner_aval
    zeros = [Literal(np.int32(0), a) for a in [INDEX] * aval.ndim]
    closed = ClosedJaxpr(Jaxpr([], [Var(a) for a in index_avals], zeros, []))
    return BlockMapping(tuple(map(Blocked, aval.shape)), ref, closed, None, aval, origin)
