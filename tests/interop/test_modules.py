"""Modules that libraries import and use little of, and names that jax removed."""

import importlib
import inspect
import sys
import warnings

import compare
import mesh_language
import pytest


def module(s):
    """The module of that name under `jax`, on this side."""

    def load(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(f"{s.jax.__name__}.{name}")

    return load


def member(s):
    """An attribute of a module, without the warning of its first use."""

    def of(name, attribute):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(module(s)(name), attribute)

    return of


def warned(s):
    """The warnings of an attribute of a module at its first use."""

    def of(name, attribute):
        owner = module(s)(name)
        vars(owner).pop(attribute, None)
        getattr(vars(owner).get("__getattr__"), "cache_clear", int)()  # jax remembers what it has warned of
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            getattr(owner, attribute)
        return [(w.category.__name__, str(w.message)) for w in seen]

    return of


GIVEN = {"module": module, "member": member, "warned": warned, "inspect": lambda s: inspect}
GIVEN["mesh_utils"] = lambda s: module(s)("experimental.mesh_utils")
GIVEN["hosts"] = lambda s: module(s)("experimental.multihost_utils")

NAMES = """
experimental.layout: Format Layout with_layout_constraint
experimental.mesh_utils: create_device_mesh create_hybrid_device_mesh
experimental.multihost_utils: ProcessFailureError assert_equal broadcast_one_to_all global_array_to_host_local_array
    host_local_array_to_global_array live_devices process_allgather reached_preemption_sync_point sync_global_devices
experimental.hijax: AbstractRef AbstractValue AvalMutableQDD AvalQDD HiPrimitive HiPspec HiType MutableHiType ShapedArray
    TransformedRef VJPHiPrimitive Zero aval_method aval_property instantiate_zeros is_undefined_primal register_hitype
experimental.roofline: RooflineResult RooflineRuleContext RooflineShape register_roofline register_standard_roofline
    roofline roofline_and_grad
experimental.roofline.roofline: RooflineResult RooflineRuleContext RooflineShape register_roofline
    register_standard_roofline roofline roofline_and_grad
experimental.fused: fused
experimental.scheduling_groups: scheduling_group xla_metadata_call
experimental.serialize_executable: deserialize_and_load serialize
experimental: EArray cur_qdd primal_tangent_dtype
export: DisabledSafetyCheck Exported SymbolicScope default_export_platform deserialize export is_symbolic_dim
    register_namedtuple_serialization register_pytree_node_serialization symbolic_args_specs symbolic_shape
distributed: initialize is_initialized shutdown
experimental.topologies: TopologyDescription get_attached_topology get_topology_desc make_mesh
extend.backend: backend_xla_version backends clear_backends clear_in_memory_compilation_cache get_backend
    get_compile_options get_default_device ifrt_proxy register_backend_cache register_backend_factory
extend.ifrt_programs: ifrt_programs
extend.pallas: GridMapping register_lowering_rule
extend.lowering: JaxIrContext LoweringRuleContext upstream_dialects
extend.xla: PipelineStage clear_hlo_module_transformation register_hlo_module_transformation
ffi: build_ffi_lowering_function ffi_call ffi_lowering include_dir pycapsule register_ffi_target
    register_ffi_target_as_batch_partitionable register_ffi_type register_ffi_type_id
lib: __version__
tools:
cloud_tpu_init:
"""


@pytest.mark.parametrize("line", NAMES.strip().replace("\n    ", " ").splitlines())
def test_modules_import_with_their_names(line):
    name, names = line.split(":")
    for package in (compare.ours(), compare.theirs()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = importlib.import_module(f"{package.__name__}.{name}")
        assert [n for n in names.split() if not hasattr(loaded, n)] == []
        assert inspect.ismodule(getattr(package, name.split(".")[0]))


SAME = """
module("lib").__version__
module("distributed").is_initialized(), module("distributed").shutdown()
module("export").default_export_platform(), module("export").is_symbolic_dim(3)
module("export").minimum_supported_calling_convention_version
module("export").maximum_supported_calling_convention_version
mesh_utils.create_device_mesh((4, 2)).tolist()
mesh_utils.create_device_mesh([np.int64(2), 2], devices=d[4:]).tolist()
mesh_utils.create_device_mesh((2, 2), np.array(d[:4]), contiguous_submeshes=True).tolist()
mesh_utils.create_device_mesh((8,), allow_split_physical_axes=True).dtype
mesh_utils.create_hybrid_device_mesh((4, 2), (1, 1), process_is_granule=True).tolist()
mesh_utils.create_hybrid_device_mesh((8,), (1,), process_is_granule=True, should_sort_granules_by_key=False).tolist()
jax.sharding.Mesh(mesh_utils.create_device_mesh((4, 2)), ("x", "y"))
hosts.broadcast_one_to_all({"a": numbers(2), "b": 1, "c": jnp.ones(2), "d": None})
hosts.broadcast_one_to_all(a, is_source=False)
hosts.process_allgather((numbers(2), 2.0, v))
hosts.process_allgather((numbers(2), 2.0, v), tiled=True)
hosts.assert_equal({"a": numbers(2)}, "differ"), hosts.sync_global_devices("here")
hosts.reached_preemption_sync_point(1)
hosts.host_local_array_to_global_array(numbers(8, 2), m, P("x"))
hosts.host_local_array_to_global_array({"a": numbers(8, 2), "b": numbers(8)}, m, {"a": P("x", "y"), "b": P()})
hosts.global_array_to_host_local_array(a, m, P("x"))
hosts.global_array_to_host_local_array(numbers(8, 2), m, P("x"))
jax.vmap(lambda x: hosts.host_local_array_to_global_array(x, m, P("x")))(numbers(2, 8))
jax.grad(lambda x: hosts.host_local_array_to_global_array(x, m, P("x")).sum())(numbers(8, 2)).tolist()
str(hosts.ProcessFailureError({1})), hosts.ProcessFailureError({1}).failed_devices
module("experimental.layout").Layout((1, 0))
module("experimental.layout").Format(module("experimental.layout").Layout((1, 0)), One(d[0]))
warned("experimental.pjit", "pjit")
warned("experimental.shard_map", "shard_map")
list(inspect.signature(member("experimental.pjit", "pjit")).parameters)
list(inspect.signature(member("experimental.shard_map", "shard_map")).parameters)
member("experimental.pjit", "pjit")(lambda x: x * 2, on("x"), None)(numbers(8, 2))
member("experimental.pjit", "pjit")(lambda x, n: x * n, static_argnums=1, donate_argnums=0)(numbers(8), 3)
member("experimental.shard_map", "shard_map")(lambda x: x * 2, m, P("x"), P("x"))(numbers(8, 2))
member("experimental.shard_map", "shard_map")(lambda x: x * 2, mesh=m, in_specs=P("x"), out_specs=P("x"), check_rep=False)(numbers(8))
"""


def test_existing_names_are_as_in_jax():
    mesh_language.same(SAME, **GIVEN)


ERRORS = [
    ("mesh_utils.create_device_mesh((4,))", "must equal the product of mesh_shape (4,)"),
    ("mesh_utils.create_device_mesh(8)", "not iterable"),
    ("mesh_utils.create_hybrid_device_mesh((4, 2), (1, 1))", "process_is_granule"),
    (
        "mesh_utils.create_hybrid_device_mesh((4,), (2,), process_is_granule=True)",
        "must equal the product of dcn_mesh_shape (2,)",
    ),
    ("hosts.live_devices(d).__enter__()", "Distributed JAX not initialized"),
    ("hosts.sync_global_devices(3)", "encode"),
    ("hosts.host_local_array_to_global_array(numbers(8), m, None)", "`None` is not a valid input to the pspecs"),
    ("hosts.global_array_to_host_local_array(numbers(8), m, (P('x'),))", "must be a tree prefix of the"),
    ("hosts.host_local_array_to_global_array(numbers(8), m, P('z'))", "is not found in mesh"),
    (
        "hosts.host_local_array_to_global_array(numbers(7), m, P('x'))",
        "implies that array axis 0 is partitioned 4 times",
    ),
    ("jax.device_put_sharded", "use jax.device_put"),
    ("jax.device_put_replicated", "use jax.device_put"),
    ("jax.core.get_aval", "use jax.typeof"),
    ("jax.lax.pvary", "use `jax.lax.pcast"),
    ("jax.numpy.fix", "Use jax.numpy.trunc instead"),
]
GONE = """
Buffer DeviceArray ShapedArray abstract_arrays array_ref clear_backends linear_util mutable_array prng soft_pmap tree_all
tree_flatten tree_leaves tree_map tree_reduce tree_structure tree_transpose tree_unflatten treedef_is_leaf
xla xla_computation experimental.disable_x64 experimental.enable_x64 experimental.host_callback experimental.maps
experimental.mutable_array extend.ffi
"""
GONE_MODULES = (
    "experimental.host_callback extend.ffi xla abstract_arrays linear_util lib.xla_bridge experimental.maps util"
)


def test_calls_that_jax_refuses():
    mesh_language.same_errors(ERRORS + [(f"jax.{name}", "has no attribute") for name in GONE.split()], **GIVEN)


@pytest.mark.parametrize("name", GONE_MODULES.split())
def test_modules_that_are_gone(name):
    mesh_language.same_errors([(f"module('{name}')", "No module named")], **GIVEN)


LATER = """
experimental.pallas.mosaic_gpu.kernel(None)
experimental.pallas.ops.gpu.attention.mha_backward_kernel()
"""


def test_announced_names_raise_when_they_are_used():
    jax = compare.ours()
    load = module(mesh_language.side(jax.__name__))
    for line in LATER.strip().splitlines():
        name, call = line.partition("(")[0].rpartition(".")[::2], line
        owner = load(name[0])
        with pytest.raises(NotImplementedError, match=f"{name[0]}.{name[1]} is not there"):
            eval(f"owner.{call[len(name[0]) + 1 :]}")
    assert name[1] in dir(owner)


def test_the_old_name_of_an_option_of_kernels_warns():
    for package in (compare.ours(), compare.theirs()):
        kernels = importlib.import_module(f"{package.__name__}.experimental.pallas")
        vars(kernels).pop("debug_checks_enabled", None)
        with pytest.warns(DeprecationWarning, match="use pl.enable_debug_checks.value instead"):
            is_enabled = kernels.debug_checks_enabled
        assert is_enabled() is False
        with kernels.enable_debug_checks(True):
            assert is_enabled() is True


def test_the_module_that_set_up_tpus_warns():
    for package in (compare.ours(), compare.theirs()):
        loaded = module(mesh_language.side(package.__name__))("cloud_tpu_init")
        with pytest.warns(DeprecationWarning, match="jax.cloud_tpu_init was deprecated"):
            importlib.reload(loaded)


def test_a_module_whose_package_is_not_installed_is_not_an_attribute(monkeypatch):
    name = "minijax.experimental.array_serialization"
    parent = importlib.import_module(name)
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    monkeypatch.delitem(sys.modules, f"{name}.tensorstore_impl", raising=False)
    monkeypatch.delattr(parent, "tensorstore_impl", raising=False)
    with pytest.raises(AttributeError, match="tensorstore_impl.*needs tensorstore"):
        parent.tensorstore_impl  # noqa: B018
    assert [getattr(parent, n, None) for n in dir(parent)]  # as printers do, who go through all names
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{name}.tensorstore_impl")
