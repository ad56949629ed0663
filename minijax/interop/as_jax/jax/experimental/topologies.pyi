# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.topologies import (Device as Device, TopologyDescription as TopologyDescription,
    get_attached_topology as get_attached_topology, get_topology_desc as get_topology_desc, make_mesh as make_mesh)
