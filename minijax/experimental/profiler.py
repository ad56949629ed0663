"""jax.experimental.profiler: what profiles say to the compiler."""

from minijax.run.profiler import get_profiled_instructions_proto as get_profiled_instructions_proto
