"""64-bit types switched on and off inside traces: results, dtypes, jaxprs and derivatives are jax's."""

import warnings

import compare
import numpy as np
import pytest

ONE = np.float32(1)


def _programs(jax, jnp, lax):
    """Functions of one number that switch the width of numbers on their way, by name."""

    def wide(x):
        return x.astype("float64")

    def weak(x):
        with jax.enable_x64(True):
            return jnp.sin(x) * 2, x * 2.0, -x, x + jnp.float32(1)

    def calls(x):
        with jax.enable_x64(True):
            return jax.jit(lambda y: y * 2)(3.0), jax.jit(lambda y: y * 2)(x), jnp.arange(3), np.arange(2.0) * x

    def narrowed(x):
        with jax.enable_x64(True):
            y = jnp.asarray(x).astype("float64") * 3
        return y + 1, jnp.sin(y), y.sum(), jnp.mean(y), y * np.float32(2)

    def scanned(x):
        def body(c, a):
            with jax.enable_x64(True):
                return jnp.float32(c * wide(a)), wide(a) * 2

        return lax.scan(body, jnp.float32(x), jnp.arange(3, dtype="float32"))

    def looped(x):
        def body(c):
            with jax.enable_x64(True):
                return (wide(c) * 2.5).astype("float32")

        def cond(c):
            with jax.enable_x64(True):
                return wide(c) < 10.1

        return lax.while_loop(cond, body, jnp.float32(x))

    def wide_loop(x):
        with jax.enable_x64(True):
            return lax.while_loop(lambda c: c < 10, lambda c: c * 2, x), lax.fori_loop(0, 3, lambda i, c: c * i, x)

    def branched(x):
        def branch(x):
            with jax.enable_x64(True):
                return wide(x) * 2.5

        return lax.cond(x > 0, branch, lambda x: branch(x + 1), jnp.float32(x))

    def drawn(x):
        with jax.enable_x64(True):
            return jax.random.key_data(jax.random.key(0)), jnp.cumsum(wide(jnp.float32(x)) * jnp.ones(3))

    return dict(locals()) | {"jax": None, "jnp": None, "lax": None, "wide": None}


NAMES = [name for name, f in _programs(*[None] * 3).items() if f is not None]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x", [1.5, ONE, 2])
@pytest.mark.parametrize("outer", [False, True])
def test_widths_switched_inside_a_trace(name, x, outer):
    def program(jax, jnp, lax):
        f = _programs(jax, jnp, lax)[name]
        with jax.enable_x64(outer), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(x), jax.jit(f)(x), compare.normal(str(jax.make_jaxpr(f)(x)))

    compare.same(program, raises=compare.EITHER)


def _differentiable(jax, jnp, lax):
    def wide(x):
        return x.astype("float64")

    def out_wide(x):
        with jax.enable_x64(True):
            return jnp.sin(wide(x)) * 2

    def out_narrow(x):
        return out_wide(x).astype("float32") * x

    def scanned(x):
        def body(c, a):
            with jax.enable_x64(True):
                return (wide(c) * jnp.sin(wide(a))).astype("float32"), wide(a) * 2

        return lax.scan(body, x, jnp.arange(1, 4, dtype="float32"))[0]

    def checkpointed(x):
        return jax.checkpoint(out_narrow)(x)

    def branched(x):
        return lax.cond(x > 0, out_narrow, lambda x: x, x)

    @jax.custom_vjp
    def custom_vjp(x):
        return x * 2

    def fwd(x):
        with jax.enable_x64(True):
            return x * 2, wide(x)

    def bwd(r, g):
        with jax.enable_x64(True):
            return ((wide(g) * r).astype("float32"),)

    custom_vjp.defvjp(fwd, bwd)

    @jax.custom_jvp
    def custom_jvp(x):
        return x * 2

    @custom_jvp.defjvp
    def _rule(primals, tangents):
        with jax.enable_x64(True):
            return primals[0] * 2, (wide(tangents[0]) * 3).astype("float32")

    functions = out_wide, out_narrow, scanned, checkpointed, branched, custom_vjp, custom_jvp
    return {getattr(f, "__name__", None) or f.__wrapped__.__name__: f for f in functions}


DIFFERENTIABLE = "out_wide out_narrow scanned checkpointed branched custom_vjp custom_jvp".split()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_through_switched_widths(name):
    def program(jax, jnp, lax):
        f = _differentiable(jax, jnp, lax)[name]
        one = jnp.float32(1.5)
        loop = lax.scan(lambda c, _: (jax.grad(f)(c), None), one, None, length=2)[0]
        both = jax.jit(jax.grad(f))(one), jax.vmap(jax.grad(f))(jnp.ones(2, "float32")), loop
        pushed = None if name == "custom_vjp" else (jax.jvp(f, (one,), (one,)), jax.linearize(f, one)[1](one))
        return jax.grad(f)(one), pushed, both

    compare.same(program)


@pytest.mark.parametrize("name", ["out_wide", "out_narrow", "scanned", "custom_vjp", "custom_jvp"])
def test_jaxprs_of_derivatives_through_switched_widths(name):
    compare.same_jaxpr(lambda jax, jnp, lax: jax.grad(_differentiable(jax, jnp, lax)[name]), ONE)


def test_gradients_at_python_numbers_keep_the_width_they_entered_with():
    def program(jax, jnp):
        def f(x):
            with jax.enable_x64(True):
                return jnp.sin(x)

        return jax.grad(f)(0.5), jax.vjp(f, 0.5)[0]

    compare.same(program)


def test_carries_and_branches_of_two_widths_are_refused():
    def scan(jax, jnp, lax):
        def body(c, a):
            with jax.enable_x64(True):
                return c + a.astype("float64"), a

        return lambda: lax.scan(body, jnp.float32(1), jnp.arange(3, dtype="float32"))

    def cond(jax, jnp, lax):
        def wide(x):
            with jax.enable_x64(True):
                return x.astype("float64")

        return lambda: lax.cond(True, wide, lambda x: x, jnp.float32(1))

    compare.same_refusal(scan, phrases=["float32", "float64"])
    compare.same_refusal(cond, phrases=["float32", "float64"])


def test_a_jaxpr_is_evaluated_with_the_widths_that_it_was_traced_with():
    def program(jax, jnp):
        with jax.enable_x64(True):
            closed = jax.make_jaxpr(lambda x: jnp.sin(x) * 2.5 + np.arange(3.0))(1.0)
            x = jnp.float64(1)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)

    compare.same(program)


def _with_rule(custom, name, *rules):
    getattr(custom, name)(*rules)
    return custom


WRAPPERS = {
    "custom_jvp": lambda jax, f: _with_rule(jax.custom_jvp(f), "defjvp", lambda p, t: jax.jvp(f, p, t)),
    "custom_vjp": lambda jax, f: _with_rule(jax.custom_vjp(f), "defvjp", lambda x: jax.vjp(f, x), lambda r, ct: r(ct)),
    "checkpoint": lambda jax, f: jax.checkpoint(f),
    "jit": lambda jax, f: jax.jit(f),
    "scan": lambda jax, f: lambda x: jax.lax.scan(lambda c, y: (c, f(y)), 0, jax.numpy.stack([x, x]))[1],
}


@pytest.mark.oracle
@pytest.mark.parametrize("values", [np.ones(3), np.arange(3), np.ones(3) * 1j])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wide_constant_keeps_its_type_where_numbers_are_narrow(name, values):
    def program(jax):
        def wide(x):
            with jax.enable_x64(True):
                return x + values

        return WRAPPERS[name](jax, wide)

    compare.same_jaxpr(program, ONE)
    compare.same(lambda jax: jax.jit(compare.run_on(jax, program))(ONE))
