# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.random import (StatefulPRNG as StatefulPRNG, stateful_rng as stateful_rng)
