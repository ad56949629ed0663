"""Wrong arguments to programs over several devices: an error, and never the end of the process."""

import numpy as np
import pytest
from mesh_language import numbers, same_errors, side

import minijax

SHARDINGS = [
    (
        lambda s: s.jax.jit(lambda p: p, in_shardings=s.sharding("y"))(s.auto_matrix),
        "Sharding passed to jit does not match",
    ),
    (
        lambda s: s.jax.jit(lambda p, q: p + q)(s.auto_matrix, s.shard(numbers(8, 8), "x", mesh=s.mesh_of_4)),
        "incompatible devices for jitted",
    ),
    (
        lambda s: s.auto_matrix + s.shard(numbers(8, 8), "x", mesh=s.mesh_of_4),
        "incompatible devices for jitted computation",
    ),
    (
        lambda s: s.auto_matrix + s.jax.device_put(numbers(8, 8), s.devices[1]),
        "incompatible devices for jitted computation",
    ),
    (
        lambda s: s.auto_matrix + s.shard(numbers(8, 8), "x", mesh=s.reversed_mesh),
        "incompatible devices for jitted computation",
    ),
    (
        lambda s: s.jax.jit(lambda p: s.lax.with_sharding_constraint(p, s.sharding("x", mesh=s.mesh_of_4)))(
            s.auto_matrix
        ),
        "incompatible devices",
    ),
    (
        lambda s: s.jax.jit(lambda p: p, out_shardings=s.sharding("x", mesh=s.mesh_of_4))(s.auto_matrix),
        "incompatible devices for jitted",
    ),
    (
        lambda s: s.jax.jit(
            lambda p: s.jax.shard_map(lambda q: q, mesh=s.mesh_of_4, in_specs=s.P("x"), out_specs=s.P("x"))(p)
        )(s.auto_matrix),
        "devices",
    ),
    (lambda s: s.jax.device_put(np.ones(7), s.sharding("x")), "partitioned 4 times, but the dimension size is 7"),
    (lambda s: s.jax.device_put(np.ones(8), s.sharding("x", "y")), "only valid for values of rank at least 2"),
    (lambda s: s.jax.device_put(np.float32(1), s.sharding("x")), "only valid for values of rank at least 1"),
    (lambda s: s.jax.device_put(np.ones(8), {"a": s.sharding("x")}), ""),
    (lambda s: s.jax.device_put(np.ones(8), "x"), ""),
    (lambda s: s.jax.device_put(np.ones(8), s.P("x")), "Please set a mesh via `jax.set_mesh`"),
    (lambda s: s.jax.jit(lambda p: p, in_shardings=s.sharding("x"))(np.ones(7)), "partitioned 4 times"),
    (lambda s: s.jax.jit(lambda p: p, out_shardings=s.sharding("x"))(np.ones(7)), "partitioned 4 times"),
    (lambda s: s.jax.jit(lambda p: p, out_shardings=s.sharding("x", "y"))(np.ones(8)), "rank at least 2"),
    (lambda s: s.lax.with_sharding_constraint(np.ones(7), s.sharding("x")), "partitioned 4 times"),
    (lambda s: s.lax.with_sharding_constraint(np.ones(8), s.P("x")), "requires a non-empty mesh in context"),
    (lambda s: s.lax.with_sharding_constraint(np.ones(8), "x"), ""),
    (lambda s: s.lax.with_sharding_constraint([s.auto_vector, s.auto_vector], [s.sharding("x")]), ""),
    (lambda s: s.jax.jit(lambda p: p, in_shardings=s.P("x"))(np.ones(8)), "requires a non-empty mesh in context"),
    (
        lambda s: s.jax.jit(lambda p, q: p, in_shardings=(s.sharding("x"),))(s.auto_vector, s.auto_vector),
        "pjit in_shardings specification must be a tree",
    ),
    (
        lambda s: s.jax.jit(lambda p: p, out_shardings=(s.sharding(), s.sharding()))(s.auto_vector),
        "different types at key path",
    ),
    (
        lambda s: s.jax.jit(lambda p: p, in_shardings=(3,))(s.auto_vector),
        "in_shardings leaf specifications are expected",
    ),
    (
        lambda s: s.jax.jit(lambda p: p, in_shardings=s.sharding("x"))(p=s.auto_vector),
        "does not support kwargs when in_shardings",
    ),
    (lambda s: s.sharding("x", "x"), "can map every mesh axis to at most one positional dimension"),
    (lambda s: s.sharding("z"), "is not found in mesh"),
    (lambda s: s.auto_mesh((4,), ("x", "y")), "Mesh requires the ndim of its first argument"),
    (lambda s: s.jax.make_mesh((16,), ("x",)), "Number of devices 8 must be >= the product"),
    (lambda s: s.jax.make_mesh((2,), ("x", "y")), ""),
    (lambda s: s.jax.set_mesh(3), "Expected mesh of type"),
    (lambda s: s.jax.jit(lambda p: (s.jax.sharding.get_mesh(), p)[1])(s.auto_vector), "outside of `jax.jit`"),
    (lambda s: np.from_dlpack(s.auto_matrix), "from an array on a singular device"),
    (lambda s: s.auto_matrix.unsafe_buffer_pointer(), "supported only for unsharded arrays"),
    (lambda s: float(s.auto_matrix), "Only scalar arrays can be converted"),
    (lambda s: bool(s.auto_matrix), "truth value of an array with more than one element is ambiguous"),
    (lambda s: s.auto_matrix.item(), "can only convert an array of size 1"),
]
SHARDS = [
    (
        lambda s: s.jax.make_array_from_single_device_arrays((8,), s.sharding("x"), s.shards[:3]),
        "Expected 8 per-device arrays",
    ),
    (
        lambda s: s.jax.make_array_from_single_device_arrays((16,), s.sharding("x"), s.shards),
        "Expected shard shape (4,)",
    ),
    (lambda s: s.jax.make_array_from_single_device_arrays((8,), s.sharding("x"), s.shards[:1] * 8), ""),
    (
        lambda s: s.jax.make_array_from_single_device_arrays((8,), s.sharding("x"), [s.auto_vector] * 8),
        "must have one shard each",
    ),
    (lambda s: s.jax.make_array_from_single_device_arrays((8,), s.sharding("x"), []), "`dtype` must be provided"),
    (
        lambda s: s.jax.make_array_from_single_device_arrays((8,), s.sharding("x"), s.shards[0]),
        "must be a list or tuple",
    ),
    (
        lambda s: s.jax.make_array_from_single_device_arrays((8,), s.sharding("x"), [np.ones(2)] * 8),
        "Unsupported type for elements",
    ),
    (
        lambda s: s.jax.make_array_from_callback((8,), s.sharding("x"), lambda i: numbers(7)[i]),
        "Expected shard shape (2,)",
    ),
    (
        lambda s: s.jax.make_array_from_callback((8,), s.sharding("x"), lambda i: numbers(8)[i], dtype=int),
        "must match the dtype",
    ),
    (lambda s: s.jax.make_array_from_callback((7,), s.sharding("x"), lambda i: numbers(7)[i]), "partitioned 4 times"),
    (lambda s: s.jax.make_array_from_process_local_data(s.sharding("x"), numbers(7)), "partitioned 4 times"),
    (lambda s: s.jax.make_array_from_process_local_data(s.sharding("x"), numbers(8), (16,)), "global_shape should be"),
]
SHARD_MAPS = [
    (lambda s: s.jax.shard_map(3, mesh=s.mesh, in_specs=s.P(), out_specs=s.P()), "shard_map requires a callable"),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"))(
            s.auto_vector, more=s.auto_vector
        ),
        "unexpected keyword argument 'more'",
    ),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=3, in_specs=s.P(), out_specs=s.P())(s.auto_vector),
        "shard_map requires a `jax.sharding.Mesh`",
    ),
    (
        lambda s: s.jax.shard_map(s.identity, in_specs=s.P(), out_specs=s.P())(s.auto_vector),
        "The context mesh cannot be empty",
    ),
    (lambda s: s.shard_map_identity("x")(np.ones(7)), "not evenly divisible by the corresponding mesh axis sizes"),
    (lambda s: s.shard_map_identity("x", "y")(np.ones(8)), "in_specs entry which is too long"),
    (
        lambda s: s.jax.shard_map(lambda p: p.sum(), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"))(s.auto_vector),
        "out_specs entry which is too long",
    ),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P())(s.auto_vector),
        "require replication which can't be statically inferred",
    ),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=s.mesh, in_specs=(s.P("x"), s.P()), out_specs=s.P("x"))(
            s.auto_vector
        ),
        "different lengths of tuple",
    ),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=s.mesh, in_specs=s.P("x"), out_specs=(s.P(), s.P()))(s.auto_vector),
        "pytree structure error",
    ),
    (lambda s: s.shard_map_identity("z")(s.auto_vector), "must refer to an axis"),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=s.mesh, in_specs="x", out_specs=s.P())(s.auto_vector),
        "pytree of `jax.sharding.PartitionSpec`",
    ),
    (lambda s: s.shard_map_identity("x")("a"), ""),
    (lambda s: s.jax.shard_map(lambda p: "a", mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"))(s.auto_vector), ""),
    (
        lambda s: s.jax.shard_map(
            lambda p: s.shard_map_identity("x")(p), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
        )(s.auto_vector),
        "The context mesh",
    ),
    (
        lambda s: s.jax.shard_map(
            lambda p: s.lax.scan(lambda c, t: (c + t, c), s.jnp.zeros(()), p)[1],
            mesh=s.mesh,
            in_specs=s.P("x"),
            out_specs=s.P("x"),
        )(s.auto_vector),
        "carry input and carry output must have equal types",
    ),
    (
        lambda s: s.jax.shard_map(
            lambda p: s.lax.psum_scatter(p, "x", tiled=True), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
        )(s.auto_vector),
        "",
    ),
    (
        lambda s: s.jax.shard_map(
            lambda p: s.lax.all_to_all(p, "x", 0, 0), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
        )(s.auto_vector),
        "",
    ),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"), axis_names={"z"})(
            s.auto_vector
        ),
        "to be a subset of mesh.axis_names",
    ),
    (
        lambda s: s.jax.shard_map(s.identity, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"), axis_names="x")(
            s.auto_vector
        ),
        "should be of type `frozenset` or `set`",
    ),
    (
        lambda s: s.jax.shard_map(
            lambda p: s.lax.pcast(p, "x", to="varying"), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
        )(s.auto_vector),
        "",
    ),
    (lambda s: s.shard_map_identity("x")(s.jax.device_put(numbers(8), s.devices[1])), "incompatible devices"),
    (lambda s: s.shard_map_identity("x")(s.shard(numbers(8), "x", mesh=s.mesh_of_4)), "incompatible devices"),
]
STAGES = [
    (lambda s: s.compiled(s.shard(numbers(8, 8), "y")), "input shardings that disagree"),
    (lambda s: s.compiled(s.shard(numbers(8, 8), "x", "y", mesh=s.reversed_mesh)), "input shardings that disagree"),
    (lambda s: s.compiled(s.shard(numbers(8, 8), "x", mesh=s.mesh_of_4)), "input shardings that disagree"),
    (lambda s: s.compiled(s.jax.device_put(numbers(8, 8), s.devices[0])), "input shardings that disagree"),
    (lambda s: s.compiled(s.shard(numbers(8, 4), "x")), "Argument types differ"),
    (lambda s: s.compiled(s.shard(np.ones((8, 8), np.int32), "x", "y")), "Argument types differ"),
    (lambda s: s.compiled(s.auto_matrix, s.auto_matrix), "input pytree"),
    (lambda s: s.compiled(), "input pytree"),
    (lambda s: s.compiled({"a": s.auto_matrix}), "input pytree"),
    (lambda s: s.jax.jit(s.compiled)(s.auto_matrix), "Cannot apply JAX transformations"),
]
GIVEN = dict(
    shards=lambda s: [shard.data for shard in s.auto_vector.addressable_shards],
    identity=lambda s: lambda x: x,
    shard_map_identity=lambda s: (
        lambda *spec: s.jax.shard_map(lambda x: x, mesh=s.mesh, in_specs=s.P(*spec), out_specs=s.P(*spec))
    ),
    compiled=lambda s: s.jax.jit(lambda p: p + p.sum()).lower(s.auto_matrix).compile(),
)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "cases", [SHARDINGS, SHARDS, SHARD_MAPS, STAGES], ids=["shardings", "shards", "shard_maps", "stages"]
)
def test_misuse_raises_as_in_jax(cases):
    same_errors(cases, **GIVEN)


# These run on minijax alone: in jax they would end the process.
DELETED = {
    "deleted": lambda s, x: x.delete(),
    "donated": lambda s, x: s.jax.jit(lambda p: p + 1, donate_argnums=0)(x),
    "donated to pmap": lambda s, x: s.jax.pmap(lambda p: p + 1, donate_argnums=0)(x),
}
USES = {
    "jit": lambda s, x: s.jax.jit(lambda p: p * 2)(x),
    "an operation": lambda s, x: s.jnp.sin(x),
    "compiled": lambda s, x: (
        s.jax.jit(lambda p: p - 2).lower(s.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)).compile()(x)
    ),
    "shard_map": lambda s, x: s.jax.shard_map(lambda p: p, mesh=s.mesh_of_8, in_specs=s.P("i"), out_specs=s.P("i"))(x),
    "pmap": lambda s, x: s.jax.pmap(lambda p: p)(x),
    "reading": lambda s, x: np.asarray(x),
    "a part": lambda s, x: x.addressable_shards,
    "moving": lambda s, x: s.jax.device_put(x, s.sharding("x")),
    "moving to one": lambda s, x: s.jax.device_put(x, s.devices[1]),
    "a constant": lambda s, x: s.jax.jit(lambda: x * 2)(),
    "an index": lambda s, x: x[0],
    "a copy": lambda s, x: s.jnp.array(x),
    "twice": lambda s, x: s.jax.jit(lambda p, q: p @ q.T)(x, x),
    "donating": lambda s, x: s.jax.jit(lambda p: p + 3, donate_argnums=0)(x),
}


@pytest.mark.parametrize("gone", DELETED)
def test_deleted_arrays_raise_and_programs_stay_usable(gone):
    s = side("minijax")
    for use in USES.values():
        alive = s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8)
        if use is not USES["donating"]:
            use(s, alive)
        x = s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8)
        DELETED[gone](s, x)
        # A ValueError where a single operation that ran before gets a donated array, as in jax on one device.
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            use(s, x)
        use(s, alive)


def test_cached_programs_refuse_deleted_arrays():
    s = side("minijax")
    jax, jnp, lax = s.jax, s.jnp, s.lax
    rows = jax.shard_map(lambda p: p * 3, mesh=s.mesh_of_8, in_specs=s.P("i"), out_specs=s.P("i"))
    double, twice = jax.jit(lambda p, q: p + q * 2), jax.pmap(lambda p: p * 2)
    compiled = jax.jit(lambda p: p - 1).lower(s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8)).compile()
    uses = [
        lambda p: double(p, p),
        lambda p: double(alive, p),
        rows,
        twice,
        compiled,
        jnp.sin,
        lambda p: alive + p,
        lambda p: p[0],
        lambda p: p.at[0].set(1.0),
        lambda p: jnp.concatenate([alive, p]),
        lambda p: -p,
        jax.grad(lambda p: (p * p).sum()),
        jax.vmap(jnp.cos),
        lambda p: lax.cond(True, jnp.sin, jnp.cos, p),
        lambda p: lax.scan(lambda c, t: (c + t, c), alive[0], p),
    ]
    alive, gone = (s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8) for _ in range(2))
    for use in uses:
        for _ in range(3):
            use(gone)
    gone.delete()
    for use in uses:
        with pytest.raises(RuntimeError, match="deleted"):
            use(gone)
        use(alive)


def test_arrays_that_are_donated_and_read_in_one_call_are_refused():
    s = side("minijax")
    both = s.jax.jit(lambda p, q: (p + 1, q * 2), donate_argnums=0)
    renamed = s.sharding("a", mesh=s.auto_mesh((8,), ("a",)))
    for other in (lambda x: x, lambda x: s.jax.device_put(x, renamed), lambda x: s.jax.device_put(x)):
        x = s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8)
        with pytest.raises(RuntimeError, match="previously donated in the same call"):
            both(x, other(x))
    one, x = s.jnp.asarray(numbers(8, 8)), s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8)
    for given, read in ((s.shard(one), one), (x.clone(), x), (s.jnp.array(x), x)):
        first, second = both(given, read)
        assert np.array_equal(first, numbers(8, 8) + 1)
        assert np.array_equal(second, numbers(8, 8) * 2)


def test_shards_and_views_outlive_donation():
    s = side("minijax")
    x = s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8)
    part, view = x.addressable_data(3), np.asarray(x)
    s.jax.jit(lambda p: p + 1, donate_argnums=0)(x)
    assert np.array_equal(part, numbers(8, 8)[3:4])
    assert np.array_equal(view, numbers(8, 8))


def test_arguments_are_converted_and_resharded():
    s = side("minijax")
    x = numbers(8, 8)
    total = s.jax.jit(lambda p, q: (p * q).sum(0), in_shardings=(s.sharding("x"), None))
    expected = (x * x).sum(0)
    for q in (x, x.astype(np.float64), s.jnp.asarray(x), s.shard(x, "y"), s.shard(x, None, "x")):
        assert np.allclose(total(x, q), expected)
    compiled = (
        s.jax.jit(lambda p: p * 2).lower(s.ShapeDtypeStruct((8, 8), "float32", sharding=s.sharding("y"))).compile()
    )
    for p in (x, s.jnp.asarray(x), s.shard(x, "y"), s.shard(x, "y", None)):
        assert np.array_equal(compiled(p), x * 2)


def test_programs_run_after_caches_are_cleared():
    s = side("minijax")
    double = s.jax.jit(lambda p: s.lax.with_sharding_constraint(p * 2, s.sharding("y")))
    parts = s.jax.pmap(lambda p: s.lax.psum(p, "i"), axis_name="i")
    compiled = double.lower(s.auto_matrix).compile()
    first = [double(s.auto_matrix), parts(numbers(8, 2)), compiled(s.auto_matrix)]
    s.jax.clear_caches()
    minijax.clear_caches()
    second = [double(s.auto_matrix), parts(numbers(8, 2)), compiled(s.auto_matrix)]
    for before, after in zip(first, second, strict=True):
        assert np.array_equal(before, after)
        assert before.sharding == after.sharding
