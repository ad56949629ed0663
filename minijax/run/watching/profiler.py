"""Profiles of the process and its devices over time, and of device memory."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jaxlib import _profile_data, _profiler

from minijax.base import config, source
from minijax.base.lazy import defer
from minijax.run.clients import client
from minijax.run.watching import profile_frames

gzip, json, http_server = defer("gzip"), defer("json"), defer("http.server")

ProfileData, ProfileEvent = _profile_data.ProfileData, _profile_data.ProfileEvent
ProfilePlane = _profile_data.ProfilePlane


class ProfileOptions(_profiler.ProfileOptions):
    """Options of a profile: `python_tracer_level`, `host_tracer_level`, `session_id` and the other attributes.

    Example:
        >>> options = jax.profiler.ProfileOptions()
        >>> options.python_tracer_level = 0  # no Python functions
    """


# ---- traces ------------------------------------------------------------------------------------------


class _Running:
    """The profile being recorded, at most one in a process, and the options of its files."""

    session: Any = None
    folder = ""
    has_frames = False
    wants_perfetto = wants_link = False


_lock = threading.Lock()
_running = _Running()
_servers: list[Any] = []
_is_profiled = config.Condition("is_profiled", False)  # programs of this state have the names of their own operations


def start_trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Starts to record a profile of the process and its devices.

    `stop_trace` writes it to `log_dir/plugins/profile/<time>/`, where XProf and TensorBoard find it. With
    `create_perfetto_trace` it also writes `perfetto_trace.json.gz`, and with `create_perfetto_link` prints a link that
    shows it in a browser. `profiler_options`: a `ProfileOptions`. Raises RuntimeError if a profile is being recorded.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> jax.profiler.start_trace(folder)
        >>> _ = jax.block_until_ready(jnp.sin(1.0))
        >>> jax.profiler.stop_trace()
        >>> os.listdir(folder)
        ['plugins']
    """
    with _lock:
        if _running.session is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        client.clients()  # creating the clients registers the profilers of their devices
        options = [] if profiler_options is None else [profiler_options]
        _running.session = _profiler.ProfilerSession(*options)
        _running.folder = str(log_dir)
        _running.has_frames = profiler_options is None or profiler_options.python_tracer_level > 0
        _running.wants_link = create_perfetto_link
        _running.wants_perfetto = create_perfetto_trace or create_perfetto_link
        _is_profiled.set(True)


def stop_trace() -> None:
    """Stops the recording that `start_trace` began, and writes the profile.

    With `create_perfetto_link` it waits until a browser has fetched the trace. Raises RuntimeError if no profile is
    being recorded, and JaxRuntimeError if the files cannot be written.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> jax.profiler.start_trace(folder)
        >>> jax.profiler.stop_trace()
        >>> os.listdir(folder)
        ['plugins']
    """
    with _lock:
        session, _running.session = _running.session, None
        _is_profiled.set(is_watching())
        folder, wants_perfetto, wants_link = _running.folder, _running.wants_perfetto, _running.wants_link
        if session is None:
            raise RuntimeError("No profile started: stop_trace ends what start_trace began.")
        if _running.has_frames and source.hides_frames():
            recorded = session.stop()
            session.export(profile_frames.without_own_frames(recorded), folder)
        else:
            session.stop_and_export(folder)
    if wants_perfetto:
        path = write_perfetto_trace(newest_profile(folder))
        if wants_link:
            offer(path)


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Records a profile in a `with` statement; its arguments and errors are those of `start_trace`.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with jax.profiler.trace(folder):
        ...     _ = jax.block_until_ready(jnp.sin(1.0))
        >>> os.listdir(folder)
        ['plugins']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def is_watching() -> bool:
    """Returns whether a profile is being recorded, or a server is running from which one may be recorded."""
    return _running.session is not None or bool(_servers)


def newest_profile(folder: str) -> Path:
    """The folder of the latest profile in `log_dir`."""
    return max(Path(folder, "plugins", "profile").iterdir(), key=os.path.getmtime)


def write_perfetto_trace(profile: Path) -> Path:
    """Writes a profile's trace for Perfetto, with the two entries that Perfetto understands."""
    (source,) = profile.glob("*.trace.json.gz")
    with gzip.open(source, "rt", encoding="utf-8") as file:
        content = json.load(file)
    path = profile / "perfetto_trace.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({k: content[k] for k in ("displayTimeUnit", "traceEvents")}, file)
    return path


_PERFETTO = "https://ui.perfetto.dev"
_PORT = 9001  # the only one from which that page fetches traces


def offer(path: Path) -> None:
    """Prints a link that shows a trace, and serves the trace until it has been fetched."""
    content = path.read_bytes()
    fetched = threading.Event()

    class Handler(http_server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != f"/{path.name}":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/gzip")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Access-Control-Allow-Origin", _PERFETTO)
            self.end_headers()
            self.wfile.write(content)
            fetched.set()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http_server.HTTPServer(("127.0.0.1", _PORT), Handler) as server:
        print(f"Open URL in browser: {_PERFETTO}/#!/?url=http://127.0.0.1:{_PORT}/{path.name}", flush=True)
        while not fetched.is_set():
            server.handle_request()


# ---- annotations -------------------------------------------------------------------------------------


class TraceAnnotation(_profiler.TraceMe):
    """Names a span of time in profiles, in a `with` statement: `TraceAnnotation(name, **metadata)`.

    Example:
        >>> with jax.profiler.TraceAnnotation("load", file=3):
        ...     x = jnp.ones(2)
    """


class StepTraceAnnotation(TraceAnnotation):
    """Marks a step of a program in a `with` statement; with its number `step_num`, tools can compare steps.

    Example:
        >>> for i in range(2):
        ...     with jax.profiler.StepTraceAnnotation("train", step_num=i):
        ...         _ = jnp.sin(1.0)
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable, name: str | None = None, **decorator_kwargs: Any) -> Callable:
    """Wraps a function to name its calls in profiles, by default by its own name; keywords are metadata.

    Example:
        >>> @jax.profiler.annotate_function
        ... def load():
        ...     return jnp.ones(2)
        >>> load()
        Array([1., 1.], dtype=float32)
    """
    name = name or func.__name__

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(name, **decorator_kwargs):
            return func(*args, **kwargs)

    return wrapper


def call_annotated(name: str, call: Callable, args: tuple, kwargs: dict) -> Any:
    """Calls a jitted function under the name that profiles use for such calls."""
    try:
        with TraceAnnotation(f"PjitFunction({name})"):
            return call(*args, **kwargs)
    finally:
        config.unready()  # so that the next call is annotated too


# ---- the server, and other processes -----------------------------------------------------------------


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Starts a server from which XProf and TensorBoard can record profiles of this process.

    `requires_backend=False` starts it before the devices. Raises ValueError if a server is running already.

    Example:
        >>> server = jax.profiler.start_server(0)
        >>> jax.profiler.stop_server()
    """
    with _lock:
        if _servers:
            raise ValueError("Only one profiler server can be active at a time.")
        if requires_backend:
            client.clients()
        _servers.append(_profiler.start_server(port))
        _is_profiled.set(True)
        return _servers[0]


def stop_server() -> None:
    """Stops the server. Raises ValueError if no server is running.

    Example:
        >>> _ = jax.profiler.start_server(0)
        >>> jax.profiler.stop_server()
    """
    with _lock:
        if not _servers:
            raise ValueError("No active profiler server.")
        _servers.clear()
        _is_profiled.set(is_watching())


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Includes profiles of a subprocess, whose profiler server listens at `port`, in profiles of this process.

    Returns a function that undoes this. Raises JaxRuntimeError for the process itself.
    """
    return _profiler.register_subprocess(pid, port)


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """The costs of instructions in a directory's profiles, serialized for XLA's scheduler.

    Raises JaxRuntimeError if the directory contains no profiles.
    """
    return _profiler.get_profiled_instructions_proto(tensorboard_dir)


# ---- memory ------------------------------------------------------------------------------------------


def device_memory_profile(backend: str | None = None) -> bytes:
    """Returns the allocations in the memory of a backend's devices, in compressed pprof format.

    Programs that were called after `minijax.profiler` was imported have stacks.

    Example:
        >>> type(jax.profiler.device_memory_profile())
        <class 'bytes'>
    """
    return gzip.compress(client.get_client(backend).heap_profile())


def save_device_memory_profile(filename: Any, backend: str | None = None) -> None:
    """Writes `device_memory_profile` to a file.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     jax.profiler.save_device_memory_profile(f"{folder}/memory.prof")
        ...     os.listdir(folder)
        ['memory.prof']
    """
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)
