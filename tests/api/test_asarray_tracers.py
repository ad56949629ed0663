"""`asarray` of values that are concrete under a derivative, of lists, and broadcasts that change nothing, compared with jax."""

import compare
import numpy as np
import pytest

import minijax

jax = compare.theirs()


@pytest.mark.parametrize("x", [1.0, np.float32(1), np.ones(2, "float32")])
def test_numbers_under_derivatives_become_arrays(x):
    for lib in (jax, minijax):
        primal, tangent = lib.jvp(lib.numpy.asarray, (x,), (x,))
        assert isinstance(primal, lib.Array) and isinstance(tangent, lib.Array)
        assert isinstance(lib.linearize(lib.numpy.asarray, x)[0], lib.Array)
        assert primal.weak_type == isinstance(x, float)


def test_a_broadcast_that_changes_nothing_is_not_written():
    def texts(lib):
        lax = lib.lax
        return [
            str(lib.make_jaxpr(lambda: lax.broadcast(np.float32(3), ()))()),
            str(lib.make_jaxpr(lambda: lax.broadcast_in_dim(3.0, (), ()))()),
            str(lib.make_jaxpr(lambda: lax.broadcast_in_dim(np.ones(3, "float32"), (3,), (0,)))()),
        ]

    assert texts(minijax) == texts(jax)


ROWS = {
    "of numbers": lambda x: [[x, 1], [2, 3.0]],
    "of tuples and flags": lambda x: [(x, 1), (True, 2)],
    "of NumPy's numbers": lambda x: [[x, x], [np.float32(2), 3.0]],
    "of arrays": lambda x: [[x, 1], np.ones(2, np.float32)],
    "deep": lambda x: [[[x], [1]], [[2], [3]]],
    "a rotation": lambda x: [[x, -x, 0], [x, x, 0], [0, 0, 1]],
}


@pytest.mark.parametrize("dtype", [None, int, "bfloat16"])
@pytest.mark.parametrize("rows", ROWS)
def test_rows_of_numbers_beside_tracers_are_constants(rows, dtype):
    compare.same_jaxpr(lambda jnp: lambda x: jnp.array(ROWS[rows](x), dtype), 1.5)
    compare.same(lambda jnp: jnp.asarray(ROWS[rows](jnp.float32(2)), dtype))


def test_rows_of_other_lengths_are_refused():
    compare.same_refusal(lambda jax, jnp: lambda: jax.jit(lambda x: jnp.array([[x, 1], [2]]))(1.0))
