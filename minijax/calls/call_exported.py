"""Calls of exported programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.base import config
from minijax.base.symbolic.dimension import SymbolicDim
from minijax.base.symbolic.solver import OPERATIONS, EagerMachine, solved, variables_of
from minijax.hlo import spell
from minijax.hlo.exported import merged, unused_symbols
from minijax.hlo.writer import INDEX, PLATFORM_INDEX, Names
from minijax.ir.body import argument_paths
from minijax.ir.primitive import Primitive
from minijax.ir.types import Aval, token_type
from minijax.partition.memory import Device
from minijax.run.programs import portable

_uses_shardy = config.option("use_shardy_partitioner")


class CallExported(Primitive):
    """Calls an exported program. Its functions are merged into the module."""

    name = "call_exported"
    multiple_results = True
    auto_pvary = False
    constrain_results = False
    same_memory_space = False

    def infer(self, *avals, exported):
        sizes = check_types(exported, avals)
        return [_with_sizes(a, sizes) for a in exported.out_avals]

    def effects(self, *avals, exported):
        return frozenset((*exported.ordered_effects, *exported.unordered_effects))

    def shardings(self, params):
        return (Device,)  # makes results committed, as jax's are

    def lower(self, e, ins, outs, *operands, exported):
        _check_target(e, exported)
        e.is_polymorphic |= exported.uses_global_constants
        kept = exported.module_kept_var_idx
        operands = _constrained(e, operands, ins, exported._in_named_shardings)
        operands = list(map(e.resized, operands, ins, exported.in_avals))
        ordered = list(exported.ordered_effects)
        tokens = [token_type] * len(ordered)
        index, index_type = _platform_index(e, exported.platforms)
        names = [*index, *map(e.tokens.__getitem__, ordered), *(operands[i] for i in kept)]
        types = [*index_type, *tokens, *(exported.in_avals[i] for i in kept)]
        results = e.call(_function(e, exported), names, types, [*tokens, *exported.out_avals])
        e.tokens.update(zip(ordered, results, strict=False))
        results = list(map(e.resized, results[len(ordered) :], exported.out_avals, outs))
        return _constrained(e, results, outs, exported._out_named_shardings)


call_exported_p = CallExported()


def check_types(exported: Any, avals: Sequence[Aval]) -> dict[str, Any]:
    """The values of the program's dimension variables. Raises ValueError if the argument types do not match."""
    for i, (have, want) in enumerate(zip(avals, exported.in_avals, strict=True)):
        if have.ndim == want.ndim and have.dtype == want.dtype and all(map(_may_equal, have.shape, want.shape)):
            continue
        name = argument_paths(exported.in_tree)[i]
        shapes_text = f"expected {want.shape} and called with {have.shape}"
        if have.ndim != want.ndim:
            raise ValueError(f"Rank mismatch for {name}: {shapes_text}")
        if have.dtype != want.dtype:
            raise ValueError(f"Dtype mismatch for {name}: expected {want.dtype} and called with {have.dtype}")
        fits = list(map(_may_equal, have.shape, want.shape))
        raise ValueError(
            f"Shape mismatch for {name}.shape[{fits.index(False)}] (expected same constant): {shapes_text}"
        )
    shapes = [a.shape for a in exported.in_avals]
    if not variables_of(shapes):
        return {}
    return solved(shapes, argument_paths(exported.in_tree), EagerMachine([a.shape for a in avals]))


def _may_equal(have: Any, want: Any) -> bool:
    return isinstance(want, SymbolicDim) or have == want


def _with_sizes(aval: Aval, sizes: Mapping[str, Any]) -> Aval:
    """The type, with dimension variables in its shape replaced by their values."""
    if not sizes:
        return aval
    shape = [d.evaluate(sizes, OPERATIONS) if isinstance(d, SymbolicDim) else d for d in aval.shape]
    return aval.update(shape=tuple(shape))


def _check_target(e, exported):
    """Raises ValueError if the program cannot run on this number of devices or on these platforms."""
    name = exported.fun_name
    if exported.nr_devices not in (1, e.num_partitions):
        raise ValueError(
            f"Function {name} was exported for {exported.nr_devices} devices and is called in a context with "
            f"{e.num_partitions} devices, which is not allowed."
        )
    if exported.nr_devices > 1 and not exported._has_named_shardings:
        raise NotImplementedError(f"Function {name} was exported with GSPMD shardings, which are not supported")
    if exported.nr_devices > 1 and not _uses_shardy.value:
        raise ValueError(
            "The function was exported with shardy enabled but you are calling it with Shardy disabled. Please enable "
            f"Shardy using `--jax_use_shardy_partitioner=True`. Function: {name}"
        )
    unchecked = any(check.is_platform() for check in exported.disabled_safety_checks)
    if not unchecked and not set(e.platforms).issubset(exported.platforms):
        raise ValueError(
            f"Function '{name}' was exported for platforms '{exported.platforms}' but it is used on '{e.platforms}'."
        )


def _platform_index(e, platforms) -> tuple[list, list]:
    """The leading operand: the index of the current platform among the exported ones; empty if there is only one."""
    if len(platforms) == 1:
        return [], []
    places = [platforms.index(p) if p in platforms else 0 for p in e.platforms]
    if len(places) == 1:
        return [e.constant(places[0], INDEX)], [INDEX]
    return [e.select_constant(e.globals[PLATFORM_INDEX], places)], [INDEX]


def _constrained(e, names: Names, avals: Sequence[Aval], shardings: Sequence) -> Names:
    """Constrains values to the shardings that the program expects."""
    if e.num_partitions == 1 or e.manual is not None:
        return names
    rows = zip(names, avals, shardings, strict=True)
    return [x if s is None else e.sharding_constraint(x, a, s) for x, a, s in rows]


def _function(e, exported) -> str:
    """The symbol of the exported program's function, which is emitted at the first call."""
    key = call_exported_p, exported
    if key not in e._called:
        rename = unused_symbols(e, f"call_exported_{exported.fun_name}")
        parts = portable.parts_of(exported.mlir_module_serialized, rename, exported.uses_global_constants)
        merged(e, parts.meshes.values(), parts.functions)
        e._called[key] = spell.symbol(parts.main), 1
    callee, height = e._called[key]
    e._height = max(e._height, height)
    return callee
