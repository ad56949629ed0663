# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.linear_util import WrappedFun
from minijax.interop.arguments import argnums_partial as argnums_partial
from minijax.interop.arguments import debug_info as debug_info
from minijax.interop.arguments import donation_vector as donation_vector
from minijax.interop.arguments import flatten_axes as flatten_axes
from minijax.interop.arguments import rebase_donate_argnums as rebase_donate_argnums
from minijax.interop.arguments import safe_map as safe_map
from minijax.interop.arguments import shaped_abstractify as shaped_abstractify
from typing import Any

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "rebase_donate_argnums", "safe_map", "shaped_abstractify"
]

def flatten_fun(
    fun: WrappedFun,
    *gen_static_args: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any: ...
def flatten_fun_nokwargs(
    fun: WrappedFun,
    *gen_static_args: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any: ...
