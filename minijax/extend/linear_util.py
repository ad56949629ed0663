"""jax.extend.linear_util: functions wrapped in transformations."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.base.linear_util: StoreException WrappedFun wrap_init
minijax.interop.transformations: cache merge_linear_aux transformation transformation2 transformation_with_aux
    transformation_with_aux2
""",
)
