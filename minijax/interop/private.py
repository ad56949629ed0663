"""Undocumented names of jax that libraries reach for: what each name under `jax._src` is here.

The import hook alone serves them. A name stands here for a library that uses it, or for pickles of jax; any other is
absent.
"""

from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minijax.base.faces import Face
from minijax.base.naming import ALIAS

PRIVATE = f"{ALIAS}._src"

GENERATORS = {
    name: " ".join(f"{prefix}_{f}={impl}_prng_impl.{f}" for f in ("seed", "split", "random_bits", "fold_in"))
    for name, prefix, impl in (
        ("threefry2x32", "threefry", "threefry"),
        ("threefry4x32", "threefry4x32", "threefry4x32"),
        ("philox2x32", "philox2x32", "philox2x32"),
        ("philox4x32", "philox4x32", "philox4x32"),
        ("rbg", "_rbg", "rbg"),
    )
}
GENERATORS["rbg"] += " " + " ".join(f"_unsafe_rbg_{f}=unsafe_rbg_prng_impl.{f}" for f in ("split", "fold_in"))

ROOMS: dict[str, str] = {
    "ad_util": "minijax.primitives.convert: stop_gradient_p",
    "api_util": "minijax.interop.arguments: infer_argnums_and_argnames",
    "array": "minijax.run.array: _reconstruct_array=reconstruct_array",
    "checkify": """
minijax.api.checkify: checkify user_checks
minijax.api.checks: BatchedError DivisionByZeroError Error FailedCheckError JaxException=CheckError JaxRuntimeError
    NaNError OOBError
typing: Out=Any
""",
    "compiler": "minijax.run.compile: backend_compile_and_load",
    "core": """
minijax.base.errors: ShardingTypeError
minijax.ir.trace: Trace Tracer jaxpr_as_fun
minijax.ir.types: AbstractValue ManualAxisType ShapedArray
minijax.partition.memory: MemorySpace
minijax.hlo.spell: physical_aval=physical
minijax.interop.introspection: TraceTag concrete_or_error full_lower set_current_trace take_current_trace
    trace_state_clean
minijax.ir.primitive: Primitive
""",
    "dispatch": "minijax.run.tokens: wait_for_tokens=effects_barrier",
    "distributed": "minijax.run.distributed: global_state=state",
    "dtypes": """
minijax.base.dtypes: DType ExtendedDType TypePromotionError extended finfo supports_inf to_complex_dtype
""",
    "earray": "minijax.run.array: EArray",
    "flatten_util": "minijax.flatten_util: ravel_pytree",
    "interpreters": "",
    "interpreters.pxla": "",
    "layout": "minijax.partition.layouts: Layout",
    "lib": "jaxlib.xla_client: jaxlib_extension_version=_version\njaxlib: xla_client",
    "lax": "",
    "lax.control_flow": "minijax.higher.scan: scan",
    "lax.convolution": "minijax.primitives.conv: ConvDimensionNumbers",
    "lax.lax": "minijax.primitives.dot: DotAlgorithm DotAlgorithmPreset Precision",
    "lax.slicing": "minijax.primitives.gather_dims: GatherDimensionNumbers ScatterDimensionNumbers",
    # What jax wraps stays a number of Python's here.
    "literals": "builtins: TypedComplex=complex TypedFloat=float TypedInt=int",
    "mesh": "minijax.partition.meshes: AbstractDevice AbstractMesh AxisType Mesh",
    "named_sharding": "minijax.partition.shardings: DuplicateSpecError _unpickle_named_sharding=named_sharding_of",
    "numpy": "",
    "numpy.ufuncs": "minijax.numpy.ufunc_class: ufunc",
    "partition_spec": "minijax.partition.meshes: _get_default_unconstrained=default_unconstrained",
    "pjit": "minijax.dispatch.jit: jit_p",
    "random": "",
    "random.prng": """
minijax.base.dtypes: KeyTy=KeyType
minijax.composed.random: PRNGImpl
minijax.run.keys: PRNGKeyArray
""",
    **{f"random.{module}": f"minijax.composed.random: {names}" for module, names in GENERATORS.items()},
    "state": "",
    "state.types": "minijax.ir.refs: AbstractRef",
    "traceback_util": """
minijax.base.source: UnfilteredStackTrace _exclude_paths=excluded_paths
    api_boundary include_frame register_exclusion
""",
    "tree_util": "minijax.base.tree: default_registry _registry=registered_types flatten_one_level prefix_errors",
    "xla_bridge": "minijax.run.client: _backends=_clients get_backend=get_client",
}


class PrivateModule(ModuleType):
    """A module whose names are those of rooms, also for who sets them."""

    def __init__(self, name: str):
        super().__init__(name)
        path = name.removeprefix(PRIVATE).removeprefix(".")
        submodules = [last for parent, _, last in (other.rpartition(".") for other in ROOMS) if parent == path]
        self.__dict__["_face"] = Face(name, submodules, ROOMS.get(path) or {})

    def __getattr__(self, name: str) -> Any:
        return self._face.attribute(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not self._face.assign(name, value):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return self._face.names()


class PrivateLoader:
    """Loads the modules under `jax._src`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of that name."""
        return PrivateModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""


def private_spec(fullname: str) -> ModuleSpec | None:
    """A spec of the module under `jax._src`, if names are listed for it."""
    path = fullname.removeprefix(PRIVATE).removeprefix(".")
    return ModuleSpec(fullname, PrivateLoader(), is_package=True) if not path or path in ROOMS else None
