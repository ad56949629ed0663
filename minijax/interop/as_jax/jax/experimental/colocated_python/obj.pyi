# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.colocated_python.obj import (wrap_class as wrap_class)
