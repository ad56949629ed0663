"""The devices of what no result reads: they do not count, unless unused arguments are kept."""

import compare
import numpy as np
import pytest

DEAD = {
    "shard_map": lambda jax, mesh, x: jax.shard_map(lambda t: t * 2, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())(x),
    "a constraint": lambda jax, mesh, x: jax.lax.with_sharding_constraint(x, jax.NamedSharding(mesh, jax.P())),
    "a jitted shard_map": lambda jax, mesh, x: jax.jit(lambda x: DEAD["shard_map"](jax, mesh, x))(x),
    "device_put": lambda jax, mesh, x: jax.device_put(x, jax.devices()[3]),
}


@pytest.mark.parametrize("keep_unused", [False, True])
@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
def test_programs_run_on_the_devices_of_what_they_return(kind, keep_unused):
    def placed(jax, dead):
        mesh = jax.make_mesh((2,), ("m",), (getattr(jax.sharding.AxisType, kind),), devices=jax.devices()[:2])

        def function(x):
            DEAD[dead](jax, mesh, x)
            return x + 1

        x = np.ones(4, np.float32)
        lowered = jax.jit(function, keep_unused=keep_unused).lower(x)
        compiled = lowered.compile()
        return (
            "num_partitions = 2" in lowered.as_text(),
            *map(str, (compiled.output_shardings, compiled(x).sharding, jax.jit(function)(x).sharding)),
        )

    compare.same(lambda jax: [(dead, placed(jax, dead)) for dead in DEAD])
