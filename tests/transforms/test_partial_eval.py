"""Partial evaluation, shown: known equations are evaluated, unknown ones are staged; checkpoints recompute."""

from inspect import cleandoc

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.base.mask import Mask
from minijax.ir.trace import eval_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr
from minijax.transforms.partial_eval_custom import partial_eval_jaxpr_custom

save_all = jax.checkpoint_policies.everything_saveable


def f(x):
    return jnp.sin(jnp.sin(x))


def test_without_a_checkpoint_residuals_are_kept_from_the_forward_pass():
    def pulled(x, ct):
        return jax.vjp(f, x)[1](ct)

    assert str(jax.make_jaxpr(pulled)(1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            _:f32[] = sin c
            e:f32[] = cos c
            f:f32[] = mul b e
            g:f32[] = mul f d
          in (g,) }
    """)


def test_a_checkpoint_keeps_inputs_alone_and_computes_the_residuals_again():
    def pulled(x, ct):
        return jax.vjp(jax.checkpoint(f), x)[1](ct)

    assert str(jax.make_jaxpr(pulled)(1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            _:f32[] = sin c
            d:f32[] = remat2[
              differentiated=True
              jaxpr={ lambda ; e:f32[] f:f32[]. let
                  g:f32[] = sin e
                  h:f32[] = cos e
                  i:f32[] = cos g
                  j:f32[] = mul f i
                  k:f32[] = mul j h
                in (k,) }
              policy=None
              prevent_cse=True
            ] a b
          in (d,) }
    """)


def test_a_policy_saves_residuals_for_the_backward_pass():
    def pulled(x, ct):
        return jax.vjp(jax.checkpoint(f, policy=save_all), x)[1](ct)

    assert str(jax.make_jaxpr(pulled)(1.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            _:f32[] = sin c
            e:f32[] = cos c
            f:f32[] = remat2[
              differentiated=True
              jaxpr={ lambda ; g:f32[] h:f32[] i:f32[]. let
                  j:f32[] = mul i h
                  k:f32[] = mul j g
                in (k,) }
              policy=<function everything_saveable at 0xXXXXXXXXXXXX>
              prevent_cse=True
            ] d e b
          in (f,) }
    """)


def test_a_call_is_split_into_a_known_call_and_a_call_on_tangents():
    def call(x, y):
        return jax.jit(lambda x, y: jnp.sin(x) * jnp.exp(y))(x, y)

    def linearized(x, y, dx):
        result, push = jax.linearize(lambda x: call(x, y), x)
        return result, push(dx)

    assert str(jax.make_jaxpr(linearized)(1.0, 2.0, 1.0)) == cleandoc("""
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] e:f32[] f:f32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; a:f32[] b:f32[]. let
                  g:f32[] = sin a
                  e:f32[] = cos a
                  f:f32[] = exp b
                  d:f32[] = mul g f
                in (d, e, f) }
            ] a b
            h:f32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; e:f32[] f:f32[] c:f32[]. let
                  i:f32[] = mul c e
                  h:f32[] = mul i f
                in (h,) }
            ] e f c
          in (d, h) }
    """)


KNOWN, UNKNOWN = 0.5, 3.0


def program(known, unknown):
    a = jnp.sin(known)
    b = jnp.cos(known)
    c = a * b
    d = unknown * c
    e = d + a
    f = b * b
    return c, e, f


@pytest.fixture(scope="module")
def closed():
    return jax.make_jaxpr(program)(KNOWN, UNKNOWN)


def names(part):
    return [eqn.primitive.name for eqn in part.eqns]


def run(part, *operands):
    return eval_jaxpr(part.jaxpr, part.consts, *operands)


def save_sines(primitive, *avals, **params):
    return primitive.name == "sin"


def save_nothing(primitive, *avals, **params):
    return False


def test_results_of_known_inputs_are_known(closed):
    parts = partial_eval_jaxpr(closed, (False, True), (False, False, False))
    assert parts.out_unknown == Mask([False, True, False])
    assert names(parts.known) == ["sin", "cos", "mul", "mul"]
    assert names(parts.unknown) == ["mul", "add"]


def test_the_unknown_part_takes_residuals_of_the_known_one(closed):
    parts = partial_eval_jaxpr(closed, (False, True), (False, False, False))
    # known input -> (known results, residuals)
    outs = run(parts.known, KNOWN)
    results, residuals = outs[: -parts.num_residuals], outs[-parts.num_residuals :]
    assert parts.num_residuals == 2
    # (residuals, unknown input) -> unknown result
    unknown = run(parts.unknown, *residuals, UNKNOWN)
    assert parts.out_unknown.merge(results, unknown) == list(run(closed, KNOWN, UNKNOWN))


def test_an_instantiated_result_is_unknown_in_any_case(closed):
    parts = partial_eval_jaxpr(closed, (False, True), (False, False, True))
    assert parts.out_unknown == Mask([False, True, True])
    assert len(parts.known.out_avals) == 1 + parts.num_residuals
    assert len(parts.unknown.out_avals) == 2


def test_with_no_unknown_input_all_is_known(closed):
    parts = partial_eval_jaxpr(closed, (False, False), (False, False, False))
    assert not any(parts.out_unknown) and not parts.unknown.eqns and not parts.num_residuals


@pytest.mark.parametrize(
    ("policy", "staged", "num_residuals", "input_residuals"),
    [
        (save_all, ["mul", "add"], 2, ()),
        (save_sines, ["cos", "mul", "mul", "add"], 1, (0,)),
        (save_nothing, ["sin", "cos", "mul", "mul", "add"], 0, (0,)),
    ],
    ids=["all", "sines", "nothing"],
)
def test_a_policy_selects_saved_values_and_the_rest_is_recomputed(
    closed, policy, staged, num_residuals, input_residuals
):
    parts = partial_eval_jaxpr_custom(closed, (False, True), policy)
    assert names(parts.staged) == staged
    assert (parts.num_residuals, parts.input_residuals) == (num_residuals, input_residuals)
    # known input -> (known results, residuals); (residuals, known inputs read, unknown input) -> unknown result
    outs = run(parts.known, KNOWN)
    results, residuals = outs[:2], outs[2:]
    (unknown,) = run(parts.staged, *residuals, *[KNOWN for _ in input_residuals], UNKNOWN)
    assert parts.out_unknown.merge(results, [unknown]) == list(run(closed, KNOWN, UNKNOWN))
