"""The memories that values lie in."""

import enum

from minijax.base.naming import known_as


@known_as("jax._src.core.MemorySpace")
class MemorySpace(enum.Enum):
    """Where the memory of a value is: with its device, or with the host."""

    Device = 1
    Host = 2
    Any = 3

    __hash__ = object.__hash__  # members are compared by identity, and types are looked up by them

    def __repr__(self):
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


Device, Host = MemorySpace.Device, MemorySpace.Host
