"""jax.experimental.pallas.ops.tpu.random.philox: random bits by Philox, with the generator `pallas_philox4x32`."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_random: BLOCK_SIZE mul32_hi_lo philox_4x32 philox_4x32_count philox_4x32_kernel philox_fold_in
    philox_random_bits philox_split plphilox_prng_impl
""",
)
