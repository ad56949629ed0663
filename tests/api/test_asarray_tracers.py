"""`asarray` of values that are concrete under a derivative, and broadcasts that change nothing, compared with jax."""

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
