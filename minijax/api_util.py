"""jax.api_util: the arguments of functions by position, name and leaf."""

from minijax.api.arguments import (
    debug_info as debug_info,
    donation_vector as donation_vector,
    flatten_axes as flatten_axes,
    rebase_donate_argnums as rebase_donate_argnums,
    safe_map as safe_map,
    shaped_abstractify as shaped_abstractify,
)
