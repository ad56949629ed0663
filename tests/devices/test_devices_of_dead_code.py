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


def unread_programs(jax, mesh):
    """Calls with arguments that are not read: on devices 1 and 2, over the mesh, and uncommitted."""
    jnp, single = jax.numpy, jax.sharding.SingleDeviceSharding
    one, two = (jax.device_put(np.ones(3, np.float32), jax.devices()[i]) for i in (1, 2))
    over = jax.device_put(np.ones(8, np.float32), jax.sharding.NamedSharding(mesh, jax.P("x")))
    free = jnp.ones(3)
    second = lambda x, y: y + 1  # noqa: E731
    return {
        "nothing is read": (lambda x: jnp.ones(3), {}, one),
        "an uncommitted one is read": (second, {}, one, free),
        "one of another device is read": (second, {}, one, two),
        "over a mesh": (second, {}, over, free),
        "over a mesh, one of a device is read": (second, {}, over, two),
        "kept": (lambda x: jnp.ones(3), dict(keep_unused=True), one),
        "kept, of several devices": (second, dict(keep_unused=True), one, two),
        "requested": (lambda x: jnp.ones(3), dict(in_shardings=single(jax.devices()[1])), free),
        "requested over a mesh": (second, dict(in_shardings=(over.sharding, None)), jnp.ones(8), jnp.ones(8)),
        "read by what is not": (lambda x, y: (jnp.sin(x), y)[1], {}, one, free),
        "a result": (lambda x, y: (x, y), {}, one, free),
        "unread inside": (lambda x, y: jax.jit(second)(x, y), {}, one, free),
        "unread in branches": (lambda x, y: jax.lax.cond(y[0] > 0, second, second, x, y), {}, one, free),
        "the gradient of a sum": (jax.grad(lambda x: x.sum()), {}, one),
        "a vectorized constant": (jax.vmap(lambda x: 1.0), {}, one),
    }


def test_the_devices_of_unread_arguments_do_not_count():
    def placed(jax, mesh, name):
        function, options, *args = unread_programs(jax, mesh)[name]
        try:
            results = jax.jit(function, **options)(*args)
        except ValueError as error:
            return "incompatible devices" in str(error)
        return [(sorted(d.id for d in x.devices()), x.committed) for x in jax.tree.leaves(results)]

    def program(jax):
        mesh = jax.sharding.Mesh(jax.devices()[:8], ("x",))
        return [(name, placed(jax, mesh, name)) for name in unread_programs(jax, mesh)]

    compare.same(program)


def test_one_function_is_placed_by_what_it_reads_in_each_call():
    def program(jax):
        f, free = jax.jit(lambda x, y: y + 1), jax.numpy.ones(3)
        given = [free, *[jax.device_put(free, jax.devices()[i]) for i in (1, 2)]]
        like = [jax.numpy.zeros_like(x) for x in given] + [jax.numpy.ones_like(x) for x in given]
        return [sorted(d.id for d in x.devices()) for x in (*[f(x, free) for x in given], *like)]

    assert compare.same(program) == [[0], [0], [0], [0], [1], [2], [0], [1], [2]]
