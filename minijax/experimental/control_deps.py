"""jax.experimental.control_deps: the order in which values are computed."""

from minijax.composed.ffi import control_dep as control_dep, schedule as schedule
