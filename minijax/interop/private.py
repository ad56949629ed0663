"""Undocumented names under `jax._src` that libraries use, and the objects that they map to.

Only the import hook serves them. A name is listed if a library or document uses it, if pickles of jax contain it, or
if jax keeps a public name there (`PUBLIC`); all others are absent.
"""

import importlib
import os
import re
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minijax.base.faces import Face
from minijax.base.naming import ALIAS, PACKAGE

PRIVATE = f"{ALIAS}._src"
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

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
    "ad_checkpoint": "minijax.api.checkpoint: checkpoint remat",
    "api": """
minijax.api.autodiff: VJP fwd_and_bwd grad hessian jacfwd jacobian jacrev jvp linear_transpose linearize value_and_grad
    vjp
minijax.api.jit: eval_shape jit make_jaxpr
minijax.api.pmap: pmap
minijax.api.shapes: ShapeDtypeStruct
minijax.api.transfer: block_until_ready copy_to_host_async device_get device_put named_call named_scope
minijax.api.vmap: vmap
minijax.base.cache: clear_caches
minijax.base.config: disable_jit
minijax.base.dtypes: _dtype=dtype float0
minijax.interop.backends: clear_backends
minijax.run.arrays.array: live_arrays
minijax.run.programs.tokens: effects_barrier
""",
    "api_util": "minijax.interop.arguments: infer_argnums_and_argnames",
    "array": "minijax.run.arrays.array: ArrayImpl Shard _reconstruct_array=reconstruct_array",
    "basearray": "minijax.run.arrays.array: Array\nminijax.typing: ArrayLike",
    "checkify": """
minijax.api.checkify: checkify user_checks
minijax.api.checkify_errors: BatchedError DivisionByZeroError Error FailedCheckError JaxException=CheckError
    JaxRuntimeError NaNError OOBError
typing: Out=Any
""",
    "cudnn.fused_attention_stablehlo": """
minijax.interop.flash_attention: _normalize_layout=normalize_layout check_cudnn_version check_is_flash_attention
    check_layout
minijax.nn.cudnn_attention: check_compute_capability
""",
    "compiler": "minijax.run.programs.compile: backend_compile_and_load",
    "config": """
minijax.base.config: Config Flag NumpyDtypePromotion State=Option allow_f16_reductions array_garbage_collection_guard
    auto_pcast check_tracer_leaks checking_leaks config debug_infs debug_key_reuse debug_nans default_device
    default_matmul_precision default_prng_impl disable_jit enable_checks enable_custom_prng enable_x64
    explain_cache_misses include_full_tracebacks_in_locations jax2tf_associative_scan_reductions legacy_prng_key
    log_compiles make_user_context no_execution no_tracing numpy_dtype_promotion numpy_rank_promotion
    remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard threefry_partitionable traceback_filtering
    transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device
    update=config.update
""",
    "core": """
minijax.base.errors: ShardingTypeError
minijax.ir.trace: EvalTrace Trace Tracer jaxpr_as_fun
minijax.ir.types: AbstractValue ManualAxisType ShapedArray typeof
minijax.ir.jaxpr: DropVar Jaxpr ClosedJaxpr JaxprEqn Literal Var
minijax.ir.refs: Ref
minijax.partition.memory: MemorySpace
minijax.hlo.spell: physical_aval=physical
minijax.ir.concrete: concrete_or_error
minijax.ir.context: JaxprEqnContext=current_context
minijax.interop.introspection: TraceTag full_lower is_constant_dim is_constant_shape
    primal_dtype_to_tangent_dtype set_current_trace take_current_trace to_concrete_value trace_ctx trace_state_clean
minijax.interop.calls: call call_p closed_call_p
minijax.ir.primitive: Primitive
""",
    "dispatch": "minijax.run.programs.tokens: wait_for_tokens=effects_barrier",
    "distributed": "minijax.run.clients.distributed: global_state=state",
    "dtypes": """
minijax.base.dtypes: DType ExtendedDType TypePromotionError extended finfo supports_inf to_complex_dtype
""",
    "earray": "minijax.run.arrays.array: EArray",
    "flatten_util": "minijax.flatten_util: ravel_pytree",
    "interpreters": "",
    "interpreters.batching": """
minijax.interop.rules: make_iota to_elt
minijax.transforms.batch: BatchTrace BatchTracer
""",
    "interpreters.pxla": "",
    "layout": "minijax.partition.layouts: AutoLayout Format Layout",
    "lib": "jaxlib.xla_client: jaxlib_extension_version=_version\njaxlib: xla_client",
    "lib._jax": "minijax.api.stages: PjitFunction",
    "lib.mlir": "minijax.run.programs.bindings: ir passmanager",
    "lib.mlir.dialects": "minijax.run.programs.bindings: arith chlo func hlo=stablehlo math memref scf sdy vector",
    "lax": "",
    "lax.control_flow": "minijax.higher.scan: scan",
    "lax.convolution": "minijax.primitives.conv: ConvDimensionNumbers",
    "lax.lax": "minijax.primitives.dot: DotAlgorithm DotAlgorithmPreset Precision",
    "lax.slicing": "minijax.primitives.gather_dims: GatherDimensionNumbers ScatterDimensionNumbers",
    "literals": "minijax.ir.types: TypedComplex TypedFloat TypedInt",
    "mesh": "minijax.partition.meshes: AbstractDevice AbstractMesh AxisType Mesh",
    "named_sharding": "minijax.partition.shardings: DuplicateSpecError _unpickle_named_sharding=named_sharding_of",
    "linear_util": "minijax.interop.arguments: debug_info\nminijax.ir.jaxpr: DebugInfo",
    "nn": "",
    "numpy": "",
    "numpy.index_tricks": "minijax.numpy.grids: CClass RClass",
    "numpy.linalg": "minijax.numpy.linalg: EigResult EighResult QRResult SVDResult SlogdetResult",
    "numpy.ufuncs": "minijax.numpy.ufunc_class: ufunc",
    "numpy.util": """
minijax.primitives.promote: check_arraylike check_no_float0s=check_no_float0 ensure_arraylike=arrays promote_args
    promote_args_inexact promote_args_numeric promote_dtypes promote_dtypes_complex promote_dtypes_inexact
    promote_dtypes_numeric promote_shapes
""",
    "numpy.vectorize": """
minijax.interop.utilities: _apply_excluded=without_excluded _check_output_dims=checked
    _parse_gufunc_signature=signature_of _parse_input_dimensions=sizes_of
""",
    "partition_spec": "minijax.partition.meshes: _get_default_unconstrained=default_unconstrained",
    "pjit": "minijax.dispatch.jit: jit_p\nminijax.api.jit: jit\nminijax.api.meshes: auto_axes",
    "public_test_util": "minijax.api.derivative_checks: check_close check_grads check_jvp check_vjp",
    "random": "",
    "random.prng": """
minijax.base.dtypes: KeyTy=KeyType
minijax.composed.random: PRNGImpl
minijax.run.arrays.keys: PRNGKeyArray
""",
    **{f"random.{module}": f"minijax.composed.random: {names}" for module, names in GENERATORS.items()},
    "sharding_impls": "minijax.interop.introspection: canonicalize_sharding\nminijax.partition.shardings: UNSPECIFIED",
    "shard_map": "minijax.api.shard_map: shard_map smap\nminijax.higher.shard_map: shard_map_p",
    "stages": "minijax.api.stages: ArgInfo Compiled Lowered Traced",
    "state": "",
    "state.types": "minijax.ir.refs: AbstractRef",
    "test_util": """
minijax.api.derivative_checks: check_grads check_jvp check_vjp
minijax.run.clients.client: device_under_test=default_backend
""",
    "traceback_util": """
minijax.base.source: UnfilteredStackTrace _exclude_paths=excluded_paths
    api_boundary filter_traceback=filtered include_frame register_exclusion
""",
    "tree_util": "minijax.base.tree: default_registry _registry=registered_types flatten_one_level prefix_errors",
    "typing": "minijax.base.dtypes: SupportsDType",
    "util": """
jaxlib.utils: foreach safe_map safe_zip
minijax.base.util: curry unzip2
minijax.base.dims: canonicalize_axis=canonical_axis
minijax.interop.utilities: HashableFunction HashablePartial cache ceil_of_ratio concatenate flatten=concatenate
    fun_name merge_lists partition_list split_list split_list_checked stable_unique subs_list subvals tuple_delete
    tuple_insert tuple_update unflatten unzip3 weakref_lru_cache wrap_name wraps
""",
    "xla_bridge": """
minijax.interop.backends: backends_are_initialized
minijax.run.clients.client: _backends=_clients default_backend device_count devices get_backend=get_client host_count
    host_id host_ids local_device_count local_devices process_count process_index process_indices
""",
}

# The private modules that contain the names of a public one; `=` gives its path if that differs.
PUBLIC = """
ad_checkpoint ad_util=interpreters.ad api_util checkify=experimental.checkify core=extend.core,core custom_batching
custom_derivatives custom_partitioning=experimental.custom_partitioning debugging=debug distributed dlpack dtypes
errors export export._export=export export.shape_poly=export ffi flatten_util hijax=experimental.hijax image
image.scale=image interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval interpreters.pxla
lax lax.control_flow=lax lax.convolution=lax lax.fft=lax lax.lax=lax lax.linalg lax.parallel=lax lax.slicing=lax
lax.special=lax layout=experimental.layout linear_util=extend.linear_util mesh=sharding
mesh_utils=experimental.mesh_utils monitoring named_sharding=sharding nn nn.functions=nn nn.initializers numpy
numpy.array_creation=numpy numpy.einsum=numpy numpy.fft numpy.index_tricks=numpy numpy.indexing=numpy
numpy.lax_numpy=numpy numpy.linalg numpy.reductions=numpy numpy.setops=numpy numpy.sorting=numpy
numpy.tensor_contractions=numpy numpy.ufuncs=numpy numpy.vectorize=numpy ops ops.scatter=ops partition_spec=sharding
pjit=experimental.pjit profiler random random.core=random random.prng=extend.random ref scipy scipy.linalg
scipy.signal scipy.special scipy.stats sharding sharding_impls=sharding source_info_util=extend.source_info_util
stages tree tree_util typing xla_bridge=extend.backend
"""
PUBLIC_OF = {path: public or path for path, _, public in (entry.partition("=") for entry in PUBLIC.split())}
PATHS = sorted({*ROOMS, *PUBLIC_OF})


def _public_names(path: str) -> dict[str, tuple[str, str]]:
    """Maps the names of a public module, except submodules, to (defining module, name there)."""
    module = importlib.import_module(path)
    face = getattr(vars(module).get("__getattr__"), "__self__", None)
    if isinstance(face, Face):
        return face.places
    shown = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    return {n: (module.__name__, n) for n in shown if not isinstance(getattr(module, n), ModuleType)}


# Where most of a private module's classes are, if its first entry above tells another place.
FILES = {
    "checkify": "api.checkify_errors", "core": "ir.jaxpr", "custom_derivatives": "api.custom",
    "interpreters.ad": "transforms.jvp", "interpreters.batching": "transforms.batch",
    "interpreters.partial_eval": "ir.trace", "lax.slicing": "primitives.gather_dims", "random.prng": "composed.random",
    "partition_spec": "partition.meshes", "sharding": "partition.shardings",
}  # fmt: skip


def _file(path: str) -> str:
    """The file of this package that a private module stands for: `inspect` looks there for classes."""
    room = re.match(rf"\s*{PACKAGE}\.([\w.]+): ", ROOMS.get(path) or "")
    public = PUBLIC_OF.get(path, "").partition(",")[0]
    place = FILES.get(path) or (room[1] if room else public)
    base = os.path.join(_ROOT, *place.split("."))
    return f"{base}.py" if os.path.exists(f"{base}.py") else os.path.join(base, "__init__.py")


class PrivateModule(ModuleType):
    """A module whose attributes are those of other modules, for reading and for setting."""

    def __init__(self, name: str):
        super().__init__(name)
        del self.__dict__["__spec__"]  # Made on demand, like the face: `import jax` makes many of these.

    def _names(self) -> Face:
        face = self.__dict__.get("_face")
        if face is None:
            path = self.__name__.removeprefix(PRIVATE).removeprefix(".")
            submodules = [last for parent, _, last in (other.rpartition(".") for other in PATHS) if parent == path]
            face = Face(self.__name__, ROOMS.get(path) or {}, submodules)
            for public in PUBLIC_OF.get(path, "").split(",") if path in PUBLIC_OF else ():
                face.places |= _public_names(f"{PACKAGE}.{public}") | face.places
            self.__dict__["_face"] = face
        return face

    def __getattr__(self, name: str) -> Any:
        if name == "__spec__":
            self.__dict__[name] = spec = private_spec(self.__name__)
            return spec
        if name == "__path__":
            return []
        if name == "__file__":
            return _file(self.__name__.removeprefix(PRIVATE).removeprefix("."))
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            return self._names().attribute(name)
        except AttributeError as error:
            known = str(error).partition(". dir(")[0]  # for a private module, what it lists tells little
            raise AttributeError(f"{known}: {absence(f'{self.__name__}.{name}')}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or not self._names().assign(name, value):
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__ or not self._names().remove(name):
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return self._names().names()


class PrivateLoader:
    """Loads the modules under `jax._src`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Returns the module of that name."""
        return PrivateModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module has no code."""


def private_spec(fullname: str) -> ModuleSpec | None:
    """Returns the spec of a module under `jax._src` if names are listed for it, else None."""
    path = fullname.removeprefix(PRIVATE).removeprefix(".")
    if not path or path in PATHS:
        return ModuleSpec(fullname, PrivateLoader(), is_package=True)
    _refuse(fullname)
    return None


def absence(name: str) -> str:
    """Returns the explanation, in errors, of a name that is not listed."""
    return f"minijax has no private name {name}"


def _refuse(fullname: str) -> None:
    """Raises an explanation if an import statement looks for the module; does nothing for `find_spec` and the like."""
    frame, steps = sys._getframe(2), []
    while frame is not None and (not steps or "importlib" in frame.f_code.co_filename):
        if "importlib" in frame.f_code.co_filename:
            steps.append(frame.f_code.co_name)
        frame = frame.f_back
    if "_handle_fromlist" in steps:  # `from module import name`, and the name is not an attribute either
        parent, _, name = fullname.rpartition(".")
        raise ImportError(f"cannot import name {name!r} from {parent!r}: {absence(fullname)}", name=parent)
    if "_find_and_load_unlocked" in steps:
        raise ModuleNotFoundError(f"No module named {fullname!r}: {absence(fullname)}", name=fullname)
