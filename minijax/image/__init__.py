"""jax.image: resizing and resampling."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {"minijax.image.scale": "ResizeMethod resize scale_and_translate"})
