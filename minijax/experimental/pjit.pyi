# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Callable
from typing import Any
from typing_extensions import deprecated

__all__ = [
]

@deprecated("jax.experimental.pjit.pjit has been deprecated. Please use `jax.jit` instead.")
def pjit(
    fun: Callable,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: Any = None,
    inline: bool = False,
    compiler_options: Any = None,
) -> Any: ...
