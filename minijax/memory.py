"""jax.memory: memory spaces."""

from minijax.partition.memory import MemorySpace as Space  # noqa: F401
