# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Iterator
from minijax.run.watching.profiler import ProfileOptions as ProfileOptions
from minijax.run.watching.profiler import ProfileOptions as _ProfileOptions
from minijax.run.watching.profiler import ProfilePlane as ProfilePlane
from minijax.run.watching.profiler import StepTraceAnnotation as StepTraceAnnotation
from minijax.run.watching.profiler import TraceAnnotation as TraceAnnotation
from minijax.run.watching.profiler import annotate_function as annotate_function
from minijax.run.watching.profiler import device_memory_profile as device_memory_profile
from minijax.run.watching.profiler import register_subprocess as register_subprocess
from minijax.run.watching.profiler import save_device_memory_profile as save_device_memory_profile
from minijax.run.watching.profiler import start_server as start_server
from minijax.run.watching.profiler import start_trace as start_trace
from minijax.run.watching.profiler import stop_server as stop_server
from minijax.run.watching.profiler import stop_trace as stop_trace
from os import PathLike
from typing import Any

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation", "TraceAnnotation",
    "annotate_function", "device_memory_profile", "register_subprocess", "save_device_memory_profile", "start_server",
    "start_trace", "stop_server", "stop_trace", "trace"
]

ProfileData: Any
ProfileEvent: Any
def trace(
    log_dir: PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: _ProfileOptions | None = None,
) -> Iterator[None]: ...
