# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.ndimage import (map_coordinates as map_coordinates)
