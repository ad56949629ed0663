"""Kernels whose loops carry references: jaxprs are jax's, where the references are captured; values; what is refused."""

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.pallas import tpu as pltpu

X = np.arange(1024, dtype=np.float32).reshape(8, 128)


def in_fori_loop(jnp, lax, x, o):
    def body(i, r):
        r[i] = r[i] + i
        return r

    last = lax.fori_loop(0, 3, body, o)
    last[3] = last[3] - 1


def of_unknown_length(jnp, lax, x, o):
    def body(i, carry):
        r, total = carry
        r[i] = r[i] + i
        return r, total + i

    r, total = lax.fori_loop(0, x[0, 3].astype(np.int32), body, (o, jnp.float32(0)))
    r[5] = r[5] + total


def in_while_loop(jnp, lax, x, o):
    def body(carry):
        i, r = carry
        r[i] = r[i] * 2
        return i + 1, r

    i, r = lax.while_loop(lambda carry: carry[0] < 3, body, (0, o))
    r[4] = r[4] + i


def in_scan(jnp, lax, x, o):
    def body(carry, _):
        r, i = carry["r"], carry["i"]
        r[i] = r[i] + 1
        return {"r": r, "i": i + 1}, None

    carry, _ = lax.scan(body, {"i": 0, "r": o}, None, length=3)
    carry["r"][carry["i"]] = carry["r"][0]


def of_a_view(jnp, lax, x, o):
    def body(i, r):
        r[i] = r[i] + i
        return r

    lax.fori_loop(0, 3, body, o.at[2:6])


def two(jnp, lax, x, o):
    def body(i, refs):
        a, b = refs
        b[i] = a[i] * 2
        return a, b

    lax.fori_loop(0, 3, body, (x, o))


def nested(jnp, lax, x, o):
    def inner(j, r):
        r[j] = r[j] + 1
        return r

    lax.fori_loop(0, 3, lambda i, r: lax.fori_loop(0, i + 1, inner, r), o)


BODIES = [in_fori_loop, of_unknown_length, in_while_loop, in_scan, of_a_view, two, nested]


def call(body, **options):
    def program(jax, jnp, lax, pl, pltpu, plt):
        def kernel(x, o):
            o[...] = x[...]
            body(jnp, lax, x, o)

        return pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), "float32"), **options)

    return program


@pytest.mark.oracle
@pytest.mark.parametrize("body", BODIES)
def test_jaxprs(body):
    compare.same_jaxpr(call(body, interpret=True), X)


@pytest.mark.oracle
@pytest.mark.parametrize("body", BODIES)
def test_values(body):
    made = call(body, interpret=True)
    compare.same(lambda jax, jnp, lax, pl, pltpu, plt: made(jax, jnp, lax, pl, pltpu, plt)(X), rtol=0, atol=0)


@pytest.mark.parametrize("body", BODIES)
def test_simulated_values_are_those_of_the_interpreter(body):
    simulated = compare.run_on(jax, call(body, interpret=pltpu.InterpretParams()))
    np.testing.assert_array_equal(simulated(X), compare.run_on(jax, call(body, interpret=True))(X))


@pytest.mark.parametrize("body", [in_fori_loop, in_while_loop, two])
def test_modules_for_tpus(body):
    f = jax.jit(compare.run_on(jax, call(body)))
    assert "tpu_custom_call" in f.trace(X).lower(lowering_platforms=("tpu",)).as_text()


def exchanged(jnp, lax, x, o):
    lax.fori_loop(0, 3, lambda i, refs: refs[::-1], (x, o))


def new(jnp, lax, x, o):
    lax.fori_loop(0, 3, lambda i, r: o, x)


@pytest.mark.parametrize("body", [exchanged, new])
def test_other_references_than_those_carried_are_refused(body):
    with pytest.raises(ValueError, match="returned a mutable array reference"):
        compare.run_on(jax, call(body, interpret=True))(X)


@pytest.mark.oracle
def test_references_outside_of_kernels_are_not_carried():
    def program(jax, jnp, lax):
        ref = jax.new_ref(jnp.zeros(3))
        return lambda: lax.fori_loop(0, 3, lambda i, r: r, ref)

    compare.same_refusal(program, ["mutable array reference"])


def test_the_gradient_of_a_kernel_that_carries_a_reference():
    f = compare.run_on(jax, call(in_scan, interpret=True))
    slope = jax.grad(lambda x: (f(x) ** 2).sum())(jnp.ones((8, 128)))
    np.testing.assert_array_equal(slope[:, 0], [8, 4, 4, 0, 2, 2, 2, 2])
