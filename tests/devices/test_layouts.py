"""The order of axes in memory: formats of arrays, arguments and results, against jax."""

import copy
import importlib
import pickle

import pytest
from mesh_language import same, same_errors

pytestmark = pytest.mark.oracle


def _layouts(s):
    return importlib.import_module(f"{s.jax.__name__}.experimental.layout")


GIVEN = dict(
    Layout=lambda s: _layouts(s).Layout,
    Format=lambda s: _layouts(s).Format,
    AUTO=lambda s: _layouts(s).Layout.AUTO,
    constrain=lambda s: _layouts(s).with_layout_constraint,
    turned=lambda s: _layouts(s).Format(_layouts(s).Layout((1, 0)), s.One(s.d[0])),
    rows=lambda s: _layouts(s).Format(_layouts(s).Layout((0, 1)), s.One(s.d[0])),
    cut=lambda s: _layouts(s).Format(_layouts(s).Layout((1, 0)), s.on("x", "y")),
    free=lambda s: _layouts(s).Format(_layouts(s).Layout.AUTO),
    y=lambda s: s.jax.device_put(
        s.jnp.asarray(s.numbers(4, 8)), _layouts(s).Format(_layouts(s).Layout((1, 0)), s.One(s.d[0]))
    ),
    z=lambda s: s.jax.device_put(
        s.jnp.asarray(s.numbers(8, 8)), _layouts(s).Format(_layouts(s).Layout((1, 0)), s.on("x", "y"))
    ),
    both=lambda s: lambda x: [x, x.format],
    pickle=lambda s: pickle,
    copy=lambda s: copy,
)


def test_arrays_are_put_into_formats_and_read():
    same(
        """
        [both(y), both(z), jax.device_put(y, One(d[1])), both(jax.device_put(z, on('y'))), both(jnp.ones(3))]
        [both(jax.device_put(numbers(4, 8).astype(t), turned)) for t in ('bfloat16', 'int8', 'bool', 'complex64')] + [jax.device_put(numbers(4, 8).astype('int4'), turned)]
        [both(jax.device_put(numbers(4, 8), cut))]
        [both(jax.device_put(numbers(8, 8).astype('bfloat16'), cut))]
        [both(y + 1), both(y.T), both(y @ y.T), y.sum(), y[1], y[1:3, ::2], jnp.concatenate([y, y]), z.sum(0), (z @ z)]
        [y.tolist(), np.asarray(y), np.asarray(z), np.asarray(y.addressable_shards[0].data), len(z.addressable_shards)]
        [np.asarray(shard.data) for shard in z.addressable_shards]
        [copy.deepcopy(y), pickle.loads(pickle.dumps(y)), np.from_dlpack(y), y.at[0].set(1.), jax.device_put(y)]
        [jax.jit(lambda p: p + y)(jnp.ones((4, 8))), jax.grad(lambda p: (p * y).sum())(y), jax.vmap(jnp.sin)(y)]
        lax.scan(lambda c, t: (c + t, c.sum()), jnp.zeros(8), y)
        both(jax.make_array_from_callback((8, 8), cut, lambda i: numbers(8, 8)[i]))
        [Format(), Format(None, One(d[0])), turned, AUTO, Layout([1, 0], [[8]]), Layout((1, 0)) == Layout((1, 0), ())]
    """,
        **GIVEN,
    )
    same_errors(
        [
            ("jax.device_put(v, Format(AUTO, on('x')))", "sharding and layout in `Layout` instance should be concrete"),
            ("jax.device_put(v, turned)", "Length of major_to_minor and the rank of the value should match"),
            ("Format(Layout((1, 0)))", "Sharding has to be concrete when layout is of type"),
            ("Format((1, 0), on('x'))", "(1, 0) of type"),
            ("Format(Layout((1, 0)), P('x'))", "P('x',) of type"),
            ("SDS((4, 8), 'float32', sharding=Format(AUTO, on('x')))", "cannot be used in place of a device-local"),
            ("jax.make_array_from_callback((8,), Format(AUTO, on('x')), lambda i: i)", "`Layout.AUTO` cannot be used"),
            ("jax.make_array_from_callback((8,), Format(), lambda i: i)", "sharding should be an instance of"),
        ],
        **GIVEN,
    )


def test_arguments_and_results_have_formats():
    same(
        """
        both(jax.jit(lambda p: p * 2, in_shardings=turned)(y))
        both(jax.jit(lambda p: p * 2, in_shardings=turned, out_shardings=turned)(numbers(4, 8)))
        both(jax.jit(lambda p: p * 2, in_shardings=cut, out_shardings=cut)(z))
        both(jax.jit(lambda p: p.T, out_shardings=free)(jnp.asarray(numbers(4, 8))))
        [both(q) for q in jax.jit(lambda p: (p, {'k': p + 1}), out_shardings=(turned, {'k': None}))(y)[:1]]
        jaxpr(jax.jit(lambda p: p * 2, in_shardings=turned, out_shardings=turned), numbers(4, 8))
        text(jax.jit(lambda p: p.T @ p, in_shardings=free, out_shardings=free), SDS((4, 8), 'float32'))
        text(jax.jit(lambda p: p * 2, in_shardings=cut, out_shardings=Format(AUTO, on('x'))), SDS((8, 8), 'float32'))
        [jax.jit(lambda p: p * 2).lower(y).compile().input_formats, jax.jit(lambda p: p * 2).lower(z).compile().output_formats]
        jax.jit(lambda p: p.T @ p, in_shardings=free, out_shardings=free).lower(SDS((4, 8), 'float32')).compile().input_formats
        jax.jit(lambda p: p * 2).lower(SDS((4, 8), 'float32', sharding=turned)).compile().input_formats
        both(jax.jit(lambda p: p * 2).lower(SDS((4, 8), 'float32', sharding=turned)).compile()(y))
        both(jax.jit(lambda p: p * 2, in_shardings=turned).lower(SDS((4, 8), 'float32')).compile()(jnp.asarray(numbers(4, 8))))
        jax.jit(lambda p: p * 2, out_shardings=cut).eval_shape(SDS((8, 8), 'float32')).format
    """,
        **GIVEN,
    )
    same_errors(
        [
            ("jax.jit(lambda p: p, in_shardings=rows)(y)", "Layout passed to jit does not match the layout on the"),
            ("jax.jit(lambda p: p, in_shardings=turned)(jax.device_put(numbers(4, 8), d[0]))", "Layout passed to jit"),
            (
                "jax.jit(lambda p: p * 2, in_shardings=turned)(jnp.ones(3))",
                "major_to_minor and the rank of the value should match",
            ),
            (
                "jax.jit(lambda p: p * 2, out_shardings=turned)(jnp.ones(3))",
                "major_to_minor and the rank of the value should match",
            ),
            ("jax.jit(lambda p: p, out_shardings=Layout((1, 0)))", "does not accept device-local layouts directly"),
            ("jax.jit(lambda p: p, in_shardings=AUTO)", "does not accept device-local layouts directly"),
            (
                "jax.jit(lambda p: p * 2).lower(SDS((4, 8), 'float32')).compile()(y)",
                "Computation was compiled for input layouts that disagree with the layouts of arguments",
            ),
        ],
        **GIVEN,
    )


def test_donated_memory_is_that_of_results_of_its_layout():
    same(
        """
        text(jax.jit(lambda p: p * 2, in_shardings=cut, out_shardings=cut, donate_argnums=0), SDS((8, 8), 'float32'))
        text(jax.jit(lambda p: p * 2, in_shardings=cut, out_shardings=on('x', 'y'), donate_argnums=0), SDS((8, 8), 'float32'))
        text(jax.jit(lambda p: p * 2, in_shardings=free, out_shardings=free, donate_argnums=0), SDS((4, 8), 'float32'))
    """,
        **GIVEN,
    )
    same_errors(
        [
            (
                "jax.jit(lambda p: p, in_shardings=free, out_shardings=turned, donate_argnums=0).lower(numbers(4, 8))",
                "Layout.AUTO",
            ),
            (
                "jax.jit(lambda p: p, in_shardings=turned, out_shardings=free, donate_argnums=0).lower(numbers(4, 8))",
                "Layout.AUTO",
            ),
        ],
        **GIVEN,
    )


def test_constraints_on_layouts():
    same(
        """
        [both(constrain(jnp.asarray(numbers(4, 8)), Layout((1, 0)))), constrain({'k': y, 'l': [y]}, Layout((0, 1)))]
        both(jax.jit(lambda p: constrain(p * 2, Layout((1, 0))))(numbers(4, 8)))
        both(jax.jit(lambda p: lax.with_sharding_constraint(p, cut))(numbers(8, 8)))
        both(lax.with_sharding_constraint(numbers(8, 8), cut))
        both(jax.jit(lambda p: lax.with_sharding_constraint(p, Format(None, on('x'))))(numbers(8, 8)))
        jaxpr(jax.vmap(lambda p: constrain(p, Layout((1, 0))), in_axes=1), numbers(4, 3, 8))
        jaxpr(jax.grad(lambda p: constrain(p, Layout((1, 0))).sum()), numbers(4, 8))
        jaxpr(lambda p: lax.with_sharding_constraint(p, cut), numbers(8, 8))
        text(lambda p: constrain(p * 2, Layout((1, 0))) + 1, numbers(4, 8))
        text(lambda p: lax.with_sharding_constraint(p, cut) + 1, numbers(8, 8))
    """,
        **GIVEN,
    )
    same_errors(
        [
            ("constrain(v, AUTO)", "layouts passed to `with_layout_constraint` must be of type `Layout`"),
            ("constrain(v, Layout((1, 0)))", "One of with_layout_constraint arguments"),
            ("lax.with_sharding_constraint(v, cut)", "One of with_sharding_constraint arguments"),
        ],
        **GIVEN,
    )
