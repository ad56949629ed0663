"""with_sharding_constraint where a mesh of Explicit or Auto axes is set, or none, over a mesh of either kind."""

import contextlib

import compare
import numpy as np
import pytest

KINDS = ("Explicit", "Auto")


def constrained(jax, kind, spec, context, how):
    def mesh_of(kind):
        return jax.make_mesh((2,), ("m",), (getattr(jax.sharding.AxisType, kind),), devices=jax.devices()[:2])

    sharding = jax.NamedSharding(mesh_of(kind), jax.P(*spec))
    x = np.ones((4,), np.float32)
    x = jax.device_put(x, sharding) if how == "a sharded array" else x

    def function(x):
        return jax.lax.with_sharding_constraint(x, sharding)

    with jax.set_mesh(mesh_of(context)) if context else contextlib.nullcontext():
        if how == "at once":
            return str(getattr(function(x), "sharding", None))
        return compare.normal(str(jax.make_jaxpr(jax.jit(function) if how == "in jit" else function)(x)))


# Where Explicit axes are set, jax compares specs of other meshes by their entries alone.
@pytest.mark.parametrize("context", [None, *KINDS])
@pytest.mark.parametrize("how", ["traced", "in jit", "at once", "a sharded array"])
def test_a_constraint_asserts_only_where_explicit_axes_are_set(context, how):
    def texts(jax):
        found = []
        for kind in KINDS:
            for spec in ((), ("m",)):
                if (kind, spec, context) != ("Auto", ("m",), "Explicit"):
                    made = compare.outcome(lambda k=kind, s=spec: constrained(jax, k, s, context, how))
                    found.append((kind, spec, made.value or type(made.error).__name__))
        return found

    compare.same(texts)
