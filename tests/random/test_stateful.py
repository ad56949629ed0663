"""jax.experimental.random: the numbers, counts and errors of a generator with a state, against jax."""

import numpy as np
import pytest
from compare import same, same_jaxpr

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.random import StatefulPRNG, stateful_rng

oracle = pytest.mark.oracle


def generator(jax, seed=42, **options):
    return __import__(f"{jax.__name__}.experimental.random", fromlist=["x"]).stateful_rng(seed, **options)


DRAWS = {
    "random": lambda r: [r.random(), r.random(3), r.random((2, 0)), r.random(dtype="float16")],
    "uniform": lambda r: [r.uniform(1, 2, (2,)), r.uniform(np.zeros(3, np.float32), 1), r.uniform()],
    "normal": lambda r: [r.normal(1, 2, (2,)), r.normal(1, np.arange(3)), r.normal(size=(2,), dtype="float16")],
    "integers": lambda r: [r.integers(5), r.integers(0, 5, (3,)), r.integers(5, size=3, dtype="int8")],
}


@oracle
@pytest.mark.parametrize("name", DRAWS)
def test_draws_and_jaxprs_are_those_of_jax(name):
    same(lambda jax: DRAWS[name](generator(jax)))
    same_jaxpr(lambda jax: lambda: DRAWS[name](generator(jax))[1])


@oracle
def test_keys_children_and_parts_are_those_of_jax():
    def words(jax):
        r = generator(jax)
        children = r.spawn(2)
        keys = [r.key(), r.key(2), r.key((2, 3)), r.split(2)._base_key, *(c.key() for c in children)]
        return [jax.random.key_data(k) for k in keys]

    same(words)
    same(lambda jax: jax.random.key_data(generator(jax, 3, impl="rbg").key()))
    same(lambda jax: jax.vmap(lambda r: r.random((2,)))(generator(jax).split(3)))


@oracle
def test_the_count_goes_on_in_programs():
    def counted(jax):
        r = generator(jax)
        drawn = [jax.jit(lambda r: r.random())(r), jax.jit(lambda: r.random())()]
        drawn.append(jax.lax.scan(lambda c, _: (c, r.random()), 0, None, length=3)[1])
        drawn.append(jax.lax.fori_loop(0, 3, lambda i, x: x + r.random(), 0.0))
        return drawn, r._counter[...], jax.jit(lambda seed: generator(jax, seed).random())(3)

    same(counted)


@oracle
@pytest.mark.parametrize(
    "misuse",
    [
        lambda jax: generator(jax).split(2).random(),
        lambda jax: generator(jax, jax.random.key(0)),
        lambda jax: generator(jax, np.arange(2)),
        lambda jax: generator(jax).integers(3, dtype=float),
        lambda jax: generator(jax).normal(dtype=int),
        lambda jax: generator(jax).random(2.0),
        lambda jax: jax.jit(lambda: generator(jax, None).random())(),
        lambda jax: jax.vmap(lambda x: x + generator(jax, None).random())(np.arange(3.0)),
        lambda jax: jax.vmap(lambda r, x: x + r.random(), in_axes=(None, 0))(generator(jax), np.arange(3.0)),
        lambda jax: type(generator(jax))(jax.random.PRNGKey(0), jax.new_ref(0)),
        lambda jax: type(generator(jax))(jax.random.key(0), 0),
        lambda jax: jax.tree.map(lambda x: None, generator(jax)),
    ],
    ids=[
        "split",
        "key",
        "array",
        "float integers",
        "integer normals",
        "size",
        "no seed in jit",
        "no seed in vmap",
        "unmapped",
        "raw key",
        "count of no reference",
        "tree of no generator",
    ],
)
def test_bad_calls_are_refused(misuse):
    same(misuse, raises=True)


def test_generators_are_pytrees_and_differ_unless_seeded():
    r = stateful_rng(1)
    leaves, treedef = jax.tree.flatten(r)
    assert isinstance(jax.tree.unflatten(treedef, leaves), StatefulPRNG)
    assert len(leaves) == 2
    assert not jnp.array_equal(stateful_rng().random(8), stateful_rng().random(8))
    first = [float(stateful_rng(1).random()), float(stateful_rng(1).random())]
    assert first[0] == first[1] != float((r.random(), r.random())[1])
