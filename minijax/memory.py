"""jax.memory: where the memory of a value is."""

from minijax.partition.memory import MemorySpace as Space  # noqa: F401
