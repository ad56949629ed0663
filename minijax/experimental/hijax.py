"""jax.experimental.hijax: user-defined types and primitives."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.ir.refs: AbstractRef
minijax.composed.refs: TransformedRef
minijax.ir.hitypes: AvalMutableQDD AvalQDD HiPrimitive HiPspec HiType MutableHiType aval_method aval_property
minijax.calls.hi_primitive: VJPHiPrimitive
minijax.numpy.hitypes: register_hitype
minijax.ir.types: AbstractValue ShapedArray Zero
minijax.ir.primitive: is_undefined_primal=is_undefined_primal
minijax.ir.effects: control_flow_allowed_effects
minijax.primitives.zeros: instantiate_zeros=instantiate
""",
    missing={
        "jax.experimental.hijax.{0} is not there: views of references have no type of their own.": "TransformedRef"
    },
)
