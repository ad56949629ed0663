"""jax.interpreters.batching: rules of vectorisation."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.interop.rules: axis_primitive_batchers bdim_at_front broadcast defbroadcasting defreducer defvectorized
    fancy_primitive_batchers primitive_batchers
minijax.api.vmap: register_vmappable unregister_vmappable
""",
    removed={"jax.interpreters.batching.{0} is deprecated.": "NotMapped"},
)
