"""The differences between versions of jaxlib, each detected by feature and listed with its versions."""

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

from jaxlib import _jax

from minijax.base.native import JAXLIB_VERSION

# Up to 0.11.1 a handler checks its buffers by default; in later versions it never does.
_handler_checks = "_skip_checks" in _jax.array_result_handler.__doc__
result_handler: Callable[..., Any] = (
    functools.partial(_jax.array_result_handler, _skip_checks=True) if _handler_checks else _jax.array_result_handler
)


# Options that later versions lack: the first from 0.11.0 on, where it is unnecessary, the others from 0.11.1 on.
_NEEDLESS = "xla_gpu_enable_llvm_module_compilation_parallelism"
_REMOVED = (_NEEDLESS, "exec_time_optimization_effort", "memory_fitting_effort")

# XLA's options for the CPU with which simple programs compile fastest; the second is absent from 0.11.2 on.
QUICK_TO_COMPILE: tuple[tuple[str, object], ...] = (("xla_backend_optimization_level", 0),)
if tuple(map(int, re.findall(r"\d+", JAXLIB_VERSION)[:3])) < (0, 11, 2):
    QUICK_TO_COMPILE += (("xla_cpu_use_fusion_emitters", False),)


def set_option(options: Any, name: str, value: object) -> None:
    """Sets an XLA option, or warns that this version no longer has it."""
    if name not in _REMOVED or hasattr(options, name):
        setattr(options, name, value)
    elif name != _NEEDLESS:
        warnings.warn(f"jaxlib {JAXLIB_VERSION} has no option {name}: it is ignored", stacklevel=2)


def plugin_interface(client: Any, platform: str) -> Any:
    """The argument that identifies a plugin for HLO transformations: its client, or from 0.11.0 on its C interface."""
    return _jax.get_pjrt_plugin(platform) if hasattr(_jax, "get_pjrt_plugin") else client
