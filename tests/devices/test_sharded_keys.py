"""Arrays of random keys that are sharded over Explicit axes, and cotangents without a set mesh, against jax."""

import compare
import pytest
from mesh_language import same, same_errors

pytestmark = pytest.mark.oracle


def words(s, *sizes):
    return s.jnp.arange(2 * int(s.np.prod(sizes)), dtype=s.jnp.uint32).reshape(*sizes, 2)


GIVEN = {
    "key_matrix": lambda s: s.random.wrap_key_data(s.jax.reshard(words(s, 8, 4), s.P("x", "y"))),
    "key_array": lambda s: s.random.wrap_key_data(s.jax.reshard(words(s, 8), s.P("x"))),
    "seeds": lambda s: s.jax.reshard(s.jnp.arange(8), s.P("x")),
    "has_mesh": lambda s: lambda f: not s.jax.make_jaxpr(f)().out_avals[0].sharding.mesh.empty,
    "key_words": lambda s: lambda *sizes: words(s, *sizes),
}


def test_keys_have_the_sharding_of_their_data_or_seeds():
    same(
        [
            lambda s: [
                s.jax.typeof(s.key_matrix),
                s.key_matrix.sharding.spec,
                s.random.key_data(s.key_matrix),
                s.random.clone(s.key_array),
            ],
            lambda s: s.jaxpr(lambda k: s.random.key_data(k), s.key_matrix),
            lambda s: s.run(s.jax.vmap(s.random.split), s.key_array),
            lambda s: s.types(s.jax.vmap(s.random.bits), s.key_array),
            lambda s: s.types(s.jax.vmap(s.jax.vmap(s.random.normal)), s.key_matrix),
            lambda s: s.types(s.jax.vmap(s.random.key), s.seeds),
            lambda s: s.types(s.jax.vmap(s.random.PRNGKey), s.seeds),
            lambda s: s.types(s.jax.vmap(s.random.fold_in), s.key_array, s.seeds),
            lambda s: s.types(lambda k: s.jnp.where(k == k, k, k), s.key_matrix),
            lambda s: s.types(lambda k: k.T, s.key_matrix),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_random_values_have_the_set_mesh_in_their_types():
    same(
        [
            lambda s: s.has_mesh(lambda: s.random.key(5)),
            lambda s: s.has_mesh(lambda: s.random.key_data(s.random.key(5))),
            lambda s: s.has_mesh(lambda: s.random.key_data(s.random.split(s.random.key(5), 3))),
            lambda s: s.has_mesh(lambda: s.random.wrap_key_data(s.jnp.zeros(2, s.jnp.uint32))),
            lambda s: s.has_mesh(lambda: s.random.fold_in(s.random.key(5), 3)),
            lambda s: s.has_mesh(lambda: s.random.bits(s.random.key(5), (3,))),
            lambda s: s.types(s.jax.vmap(lambda x: s.random.split(s.random.PRNGKey(5), 3)), s.seeds),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_the_data_of_one_key_may_not_be_sharded():
    same_errors(
        [
            (
                lambda s: s.jax.jit(s.random.wrap_key_data)(s.jax.reshard(s.key_words(8, 4), s.P("x", None, "y"))),
                "replicated",
            )
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


# No mesh is set: only the arrays have one.
WITHOUT_SET_MESH = [
    lambda jax, jnp, v: jax.jacrev(lambda x: x * 2)(v),
    lambda jax, jnp, v: jax.jacrev(lambda x: x * x)(v),
    lambda jax, jnp, v: jax.jacrev(jnp.sin)(v),
    lambda jax, jnp, v: jax.jacrev(lambda x: x)(v),
    lambda jax, jnp, v: jax.jacfwd(lambda x: x)(v),
    lambda jax, jnp, v: jax.jacfwd(jnp.sin)(v),
    lambda jax, jnp, v: jax.vjp(lambda x: x * 2, v)[1](jnp.ones(4)),
    lambda jax, jnp, v: jax.vjp(jnp.sin, v)[1](jnp.ones(4)),
    lambda jax, jnp, v: jax.vjp(lambda x: x, v)[1](jnp.ones(4)),
    lambda jax, jnp, v: jax.make_jaxpr(jax.jacfwd(lambda x: x))(v),
]


@pytest.mark.parametrize("function", WITHOUT_SET_MESH)
def test_cotangents_on_one_device_of_values_over_a_mesh_that_is_not_set(function):
    def found(jax):
        mesh = jax.make_mesh((4, 2), ("x", "y"))
        v = jax.device_put(jax.numpy.arange(4.0) + 1, jax.NamedSharding(mesh, jax.P("x")))
        results = function(jax, jax.numpy, v)
        if hasattr(results, "jaxpr"):
            return compare.normal(str(results)), []
        leaves = jax.tree.leaves(results)
        return [str(jax.typeof(x)) for x in leaves], [x.tolist() for x in leaves]

    compare.same(found)


def test_only_keys_that_are_arguments_or_results_are_constrained_over_auto_axes():
    # A constraint on every key would keep XLA from folding the seeding.
    same(
        [
            lambda s: s.constraints(lambda x: x + s.random.normal(s.random.key(3), x.shape)),
            lambda s: s.constraints(lambda x: (x, s.random.key(3))),
            lambda s: s.constraints(lambda x: (x, s.random.split(s.random.key(3), 4)[1])),
            lambda s: s.constraints(lambda x: s.lax.scan(lambda k, r: (s.random.split(k)[0], r), s.random.key(3), x)),
        ],
        constraints=lambda s: (
            lambda f: [
                line.split("<")[1]
                for line in s.jax.jit(f)
                .lower(s.ShapeDtypeStruct((8, 8), "float32", sharding=s.sharding("x")))
                .as_text()
                .splitlines()
                if "sharding_constraint" in line
            ]
        ),
    )


SPECS = [("x", "y", None), ("x", "y"), ("x",), (None, "y"), (), (("x", "y"),)]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_specs_of_keys_over_auto_axes_have_an_entry_for_each_axis(spec):
    def specs(s):
        mesh = s.jax.make_mesh((2, 4), ("x", "y"), axis_types=(s.AxisType.Auto,) * 2)
        seeds = s.jax.device_put(
            s.np.arange(128, dtype="uint32").reshape(8, 4, 4), s.jax.NamedSharding(mesh, s.P(*spec))
        )
        keys = s.jax.jit(s.jax.vmap(s.jax.vmap(s.jax.vmap(s.random.key))))(seeds)
        programs = [lambda k: k, lambda k: k[0], lambda k: k.T, lambda k: k.reshape(-1), lambda k: s.jnp.stack([k, k])]
        return [s.jax.jit(f)(keys).sharding.spec for f in programs] + [f(keys).sharding.spec for f in programs]

    same([specs])
