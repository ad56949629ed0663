"""Imports jax, where it is installed, before a test runs a program.

jaxlib makes its table of conversions with the first array. One that was made before jax's typed numbers were registered
gives them the wrong width in jax's eager operations, which `test_mixed_widths.py` asks for.
"""

import contextlib

with contextlib.suppress(ImportError):
    import jax  # noqa: F401
