"""jax.ref: mutable references."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.composed.refs: addupdate empty_ref free_ref freeze get new_ref set swap
minijax.ir.refs: AbstractRef Ref
""",
)
