"""Memory spaces of values."""

import enum

from minijax.base.naming import known_as


@known_as("jax._src.core.MemorySpace")
class MemorySpace(enum.Enum):
    """Names the memory spaces of values: that of their device, or of the host.

    Example:
        >>> x = jax.device_put(jnp.ones(2), jax.memory.Space.Host)
        >>> x.sharding.memory_kind
        'pinned_host'
    """

    Device = 1
    Host = 2
    Any = 3

    __hash__ = object.__hash__  # by identity, as members are compared: types are looked up by them

    def __repr__(self):
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


Device, Host = MemorySpace.Device, MemorySpace.Host
