"""jax.experimental.ode: solutions of differential equations and their adjoints, against jax's and in closed form."""

import numpy as np
import pytest
from compare import Case, ours, run_on, same_error, sweep, theirs

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.ode import odeint

Y, T, A = np.float32([1, -2]), np.float32([0, 0.5, 2]), np.float32(0.75)
CLOSE = {"rtol": 1e-5, "atol": 1e-6, "why": "XLA fuses the stages' sums in another way"}


def decay(y, t, a):
    return -a * y * t


def pendulum(jnp):
    return lambda y, t, a: {"x": y["v"], "v": -a * jnp.sin(y["x"])}


def solved(ode, y, t, a):
    return ode.odeint(decay, y, t, a)


SOLUTIONS = [
    Case("vector", lambda ode: lambda y, t, a: solved(ode, y, t, a), (Y, T, A)),
    Case("scalar", lambda ode: lambda y, t: ode.odeint(lambda y, t: y * (1 - y), y, t), (np.float32(0.1), T)),
    Case("backwards", lambda ode: lambda y, t, a: ode.odeint(decay, y, t, a, rtol=1e-4), (Y, -T, A)),
    Case(
        "tree",
        lambda ode, jnp: lambda x, t, a: ode.odeint(pendulum(jnp), {"x": x, "v": x * 0}, t, a, hmax=0.1, mxstep=30),
        (Y, T, A),
    ),
    Case(
        "complex",
        lambda ode: lambda y, t, a: ode.odeint(lambda y, t, a: 1j * a * y, y, t, a, atol=1e-5, rtol=1e-5),
        (np.complex64([1, 1j]), T, A),
    ),
    Case("few steps", lambda ode: lambda y, t, a: ode.odeint(decay, y, t, a, mxstep=2), (Y, T, A)),
]


@pytest.mark.oracle
def test_solutions_are_those_of_jax(tier):
    sweep([Case(c.name, c.program, c.args, tolerance=CLOSE) for c in SOLUTIONS], tier)


@pytest.mark.oracle
def test_adjoints_are_those_of_jax(tier):
    """Jaxprs differ in equations whose results are not read."""
    cases = [
        Case(
            "by all",
            lambda jax, ode: jax.grad(lambda y, t, a: solved(ode, y, t, a).sum(), argnums=(0, 1, 2)),
            (Y, T, A),
        ),
        Case(
            "by what is captured",
            lambda jax, ode: jax.grad(lambda a: ode.odeint(lambda y, t: -a * y, Y, T).sum()),
            (A,),
        ),
        Case("vmap", lambda jax, ode: jax.vmap(lambda a: solved(ode, Y, T, a)), (np.float32([0.5, 1]),)),
        Case(
            "jit of vmap of grad",
            lambda jax, ode: jax.jit(jax.vmap(jax.grad(lambda a: solved(ode, Y, T, a)[-1, 0]))),
            (np.float32([0.5, 1]),),
        ),
    ]
    sweep([Case(c.name, c.program, c.args, tolerance=CLOSE) for c in cases], tier, jaxpr=False)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        lambda ode: ode.odeint(decay, Y, T, "a"),
        lambda ode: ode.odeint(decay, Y, np.arange(3), A),
        lambda ode: ode.odeint(decay, Y, [0.0, 1.0], A),
        lambda ode: ode.odeint(lambda y, t: (y, y), Y, T),
        lambda ode: ode.odeint(lambda y, t: -y, 1, T),
    ],
    ids=["argument", "integer times", "list of times", "tree", "integers"],
)
def test_bad_calls_are_refused(call):
    same_error(lambda: run_on(ours(), call), lambda: run_on(theirs(), call))


@pytest.mark.oracle
def test_forward_mode_is_refused():
    def tangent(jax, ode):
        return jax.jvp(lambda y: ode.odeint(decay, y, T, A), (Y,), (Y,))

    same_error(lambda: run_on(ours(), tangent), lambda: run_on(theirs(), tangent), ["forward-mode"])


def test_solutions_and_derivatives_are_those_in_closed_form():
    with jax.enable_x64(True):
        y, t, a = np.array([1.0, -2.0]), np.array([0, 0.5, 2.0]), 0.75
        np.testing.assert_allclose(odeint(decay, y, t, a), y * np.exp(-a * t**2 / 2)[:, None], rtol=1e-6)

        def last(y, t, a):
            return odeint(decay, y, t, a)[-1, 0]

        value = np.exp(-a * 2.0)
        by_y, by_t, by_a = jax.grad(last, argnums=(0, 1, 2))(jnp.array(y), jnp.array(t), a)
        np.testing.assert_allclose(by_y, [value, 0], atol=1e-6)
        np.testing.assert_allclose(by_t, [0, 0, -a * 2 * value], atol=1e-6)
        np.testing.assert_allclose(by_a, -2 * value, rtol=1e-5)
