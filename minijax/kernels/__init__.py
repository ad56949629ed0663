"""minijax.kernels: Pallas, and what a kernel reads and writes in each step of its grid."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.picture: visualize")
