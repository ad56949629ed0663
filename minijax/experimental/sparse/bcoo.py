"""BCOO: sparse arrays in batched coordinate format."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.experimental.sparse.bcoo_array: BCOO BCOOProperties Buffer
minijax.experimental.sparse.bcoo_dense: bcoo_extract bcoo_extract_p bcoo_fromdense bcoo_fromdense_p bcoo_todense
    bcoo_todense_p
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
