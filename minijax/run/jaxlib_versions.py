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


# Options that later versions lack: the first from 0.11.0 on, which do without it, the others from 0.11.1 on.
_NEEDLESS = "xla_gpu_enable_llvm_module_compilation_parallelism"
_REMOVED = (_NEEDLESS, "exec_time_optimization_effort", "memory_fitting_effort")


def set_option(options: Any, name: str, value: object) -> None:
    """Sets an option of XLA's, or warns that this version does not have it any more."""
    if name not in _REMOVED or hasattr(options, name):
        setattr(options, name, value)
    elif name != _NEEDLESS:
        warnings.warn(f"jaxlib {JAXLIB_VERSION} has no option {name}: it is ignored", stacklevel=2)


def plugin_interface(client: Any, platform: str) -> Any:
    """The argument by which jaxlib finds a plugin's HLO transformations: its C interface from 0.11.0 on."""
    return _jax.get_pjrt_plugin(platform) if hasattr(_jax, "get_pjrt_plugin") else client
