"""`jax.ad`: what the caller of a `vjp` function wants for an argument, and what it gets in place of a cotangent."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from minijax.base import tree
from minijax.composed.refs import addupdate
from minijax.ir.types import Zero
from minijax.primitives.zeros import instantiate


@dataclass(frozen=True)
class GradValue:
    """Asks `with_refs` for the cotangent of an argument as a value."""


@dataclass(frozen=True)
class DontWant:
    """Tells `with_refs` that the cotangent of an argument is not needed; it is not computed."""


@dataclass(frozen=True)
class GradRef:
    """The result for an argument whose cotangent was added to a reference."""


@dataclass(frozen=True)
class DidntWant:
    """The result for an argument whose cotangent was not wanted."""


for _kind in (GradRef, DidntWant):
    tree.register_pytree_node(_kind, lambda _: ((), ()), lambda *_, kind=_kind: kind())

ad = SimpleNamespace(DontWant=DontWant, DidntWant=DidntWant, GradRef=GradRef, GradValue=GradValue)


def delivered(ct: Any, ref: Any, is_unwanted: bool) -> Any:
    """What a `vjp` function returns for an argument: its cotangent, or a marker in its place."""
    if is_unwanted:
        return DidntWant()
    if ref is None:
        return instantiate(ct)
    if type(ct) is not Zero:
        addupdate(ref, ..., ct)
    return GradRef()
