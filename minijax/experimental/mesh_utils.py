"""jax.experimental.mesh_utils: arrays of devices for meshes."""

from minijax.api.meshes import (
    create_device_mesh as create_device_mesh,
    create_hybrid_device_mesh as create_hybrid_device_mesh,
)
