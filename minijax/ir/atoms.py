"""Atoms, the operands and results of equations: variables and literals."""

from typing import Any, final

from minijax.base.naming import known_as
from minijax.ir.types import Aval


@known_as("jax._src.core.Var")
class Var:
    """A variable of a jaxpr, with a type but no name: names are assigned when it is printed."""

    __slots__ = ("aval", "__weakref__")

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self):
        return f"Var(id={id(self)}):{self.aval.str_short()}"


@known_as("jax._src.core.DropVar")
class DropVar(Var):
    """The variable of a result that is not used."""

    __slots__ = ()

    def __repr__(self):
        return "_"


@known_as("jax._src.core.Literal")
@final
class Literal:
    """A constant in place of a variable."""

    __slots__ = ("val", "aval")

    def __init__(self, val: Any, aval: Aval):
        self.val = val
        self.aval = aval

    @property
    def hash(self) -> int | None:
        """A hash of the value; None if it has none."""
        try:
            return hash(self.val)
        except TypeError:
            return hash((self.val.item(), self.val.dtype)) if getattr(self.val, "shape", None) == () else None

    def __repr__(self):
        kind = _TYPED.get(self.aval.dtype.kind) if self.aval.weak_type else None
        return f"Literal({kind}({self.val}, dtype={self.aval.dtype}))" if kind else f"Literal({self.val})"


_TYPED = {"i": "TypedInt", "c": "TypedComplex"}  # jax's names for weakly typed constants


Atom = Var | Literal
