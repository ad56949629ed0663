# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.profiler import (get_profiled_instructions_proto as get_profiled_instructions_proto)
