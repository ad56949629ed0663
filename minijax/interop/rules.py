"""jax's tables of rules, for reading and writing the rules of built-in and user-defined primitives."""

import gc
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.base.mask import Mask
from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.primitive import Axis, Primitive, UndefinedPrimal, is_undefined_primal
from minijax.ir.rules import no_rule
from minijax.ir.types import Zero, is_zero, typeof
from minijax.primitives import moving
from minijax.primitives.counting import iota
from minijax.primitives.families import SameShape
from minijax.primitives.zeros import add_zeros as add_tangents, instantiate
from minijax.transforms.batch import BatchTrace, BatchTracer
from minijax.transforms.jvp import zero_if_float0
from minijax.transforms.partial_eval_custom import EqnParts, Recompute, partial_eval_eqn
from minijax.transforms.prune import prune_closed, prune_jaxpr

Rule = Callable[..., Any]


class RuleTable(MutableMapping):
    """Maps a primitive to its rule in jax's form, backed by the primitive's method `name`.

    `to_method(primitive, rule)` and `to_rule(primitive)` convert between the forms.
    """

    def __init__(self, name: str, to_method: Callable[[Primitive, Rule], Rule], to_rule: Callable[[Primitive], Rule]):
        self._name = name
        self._to_method, self._to_rule = to_method, to_rule

    def __getitem__(self, primitive: Primitive) -> Rule:
        method = getattr(primitive, "__dict__", {}).get(self._name)
        if hasattr(method, "rule"):
            return method.rule
        if primitive not in self:
            raise KeyError(primitive)
        return self._to_rule(primitive)

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        method = self._to_method(primitive, rule)
        method.rule = rule
        setattr(primitive, self._name, method)

    def __delitem__(self, primitive: Primitive) -> None:
        if primitive not in self:
            raise KeyError(primitive)
        setattr(primitive, self._name, None)

    def __contains__(self, primitive: object) -> bool:
        return isinstance(primitive, Primitive) and getattr(primitive, self._name) is not None

    def __iter__(self) -> Iterator[Primitive]:
        # Primitives are not registered: this finds those that exist.
        return (p for p in gc.get_objects() if issubclass(type(p), Primitive) and p in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


# ---- differentiation ---------------------------------------------------------------------------------


def _to_jvp(primitive, rule):
    def jvp(primals, tangents, **params):
        results, pushed = rule(tuple(primals), tuple(tangents), **params)
        return primitive.listed(results), [zero_if_float0(t) for t in primitive.listed(pushed)]

    return jvp


def _of_jvp(primitive):
    method = primitive.jvp

    def rule(primals, tangents, **params):
        results, pushed = method(primals, tangents, **params)
        return (results, pushed) if primitive.multiple_results else (results[0], pushed[0])

    return rule


def _to_transpose(primitive, rule):
    def transpose(cts, *operands, **params):
        return rule(cts if primitive.multiple_results else cts[0], *operands, **params)

    return transpose


def _of_transpose(primitive):
    method = primitive.transpose
    return lambda ct, *operands, **params: method(primitive.listed(ct), *operands, **params)


primitive_jvps = RuleTable("jvp", _to_jvp, _of_jvp)
primitive_transposes = RuleTable("transpose", _to_transpose, _of_transpose)


def get_primitive_transpose(p: Primitive) -> Rule:
    """Returns the transpose rule of a primitive. Raises NotImplementedError if it has none."""
    try:
        return primitive_transposes[p]
    except KeyError:
        no_rule(p, "transpose")


def defjvp(primitive: Primitive, *jvprules: Rule | None) -> None:
    """Sets the jvp rule from one per operand: (tangent, *operands, **params) -> its term of the tangent."""

    def without_result(rule):
        return rule and (lambda t, ans, *primals, **params: rule(t, *primals, **params))

    defjvp2(primitive, *map(without_result, jvprules))


def defjvp2(primitive: Primitive, *jvprules: Rule | None) -> None:
    """Like `defjvp`, for rules (tangent, result, *operands, **params)."""

    def rule(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        total = Zero.from_primal_value(out)
        for part, t in zip(jvprules, tangents, strict=True):
            if part is not None and not is_zero(t):
                total = add_tangents(total, part(t, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = rule


def deflinear(primitive: Primitive, transpose_rule: Rule) -> None:
    """Makes a primitive linear; `transpose_rule(cotangent, **params)` returns the operands' cotangents."""
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Rule) -> None:
    """Like `deflinear`, for a rule (cotangent, *operands, **params)."""

    def pushed(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        if all(map(is_zero, tangents)):
            zeros = [Zero.from_primal_value(x) for x in primitive.listed(out)]
            return out, zeros if primitive.multiple_results else zeros[0]
        return out, primitive.bind(*map(instantiate, tangents), **params)

    def transposed(ct, *operands, **params):
        if all(map(is_zero, primitive.listed(ct))):
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        return transpose_rule(ct, *operands, **params)

    primitive_jvps[primitive] = pushed
    primitive_transposes[primitive] = transposed


def defbilinear(prim: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Makes a primitive linear in each of its two operands.

    A rule (cotangent, x, y, **params) returns the cotangent of the left or right operand, which it gets as an
    `UndefinedPrimal`.
    """
    defjvp(
        prim, lambda t, x, y, **params: prim.bind(t, y, **params), lambda t, x, y, **params: prim.bind(x, t, **params)
    )

    def transposed(ct, x, y, **params):
        rules = lhs_rule if is_undefined_primal(x) else None, rhs_rule if is_undefined_primal(y) else None
        return [
            None if rule is None else Zero(z.aval.to_ct_aval()) if is_zero(ct) else rule(ct, x, y, **params)
            for rule, z in zip(rules, (x, y), strict=True)
        ]

    primitive_transposes[prim] = transposed


for _leafless in (UndefinedPrimal, Zero):
    tree.register_pytree_node(_leafless, lambda x: ((), x.aval), lambda aval, _, cls=_leafless: cls(aval))


# ---- vectorisation -----------------------------------------------------------------------------------


class _EveryName(tuple):
    """A set of all axis names, for a rule that is called for every axis, also if no operand is mapped."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return True


class _Batchers(RuleTable):
    """A table of batching rules; `call(rule, axis, operands, dims, params)` calls a rule in the table's form."""

    def __init__(self, call: Callable, to_rule: Callable, always: bool = False):
        def to_method(primitive, rule):
            def batch(axis, operands, dims, **params):
                results, out_dims = call(rule, axis, tuple(operands), tuple(dims), params)
                return primitive.listed(results), primitive.listed(out_dims)

            return batch

        super().__init__("batch", to_method, to_rule)
        self._always = always

    def __setitem__(self, primitive, rule):
        super().__setitem__(primitive, rule)
        if self._always:
            primitive.names_axis = lambda params: _EveryName()


def _of_batch(primitive):
    fancy = _of_fancy(primitive)

    def rule(operands, dims, **params):
        size = next(typeof(x).shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
        return fancy(Axis(no_axis_name, size), operands, dims, **params)

    return rule


def _of_fancy(primitive):
    method = primitive.batch

    def rule(axis, operands, dims, **params):
        results, out_dims = method(axis, operands, dims, **params)
        return (results, out_dims) if primitive.multiple_results else (results[0], out_dims[0])

    return rule


def _of_axis(primitive):
    fancy = _of_fancy(primitive)
    return lambda size, name, _, operands, dims, **params: fancy(Axis(name, size), operands, dims, **params)


no_axis_name = object()
primitive_batchers = _Batchers(lambda rule, axis, xs, dims, params: rule(xs, dims, **params), _of_batch)
fancy_primitive_batchers = _Batchers(
    lambda rule, axis, xs, dims, params: rule(axis, xs, dims, **params), _of_fancy, always=True
)
axis_primitive_batchers = _Batchers(
    lambda rule, axis, xs, dims, params: rule(axis.size, axis.name, None, xs, dims, **params), _of_axis, always=True
)


def make_iota(axis_size: int) -> Any:
    """Returns the numbers of the elements along a mapped axis."""
    return iota(np.int32, axis_size)


def to_elt(trace: BatchTrace, get_idx: Callable, x: Any, spec: int | None) -> Any:
    """Returns what a mapped function sees of `x` that is mapped along the axis `spec`, or not at all."""
    return x if spec is None else BatchTracer(trace, x, range(typeof(x).ndim)[spec])


def defvectorized(prim: Primitive) -> None:
    """Sets the batching rule of an elementwise operation whose operands are all mapped along the same axis."""

    def rule(operands, dims, **params):
        if len(set(dims)) != 1:
            raise AssertionError(f"{prim}: operands are mapped along different axes, {dims}")
        return prim.bind(*operands, **params), dims[0]

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Sets the batching rule of an operation whose operands broadcast as NumPy's do."""

    def rule(operands, dims, **params):
        (result,), (dim,) = SameShape.batch(prim, None, operands, dims, **params)
        return result, dim

    primitive_batchers[prim] = rule


def defreducer(prim: Primitive) -> None:
    """Sets the batching rule of an operation that reduces one operand over the axes of its parameter `axes`."""

    def rule(operands, dims, axes, **params):
        ((x,), (dim,)) = operands, dims
        axes, out_dim = moving.batched_axes(axes, dim)
        return prim.bind(x, axes=axes, **params), out_dim

    primitive_batchers[prim] = rule


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """Returns `x` with its batch axis first, or broadcast along a new one."""
    return moving.axis_to_front(x, bdim, size)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any) -> Any:
    """Returns `x` broadcast along a new axis of size `sz`."""
    return moving.broadcast_axis(x, sz, axis)


# ---- partial evaluation ------------------------------------------------------------------------------


def _to_dce(primitive, rule):
    def dce(used, eqn):
        used_inputs, new_eqn = rule(list(used), eqn)
        return list(used_inputs), new_eqn

    primitive.dce_inside = True
    return dce


dce_rules = RuleTable("dce", _to_dce, lambda primitive: primitive.dce)


def dce_jaxpr_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """The rule for `dce_rules` of a primitive that calls its parameter `call_jaxpr`, a Jaxpr."""
    return _dce_call(prune_jaxpr, used_outputs, eqn)


def dce_jaxpr_closed_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Like `dce_jaxpr_call_rule`, for a ClosedJaxpr."""
    return _dce_call(prune_closed, used_outputs, eqn)


def _dce_call(prune, used, eqn):
    if not any(used) and not eqn.effects:
        return [False] * len(eqn.invars), None
    called, used_in = prune(eqn.params["call_jaxpr"], tuple(used))
    invars, outvars = Mask(used_in).marked(eqn.invars), Mask(used).marked(eqn.outvars)
    params = {**eqn.params, "call_jaxpr": called}
    return list(used_in), eqn.replace(invars, outvars, params=params, effects=called.effects)


class _PartialEvalCustomRules(RuleTable):
    """The table of partial evaluation rules with a policy, as for `checkpoint`.

    (saveable, which operands are unknown, which operands the staged equation may read, equation) -> (known equation
    or None, staged equation or None, which results are unknown, which the staged equation returns, residuals)
    """

    def __contains__(self, primitive):
        return isinstance(primitive, Primitive) and primitive.partial_eval_custom is not None

    def __delitem__(self, primitive):
        if primitive not in self:
            raise KeyError(primitive)
        primitive.partial_eval_custom = None


def _to_partial_eval_custom(primitive, rule):
    def partial_eval_custom(eqn, unknown_in, policy):
        known, staged, unknown, staged_out, residuals = rule(
            policy or _save_nothing, tuple(unknown_in), (True,) * len(unknown_in), eqn
        )
        saved = (Mask(unknown) | staged_out).unmarked(eqn.outvars)
        parts = [known] if known else [], [staged] if staged else []
        return EqnParts(*parts, Mask(unknown).marked(eqn.outvars), [*saved, *residuals])

    return partial_eval_custom


def _save_nothing(primitive, *avals, **params):
    return Recompute


def _of_partial_eval_custom(primitive):
    def rule(saveable, unknown_in, allowed_in, eqn):
        parts = partial_eval_eqn(eqn, Mask(unknown_in), saveable)
        if len(parts.known) > 1 or len(parts.staged) > 1:
            raise NotImplementedError(f"the rule of {primitive} returns several equations")
        saved = [v for v in parts.residuals if v not in eqn.outvars]
        returned = [v for e in parts.staged for v in e.outvars]
        known, staged = (next(iter(eqns), None) for eqns in (parts.known, parts.staged))
        unknown = [v in parts.unknown_out for v in eqn.outvars]
        return known, staged, unknown, [v in returned for v in eqn.outvars], saved

    return rule


partial_eval_jaxpr_custom_rules = _PartialEvalCustomRules(
    "partial_eval_custom", _to_partial_eval_custom, _of_partial_eval_custom
)
