"""jax.experimental.pallas.ops.tpu.random.threefry: random bits by Threefry, with a generator of that name."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    "minijax.kernels.ops.tpu_random: BLOCK_SIZE plthreefry_prng_impl plthreefry_random_bits threefry_2x32_count",
)
