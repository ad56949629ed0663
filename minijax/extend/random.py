"""jax.extend.random: generators of random bits."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.composed.random: rbg_prng_impl threefry_prng_impl unsafe_rbg_prng_impl
minijax.primitives.random_bits: threefry2x32_p threefry_2x32
minijax.random.keys: define_prng_impl random_seed seed_with_impl
""",
    partial=True,
)
