"""jax.experimental.hijax: types of values and primitives that users define.

They can be defined, so that libraries import; programs cannot contain them yet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from minijax.base.faces import Face
from minijax.ir.primitive import Primitive
from minijax.ir.types import AbstractValue, register_value_type

_MISSING = "jax.experimental.hijax: programs of {0} are not there yet: types of values that users define are."


class HiType(AbstractValue):
    """A type of values that users define, in terms of types that XLA has."""


class MutableHiType(AbstractValue):
    """A type of values that change in place."""


class HiPrimitive(Primitive):
    """An operation on values whose types users define. To call it raises NotImplementedError."""

    def __init__(self, name: str):
        super().__init__(name)

    def bind(self, *operands: Any, **params: Any) -> NoReturn:
        raise NotImplementedError(_MISSING.format(self.name))


@dataclass
class aval_method:
    """A method of the values of a type, an attribute of the type."""

    fun: Callable


@dataclass
class aval_property:
    """A property of the values of a type, an attribute of the type."""

    fget: Callable


def register_hitype(val_cls: type, typeof_fn: Callable) -> None:
    """Says what type the values of a class have. An operation on them raises NotImplementedError."""

    def typeof(_: Any) -> NoReturn:
        raise NotImplementedError(_MISSING.format(val_cls.__name__))

    register_value_type(val_cls, typeof)


_FACE = Face(
    __name__,
    (),
    """
minijax.ir.refs: AbstractRef
minijax.ir.types: ShapedArray Zero
minijax.ir.primitive: is_undefined_primal=is_linear
minijax.ir.effects: control_flow_allowed_effects
minijax.primitives.zeros: instantiate_zeros=instantiate
""",
    missing={
        "jax.experimental.hijax.{0} is not there yet: types of values that users define are.": """
        AvalMutableQDD AvalQDD HiPspec TransformedRef VJPHiPrimitive
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
