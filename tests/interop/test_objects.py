"""Classes of objects: arrays, jitted functions, descriptions, tracers, and the parts of jaxprs."""

import copy
import functools
import inspect
import pickle
import sys
import types

import compare
import mesh_language
import numpy as np
import pytest

X = np.arange(3, dtype=np.float32)


def same(program):
    compare.same(program)


# ---- arrays ------------------------------------------------------------------------------------------


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def test_the_class_of_arrays_has_their_attributes():
    our, their = compare.ours().Array, compare.theirs().Array
    assert public(their) == public(our)
    for name in public(their):
        kinds = [isinstance(inspect.getattr_static(c, name), property) for c in (our, their)]
        assert kinds[0] == kinds[1], name
        assert callable(getattr(our, name)) == callable(getattr(their, name)), name
        assert getattr(our, name).__doc__ or name in ("mT", "T", "real", "imag", "flat", "at"), name


def test_instances_and_subclasses_of_arrays():
    def program(jax, jnp):
        seen = []

        def see(x):
            seen.append((isinstance(x, jax.Array), issubclass(type(x), jax.Array), isinstance(x, jax.core.Tracer)))
            return jnp.sum(x)

        x = jnp.arange(3.0)
        for run in (jax.jit(see), jax.vmap(see), jax.grad(see), lambda x: jax.jvp(see, (x,), (x,)), see):
            run(x)
        jax.linearize(see, x)

        class Mine(jax.Array):
            pass

        seen += [issubclass(type(x), jax.Array), issubclass(Mine, jax.Array), isinstance(Mine(), jax.Array)]
        seen += [issubclass(c, jax.Array) for c in (np.ndarray, int, jax.core.Tracer)]
        return [*seen, isinstance(jax.random.key(0), jax.Array)]

    same(program)


# ---- jitted functions --------------------------------------------------------------------------------


def plain(x, *, k=1):
    """Says what it does."""
    return x + k


plain.mark = 5

JITTED = """
type(jit).__name__, type(jit) is type(jax.jit(abs)), type(jit) is type(jax.jit(lambda x: x, static_argnums=0))
[isinstance(f, type(jit)) for f in (jax.numpy.sin, jax.numpy.clip, jax.numpy.sum, jax.numpy.linalg.norm, jax.nn.gelu, abs, jit)]
jit.__wrapped__ is plain, jit.__name__, jit.__doc__, jit.__module__, jit.__qualname__, jit.mark
str(jit.__signature__), str(inspect.signature(jit)), inspect.unwrap(jit) is plain
inspect.isfunction(jit), inspect.isroutine(jit), callable(jit), isinstance(jit, jax.stages.Wrapped)
jax.jit(functools.partial(plain, k=2)).__name__, jax.jit(jit).__wrapped__ is jit
functools.wraps(jit)(lambda y: y).mark, str(inspect.signature(functools.wraps(jit)(lambda y: y)))
type(jit.lower(1.0)).__name__, type(jit.trace(1.0)).__name__, jit.eval_shape(1.0), jit.clear_cache()
copy.deepcopy(jit)(numbers(2)), copy.copy(jit)(numbers(2), k=3)
jit.lower(1.0).compiler_ir().operation.attributes["sym_name"]
[type(op).__name__ for op in jit.lower(1.0).compiler_ir("stablehlo").body.operations]
type(jit.lower(1.0).compiler_ir("hlo")).__name__, jit.lower(1.0).compiler_ir("hlo").name()
type(jit.lower(1.0).compiler_ir()).__module__
"""


def given():
    more = {"plain": lambda s: plain, "inspect": lambda s: inspect, "functools": lambda s: functools}
    return more | {"jit": lambda s: s.jax.jit(plain), "copy": lambda s: copy}


def test_jitted_functions():
    mesh_language.same(JITTED, **given())
    mesh_language.same_errors(
        [(f"jit.lower(1.0).compiler_ir({d!r})", "unknown dialect") for d in ("mhlo", "HLO", 3)], **given()
    )


def test_jitted_functions_pickle(monkeypatch):
    jax = compare.ours()
    again = pickle.loads(pickle.dumps(jax.jit(plain, static_argnames="k", donate_argnums=0)))
    assert type(again) is type(jax.jit(plain)) and again(np.float32(1), k=2) == 3 and again.mark == 5
    assert again.lower(X, k=2).args_info[0][0].donated
    module = types.ModuleType("their_module")
    monkeypatch.setitem(sys.modules, "their_module", module)
    exec("def double(x):\n    return x * 2", vars(module))
    module.double = jax.jit(module.double)
    assert pickle.loads(pickle.dumps(module.double)) is module.double
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(jax.jit(lambda x: x))


def test_jitted_functions_pickle_by_value():
    cloudpickle = pytest.importorskip("cloudpickle")

    def program(jax, jnp):
        @functools.partial(jax.jit, static_argnums=1, donate_argnames="x")
        def times(x, k):
            return x * k

        times.mark = 7
        again = cloudpickle.loads(cloudpickle.dumps(times))
        return type(again) is type(times), again(X, 3).tolist()

    same(program)


# ---- descriptions ------------------------------------------------------------------------------------

STRUCTS = """
SDS((1, 2), np.float32, is_ref=True), SDS([1, 2], "int8", weak_type=True), SDS((2, 4), "int8", sharding=on("y"))
SDS((2, 4), "int8").update(shape=(3,), weak_type=True), SDS((2,), "int8").update(unknown=1)
SDS.like(np.ones(3)), SDS.like(1.0), SDS.like(SDS((3,), "int8")), SDS.like(jnp.ones(3))
SDS.like(v), SDS.like(v).format, SDS((3,), "int8").format, SDS((3,), "int8").manual_axis_type
SDS((1,), "int8") == SDS((1,), "int8"), SDS((1,), "int8") == SDS((1,), "int8", is_ref=True)
SDS((2,), "int8") == SDS((2,), "int8", sharding=on("y")), hash(SDS((1,), "int8")) == hash(SDS((1,), "int8"))
pickle.loads(pickle.dumps(SDS((3,), "int8", weak_type=True))), copy.deepcopy(SDS((3,), "int8"))
jax.eval_shape(lambda x: SDS((3,), "int8"), 1.0)
jax.eval_shape(lambda x: {"a": x, "b": [SDS((3,), "int8", weak_type=True), x + 1]}, 1.0)
"""
STRUCT_ERRORS = [
    ("SDS((3,), 'int8', sharding=3)", "sharding should be an instance of"),
    ("SDS((3,), 'int8', sharding=P('x')).sharding", "the context mesh cannot be empty"),
    ("SDS((3,), 'int8', sharding=on(None, 'x'))", "is only valid for values of rank at least 2"),
    ("setattr(SDS((3,), 'int8'), 'shape', (4,))", "Cannot reassign attributes"),
    ("SDS((3,), 'int8', unknown=1)", "unknown"),
    ("jax.jit(lambda x: SDS((3,), 'int8'))(1.0)", "ShapeDtypeStruct"),
]


def test_shapes_and_dtypes_in_place_of_arrays():
    mesh_language.same(STRUCTS, pickle=lambda s: pickle, copy=lambda s: copy)
    mesh_language.same_errors(STRUCT_ERRORS)


def test_variables_and_rules_of_users_primitives():
    def program(jax, jnp, extend, interpreters):
        seen = []
        p = extend.core.Primitive("p")
        p.def_impl(lambda x: x)
        p.def_abstract_eval(lambda x: x)

        def push(primals, tangents):
            seen.append((type(primals).__name__, type(tangents).__name__))
            return primals[0], tangents[0]

        interpreters.ad.primitive_jvps[p] = push
        jax.jvp(p.bind, (X,), (X,))
        jax.grad(lambda x: p.bind(x))(1.0)
        return seen, repr(jax.make_jaxpr(jnp.sin)(X).jaxpr.invars[0]).partition(":")[2]

    same(program)


def test_traces_tell_transformations_apart():
    def program(jax, jnp):
        mains = []

        def watched(x):
            trace = jnp.sin(x)._trace
            same_main = trace.main is x._trace.main
            mains.append((type(x).__name__, trace.main is None, same_main, trace.full_raise(2.0)))
            return x

        jax.jvp(watched, (1.0,), (1.0,))
        jax.vmap(watched)(jnp.ones(2))
        jax.make_jaxpr(watched)(1.0)
        jax.jvp(lambda x: jax.jvp(watched, (x,), (1.0,)), (1.0,), (1.0,))
        outer = []

        def inside(x):
            outer.append(x._trace.main)
            jax.jvp(lambda y: outer.append(y._trace.main) or y, (x,), (1.0,))
            return x

        jax.jvp(inside, (1.0,), (1.0,))
        return mains, outer[0] is outer[1]

    compare.same(program)


def test_descriptions_of_scalars_are_results_of_eval_shape():
    compare.same(lambda jax: jax.eval_shape(lambda: (jax.ShapeDtypeStruct((), "int8"), 1.0)))
