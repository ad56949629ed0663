"""Attributes of primitives that libraries read and set: their evaluation, and their types."""

import importlib

import numpy as np
import pytest
from compare import same
from given import given

from minijax.ir.primitive import Primitive

pytestmark = pytest.mark.oracle

X = np.arange(3.0, dtype="float32")


def program(call):
    def run(jax):
        importlib.import_module(f"{jax.__name__}.extend.core")
        names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax}
        names["last"] = lambda f, *args: jax.make_jaxpr(f)(*args).eqns[-1]
        return given(call, names)

    return run


RUN = [
    lambda jnp, lax: lax.add_p.impl(jnp.asarray(X), jnp.ones(3)),
    lambda lax: lax.convert_element_type_p.impl(X, new_dtype=np.dtype("int32"), weak_type=False, sharding=None),
    lambda jnp, lax: lax.sort_p.impl(jnp.array([2.0, 1.0]), dimension=0, is_stable=True, num_keys=1),
    lambda lax: lax.iota_p.impl(dtype=np.dtype("int32"), shape=(3,), dimension=0, sharding=None),
    lambda lax: lax.slice_p.impl(X, start_indices=(1,), limit_indices=(3,), strides=None),
    lambda jax, last: [e := last(jax.jit(lambda x: x + 1), X), e.primitive.impl(X, **e.params)][1],
    lambda lax, last: [
        e := last(lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x), X),
        e.primitive.impl(0.0, X, **e.params),
    ][1],
    lambda lax, last: [
        e := last(lambda x: lax.while_loop(lambda y: y < 3, lambda y: y + 1, x), 1.0),
        e.primitive.impl(1.0, **e.params),
    ][1],
    lambda last: [e := last(lambda x: x.sum(), X), e.primitive.impl(X, **e.params)][1],
    lambda lax, last: [e := last(lambda x: lax.optimization_barrier((x, x)), X), e.primitive.impl(X, X)][1],
    lambda jax, last: [e := last(jax.device_put, X), e.primitive.impl(X, **e.params)][1],
    lambda jax, last: jax.random.key_data(
        last(lambda x: jax.random.split(x), jax.random.key(0)).primitive.impl(jax.random.key(0), shape=(2,))
    ),
    lambda lax: [callable(p.impl) for p in (lax.sin_p, lax.scan_p, lax.psum_p)],
    lambda jax, lax: str(lax.add_p.abstract_eval(jax.typeof(X), jax.typeof(X))),
]


@pytest.mark.parametrize("call", RUN)
def test_an_operation_is_run_by_its_impl(call):
    same(program(call))


def with_impl(jax, name, make):
    """The result of a function, and how often `make(old)` ran in place of a primitive's impl."""
    p, calls = getattr(jax.lax, f"{name}_p"), []
    old, new = p.impl, make(p.impl)

    def counted(*args, **params):
        calls.append(len(args))
        return new(*args, **params)

    assert p.def_impl(counted) is counted and p.impl is counted
    try:
        called = [getattr(jax.lax, name)(X), jax.jit(getattr(jax.lax, name))(X), p.bind(X, accuracy=None)]
    finally:
        p.def_impl(old)
    return called, calls, getattr(jax.lax, name)(X), len(calls)


@pytest.mark.parametrize("name", ["tan", "cbrt"])
def test_an_impl_can_be_set_and_call_the_one_before(name):
    same(lambda jax: with_impl(jax, name, lambda old: lambda *args, **params: old(*args, **params) + 1))
    same(lambda jax: with_impl(jax, name, lambda old: lambda x, **params: x * 2))


def test_primitives_of_the_package_define_their_eager_evaluation():
    importlib.import_module("minijax.numpy")
    classes = [Primitive]
    for cls in classes:
        classes += cls.__subclasses__()
    mine = [cls for cls in classes[1:] if cls.__module__.startswith("minijax.")]
    assert len(mine) > 100 and [cls for cls in mine if "impl" in vars(cls)] == []


USERS = [
    lambda jax: [p := jax.extend.core.Primitive("mine"), p.def_impl(lambda x: x * 2), p.bind(3.0), p.impl(4.0)][2:],
    lambda jax: [p := jax.extend.core.Primitive("mine"), setattr(p, "impl", lambda x: x * 2), p.bind(3.0)][1:],
]


@pytest.mark.parametrize("call", USERS)
def test_users_operations_have_their_impl(call):
    same(program(call))


@pytest.mark.parametrize("name", ["impl", "bind", "abstract_eval"])
def test_an_operation_without_a_rule_raises(name):
    call = lambda jax: getattr(jax.extend.core.Primitive("mine"), name)(1.0)  # noqa: E731
    same(program(call), raises="NotImplementedError")


def test_methods_of_a_subclass_and_attributes_are_rules():
    def rules(jax, jnp):
        kind = jax.extend.core.Primitive

        class Tag(kind):
            def impl(self, a):
                return a + 1

            def abstract_eval(self, a):
                return a, set()

        class Copies(kind):
            multiple_results = True

            def impl(self, a, *, n):
                return [a] * n

            def abstract_eval(self, a, *, n):
                return [a] * n, set()

        class Derived(Tag):
            pass

        tag, copies, derived, late = Tag("tag"), Copies("copies"), Derived("derived"), kind("late")
        late.abstract_eval, late.impl = lambda a: (a, set()), lambda a: a * 3
        x = jnp.ones(2)
        return [
            [tag.bind(x), *copies.bind(x, n=2), derived.bind(x), late.bind(x)],
            [str(jax.make_jaxpr(p.bind)(x)) for p in (tag, derived, late)],
            str(jax.make_jaxpr(lambda x: copies.bind(x, n=3))(x)),
            str(jax.eval_shape(jax.vmap(jax.jit(lambda x: x)), x)),
            str(tag.abstract_eval(jax.typeof(x))),
        ]

    same(lambda jax: rules(jax, jax.numpy))


NAMES = [
    lambda jax: [
        (jax.typeof(x).at_least_vspace(), jax.typeof(x).to_tangent_aval())
        for x in (X, 1, True, 2.0, 1j, jax.random.key(0))
    ],
    lambda jax: (jax.typeof(jax.new_ref(X)).update_weak_type(True), jax.typeof(jax.new_ref(X)).at_least_vspace()),
    lambda jax, jnp: [
        seen := [],
        [jax.vmap(lambda x: seen.append(x.batch_dim) or x, in_axes=d)(jnp.ones((2, 3))) for d in (0, 1, -1)],
        seen,
    ][2],
    lambda jax: [
        d := jax.make_jaxpr(lambda a, b: a)(1, 2).jaxpr.debug_info,
        d.safe_arg_names(2),
        type(d.func_lineno),
        d.func_filename.rpartition("/")[2],
    ][1:],
    lambda jax: jax.make_jaxpr(lambda a, b: a)(1, 2).jaxpr.debug_info.replace_func_name("other").func_name,
]


@pytest.mark.parametrize("call", NAMES)
def test_names_that_libraries_ask_of_types_and_tracers(call):
    same(lambda jax: str(program(call)(jax)))
