"""Partial evaluation with a remat policy, shown: which equations are known, which are staged, and what is saved."""

from inspect import cleandoc

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.ad_checkpoint import checkpoint_name
from minijax.base.mask import Mask
from minijax.transforms.partial_eval_custom import partial_eval_jaxpr_custom

policies = jax.checkpoint_policies
SECOND_UNKNOWN = (False, True)


def split(fun, policy, *args, **options):
    return partial_eval_jaxpr_custom(jax.make_jaxpr(fun)(*args), SECOND_UNKNOWN, policy, **options)


def named(x, y):
    return jnp.cos(checkpoint_name(jnp.sin(x), "sine")) * y


def test_a_saved_name_is_a_residual_and_what_is_computed_from_it_is_staged():
    parts = split(named, policies.save_only_these_names("sine"), 1.0, 2.0)
    # XLA must not keep more bits of the residual for the known equations than are saved.
    assert str(parts.known) == cleandoc("""
        { lambda ; a:f32[]. let
            b:f32[] = sin a
            c:f32[] = name[name=sine] b
            d:f32[] = reduce_precision[exponent_bits=8 mantissa_bits=23] c
          in (d,) }
    """)
    assert str(parts.staged) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let c:f32[] = cos a; d:f32[] = mul c b in (d,) }
    """)
    assert (parts.out_unknown, parts.num_residuals, parts.input_residuals) == (Mask([True]), 1, ())


def test_without_a_saved_value_the_staged_part_recomputes_from_the_known_inputs():
    parts = split(named, policies.save_only_these_names("another"), 1.0, 2.0)
    assert not parts.known.eqns
    assert str(parts.staged) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = name[name=sine] c
            e:f32[] = cos d
            f:f32[] = mul e b
          in (f,) }
    """)
    assert (parts.num_residuals, parts.input_residuals) == (0, (0,))


def test_an_offloaded_value_is_copied_to_the_host_and_fetched_by_the_staged_part():
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["sine"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    parts = split(named, policy, 1.0, 2.0)
    assert str(parts.known) == cleandoc("""
        { lambda ; a:f32[]. let
            b:f32[] = sin a
            c:f32[] = name[name=sine] b
            d:f32<host>[] = device_put[
              copy_semantics=(ArrayCopySemantics.ALWAYS_COPY,)
              devices=(MemorySpace.Host,)
              srcs=(None,)
            ] c
          in (d,) }
    """)
    assert str(parts.staged) == cleandoc("""
        { lambda ; a:f32<host>[] b:f32[]. let
            c:f32[] = device_put[
              copy_semantics=(ArrayCopySemantics.ALWAYS_COPY,)
              devices=(MemorySpace.Device,)
              srcs=(None,)
            ] a
            d:f32[] = cos c
            e:f32[] = mul d b
          in (e,) }
    """)


def test_products_of_matrices_are_saved_and_cheap_operations_are_recomputed():
    square = np.ones((2, 2), np.float32)
    parts = split(lambda x, w: jnp.sin(x @ x) @ w, policies.dots_saveable, square, square)
    assert [eqn.primitive.name for eqn in parts.known.eqns] == ["dot_general", "reduce_precision"]
    assert [eqn.primitive.name for eqn in parts.staged.eqns] == ["sin", "dot_general"]


def test_a_jitted_call_is_split_into_a_known_and_a_staged_call():
    def call(x, y):
        return jax.jit(lambda x, y: (jnp.sin(x), jnp.cos(x) * y))(x, y)

    parts = split(call, policies.everything_saveable, 1.0, 2.0)
    # known input -> (known result, residual)
    assert str(parts.known) == cleandoc("""
        { lambda ; a:f32[]. let
            b:f32[] c:f32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos a in (b, c) }
            ] a
          in (b, c) }
    """)
    # (residual, unknown input) -> unknown result
    assert str(parts.staged) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
            ] a b
          in (c,) }
    """)
    assert (parts.out_unknown, parts.num_residuals) == (Mask([False, True]), 1)


def test_an_instantiated_result_is_known_and_returned_by_the_staged_part_too():
    parts = split(lambda x, y: jnp.sin(x), policies.nothing_saveable, 1.0, 2.0, instantiate=(True,))
    assert str(parts.known) == "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"
    assert str(parts.staged) == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a in (c,) }"
    assert parts.out_unknown == Mask([False])


def test_a_policy_returns_a_bool_or_a_decision():
    with pytest.raises(TypeError, match="Value returned by a remat policy should be a bool or"):
        split(named, lambda primitive, *avals, **params: "yes", 1.0, 2.0)
