"""jax.experimental.source_mapper.jaxpr: source maps of jaxprs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, {"minijax.interop.source_maps": "canonicalize_filename compile_jaxpr make_jaxpr_dump"}
)
