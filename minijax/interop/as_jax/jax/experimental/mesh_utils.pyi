# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.mesh_utils import (create_device_mesh as create_device_mesh, create_hybrid_device_mesh as
    create_hybrid_device_mesh)
