"""Kernels are traced to jax's jaxprs, and interpreted to its values, bit for bit."""

import compare
import numpy as np
import pallas_kernels
import pytest
from pallas_kernels import X

import minijax as jax

KERNELS = [pytest.param(*case, id=name) for name, case in pallas_kernels.KERNELS.items()]


@pytest.mark.oracle
@pytest.mark.parametrize(("program", "operands"), KERNELS)
def test_jaxprs(program, operands):
    compare.same_jaxpr(program, *operands)


def _reshaped():
    expected = X.copy()
    expected.reshape(-1)[3:7] = X[0, :4]
    return expected


# Kernels that jax traces and cannot interpret.
OURS = {
    "reshaped_view": _reshaped(),
    "transposed_view": np.concatenate([X.T[3:4], X.T[1:]]),
    "scoped_in_a_branch": X + 1,
    "nested_calls": np.tanh(X),
}


@pytest.mark.parametrize("name", OURS)
def test_values_that_jax_does_not_compute(name):
    program, operands = pallas_kernels.KERNELS[name]
    np.testing.assert_allclose(compare.run_on(jax, program)(*operands), OURS[name], rtol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize(("program", "operands"), [case for case in KERNELS if case.id not in OURS])
def test_values(program, operands):
    compare.same(
        lambda jax, jnp, lax, pl, pltpu, plt: program(jax, jnp, lax, pl, pltpu, plt)(*operands), rtol=0, atol=0
    )
