# The names of this module's table, written by tests/write_stubs.py.

from minijax.calls.hi_primitive import VJPHiPrimitive as VJPHiPrimitive
from minijax.composed.refs import TransformedRef as TransformedRef
from minijax.ir.effects import control_flow_allowed_effects as control_flow_allowed_effects
from minijax.ir.hitypes import AvalMutableQDD as AvalMutableQDD
from minijax.ir.hitypes import AvalQDD as AvalQDD
from minijax.ir.hitypes import HiPrimitive as HiPrimitive
from minijax.ir.hitypes import HiPspec as HiPspec
from minijax.ir.hitypes import HiType as HiType
from minijax.ir.hitypes import MutableHiType as MutableHiType
from minijax.ir.hitypes import aval_method as aval_method
from minijax.ir.hitypes import aval_property as aval_property
from minijax.ir.primitive import is_undefined_primal as is_undefined_primal
from minijax.ir.refs import AbstractRef as AbstractRef
from minijax.ir.types import AbstractValue as AbstractValue
from minijax.ir.types import ShapedArray as ShapedArray
from minijax.ir.types import Zero as Zero
from minijax.numpy.hitypes import register_hitype as register_hitype
from minijax.primitives.zeros import instantiate as instantiate_zeros
from typing import Any

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec", "HiType", "MutableHiType",
    "ShapedArray", "TransformedRef", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "register_hitype"
]

TransformedRef: Any
