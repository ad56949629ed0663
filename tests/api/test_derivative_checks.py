"""jax.test_util: what passes and what fails is what passes and fails in jax."""

import numpy as np
import pytest
from compare import both, run_on, theirs

import minijax as jax
import minijax.numpy as jnp
from minijax.api.derivative_checks import check_close
from minijax.test_util import check_grads, check_jvp, check_vjp

LEAST = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 1e-5, "complex64": 1e-3, "complex128": 1e-5}


def fails(jax, dtype, error):
    def f(x):
        return x * 1e3

    def f_jvp(primals, tangents):
        return f(*primals), tangents[0] * jax.numpy.array(1e3 * (1 + error), dtype)

    try:
        jax.test_util.check_jvp(f, f_jvp, (jax.numpy.zeros((), dtype),))
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("dtype", LEAST)
def test_derivatives_are_refused_from_a_tolerance_on(dtype):
    with jax.enable_x64(dtype in ("float64", "complex128")):
        assert not fails(jax, dtype, 0.9 * LEAST[dtype])
        assert fails(jax, dtype, 1.2 * LEAST[dtype])


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_the_tolerance_is_jax_s(dtype):
    import jax.test_util  # noqa: F401, PLC0415

    assert not run_on(theirs(), lambda jax: fails(jax, dtype, 0.9 * LEAST[dtype]))
    assert run_on(theirs(), lambda jax: fails(jax, dtype, 1.2 * LEAST[dtype]))


CORRECT = {
    "sine": (jnp.sin, (0.3,)),
    "pytrees and integers": (lambda x, i: {"y": x["a"][i] * jnp.sin(x["a"][1])}, ({"a": jnp.arange(3.0)}, 1)),
    "complex": (lambda x: (x * x).real + x.imag, (jnp.array([0.1 + 0.2j, 0.3]),)),
    "nothing": (lambda x: x, (jnp.zeros((0,)),)),
}


@pytest.mark.parametrize("name", CORRECT)
def test_derivatives_that_are_right_pass(name):
    check_grads(*CORRECT[name], order=2)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_rule_is_found_in_each_mode_and_order(mode, order):
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    @jax.custom_jvp
    def slope(x):
        return jnp.cos(x)

    f.defjvp(lambda primals, ts: (f(*primals), ts[0] * (3 if order == 1 else 1) * slope(*primals)))
    slope.defjvp(lambda primals, ts: (slope(*primals), ts[0] * jnp.sin(*primals)))
    if order == 2:
        check_grads(f, (1.0,), 1, modes=[mode])
    with pytest.raises(AssertionError, match="JVP" if mode == "fwd" else "VJP"):
        check_grads(f, (1.0,), order, modes=[mode])


def test_tolerances_steps_and_messages_are_the_caller_s():
    def wrong(primals, tangents):
        return primals[0] ** 3, 3.1 * primals[0] ** 2 * tangents[0]

    x = np.float32([1.0, 0.5])
    check_jvp(lambda x: x**3, wrong, (x,), atol=0.5, rtol=0.5, eps=1e-2)
    with pytest.raises(AssertionError, match="mine"):
        check_jvp(lambda x: x**3, wrong, (x,), err_msg="mine ")
    with pytest.raises(AssertionError, match="mine"):
        check_vjp(lambda x: x**3, lambda x: (x**3, lambda ct: (3.1 * x**2 * ct,)), (x,), err_msg="mine ")
    with pytest.raises(AssertionError, match="primal"):
        check_vjp(lambda x: x**3, lambda x: (x**2, lambda ct: (3 * x**2 * ct,)), (x,))


@pytest.mark.oracle
def test_directions_are_those_of_jax():
    """A check that passes within a tolerance on one side passes on the other: both draw the same directions."""

    import jax.test_util  # noqa: F401, PLC0415

    def drawn(jax):
        seen = []

        def f(x, rest):
            return {"product": x * rest["y"], "rest": rest}

        def f_jvp(primals, tangents):
            seen.append(tangents)
            return jax.jvp(f, primals, tangents)

        def f_vjp(*args):
            out, pull = jax.vjp(f, *args)
            return out, lambda cts: [seen.append(cts), pull(cts)][1]

        args = (np.ones(3, np.float32), {"y": np.float32(2), "z": np.ones((2, 1), np.complex64)})
        jax.test_util.check_jvp(f, f_jvp, args)
        jax.test_util.check_vjp(f, f_vjp, args, atol=1.0)
        return [np.asarray(x).tolist() for x in jax.tree.leaves(seen)]

    assert repr(drawn(jax)) == repr(run_on(theirs(), drawn))


ONE, FOUR = np.ones((), np.float32), np.ones(4, np.float32)
CLOSE = {
    "rounding": (FOUR, FOUR + 3e-6, {}),
    "more than rounding": (FOUR, FOUR + 1e-4, {}),
    "one element": (ONE, ONE + 3e-6, {}),
    "a tolerance of the dtype": ([FOUR], [FOUR + 0.1], {"atol": {"float32": 0.03}}),
    "a tolerance of a scalar type": (FOUR, FOUR + 0.1, {"rtol": {np.float32: 0.03}}),
    "a tolerance of another dtype": (FOUR, FOUR + 0.1, {"atol": {"float64": 0.03}}),
    "the wider tolerance": (FOUR, np.float64(FOUR + 0.1), {"atol": {"float32": 0.1, "float64": 0.0}}),
    "integers": (np.arange(3), np.arange(3) + 1, {}),
    "shapes": (FOUR, ONE, {}),
    "trees": ([FOUR, FOUR], [FOUR], {}),
}


def how_it_ends(call):
    try:
        call()
    except (AssertionError, ValueError) as error:
        return type(error)
    return None


@pytest.mark.oracle
@pytest.mark.parametrize("name", CLOSE)
def test_trees_are_close_where_they_are_in_jax(name):
    import jax.test_util  # noqa: F401, PLC0415
    from jax._src.public_test_util import check_close as their_check  # noqa: PLC0415

    xs, ys, options = CLOSE[name]
    assert how_it_ends(lambda: check_close(xs, ys, **options)) == how_it_ends(lambda: their_check(xs, ys, **options))


def checked(jax, tolerance):
    x = np.linspace(0.1, 0.9, 5, dtype=np.float32)
    jax.test_util.check_grads(jax.numpy.sin, (x,), 2, atol=tolerance, rtol=tolerance)


@pytest.mark.oracle
@pytest.mark.parametrize("tolerance", [{"float32": 1e-2}, {np.float32: 1e-9}])
def test_tolerances_of_gradients_may_depend_on_dtypes(tolerance):
    ours, others = both(lambda jax: how_it_ends(lambda: checked(jax, tolerance)))
    assert ours == others
