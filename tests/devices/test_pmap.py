"""`pmap`: values, shardings, jaxprs and texts, against jax."""

import numpy as np
import pytest
from compare import ours, theirs
from mesh_language import numbers, same, same_errors

import minijax

pytestmark = pytest.mark.oracle

GIVEN = dict(
    b=lambda s: s.jnp.asarray(numbers(8, 2)),
    w=lambda s: s.jnp.asarray(numbers(2)),
    double=lambda s: lambda x: x * 2,
    total=lambda s: lambda x: s.lax.psum(s.jnp.sin(x), "i"),
)


def test_values_and_shardings_equal_jax_s():
    same(
        """
        [jax.pmap(double)(b), jax.pmap(double)(np.asarray(b)), jax.pmap(double)(b).addressable_shards[2].data]
        [jax.pmap(double)(b)[1], list(jax.pmap(double)(b))[:2], jax.pmap(double)(jax.pmap(double)(b)).sum()]
        jax.pmap(lambda x, y: x * y, in_axes=(0, None), out_axes=None, axis_name='i')(b, 2.)
        jax.pmap(lambda x: x * lax.axis_index('i'), in_axes=1, out_axes=1, axis_name='i')(b)
        jax.pmap(double, in_axes=1)(b)
        jax.pmap(total, axis_name='i', out_axes=None)(b)
        jax.pmap(lambda n, x: x * n, static_broadcasted_argnums=0)(3, b)
        jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=(1,), in_axes=(0, None))(b, 3)
        [jax.pmap(lambda x, y: x * y)(b, y=b), jax.pmap(lambda x: x.sum(), axis_name=('q'))(b)]
        jax.pmap(double, devices=d[4:6])(b[:2])
        jax.pmap(double, devices=d[::-1])(b)
        jax.pmap(double, backend='cpu')(b)
        jax.pmap(lambda t: {'a': t['x'], 'b': t['y'].sum()}, in_axes=({'x': 0, 'y': 1},), out_axes={'a': 1, 'b': 0})({'x': b, 'y': numbers(3, 8)})
        jax.pmap(lambda k: jax.random.normal(k, (2,)))(jax.random.split(jax.random.key(0), 8))
        np.asarray(jax.random.key_data(jax.pmap(lambda k: jax.random.split(k))(jax.random.split(jax.random.key(0), 8))))
        jax.pmap(lambda k: jax.random.normal(k, (2,)))(jax.random.split(jax.random.PRNGKey(0), 8))
        [jax.pmap(double)(numbers(8).astype(t)) for t in ('int8', 'bool', 'complex64', 'bfloat16')]
        [jax.pmap(lambda x: lax.pmean(x, 'i'), axis_name='i')(numbers(8).astype(t)) for t in ('int32', 'float16')]
        [jax.pmap(lambda x: 1)(b), jax.pmap(lambda x: (x, None))(b)]
        jax.pmap(lambda x: lax.scan(lambda c, t: (c + lax.psum(t, 'i'), c), jnp.zeros(()), x), axis_name='i')(b)
        jax.pmap(jax.vmap(lambda x: lax.psum(x, ('i', 'v')), axis_name='v'), axis_name='i')(b)
        jax.pmap(lambda x: jax.jit(lambda q: q + lax.psum(q, 'i'))(x), axis_name='i')(b)
        jax.pmap(lambda x: lax.all_gather(x, 'i') + lax.ppermute(x, 'i', [(i, (i + 1) % 8) for i in range(8)]), axis_name='i')(b)
        jax.pmap(lambda x: lax.psum_scatter(x, 'i'), axis_name='i')(numbers(8, 8))
        jax.pmap(lambda x: lax.all_to_all(x, 'i', 0, 0), axis_name='i')(numbers(8, 8))
        jax.pmap(double)(jax.device_put(numbers(8, 2), on('i', mesh=m8)))
        [jax.pmap(double, devices=d[::-1])(put(numbers(8, 2), 'i', mesh=m8)), jax.pmap(double)(put(b, 'x', mesh=grid((8,), 'x', d[::-1])))]
        [jax.pmap(double, devices=d[4:])(put(b[:4], 'x', mesh=grid((4,), 'x'))), jax.pmap(double).__wrapped__ is double]
        [jax.pmap(double).lower(shape).compile()(b) for shape in (SDS((8, 2), np.float32), jax.core.ShapedArray((8, 2), np.float32))]
        jax.pmap(double, axis_size=8)(b)
        jax.pmap(lambda x: x)(numbers(1, 3))
        [jax.pmap(lambda x: x * w)(b), jax.pmap(lambda x: x * w).lower(b).compile().input_shardings[0]]
        jax.jit(lambda x: jax.pmap(double)(x) + 1)(b)
        jax.pmap(lambda x: custom(x) + bent(x))(b)
    """,
        **GIVEN,
    )


def test_derivatives_equal_jax_s():
    same(
        """
        jax.pmap(jax.grad(lambda x: lax.pmean(jnp.sin(x), 'i')), axis_name='i')(b[:, 0])
        jax.pmap(jax.value_and_grad(lambda x: jnp.sum(jnp.sin(x) * x)))(b)
        jax.grad(lambda x: jax.pmap(total, axis_name='i')(x).sum())(b)
        jax.grad(lambda x, y: jax.pmap(lambda p, q: jnp.sin(p) * q, in_axes=(0, None))(x, y).sum(), argnums=(0, 1))(b, 2.)
        jax.jvp(jax.pmap(total, axis_name='i'), (b,), (b,))
        jax.vjp(jax.pmap(total, axis_name='i'), b)[1](b)
        jax.vmap(jax.pmap(total, axis_name='i'))(numbers(3, 8))
        jax.jit(jax.grad(lambda x: jax.pmap(lambda q: bent(q) * custom(q))(x).sum()))(b)
        jax.pmap(jax.jacrev(lambda x: jnp.sin(x) * x.sum()))(b)
        jax.pmap(jax.checkpoint(jax.grad(lambda x: jnp.sin(x).sum())))(b)
        jax.grad(lambda x: jax.checkpoint(jax.pmap(total, axis_name='i'))(x).sum())(b)
        jax.linearize(jax.pmap(total, axis_name='i'), b)[1](b)
    """,
        **GIVEN,
    )


def test_jaxprs_and_texts_equal_jax_s():
    same(
        """
        jaxpr(jax.pmap(double), b)
        jaxpr(jax.pmap(lambda x, y: x * y, in_axes=(0, None), out_axes=None, axis_name='i'), b, b)
        jaxpr(jax.pmap(lambda x: x * lax.axis_index('i'), in_axes=1, out_axes=1, axis_name='i'), b)
        jaxpr(jax.vmap(jax.pmap(total, axis_name='i')), numbers(3, 8))
        jaxpr(jax.pmap(lambda x, y: x * y), b, b)
        jaxpr(jax.jit(lambda x: jax.pmap(double)(x) + 1), b)
        text(jax.pmap(double), b)
        text(jax.pmap(double, donate_argnums=0), b)
        text(jax.pmap(total, axis_name='i', in_axes=1, out_axes=None), numbers(2, 8))
        text(jax.pmap(lambda x, y: x + lax.pmax(y, 'i'), axis_name='i'), b, b)
        collectives(jax.pmap(lambda x: lax.all_gather(total(x), 'i'), axis_name='i'), b)
        jax.eval_shape(jax.pmap(double), b)
        jax.pmap(double).lower(b).compile()(b)
    """,
        **GIVEN,
    )


def test_misuse_raises_as_in_jax():
    same_errors(
        [
            ("jax.pmap(3)", "Expected a callable value"),
            ("jax.pmap(double, in_axes='a')", "pmap in_axes must be an int, None, or (nested) container"),
            ("jax.pmap(double)(1.0)", "pmap requires at least one argument with a mapped axis"),
            ("jax.pmap(double, in_axes=None)(b)", "pmap requires at least one argument with a mapped axis"),
            ("jax.pmap(lambda: 1)()", "pmap requires at least one argument with a mapped axis"),
            ("jax.pmap(double, axis_size=4)(b)", "axis_size 4 doesn't match received axis_size 8"),
            ("jax.pmap(double, static_broadcasted_argnums=3)(b)", "static_broadcasted_argnums=(3,)"),
            ("jax.pmap(lambda x, n: x, static_broadcasted_argnums=1)(b, [1])", "Non-hashable static arguments"),
            ("jax.pmap(lambda x, y: x, in_axes=(0,))(b, b)", "different lengths of tuple"),
            ("jax.pmap(double, out_axes=(0, 0))(b)", "pytree structure error"),
            ("jax.pmap(lambda x, y: x, in_axes=((0, 0, 0), 0))((b, b), b)", "pmap in_axes[0][0]"),
            ("jax.pmap(lambda x, y: x, in_axes=(0, 0))(x=b, y=b)", "each argument passed by keyword is mapped"),
            ("jax.pmap(double)(np.ones((16, 2)))", ""),
            ("jax.pmap(double)(np.ones((0, 2)))", ""),
            ("jax.pmap(double)({'x': 'a'})", ""),
            ("jax.pmap(double)(jax.device_put(b, d[1]))", "Sharding passed to jit does not match"),
            ("jax.pmap(lambda x: lax.psum(x, 'q'))(b)", "unbound axis name: q"),
            ("jax.pmap(jax.pmap(double, axis_name='j'), axis_name='i')(np.ones((4, 2, 3)))", ""),
            ("jax.pmap(double, out_axes=5)(b)", ""),
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
