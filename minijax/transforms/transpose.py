"""Transposition: evaluates a linear jaxpr backwards on cotangents.

Below, the product is linear in `t`; its transpose takes `x` and the cotangent of the result:

>>> transpose_jaxpr(jax.make_jaxpr(lambda x, t: t * x)(3.0, 1.0), (False, True), (True,))[0]
{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul b a in (c,) }
"""

from collections.abc import Sequence
from typing import Any

from minijax.base import stack
from minijax.base.mask import Mask
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.ir.primitive import UndefinedPrimal
from minijax.ir.rules import no_rule
from minijax.ir.trace import environment, trace_to_jaxpr, values_of
from minijax.ir.types import AbstractValue, Aval, ShapedArray, Zero, typeof
from minijax.partition.meshes import abstract_context, use_abstract_mesh
from minijax.primitives.sharding import reshard_like
from minijax.primitives.zeros import add_any, instantiate, nonzero_mask


def linear_variables(jaxpr: Jaxpr, linear: Sequence[bool]) -> set[Var]:
    """The variables that depend on the linear inputs."""
    variables = set(Mask(linear).marked(jaxpr.invars))
    for eqn in jaxpr.eqns:
        if not variables.isdisjoint(eqn.invars):
            variables.update(eqn.outvars)
    return variables


@stack.deep
def backward(jaxpr: Jaxpr, consts: Sequence, args: Sequence, cts_out: Sequence, unwanted: Sequence[Var] = ()) -> list:
    """Returns the cotangents of the inputs that are `UndefinedPrimal` (None for others), given those of the results.

    Those of the `unwanted` inputs may be incomplete: an equation with no other linear operands is not transposed.
    `Zero` represents cotangents that are known to be zero, of results and of inputs.
    """
    linear_inputs = Mask([type(a) is UndefinedPrimal for a in args])
    linear = linear_variables(jaxpr, linear_inputs)
    env = environment(jaxpr, consts)
    env.update(zip(linear_inputs.unmarked(jaxpr.invars), linear_inputs.unmarked(args), strict=True))
    for eqn in jaxpr.eqns:
        if not linear.isdisjoint(eqn.invars):
            continue
        with eqn.context():
            results = eqn.primitive.rebind(state.current_trace(), values_of(eqn.invars, env), eqn.params)
        env.update(zip(eqn.outvars, results, strict=True))
    undefined: dict[Aval, UndefinedPrimal] = {}  # one for each type
    for v in linear:
        aval = v.aval
        if aval not in undefined:
            undefined[aval] = UndefinedPrimal(aval.to_ct_aval())
        env[v] = undefined[aval]
    cts: dict[Var, Any] = {}
    for v, ct in zip(jaxpr.outvars, cts_out, strict=True):
        if type(v) is not Literal and v in linear and type(ct) is not Zero:
            _accumulate(cts, v, ct)
    leading = linear.difference(unwanted) if unwanted else linear
    with context.within() as enter:
        for eqn in reversed(jaxpr.eqns):
            if not leading.isdisjoint(eqn.invars):
                enter(eqn.ctx, eqn.traceback)
                _transpose_eqn(eqn, env, linear, cts)
    return [
        cts.get(v, Zero(v.aval.to_ct_aval())) if is_undefined_primal else None
        for v, is_undefined_primal in zip(jaxpr.invars, linear_inputs, strict=True)
    ]


def _accumulate(cts: dict[Var, Any], v: Var, ct: Any) -> None:
    if not v.aval.is_high and typeof(ct) is not v.aval:
        ct = _reshard_to_type(ct, v.aval.to_ct_aval())
    have = cts.get(v)
    cts[v] = ct if have is None else _sum(have, ct)


def _sum(x: Any, y: Any) -> Any:
    """Adds two cotangents under their own mesh: the context mesh of the equation may have other axis types."""
    sharding = typeof(x).own_sharding
    if sharding is None:
        return add_any(x, y)
    mesh = abstract_context()
    if mesh is None or mesh.has_axes_of(sharding.mesh):
        return add_any(x, y)
    with use_abstract_mesh(sharding.mesh):
        return add_any(x, y)


def _reshard_to_type(ct: Any, aval: Aval) -> Any:
    """Reshards a cotangent to the sharding of `aval` if both types have a mesh.

    Raises ValueError if it is unreduced or reduced over other manual axes.
    """
    have = typeof(ct)
    if type(have) is type(aval) is ShapedArray and have.manual_axis_type.reduction != aval.manual_axis_type.reduction:
        raise ValueError(f"Expected cotangent type {aval.str_short()} but got {have.str_short()}")
    return ct if not aval.has_mesh or not have.has_mesh else reshard_like(ct, aval)


def _transpose_eqn(eqn: JaxprEqn, env: dict, linear: set[Var], cts: dict[Var, Any]) -> None:
    results = [cts.pop(v, None) for v in eqn.outvars]
    if any([ct is None for ct in results]):
        # Users' backward rules may return nonzero cotangents even if all of theirs are zero.
        if all([ct is None for ct in results]) and not eqn.effects and not eqn.primitive.has_backward_rule:
            return
        results = [Zero(v.aval.to_ct_aval()) if ct is None else ct for v, ct in zip(eqn.outvars, results, strict=True)]
    operands = values_of(eqn.invars, env)
    rule = eqn.primitive.transpose or no_rule(eqn.primitive, "transpose")
    cts_in = rule(results, *operands, **eqn.params)
    for a, ct in zip(eqn.invars, cts_in, strict=True):
        if a in linear and ct is not None and type(ct) is not Zero:
            _accumulate(cts, a, ct)


@state.traced_cache
def transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzero_cts: tuple[bool, ...],
    instantiate_in: tuple[bool, ...] | bool = False,
    ct_avals: tuple[AbstractValue, ...] | None = None,
) -> tuple[ClosedJaxpr, Mask]:
    """The jaxpr (nonlinear inputs, nonzero cotangents) -> nonzero cotangents of linear inputs, and which are nonzero.

    `ct_avals` are the types of the cotangents, if they are not the cotangent types of the results.
    """
    linear, nonzero_cts, nonzero_in = Mask(linear), Mask(nonzero_cts), Mask()
    ct_avals = tuple(a.to_ct_aval() for a in closed.out_avals) if ct_avals is None else ct_avals
    instantiated = (instantiate_in,) * sum(linear) if isinstance(instantiate_in, bool) else instantiate_in
    known_avals, linear_avals = linear.partition(closed.in_avals)

    def transposed(*args):
        nonlocal nonzero_in
        known, cts = args[: len(known_avals)], args[len(known_avals) :]
        zeros = map(Zero, nonzero_cts.unmarked(ct_avals))
        inputs = linear.merge(known, map(UndefinedPrimal, linear_avals))
        cts_in = linear.marked(backward(closed.jaxpr, closed.consts, inputs, nonzero_cts.merge(zeros, cts)))
        cts_in = [instantiate(ct) if keep else ct for ct, keep in zip(cts_in, instantiated, strict=True)]
        nonzero_in = nonzero_mask(cts_in)
        return nonzero_in.marked(cts_in)

    info = closed.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr, consts = trace_to_jaxpr(transposed, [*known_avals, *nonzero_cts.marked(ct_avals)], info)
    return ClosedJaxpr(jaxpr, consts), nonzero_in
