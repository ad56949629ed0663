# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.colocated_python.func import (FunctionInfo as FunctionInfo, Specialization as
    Specialization, is_prng_key_dtype as is_prng_key_dtype, make_callable as make_callable)
