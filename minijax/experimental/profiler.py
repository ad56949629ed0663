"""jax.experimental.profiler: profile data for profile-guided compilation."""

from minijax.run.watching.profiler import get_profiled_instructions_proto as get_profiled_instructions_proto
