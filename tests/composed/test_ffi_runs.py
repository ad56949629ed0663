"""Functions in C++, registered with XLA and called by programs of both sides: results, states, effects and errors."""

import functools
import importlib
import subprocess
import sys
from pathlib import Path

import compare
import numpy as np
import pytest
from ffi_library import library, register, without_compiler
from mesh_language import same, same_errors

import minijax

jax = compare.theirs()

pytestmark = without_compiler
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ATTRIBUTES = dict(flag=True, i8=np.int8(-3), u16=np.uint16(7), i32=np.int32(9), i64=11, f32=np.float32(1.5), f64=2.5)
ATTRIBUTES |= dict(text="hello", numbers=np.array([4, 5, 6], np.int32), reals=np.array([0.5]), nested={"inner": 8})


@pytest.fixture(scope="module", autouse=True)
def handlers():
    for package in (minijax, jax):
        package.devices()
        for _ in range(2):  # the second time nothing happens
            register(importlib.import_module(f"{package.__name__}.ffi"))


def ffi_of(s):
    return importlib.import_module(f"{s.jax.__name__}.ffi")


def axpy(s):
    def call(x, y, tag="", a=2, **options):
        struct = s.SDS(np.shape(x), np.float32)
        return ffi_of(s).ffi_call("test_axpy", struct, **options)(x, y, a=np.float32(a), tag=tag)

    return call


def memory(s):
    """The bytes of an array and the type that the function receives."""

    def call(x, size=None, **options):
        results = [s.SDS((x.nbytes if size is None else size,), np.uint8), s.SDS((5,), np.int64)]
        return ffi_of(s).ffi_call("test_memory", results, **options)(x)

    return call


def sums(s):
    def call(x, **options):
        results = [s.SDS(x.shape[:-1], x.dtype)] * 2
        return ffi_of(s).ffi_call("test_row_sums", results, **options)(x)

    return call


def split_sums(s):
    """The operation that calls `test_row_sums` by a lowering rule, which sets the number of batch axes."""
    core, mlir = (importlib.import_module(f"{s.jax.__name__}.{name}") for name in ("extend.core", "interpreters.mlir"))
    primitive = core.Primitive("row_sums")
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda x: [x.update(shape=x.shape[:-1])] * 2)

    def rule(ctx, x):
        frontend = mlir.ir_attribute({"num_batch_dims": str(len(ctx.avals_in[0].shape) - 1)})
        return ffi_of(s).ffi_lowering("test_row_sums", extra_attributes={"mhlo.frontend_attributes": frontend})(ctx, x)

    mlir.register_lowering(primitive, rule)
    return primitive.bind


def partitioned_sums(s):
    """The sums, which `custom_partitioning` has each device take of its rows."""
    module = importlib.import_module(f"{s.jax.__name__}.experimental.custom_partitioning")
    call = module.custom_partitioning(sums(s))

    def partition(mesh, args, results):
        rows = s.NS(mesh, s.P(args[0].sharding.spec[0]))
        return mesh, sums(s), [rows, rows], (s.NS(mesh, s.P(args[0].sharding.spec[0], None)),)

    call.def_partition(partition, sharding_rule="i j -> i, i")
    return call


def add_one(s):
    def call(x, **options):
        return ffi_of(s).ffi_call("test_add_one", [s.SDS(x.shape, x.dtype), s.SDS((), bool)], **options)(x)

    return call


def told(s):
    """All messages that the functions sent to the outside."""

    def run(f, *args):
        s.jax.block_until_ready(f(*args))
        s.jax.effects_barrier()
        return library().what_was_told()

    return run


def smooth(s):
    call, double = axpy(s), s.jax.custom_vjp(lambda x: axpy(s)(x, x))
    double.defvjp(lambda x: (double(x), x), lambda x, ct: (call(ct, x),))
    return double


GIVEN = {
    "call": lambda s: ffi_of(s).ffi_call, "axpy": axpy, "memory": memory, "sums": sums, "split_sums": split_sums, "partitioned": partitioned_sums,
    "add_one": add_one, "told": told, "smooth": smooth, "X": lambda s: s.jnp.asarray(X),
    "V": lambda s: s.jnp.asarray(X[0]), "attributes": lambda s: ATTRIBUTES, "rows": lambda s: s.put(np.ones((8, 4), np.float32), "i", mesh=s.m8),
    "tell": lambda s: functools.partial(ffi_of(s).ffi_call, "test_tell", ()),
    "numbers": lambda s: np.arange(10, dtype=np.int32),
    "tokens": lambda s: [s.jax.core.abstract_token, s.SDS((), np.float32)],
}  # fmt: skip

VALUES = """
axpy(X, X), jax.jit(axpy)(X, X), jax.jit(axpy)(X, V)
lax.scan(lambda c, x: (axpy(c, x), c), X[0], X)
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, axpy(c[1], V)), (0, V))
jax.grad(lambda x: smooth(x).sum())(X), jax.jit(jax.grad(lambda x: (smooth(x) ** 2).sum()))(X)
jax.value_and_grad(jax.checkpoint(lambda x: smooth(x).sum()))(V)
call("test_attributes", SDS((13,), np.float64))(**attributes)
memory(X, input_layouts=[(1, 0)]), memory(X, input_layouts=[(0, 1)]), memory(X.reshape(1, 2, 3), input_layouts=[(2, 0, 1)])
memory(jnp.zeros((0, 3))), memory(jnp.zeros(())), memory(random.key(0), 8)
sums(rows), sums(X)
jax.jit(jax.shard_map(sums, mesh=m8, in_specs=P("i"), out_specs=P("i")))(rows)
jax.shard_map(sums, mesh=m8, in_specs=P("i"), out_specs=P("i"))(rows)
jax.jit(split_sums)(rows), jax.jit(split_sums)(X)
collectives(sums, rows), collectives(split_sums, rows), collectives(partitioned, rows)
jax.jit(partitioned)(rows)
collectives(jax.shard_map(sums, mesh=m8, in_specs=P("i"), out_specs=P("i")), rows)
[int(f()) for f in [jax.jit(lambda: call("test_count_up", SDS((), np.int32))(start=np.int32(5)))] for _ in range(3)]
add_one(X), jax.jit(add_one)(X)[0]
jax.jit(lambda x: add_one(x * 2, input_output_aliases={0: 0}))(X)
jax.jit(lambda x: [add_one(x, input_output_aliases={0: 0})[0], x])(X)
told(tell(has_side_effect=True), np.int32(5)), told(jax.jit(tell(has_side_effect=True)), np.int32(5))
told(jax.jit(lambda x: [tell(has_side_effect=True)(x), 0][1]), np.int32(5)), told(jax.jit(tell()), np.int32(5))
told(lambda xs: lax.scan(lambda c, x: (c, tell(has_side_effect=True)(x)), 0, xs), numbers)
told(jax.vmap(tell(has_side_effect=True, vmap_method="sequential")), numbers)
told(jax.jit(lambda x: lax.cond(x > 2, tell(has_side_effect=True), lambda x: (), x)), np.int32(3))
told(jax.jit(jax.grad(lambda x: [tell(has_side_effect=True)(np.int32(3)), x][1])), 1.0)
told(jax.pmap(lambda x: [tell(has_side_effect=True)(np.int32(1)), x][1]), np.ones(8, np.float32))
told(lambda x: lax.fori_loop(0, 4, lambda i, x: [tell(has_side_effect=True)(i), x][1], x), 1.0)
told(jax.linearize(lambda x: [tell(has_side_effect=True)(np.int32(1)), x][1], 1.0)[1], 1.0)
jax.make_jaxpr(tell(has_side_effect=True))(np.int32(1)).effects
told(jax.jit(jax.shard_map(lambda x: [tell(has_side_effect=True)(x[0, 0].astype(int)), x][1], mesh=m8, in_specs=P("i"), out_specs=P("i"))), rows)
jax.jit(lambda x: call("test_pass_token", tokens)(lax.create_token(), x)[1])(3.0)
call("test_pass_token", tokens)(lax.create_token(), 3.0)[1]
call("test_original", SDS((), np.float32), custom_call_api_version=1)(3.0)
call("test_configured", SDS((), np.float32), custom_call_api_version=3, legacy_backend_config="ab")(3.0)
jax.jit(lambda x: call("test_configured", SDS((), np.float32), custom_call_api_version=3)(x))(3.0)
"""


@pytest.mark.filterwarnings("ignore:.*abstract_token.*:DeprecationWarning")
def test_values_are_those_of_jax():
    same(VALUES, **GIVEN)


MAPPED = """
jax.vmap(lambda x, y: axpy(x, y, vmap_method=METHOD))(X, X)
jax.jit(jax.vmap(lambda x, y: axpy(x, y, vmap_method=METHOD), in_axes=(1, None)))(X, X[:, 0])
jax.vmap(jax.vmap(lambda x, y: axpy(x, y, vmap_method=METHOD)))(X[None], X[None])
jax.vmap(lambda x: sums(x, vmap_method=METHOD, input_layouts=[(1, 0)]))(X[None])
"""


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
def test_rows_are_mapped_as_in_jax(method):
    same(MAPPED, METHOD=lambda s: method, **GIVEN)


DTYPES = "bool_ int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 complex64"
DTYPES += " float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e3m4 float8_e8m0fnu"


def test_buffers_of_every_dtype():
    same("\n".join(f"memory(jnp.arange(6).reshape(2, 3).astype(jnp.{name}))" for name in DTYPES.split()), **GIVEN)
    wide = "\n".join(
        f"memory(jnp.asarray(np.arange(6), jnp.{name}))" for name in ("int64", "uint64", "float64", "complex128")
    )
    with compare.wide_numbers():
        same(wide, **GIVEN)


FAILING = [
    ('axpy(X, X, "fail").block_until_ready()', "axpy was asked to fail"),
    ('np.asarray(jax.jit(lambda x: axpy(x, x, "argument"))(X))', "axpy does not like its argument"),
    ("jax.block_until_ready(axpy(X, X.astype(int)))", "expected F32 but got S32"),
    ('jax.block_until_ready(call("test_axpy", X)(X, a=np.float32(1), tag=""))', "Wrong number of arguments: expected 2"),
    ('jax.block_until_ready(call("test_axpy", X)(X, X, X, a=np.float32(1), tag=""))', "expected 2 but got 3"),
    ('jax.block_until_ready(call("test_axpy", [X, X])(X, X, a=np.float32(1), tag=""))', "Wrong number of results"),
    ('jax.block_until_ready(call("test_axpy", SDS((3,), int))(X, X, a=np.float32(1), tag=""))', "expected F32 but got"),
    ('jax.block_until_ready(call("test_axpy", X)(X, X, a=np.float32(1)))', "Wrong number of attributes: expected 2"),
    ('jax.block_until_ready(call("test_axpy", X)(X, X, a=1, tag=""))', "Wrong scalar data type: expected F32 but got S64"),
    ('jax.block_until_ready(call("test_axpy", X)(X, X, a={"b": 1}, tag=""))', "expected scalar but got dictionary"),
    ('jax.block_until_ready(call("test_axpy", X)(X, X, a=(1, 2), tag=""))', "Unsupported attribute type"),
    ('jax.jit(jax.vmap(lambda x, y: axpy(x, y, vmap_method="expand_dims", input_output_aliases={1: 0}), (0, None)))(X, V)', "alias"),
    ('call("test_count_up", SDS((), np.int32))(start=np.int32(-1))', "a state cannot start below zero"),
    ('call("test_original", SDS((), np.float32))(3.0)', "No FFI handler registered for test_original"),
    ('call("test_axpy", X, custom_call_api_version=2)(X, X)', "untyped custom call to test_axpy"),
    ("jax.grad(lambda x: axpy(x, x).sum())(X)", "The FFI call to `test_axpy` cannot be differentiated"),
    ("jax.grad(jax.checkpoint(lambda x: [tell(has_side_effect=True)(np.int32(1)), x][1]))(1.0)", "Effects not supported"),
    ("lax.reduce(V, 0.0, lambda a, b: [tell(has_side_effect=True)(np.int32(1)), a + b][1], (0,))", "Cannot lower effectful `reduce`"),
    ("lax.reduce_window(V, 0.0, lambda a, b: [tell(has_side_effect=True)(np.int32(1)), a + b][1], (2,), (1,), 'VALID')", "Cannot lower effectful `reduce_window`"),
    ("lax.scatter_apply(V, np.array([1]), lambda a: [tell(has_side_effect=True)(np.int32(1)), a * 2][1], lax.ScatterDimensionNumbers((), (0,), (0,)), update_shape=())", "Cannot lower effectful `scatter`"),
    ('call("lapack_sgeqrf_ffi", X)(X)', "Wrong number of results: expected 2"),
]  # fmt: skip


def test_failures_are_those_of_jax():
    same_errors(FAILING, **GIVEN)


def test_attributes_that_are_equal_have_programs_of_their_own():
    call = minijax.ffi.ffi_call("test_attributes", minijax.ShapeDtypeStruct((13,), np.float64))
    for other in (np.int32(8), True, 8.0):
        assert np.asarray(call(**ATTRIBUTES))[12] == 8
        with pytest.raises(minijax.errors.JaxRuntimeError, match="no inner attribute"):
            minijax.block_until_ready(call(**{**ATTRIBUTES, "nested": {"inner": other}}))
    numbers = np.array([4, 5, 6], np.int64)
    with pytest.raises(minijax.errors.JaxRuntimeError, match="Wrong array data type"):
        minijax.block_until_ready(call(**{**ATTRIBUTES, "numbers": numbers}))


def test_failures_name_the_target():
    call = minijax.ffi.ffi_call("test_axpy", X)
    for run in (call, minijax.jit(call), minijax.jit(lambda x: minijax.lax.fori_loop(0, 3, lambda _, x: call(x), x))):
        with pytest.raises(minijax.errors.JaxRuntimeError, match="Wrong number of arguments.*\n.*`test_axpy`") as info:
            minijax.block_until_ready(run(X))
        assert info.value.error_code_string == "INVALID_ARGUMENT"


def test_programs_that_would_abort_xla_are_refused():
    add = minijax.ffi.ffi_call("test_axpy", minijax.ShapeDtypeStruct((), np.float32))
    host = lambda a, b: minijax.pure_callback(lambda a, b: a + b, minijax.ShapeDtypeStruct((), np.float32), a, b)  # noqa: E731
    for join in (lambda a, b: add(a, b, a=np.float32(1), tag=""), host):
        with pytest.raises(NotImplementedError, match="Cannot lower effectful `reduce`"):
            minijax.lax.reduce(X, np.float32(0), join, (0,))


EARLY = """
import sys
sys.path.insert(0, sys.argv[1])
import minijax as jax, numpy as np
from ffi_library import library
x = np.ones((2, 3), np.float32)
jax.ffi.register_ffi_target("early", jax.ffi.pycapsule(library().axpy))
print(jax.ffi.ffi_call("early", x)(x, x, a=np.float32(2), tag="").tolist())
"""


def test_targets_are_registered_before_there_is_a_client():
    tests = str(Path(__file__).resolve().parents[1] / "support")
    done = subprocess.run([sys.executable, "-c", EARLY, tests], capture_output=True, text=True)
    assert done.stdout.strip() == str((3 * np.ones((2, 3))).tolist()), done.stderr


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
import minijax as jax, numpy as np
from ffi_library import register
jax.devices()
register(jax.ffi)
x = np.ones((2, 3), np.float32)
call = jax.ffi.ffi_call
wrong = [
    lambda: call("nobody", x)(x), lambda: call("nobody", x, custom_call_api_version=1)(x), lambda: call("", x)(x),
    lambda: call("test_axpy", x)(x), lambda: call("test_axpy", (), has_side_effect=True)(x), lambda: call("lapack_sgesdd_ffi", x)(x),
    lambda: call("xla_ffi_python_cpu_callback", x)(x, index=np.uint64(7)),
    lambda: call("test_memory", [x, jax.ShapeDtypeStruct((5,), np.int64)])(x[0]),
    lambda: jax.ffi.register_ffi_target("a", {"instantiate": jax.ffi.pycapsule(None)}),
    lambda: jax.ffi.register_ffi_target("test_axpy", {}),
]
for run in wrong:
    try:
        jax.block_until_ready(run())
    except Exception as error:
        print(type(error).__name__)
"""


def test_no_misuse_ends_the_process():
    tests = str(Path(__file__).resolve().parents[1] / "support")
    done = subprocess.run([sys.executable, "-c", CHILD, tests], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 10
