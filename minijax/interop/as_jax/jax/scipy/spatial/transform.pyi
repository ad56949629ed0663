# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.spatial.transform import (Rotation as Rotation, Slerp as Slerp)
