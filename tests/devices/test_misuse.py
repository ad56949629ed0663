"""Wrong arguments to programs over several devices: an error, and never the end of the process."""

import numpy as np
import pytest
from mesh_language import numbers, same_errors, side

import minijax

SHARDINGS = [
    ("jax.jit(lambda p: p, in_shardings=on('y'))(a)", "Sharding passed to jit does not match"),
    ("jax.jit(lambda p, q: p + q)(a, put(numbers(8, 8), 'x', mesh=m4))", "incompatible devices for jitted"),
    ("a + put(numbers(8, 8), 'x', mesh=m4)", "incompatible devices for jitted computation"),
    ("a + jax.device_put(numbers(8, 8), d[1])", "incompatible devices for jitted computation"),
    ("a + put(numbers(8, 8), 'x', mesh=back)", "incompatible devices for jitted computation"),
    ("jax.jit(lambda p: lax.with_sharding_constraint(p, on('x', mesh=m4)))(a)", "incompatible devices"),
    ("jax.jit(lambda p: p, out_shardings=on('x', mesh=m4))(a)", "incompatible devices for jitted"),
    ("jax.jit(lambda p: jax.shard_map(lambda q: q, mesh=m4, in_specs=P('x'), out_specs=P('x'))(p))(a)", "devices"),
    ("jax.device_put(np.ones(7), on('x'))", "partitioned 4 times, but the dimension size is 7"),
    ("jax.device_put(np.ones(8), on('x', 'y'))", "only valid for values of rank at least 2"),
    ("jax.device_put(np.float32(1), on('x'))", "only valid for values of rank at least 1"),
    ("jax.device_put(np.ones(8), {'a': on('x')})", ""),
    ("jax.device_put(np.ones(8), 'x')", ""),
    ("jax.device_put(np.ones(8), P('x'))", "Please set a mesh via `jax.set_mesh`"),
    ("jax.jit(lambda p: p, in_shardings=on('x'))(np.ones(7))", "partitioned 4 times"),
    ("jax.jit(lambda p: p, out_shardings=on('x'))(np.ones(7))", "partitioned 4 times"),
    ("jax.jit(lambda p: p, out_shardings=on('x', 'y'))(np.ones(8))", "rank at least 2"),
    ("lax.with_sharding_constraint(np.ones(7), on('x'))", "partitioned 4 times"),
    ("lax.with_sharding_constraint(np.ones(8), P('x'))", "requires a non-empty mesh in context"),
    ("lax.with_sharding_constraint(np.ones(8), 'x')", ""),
    ("lax.with_sharding_constraint([v, v], [on('x')])", ""),
    ("jax.jit(lambda p: p, in_shardings=P('x'))(np.ones(8))", "requires a non-empty mesh in context"),
    ("jax.jit(lambda p, q: p, in_shardings=(on('x'),))(v, v)", "pjit in_shardings specification must be a tree"),
    ("jax.jit(lambda p: p, out_shardings=(on(), on()))(v)", "different types at key path"),
    ("jax.jit(lambda p: p, in_shardings=(3,))(v)", "in_shardings leaf specifications are expected"),
    ("jax.jit(lambda p: p, in_shardings=on('x'))(p=v)", "does not support kwargs when in_shardings"),
    ("on('x', 'x')", "can map every mesh axis to at most one positional dimension"),
    ("on('z')", "is not found in mesh"),
    ("grid((4,), ('x', 'y'))", "Mesh requires the ndim of its first argument"),
    ("jax.make_mesh((16,), ('x',))", "Number of devices 8 must be >= the product"),
    ("jax.make_mesh((2,), ('x', 'y'))", ""),
    ("jax.set_mesh(3)", "Expected mesh of type"),
    ("jax.jit(lambda p: (jax.sharding.get_mesh(), p)[1])(v)", "outside of `jax.jit`"),
    ("np.from_dlpack(a)", "from an array on a singular device"),
    ("a.unsafe_buffer_pointer()", "supported only for unsharded arrays"),
    ("float(a)", "Only scalar arrays can be converted"),
    ("bool(a)", "truth value of an array with more than one element is ambiguous"),
    ("a.item()", "can only convert an array of size 1"),
]
PARTS = [
    ("jax.make_array_from_single_device_arrays((8,), on('x'), parts[:3])", "Expected 8 per-device arrays"),
    ("jax.make_array_from_single_device_arrays((16,), on('x'), parts)", "Expected shard shape (4,)"),
    ("jax.make_array_from_single_device_arrays((8,), on('x'), parts[:1] * 8)", ""),
    ("jax.make_array_from_single_device_arrays((8,), on('x'), [v] * 8)", "must have one shard each"),
    ("jax.make_array_from_single_device_arrays((8,), on('x'), [])", "`dtype` must be provided"),
    ("jax.make_array_from_single_device_arrays((8,), on('x'), parts[0])", "must be a list or tuple"),
    ("jax.make_array_from_single_device_arrays((8,), on('x'), [np.ones(2)] * 8)", "Unsupported type for elements"),
    ("jax.make_array_from_callback((8,), on('x'), lambda i: numbers(7)[i])", "Expected shard shape (2,)"),
    ("jax.make_array_from_callback((8,), on('x'), lambda i: numbers(8)[i], dtype=int)", "must match the dtype"),
    ("jax.make_array_from_callback((7,), on('x'), lambda i: numbers(7)[i])", "partitioned 4 times"),
    ("jax.make_array_from_process_local_data(on('x'), numbers(7))", "partitioned 4 times"),
    ("jax.make_array_from_process_local_data(on('x'), numbers(8), (16,))", "global_shape should be"),
]
SHARD_MAPS = [
    ("jax.shard_map(3, mesh=m, in_specs=P(), out_specs=P())", "shard_map requires a callable"),
    ("jax.shard_map(same, mesh=m, in_specs=P('x'), out_specs=P('x'))(v, more=v)", "unexpected keyword argument 'more'"),
    ("jax.shard_map(same, mesh=3, in_specs=P(), out_specs=P())(v)", "shard_map requires a `jax.sharding.Mesh`"),
    ("jax.shard_map(same, in_specs=P(), out_specs=P())(v)", "The context mesh cannot be empty"),
    ("sm('x')(np.ones(7))", "not evenly divisible by the corresponding mesh axis sizes"),
    ("sm('x', 'y')(np.ones(8))", "in_specs entry which is too long"),
    ("jax.shard_map(lambda p: p.sum(), mesh=m, in_specs=P('x'), out_specs=P('x'))(v)", "out_specs entry which is too long"),
    ("jax.shard_map(same, mesh=m, in_specs=P('x'), out_specs=P())(v)", "require replication which can't be statically inferred"),
    ("jax.shard_map(same, mesh=m, in_specs=(P('x'), P()), out_specs=P('x'))(v)", "different lengths of tuple"),
    ("jax.shard_map(same, mesh=m, in_specs=P('x'), out_specs=(P(), P()))(v)", "pytree structure error"),
    ("sm('z')(v)", "must refer to an axis"),
    ("jax.shard_map(same, mesh=m, in_specs='x', out_specs=P())(v)", "pytree of `jax.sharding.PartitionSpec`"),
    ("sm('x')('a')", ""),
    ("jax.shard_map(lambda p: 'a', mesh=m, in_specs=P('x'), out_specs=P('x'))(v)", ""),
    ("jax.shard_map(lambda p: sm('x')(p), mesh=m, in_specs=P('x'), out_specs=P('x'))(v)", "The context mesh"),
    ("jax.shard_map(lambda p: lax.scan(lambda c, t: (c + t, c), jnp.zeros(()), p)[1], mesh=m, in_specs=P('x'), out_specs=P('x'))(v)",
     "carry input and carry output must have equal types"),
    ("jax.shard_map(lambda p: lax.psum_scatter(p, 'x', tiled=True), mesh=m, in_specs=P('x'), out_specs=P('x'))(v)", ""),
    ("jax.shard_map(lambda p: lax.all_to_all(p, 'x', 0, 0), mesh=m, in_specs=P('x'), out_specs=P('x'))(v)", ""),
    ("jax.shard_map(same, mesh=m, in_specs=P('x'), out_specs=P('x'), axis_names={'z'})(v)", "to be a subset of mesh.axis_names"),
    ("jax.shard_map(same, mesh=m, in_specs=P('x'), out_specs=P('x'), axis_names='x')(v)", "should be of type `frozenset` or `set`"),
    ("jax.shard_map(lambda p: lax.pcast(p, 'x', to='varying'), mesh=m, in_specs=P('x'), out_specs=P('x'))(v)", ""),
    ("sm('x')(jax.device_put(numbers(8), d[1]))", "incompatible devices"),
    ("sm('x')(put(numbers(8), 'x', mesh=m4))", "incompatible devices"),
]  # fmt: skip
STAGES = [
    ("c(put(numbers(8, 8), 'y'))", "input shardings that disagree"),
    ("c(put(numbers(8, 8), 'x', 'y', mesh=back))", "input shardings that disagree"),
    ("c(put(numbers(8, 8), 'x', mesh=m4))", "input shardings that disagree"),
    ("c(jax.device_put(numbers(8, 8), d[0]))", "input shardings that disagree"),
    ("c(put(numbers(8, 4), 'x'))", "Argument types differ"),
    ("c(put(np.ones((8, 8), np.int32), 'x', 'y'))", "Argument types differ"),
    ("c(a, a)", "input pytree"),
    ("c()", "input pytree"),
    ("c({'a': a})", "input pytree"),
    ("jax.jit(c)(a)", "Cannot apply JAX transformations"),
]
GIVEN = dict(
    parts=lambda s: [shard.data for shard in s.v.addressable_shards],
    same=lambda s: lambda x: x,
    sm=lambda s: lambda *spec: s.jax.shard_map(lambda x: x, mesh=s.m, in_specs=s.P(*spec), out_specs=s.P(*spec)),
    c=lambda s: s.jax.jit(lambda p: p + p.sum()).lower(s.a).compile(),
)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "cases", [SHARDINGS, PARTS, SHARD_MAPS, STAGES], ids=["shardings", "parts", "shard_maps", "stages"]
)
def test_misuse_raises_as_in_jax(cases):
    same_errors(cases, **GIVEN)


# The same calls with jax would end the process: these run on minijax alone.
GONE = {
    "deleted": lambda s, x: x.delete(),
    "donated": lambda s, x: s.jax.jit(lambda p: p + 1, donate_argnums=0)(x),
    "donated to pmap": lambda s, x: s.jax.pmap(lambda p: p + 1, donate_argnums=0)(x),
}
USES = {
    "jit": lambda s, x: s.jax.jit(lambda p: p * 2)(x),
    "an operation": lambda s, x: s.jnp.sin(x),
    "compiled": lambda s, x: (
        s.jax.jit(lambda p: p - 2).lower(s.SDS(x.shape, x.dtype, sharding=x.sharding)).compile()(x)
    ),
    "shard_map": lambda s, x: s.jax.shard_map(lambda p: p, mesh=s.m8, in_specs=s.P("i"), out_specs=s.P("i"))(x),
    "pmap": lambda s, x: s.jax.pmap(lambda p: p)(x),
    "reading": lambda s, x: np.asarray(x),
    "a part": lambda s, x: x.addressable_shards,
    "moving": lambda s, x: s.jax.device_put(x, s.on("x")),
    "moving to one": lambda s, x: s.jax.device_put(x, s.d[1]),
    "a constant": lambda s, x: s.jax.jit(lambda: x * 2)(),
    "an index": lambda s, x: x[0],
    "a copy": lambda s, x: s.jnp.array(x),
    "twice": lambda s, x: s.jax.jit(lambda p, q: p @ q.T)(x, x),
    "donating": lambda s, x: s.jax.jit(lambda p: p + 3, donate_argnums=0)(x),
}


@pytest.mark.parametrize("gone", GONE)
def test_arrays_that_are_gone_raise_and_programs_live_on(gone):
    s = side("minijax")
    for use in USES.values():
        alive = s.put(numbers(8, 8), "i", mesh=s.m8)
        if use is not USES["donating"]:
            use(s, alive)
        x = s.put(numbers(8, 8), "i", mesh=s.m8)
        GONE[gone](s, x)
        # A ValueError where a single operation that ran before gets a donated array, as in jax on one device.
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            use(s, x)
        use(s, alive)


def test_programs_that_ran_before_see_arrays_that_are_gone():
    s = side("minijax")
    jax, jnp, lax = s.jax, s.jnp, s.lax
    rows = jax.shard_map(lambda p: p * 3, mesh=s.m8, in_specs=s.P("i"), out_specs=s.P("i"))
    double, twice = jax.jit(lambda p, q: p + q * 2), jax.pmap(lambda p: p * 2)
    compiled = jax.jit(lambda p: p - 1).lower(s.put(numbers(8, 8), "i", mesh=s.m8)).compile()
    uses = [
        lambda p: double(p, p), lambda p: double(alive, p), rows, twice, compiled, jnp.sin, lambda p: alive + p,
        lambda p: p[0], lambda p: p.at[0].set(1.0), lambda p: jnp.concatenate([alive, p]), lambda p: -p,
        jax.grad(lambda p: (p * p).sum()), jax.vmap(jnp.cos), lambda p: lax.cond(True, jnp.sin, jnp.cos, p),
        lambda p: lax.scan(lambda c, t: (c + t, c), alive[0], p),
    ]  # fmt: skip
    alive, gone = (s.put(numbers(8, 8), "i", mesh=s.m8) for _ in range(2))
    for use in uses:
        for _ in range(3):
            use(gone)
    gone.delete()
    for use in uses:
        with pytest.raises(RuntimeError, match="deleted"):
            use(gone)
        use(alive)


def test_memory_that_is_donated_and_read_in_one_call_is_seen():
    s = side("minijax")
    both = s.jax.jit(lambda p, q: (p + 1, q * 2), donate_argnums=0)
    renamed = s.on("a", mesh=s.grid((8,), ("a",)))
    for other in (lambda x: x, lambda x: s.jax.device_put(x, renamed), lambda x: s.jax.device_put(x)):
        x = s.put(numbers(8, 8), "i", mesh=s.m8)
        with pytest.raises(RuntimeError, match="previously donated in the same call"):
            both(x, other(x))
    one, x = s.jnp.asarray(numbers(8, 8)), s.put(numbers(8, 8), "i", mesh=s.m8)
    for given, read in ((s.put(one), one), (x.clone(), x), (s.jnp.array(x), x)):
        first, second = both(given, read)
        assert np.array_equal(first, numbers(8, 8) + 1)
        assert np.array_equal(second, numbers(8, 8) * 2)


def test_parts_and_views_outlive_donation():
    s = side("minijax")
    x = s.put(numbers(8, 8), "i", mesh=s.m8)
    part, view = x.addressable_data(3), np.asarray(x)
    s.jax.jit(lambda p: p + 1, donate_argnums=0)(x)
    assert np.array_equal(part, numbers(8, 8)[3:4])
    assert np.array_equal(view, numbers(8, 8))


def test_programs_take_what_is_cast_or_moved_for_them():
    s = side("minijax")
    x = numbers(8, 8)
    total = s.jax.jit(lambda p, q: (p * q).sum(0), in_shardings=(s.on("x"), None))
    expected = (x * x).sum(0)
    for q in (x, x.astype(np.float64), s.jnp.asarray(x), s.put(x, "y"), s.put(x, None, "x")):
        assert np.allclose(total(x, q), expected)
    compiled = s.jax.jit(lambda p: p * 2).lower(s.SDS((8, 8), "float32", sharding=s.on("y"))).compile()
    for p in (x, s.jnp.asarray(x), s.put(x, "y"), s.put(x, "y", None)):
        assert np.array_equal(compiled(p), x * 2)


def test_programs_run_after_caches_are_cleared():
    s = side("minijax")
    double = s.jax.jit(lambda p: s.lax.with_sharding_constraint(p * 2, s.on("y")))
    parts = s.jax.pmap(lambda p: s.lax.psum(p, "i"), axis_name="i")
    compiled = double.lower(s.a).compile()
    first = [double(s.a), parts(numbers(8, 2)), compiled(s.a)]
    s.jax.clear_caches()
    minijax.clear_caches()
    second = [double(s.a), parts(numbers(8, 2)), compiled(s.a)]
    for before, after in zip(first, second, strict=True):
        assert np.array_equal(before, after)
        assert before.sharding == after.sharding
