"""`jit` over several devices: `in_shardings`, `out_shardings`, constraints, values, modules and collectives."""

import warnings

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

import minijax
from minijax.run.programs import compile as compiling

pytestmark = pytest.mark.oracle


def test_results_have_jax_s_shardings():
    same(
        [
            lambda s: [
                s.jnp.sin(s.auto_matrix),
                s.auto_matrix.sum(),
                s.auto_matrix.T,
                s.auto_matrix @ s.auto_matrix,
                s.auto_matrix[0],
                s.auto_matrix[1:3],
                s.auto_matrix.reshape(64),
                s.auto_matrix > 2,
                s.jnp.zeros_like(s.auto_matrix),
                s.auto_matrix + 1,
            ],
            lambda s: [
                s.auto_matrix.at[0].set(1.0),
                s.auto_matrix.ravel(),
                s.jnp.concatenate([s.auto_matrix, s.auto_matrix]),
                s.auto_matrix.sum(0),
                s.auto_matrix.mean(1),
                s.jnp.cumsum(s.auto_matrix, 0),
            ],
            lambda s: [
                s.auto_matrix + np.ones(8, np.float32),
                s.auto_matrix * s.auto_vector,
                s.auto_vector @ s.auto_matrix,
                s.jnp.sort(s.auto_matrix, axis=1),
                s.jnp.where(s.auto_matrix > 3, s.auto_matrix, 0),
            ],
            lambda s: s.jax.jit(lambda p: (p @ p.T, s.jnp.sin(p).sum(0), p[::2]))(s.auto_matrix),
            lambda s: s.jax.jit(lambda p: s.jax.lax.scan(lambda c, t: (c + t, c.sum()), p[0], p))(s.auto_matrix),
            lambda s: s.jax.jit(s.jax.grad(lambda p: s.jnp.sum(s.jnp.tanh(p @ p))))(s.auto_matrix),
            lambda s: s.jax.jit(s.jax.vmap(lambda p: s.jnp.sin(p) @ p))(s.auto_matrix),
            lambda s: s.jax.jit(lambda p: p.reshape(2, 4, 8))(s.auto_matrix),
            lambda s: s.jax.jit(lambda p: p.reshape(2, 2, 2))(s.shard(numbers(8), "i", mesh=s.mesh_of_8)) + 1,
            lambda s: s.jax.jit(lambda p: (p, s.jnp.ones(3), 4, p.astype(s.jnp.int32)))(s.auto_matrix),
            lambda s: [
                s.jax.jit(lambda p: p * 2)(s.shard(numbers(8).astype(t), "x"))
                for t in ("int8", "bool", "complex64", "float16")
            ],
            lambda s: s.jax.jit(lambda p: p * 2)(s.shard(numbers(8, dtype="bfloat16"), "x")),
            lambda s: s.jax.jit(lambda p: p * 2)(s.shard(np.zeros((8, 0), np.float32), "x")),
            lambda s: s.jax.jit(lambda p: p * 2)(s.shard(np.zeros((1, 8), np.float32), None, "y")),
            lambda s: s.jax.jit(lambda p: p * 2)(s.shard(np.float32(3))),
            lambda s: (
                s.jax.jit(lambda p, q: p + q)(s.auto_matrix, 2),
                s.jax.jit(lambda p, q: p + q)(s.auto_matrix, s.jnp.float32(2)),
            ),
            lambda s: s.jax.jit(lambda p, q: (p, q))(
                s.shard(numbers(8), "x", mesh=s.reversed_mesh), np.ones(8, np.float32)
            ),
        ]
    )


def test_shardings_given_to_jit_are_kept():
    same(
        [
            lambda s: s.jax.jit(lambda p: p * 2, in_shardings=s.sharding("y"))(numbers(8, 8)),
            lambda s: s.jax.jit(lambda p: p * 2, out_shardings=s.sharding(("x", "y")))(numbers(8, 8)),
            lambda s: s.jax.jit(
                lambda p: p * 2, in_shardings=s.sharding("x", "y"), out_shardings=s.sharding("y", None)
            )(s.auto_matrix),
            lambda s: s.jax.jit(
                lambda p, q: (p, q), in_shardings=(s.sharding("x"), None), out_shardings=(None, s.sharding("y"))
            )(s.auto_vector, numbers(8)),
            lambda s: s.jax.jit(
                lambda t: {"c": t["a"] + t["b"]}, in_shardings=({"a": s.sharding("x"), "b": s.sharding()},)
            )({"a": s.auto_vector, "b": numbers(8)}),
            lambda s: s.jax.jit(
                lambda t: t, in_shardings=({"a": s.sharding("x"), "b": None},), out_shardings=s.sharding("y")
            )({"a": s.auto_vector, "b": numbers(8)}),
            lambda s: s.jax.jit(lambda t: t, out_shardings={"a": s.sharding("x"), "b": None})(
                {"a": numbers(8), "b": 2}
            ),
            lambda s: s.jax.jit(lambda p: p, out_shardings=s.SingleDeviceSharding(s.devices[2]))(s.jnp.ones(3)),
            lambda s: s.jax.jit(lambda p: p, out_shardings=s.sharding())(s.jnp.ones(3)),
            lambda s: s.jax.jit(lambda: s.jnp.arange(8.0), out_shardings=s.sharding("x"))(),
            lambda s: s.jax.jit(lambda k: s.jax.random.split(k, 8), out_shardings=s.sharding("x"))(s.jax.random.key(0)),
            lambda s: s.jax.jit(lambda k: s.jax.random.split(k, 8), out_shardings=s.sharding("x"))(
                s.jax.random.PRNGKey(0)
            ),
            lambda s: s.jax.jit(lambda p: p + 1, in_shardings=s.sharding("x", mesh=s.reversed_mesh))(numbers(8)),
            lambda s: s.jax.jit(
                lambda p: (
                    s.lax.with_sharding_constraint(p, s.sharding("x")),
                    s.lax.with_sharding_constraint(p * 2, s.sharding("q", mesh=s.auto_mesh((2, 4), ("p", "q")))),
                )
            )(numbers(8)),
            lambda s: s.jax.jit(
                lambda p: p + 1,
                in_shardings=s.sharding("x"),
                out_shardings=s.sharding("y", mesh=s.auto_mesh((2, 4), ("x", "y"))),
            )(numbers(8)),
            lambda s: s.jax.jit(
                s.jax.jit(lambda p: p + 1, in_shardings=s.sharding("x"), out_shardings=s.sharding("y"))
            )(numbers(8)),
            lambda s: s.jax.jit(lambda p: s.lax.with_sharding_constraint(p * 2, s.sharding("y")))(s.auto_matrix),
            lambda s: s.jax.jit(
                lambda p: s.lax.with_sharding_constraint(
                    {"k": p, "l": p + 1}, {"k": s.sharding("y"), "l": s.sharding()}
                )
            )(s.auto_matrix),
            lambda s: s.jax.jit(lambda p: s.lax.with_sharding_constraint(p, s.sharding("y", s.P.UNCONSTRAINED)) * 2)(
                s.auto_matrix
            ),
            lambda s: s.lax.with_sharding_constraint(numbers(8), s.sharding("x")),
            lambda s: s.jax.vmap(lambda p: s.lax.with_sharding_constraint(p, s.sharding("y")), spmd_axis_name="x")(
                numbers(8, 8)
            ),
            lambda s: s.jax.grad(lambda p: s.lax.with_sharding_constraint(p * p, s.sharding("y")).sum())(s.auto_matrix),
            lambda s: s.jax.jit(lambda p: s.jax.device_put(p, s.sharding("y")) + 1)(s.auto_matrix),
        ]
    )


def test_the_set_mesh_is_used():
    same(
        [
            lambda s: [
                s.jax.jit(lambda p: s.lax.with_sharding_constraint(p, s.P("x")))(numbers(8)),
                s.jnp.ones(8),
                s.jnp.ones(8) + 1,
            ],
            lambda s: [
                s.lax.with_sharding_constraint(s.jnp.ones(8), s.P("x")),
                s.jax.device_put(numbers(8), s.P("y")),
                s.auto_vector * 2,
                s.auto_vector.sum(),
            ],
            lambda s: s.jax.jit(lambda p: p + 1, in_shardings=s.P("x"), out_shardings=s.P("y"))(numbers(8)),
            lambda s: s.jax.jit(lambda t: t, out_shardings={"a": s.P("x"), "b": None})(
                {"a": numbers(8), "b": numbers(8)}
            ),
            lambda s: s.jax.shard_map(lambda p: s.lax.psum(p, "x"), in_specs=s.P("x"), out_specs=s.P())(numbers(8)),
            lambda s: [s.jax.random.normal(s.jax.random.key(0), (8,)), s.jnp.arange(4), s.jax.random.key(1)],
            lambda s: [s.jax.sharding.get_mesh(), s.jax.sharding.get_abstract_mesh(), s.jax.jit(lambda p: p)(1)],
            lambda s: s.jaxpr(lambda p: s.lax.with_sharding_constraint(p, s.P("x")), numbers(8)),
            lambda s: s.text(lambda p: s.lax.with_sharding_constraint(p, s.P(("x", "y"))) + 1, numbers(8)),
            lambda s: s.text(
                s.jax.jit(lambda p: p + 1, in_shardings=s.P("x"), out_shardings=s.P()),
                s.ShapeDtypeStruct((8,), "float32"),
            ),
            lambda s: s.text(lambda p: p + 1, s.ShapeDtypeStruct((8,), "float32", sharding=s.P("x"))),
            lambda s: (
                s.jax.jit(lambda p: p + 1)
                .lower(s.ShapeDtypeStruct((8,), "float32", sharding=s.P("x")))
                .compile()
                .output_shardings
            ),
        ],
        set_mesh="mesh",
    )


def test_an_entered_mesh_is_used_by_constraints_only():
    def inside(s, call):
        with pytest.warns(DeprecationWarning, match="context manager has been deprecated"), s.mesh as entered:
            assert entered is s.mesh
            return call()

    same(
        [
            lambda s: s.inside(lambda: s.lax.with_sharding_constraint(numbers(8), s.P("x"))),
            lambda s: s.inside(
                lambda: s.jax.jit(lambda p: s.lax.with_sharding_constraint(p + 1, s.P("y")))(numbers(8))
            ),
            lambda s: s.inside(
                lambda: [s.jax.sharding.get_mesh(), s.jax.sharding.get_abstract_mesh(), s.jnp.ones(8) + 1]
            ),
        ],
        inside=lambda s: lambda call: inside(s, call),
    )
    same_errors(
        [
            (
                lambda s: s.inside(lambda: s.jax.jit(lambda p: p, in_shardings=s.P("x"))(numbers(8))),
                "requires a non-empty mesh",
            ),
            (
                lambda s: s.inside(lambda: s.jax.device_put(numbers(8), s.P("x"))),
                "Please set a mesh via `jax.set_mesh`",
            ),
            (
                lambda s: s.inside(lambda: s.jax.shard_map(sum, in_specs=s.P("x"), out_specs=s.P("x"))(s.auto_vector)),
                "The context mesh cannot be",
            ),
        ],
        inside=lambda s: lambda call: inside(s, call),
    )


def test_reshard_takes_explicit_axes_only():
    explicit = dict(
        other_mesh=lambda s: s.jax.make_mesh((4, 2), ("x", "y")),
        square=lambda s: s.shard(numbers(8, 8), "x", "y", mesh=s.jax.make_mesh((4, 2), ("x", "y"))),
    )
    same(
        [
            lambda s: [
                s.jax.reshard(s.square, s.sharding("y", mesh=s.other_mesh)),
                s.jax.reshard(numbers(8), s.sharding("x", mesh=s.other_mesh)),
                s.jax.reshard(s.auto_matrix, s.sharding()),
            ],
            lambda s: s.jax.reshard(
                {"a": s.square, "b": s.square},
                {"a": s.sharding("y", mesh=s.other_mesh), "b": s.sharding(mesh=s.other_mesh)},
            ),
            lambda s: np.asarray(
                s.jax.jit(lambda p: s.jax.sharding.reshard(p, s.sharding("y", mesh=s.other_mesh)))(s.square)
            ),
            lambda s: s.jax.sharding.auto_axes(lambda p: p + 1, out_sharding=s.sharding("y"))(s.auto_matrix),
            lambda s: [
                s.jax.sharding.make_single_device_sharding(s.devices[1]),
                s.jax.sharding.make_single_device_sharding(s.devices[1]) == s.SingleDeviceSharding(s.devices[1]),
            ],
        ],
        **explicit,
    )
    same_errors(
        [
            (
                lambda s: s.jax.reshard(s.auto_matrix, s.sharding("y")),
                "reshard cannot contain axis names that are of type Auto",
            ),
            (
                lambda s: s.jax.jit(lambda p: s.jax.reshard(p, s.sharding("y")))(s.auto_matrix),
                "reshard cannot contain axis names that are of type Auto",
            ),
            (
                lambda s: s.jax.reshard(s.auto_matrix, s.P("y")),
                "Using PartitionSpec when you are not under a mesh context",
            ),
            (lambda s: s.jax.reshard(s.square, None), "Got sharding None"),
            (lambda s: s.jax.reshard(s.square, 3), "NamedSharding"),
            (
                lambda s: s.jax.sharding.auto_axes(lambda p: p)(s.auto_matrix),
                "Missing required keyword argument: 'out_sharding'",
            ),
        ],
        **explicit,
    )


def test_texts_equal_jax_s():
    same(
        [
            lambda s: s.text(lambda p: s.jnp.sin(p) @ p, s.auto_matrix),
            lambda s: s.text(lambda p, q, r: p + q * r, s.auto_matrix, numbers(8, 8), 2.0),
            lambda s: s.text(s.jax.jit(lambda p: p + 1, donate_argnums=0), s.auto_matrix),
            lambda s: s.text(
                s.jax.jit(lambda p: p + 1, donate_argnums=0, out_shardings=s.sharding("x", "y")), s.auto_matrix
            ),
            lambda s: s.text(
                s.jax.jit(lambda p, q: (p + 1, q.sum()), donate_argnums=(0, 1)), s.auto_matrix, s.auto_matrix
            ),
            lambda s: s.text(
                s.jax.jit(lambda p, q: p, in_shardings=(s.sharding("x", "y"), None), out_shardings=s.sharding("y")),
                s.auto_matrix,
                s.auto_matrix,
            ),
            lambda s: s.text(
                s.jax.jit(lambda p, q: p, in_shardings=(s.sharding("x", "y"), None), keep_unused=True),
                s.auto_matrix,
                s.auto_matrix,
            ),
            lambda s: s.text(
                lambda p: s.jax.jit(lambda q: q * 2, in_shardings=s.sharding("x"), out_shardings=s.sharding(None, "y"))(
                    s.jnp.sin(p)
                ),
                numbers(8, 8),
            ),
            lambda s: s.text(
                s.jax.grad(lambda p: s.jax.jit(lambda q: q * q, in_shardings=s.sharding("x"))(s.jnp.sin(p)).sum()),
                numbers(8, 8),
            ),
            lambda s: s.text(
                s.jax.vmap(lambda p: s.jax.jit(lambda q: q * q, in_shardings=s.sharding("x"))(p), spmd_axis_name="y"),
                numbers(4, 8),
            ),
            lambda s: s.text(
                lambda p: s.lax.with_sharding_constraint(p, s.sharding("y", s.P.UNCONSTRAINED)), s.auto_matrix
            ),
            lambda s: s.text(
                s.jax.vmap(lambda p: s.lax.with_sharding_constraint(p, s.sharding("y")), in_axes=1), numbers(8, 3)
            ),
            lambda s: s.text(
                lambda p: s.lax.scan(
                    lambda c, t: (s.lax.with_sharding_constraint(c + t, s.sharding("x")), c.sum()), p[0], p
                ),
                s.auto_matrix,
            ),
            lambda s: s.text(lambda p: s.jax.device_put(p, s.sharding("y")) + 1, s.auto_matrix),
            lambda s: s.text(lambda p: s.jax.device_put(p, s.devices[0]) + 1, s.auto_matrix),
            lambda s: s.text(lambda k: s.jax.random.split(k, 8), s.jax.random.key(0)),
            lambda s: s.text(
                s.jax.jit(lambda k: s.jax.random.split(k, 8), out_shardings=s.sharding("x")), s.jax.random.key(0)
            ),
            lambda s: s.text(lambda p: p, s.shard(numbers(8), "x", mesh=s.reversed_mesh)),
            lambda s: s.text(
                lambda p: p * 2, s.jax.jit(lambda p: p.reshape(2, 4))(s.shard(numbers(8), "i", mesh=s.mesh_of_8))
            ),
            lambda s: s.text(
                lambda p: s.jnp.sin(p), s.ShapeDtypeStruct((8, 8), "float32", sharding=s.sharding("x", "y"))
            ),
            lambda s: s.text(
                lambda p, q: (
                    p + s.lax.with_sharding_constraint(q, s.sharding(("a", "b"), mesh=s.auto_mesh((2, 4), ("a", "b"))))
                ),
                s.auto_matrix,
                s.auto_matrix,
            ),
            lambda s: s.text(lambda p: p + np.arange(8, dtype=np.float32), s.auto_matrix),
            lambda s: s.jaxpr(
                s.jax.jit(lambda p: p, in_shardings=s.sharding("x"), donate_argnums=0, keep_unused=True), numbers(8)
            ),
            lambda s: s.jaxpr(
                lambda p: s.jax.jvp(
                    s.jax.jit(lambda q: q * q, in_shardings=s.sharding("x"), out_shardings=s.sharding()), (p,), (p,)
                ),
                numbers(8),
            ),
            lambda s: s.jaxpr(
                s.jax.vmap(s.jax.jit(lambda q: q * q, in_shardings=s.sharding("x")), spmd_axis_name="y"), numbers(4, 8)
            ),
            lambda s: s.jaxpr(lambda p: s.jax.device_put(p, s.sharding("x")) + 1, numbers(8)),
            lambda s: s.jaxpr(
                s.jax.vmap(lambda p: s.lax.with_sharding_constraint(p, s.sharding("y")), in_axes=1), numbers(8, 3)
            ),
        ]
    )


def test_optimized_programs_hold_the_same_collectives():
    same(
        [
            lambda s: s.collectives(lambda p: p @ p, s.auto_matrix),
            lambda s: s.collectives(lambda p: (p.sum(), p.sum(0), p.T), s.auto_matrix),
            lambda s: s.collectives(lambda p: s.lax.with_sharding_constraint(p, s.sharding("y", "x")), s.auto_matrix),
            lambda s: s.collectives(s.jax.grad(lambda p: s.jnp.sum(s.jnp.tanh(p @ p))), s.auto_matrix),
            lambda s: s.collectives(s.jax.jit(lambda p: p, out_shardings=s.sharding()), s.auto_matrix),
            lambda s: s.collectives(
                lambda p: s.jax.shard_map(
                    lambda q: s.lax.psum_scatter(q, "x", tiled=True), mesh=s.mesh, in_specs=s.P(), out_specs=s.P("x")
                )(p),
                s.auto_matrix,
            ),
            lambda s: s.collectives(lambda p: s.jnp.sort(p, axis=0), s.auto_matrix),
        ]
    )


def test_stages_equal_jax_s():
    same(
        [
            lambda s: [
                s.compiled.input_shardings,
                s.compiled.output_shardings,
                s.compiled(s.auto_matrix),
                s.compiled(numbers(8, 8)),
                s.compiled.in_avals,
            ],
            lambda s: s.jax.jit(lambda p, q: p).lower(s.auto_matrix, s.auto_matrix).compile().input_shardings,
            lambda s: (
                s.jax.jit(lambda p: p.sum(0))
                .lower(s.ShapeDtypeStruct((8, 8), "float32", sharding=s.sharding("x", "y")))
                .compile()(s.auto_matrix)
            ),
            lambda s: s.jax.jit(lambda p: p).lower(s.auto_matrix).compile().input_shardings,
            lambda s: (
                s.jax.jit(lambda p: p, out_shardings=s.sharding("y")).lower(numbers(8)).compile().output_shardings
            ),
            lambda s: s.jax.jit(lambda p: p, out_shardings=s.sharding("y")).eval_shape(numbers(8)),
            lambda s: s.jax.eval_shape(lambda p: p + 1, s.auto_matrix),
            lambda s: s.jax.eval_shape(s.jax.jit(lambda p: (p, p), out_shardings=(None, s.sharding())), s.auto_matrix),
            lambda s: (
                s.jax.jit(lambda p: p, out_shardings=s.SingleDeviceSharding(s.devices[0])).lower(numbers(8)).out_info
            ),
            lambda s: (
                s.jax.jit(
                    s.jax.shard_map(lambda p: s.lax.psum(p, "x"), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P())
                )
                .lower(s.auto_matrix)
                .compile()(s.auto_matrix)
            ),
        ],
        compiled=lambda n: n.jax.jit(lambda p: (p + 1, p.sum(0))).lower(n.auto_matrix).compile(),
    )


def test_donation_over_devices_frees_as_in_jax():
    def freed(s, **options):
        kept, given = s.shard(numbers(8, 8), "x"), s.shard(numbers(8, 8), "x")
        double = s.jax.jit(lambda p, q: (p + 1, q * 2), donate_argnums=1, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = [np.asarray(r) for r in double(kept, given)]
        return kept.is_deleted(), given.is_deleted(), results, [str(w.message)[:35] for w in caught]

    same(
        [
            lambda s: s.freed(),
            lambda s: s.freed(out_shardings=(s.sharding(), s.sharding("x", None))),
            lambda s: s.freed(out_shardings=(s.sharding("x"), None)),
            lambda s: s.freed(out_shardings=(s.sharding(), s.sharding(None, "x"))),
            lambda s: s.freed(out_shardings=s.sharding("y")),
            lambda s: s.freed(in_shardings=(None, s.sharding("x"))),
        ],
        freed=lambda s: lambda **options: freed(s, **options),
    )


def test_programs_are_compiled_once_for_each_sharding():
    mesh = minijax.sharding.Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))
    spec = minijax.sharding.PartitionSpec
    layouts = [minijax.sharding.NamedSharding(mesh, s) for s in (spec("x"), spec("y"), spec("x", None))]
    arrays = [minijax.device_put(numbers(8, 8), layout) for layout in layouts]
    double = minijax.jit(lambda p: p * 2 - 1)
    before = compiling.compile_count()
    for array in arrays * 2:
        assert np.array_equal(double(array), numbers(8, 8) * 2 - 1)
    assert compiling.compile_count() == before + 2


def test_gradients_over_devices_equal_numpy_s():
    rows = minijax.sharding.Mesh(np.array(minijax.devices()), ("i",))
    spec = minijax.sharding.PartitionSpec
    w, x = (numbers(*shape).astype(np.float64) / 8 for shape in ((8, 4), (16, 8)))
    with minijax.enable_x64(True):
        placed = minijax.device_put(x, minijax.sharding.NamedSharding(rows, spec("i")))
        found = minijax.jit(minijax.grad(lambda w, x: (minijax.numpy.tanh(x @ w) ** 2).sum()))(w, placed)
    t = np.tanh(x @ w)
    # The devices' sums are added in another order.
    assert np.allclose(found, x.T @ (2 * t * (1 - t**2)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_types_that_are_not_divisible_are_refused_where_they_are_read(kind):
    def program(jax, jnp):
        mesh = jax.make_mesh((4,), ("x",), (getattr(jax.sharding.AxisType, kind),), devices=jax.devices()[:4])
        x = jax.ShapeDtypeStruct((7, 8), jnp.float32, sharding=jax.NamedSharding(mesh, jax.P("x")))
        calls = {
            "lower": lambda: jax.jit(lambda x: x * 2).lower(x),
            "unread": lambda: jax.jit(lambda x, y: y).lower(x, 1.0),
            "trace": lambda: jax.jit(lambda x: x * 2).trace(x),
            "eval_shape": lambda: jax.eval_shape(lambda x: x * 2, x),
        }
        return [(name, compare.ended(call)) for name, call in calls.items()]

    compare.same(program)
