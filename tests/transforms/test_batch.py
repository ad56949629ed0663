"""Batching a jaxpr: which results are batched, and where."""

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.ir.primitive import Axis
from minijax.transforms.batch import batch_jaxpr, batch_jaxpr_axes

AXIS = Axis(None, 3)


@pytest.fixture(scope="module")
def closed():
    """(x, y) -> (x batched or not, y batched or not, a constant)"""
    return jax.make_jaxpr(lambda x, y: (x.T, jnp.sin(y), jnp.zeros(2)))(jnp.ones((2, 4)), jnp.ones(2))


def shapes(batched):
    return [a.shape for a in batched.out_avals]


def test_batched_results_have_the_axis_in_front(closed):
    batched, out = batch_jaxpr(closed, AXIS, (1, None))
    assert out == (True, False, False)
    assert shapes(batched) == [(3, 4, 2), (2,), (2,)]


def test_instantiated_results_are_batched_in_any_case(closed):
    batched, out = batch_jaxpr(closed, AXIS, (None, 1), (False, False, True))
    assert out == (False, True, True)
    assert shapes(batched) == [(4, 2), (3, 2), (3, 2)]
    batched, out = batch_jaxpr(closed, AXIS, (None, 1), True)
    assert all(out) and shapes(batched) == [(3, 4, 2), (3, 2), (3, 2)]


def test_axes_are_left_or_put_where_they_are_told(closed):
    batched, dims = batch_jaxpr_axes(closed, AXIS, (None, 1))
    assert dims == (None, 1, None)
    assert shapes(batched) == [(4, 2), (2, 3), (2,)]
    batched, dims = batch_jaxpr_axes(closed, AXIS, (None, 1), (2, 0, None))
    assert dims == (2, 0, None)
    assert shapes(batched) == [(4, 2, 3), (3, 2), (2,)]
