"""Keys of the other generators: words, bits, jaxprs, texts and errors, against jax."""

import copy
import pickle

import numpy as np
import pytest
from compare import Case, same, same_jaxpr, same_text, sweep, wide_numbers

from minijax import random
from minijax.primitives import random_bits

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
    with wide_numbers():
        draw = lambda jax: [  # noqa: E731
            jax.random.bits(jax.random.key(7, impl=impl), (3,), "uint64"),
            jax.random.uniform(jax.random.key(2**40 + 3, impl=impl), (3,)),
        ]
        same(draw)


@pytest.mark.oracle
@pytest.mark.parametrize("impl", IMPLS)
def test_jaxprs_show_the_generator(impl):
    key = lambda jax: jax.random.key(0, impl=impl)  # noqa: E731
    same_jaxpr(lambda jax: lambda: jax.random.split(key(jax)))
    same_jaxpr(lambda jax: lambda: jax.vmap(jax.random.bits)(jax.random.split(key(jax), 2)))
    same(lambda jax: [str(key(jax)), str(key(jax).dtype), jax.random.key_impl(key(jax)), key(jax).shape])


TEXTS = {
    "seed": lambda jax, impl: lambda s: jax.random.key_data(jax.random.key(s, impl=impl)),
    "seeds": lambda jax, impl: jax.vmap(TEXTS["seed"](jax, impl)),
    "split": lambda jax, impl: lambda s: jax.random.key_data(jax.random.split(jax.random.key(s, impl=impl), (2, 3))),
    "fold": lambda jax, impl: lambda s: jax.random.key_data(jax.random.fold_in(jax.random.key(s, impl=impl), s)),
    "folds": lambda jax, impl: jax.vmap(TEXTS["fold"](jax, impl)),
    "bits": lambda jax, impl: (
        lambda s: [
            jax.random.bits(jax.random.key(s, impl=impl), shape, dtype)
            for shape, dtype in (((), "uint32"), ((5,), "uint8"), ((2, 3), "uint64"), ((0, 3), "uint16"))
        ]
    ),
    "bits of each": lambda jax, impl: jax.vmap(TEXTS["bits"](jax, impl)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("impl", ("philox2x32", "philox4x32", "threefry4x32"))
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_texts_are_those_of_jax(impl, x64):
    with wide_numbers(x64):
        for name, program in TEXTS.items():
            arg = np.arange(3) if name in ("seeds", "folds", "bits of each") else np.int32(7)
            same_text(lambda jax, program=program: program(jax, impl), arg)


# From `kat_vectors` of Random123, the code of Salmon et al. (2011): all zeros, all ones, digits of pi.
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89)
ONES = (0xFFFFFFFF,) * 8
KNOWN = {
    ("threefry2x32", 2): ("6b200159 99ba4efe", "1cb996fc bb002be7", "c4923a9c 483df7a0"),
    ("threefry4x32", 4): (
        "9c6ca96a e17eae66 fc10ecd4 5256a7d8",
        "2a881696 57012287 f6c7446e a16a6732",
        "59cd1dbb b8879579 86b5d00c ac8b6d84",
    ),
    ("philox2x32", 1): ("ff1dae59 6cd10df2", "2c3f628b ab4fd7ad", "dd7ce038 f62a4c12"),
    ("philox4x32", 2): (
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
}


@pytest.mark.parametrize(("name", "key_size"), KNOWN)
def test_hashes_have_their_published_values(name, key_size):
    primitive = getattr(random_bits, f"{name}_p")
    for source, known in zip(((0,) * 8, ONES, PI), KNOWN[name, key_size], strict=True):
        expected = [int(word, 16) for word in known.split()]
        words, key = source[: len(expected)], source[len(expected) :][:key_size]
        assert [int(x) for x in primitive.bind(*map(np.uint32, (*key, *words)))] == expected


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
    for impl in IMPLS:
        same(lambda jax, impl=impl: jax.random.PRNGKey(3, impl=impl))


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_survive_copies_and_files(impl):
    keys = random.split(random.key(1, impl=impl), 2)
    for other in (copy.deepcopy(keys), pickle.loads(pickle.dumps(keys))):
        assert other.dtype == keys.dtype
        np.testing.assert_array_equal(random.key_data(other), random.key_data(keys))


def test_unknown_implementations_are_refused():
    with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
        random.key(0, impl="nope")
    with pytest.raises(ValueError, match="threefry4x32"):
        random.key(0, impl="threefry4x64")
