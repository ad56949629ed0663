"""Random bits, against jax: programs, texts and values."""

import numpy as np
import pytest
from compare import Case, canonical, jaxpr_text, lowered_text, same, same_error, sweep
from transform_matrix import transformed

import minijax
from minijax.primitives import random_bits

pytestmark = pytest.mark.oracle

KEY = np.uint32(7), np.uint32(99)


def words(*sizes):
    return np.random.RandomState(1).randint(0, 2**32, sizes, dtype=np.uint32)


def hashes():
    """The primitive, called, on both sides, each with its module."""
    theirs = pytest.importorskip("jax.extend.random").threefry2x32_p
    jax = pytest.importorskip("jax")
    return ((minijax, lambda *a: random_bits.threefry2x32_p.bind(*a)), (jax, lambda *a: theirs.bind(*a)))


OPERANDS = [
    (*KEY, words(4), words(4)),
    (*KEY, *KEY),
    (words(4), words(4), words(4), words(4)),
    (*KEY, words(2, 2), words(2, 2)),
    (words(4, 1), words(4, 1), words(1, 4), words(1, 4)),
    (*KEY, words(0), words(0)),
]


@pytest.mark.parametrize("operands", OPERANDS, ids=lambda o: str([np.shape(x) for x in o]))
def test_threefry_has_jax_s_program_and_bits(operands):
    (ours, mine), (theirs, other) = hashes()
    assert lowered_text(ours, mine, operands) == lowered_text(theirs, other, operands)
    assert jaxpr_text(ours, mine, operands) == jaxpr_text(theirs, other, operands)
    for a, b in zip(mine(*operands), other(*operands), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_threefry_is_written_out_for_accelerators_as_in_jax():
    texts = [m.jit(f).trace(*OPERANDS[0]).lower(lowering_platforms=("cuda",)).as_text() for m, f in hashes()]
    assert canonical(texts[0]) == canonical(texts[1])


@pytest.mark.parametrize("axes", [(0, 0, None, None), (None, None, 1, 0), (0, 0, 0, 0), (0, 0, 1, 1)])
def test_threefry_is_batched_as_in_jax(axes):
    operands = [
        (KEY[n] if n < 2 else words(4)) if d is None else (words(4) if n < 2 else words(4, 4))
        for n, d in enumerate(axes)
    ]
    texts = [jaxpr_text(m, m.vmap(f, in_axes=axes), operands) for m, f in hashes()]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("shape", [(4,), (3,), (2, 3), (), (0,), (1,)])
def test_the_hash_function_gives_jax_s_words(shape):
    theirs = pytest.importorskip("jax.extend.random").threefry_2x32
    found, wanted = (f(words(2), words(*shape)) for f in (random_bits.threefry_2x32, theirs))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize("operands", [(*KEY, words(4), words(2)), (*KEY, words(4).astype(np.int32), words(4))])
def test_threefry_rejects_shapes_and_dtypes_that_do_not_fit(operands):
    same_error(*(lambda f=f: f(*operands) for _, f in hashes()))


def test_xla_s_generators_equal_jax_s():
    def bits(**how):
        return lambda lax: lambda key: lax.rng_bit_generator(key, (3, 2), **how)

    def by_algorithm(name):
        return lambda lax: bits(algorithm=lax.RandomAlgorithm[name])(lax)

    cases = [
        Case(f"{np.dtype(d)}", bits(dtype=d), (words(4),), raises=d in (np.int32, np.float32))
        for d in (np.uint8, np.uint16, np.uint32, np.int32, np.float32)
    ]
    cases += [Case(name, by_algorithm(name), (words(4),)) for name in ("RNG_THREE_FRY", "RNG_PHILOX")]
    sweep(cases)
    # jax writes the new key with `dynamic_update_index_in_dim`, which is more operations.
    both = Case("both", lambda lax: lambda key: lax.rng_bit_generator(key, (3,)), (words(4),))
    sweep([transformed(both, t) for t in ("vmap", "vmap_along_1")], tier="full", jaxpr=False)


def test_uniform_numbers_are_between_their_bounds():
    found = np.asarray(random_bits.rng_uniform(2.0, 3.0, (50,)))
    assert found.shape == (50,) and (found >= 2).all() and (found < 3).all()
    jax = pytest.importorskip("jax")
    same_error(lambda: random_bits.rng_uniform(0.0, 1, (2,)), lambda: jax.lax.rng_uniform(0.0, 1, (2,)))


def test_weak_types_of_uniform_numbers():
    def types(lax):
        return [
            (str(r.dtype), r.weak_type)
            for r in (
                lax.rng_uniform(0.0, 1.0, (2,)),
                lax.rng_uniform(0, 5, (2,)),
                lax.rng_uniform(np.float32(0), 1.0, (2,)),
            )
        ]

    same(lambda lax: [str(types(lax))])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.complex64])
def test_uniform_numbers_of_dtypes_that_xla_cannot_draw_raise(dtype):
    with pytest.raises(TypeError, match="rng_uniform: unsupported dtype"):
        minijax.lax.rng_uniform(dtype(0), dtype(1), (2,))
