# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Callable
from collections.abc import Sequence
from minijax.base.linear_util import WrappedFun
from minijax.experimental.jet.rules import def_comp as def_comp
from minijax.experimental.jet.rules import def_deriv as def_deriv
from minijax.experimental.jet.rules import deflinear as deflinear
from minijax.experimental.jet.rules import defzero as defzero
from minijax.experimental.jet.rules import deriv_prop as deriv_prop
from minijax.experimental.jet.rules import jet_rules as jet_rules
from minijax.experimental.jet.rules import linear_prop as linear_prop
from minijax.experimental.jet.rules import zero_prop as zero_prop
from minijax.experimental.jet.tracing import JetTrace as JetTrace
from minijax.experimental.jet.tracing import JetTracer as JetTracer
from minijax.experimental.jet.tracing import ZeroSeries as ZeroSeries
from minijax.experimental.jet.tracing import ZeroSeries as _ZeroSeries
from minijax.experimental.jet.tracing import ZeroTerm as ZeroTerm
from minijax.experimental.jet.tracing import ZeroTerm as _ZeroTerm
from minijax.experimental.jet.tracing import call_param_updaters as call_param_updaters
from minijax.experimental.jet.transform import fact as fact
from minijax.experimental.jet.transform import jet as jet
from typing import Any

__all__ = [
    "JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "call_param_updaters", "def_comp", "def_deriv", "deflinear",
    "defzero", "deriv_prop", "fact", "jet", "jet2", "jet_fun", "jet_rules", "jet_subtrace", "linear_prop",
    "traceable", "zero_prop", "zero_series", "zero_term"
]

def jet2(
    fun: Callable,
    primals: Sequence,
    series: Sequence,
    *,
    factorial_scaled: bool = False,
    **_: Any,
) -> tuple[Any, Any]: ...
def jet_fun(fun: WrappedFun, *gen_static_args: Any) -> WrappedFun: ...
def jet_subtrace(fun: WrappedFun, *gen_static_args: Any) -> WrappedFun: ...
def traceable(fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False) -> Any: ...
zero_series: _ZeroSeries
zero_term: _ZeroTerm
