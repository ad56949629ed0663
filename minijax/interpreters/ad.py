"""jax.interpreters.ad: rules of differentiation."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.ir.primitive: UndefinedPrimal is_undefined_primal
minijax.ir.types: Zero
minijax.primitives.zeros: add_jaxvals=add_any add_jaxvals_p=add_any_p instantiate_zeros=instantiate zeros_like_aval
minijax.transforms.jvp: JVPTrace JVPTracer
minijax.interop.rules: add_tangents defbilinear defjvp defjvp2 deflinear deflinear2 get_primitive_transpose
    primitive_jvps primitive_transposes
""",
    removed={
        "jax.interpreters.ad.{0} was deprecated in v0.9.0. and removed in v0.10.0. It has been unused since JAX "
        "v0.4.38.": "reducing_transposes"
    },
)
