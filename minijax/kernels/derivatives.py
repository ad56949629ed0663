"""Derivatives of kernels: a kernel of primals and tangents forward, the interpreted kernel in reverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, dtypes
from minijax.base.mask import Mask
from minijax.dispatch.jit import call_params, jit_p
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.ir.primitive import Primitive, is_undefined_primal
from minijax.ir.trace import eval_jaxpr
from minijax.ir.types import Zero, typeof
from minijax.kernels import interpret
from minijax.kernels.mapping import BlockMapping, GridMapping
from minijax.kernels.reverse import writes_own_blocks
from minijax.kernels.writes import written
from minijax.primitives.zeros import instantiate
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.transpose import backward


def is_float(aval: Any) -> bool:
    """Returns whether values of the type have tangents."""
    return dtypes.issubdtype(aval.dtype, np.inexact)


def jvp(primitive: Primitive, primals: Sequence, tangents: Sequence, params: dict) -> tuple[list, list]:
    """The results of a call and their tangents, by one call of a kernel of primals and tangents."""
    mapping: GridMapping = params["grid_mapping"]
    first = mapping.num_dynamic_grid_bounds + mapping.num_index_operands
    aliases = dict(params["input_output_aliases"])
    changed = written(params["jaxpr"])
    moving = []
    for k, (x, t) in enumerate(zip(primals[first:], tangents[first:], strict=True)):
        number = k + mapping.num_index_operands
        needs = type(t) is not Zero or number in aliases or number in changed
        moving.append(needs and is_float(typeof(x)))
    moved = Mask(moving)
    floats = Mask(map(is_float, params["out_avals"]))
    pushed = _pushed_params(params, tuple(moved), tuple(floats))
    given = [instantiate(t) for t in moved.marked(tangents[first:])]
    results = primitive.bind_all([*primals, *given], pushed)
    n = mapping.num_outputs
    outs, rest = results[:n], iter(results[n:])
    return outs, [next(rest) if f else Zero.from_primal_value(x) for x, f in zip(outs, floats, strict=True)]


def _pushed_params(params: dict, moved: tuple[bool, ...], floats: tuple[bool, ...]) -> dict:
    """The parameters of the call of primals and tangents."""
    mapping: GridMapping = params["grid_mapping"]
    scalars, n_in, n_out = mapping.num_index_operands, mapping.num_inputs, mapping.num_outputs
    of_scratch = tuple(map(is_float, mapping.scratch_avals))
    jaxpr = _pushed_jaxpr(params["jaxpr"], (*(False,) * scalars, *moved, *floats, *of_scratch))
    count = scalars + n_in + n_out + len(of_scratch)
    primal, tangent = jaxpr.invars[:count], jaxpr.invars[count:]
    ins, outs = Mask(moved), Mask(floats)
    a, b = sum(moved), sum(moved) + sum(floats)
    # (scalars, ins, outs, scratch; tangents) -> (scalars, ins, tangents, outs, tangents, scratch, tangents)
    i, o = scalars + n_in, scalars + n_in + n_out
    invars = [*primal[:i], *tangent[:a], *primal[i:o], *tangent[a:b], *primal[o:], *tangent[b:]]
    in_blocks, out_blocks = mapping.in_mappings, mapping.block_mappings_output
    blocks = (
        *in_blocks,
        *map(_of_tangents, ins.marked(in_blocks)),
        *out_blocks,
        *map(_of_tangents, outs.marked(out_blocks)),
    )
    scratch = (*mapping.scratch_avals, *[v.aval for v in tangent[b:]])
    of_input = {scalars + k: j for j, k in enumerate(ins.marked(range(n_in)))}
    of_output = {k: j for j, k in enumerate(outs.marked(range(n_out)))}
    more = [(i + of_input[p], n_out + of_output[q]) for p, q in params["input_output_aliases"] if p in of_input]
    cost = params["cost_estimate"]
    return {
        **params,
        "jaxpr": jaxpr.replace(invars=invars, debug_info=jaxpr.debug_info._replace(arg_names=None)),
        "grid_mapping": mapping.replace(
            block_mappings=blocks, scratch_avals=scratch, num_inputs=n_in + a, num_outputs=n_out + sum(floats)
        ),
        "out_avals": (*params["out_avals"], *[x.to_tangent_aval() for x in outs.marked(params["out_avals"])]),
        "input_output_aliases": (*params["input_output_aliases"], *more),
        "cost_estimate": cost and cost.times(2),
    }


def _of_tangents(block: BlockMapping) -> BlockMapping:
    return block.replace(
        array_aval=block.array_aval.to_tangent_aval(), transformed_block_aval=block.ref_aval.to_tangent_aval()
    )


@cache.weak_cache
def _pushed_jaxpr(jaxpr: Jaxpr, nonzeros: tuple[bool, ...]) -> Jaxpr:
    """The kernel's jaxpr with references to tangents as further inputs."""
    pushed, _ = jvp_jaxpr(ClosedJaxpr(jaxpr), nonzeros, ())
    return pushed.jaxpr


def linearize(
    primitive: Primitive, nonzeros: Sequence[bool], primals: Sequence, params: dict
) -> tuple[list, Sequence[bool], Callable]:
    """The results, which have tangents, and the linear function of the tangents.

    It is a kernel where each step writes blocks of its own, which `transpose` then makes a kernel; else, and where the
    kernel is interpreted, it consists of ordinary operations.
    """
    if not params["interpret"] and writes_own_blocks(params):
        return _by_kernels(primitive, nonzeros, primals, params)
    closed = interpret.program(tuple(map(typeof, primals)), params, differentiated=True)
    split = linearize_jaxpr(closed, tuple(nonzeros))
    results = eval_jaxpr(split.primal.jaxpr, split.primal.consts, *primals)
    count = len(params["out_avals"])

    def push(*tangents):
        return eval_jaxpr(split.tangent.jaxpr, split.tangent.consts, *results[count:], *tangents)

    return results[:count], split.out_nonzeros, push


def _by_kernels(
    primitive: Primitive, nonzeros: Sequence[bool], primals: Sequence, params: dict
) -> tuple[list, Sequence[bool], Callable]:
    floats = Mask(map(is_float, params["out_avals"]))

    def push(*tangents):
        rest = iter(tangents)
        given = [next(rest) if n else Zero.from_primal_value(x) for x, n in zip(primals, nonzeros, strict=True)]
        return floats.marked(jvp(primitive, primals, given, params)[1])

    return primitive.bind_all(primals, params), floats, push


def transpose(cts: Sequence, operands: Sequence, params: dict) -> list:
    """The cotangents of the operands in which a call is linear, by ordinary operations."""
    avals = tuple([x.aval if is_undefined_primal(x) else typeof(x) for x in operands])
    closed = interpret.program(avals, params, differentiated=True)
    return backward(closed.jaxpr, closed.consts, operands, cts)


def partial_eval_custom(eqn: JaxprEqn, unknown_in: Sequence[bool], policy: Any) -> Any:
    """The known and the staged part of a call that has known and unknown operands, of the interpreted kernel."""
    if all(unknown_in) or not any(unknown_in):
        return None
    closed = interpret.program(tuple([a.aval for a in eqn.invars]), eqn.params, differentiated=True)
    call = eqn.replace(primitive=jit_p, params=call_params(closed, "pallas_call"), effects=closed.effects)
    return jit_p.partial_eval_custom(call, unknown_in, policy)
