# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Callable
from minijax.base.linear_util import StoreException as StoreException
from minijax.base.linear_util import WrappedFun as WrappedFun
from minijax.base.linear_util import WrappedFun as _WrappedFun
from minijax.base.linear_util import wrap_init as wrap_init
from minijax.interop.transformations import cache as cache
from minijax.interop.transformations import merge_linear_aux as merge_linear_aux
from typing import Any

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init"
]

def transformation(gen: Callable, fun: _WrappedFun, *gen_static_args: Any) -> _WrappedFun: ...
def transformation2(gen: Callable, fun: _WrappedFun, *gen_static_args: Any) -> _WrappedFun: ...
def transformation_with_aux(gen: Callable, fun: _WrappedFun, *gen_static_args: Any) -> Any: ...
def transformation_with_aux2(
    gen: Callable,
    fun: _WrappedFun,
    *gen_static_args: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any: ...
