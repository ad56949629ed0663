"""jax.experimental.hijax: types of values and primitives that users define."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.ir.refs: AbstractRef
minijax.ir.types: AbstractValue ShapedArray Zero
minijax.ir.primitive: is_undefined_primal=is_linear
minijax.primitives.zeros: instantiate_zeros=instantiate
""",
    missing={
        "jax.experimental.hijax.{0} is not there yet: types of values that users define are.": """
        AvalMutableQDD AvalQDD HiPrimitive HiPspec HiType MutableHiType TransformedRef VJPHiPrimitive aval_method
        aval_property register_hitype
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
