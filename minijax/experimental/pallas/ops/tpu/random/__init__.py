"""jax.experimental.pallas.ops.tpu.random: random bits by kernels for TPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {}, ("philox", "prng_utils", "threefry"))
