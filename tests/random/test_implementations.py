"""Keys of XLA's own generator: words, bits, jaxprs and errors, against jax."""

import copy
import pickle

import numpy as np
import pytest
from compare import Case, both, same, same_jaxpr, same_value, sweep, theirs

import minijax
from minijax import random

IMPLS = ("rbg", "unsafe_rbg")
DRAWS = {
    "words of splits": lambda r, k: r.key_data(r.split(k, 3)),
    "words of splits of two axes": lambda r, k: r.key_data(r.split(k, (2, 2))),
    "words of a fold": lambda r, k: r.key_data(r.fold_in(k, 5)),
    "bits": lambda r, k: [r.bits(k, s, d) for s in ((), (5,), (0,), (2, 3)) for d in ("uint8", "uint16", "uint32")],
    "numbers": lambda r, k: [r.uniform(k, (3,)), r.normal(k, (2, 2)), r.gamma(k, 2.0), r.randint(k, (3,), 0, 9)],
    "choices": lambda r, k: [r.permutation(k, 5), r.choice(k, 5, (2,)), r.categorical(k, np.zeros(3), shape=(4,))],
}
MAPPED = {
    "bits": lambda jax, k: jax.vmap(lambda k: jax.random.bits(k, (2,)))(jax.random.split(k, 3)),
    "normals": lambda jax, k: jax.vmap(jax.random.normal)(jax.random.split(k, 3)),
    "splits": lambda jax, k: jax.vmap(lambda k: jax.random.key_data(jax.random.split(k)))(jax.random.split(k, 3)),
    "folds": lambda jax, k: jax.vmap(lambda i: jax.random.key_data(jax.random.fold_in(k, i)))(np.arange(3)),
    "both": lambda jax, k: jax.vmap(lambda k, i: jax.random.key_data(jax.random.fold_in(k, i)))(
        jax.random.split(k, 3), np.arange(3)
    ),
    "twice": lambda jax, k: jax.vmap(jax.vmap(jax.random.bits))(jax.random.split(k, (2, 3))),
}  # fmt: skip


def keyed(name, impl, draw):
    return Case(name, lambda jax: lambda seed: draw(jax, jax.random.key(seed, impl=impl)), (np.uint32(7),))


@pytest.mark.oracle
@pytest.mark.parametrize("impl", IMPLS)
def test_draws_are_those_of_jax(impl, tier):
    cases = [keyed(name, impl, lambda jax, k, draw=draw: draw(jax.random, k)) for name, draw in DRAWS.items()]
    sweep([*cases, *(keyed(f"vmap of {name}", impl, draw) for name, draw in MAPPED.items())], tier)


@pytest.mark.oracle
@pytest.mark.parametrize("impl", IMPLS)
def test_draws_in_64_bits_are_those_of_jax(impl):
    with minijax.enable_x64(True), theirs().enable_x64(True):
        draw = lambda jax: [  # noqa: E731
            jax.random.bits(jax.random.key(7, impl=impl), (3,), "uint64"),
            jax.random.uniform(jax.random.key(2**40 + 3, impl=impl), (3,)),
        ]
        same_value(*both(draw))


@pytest.mark.oracle
@pytest.mark.parametrize("impl", IMPLS)
def test_jaxprs_show_the_generator(impl):
    key = lambda jax: jax.random.key(0, impl=impl)  # noqa: E731
    same_jaxpr(lambda jax: lambda: jax.random.split(key(jax)))
    same_jaxpr(lambda jax: lambda: jax.vmap(jax.random.bits)(jax.random.split(key(jax), 2)))
    same(lambda jax: [str(key(jax)), str(key(jax).dtype), jax.random.key_impl(key(jax)), key(jax).shape])


@pytest.mark.oracle
def test_legacy_keys_and_the_default_implementation():
    same(lambda jax: jax.random.PRNGKey(3, impl="unsafe_rbg"))

    def of_default(jax):
        with jax.default_prng_impl("rbg"):
            return jax.random.PRNGKey(1), jax.random.key_data(jax.random.key(1)), jax.random.bits(jax.random.PRNGKey(1))

    same(of_default)
    wrapped = lambda shape: (  # noqa: E731
        lambda jax: jax.random.key_data(jax.random.wrap_key_data(jax.numpy.zeros(shape, "uint32"), impl="rbg"))
    )
    same(wrapped((2, 4)))
    same(wrapped((2,)), raises=True)


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_survive_copies_and_files(impl):
    keys = random.split(random.key(1, impl=impl), 2)
    for other in (copy.deepcopy(keys), pickle.loads(pickle.dumps(keys))):
        assert other.dtype == keys.dtype
        np.testing.assert_array_equal(random.key_data(other), random.key_data(keys))


def test_unknown_implementations_are_refused():
    with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
        random.key(0, impl="nope")
    with pytest.raises(NotImplementedError, match="philox4x32"):
        random.key(0, impl="philox4x32")
