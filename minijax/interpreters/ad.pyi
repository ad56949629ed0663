# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.rules import add_tangents as add_tangents
from minijax.interop.rules import defbilinear as defbilinear
from minijax.interop.rules import defjvp as defjvp
from minijax.interop.rules import defjvp2 as defjvp2
from minijax.interop.rules import deflinear as deflinear
from minijax.interop.rules import deflinear2 as deflinear2
from minijax.interop.rules import get_primitive_transpose as get_primitive_transpose
from minijax.interop.rules import primitive_jvps as primitive_jvps
from minijax.interop.rules import primitive_transposes as primitive_transposes
from minijax.ir.primitive import UndefinedPrimal as UndefinedPrimal
from minijax.ir.primitive import is_undefined_primal as is_undefined_primal
from minijax.ir.types import Zero as Zero
from minijax.primitives.zeros import add_any as add_jaxvals
from minijax.primitives.zeros import add_any_p as add_jaxvals_p
from minijax.primitives.zeros import instantiate as instantiate_zeros
from minijax.primitives.zeros import zeros_like_aval as zeros_like_aval
from minijax.transforms.jvp import JVPTrace as JVPTrace
from minijax.transforms.jvp import JVPTracer as JVPTracer

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents", "defbilinear",
    "defjvp", "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros",
    "is_undefined_primal", "primitive_jvps", "primitive_transposes", "zeros_like_aval"
]
