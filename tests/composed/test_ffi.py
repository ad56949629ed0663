"""`jax.ffi`: the modules of calls and their errors, compared with jax; test_ffi_runs.py runs them."""

import importlib
import os

import compare
import numpy as np
import pytest
from compare import same_jaxpr, same_text
from mesh_language import same, same_errors

import minijax

jax = compare.theirs()

X = np.arange(6, dtype=np.float32).reshape(2, 3)
METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
GIVEN = {
    "ffi": lambda s: importlib.import_module(f"{s.jax.__name__}.ffi"),
    "call": lambda s: importlib.import_module(f"{s.jax.__name__}.ffi").ffi_call,
    "Layout": lambda s: importlib.import_module(f"{s.jax.__name__}.experimental.layout").Layout,
    "X": lambda s: s.jnp.asarray(X),
    "V": lambda s: s.jnp.asarray(X[0]),
    "key": lambda s: s.random.key(0),
    "token": lambda s: importlib.import_module(f"{s.jax.__name__}.core").Token,
}
GIVEN["prog"] = lambda s: lambda f, *args: [s.jaxpr(f, *args), s.text(f, *args)]


PROGRAMS = """
prog(call("t", SDS((3,), np.int32)), V)
prog(call("t", V), 1.0, 2, True)
prog(call("t", SDS((), np.float32, weak_type=True)), 1.0)
prog(lambda x: call("t", x)(x), 1.0)
prog(lambda x: call("t", [x, SDS((), np.int64)])(x), V)
prog(lambda x: call("t", (x,))(x), V)
prog(lambda x: call("t", np.ones(2))(x), V)
prog(lambda x: call("t", (), has_side_effect=True)(x), V)
prog(lambda x: call("t", x, has_side_effect=True)(x) * 0, V)
prog(lambda x: call("a \\"é\\n", x)(x), V)
prog(lambda x: call("t", x)(x, b=1, a="s", d={"x": np.float32(1), "y": 2}, c=b"\\xff\\x00z"), V)
prog(lambda x: call("t", x)(x, a=np.arange(3), b=np.zeros((0, 3)), c=np.array([True, False])), V)
prog(lambda x: call("t", x)(x, a=(True, 1, 2.5, "s", np.int8(3)), b=(), c={}, d=np.array([1j, 2])), V)
prog(lambda x: call("t", x)(x, a=float("inf"), b=-0.0, c=1e-5, d=-2**63, e=np.dtype("f4")), V)
prog(lambda x: call("t", x)(x, a=True, b=np.bool_(False), c=np.float16(1), d=np.uint8(7), e=np.float64(.1)), V)
prog(lambda x: call("t", x)(x, target_name=1, **{"a b": 2}), V)
prog(lambda x: call("t", x, input_layouts=[(1, 0)], output_layouts=(1, 0))(x), X)
prog(lambda x: call("t", x, input_layouts=[Layout((1, 0))], output_layouts=Layout((1, 0)))(x), X)
prog(lambda x: call("t", SDS((), np.float32), output_layouts=())(x), X)
prog(lambda x: call("t", [x, x], input_layouts=[None], output_layouts=[(1, 0), None])(x), X)
prog(lambda x: call("t", x, input_output_aliases={0: 0})(x), X)
prog(lambda x: call("t", [x, x], input_output_aliases={1: 0, 0: 1})(x, x), X)
prog(lambda x: call("t", x, custom_call_api_version=1, legacy_backend_config="hi")(x), X)
prog(lambda x: call("t", x, custom_call_api_version=2, legacy_backend_config=b"hi\\xff")(x), X)
prog(lambda x: call("t", x, custom_call_api_version=3, has_side_effect=True)(x), X)
prog(lambda x: call("t", x, custom_call_api_version=0)(x), X)
prog(lambda x: call("t", x, custom_call_api_version=5)(x, a=1), X)
prog(lambda k: call("t", k)(k), key)
prog(lambda k: call("t", k, input_layouts=[(0,)])(k), key)
prog(jax.vmap(lambda k: call("t", k, vmap_method="broadcast_all")(k)), random.split(key, 3))
prog(lambda: call("t", [jax.core.abstract_token, V])(lax.create_token(), 1.0)[1])
prog(lambda x: lax.scan(lambda c, x: (c, call("t", x, has_side_effect=True)(x)), 0, x), X)
prog(lambda x: lax.cond(x.sum() > 0, lambda x: call("t", x, has_side_effect=True)(x), lambda x: x, x), X)
jaxpr(jax.checkpoint(lambda x: call("t", x, has_side_effect=True)(x)), X)
jaxpr(lambda x: jax.jvp(lambda x: call("t", x)(lax.stop_gradient(x)) + x, (x,), (x,)), X)
prog(jax.shard_map(lambda x: call("t", x)(x), mesh=m8, in_specs=P("i"), out_specs=P("i")), np.ones((8, 2), np.float32))
jaxpr(jax.shard_map(lambda x: call("t", SDS((1, 2), np.float32))(x, V), mesh=m8, in_specs=P("i"), out_specs=P("i")), np.ones((8, 2), np.float32))
jaxpr(jax.shard_map(lambda x: call("t", SDS((1, 2), np.float32))(), mesh=m8, in_specs=P("i"), out_specs=P()), np.ones((8, 2), np.float32))
prog(lambda x: call("t", x)(x), put(np.ones((8, 2), np.float32), "x"))
prog(lambda x: call("t", x)(x), put(np.ones((8, 2), np.float32), "x", mesh=explicit))
jaxpr(lambda x: call("t", SDS((8, 2), np.float32))(x), put(np.ones((8, 2), np.float32), "x", mesh=explicit))
jaxpr(lambda x: call("t", SDS((8, 2), np.float32, sharding=on("x", mesh=explicit)))(x), np.ones((8, 2), np.float32))
"""


@pytest.mark.filterwarnings("ignore:.*abstract_token.*:DeprecationWarning")
def test_programs_are_those_of_jax():
    same(PROGRAMS, **GIVEN)


def jax_call(jax, *args, **options):
    return importlib.import_module(f"{jax.__name__}.ffi").ffi_call(*args, **options)


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_mapped_as_in_jax(method):
    options = dict(vmap_method=method, input_layouts=[(0,), (0,)], output_layouts=(0,), input_output_aliases={0: 0})
    for axes, args in (((0, 0), (X, X)), ((1, None), (X.T, X[0])), ((0, None), (X, X[0]))):
        program = lambda jax, a=axes: jax.vmap(jax_call(jax, "t", X[0], **options), in_axes=a)  # noqa: E731
        same_jaxpr(program, *args)
        if method != "sequential_unrolled":  # an unrolled scan is written otherwise here
            same_text(program, *args)


RAISING = [
    ('call("t", None)', "All elements of result_shape_dtypes"),
    ('call("t", (SDS((), np.float32), ()))', "at position 1"),
    ('call("t", V, vmap_method="x")', "vmap_method must be on of the allowed methods"),
    ('call("t", V, legacy_backend_config="s")', "requires custom_call_api_version < 4"),
    ('jax.jit(call("t", V, custom_call_api_version=2, legacy_backend_config=5)).lower(V)', "unexpected type"),
    ('call("t", V, custom_call_api_version=2)(V, a=1)', "The use of ffi_call attributes requires"),
    ('call("t", V, custom_call_api_version="a")', "not supported between"),
    ('call("t", V)(object())', "is not a valid JAX type"),
    ('call("t", V)("s")', "is not a valid JAX type"),
    ('call("t", V, input_layouts=[(0,), (0,)])(V)', "must equal the number of input layouts (2)"),
    ('call("t", [V, V], output_layouts=[(0,)])(V)', "must equal the number of output layouts (1)"),
    ('jax.jit(call("t", X, input_layouts=[(0, 0)])).lower(X)', "must be a permutation of [0, 2)"),
    ('jax.jit(call("t", X, output_layouts=(1,))).lower(X)', "must be a permutation of [0, 2)"),
    ('call("t", X, input_layouts=[Layout((0, 1), tiling=((8,),))])(X)', "does not support layouts with tiling"),
    ('jax.jit(call("t", V, input_output_aliases={1: 0})).lower(V)', "with input index"),
    ('jax.jit(call("t", V, input_output_aliases={0: 1})).lower(V)', "with output index"),
    ('jax.jit(call("t", X, input_output_aliases={0: 0})).lower(V)', "referring to an input with abstract value"),
    ('call("t", V)(V, a=[1])', "Non-hashable keyword argument to ffi_call a"),
    ('call("t", V)(V, a=V)', "Non-hashable keyword argument to ffi_call a"),
    ('jax.jit(lambda x: call("t", V)(V, a=x)).lower(V)', "Non-hashable keyword argument to ffi_call a"),
    ('call("t", V)(V, a=None)', "No attribute handler defined for type"),
    ('call("t", V)(V, a=np.float32)', "No attribute handler defined for type"),
    ('call("t", V)(V, a=range(3))', "No attribute handler defined for type"),
    ('call("t", V)(V, a=np.complex64(1))', "attribute"),
    ('call("t", V)(V, a=2**63)', "too large to convert"),
    ('call("t", V)(V, a=np.array(["s"]))', "dtype"),
    ('jax.jvp(call("t", V), (V,), (V,))', "The FFI call to `t` cannot be differentiated"),
    ('jax.linearize(call("t", SDS((), np.int32)), V)', "The FFI call to `t` cannot be differentiated"),
    ('jax.linear_transpose(call("t", V), V)(V)', "The FFI call to `t` cannot be differentiated"),
    ('jax.vmap(call("t", V))(X)', "vmap is only supported for the ffi_call primitive"),
    ('call("nobody", V)(V)', "No FFI handler registered for nobody"),
    ('jax.jit(call("nobody", V, custom_call_api_version=2))(V)', "untyped custom call to nobody"),
    ('jax.jit(call("nobody", (), has_side_effect=True)).lower(V).compile()', "No FFI handler registered for nobody"),
    ('call("t", V, custom_call_api_version=0)(V)', "API_VERSION_UNSPECIFIED"),
    ('ffi.register_ffi_target("nothing", 5)', "Unsupported custom call target type"),
    ('ffi.register_ffi_target("nothing", {})', "must provide an execute implementation"),
    ('ffi.register_ffi_target("nothing", {"execute": 3})', "requires a PyCapsule"),
    ('ffi.register_ffi_target("nothing", 5, wrong=1)', "unexpected keyword argument"),
    ('ffi.register_ffi_type("nothing", {})', "must be a dictionary holding"),
    ('ffi.register_ffi_type("nothing", {"type_id": 5})', "as PyCapsules"),
    ('ffi.register_ffi_type_id("nothing", None)', "not supported after jaxlib version"),
    ('ffi.register_ffi_target_as_batch_partitionable(5)', "register_"),
    ('ffi.pycapsule(None)', "PyCapsule_New"),
]  # fmt: skip


def test_misuse_raises_as_in_jax():
    same_errors(RAISING, **GIVEN)


def test_calls_that_jax_accepts():
    call = minijax.ffi.ffi_call
    with pytest.raises(TypeError, match="the name must be a string"):
        minijax.ffi.register_ffi_target(5, None)
    with pytest.raises(TypeError, match="target_name must be a string"):
        call(5, X)
    with pytest.raises(TypeError, match="keys of the attribute a must be strings"):
        call("t", X)(X, a={1: 2})
    with pytest.raises(ValueError, match="must not be negative"):
        call("t", X, custom_call_api_version=-1)(X)
    for name in ("xla_ffi_python_cpu_callback", "xla_buffer_python_cpu_callback"):  # XLA would end the process
        with pytest.raises(ValueError, match=f"{name}.*pure_callback"):
            call(name, X)(X, index=np.uint64(7))


def test_attributes_that_are_equal_are_not_the_same():
    seen = []
    for value in (1, 1.0, True, np.int32(1), {"x": 1}, {"x": True}, 0.0, -0.0, np.ones(2), np.ones(2, np.int64)):
        seen.append(minijax.jit(lambda x, v=value: minijax.ffi.ffi_call("t", x)(x, v=v)).lower(X).as_text())
    assert len(set(seen)) == len(seen)


def test_the_headers_are_there():
    for package in (minijax, jax):
        folder = importlib.import_module(f"{package.__name__}.ffi").include_dir()
        assert os.path.exists(os.path.join(folder, "xla", "ffi", "api", "ffi.h"))
    same("dir(ffi) == sorted(dir(ffi)) and sorted(n for n in dir(ffi) if not n.startswith('_'))", **GIVEN)


@pytest.mark.oracle
def test_symbolic_result_without_operands():
    """The shape of a result is an operand, which has a layout even if it is the only one."""

    def attributes(jax):
        ffi, export = [importlib.import_module(f"{jax.__name__}.{name}") for name in ("ffi", "export")]
        f = jax.jit(lambda x: ffi.ffi_call("t", jax.ShapeDtypeStruct(x.shape, np.float32))() + x)
        exported = export.export(f, disabled_checks=[export.DisabledSafetyCheck.custom_call("t")])
        module = exported(jax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float32)).mlir_module()
        (line,) = [line for line in module.splitlines() if "custom_call @t(" in line]
        return line[line.index("{") : line.index("} :")]

    assert attributes(minijax) == attributes(jax)
