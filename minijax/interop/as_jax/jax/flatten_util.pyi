# The names of this module's table, written by tests/write_stubs.py.

from minijax.flatten_util import (ravel_pytree as ravel_pytree)
