"""The differences between jaxlib's versions, each asked of jaxlib itself, with the versions that have it."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from jaxlib import _jax

from minijax.base.native import JAXLIB_VERSION

# Up to 0.11.1 a handler checks its buffers unless it is told not to; later ones never do.
_handler_checks = "_skip_checks" in _jax.array_result_handler.__doc__
result_handler: Callable[..., Any] = (
    functools.partial(_jax.array_result_handler, _skip_checks=True) if _handler_checks else _jax.array_result_handler
)


def set_build_option(build: Any, name: str, value: object) -> None:
    """Sets an option of XLA's builds; the two efforts are gone from 0.11.1 on, so that they only cause a warning."""
    if name.endswith("_effort") and not hasattr(build, name):
        warnings.warn(f"jaxlib {JAXLIB_VERSION} has no {name}, so it is ignored", stacklevel=2)
    else:
        setattr(build, name, value)


def plugin_interface(client: Any, platform: str) -> Any:
    """The argument by which jaxlib finds a plugin's HLO transformations: its C interface from 0.11.0 on."""
    return _jax.get_pjrt_plugin(platform) if hasattr(_jax, "get_pjrt_plugin") else client
