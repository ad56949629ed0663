"""`print_saved_residuals`, the policies of `checkpoint`, and the values that policies may return."""

import re

import compare
import numpy as np
import pytest

X = np.array([0.5, -1.5, 2.0], np.float32)
W = np.arange(9.0, dtype=np.float32).reshape(3, 3) / 9

PROGRAMS = {
    "plain": lambda jax, jnp, f: f,
    "jit": lambda jax, jnp, f: jax.jit(f),
    "checkpoint": lambda jax, jnp, f: jax.checkpoint(f),
    "dots": lambda jax, jnp, f: jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable),
    "names": lambda jax, jnp, f: jax.checkpoint(f, policy=jax.checkpoint_policies.save_only_these_names("z")),
    "constant": lambda jax, jnp, f: lambda x, W: f(x, np.eye(3, dtype=np.float32)),
    "scan": lambda jax, jnp, f: lambda x, W: jax.lax.scan(lambda c, a: (jnp.sin(c) * a, c), x, W)[0].sum(),
    "lines": lambda jax, jnp, f: lambda x, W: jnp.exp(x) * jnp.tanh(W @ x) * jnp.arange(3.0),
    "nothing": lambda jax, jnp, f: lambda x, W: 2 * x,
    "many": lambda jax, jnp, f: lambda *xs: xs[0] * xs[1][0],
    "cond": lambda jax, jnp, f: lambda x, W: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_print_saved_residuals(name, capsys):
    def program(jax, jnp, ad_checkpoint):
        def f(x, W):
            y = jnp.sin(W @ x)
            z = ad_checkpoint.checkpoint_name(jnp.cos(y), "z")
            return jnp.sum(jnp.tanh(z) * y)

        g = PROGRAMS[name](jax, jnp, f)
        ad_checkpoint.print_saved_residuals(g, jnp.asarray(X), W=jnp.asarray(W)) if name == "plain" else (
            ad_checkpoint.print_saved_residuals(g, jnp.asarray(X), jnp.asarray(W))
        )
        text = re.sub(r"\S+/(?=tests/)", "", capsys.readouterr().out)
        # A call of a jitted function has no line in jax.
        return re.sub(r"(function '\w+' from) .*$", r"\1", text, flags=re.M)

    compare.same(program)


def test_decisions_of_policies():
    def program(jax, jnp, ad_checkpoint):
        policies = jax.checkpoint_policies
        mixed = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["z"],
            names_which_can_be_offloaded=["w"],
            offload_src="device",
            offload_dst="pinned_host",
        )
        said = {
            "saved": mixed(_operation(jax, ad_checkpoint, "z"), name="z") is ad_checkpoint.Saveable,
            "offloaded": mixed(_operation(jax, ad_checkpoint, "w"), name="w"),
            "other": mixed(_operation(jax, ad_checkpoint, "w"), name="v") is ad_checkpoint.Recompute,
        }
        return (
            sorted(vars(policies)),
            repr(policies.save_only_these_names("z")),
            said,
            repr(ad_checkpoint.Offloadable("device", "pinned_host")),
            type(ad_checkpoint.Recompute).__name__,
            type(ad_checkpoint.Saveable).__name__,
        )

    compare.same(program)


def _operation(jax, ad_checkpoint, name):
    return jax.make_jaxpr(lambda x: ad_checkpoint.checkpoint_name(x, name))(1.0).eqns[0].primitive


GRADIENTS = {
    "own words": lambda policies, say: lambda p, *_, **__: say.Saveable if p.name == "sin" else say.Recompute,
    "numpy bools": lambda policies, say: lambda p, *_, **__: np.bool_(p.name == "sin"),
    "both": lambda policies, say: policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("z")
    ),
    "mixed, saved": (
        lambda policies, say: policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["z"],
            names_which_can_be_offloaded=["v"],
            offload_src="device",
            offload_dst="pinned_host",
        )
    ),
    "none": lambda policies, say: lambda *_, **__: None,
    "number": lambda policies, say: lambda *_, **__: 3,
    "both, no bools": (
        lambda policies, say: policies.save_from_both_policies(
            policies.dots_saveable, policies.offload_dot_with_no_batch_dims("a", "b")
        )
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_under_policies(name):
    def program(jax, jnp, ad_checkpoint):
        policy = GRADIENTS[name](jax.checkpoint_policies, ad_checkpoint)

        def f(x, w):
            z = ad_checkpoint.checkpoint_name(jnp.cos(jnp.sin(w @ x)), "z")
            return jnp.sum(jnp.tanh(z) * x)

        gradient = jax.grad(jax.checkpoint(f, policy=policy))
        return gradient(X, W), compare._unwrapped(compare.normal(str(jax.make_jaxpr(gradient)(X, W))))

    compare.same(program, raises=name in ("none", "number", "numpy bools", "both, no bools"))


@pytest.mark.parametrize(
    "call, phrase",
    [
        ("jax.checkpoint(abs, concrete=True)", "concrete"),
        ("jax.remat(abs, concrete=False)", "concrete"),
        ("jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=['z'], "
         "names_which_can_be_offloaded=['z'], offload_src='a', offload_dst='b')", "exclusive"),
        ("jax.grad(jax.checkpoint(jnp.sin, policy=3))(1.0)", "not callable"),
    ],
)  # fmt: skip
def test_misuse(call, phrase):
    compare.same_misuse(call, {}, phrase)
