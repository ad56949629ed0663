# The names of this module's table, written by tests/write_stubs.py.

from minijax.composed.refs import addupdate as addupdate
from minijax.composed.refs import empty_ref as empty_ref
from minijax.composed.refs import free_ref as free_ref
from minijax.composed.refs import freeze as freeze
from minijax.composed.refs import get as get
from minijax.composed.refs import new_ref as new_ref
from minijax.composed.refs import set as set
from minijax.composed.refs import swap as swap
from minijax.ir.refs import AbstractRef as AbstractRef
from minijax.ir.refs import Ref as Ref

__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"
]
