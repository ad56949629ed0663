# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.api import (empty as empty, eye as eye, todense as todense, todense_p as todense_p)
