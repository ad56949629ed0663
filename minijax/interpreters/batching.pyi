# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.vmap import register_vmappable as register_vmappable
from minijax.api.vmap import unregister_vmappable as unregister_vmappable
from minijax.interop.rules import axis_primitive_batchers as axis_primitive_batchers
from minijax.interop.rules import bdim_at_front as bdim_at_front
from minijax.interop.rules import broadcast as broadcast
from minijax.interop.rules import defbroadcasting as defbroadcasting
from minijax.interop.rules import defreducer as defreducer
from minijax.interop.rules import defvectorized as defvectorized
from minijax.interop.rules import fancy_primitive_batchers as fancy_primitive_batchers
from minijax.interop.rules import primitive_batchers as primitive_batchers

__all__ = [
    "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer", "defvectorized",
    "fancy_primitive_batchers", "primitive_batchers", "register_vmappable", "unregister_vmappable"
]
