"""`dir()` of each public module is jax's public names, and nothing else."""

import ast
import importlib
import inspect
import pkgutil
import warnings

import compare
import pytest

# Modules without names to compare: commands, and what exists where another library is installed.
SKIPPED = ("jax._src", "jax.tools", "jax.collect_profile", "jax.experimental.jax2tf", "jax.experimental.pallas")
SKIPPED += ("jax.experimental.mosaic",)

# Undocumented modules of jax that minijax does not have, or that are one module with their package.
WITHOUT = """
experimental.colocated_python.func_backend experimental.colocated_python.obj_backend
"""

# Names that only minijax has or lists: jax.scipy lists submodules only once they are imported.
OURS = {
    "jax": "RecompileError devices_of diff explain find_leak find_nan install kernels recompile_budget",
    "jax.scipy": "optimize spatial",
}

# Imported in jax without being declared public, or under a name that it also imports, and documented.
DOCUMENTED = {"jax": "ad", "jax.dtypes": "finfo iinfo issubdtype", "jax.interpreters.mlir": "ir"}

# Defined in jax's modules, and no interface: builtins with checks, loop variables, loggers, types of annotations, rules,
# and helpers of jax's own transformations. No library that was searched uses one.
INNER = {
    "jax.example_libraries.optimizers": "map zip",
    "jax.experimental.array_serialization.tensorstore_impl": "Future Transaction logger verify_tensorstore_spec",
    "jax.experimental.colocated_python": "func_backend obj_backend",
    "jax.experimental.colocated_python.func": "ShapeDtypeStructTree jax_register_backend_cache",
    "jax.experimental.colocated_python.obj": "SINGLETON_INSTANCE_REGISTRY",
    "jax.experimental.fused": "map unsafe_map unsafe_zip zip",
    "jax.experimental.mesh_utils": "device_kind_handler_dict",
    "jax.experimental.multihost_utils": """
        global_array_to_host_local_array_impl gtl_abstract_eval host_local_array_to_global_array_impl ltg_abstract_eval
        ltg_batcher
    """,
    "jax.experimental.ode": "map zip",
    "jax.experimental.roofline.roofline": "ShapeDtypeStructTree Specs ValidRooflineDtype map",
    "jax.experimental.roofline.rooflines": "prim",
    "jax.experimental.scheduling_groups": "attr_get dce_jaxpr_xla_metadata_rule map unsafe_map unsafe_zip zip",
    "jax.experimental.source_mapper": "compile_with_env",
    "jax.experimental.source_mapper.common": "compile_with_env flag_env",
    "jax.experimental.sparse.transform": "bcoo_impl bcsr_impl impl method prim",
    "jax.extend.source_info_util": "transform_name_stack",
    "jax.interpreters.ad": "jvp linearize",
    "jax.interpreters.mlir": "ir_type_handlers",
    "jax.interpreters.partial_eval": "custom_partial_eval_rules",
    "jax.interpreters.pxla": "create_compile_options",
}


def walk(package):
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if info.name.startswith(SKIPPED) or info.name.rpartition(".")[2].startswith("_"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(info.name)
        except ImportError:
            continue
        yield module
        if info.ispkg:
            yield from walk(module)


def imported(module):
    """The names that a module imports without declaring them public, as `from m import x as x` does."""
    names = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {a.asname or a.name.partition(".")[0] for a in node.names if not is_declared(module, node, a)}
    return names - {"*"}


def is_declared(module, node, alias):
    if alias.asname is None or isinstance(node, ast.Import):
        return False
    return alias.asname == alias.name or not inspect.ismodule(getattr(module, alias.asname, None))


def public(module):
    names = set(getattr(module, "__all__", ())) or set(dir(module)) - imported(module)
    return {n for n in names if n.isidentifier() and not n.startswith("_")}


def said(table, path):
    return set(table.get(path, "").split())


def ours(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(f"mini{path}")
        except ModuleNotFoundError:
            return None


@pytest.mark.oracle
def test_names_are_those_of_jax():
    jax = compare.module_of("jax")
    modules = {module.__name__: module for module in (jax, *walk(jax))}
    counterparts = {path: ours(path) for path in modules}
    assert {path for path, found in counterparts.items() if found is None} == {f"jax.{n}" for n in WITHOUT.split()}
    differing, idle = {}, {}
    for path, module in modules.items():
        if counterparts[path] is not None:
            shown = {n for n in dir(counterparts[path]) if not n.startswith("_")}
            expected = public(module) | said(DOCUMENTED, path) | said(OURS, path)
            # Submodules that are not compared show where another test has loaded them, here or in jax.
            skipped = {name for name in shown | expected if f"{path}.{name}" in SKIPPED}
            shown, expected = shown - skipped, expected - said(INNER, path) - skipped
            if unneeded := said(INNER, path) - public(module):
                idle[path] = unneeded
            if shown != expected:
                differing[path] = sorted(expected - shown), sorted(shown - expected)
    assert differing == {}
    assert idle == {}


@pytest.mark.oracle
@pytest.mark.parametrize("path", ["numpy", "numpy.linalg", "scipy.stats.norm", "lax", "nn", "tree_util", "sharding"])
def test_star_imports_are_those_of_jax(path):
    given = []
    for package in (compare.ours(), compare.theirs()):
        scope = {}
        exec(f"from {package.__name__}.{path} import *", scope)
        given.append({n for n in scope if not n.startswith("_")})
    assert given[0] == given[1]


def test_listing_the_names_of_the_package_loads_no_lazy_module():
    """Who goes through all names meets no module that warns."""
    jax = compare.ours()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {"numpy", "jit", "Array"} <= {name for name, _ in inspect.getmembers(jax)}
