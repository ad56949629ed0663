"""jax.memory: where the memory of a value is."""

from minijax.ir.types import MemorySpace as Space  # noqa: F401
