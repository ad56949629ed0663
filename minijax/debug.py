"""jax.debug: callbacks and prints in programs, and visualization of shardings."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.visualize: visualize_array_sharding visualize_sharding
minijax.composed.callbacks.debugging: callback=debug_callback inspect_array_sharding log=debug_log print=debug_print
minijax.composed.callbacks.debugger: breakpoint
minijax.ir.effects: DebugEffect OrderedDebugEffect
""",
)
