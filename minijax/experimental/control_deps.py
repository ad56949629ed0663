"""jax.experimental.control_deps: control dependencies between values."""

from minijax.composed.callbacks.ffi import control_dep as control_dep, schedule as schedule
