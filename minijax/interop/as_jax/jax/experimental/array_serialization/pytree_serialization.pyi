# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.array_serialization.pytree_serialization import (load as load, load_pytreedef as
    load_pytreedef, nonblocking_load as nonblocking_load, nonblocking_save as nonblocking_save, save as save)
