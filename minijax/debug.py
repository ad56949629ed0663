"""jax.debug: pictures of shardings. What calls back to the host is not there."""

from minijax.api.visualize import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
