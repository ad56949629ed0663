"""jax.experimental.pallas.ops.tpu.random.prng_utils: numbers of the elements of blocks."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, "minijax.kernels.ops.tpu_random: blocked_iota compute_scalar_offset round_up"
)
