"""BCOO: sparse arrays in batched coordinate format."""

from minijax.base.faces import Face
from minijax.experimental.sparse.bcoo_names import BCOO_FUNCTIONS

__getattr__, __dir__ = _FACE = Face(
    __name__,
    BCOO_FUNCTIONS
    + """ bcoo_eliminate_zeros
minijax.experimental.sparse.bcoo_array: BCOO BCOOProperties Buffer CUSPARSE_DATA_DTYPES CUSPARSE_INDEX_DTYPES
""",
)
