"""jax.profiler: profiles of time and of memory."""

from minijax.base.faces import Face
from minijax.run.programs.launching import record_stacks as _record_stacks

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.run.watching.profiler: ProfileData ProfileEvent ProfileOptions ProfilePlane StepTraceAnnotation TraceAnnotation
    annotate_function device_memory_profile register_subprocess save_device_memory_profile start_server start_trace
    stop_server stop_trace trace
""",
)

_record_stacks()  # memory profiles show them
