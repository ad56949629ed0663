# The names of this module's table, written by tests/write_stubs.py.

from minijax.image.scale import ResizeMethod as ResizeMethod
from minijax.image.scale import resize as resize
from minijax.image.scale import scale_and_translate as scale_and_translate

__all__ = [
    "ResizeMethod", "resize", "scale_and_translate"
]
