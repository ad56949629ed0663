"""Serializes exported programs to bytes in jax's format, and deserializes them."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.export import schema
from minijax.api.export.checks import DisabledSafetyCheck
from minijax.api.export.schema import meaning_of, number_of
from minijax.api.export.trees import tree_of, tree_table
from minijax.api.export.versions import VERSIONS
from minijax.api.export.wire import decoded, encoded
from minijax.base.symbolic_scope import SymbolicScope, symbolic_shape
from minijax.ir import effects
from minijax.ir.types import ShapedArray
from minijax.partition.meshes import AbstractDevice, AbstractMesh, PartitionSpec
from minijax.partition.shardings import NamedSharding
from minijax.run.client import hlo_sharding
from minijax.run.compiled_shardings import (
    get_hlo_sharding_from_serialized_proto,
    get_serialized_proto_from_hlo_sharding,
)

Table = dict[str, Any]


def serialize(exported: Any, vjp_order: int = 0) -> bytearray:
    """An exported program as bytes, with its derivatives up to that order.

    Raises ValueError if it does not have them, NotImplementedError for dtypes and effects that the format lacks.
    """
    return encoded(schema.TABLES, "Exported", _exported_table(exported, vjp_order))


def _exported_table(exported: Any, vjp_order: int) -> Table:
    if vjp_order > 0 and not exported.has_vjp():
        raise ValueError("serialization of an Exported that does not have vjps of high-enough order")
    avals, meshes = _Distinct(_aval_table), _Distinct(_mesh_table)
    shardings = _Distinct(lambda s: _named_table(s, meshes))
    table: Table = {
        name: getattr(exported, name)
        for name in "fun_name nr_devices platforms calling_convention_version module_kept_var_idx "
        "uses_global_constants mlir_module_serialized".split()
    }
    table["serialization_version"] = schema.SERIALIZATION_VERSION
    table["vjp"] = _exported_table(exported.vjp(), vjp_order - 1) if vjp_order > 0 else None
    for side in ("in", "out"):
        hlo, named = getattr(exported, f"{side}_shardings_hlo"), getattr(exported, f"_{side}_named_shardings")
        table[f"{side}_tree"] = tree_table(getattr(exported, f"{side}_tree"))
        table[f"{side}_aval_indices"] = [avals.index(a) for a in getattr(exported, f"{side}_avals")]
        table[f"{side}_avals"] = [avals.tables[i] for i in table[f"{side}_aval_indices"]]
        table[f"{side}_sharding_indices"] = [0 if s is None else 1 + shardings.index(s) for s in named]
        numbered = zip(table[f"{side}_sharding_indices"], hlo, strict=True)
        table[f"{side}_shardings"] = [_sharding_table(shardings.tables[i - 1] if i else None, s) for i, s in numbered]
    table["unique_avals"], table["unique_meshes"] = avals.tables, meshes.tables
    table["unique_shardings"] = shardings.tables
    table["ordered_effects"] = list(map(_effect_table, exported.ordered_effects))
    table["unordered_effects"] = list(map(_effect_table, exported.unordered_effects))
    table["disabled_checks"] = list(map(_check_table, exported.disabled_safety_checks))
    return table


class _Distinct:
    """The tables of distinct values, in the order in which they were first indexed."""

    def __init__(self, table: Callable[[Any], Table]):
        self._table, self._numbers = table, {}
        self.tables: list[Table] = []

    def index(self, value: Any) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self._numbers)
            self.tables.append(self._table(value))
        return self._numbers[value]


def _aval_table(aval: ShapedArray) -> Table:
    return {
        "shape": list(map(str, aval.shape)),
        "dtype": number_of(schema.DTYPES, aval.dtype, "dtype"),
        "memory_space": number_of(schema.MEMORIES, aval.memory_space, "memory"),
    }


def _mesh_table(mesh: AbstractMesh) -> Table:
    device = mesh.abstract_device
    return {
        "axis_sizes": mesh.axis_sizes,
        "axis_names": list(map(str, mesh.axis_names)),
        "axis_types": [number_of(schema.AXIS_TYPES, kind, "type of axes") for kind in mesh.axis_types],
        "abstract_device": None if device is None else {f: getattr(device, f) for f in schema.TABLES["AbstractDevice"]},
    }


def _named_table(sharding: NamedSharding, meshes: _Distinct) -> Table:
    spec, index = sharding.spec, meshes.index(sharding.mesh)
    return {
        "mesh": meshes.tables[index],
        "mesh_index": index,
        "memory_kind": sharding.memory_kind,
        "spec": {
            "partitions": [{"axes": _axes_of_entry(entry)} for entry in spec],
            "reduced": sorted(spec.reduced),
            "unreduced": sorted(spec.unreduced),
        },
    }


def _axes_of_entry(entry: Any) -> list[str]:
    return [] if entry is None else [entry] if isinstance(entry, str) else list(entry)


def _sharding_table(named: Table | None, hlo: Any) -> Table:
    if hlo is None or named is not None:
        return {"kind": schema.UNSPECIFIED, "named_sharding": named}
    proto = get_serialized_proto_from_hlo_sharding(hlo)
    return {"kind": schema.HLO_SHARDING, "hlo_sharding_proto": proto, "named_sharding": named}


def _effect_table(effect: Any) -> Table:
    try:
        same = type(effect)()
    except Exception:
        raise NotImplementedError(f"Effect {effect} must have a nullary constructor to be serializable") from None
    if same != effect or hash(same) != hash(effect):
        raise NotImplementedError(
            f"Effect {effect} must have a nullary class constructor that produces an equal effect object."
        )
    return {"type_name": _effect_name(type(effect))}


def _effect_name(kind: type) -> str:
    module = _JAX_MODULES.get(kind)
    return f"<class 'jax._src.{module}.{kind.__name__}'>" if module else str(kind)


# The modules in jax of the effects that are also jax's.
_JAX_MODULES = {
    effects.IOEffect: "callback",
    effects.OrderedIOEffect: "callback",
    effects.DebugEffect: "debugging",
    effects.OrderedDebugEffect: "debugging",
}


def _check_table(check: DisabledSafetyCheck) -> Table:
    if check.is_platform():
        return {"kind": schema.PLATFORM_CHECK}
    if (target := check.is_custom_call()) is None:
        raise NotImplementedError(f"serialization is not supported for the disabled check {check}")
    return {"kind": schema.CUSTOM_CALL_CHECK, "custom_call_target": target}


# ---- deserializing -------------------------------------------------------------------------------------------


def deserialize(blob: bytes | bytearray, make: Callable[..., Any]) -> Any:
    """`make(**fields)` of the exported program that the bytes hold.

    Raises ValueError for bytes that are damaged, cut off, or of a version that is not supported.
    """
    try:
        data = bytes(memoryview(blob))
        return _exported(decoded(schema.TABLES, "Exported", data), make)
    except (UnicodeDecodeError, RecursionError, KeyError, IndexError) as error:
        raise ValueError(f"the serialized program is damaged: {error}") from error


def _exported(table: Table, make: Callable[..., Any]) -> Any:
    _check_versions(table)
    meshes = list(map(_mesh, table["unique_meshes"] or ()))
    shardings = [_sharding(s, meshes) for s in table["unique_shardings"] or ()]
    scope = SymbolicScope()  # constraints are checked by the program itself
    fields = {**_side_fields(table, "in", shardings, scope), **_side_fields(table, "out", shardings, scope)}
    kept = tuple(table["module_kept_var_idx"] or ())
    if any(i >= len(fields["in_avals"]) for i in kept):
        raise ValueError(f"the serialized program is damaged: its module takes the arguments {kept}")
    vjp = None if table["vjp"] is None else _exported(table["vjp"], make)
    return make(
        fun_name=_required(table, "fun_name"),
        **fields,
        _has_named_shardings=table["in_sharding_indices"] is not None,
        nr_devices=table["nr_devices"] or table["nr_devices_short"],
        platforms=tuple(_required(table, "platforms")),
        ordered_effects=tuple(map(_effect, table["ordered_effects"] or ())),
        unordered_effects=tuple(map(_effect, table["unordered_effects"] or ())),
        disabled_safety_checks=tuple(map(_check, table["disabled_checks"] or ())),
        mlir_module_serialized=_required(table, "mlir_module_serialized"),
        calling_convention_version=table["calling_convention_version"],
        module_kept_var_idx=kept,
        uses_global_constants=table["uses_global_constants"],
        _get_vjp=None if vjp is None else lambda _: vjp,
    )


def _side_fields(table: Table, side: str, shardings: Sequence, scope: SymbolicScope) -> Table:
    """The fields of the arguments, or of the results: their tree, types and shardings."""
    pairs = _sharding_pairs(table, side, shardings)
    named, hlo = ([pair[i] for pair in pairs] for i in range(2))
    avals = [_with_sharding(a, s) for a, s in zip(_avals(table, side, scope), named, strict=True)]
    treedef = tree_of(_required(table, f"{side}_tree"), iter(avals))
    if treedef.num_leaves != len(avals):
        raise ValueError(f"the serialized program is damaged: it has {len(avals)} types for {treedef}")
    return {
        f"{side}_tree": treedef,
        f"{side}_avals": tuple(avals),
        f"_{side}_named_shardings": tuple(named),
        f"{side}_shardings_hlo": tuple(map(_as_hlo, avals, named, hlo)),
    }


def _check_versions(table: Table) -> None:
    if not 2 <= (version := table["serialization_version"]) <= schema.SERIALIZATION_VERSION:
        raise ValueError(
            f"the program was serialized in version {version} of the format: 2 to {schema.SERIALIZATION_VERSION} are "
            "supported"
        )
    if (version := table["calling_convention_version"]) not in VERSIONS:
        raise ValueError(
            f"the program has version {version} of the calling convention: {VERSIONS[0]} to {VERSIONS[-1]} are "
            "supported"
        )


def _required(table: Table, field: str) -> Any:
    if table[field] is None:
        raise ValueError(f"the serialized program is damaged: it has no {field}")
    return table[field]


def _avals(table: Table, side: str, scope: SymbolicScope) -> list[ShapedArray]:
    if (indices := table[f"{side}_aval_indices"]) is None:
        return [_aval(t, scope) for t in table[f"{side}_avals"] or ()]
    avals = [_aval(t, scope) for t in table["unique_avals"] or ()]
    return [avals[i] for i in indices]


def _aval(table: Table, scope: SymbolicScope) -> ShapedArray:
    dtype: Any = meaning_of(schema.DTYPES, table["dtype"], "dtype")
    shape = symbolic_shape(", ".join(table["shape"] or ()), scope=scope)
    if not table["memory_space"]:
        return ShapedArray(shape, dtype)
    space: Any = meaning_of(schema.MEMORIES, table["memory_space"], "memory")
    return ShapedArray(shape, dtype, memory_space=space)


def _with_sharding(aval: ShapedArray, sharding: NamedSharding | None) -> ShapedArray:
    """The type of a value with this sharding, which a mesh with Explicit axes adds to the type."""
    if sharding is None or not sharding.mesh.explicit_axes:
        return aval
    if len(sharding.spec) > aval.ndim:
        raise ValueError(f"the serialized program is damaged: a value of type {aval} has the spec {sharding.spec}")
    return aval.update(sharding=NamedSharding(sharding.mesh, sharding.spec.padded(aval.ndim)))


def _sharding_pairs(table: Table, side: str, shardings: Sequence) -> list[tuple[NamedSharding | None, Any]]:
    """For each argument or result its named sharding and its XLA sharding."""
    if (indices := table[f"{side}_sharding_indices"]) is not None:
        return [(shardings[i - 1] if i else None, None) for i in indices]
    return [(None, _hlo_sharding(s)) for s in table[f"{side}_shardings"] or ()]


def _as_hlo(aval: ShapedArray, named: NamedSharding | None, hlo: Any) -> Any:
    return hlo if named is None else hlo_sharding(named, aval.ndim)


def _hlo_sharding(table: Table) -> Any:
    if table["kind"] == schema.UNSPECIFIED:
        return None
    if table["kind"] != schema.HLO_SHARDING:
        raise ValueError(f"the serialized program is damaged: there is no sharding of kind {table['kind']}")
    return get_hlo_sharding_from_serialized_proto(_required(table, "hlo_sharding_proto"))


def _mesh(table: Table) -> AbstractMesh:
    device = table["abstract_device"]
    kinds: Any = tuple([meaning_of(schema.AXIS_TYPES, kind, "type of axes") for kind in table["axis_types"] or ()])
    device = None if device is None else AbstractDevice(**{**device, "num_cores": device["num_cores"] or None})
    return AbstractMesh(tuple(table["axis_sizes"]), tuple(table["axis_names"]), kinds, abstract_device=device)


def _sharding(table: Table, meshes: Sequence[AbstractMesh]) -> NamedSharding:
    spec = _required(table, "spec")
    entries = [tuple(e["axes"] or ()) for e in spec["partitions"] or ()]
    entries = [None if not e else e[0] if len(e) == 1 else e for e in entries]
    state = {name: frozenset(spec[name] or ()) for name in ("reduced", "unreduced")}
    mesh = meshes[table["mesh_index"]]
    return NamedSharding(mesh, PartitionSpec(*entries, **state), memory_kind=table["memory_kind"])


def _effect(table: Table) -> Any:
    name = _required(table, "type_name")
    for kind in sorted(effects.registered_types(), key=str):
        if _effect_name(kind) == name:
            return kind()
    raise NotImplementedError(f"the serialized program has the effect {name}, which is not registered")


def _check(table: Table) -> DisabledSafetyCheck:
    if table["kind"] == schema.PLATFORM_CHECK:
        return DisabledSafetyCheck.platform()
    if table["kind"] == schema.CUSTOM_CALL_CHECK:
        return DisabledSafetyCheck.custom_call(_required(table, "custom_call_target"))
    raise ValueError(f"the serialized program is damaged: there is no check of kind {table['kind']}")
