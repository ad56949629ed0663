"""`export`: makes an `Exported` from a jitted function, and describes arguments whose shapes are symbolic."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.autodiff import vjp
from minijax.api.export.checks import DisabledSafetyCheck
from minijax.api.export.exported import Exported, abstract_sharding
from minijax.api.export.versions import VERSIONS
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct, abstract
from minijax.api.stages import Traced
from minijax.base import config, tree
from minijax.base.symbolic.dimension import GUIDE, is_symbolic_dim
from minijax.base.symbolic.scope import SymbolicScope as SymbolicScope, symbolic_shape as symbolic_shape
from minijax.dispatch.lowering import LoweredProgram
from minijax.hlo.exported import unstable_custom_calls
from minijax.ir.effects import ordered_effects
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import jaxpr_as_fun
from minijax.primitives import dimension_value  # noqa: F401  makes symbolic dimensions values of programs
from minijax.run.clients import client
from minijax.run.programs import portable

_version = config.option("jax_export_calling_convention_version")
_newest = config.option("jax_export_ignore_forward_compatibility")

Rules = tuple[tuple[Any, Callable], ...]  # (primitive, lowering rule) pairs, which replace the primitives' own


def exporter(
    fun_jit: Callable, platforms: Sequence[str] | None, disabled_checks: Sequence[DisabledSafetyCheck], rules: Rules
) -> Callable[..., Exported]:
    """A function that exports `fun_jit` for arguments, or for `ShapeDtypeStruct`s in their place.

    Raises ValueError for a function that is not jitted.
    """
    if not (hasattr(fun_jit, "trace") and hasattr(fun_jit, "lower")):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")

    def do_export(*args_specs: Any, **kwargs_specs: Any) -> Exported:
        check_scopes(getattr(fun_jit, "__name__", str(fun_jit)), args_specs, kwargs_specs)
        traced = fun_jit.trace(*args_specs, **kwargs_specs)
        return exported_of(traced, tuple(platforms or (client.default_backend(),)), disabled_checks, rules)

    return do_export


def exported_of(
    traced: Traced, platforms: tuple[str, ...], disabled_checks: Sequence[DisabledSafetyCheck], rules: Rules = ()
) -> Exported:
    """The exported program of a traced function."""
    version = _version.value
    if version not in VERSIONS:
        raise ValueError(
            f"The requested export calling convention version {version} is outside the range of supported versions "
            f"[{VERSIONS[0]}..{VERSIONS[-1]}]"
        )
    if any(type(a) is AbstractRef for a in traced._flat_avals):
        raise NotImplementedError(f"export: {traced.fun_name} takes references, which exported programs cannot")
    lowered = traced._lowered(platforms, rules)
    program = lowered._program
    _check_calls(program, disabled_checks)
    placement, out_avals = program.placement, tuple(traced._out_avals)
    ins = [port.sharding for port in placement.ins]
    outs = [port.sharding for port in placement.outs]
    effects = sorted(program.closed.effects, key=str)
    ordered = tuple(ordered_effects.filter_in(effects))
    taken = [s if i in program.used else None for i, s in enumerate(ins)]
    named = [
        tuple([abstract_sharding(s, a.ndim, placement.mesh) for s, a in zip(shardings, avals, strict=True)])
        for shardings, avals in ((taken, traced._flat_avals), (outs, out_avals))
    ]
    return Exported(
        fun_name=traced.fun_name,
        in_tree=traced.in_tree,
        in_avals=tuple(traced._flat_avals),
        out_tree=traced.out_tree,
        out_avals=tuple(
            [a if s is None else a.in_space(s._memory_space) for a, s in zip(out_avals, outs, strict=True)]
        ),
        _has_named_shardings=True,
        _in_named_shardings=named[0],
        _out_named_shardings=named[1],
        in_shardings_hlo=(None,) * len(ins),
        out_shardings_hlo=(None,) * len(outs),
        nr_devices=placement.num_devices,
        platforms=platforms,
        ordered_effects=ordered,
        unordered_effects=tuple([e for e in effects if e not in ordered]),
        disabled_safety_checks=tuple(disabled_checks),
        mlir_module_serialized=portable.serialized(lowered._located, _newest.value),
        calling_convention_version=version,
        module_kept_var_idx=program.used,
        uses_global_constants=program.module.is_polymorphic,
        _get_vjp=lambda exported: _exported_vjp(traced, exported, ins, outs),
    )


def _check_calls(program: LoweredProgram, disabled_checks: Sequence[DisabledSafetyCheck]) -> None:
    """Raises for callbacks, which other processes do not have, and custom calls that later versions may not have."""
    if program.module.callbacks:
        raise NotImplementedError("serialization of host_callbacks is not yet implemented")
    if program.module.watchers:
        raise NotImplementedError("export: programs that call functions while they are compiled cannot be exported")
    allowed = {target for check in disabled_checks if (target := check.is_custom_call()) is not None}
    if "ALL" in allowed:
        return
    if lines := unstable_custom_calls(program.module.text, allowed):
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility guarantees. They may be "
            "allowed with `disabled_checks=[DisabledSafetyCheck.custom_call(target)]`. Examples are:\n"
            + "\n".join(lines[:5])
        )


def _exported_vjp(traced: Traced, exported: Exported, ins: Sequence, outs: Sequence) -> Exported:
    """The program of the reverse derivative; `ins` and `outs` are the shardings of arguments and results."""
    primal, count = jaxpr_as_fun(traced.jaxpr), len(exported.in_avals)

    def fun_vjp_jax(*args_and_out_cts_flat_jax):
        args, out_cts = args_and_out_cts_flat_jax[:count], args_and_out_cts_flat_jax[count:]
        _, pullback = vjp(primal, *args)
        return pullback(list(out_cts))

    cts = [a.to_ct_aval() for a in exported.out_avals]
    structs = [_struct(a, s) for a, s in zip((*exported.in_avals, *cts), (*ins, *outs), strict=True)]
    options: dict[str, Any] = {}
    if any(s is not None for s in (*ins, *outs)):
        options = dict(in_shardings=(*ins, *outs), out_shardings=tuple(ins))
    traced_vjp = jit(fun_vjp_jax, **options).trace(*structs)
    return exported_of(traced_vjp, exported.platforms, exported.disabled_safety_checks)


def _struct(aval: Any, sharding: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Returns `args` with each leaf replaced by a `ShapeDtypeStruct` of the shape that `shapes_specs` describes.

    `shapes_specs` is a tree prefix of `args` with texts as in `symbolic_shape`; None is the leaf's own shape.
    Variables are of `scope`, or of a new one with `constraints`.

    Example:
        >>> jax.export.symbolic_args_specs({"x": jnp.ones((2, 3))}, "b, ...")
        {'x': ShapeDtypeStruct(shape=(b, 3), dtype=float32)}
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    leaves, treedef = tree.flatten(args)
    avals = [abstract(x) for x in leaves]
    for error in tree.prefix_errors(shapes_specs, args, _is_none):
        raise error("export.symbolic_args_specs shapes_specs")
    specs = tree.broadcast_prefix(shapes_specs, args, _is_none)
    shapes = [symbolic_shape(spec, like=aval.shape, scope=scope) for spec, aval in zip(specs, avals, strict=True)]
    return treedef.unflatten(ShapeDtypeStruct(shape, aval.dtype) for shape, aval in zip(shapes, avals, strict=True))


def check_scopes(name: str, args: tuple, kwargs: dict) -> None:
    """Raises ValueError if the shapes of arguments have variables of different scopes."""
    scope, place = None, ""
    for path, x in tree.tree_leaves_with_path((args, kwargs)):
        for d in getattr(x, "shape", ()):
            if not is_symbolic_dim(d):
                continue
            where = f"{('args', 'kwargs')[path[0].idx]}{tree.keystr(path[1:])}"
            if scope is None:
                scope, place = d.scope, where
            if d.scope is not scope:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {name}.\nExpected current (from {place}) scope "
                    f"{scope}\nand found for '{d}' ({where}) scope {d.scope}\n"
                    f"See {GUIDE}#user-specified-symbolic-constraints."
                )


def _is_none(x: Any) -> bool:
    return x is None
