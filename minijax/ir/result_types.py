"""The types of an operation's results: shardings, reduction state, varying axes and memory spaces.

A primitive infers shapes and dtypes, and states in `sharding_rule` and `reduction_state` how the axes of its results
correspond to those of its operands. The rest of a result's type is derived here.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from minijax.base.errors import ShardingTypeError
from minijax.ir.jaxpr import NO_EFFECTS
from minijax.ir.refs import AbstractRef, passed_ref
from minijax.ir.rules import no_rule
from minijax.ir.types import NOT_MANUAL, Aval, ManualAxisType, ShapedArray, space_of, varying_axes
from minijax.partition.explicit import (
    check_divides,
    common_sharding,
    merged_reduction_state,
    reduction_state_of_product,
    reduction_state_of_sum,
    repeats_an_axis,
    sharding_in_type,
)
from minijax.partition.memory import Device
from minijax.partition.meshes import abstract_context, explicit_meshes

Types = Sequence[Aval]
State = tuple[frozenset, frozenset]

_PLAIN = (None, NOT_MANUAL, Device)  # sharding, manual axes and memory of most types


def result_types(primitive: Any, avals: Types, params: dict) -> tuple[list[Aval], frozenset]:
    """The types of the results, and the effects, of an operation on operands of these types."""
    if not primitive.has_bodies and primitive.effects is None:
        _check_no_refs(primitive, avals)
    outs = (primitive.infer or no_rule(primitive, "infer"))(*avals, **params)
    requested = params.get(primitive.sharding_param)
    if explicit_meshes or primitive.vma_rule or requested is not None or not all(map(_is_plain, avals)):
        outs = _sharded(primitive, avals, outs, requested, params)
        if primitive.auto_pvary and outs:
            outs = _in_memory(primitive, avals, _varying(primitive, avals, outs, params))
    return outs, NO_EFFECTS if primitive.effects is None else primitive.effects(*avals, **params)


def _check_no_refs(primitive: Any, avals: Types) -> None:
    for aval in avals:
        if type(aval) is AbstractRef:
            raise ValueError(passed_ref(aval, f"a primitive: {primitive.name}"))


def _is_plain(aval: Aval) -> bool:
    return type(aval) is ShapedArray and (aval.own_sharding, aval.manual_axis_type, aval.memory_space) == _PLAIN


def has_mesh(avals: Types) -> bool:
    """True if one of the types has a mesh."""
    return any([getattr(a, "has_mesh", False) for a in avals])  # users may ask about values of any kind


def has_reduction_state(avals: Types) -> bool:
    """True if one of the types is unreduced or reduced over some axes."""
    return any([any(a.reduction_state) for a in avals if type(a) is ShapedArray])


# ---- shardings over Explicit axes --------------------------------------------------------------------


def _sharded(primitive: Any, avals: Types, outs: list[Aval], requested: Any, params: dict) -> list[Aval]:
    """The types of the results with their shardings over Explicit axes."""
    if requested is not None:
        if primitive.check_out_sharding is not None:
            requested = primitive.check_out_sharding(avals, requested, params) or requested
        return [o.update(sharding=sharding_in_type(requested, o.ndim)) for o in outs]
    if has_mesh(avals):
        return _by_rule(primitive, avals, outs, params)
    if explicit_meshes and primitive.gets_context_mesh(avals):
        return _over_context_mesh(outs)
    return outs


def _over_context_mesh(outs: list[Aval]) -> list[Aval]:
    mesh = abstract_context()
    if mesh is None or not mesh.explicit_axes:
        return outs
    return [o.sharded_over(mesh, o.entries) if type(o) is ShapedArray and not o.has_mesh else o for o in outs]


def _by_rule(primitive: Any, avals: Types, outs: list[Aval], params: dict) -> list[Aval]:
    """The types of the results, sharded as `sharding_rule` derives it from the operands."""
    mesh, *others = {a.own_sharding.mesh: None for a in avals if a.has_mesh}
    if others:
        context = abstract_context()
        raise ValueError(
            f"{primitive.name}: Mesh for all inputs should be equal, but operands have {mesh} and {others[0]}"
            if context is None
            else _other_mesh(primitive, context, others[0] if context.has_axes_of(mesh) else mesh, avals)
        )
    if primitive.sharding_rule is None or not _is_context_mesh(primitive, mesh, avals):
        return outs
    specs = primitive.sharding_rule(mesh, avals, outs, **params)
    if specs is None:
        return outs
    if any(map(repeats_an_axis, specs)):
        results = ", ".join([o.str_with_sharding(s) for o, s in zip(outs, specs, strict=True)])
        raise ShardingTypeError(
            f"{primitive.name} operation on {', '.join([a.text for a in avals])} produces an illegally sharded result, "
            f"with a mesh axis twice: {results}"
        )
    explicit = set(mesh.explicit_axes)
    state = [axes & explicit for axes in _reduction_state(primitive, avals, params)]
    return [o.sharded_over(mesh, s, *state) for o, s in zip(outs, specs, strict=True)]


def _is_context_mesh(primitive: Any, mesh: Any, avals: Types) -> bool:
    """Returns whether the operands' mesh is the context mesh, if there is one. Raises if it is not and is in use."""
    context = abstract_context()
    if context is None or context.has_axes_of(mesh):
        return True
    if not any([a.is_sharded for a in avals if type(a) is ShapedArray]):
        return False
    if context.manual_axes and not mesh.manual_axes:
        raise NotImplementedError(
            "Closing over inputs to shard_map where the input is sharded on `Explicit` axes is not implemented: "
            f"they can be arguments. {primitive.name} has operands of types {', '.join(map(str, avals))}"
        )
    raise ValueError(_other_mesh(primitive, context, mesh, avals))


def _other_mesh(primitive: Any, context: Any, mesh: Any, avals: Types) -> str:
    return (
        f"For primitive {primitive.name}, context mesh {context} should match the aval mesh {mesh} of operands of "
        f"types {', '.join(map(str, avals))}"
    )


# ---- manual axes and memory --------------------------------------------------------------------------


def _varying(primitive: Any, avals: Types, outs: list[Aval], params: dict) -> list[Aval]:
    """The types of the results with the manual mesh axes over which they are varying, unreduced and reduced."""
    rule = primitive.vma_rule
    kind = vma_rule(primitive, avals, params, _all_varying(avals)) if rule is None else rule(avals, params)
    if kind is None:
        return outs
    return [
        o.update(manual_axis_type=kind) if type(o) is ShapedArray and o.manual_axis_type != kind else o for o in outs
    ]


def _all_varying(avals: Types) -> frozenset:
    return frozenset().union(*map(varying_axes, avals))


def vma_rule(primitive: Any, avals: Types, params: dict, varying: frozenset) -> ManualAxisType:
    """The type of results that vary over the given manual axes, with the reduction state of the operands."""
    if not has_reduction_state(avals):
        return ManualAxisType(varying=varying)
    kinds = [a.manual_axis_type for a in avals if type(a) is ShapedArray]
    manual = frozenset().union(*[axes for kind in kinds for axes in kind.reduction])
    return ManualAxisType.of((varying, *(axes & manual for axes in _reduction_state(primitive, avals, params))))


def _reduction_state(primitive: Any, avals: Types, params: dict) -> State:
    if not has_reduction_state(avals):
        return frozenset(), frozenset()
    rule = primitive.reduction_state
    return no_reduction_state(primitive, avals) if rule is None else rule(avals, params)


def no_reduction_state(primitive: Any, avals: Types) -> Any:
    """Raises NotImplementedError for an operation without a rule for unreduced and reduced operands."""
    types = ", ".join([a.text for a in avals])
    raise NotImplementedError(
        f"unreduced/reduced rule for {primitive.name} is not implemented: its operands are {types}"
    )


def _in_memory(primitive: Any, avals: Types, outs: list[Aval]) -> list[Aval]:
    """The types of the results in the memory space of the operands. Raises ValueError if those of arrays differ."""
    if not primitive.same_memory_space or all([space_of(a) is Device for a in avals]):
        return outs
    arrays = [a for a in avals if type(a) is ShapedArray and a.shape]
    for a, b in itertools.pairwise(arrays):
        if a.memory_space is not b.memory_space:
            raise ValueError(
                f"memory_space of all inputs passed to `{primitive.name}` must be the same. Got one operand "
                f"with type: {a.str_short()} and another operand with type: {b.str_short()}"
            )
    space = arrays[0].memory_space if arrays else Device
    return [o.in_space(space) if type(o) is ShapedArray else o for o in outs]


# ---- rules that many operations share, as attributes of their classes ---------------------------------


def state_of_first(self: Any, avals: Types, params: dict) -> State:
    """`reduction_state` of an operation that is linear in its first operand."""
    return avals[0].reduction_state


def state_of_elements(self: Any, avals: Types, params: dict) -> State:
    """`reduction_state` of an elementwise operation, whose operands cannot be unreduced."""
    return merged_reduction_state(self.name, avals)


def state_of_terms(self: Any, avals: Types, params: dict) -> State:
    """`reduction_state` of an operation that is linear in all operands together."""
    return reduction_state_of_sum(self.name, avals)


def state_of_factors(self: Any, avals: Types, params: dict) -> State:
    """`reduction_state` of a product of two operands."""
    return reduction_state_of_product(self.name, *avals)


def sharded_as_first(self: Any, mesh: Any, avals: Types, outs: Types, **params: Any) -> list:
    """`sharding_rule` of an operation whose results have the axes of the first operand, in other sizes too."""
    return [check_divides(self.name, mesh, avals[0], out.shape) for out in outs]


def sharded_equally(self: Any, mesh: Any, avals: Types, outs: Types, **params: Any) -> list:
    """`sharding_rule` of an operation whose results have the axes of the first operand, in the same sizes."""
    return [avals[0].entries] * len(outs)


def sharded_without_axes(
    self: Any, mesh: Any, avals: Types, outs: Types, *, axes: Sequence[int], **params: Any
) -> list:
    """`sharding_rule` of an operation that removes `axes` of its operand."""
    return [tuple([entry for i, entry in enumerate(avals[0].entries) if i not in axes])] * len(outs)


def sharded_as_all(self: Any, mesh: Any, avals: Types, outs: Types, **params: Any) -> list:
    """`sharding_rule` of an operation whose results have the axes that all operands have, in other sizes too."""
    return [check_divides(self.name, mesh, common_sharding(avals), out.shape) for out in outs]
