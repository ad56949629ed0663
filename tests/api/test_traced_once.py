"""How often a user's function runs where it is traced: `jit`, `make_jaxpr` and `eval_shape` share its traces."""

import pytest
from compare import ours, same
from given import given

pytestmark = pytest.mark.oracle

STEPS = [
    lambda jax, f: [jax.make_jaxpr(f)(1.0) for _ in range(3)],
    lambda jax, f: jax.make_jaxpr(f)(2.5),
    lambda jax, f: jax.make_jaxpr(f)(1),
    lambda jax, f: [jax.eval_shape(f, 1.0), jax.eval_shape(f, 2.0)],
    lambda jax, jnp, f: [
        jax.eval_shape(f, jax.ShapeDtypeStruct((3,), "float32")),
        jax.jit(f).trace(jnp.ones(3)),
        jax.jit(f)(jnp.ones(3)),
    ],
    lambda jax, f: jax.jit(lambda y: [jax.make_jaxpr(f)(1.0) for _ in range(3)] and y)(1.0),
    lambda jax, jnp, f: jax.jit(lambda y: [jax.eval_shape(f, jnp.ones(4)) for _ in range(3)] and y)(1.0),
    lambda jax, f: jax.jit(lambda y: [jax.make_jaxpr(lambda x: f(x) + y)(1.0) for _ in range(3)] and y)(1.0),
    lambda jax, jnp, f: [jax.make_jaxpr(f, return_shape=True)(jnp.ones(5)) for _ in range(3)],
    lambda jax, jnp, f: [jax.make_jaxpr(f, axis_env=[("i", 2)])(jnp.ones(6)) for _ in range(3)],
    lambda jax, f: [
        jax.make_jaxpr(f, static_argnums=0)(1),
        jax.make_jaxpr(f, static_argnums=0)(1),
        jax.jit(f, static_argnums=0)(1),
    ],
    lambda jax, jnp, mapped: [jax.make_jaxpr(mapped)(jnp.ones(3)) for _ in range(3)],
    lambda jax, f: [jax.make_jaxpr(jax.grad(f))(1.0) for _ in range(2)],
    lambda jax, counter: [jax.make_jaxpr(counter)(1.0) for _ in range(2)],
    lambda jax, counter: [jax.make_jaxpr(counter.method)(1.0) for _ in range(2)],
    lambda jax, jnp, f, place: [
        jax.eval_shape(f, jnp.ones(8)),
        jax.jit(f, donate_argnums=0)(jnp.ones(8)),
        jax.jit(f, out_shardings=place)(jnp.ones(8)),
    ],
    lambda jax, jnp, f, place: [
        jax.jit(f, keep_unused=True)(jnp.ones(9)),
        jax.jit(f, inline=True)(jnp.ones(9)),
        jax.jit(f, in_shardings=place)(jnp.ones(9)),
    ],
    lambda jax, jnp, f: [
        jax.jit(f, donate_argnums=0)(jnp.ones(10)),
        jax.jit(f, donate_argnames="x")(jnp.ones(10)),
        jax.eval_shape(f, jnp.ones(10)),
    ],
    lambda jax, jnp, f, place: [jax.jit(f, out_shardings=place)(jnp.ones(11))],
    lambda jax, jnp, f, place: [
        jax.jit(f, out_shardings=place)(jnp.ones(12)),
        jax.jit(f).clear_cache(),
        jax.jit(f, out_shardings=place)(jnp.ones(12)),
    ],
    lambda jax, jnp, f: [jax.make_jaxpr(f)(jnp.ones(7)), jax.jit(f).clear_cache(), jax.make_jaxpr(f)(jnp.ones(7))],
]


def test_functions_run_as_often_as_in_jax():
    def program(jax, jnp):
        runs = []

        def f(x):
            runs.append(x)
            return x * 2

        class Counter:
            def __call__(self, x):
                return f(x)

            def method(self, x):
                return f(x)

        values = dict(jax=jax, jnp=jnp, f=f, mapped=jax.vmap(f), counter=Counter())
        values["place"] = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        found = []
        for step in STEPS:
            runs.clear()
            given(step, values)
            found.append(len(runs))
        return found

    same(program)


def test_one_jaxpr_is_returned_for_arguments_of_one_type():
    def program(jax, jnp):
        f = lambda x: jnp.sin(x)  # noqa: E731
        one = jax.make_jaxpr(f)(1.0)
        return [one is jax.make_jaxpr(f)(2.0), one.jaxpr is jax.make_jaxpr(f)(1).jaxpr]

    same(program)


def test_values_that_a_traced_function_captures_are_constants_of_its_jaxpr():
    def program(jax, jnp):
        shown = []

        def outer(y, z):
            closed = jax.make_jaxpr(lambda x: x * y + jnp.ones(3) * z)(1.0)
            shown.extend([str(closed), len(closed.consts), str(closed.jaxpr.debug_info.arg_names)])
            return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)[0]

        return shown + [
            jax.jit(outer)(jnp.ones(3), 2.0).tolist(),
            jax.grad(lambda y: outer(y, 3.0).sum())(1.0).tolist(),
        ]

    same(program)


def test_unhashable_static_arguments_are_refused():
    def program(jax):
        try:
            jax.make_jaxpr(lambda n, x: x * len(n), static_argnums=0)([1], 1.0)
        except ValueError as error:
            return "Non-hashable static arguments are not supported" in str(error)

    same(program)


def test_descriptions_that_a_function_returns_stay_and_are_refused_elsewhere():
    jax = ours()
    struct = jax.ShapeDtypeStruct((2,), "float32")
    f = lambda x: {"known": struct, "x": x * 2}  # noqa: E731
    for _ in range(2):
        assert jax.eval_shape(f, 1.0)["known"] is struct
    with pytest.raises(TypeError):
        jax.jit(f)(1.0)
