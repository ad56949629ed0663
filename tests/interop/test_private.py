"""`jax._src`: the undocumented names that libraries and documents reach for, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from minijax.interop.private import PATHS, ROOMS

ROOT = Path(__file__).resolve().parents[2]


def printed(code):
    """The output of a program in which jax is minijax."""
    run = subprocess.run(
        [sys.executable, "-m", "minijax", "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_each_name_is_there_in_its_module():
    code = f"""
import importlib, sys
for path in {PATHS}:
    module = importlib.import_module("jax._src." + path)
    for name in dir(module):
        if not name.startswith("__"):
            getattr(module, name)
            print(path, name)
print(any("/site-packages/jax/" in str(getattr(module, "__file__", "")) for module in sys.modules.values()))
"""
    lines = printed(code).splitlines()
    assert len(lines) > 40
    assert lines[-1] == "False"  # nothing of the real jax was loaded


def test_other_names_are_absent():
    code = """
import importlib
import jax
print(hasattr(jax._src, "absent"), hasattr(jax._src.core, "absent"), hasattr(jax._src.core, "importlib"))
for name in ("absent", "core.absent", "pallas"):
    try:
        importlib.import_module("jax._src." + name)
    except ModuleNotFoundError as error:
        print(error.name)
for code in ("jax._src.core.absent", "from jax._src.core import absent", "from jax._src import core, absent", "import jax._src.absent"):
    try:
        exec(code)
    except (AttributeError, ImportError) as error:
        print(type(error).__name__, error)
print(importlib.util.find_spec("jax._src.absent"))
"""
    assert printed(code).splitlines() == [
        "False False False",
        "jax._src.absent",
        "jax._src.core.absent",
        "jax._src.pallas",
        "AttributeError module 'jax._src.core' has no attribute 'absent': minijax has no private name jax._src.core.absent",
        "ImportError cannot import name 'absent' from 'jax._src.core': minijax has no private name jax._src.core.absent",
        "ImportError cannot import name 'absent' from 'jax._src': minijax has no private name jax._src.absent",
        "ModuleNotFoundError No module named 'jax._src.absent': minijax has no private name jax._src.absent",
        "None",
    ]


def test_without_the_alias_there_are_none():
    code = "import minijax\ntry:\n    import minijax._src\nexcept ImportError as error:\n    print(error.name, hasattr(minijax, '_src'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert run.stdout == "minijax._src False\n", run.stderr


def test_a_replaced_name_is_replaced_in_its_module():
    code = """
import jax
from jax._src import compiler
inner = compiler.backend_compile_and_load
def refuse(backend, *args, **kwargs):
    raise RuntimeError("no compilation for " + backend.platform)
compiler.backend_compile_and_load = refuse
try:
    jax.jit(lambda x: x * 3 + 1)(2.0)
except RuntimeError as error:
    print(error)
compiler.backend_compile_and_load = inner
print(jax.jit(lambda x: x * 3 + 1)(2.0))
"""
    assert printed(code) == "no compilation for cpu\n7.0\n"


def test_names_are_patched_and_restored_by_mock():
    code = """
from unittest import mock
import jax
from jax._src import compiler
inner = compiler.backend_compile_and_load
with mock.patch.object(compiler, "backend_compile_and_load", wraps=inner) as patched:
    print(jax.jit(lambda x: x * 3 + 1)(2.0), patched.call_count)
print(compiler.backend_compile_and_load is inner)
try:
    del compiler.absent
except AttributeError:
    print("absent")
"""
    assert printed(code) == "7.0 1\nTrue\nabsent\n"


@pytest.mark.parametrize(
    "code, text",
    [
        ("jax._src.core.physical_aval(jax.random.key(0).aval)", "uint32[2]"),
        ("jax._src.core.trace_state_clean(), jax.make_jaxpr(lambda: jax._src.core.trace_state_clean() * 1)()", "(True, { lambda ; . let  in (0:i32[],) })"),
        ("[t in jax._src.tree_util._registry for t in (dict, list, tuple, type(None), jax.tree_util.Partial, set)]", "[True, True, True, True, True, False]"),
        ("jax._src.tree_util._registry[list].from_iter(None, jax._src.tree_util._registry[list].to_iter([1, 2])[0])", "[1, 2]"),
        ("str(jax._src.tree_util.prefix_errors((0, [1]), (0, (1,)))[0]('axes')).partition('\\n')[0]", "pytree structure error: different types at key path"),
        ("jax._src.api_util.infer_argnums_and_argnames(inspect.signature(lambda a, b: 0), None, 'b')", "((1,), ('b',))"),
        ("jax._src.traceback_util.include_frame(sys._getframe()), __file__ in jax._src.traceback_util._exclude_paths", "(True, False)"),
        ("jax._src.distributed.global_state.process_id, jax._src.distributed.global_state.client", "(0, None)"),
        ("list((jax.devices(), jax._src.xla_bridge._backends)[1])", "['cpu']"),
        ("[jax._src.xla_bridge.backends_are_initialized(), jax.devices() and jax._src.xla_bridge.backends_are_initialized()]", "[False, True]"),
        ("[jax._src.sharding_impls.canonicalize_sharding(s, 'f') for s in (None, jax.typeof(1.0).sharding)]", "[None, None]"),
        ("jax._src.sharding_impls.canonicalize_sharding(jax.NamedSharding(jax.make_mesh((1,), 'x'), jax.P('x')), 'f').mesh.explicit_axes", "('x',)"),
        ("isinstance(jax.numpy.ones(3), jax._src.typing.SupportsDType)", "True"),
    ],
)  # fmt: skip
def test_values_of_names(code, text):
    program = f"import inspect, sys, jax\n__file__ = 'here'\nfor m in {sorted(ROOMS)}: __import__('jax._src.' + m)\nprint(({code}))"
    assert printed(program) == text + "\n"


def test_the_cause_of_a_shortened_traceback():
    code = """
import jax
from jax._src import traceback_util
jax.config.update("jax_traceback_filtering", "remove_frames")
try:
    jax.jit(lambda x: x.absent)(1.0)
except AttributeError as error:
    print(type(error.__cause__) is traceback_util.UnfilteredStackTrace)
"""
    assert printed(code) == "True\n"


def test_inspect_finds_the_files_of_classes_that_are_named_after_private_modules():
    code = """
import inspect, os, sys
import jax, jax.extend
from jax.extend import core
from jax.sharding import AbstractMesh, AxisType, Mesh
kinds = [core.Jaxpr, core.ClosedJaxpr, core.JaxprEqn, Mesh, AbstractMesh, AxisType, jax.stages.Compiled, jax.custom_vjp]
for kind in kinds:  # the sources, too
    print(os.path.exists(inspect.getsourcefile(kind)), inspect.getsource(kind).count(f"class {kind.__name__}"))
for kind in (jax.core.Tracer, jax.core.ShapedArray, core.Var, core.Literal, jax.Ref, jax.Shard):
    print(os.path.exists(inspect.getsourcefile(kind)))
print(all(os.path.exists(module.__file__) for name, module in list(sys.modules.items()) if name.startswith("jax._src")))
"""
    assert printed(code).splitlines() == ["True 1"] * 8 + ["True"] * 7


@pytest.mark.oracle
def test_arrays_and_tracers_are_of_modules_that_name_their_library():
    """Libraries choose functions by the module of an array's type (autoray, opt_einsum)."""
    code = """
import jax, jax.numpy as jnp
x, show = jnp.ones(2), lambda x: print(type(x).__module__, type(x).__qualname__) or x
show(x), show(jax.random.key(0)), jax.jit(show)(x), jax.vmap(show)(x), jax.grad(show)(1.0), jax.jvp(show, (x,), (x,))
"""
    real = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert real.returncode == 0, real.stderr
    assert printed(code) == real.stdout


SAME = """
[util.safe_map(lambda *a: a, [1, 2], (3, 4)), list(util.safe_zip([1], [2]))]
[util.unzip2([(1, 2), (3, 4)]), util.unzip2([]), util.unzip3([(1, 2, 3)]), util.unzip3([])]
[util.split_list([1, 2, 3, 4], [1, 2]), util.split_list([1], [3]), util.split_list_checked((1, 2, 3), [1, 2])]
[util.partition_list([True, False, True], [1, 2, 3]), util.merge_lists([True, False, True], [2], [1, 3])]
[util.concatenate([(1,), [2, 3]]), util.flatten([[1], [2]]), util.unflatten([1, 2, 3], [1, 0, 2])]
[util.subvals([1, 2], [(0, 5)]), util.subs_list([0, None, 1], ["a", "b"], [9])]
[util.tuple_insert((1, 2), 1, 9), util.tuple_delete((1, 2), 0), util.tuple_update((1, 2), 1, 9)]
[util.canonicalize_axis(-1, 2), util.ceil_of_ratio(5, 2), util.wrap_name("jit", "f"), list(util.stable_unique([2, 1, 2]))]
[util.fun_name(len), util.fun_name(partial(len)), util.fun_name(3), util.curry(max)(1)(2)]
[util.wraps(len, namestr="my_{fun}", docstr="{fun}: {extra}", extra="!")(lambda x: x).__name__]
[util.HashablePartial(f, 1) == util.HashablePartial(f, 1), util.HashablePartial(f, 1)(2), util.HashableFunction(f, 1) == util.HashableFunction(f, 2)]
[cached(3), cached(3), weakly(f, 2), weakly(f, 2), calls]
util.safe_map(lambda *a: a, [1], [2, 3])
util.safe_zip([1], [2, 3])
util.split_list_checked([1, 2], [1])
util.unflatten([1, 2], [1])
util.merge_lists([True], [1], [])
util.tuple_delete((1,), 1)
util.canonicalize_axis(2, 2)
[[(x.dtype.name, x.shape) for x in promotion.promote_dtypes_complex(*a)] for a in ((jnp.ones(2), 1), (jnp.ones(2, int), True), (jnp.ones(1, jnp.complex64), jnp.float16(1)))]
[x.dtype.name for x in promotion.promote_dtypes_inexact(jnp.ones(2, int), jnp.float16(1))]
[tricks.RClass()[1:3, 7].tolist(), tricks.CClass()[jnp.arange(2), jnp.arange(2)].tolist(), tricks.RClass.__mro__[0].__name__]
vectorize._parse_gufunc_signature("(n,m),(m)->(n),()")
vectorize._parse_gufunc_signature("(n")
vectorize._parse_input_dimensions((jnp.ones((3, 2, 4)), jnp.ones(4)), [("n", "m"), ("m",)], "here")
vectorize._parse_input_dimensions((jnp.ones((3, 2, 4)), jnp.ones(5)), [("n", "m"), ("m",)], "here")
vectorize._parse_input_dimensions((jnp.ones(2),), [("n", "m")], "here")
[f(*a, **k) for f, a, k in [vectorize._apply_excluded(lambda a, b, c=1, **k: (a, b, c, k), frozenset({1, "c"}), [1, 2], {"c": 5, "d": 6})]]
vectorize._check_output_dims(lambda x: x, {"n": 2}, [("n",)], "here")(jnp.ones(3))
[isinstance(v, core.Var) for v in jax.make_jaxpr(lambda x: x + 1)(1.0).jaxpr.outvars], issubclass(core.DropVar, core.Var)
[type(a) is core.Literal for a in jax.make_jaxpr(lambda x: x + 1)(1.0).eqns[0].invars]
[repr(v) for eqn in partial_eval.dce_jaxpr(jaxpr.jaxpr, [True])[0].eqns for v in eqn.outvars if isinstance(v, core.DropVar)]
[api.jit is jax.jit, api.grad is jax.grad, config.config is jax.config, lax_numpy.where is jnp.where, core.jaxpr_as_fun(jaxpr)(2.0)]
[config.enable_x64.value, test_util.device_under_test(), core.typeof(1).str_short()]
[batching.make_iota(3).tolist(), jax.vmap(element)(jnp.arange(6.0).reshape(2, 3)).tolist()]
[threefry2x32.threefry_split(jnp.array([1, 2], "uint32"), (2,)).tolist()]
[jax.jit(lambda w: threefry2x32.threefry_random_bits(w, 16, (2, 2)))(jnp.array([1, 2], "uint32")).tolist()]
str(jax.make_jaxpr(lambda x: x + core.trace_ctx.trace.new_arg(jax.typeof(x), source_info=source_info_util.current()))(1.0))
str(jax.make_jaxpr(lambda x: x + core.trace_ctx.trace.new_arg(jax.typeof(x), source_info=None))(1.0).in_avals)
ode.ravel_first_arg, ode.api_util.debug_info
"""
PROGRAM = """
import json, sys
from functools import partial
import jax, jax.numpy as jnp
from jax._src import api, config, core, source_info_util, test_util, util
from jax._src.interpreters import batching, partial_eval
from jax._src.numpy import index_tricks as tricks, lax_numpy, util as promotion, vectorize
from jax._src.random import threefry2x32
from jax.experimental import ode
calls = []
def element(x):
    row = batching.to_elt(x._trace, None, jnp.ones((2, 3)), -2)
    return row * x + batching.to_elt(x._trace, None, 1.0, None) + isinstance(row, batching.BatchTracer) + x.batch_dim
def f(a, b=0): return a + b
cached = util.cache()(lambda x: calls.append(x) or x + 1)
weakly = util.weakref_lru_cache(lambda g, x: calls.append("weak") or g(x))
jaxpr = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * 2), (x, x))[0])(1.0)
for line in sys.stdin.read().strip().splitlines():
    try:
        print(eval(line))
    except Exception as error:
        print(type(error).__name__)
"""


def shown(*start):
    run = subprocess.run([sys.executable, *start, "-c", PROGRAM], input=SAME, capture_output=True, text=True, timeout=120, cwd=ROOT)  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [line.split(" at 0x")[0] for line in run.stdout.splitlines()]


@pytest.mark.oracle
def test_values_of_names_are_those_of_jax():
    ours, theirs = shown("-m", "minijax"), shown()
    assert len(ours) == len(SAME.strip().splitlines())
    assert [
        pair for pair in zip(ours[:-1], theirs[:-1], SAME.strip().splitlines(), strict=False) if pair[0] != pair[1]
    ] == []
    assert "Error" not in ours[-1]


def rows_of_the_document():
    """The rows of docs/private-names.md: names that are served with their objects, and absent ones."""
    served, absent = (ROOT / "docs" / "private-names.md").read_text().split("## Names that are absent")
    return [
        [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("| `")]
        for part in (served, absent)
    ]


def test_the_names_that_libraries_ask_for_are_as_documented():
    served, absent = rows_of_the_document()
    assert len(served) > 65 and len(absent) > 20
    code = f"""
import importlib, pkgutil
for name, here in {[row[:2] for row in served]}:
    path, _, last = name.rpartition(".")
    if getattr(importlib.import_module("jax._src." + path), last) is not pkgutil.resolve_name(here):
        print(name, "is not", here)
for name in {[row[0] for row in absent]}:
    path, _, last = name.rpartition(".")
    try:
        getattr(importlib.import_module("jax._src." + path), last)
    except (ImportError, AttributeError) as error:
        assert "has no private name" in str(error), error
    else:
        print(name, "is there")
"""
    assert printed(code) == ""


def test_each_public_module_can_be_imported_as_jax():
    code = """
import importlib, pkgutil, jax
found = [module.name for module in pkgutil.walk_packages(jax.__path__, "jax.")]
public = [name for name in found if not any(part in name for part in ("__main__", "_src", "as_jax", "collect_profile"))]
for name in public:
    importlib.import_module(name)
print(len(public), "jax.experimental.topologies" in public)
"""
    count, has_topologies = printed(code).split()
    assert int(count) > 100 and has_topologies == "True"
