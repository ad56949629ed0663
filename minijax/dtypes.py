"""Dtypes, their promotion and their limits."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
ml_dtypes: bfloat16
minijax.base.dtypes: TypePromotionError canonicalize_dtype extended finfo float0 iinfo issubdtype itemsize_bits
    prng_key result_type scalar_type_of
""",
)
