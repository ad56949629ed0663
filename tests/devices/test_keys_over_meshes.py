"""Arrays of random keys that lie over Explicit axes, and cotangents where no mesh is set, against jax."""

import compare
import pytest
from mesh_language import same, same_errors

pytestmark = pytest.mark.oracle


def words(s, *sizes):
    return s.jnp.arange(2 * int(s.np.prod(sizes)), dtype=s.jnp.uint32).reshape(*sizes, 2)


GIVEN = {
    "keys": lambda s: s.random.wrap_key_data(s.jax.reshard(words(s, 8, 4), s.P("x", "y"))),
    "row": lambda s: s.random.wrap_key_data(s.jax.reshard(words(s, 8), s.P("x"))),
    "seeds": lambda s: s.jax.reshard(s.jnp.arange(8), s.P("x")),
    "knows_mesh": lambda s: lambda f: not s.jax.make_jaxpr(f)().out_avals[0].sharding.mesh.empty,
    "words": lambda s: lambda *sizes: words(s, *sizes),
}


def test_keys_lie_as_their_words_or_seeds_do():
    same(
        """
        [jax.typeof(keys), keys.sharding.spec, random.key_data(keys), random.clone(row)]
        jaxpr(lambda k: random.key_data(k), keys)
        run(jax.vmap(random.split), row)
        types(jax.vmap(random.bits), row)
        types(jax.vmap(jax.vmap(random.normal)), keys)
        types(jax.vmap(random.key), seeds)
        types(jax.vmap(random.PRNGKey), seeds)
        types(jax.vmap(random.fold_in), row, seeds)
        types(lambda k: jnp.where(k == k, k, k), keys)
        types(lambda k: k.T, keys)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_what_is_drawn_of_a_key_lies_over_the_mesh_that_is_set():
    same(
        """
        knows_mesh(lambda: random.key(5))
        knows_mesh(lambda: random.key_data(random.key(5)))
        knows_mesh(lambda: random.key_data(random.split(random.key(5), 3)))
        knows_mesh(lambda: random.wrap_key_data(jnp.zeros(2, jnp.uint32)))
        knows_mesh(lambda: random.fold_in(random.key(5), 3))
        knows_mesh(lambda: random.bits(random.key(5), (3,)))
        types(jax.vmap(lambda x: random.split(random.PRNGKey(5), 3)), seeds)
        """,
        setting="explicit",
        **GIVEN,
    )


def test_the_words_of_one_key_are_not_split():
    same_errors(
        [("jax.jit(random.wrap_key_data)(jax.reshard(words(8, 4), P('x', None, 'y')))", "replicated")],
        setting="explicit",
        **GIVEN,
    )


# No mesh is set: the arrays alone know theirs.
OF_NO_MESH = [
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


@pytest.mark.parametrize("function", OF_NO_MESH)
def test_cotangents_on_one_device_meet_values_over_a_mesh_that_is_not_set(function):
    def found(jax):
        mesh = jax.make_mesh((4, 2), ("x", "y"))
        v = jax.device_put(jax.numpy.arange(4.0) + 1, jax.NamedSharding(mesh, jax.P("x")))
        results = function(jax, jax.numpy, v)
        if hasattr(results, "jaxpr"):
            return compare.normal(str(results)), []
        leaves = jax.tree.leaves(results)
        return [str(jax.typeof(x)) for x in leaves], [x.tolist() for x in leaves]

    assert found(compare.ours()) == found(compare.theirs())
