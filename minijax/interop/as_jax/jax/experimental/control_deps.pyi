# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.control_deps import (control_dep as control_dep, schedule as schedule)
