# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.introspection import Value as Val
from minijax.interop.partial_evaluation import PartialVal as PartialVal
from minijax.interop.partial_evaluation import dce_jaxpr as dce_jaxpr
from minijax.interop.partial_evaluation import dce_jaxpr_consts as dce_jaxpr_consts
from minijax.interop.partial_evaluation import trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic
from minijax.interop.partial_evaluation import trace_to_jaxpr_nounits as trace_to_jaxpr_nounits
from minijax.interop.rules import dce_jaxpr_call_rule as dce_jaxpr_call_rule
from minijax.interop.rules import dce_jaxpr_closed_call_rule as dce_jaxpr_closed_call_rule
from minijax.interop.rules import dce_rules as dce_rules
from minijax.interop.rules import partial_eval_jaxpr_custom_rules as partial_eval_jaxpr_custom_rules
from minijax.ir.trace import DynamicJaxprTracer as DynamicJaxprTracer
from minijax.ir.trace import DynamicJaxprTracer as JaxprTracer

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "dce_jaxpr", "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts", "dce_rules", "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"
]
