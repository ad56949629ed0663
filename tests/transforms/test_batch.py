"""Batching, shown: each operation once, on arrays with an axis more."""

from inspect import cleandoc

import numpy as np
import pytest
from compare import same_jaxpr

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.ir.primitive import Axis
from minijax.transforms.batch import batch_jaxpr, batch_jaxpr_axes

X, W = np.ones(3, np.float32), np.ones((2, 3), np.float32)
XS = np.ones((4, 3), np.float32)


def f(x, w):
    return w @ x + jnp.sin(x[0])


def test_operations_get_the_axis_where_they_want_it_and_operands_without_it_stay_as_they_are():
    assert str(jax.make_jaxpr(f)(X, W)) == cleandoc("""
        { lambda ; a:f32[3] b:f32[2,3]. let
            c:f32[2] = dot_general[
              dimension_numbers=(([1], [0]), ([], []))
              preferred_element_type=float32
            ] b a
            d:f32[1] = slice[limit_indices=(1,) start_indices=(0,) strides=None] a
            e:f32[] = squeeze[dimensions=(0,)] d
            f:f32[] = sin e
            g:f32[2] = add c f
          in (g,) }
    """)
    assert str(jax.make_jaxpr(jax.vmap(f, (0, None)))(XS, W)) == cleandoc("""
        { lambda ; a:f32[4,3] b:f32[2,3]. let
            c:f32[2,4] = dot_general[
              dimension_numbers=(([1], [1]), ([], []))
              preferred_element_type=float32
            ] b a
            d:f32[4,1] = slice[limit_indices=(4, 1) start_indices=(0, 0) strides=None] a
            e:f32[4] = squeeze[dimensions=(1,)] d
            f:f32[4] = sin e
            g:f32[4,2] = transpose[permutation=(1, 0)] c
            h:f32[4,1] = broadcast_in_dim[broadcast_dimensions=(0,)] f
            i:f32[4,2] = add g h
          in (i,) }
    """)


def test_a_branch_by_each_row_runs_both_and_selects():
    def either(p, x):
        return lax.cond(p, jnp.sin, jnp.cos, x)

    # An operand of a branch that is not taken is a constant there, for what it computes may have no derivative.
    assert str(jax.make_jaxpr(jax.vmap(either))(np.ones(3, bool), X)) == cleandoc("""
        { lambda ; a:bool[3] b:f32[3]. let
            c:i32[3] = convert_element_type[new_dtype=int32 weak_type=False] a
            d:bool[3] = eq c 0:i32[]
            e:f32[3] = stop_gradient b
            f:f32[3] = select_n d e b
            g:f32[3] = cos f
            h:bool[3] = eq c 1:i32[]
            i:f32[3] = stop_gradient b
            j:f32[3] = select_n h i b
            k:f32[3] = sin j
            l:f32[3] = select_n c g k
          in (l,) }
    """)


def test_a_branch_by_one_number_for_all_rows_stays_a_branch():
    def either(p, x):
        return lax.cond(p, jnp.sin, jnp.cos, x)

    assert str(jax.make_jaxpr(jax.vmap(either, (None, 0)))(True, X)) == cleandoc("""
        { lambda ; a:bool[] b:f32[3]. let
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
            d:f32[3] = cond[
              branches=(
                { lambda ; e:f32[3]. let f:f32[3] = cos e in (f,) }
                { lambda ; g:f32[3]. let h:f32[3] = sin g in (h,) }
              )
            ] c b
          in (d,) }
    """)


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


def test_axes_are_kept_or_moved_as_requested(closed):
    batched, dims = batch_jaxpr_axes(closed, AXIS, (None, 1))
    assert dims == (None, 1, None)
    assert shapes(batched) == [(4, 2), (2, 3), (2,)]
    batched, dims = batch_jaxpr_axes(closed, AXIS, (None, 1), (2, 0, None))
    assert dims == (2, 0, None)
    assert shapes(batched) == [(4, 2, 3), (3, 2), (2,)]


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (0, 0), (None, 1), (1, None)])
def test_cases_of_a_select_get_the_axis_where_the_first_case_has_it(dims):
    def program(jax, jnp):
        return lambda i, *cases: jax.vmap(lambda x, y: jnp.where(i > 0, x, y), dims)(*cases)

    same_jaxpr(program, 1, *(np.ones(3 if d is None else (3, 3), np.float32) for d in dims))


@pytest.mark.oracle
@pytest.mark.parametrize("out", [0, -1])
@pytest.mark.parametrize("body", [lambda jnp, x: x, lambda jnp, x: jnp.concatenate([x, x])])
def test_numpy_moves_the_axis_of_a_constant(body, out):
    def program(jax, jnp):
        return lambda y: jax.vmap(lambda x: body(jnp, x), -1, out)(W)

    same_jaxpr(program, 1.0)
