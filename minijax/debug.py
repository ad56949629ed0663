"""jax.debug: callbacks and prints in programs, and visualization of shardings."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.visualize: visualize_array_sharding visualize_sharding
minijax.composed.callbacks.inspect_sharding: inspect_array_sharding
minijax.composed.callbacks.debugger: breakpoint
minijax.composed.callbacks.debugging: callback=debug_callback log=debug_log print=debug_print
minijax.ir.effects: DebugEffect OrderedDebugEffect
""",
)
