"""The tables of jax's serialized programs, and the meanings of the numbers in them."""

from minijax.base import dtypes
from minijax.composed.random import rbg_prng_impl, threefry_prng_impl, unsafe_rbg_prng_impl
from minijax.partition.memory import MemorySpace
from minijax.partition.meshes import AxisType

SERIALIZATION_VERSION = 3


def _table(fields: str) -> dict[str, str]:
    return dict(field.split(":") for field in fields.split())


# The fields in the order of their slots, which are jax's.
TABLES = {
    name: _table(fields)
    for name, fields in {
        "PyTreeDef": "kind:i8 children:[PyTreeDef] children_names:[string] custom_name:string custom_auxdata:[u8]",
        "AbstractValue": "kind:i8 shape:[string] dtype:i8 memory_space:i8",
        "AbstractDevice": "device_kind:string num_cores:u32 platform:string",
        "AbstractMesh": "axis_sizes:[u32] axis_names:[string] axis_types:[i8] abstract_device:AbstractDevice",
        "PartitionSpecOneAxis": "axes:[string]",
        "PartitionSpec": "partitions:[PartitionSpecOneAxis] reduced:[string] unreduced:[string]",
        "NamedSharding": "mesh:AbstractMesh spec:PartitionSpec memory_kind:string mesh_index:u32",
        "Sharding": "kind:i8 hlo_sharding_proto:[u8] named_sharding:NamedSharding",
        "Effect": "type_name:string",
        "DisabledSafetyCheck": "kind:i8 custom_call_target:string",
        "Exported": """
            serialization_version:u16 fun_name:string in_tree:PyTreeDef in_avals:[AbstractValue] out_tree:PyTreeDef
            out_avals:[AbstractValue] nr_devices_short:i16 in_shardings:[Sharding] out_shardings:[Sharding]
            platforms:[string] ordered_effects:[Effect] unordered_effects:[Effect] disabled_checks:[DisabledSafetyCheck]
            mlir_module_serialized:[u8] calling_convention_version:u16 module_kept_var_idx:[u16]
            uses_global_constants:bool vjp:Exported nr_devices:u32 unique_avals:[AbstractValue]
            unique_meshes:[AbstractMesh] unique_shardings:[NamedSharding] in_aval_indices:[u32] out_aval_indices:[u32]
            in_sharding_indices:[u32] out_sharding_indices:[u32]
        """,
    }.items()
}

LEAF, NONE, TUPLE, LIST, DICT, CUSTOM = range(6)  # kinds of trees
PLATFORM_CHECK, CUSTOM_CALL_CHECK = range(2)
UNSPECIFIED, HLO_SHARDING, NAMED_SHARDING = range(3)

_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16 int4 "
    "uint4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float0 float8_e4m3 float8_e3m4 "
    "float8_e8m0fnu float4_e2m1fn"
).split()
_KEYS = [dtypes.KeyType(impl) for impl in (threefry_prng_impl, rbg_prng_impl, unsafe_rbg_prng_impl)]
_KNOWN = {**dtypes.BY_NAME, "float0": dtypes.float0}
DTYPES = {i: _KNOWN[name] for i, name in enumerate(_NAMES) if name in _KNOWN} | dict(enumerate(_KEYS, len(_NAMES)))
MEMORIES = {space.value: space for space in MemorySpace}
AXIS_TYPES = {1: AxisType.Auto, 2: AxisType.Explicit, 3: AxisType.Manual}


def number_of(table: dict, value: object, what: str) -> int:
    """The number that encodes a value. Raises NotImplementedError if jax's format has none."""
    for number, known in table.items():
        if known == value:
            return number
    raise NotImplementedError(f"serialization is not supported for the {what} {value}")


def meaning_of(table: dict, number: int, what: str) -> object:
    """The value that a number encodes. Raises ValueError for an unknown number."""
    if number not in table:
        raise ValueError(f"the serialized program is damaged, or of a later version: {what} {number} is not known")
    return table[number]
