"""`pmap`: values, shardings, jaxprs and texts, against jax."""

import numpy as np
import pytest
from compare import ours, theirs
from mesh_language import numbers, same, same_errors

import minijax

pytestmark = pytest.mark.oracle

GIVEN = dict(
    matrix=lambda s: s.jnp.asarray(numbers(8, 2)),
    row=lambda s: s.jnp.asarray(numbers(2)),
    double=lambda s: lambda x: x * 2,
    total=lambda s: lambda x: s.lax.psum(s.jnp.sin(x), "i"),
)


def test_values_and_shardings_equal_jax_s():
    same(
        [
            lambda s: [
                s.jax.pmap(s.double)(s.matrix),
                s.jax.pmap(s.double)(np.asarray(s.matrix)),
                s.jax.pmap(s.double)(s.matrix).addressable_shards[2].data,
            ],
            lambda s: [
                s.jax.pmap(s.double)(s.matrix)[1],
                list(s.jax.pmap(s.double)(s.matrix))[:2],
                s.jax.pmap(s.double)(s.jax.pmap(s.double)(s.matrix)).sum(),
            ],
            lambda s: s.jax.pmap(lambda x, y: x * y, in_axes=(0, None), out_axes=None, axis_name="i")(s.matrix, 2.0),
            lambda s: s.jax.pmap(lambda x: x * s.lax.axis_index("i"), in_axes=1, out_axes=1, axis_name="i")(s.matrix),
            lambda s: s.jax.pmap(s.double, in_axes=1)(s.matrix),
            lambda s: s.jax.pmap(s.total, axis_name="i", out_axes=None)(s.matrix),
            lambda s: s.jax.pmap(lambda n, x: x * n, static_broadcasted_argnums=0)(3, s.matrix),
            lambda s: s.jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=(1,), in_axes=(0, None))(s.matrix, 3),
            lambda s: [
                s.jax.pmap(lambda x, y: x * y)(s.matrix, y=s.matrix),
                s.jax.pmap(lambda x: x.sum(), axis_name=("q"))(s.matrix),
            ],
            lambda s: s.jax.pmap(s.double, devices=s.devices[4:6])(s.matrix[:2]),
            lambda s: s.jax.pmap(s.double, devices=s.devices[::-1])(s.matrix),
            lambda s: s.jax.pmap(s.double, backend="cpu")(s.matrix),
            lambda s: s.jax.pmap(
                lambda t: {"a": t["x"], "b": t["y"].sum()}, in_axes=({"x": 0, "y": 1},), out_axes={"a": 1, "b": 0}
            )({"x": s.matrix, "y": numbers(3, 8)}),
            lambda s: s.jax.pmap(lambda k: s.jax.random.normal(k, (2,)))(s.jax.random.split(s.jax.random.key(0), 8)),
            lambda s: np.asarray(
                s.jax.random.key_data(
                    s.jax.pmap(lambda k: s.jax.random.split(k))(s.jax.random.split(s.jax.random.key(0), 8))
                )
            ),
            lambda s: s.jax.pmap(lambda k: s.jax.random.normal(k, (2,)))(
                s.jax.random.split(s.jax.random.PRNGKey(0), 8)
            ),
            lambda s: [s.jax.pmap(s.double)(numbers(8).astype(t)) for t in ("int8", "bool", "complex64", "bfloat16")],
            lambda s: [
                s.jax.pmap(lambda x: s.lax.pmean(x, "i"), axis_name="i")(numbers(8).astype(t))
                for t in ("int32", "float16")
            ],
            lambda s: [s.jax.pmap(lambda x: 1)(s.matrix), s.jax.pmap(lambda x: (x, None))(s.matrix)],
            lambda s: s.jax.pmap(
                lambda x: s.lax.scan(lambda c, t: (c + s.lax.psum(t, "i"), c), s.jnp.zeros(()), x), axis_name="i"
            )(s.matrix),
            lambda s: s.jax.pmap(s.jax.vmap(lambda x: s.lax.psum(x, ("i", "v")), axis_name="v"), axis_name="i")(
                s.matrix
            ),
            lambda s: s.jax.pmap(lambda x: s.jax.jit(lambda q: q + s.lax.psum(q, "i"))(x), axis_name="i")(s.matrix),
            lambda s: s.jax.pmap(
                lambda x: s.lax.all_gather(x, "i") + s.lax.ppermute(x, "i", [(i, (i + 1) % 8) for i in range(8)]),
                axis_name="i",
            )(s.matrix),
            lambda s: s.jax.pmap(lambda x: s.lax.psum_scatter(x, "i"), axis_name="i")(numbers(8, 8)),
            lambda s: s.jax.pmap(lambda x: s.lax.all_to_all(x, "i", 0, 0), axis_name="i")(numbers(8, 8)),
            lambda s: s.jax.pmap(s.double)(s.jax.device_put(numbers(8, 2), s.sharding("i", mesh=s.mesh_of_8))),
            lambda s: [
                s.jax.pmap(s.double, devices=s.devices[::-1])(s.shard(numbers(8, 2), "i", mesh=s.mesh_of_8)),
                s.jax.pmap(s.double)(s.shard(s.matrix, "x", mesh=s.auto_mesh((8,), "x", s.devices[::-1]))),
            ],
            lambda s: [
                s.jax.pmap(s.double, devices=s.devices[4:])(s.shard(s.matrix[:4], "x", mesh=s.auto_mesh((4,), "x"))),
                s.jax.pmap(s.double).__wrapped__ is s.double,
            ],
            lambda s: [
                s.jax.pmap(s.double).lower(shape).compile()(s.matrix)
                for shape in (s.ShapeDtypeStruct((8, 2), np.float32), s.jax.core.ShapedArray((8, 2), np.float32))
            ],
            lambda s: s.jax.pmap(s.double, axis_size=8)(s.matrix),
            lambda s: s.jax.pmap(lambda x: x)(numbers(1, 3)),
            lambda s: [
                s.jax.pmap(lambda x: x * s.row)(s.matrix),
                s.jax.pmap(lambda x: x * s.row).lower(s.matrix).compile().input_shardings[0],
            ],
            lambda s: s.jax.jit(lambda x: s.jax.pmap(s.double)(x) + 1)(s.matrix),
            lambda s: s.jax.pmap(lambda x: s.with_custom_jvp(x) + s.with_custom_vjp(x))(s.matrix),
        ],
        **GIVEN,
    )


def test_derivatives_equal_jax_s():
    same(
        [
            lambda s: s.jax.pmap(s.jax.grad(lambda x: s.lax.pmean(s.jnp.sin(x), "i")), axis_name="i")(s.matrix[:, 0]),
            lambda s: s.jax.pmap(s.jax.value_and_grad(lambda x: s.jnp.sum(s.jnp.sin(x) * x)))(s.matrix),
            lambda s: s.jax.grad(lambda x: s.jax.pmap(s.total, axis_name="i")(x).sum())(s.matrix),
            lambda s: s.jax.grad(
                lambda x, y: s.jax.pmap(lambda p, q: s.jnp.sin(p) * q, in_axes=(0, None))(x, y).sum(), argnums=(0, 1)
            )(s.matrix, 2.0),
            lambda s: s.jax.jvp(s.jax.pmap(s.total, axis_name="i"), (s.matrix,), (s.matrix,)),
            lambda s: s.jax.vjp(s.jax.pmap(s.total, axis_name="i"), s.matrix)[1](s.matrix),
            lambda s: s.jax.vmap(s.jax.pmap(s.total, axis_name="i"))(numbers(3, 8)),
            lambda s: s.jax.jit(
                s.jax.grad(lambda x: s.jax.pmap(lambda q: s.with_custom_vjp(q) * s.with_custom_jvp(q))(x).sum())
            )(s.matrix),
            lambda s: s.jax.pmap(s.jax.jacrev(lambda x: s.jnp.sin(x) * x.sum()))(s.matrix),
            lambda s: s.jax.pmap(s.jax.checkpoint(s.jax.grad(lambda x: s.jnp.sin(x).sum())))(s.matrix),
            lambda s: s.jax.grad(lambda x: s.jax.checkpoint(s.jax.pmap(s.total, axis_name="i"))(x).sum())(s.matrix),
            lambda s: s.jax.linearize(s.jax.pmap(s.total, axis_name="i"), s.matrix)[1](s.matrix),
        ],
        **GIVEN,
    )


def test_jaxprs_and_texts_equal_jax_s():
    same(
        [
            lambda s: s.jaxpr(s.jax.pmap(s.double), s.matrix),
            lambda s: s.jaxpr(
                s.jax.pmap(lambda x, y: x * y, in_axes=(0, None), out_axes=None, axis_name="i"), s.matrix, s.matrix
            ),
            lambda s: s.jaxpr(
                s.jax.pmap(lambda x: x * s.lax.axis_index("i"), in_axes=1, out_axes=1, axis_name="i"), s.matrix
            ),
            lambda s: s.jaxpr(s.jax.vmap(s.jax.pmap(s.total, axis_name="i")), numbers(3, 8)),
            lambda s: s.jaxpr(s.jax.pmap(lambda x, y: x * y), s.matrix, s.matrix),
            lambda s: s.jaxpr(s.jax.jit(lambda x: s.jax.pmap(s.double)(x) + 1), s.matrix),
            lambda s: s.text(s.jax.pmap(s.double), s.matrix),
            lambda s: s.text(s.jax.pmap(s.double, donate_argnums=0), s.matrix),
            lambda s: s.text(s.jax.pmap(s.total, axis_name="i", in_axes=1, out_axes=None), numbers(2, 8)),
            lambda s: s.text(s.jax.pmap(lambda x, y: x + s.lax.pmax(y, "i"), axis_name="i"), s.matrix, s.matrix),
            lambda s: s.collectives(s.jax.pmap(lambda x: s.lax.all_gather(s.total(x), "i"), axis_name="i"), s.matrix),
            lambda s: s.jax.eval_shape(s.jax.pmap(s.double), s.matrix),
            lambda s: s.jax.pmap(s.double).lower(s.matrix).compile()(s.matrix),
        ],
        **GIVEN,
    )


def test_misuse_raises_as_in_jax():
    same_errors(
        [
            (lambda s: s.jax.pmap(3), "Expected a callable value"),
            (lambda s: s.jax.pmap(s.double, in_axes="a"), "pmap in_axes must be an int, None, or (nested) container"),
            (lambda s: s.jax.pmap(s.double)(1.0), "pmap requires at least one argument with a mapped axis"),
            (
                lambda s: s.jax.pmap(s.double, in_axes=None)(s.matrix),
                "pmap requires at least one argument with a mapped axis",
            ),
            (lambda s: s.jax.pmap(lambda: 1)(), "pmap requires at least one argument with a mapped axis"),
            (lambda s: s.jax.pmap(s.double, axis_size=4)(s.matrix), "axis_size 4 doesn't match received axis_size 8"),
            (lambda s: s.jax.pmap(s.double, static_broadcasted_argnums=3)(s.matrix), "static_broadcasted_argnums=(3,)"),
            (
                lambda s: s.jax.pmap(lambda x, n: x, static_broadcasted_argnums=1)(s.matrix, [1]),
                "Non-hashable static arguments",
            ),
            (lambda s: s.jax.pmap(lambda x, y: x, in_axes=(0,))(s.matrix, s.matrix), "different lengths of tuple"),
            (lambda s: s.jax.pmap(s.double, out_axes=(0, 0))(s.matrix), "pytree structure error"),
            (
                lambda s: s.jax.pmap(lambda x, y: x, in_axes=((0, 0, 0), 0))((s.matrix, s.matrix), s.matrix),
                "pmap in_axes[0][0]",
            ),
            (
                lambda s: s.jax.pmap(lambda x, y: x, in_axes=(0, 0))(x=s.matrix, y=s.matrix),
                "each argument passed by keyword is mapped",
            ),
            (lambda s: s.jax.pmap(s.double)(np.ones((16, 2))), ""),
            (lambda s: s.jax.pmap(s.double)(np.ones((0, 2))), ""),
            (lambda s: s.jax.pmap(s.double)({"x": "a"}), ""),
            (
                lambda s: s.jax.pmap(s.double)(s.jax.device_put(s.matrix, s.devices[1])),
                "Sharding passed to jit does not match",
            ),
            (lambda s: s.jax.pmap(lambda x: s.lax.psum(x, "q"))(s.matrix), "unbound axis name: q"),
            (lambda s: s.jax.pmap(s.jax.pmap(s.double, axis_name="j"), axis_name="i")(np.ones((4, 2, 3))), ""),
            (lambda s: s.jax.pmap(s.double, out_axes=5)(s.matrix), ""),
        ],
        **GIVEN,
    )


def test_a_donated_argument_is_freed():
    x = minijax.pmap(lambda x: x * 1)(numbers(8, 2))
    y = minijax.pmap(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert np.array_equal(y, numbers(8, 2) + 1)
    with pytest.raises(RuntimeError, match="deleted"):
        minijax.pmap(lambda x: x + 1)(x)


def test_programs_are_traced_once():
    traces = []

    def fun(x):
        traces.append(x)
        return x + 1

    mapped = minijax.pmap(fun)
    for _ in range(3):
        assert np.array_equal(mapped(numbers(8, 2)), numbers(8, 2) + 1)
    assert len(traces) == 1


def test_a_mapped_function_is_a_function_that_libraries_know_as_transformed():
    def fun(x):
        """Doubles."""
        return x * 2

    for package in (ours(), theirs()):
        mapped = package.pmap(fun)
        assert type(mapped).__name__ == "function"
        assert (mapped.__doc__, sorted(vars(mapped))) == ("Doubles.", ["__wrapped__", "lower"])
        for transformed in (mapped, package.vmap(fun), package.grad(fun), package.checkpoint(fun)):
            assert "api_boundary" in transformed.__globals__
    with pytest.raises(AttributeError):
        minijax.pmap(fun).trace  # noqa: B018 - jax has no such attribute either
