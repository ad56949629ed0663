"""Random bits by kernels for TPUs: the bits are jax's, in the simulator; the kernels are lowered for TPUs."""

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.pallas.ops.tpu import example_kernel
from minijax.experimental.pallas.ops.tpu.random import philox, prng_utils, threefry

compare.SHORT_NAMES |= {
    "philox": "experimental.pallas.ops.tpu.random.philox",
    "plfry": "experimental.pallas.ops.tpu.random.threefry",
    "prng_utils": "experimental.pallas.ops.tpu.random.prng_utils",
    "simulator": "experimental.pallas.tpu",
}
KEY = np.array([3, 7], np.uint32)
pytestmark = pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler")
DRAWS = {
    "scalar": lambda philox, plfry, key: philox.philox_random_bits(key, 32, ()),
    "vector": lambda philox, plfry, key: philox.philox_random_bits(key, 32, (5,)),
    "matrix": lambda philox, plfry, key: philox.philox_random_bits(key, 32, (20, 30)),
    "whole_blocks": lambda philox, plfry, key: philox.philox_random_bits(key, 32, (256, 512))[::32, ::32],
    "matrices": lambda philox, plfry, key: philox.philox_random_bits(key, 32, (2, 3, 20)),
    "from_an_offset": lambda philox, plfry, key: philox.philox_4x32_count(key, (4, 9), offset=100),
    "both_words": lambda philox, plfry, key: philox.philox_4x32_kernel(
        key, (8, 128), (8, 128), (8, 128), offset=5, fuse_output=False
    ),
    "split": lambda philox, plfry, key: philox.philox_split(key, (3, 2)),
    "fold_in": lambda philox, plfry, key: philox.philox_fold_in(key, np.uint32(9)),
    "threefry_scalar": lambda philox, plfry, key: plfry.plthreefry_random_bits(key, 32, ()),
    "threefry_vector": lambda philox, plfry, key: plfry.plthreefry_random_bits(key, 32, (300,)),
    "threefry_matrices": lambda philox, plfry, key: plfry.plthreefry_random_bits(key, 32, (2, 20, 30)),
    "threefry_blocks": lambda philox, plfry, key: plfry.threefry_2x32_count(key, (16, 256), (16, 250), (8, 128)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", DRAWS)
def test_bits_are_those_of_jax(name):
    def program(jnp, philox, plfry, simulator):
        with simulator.force_tpu_interpret_mode():
            return DRAWS[name](philox, plfry, jnp.asarray(KEY))

    compare.same(program, rtol=0, atol=0)


IMPLS = ["pallas_philox4x32", "pallas_threefry2x32"]


@pytest.mark.oracle
@pytest.mark.parametrize("impl", IMPLS)
def test_keys_of_these_generators(impl):
    def program(jax, philox, plfry):  # importing the modules defines the generators
        key = jax.random.key(5, impl=impl)
        return str((philox.plphilox_prng_impl.name, plfry.plthreefry_prng_impl.tag, key.dtype)), jax.random.key_data(
            key
        )

    compare.same(program, rtol=0, atol=0)


def test_keys_draw_by_the_kernels():
    key = jax.random.key(5, impl=IMPLS[0])
    words = jax.random.key_data(key)
    np.testing.assert_array_equal(jax.random.key_data(jax.random.split(key, 3)), philox.philox_split(words, (3,)))
    np.testing.assert_array_equal(jax.random.bits(key, (3, 5)), philox.philox_random_bits(words, 32, (3, 5)))
    folded = jax.random.key_data(jax.random.fold_in(key, 4))
    np.testing.assert_array_equal(folded, philox.philox_fold_in(words, jnp.uint32(4)))
    key = jax.random.key(5, impl=IMPLS[1])
    drawn = threefry.plthreefry_random_bits(jax.random.key_data(key), 32, (3, 5))
    np.testing.assert_array_equal(jax.random.bits(key, (3, 5)), drawn)


def test_interpreted_and_simulated_bits_are_equal():
    whole = philox.philox_random_bits(jnp.asarray(KEY), 32, (40, 300))
    assert len(np.unique(whole)) == whole.size
    ours = threefry.plthreefry_random_bits(jnp.asarray(KEY), 32, (40, 300))
    counts = np.arange(40 * 300, dtype=np.uint32)
    expected = jax.extend.random.threefry2x32_p.bind(*map(jnp.uint32, KEY), jnp.zeros_like(counts), jnp.asarray(counts))
    np.testing.assert_array_equal(np.ravel(ours), expected[0] ^ expected[1])


@pytest.mark.parametrize("draw", [philox.philox_random_bits, threefry.plthreefry_random_bits])
def test_kernels_are_lowered_for_tpus(draw):
    f = jax.jit(lambda key: draw(key, 32, (300, 500)))
    assert f.trace(KEY).lower(lowering_platforms=("tpu",)).as_text().count("tpu_custom_call") == 1


MISTAKES = {
    "Only 32-bit PRNG supported": lambda philox, plfry, key: philox.philox_random_bits(key, 64, (3,)),
    "Shape dimension (8, 100) must be divisible by (8, 128)": lambda philox, plfry, key: philox.philox_4x32_kernel(
        key, (8, 100), (8, 100), (8, 128)
    ),
    "Offset must be scalar, got (2,)": lambda philox, plfry, key: philox.philox_4x32_count(key, (3,), offset=key),
    "Shape too large": lambda philox, plfry, key: plfry.threefry_2x32_count(
        key, (2**20, 2**13), (2**20, 2**13), (8, 128)
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("message", MISTAKES)
def test_errors_are_those_of_jax(message):
    compare.same_refusal(
        lambda jnp, philox, plfry: lambda: MISTAKES[message](philox, plfry, jnp.asarray(KEY)), [message]
    )


@pytest.mark.oracle
def test_numbers_of_blocks():
    def program(jnp, philox, prng_utils):
        parts = philox.mul32_hi_lo(jnp.asarray(KEY) * np.uint32(10**9), jnp.uint32(4 * 10**9))
        words = philox.philox_4x32(*[jnp.asarray(KEY + n) for n in range(4)], jnp.uint32(5), jnp.uint32(6), rounds=7)
        offset = prng_utils.compute_scalar_offset((1, 2, 3), (9, 20, 30), (1, 4, 8))
        return parts, words, prng_utils.blocked_iota((3, 4), (9, 20)), offset, prng_utils.round_up(9, 8)

    compare.same(program, rtol=0, atol=0)


def test_an_offset_is_the_number_of_an_element():
    assert prng_utils.compute_scalar_offset((1, 2), (9, 20), (4, 8)) == np.ravel_multi_index((4, 16), (9, 20))


def test_an_array_times_two():
    np.testing.assert_array_equal(example_kernel.double(jnp.arange(8.0)), 2 * np.arange(8.0))
