"""Phrases of errors and warnings that programs match on, that are in jax's messages too."""

import functools
import gc
import sys
import warnings
import weakref

import compare
import numpy as np
import pytest
from given import given
from jaxlib import _hlo as hlo

import minijax

X, U = np.zeros((10, 4), np.float32), np.zeros((10, 2), np.float32)
MASKED = np.ma.array([1.0, 2.0], mask=[True, False])


class NothingKnown:
    @property
    def __signature__(self):
        raise TypeError

    def __call__(self, *args):
        return args


# A program, and the phrases that jax's error has as well.
PHRASES = {
    "vmap, two sizes": (
        lambda jax: jax.vmap(lambda a, b: a, in_axes=(0, 1))(X, U),
        "vmap got inconsistent sizes for array axes to be mapped:\n"
        "  * one axis had size 10: axis 0 of argument a of type float32[10,4];\n"
        "  * one axis had size 2: axis 1 of argument b of type float32[10,2]",
    ),
    "vmap, most of one size": (
        lambda jax: jax.vmap(lambda a, b: a, in_axes=(0, 1))(X, [U, U, X]),
        "  * most axes (2 of them) had size 2, e.g. axis 1 of argument b[0] of type float32[10,2];\n"
        "  * one axis had size 10: axis 0 of argument a of type float32[10,4];\n"
        "  * one axis had size 4: axis 1 of argument b[2] of type float32[10,4]",
    ),
    "vmap, axis_size": (
        lambda jax: jax.vmap(lambda x: x, axis_size=2)(X),
        "  * the `axis_size` argument was 2;\n  * one axis had size 10: axis 0 of argument x of type float32[10,4]",
    ),
    "vmap, a named axis": (
        lambda jax: jax.vmap(lambda x: x, out_axes=None, axis_name="foo")(X),
        "vmap has mapped output (axis_name=foo) but out_axes is None",
    ),
    "vmap, an axis": (lambda jax: jax.vmap(lambda x: x, out_axes=None)(X), "at vmap out_axes, got axis spec None"),
    "vmap, an axis of one result": (
        lambda jax: jax.vmap(lambda x: {"a": x, "b": (1.0, x)}, out_axes={"a": 0, "b": None})(X),
        "at vmap out_axes['b'][1], got axis spec None but output was batched on axis 0",
    ),
    "device_put": (
        lambda jax: jax.device_put({"a": 1.0}, {"a": (None, None)}),
        "device_put device specification must be a tree prefix",
        "Mismatch details",
        "different types at key path",
    ),
    "in_axes": (
        lambda jax: jax.vmap(lambda x: x, in_axes=([0],))([X, X]),
        "Mismatch details",
        "different lengths of list",
    ),
    "a host array of text": (
        lambda jnp, lax: lax.add(jnp.array(7), np.array("hello")),
        "Error interpreting argument to add as a JAX value. The problematic value is of type "
        "<class 'numpy.ndarray'> and was passed to add at position 1.",
    ),
    "text": (lambda lax: lax.add(1, "hello"), "value is of type <class 'str'> and was passed to add at position 1."),
    "an object": (
        lambda lax: lax.sin(object()),
        "value is of type <class 'object'> and was passed to sin at position 0.",
    ),
    "text in a list": (lambda lax: lax.concatenate([U, "hello"], 0), "was passed to concatenate at position 1."),
    "result of eval_shape": (
        lambda jax: jax.eval_shape(lambda x: (x, print), 1.0),
        "function <lambda> at ",
        "test_messages.py:",
        " traced for ",
        "at output component [1], which is not a valid JAX type",
    ),
    "result of jit": (
        lambda jax: jax.jit(lambda x: {"a": (x, print)})(1.0),
        "function <lambda> at ",
        "test_messages.py:",
        " traced for jit returned a value of type "
        "<class 'builtin_function_or_method'> at output component ['a'][1], which is not a valid JAX type",
    ),
    "static and donated": (
        lambda jax: jax.jit(lambda x: x, static_argnames="x", donate_argnames="x"),
        "static_argnames and donate_argnames cannot intersect",
    ),
    "structure of a carry": (
        lambda lax: lax.scan(lambda c, x: (({"b": c[0]["a"]}, c[1]), x), ({"a": 1.0}, 2.0), X),
        "The input carry component c[0] is a <class 'dict'>",
    ),
    "structures of carries": (
        lambda lax: lax.scan(lambda c, x: (({"b": c[0]["a"]}, [c[1]]), x), ({"a": 1.0}, 2.0), X),
        "but they differ:\n\n  * the input carry component c[0] is a <class 'dict'>",
    ),
    "types of carries": (
        lambda jnp, lax: lax.scan(lambda c, x: ((c[0].astype("float32"), jnp.ones((1, 1))), x), (jnp.int32(1),) * 2, X),
        "input carry component c[0] has type int32[] but the corresponding output carry component has type float32[], "
        "so the dtypes do not match;",
        "has type float32[1,1], so the dtypes do not match, and the shapes do not match.",
    ),
    "two mismatches": (
        lambda jax: jax.device_put({"a": 1.0, "b": 2.0}, {"a": [None], "b": (None, None)}),
        "device_put device specification must be a tree prefix of the corresponding value;",
        "Mismatch details (2 found)",
    ),
    "a traced length of scan": (
        lambda jax, lax: jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 1.0, None, n))(3),
        "The `length` argument to `scan` expects a concrete `int` value.",
    ),
    "a traced unroll of scan": (
        lambda jax, lax: jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 1.0, X, unroll=n))(3),
        "The `unroll` argument to `scan` expects a concrete `int` or `bool` value.",
    ),
    "jvp, too few tangents": (
        lambda jax: jax.jvp(lambda x, y: x * y, (np.float32(2),), ()),
        "primal and tangent arguments to jax.jvp must have the same tree structure",
        "PyTreeDef((*,))",
        "PyTreeDef(())",
    ),
    "jvp, a tuple and a list": (
        lambda jax: jax.jvp(lambda x: x, (np.float32(2),), [np.float32(2)]),
        "primal and tangent arguments to jax.jvp must have the same tree structure",
        "PyTreeDef((*,))",
        "PyTreeDef([*])",
    ),
    "pmap": (
        lambda jax: jax.pmap(lambda a, b: a, static_broadcasted_argnums=(1,))(X, b=1),
        "pmapped function has static_broadcasted_argnums=(1,) but was called with only 1 positional argument. "
        "All static broadcasted arguments must be passed positionally.",
    ),
    "a masked array": (lambda jax: jax.jit(lambda x: x)(MASKED), "numpy masked arrays are not supported"),
    "an array of a masked one": (lambda jnp: jnp.asarray(MASKED), "numpy masked arrays are not supported"),
    "an operand that is masked": (lambda lax: lax.sin(MASKED), "numpy masked arrays are not supported"),
    "the type of a masked array": (lambda jax: jax.typeof(MASKED), "numpy masked arrays are not supported"),
    "device_put of a masked array": (lambda jax: jax.device_put(MASKED), "numpy masked arrays are not supported"),
    "donated and aliased": (
        lambda jax, jnp: jax.device_put(jnp.ones(2), may_alias=True, donate=True),
        "may_alias and donate cannot be True at the same time.",
    ),
    "a static name that is positional": (
        lambda jax: jax.jit(lambda a, /, b: a, static_argnames="a")(1, 2),
        "has invalid argnames {'a'} in static_argnames",
    ),
    "a donated name of many": (
        lambda jax: jax.jit(lambda *a, **k: a, donate_argnames="a")(1, 2),
        "has invalid argnames {'a'} in donate_argnames",
    ),
    "a donated name without a signature": (
        lambda jax: jax.jit(NothingKnown(), donate_argnames="a"),
        "Getting the signature of function",
        "failed. Pass donate_argnums instead of donate_argnames.",
    ),
    "a large int": (
        lambda jax: jax.jit(lambda x: x)({"a": 2**31}),
        "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is x['a']",
    ),
    "no value": (
        lambda jax: jax.jit(lambda x: x)("hello"),
        "The problematic value is of type <class 'str'> and was passed to the function at path x.",
    ),
    "in_axes, an array": (
        lambda jax: jax.vmap(lambda x: x, in_axes=(U,))(X),
        "vmap in_axes must be an int, None, or (nested)",
    ),
    "in_axes, a bool": (
        lambda jax: jax.vmap(lambda x: x, in_axes=(True,))(X),
        "vmap in_axes must be an int, None, or (nested)",
    ),
    "out_axes, an array": (
        lambda jax: jax.vmap(lambda x: x, out_axes=(U,))(X),
        "vmap out_axes must be an int, None, or (nested) container with those types as leaves, but got",
    ),
    "types that should be one": (
        lambda jax, primitive: jax.jit(lambda x: primitive(lambda a: [a], False).bind(x))(1.0),
        "foo.abstract_eval() method should return a tuple or a list if",
    ),
    "a type that should be a list": (
        lambda jax, primitive: jax.jit(lambda x: primitive(lambda a: a, True).bind(x))(1.0),
        "foo.abstract_eval() method should return a tuple or a list if",
    ),
    "a platform that is none": (
        lambda mlir: mlir.register_lowering(None, None, platform="fake"),
        "Registering an MLIR lowering rule for primitive None for an unknown platform fake. Known platforms are: ",
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", PHRASES)
def test_errors_have_the_phrases_of_jax(name):
    call, *phrases = PHRASES[name]

    def program(jax, jnp, lax, interpreters, extend):
        def primitive(infer, multiple_results):
            foo = extend.core.Primitive("foo")
            foo.multiple_results = multiple_results
            foo.def_abstract_eval(infer)
            return foo

        values = dict(jax=jax, jnp=jnp, lax=lax, mlir=interpreters.mlir, primitive=primitive)
        return lambda: given(call, values)

    compare.same_refusal(program, phrases=phrases)


@pytest.mark.oracle
def test_large_captured_values_are_warned_of():
    def program(jax, jnp):
        held = jnp.ones((16, 16), np.float32)

        def told(limit, frames, call):
            jax.config.update("jax_captured_constants_warn_bytes", limit)
            jax.config.update("jax_captured_constants_report_frames", frames)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
            texts = [str(w.message) for w in caught]
            return [(t.startswith("A large amount of constants were captured during lowering (1.02KB"),
                     "float32[16,16], 1.02KB" in t, "program.<locals>.g" in t) for t in texts]  # fmt: skip

        def g(x):
            return x @ held

        x = np.zeros(16, np.float32)
        try:
            return [
                told(1024, 0, lambda: jax.jit(lambda x: g(x))(x)),
                told(1024, 2, lambda: jax.jit(lambda x: g(x)).lower(x)),
                told(1024, 1, lambda: jax.jit(lambda x: jax.jit(lambda x: g(x))(x))(x)),
                told(1025, 0, lambda: jax.jit(lambda x: g(x))(x)),
                told(-1, 0, lambda: jax.jit(lambda x: g(x))(x)),
                told(8, 0, lambda: jax.jit(lambda x: x + 1.0)(x)),
            ]
        finally:
            jax.config.update("jax_captured_constants_warn_bytes", 2_000_000_000)
            jax.config.update("jax_captured_constants_report_frames", 0)

    ours = compare.same(program)
    assert ours[0] == [(True, False, False)] and not ours[3]


@pytest.mark.oracle
def test_arrays_take_attributes_and_cycles_of_them_are_logged(capfd):
    def program(jax, jnp):
        def cycle():
            a, b = jnp.ones(2), jnp.zeros(2)
            a.next, b.next = b, a
            return weakref.ref(a)

        def logged(collect):
            gc.collect()
            capfd.readouterr()
            collect()
            gc.collect()
            sys.stderr.flush()
            return capfd.readouterr().err.count("`jax.Array` was deleted by the Python garbage collector")

        with jax.array_garbage_collection_guard("log"):
            here = logged(cycle), logged(lambda: jnp.ones(3))
        a = jnp.ones(2)
        a.name = "a"
        found = vars(a), hasattr(jax.jit(lambda x: x)(a), "name"), hasattr(a + 0, "name")
        return here, logged(cycle), found

    ours = compare.same(program)
    assert ours[0][0] == 2


@pytest.mark.oracle
def test_user_contexts_have_a_global_value():
    def program(jax):
        context = jax.make_user_context(1)
        before = context.get_global(), context.set_global(2)
        with context(3):
            return before, context.get_global(), context.value

    compare.same(program)


@pytest.mark.oracle
def test_replicated_shardings_of_the_compiler():
    def program(jax, extend):
        make, devices = extend.sharding.GSPMDSharding.get_replicated, jax.devices()[:1]
        plain, named = make(devices), make(devices, memory_kind=devices[0].default_memory().kind)
        texts = repr(plain), plain.memory_kind
        return texts, plain == named, hash(plain) == hash(named), plain.shard_shape((3, 4)), plain.is_fully_replicated

    compare.same(program)


@pytest.mark.oracle
def test_functions_are_named_after_those_they_were_made_of():
    def f(x):
        "doc"
        return x

    def program(jax):
        makers = [jax.vmap, jax.grad, jax.value_and_grad, jax.jacrev, jax.hessian, jax.checkpoint]
        made = [make(g) for make in makers for g in (f, functools.partial(f), len, lambda x: x)]
        made += [jax.make_jaxpr(f), jax.make_jaxpr(len)]
        # Until Python 3.11 a comprehension is a function of its own.
        names = [(g.__name__, g.__qualname__.replace("<listcomp>.", "")) for g in made]
        return names, jax.make_jaxpr(f).__module__, jax.vmap(f).__doc__.partition("\n")[2].split()

    compare.same(program)


@pytest.mark.oracle
def test_sums_over_axes_of_size_one_add_nothing():
    def program(jax, jnp, lax):
        with jax.allow_f16_reductions(False):
            return lax.reduce_sum(jnp.ones((1, 3), "bfloat16"), [0]), lax.reduce_sum(
                jnp.ones((1, 1), "float16"), [0, 1]
            )

    compare.same(program)


def test_a_jitted_function_whose_repr_fails_has_one():
    class Silent:
        def __repr__(self):
            raise ValueError

        def __call__(self):
            pass

    assert repr(minijax.jit(Silent())) == "<PjitFunction>"


@pytest.mark.oracle
def test_descriptions_of_shardings_as_bytes():
    def program(extend):
        sharding = extend.sharding
        data = sharding.get_serialized_proto_from_hlo_sharding(hlo.HloSharding.replicate())
        read = sharding.get_hlo_sharding_from_serialized_proto(data)
        return data.hex(), str(read), str(sharding.get_op_sharding_from_serialized_proto(data).type)

    compare.same(program)
