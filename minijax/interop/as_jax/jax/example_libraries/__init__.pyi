# The names of this module's table, written by tests/write_stubs.py.

from minijax.example_libraries import (optimizers as optimizers, stax as stax)
