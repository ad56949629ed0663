"""jax.ref: mutable references."""

from minijax.ir.refs import AbstractRef as AbstractRef, Ref as Ref
from minijax.ops.refs import (
    addupdate as addupdate,
    freeze as freeze,
    get as get,
    new_ref as new_ref,
    set as set,
    swap as swap,
)
