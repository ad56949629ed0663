"""Profiles of time and of memory, their files, and the names in them."""

import contextlib
import gzip
import http.client
import importlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from compare import ended, same

import minijax
from minijax import profiler
from minijax.run.watching import collect_profile

X = np.ones((3, 3), np.float32)
HOST = socket.gethostname()


@pytest.fixture(autouse=True)
def nothing_left():
    """Ends what a test that fails would leave running: there is one profile in a process."""
    yield
    sides = [profiler, *([sys.modules["jax.profiler"]] if "jax.profiler" in sys.modules else [])]
    for side in sides:
        for stop in (side.stop_trace, side.stop_server):
            with contextlib.suppress(RuntimeError, ValueError):
                stop()


def options(**given):
    made = profiler.ProfileOptions()
    for name, value in {"python_tracer_level": 0, **given}.items():
        setattr(made, name, value)
    return made


def profiler_of(jax):
    return importlib.import_module(f"{jax.__name__}.profiler")


def experimental(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.profiler")


def events_in(folder):
    (path,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
    data = profiler.ProfileData.from_file(str(path))
    return [(e.name, dict(e.stats)) for p in data.planes for line in p.lines for e in line.events]


def files_in(folder):
    return {path.name for path in Path(folder).glob("plugins/profile/*/*")}


def test_a_trace_holds_the_events_of_a_program(tmp_path):
    @minijax.jit
    def watched(x):
        return minijax.numpy.sin(x) @ x

    with profiler.trace(tmp_path, profiler_options=options()):
        with profiler.TraceAnnotation("first", size=3):
            watched(X).block_until_ready()
        for step in range(2):
            with profiler.StepTraceAnnotation("train", step_num=step):
                watched(X).block_until_ready()
    events = events_in(tmp_path)
    names = [name for name, _ in events]
    assert {"lower_sharding_computation", "backend_compile_and_load"} <= set(names)
    ops = [stats["hlo_op"] for _, stats in events if stats.get("hlo_module") == "jit_watched"]
    assert len(ops) >= 6 and sum("sin" in op for op in ops) == 3
    assert ("first", {"size": 3}) in events
    assert [stats for name, stats in events if name == "train"] == [{"step_num": n, "_r": 1} for n in range(2)]
    assert files_in(tmp_path) == {f"{HOST}.xplane.pb", f"{HOST}.trace.json.gz"}


@pytest.mark.parametrize("is_served", [False, True])
def test_programs_that_are_compiled_in_front_of_a_profiler_name_their_operations(tmp_path, is_served):
    def named(x):
        with minijax.named_scope("inside"):
            return minijax.numpy.tanh(x) * 2.5 + is_served

    lowered = minijax.jit(named).lower(X)
    if is_served:
        profiler.start_server(free_port())
    else:
        profiler.start_trace(tmp_path, profiler_options=options())
    text = lowered.compile().as_text()
    assert 'op_name="jit(named)/inside/tanh"' in text and __file__ in text


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_calls_of_an_annotated_function_have_its_name(tmp_path):
    def plain(x, *, y=1):
        """A sum."""
        return x + y

    class Model:
        @profiler.annotate_function
        def method(self, x):
            return x

    named = profiler.annotate_function(plain, name="named", kind="sum")
    with profiler.trace(tmp_path, profiler_options=options()):
        assert profiler.annotate_function(plain)(1) == 2 and named(1, y=2) == 3 and Model().method(5) == 5
    events = events_in(tmp_path)
    assert [e for e in events if e[0] in ("plain", "named", "method")] == [
        ("plain", {}),
        ("named", {"kind": "sum"}),
        ("method", {}),
    ]
    assert named.__name__ == "plain" and named.__doc__ == "A sum."


def test_calls_of_jitted_functions_have_the_names_of_jax(tmp_path):
    def double(x):
        return x * 2

    g, x = minijax.jit(double), minijax.numpy.ones(4)
    compiled = g.lower(x).compile()
    g(x)
    with minijax.profiler.trace(str(tmp_path)):
        g(x), g(x), compiled(x)
        with minijax.disable_jit():
            g(x)
        assert minijax.jit(minijax.grad(lambda x: g(x)))(1.0) == 2
    g(x)
    names = [name for name, _ in events_in(tmp_path) if name.startswith("PjitFunction")]
    assert names.count("PjitFunction(double)") == 2
    assert names.count("PjitFunction(jit(double))") == 1
    assert names.count("PjitFunction(<lambda>)") == 1


def test_python_calls_are_traced_unless_the_options_disable_it(tmp_path):
    def called():
        return 3

    with profiler.trace(tmp_path):
        called()
    assert any("called" in name and name.startswith("$") for name, _ in events_in(tmp_path))


def frames_in(folder):
    """The Python frames in a profile, each as `file:line name` or `module name`, and how often they come."""
    return Counter(name[1:] for name, _ in events_in(folder) if name.startswith("$"))


def watched_program(jax, folder):
    """Has a profile taken of a program that traces, compiles, runs and differentiates the user's functions."""

    def helper(x):
        return jax.numpy.sin(x) @ x

    @jax.jit
    def step(x):
        return jax.lax.fori_loop(0, 2, lambda i, y: helper(y), x)

    def train(x):
        for _ in range(3):
            x = step(x)
        return jax.grad(lambda x: helper(x).sum())(x)

    with profiler_of(jax).trace(folder):
        y = train(X)
        thread = threading.Thread(target=train, args=[y])
        thread.start(), thread.join()
        np.asarray(y)


@pytest.mark.oracle
def test_profiles_have_the_users_frames_as_in_jax_and_no_frames_of_the_library(tmp_path):
    watched_program(minijax, str(tmp_path / "first"))  # loads modules, and pytest's finder adds frames
    for jax in (minijax, importlib.import_module("jax")):
        watched_program(jax, str(tmp_path / jax.__name__))
    ours, theirs = (frames_in(tmp_path / name) for name in ("minijax", "jax"))
    here = Path(__file__).name
    assert {f: n for f, n in ours.items() if f.startswith(here)} == {
        f: n for f, n in theirs.items() if f.startswith(here)
    }
    assert sum(n for f, n in ours.items() if f.endswith(" helper")) == 3  # once for `step`, twice for gradients
    assert sum(ours.values()) < sum(theirs.values()) / 10
    library = {path.name for path in Path(minijax.__file__).parent.rglob("*.py")} - {"__init__.py"}
    assert not library & {f.partition(":")[0] for f in ours}


def test_frames_of_a_user_s_file_stay_whatever_its_name(tmp_path):
    path = tmp_path / "array.py"  # as a file of the library
    path.write_text("def mine(call):\n    return call(), len('x')\n\ndef inner():\n    return len('y')\n")
    spec = importlib.util.spec_from_file_location("array_of_user", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with profiler.trace(tmp_path):
        module.mine(lambda: minijax.eval_shape(lambda x: (module.inner(), x)[1], X))
    frames = frames_in(tmp_path)
    assert frames["array.py:1 mine"] == frames["array.py:4 inner"] == 1 and frames["builtins len"] == 2


def test_the_library_s_frames_are_in_profiles_where_tracebacks_have_them(tmp_path):
    step = minijax.jit(lambda x: x + 1)
    step(X)
    minijax.config.update("jax_traceback_filtering", "off")
    try:
        with profiler.trace(tmp_path):
            step(X)
    finally:
        minijax.config.update("jax_traceback_filtering", "auto")
    assert any(frame.startswith("jitted.py:") for frame in frames_in(tmp_path))


def test_a_session_may_have_a_name_and_a_trace_for_perfetto(tmp_path):
    profiler.start_trace(str(tmp_path), create_perfetto_trace=True, profiler_options=options(session_id="first run"))
    profiler.stop_trace()
    path = tmp_path / "plugins" / "profile" / "first run" / "perfetto_trace.json.gz"
    assert set(json.loads(gzip.decompress(path.read_bytes()))) == {"displayTimeUnit", "traceEvents"}
    assert files_in(tmp_path) == {path.name, f"{HOST}.xplane.pb", f"{HOST}.trace.json.gz"}


def test_the_link_to_perfetto_serves_the_trace_until_it_was_fetched(tmp_path, capsys):
    profiler.start_trace(tmp_path, create_perfetto_link=True, profiler_options=options())
    stopping = threading.Thread(target=profiler.stop_trace)
    stopping.start()
    printed, until = "", time.monotonic() + 30
    while "\n" not in printed and time.monotonic() < until:
        time.sleep(0.01)
        printed += capsys.readouterr().out
    page, port, name = re.fullmatch(
        r"Open URL in browser: (\S+)/#!/\?url=http://127.0.0.1:(\d+)(\S+)\n", printed
    ).groups()

    def get(path):
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=10)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.getheader("Access-Control-Allow-Origin"), response.read()

    assert get("/else")[0] == 404 and stopping.is_alive()
    status, origin, content = get(name)
    stopping.join(timeout=10)
    assert (status, origin) == (200, page) and not stopping.is_alive()
    assert "traceEvents" in json.loads(gzip.decompress(content))


@pytest.mark.oracle
def test_misuse_raises_as_in_jax(tmp_path):
    def program(jax):
        p = profiler_of(jax)
        folder = str(tmp_path / jax.__name__)

        def nested():
            with p.trace(folder), p.trace(folder):
                pass

        def failing():
            with p.trace(folder):
                raise KeyError(1)

        calls = [
            p.stop_trace,
            lambda: p.start_trace(folder, profiler_options="x"),
            p.stop_trace,
            nested,
            failing,
            p.stop_trace,
            p.stop_server,
            lambda: p.start_server("port"),
            lambda: p.register_subprocess(os.getpid(), 9999),
            lambda: p.register_subprocess("x", 9999),
            lambda: p.device_memory_profile("nope"),
            lambda: p.save_device_memory_profile(f"{folder}/absent/x"),
            lambda: experimental(jax).get_profiled_instructions_proto(f"{folder}/absent"),
            lambda: p.annotate_function(3),
            lambda: p.TraceAnnotation(3),
            lambda: p.StepTraceAnnotation(),
            lambda: p.ProfileOptions().__setattr__("session_id", 3),
        ]
        return [ended(call, phrases) for call in calls]

    phrases = ["No profile started", "Only one profile may be run at a time", "No active profiler server"]
    found = same(program)
    for at, phrase in zip((0, 3, 6), phrases, strict=True):
        assert phrase in found[at]


def test_a_profile_that_cannot_be_written_does_not_keep_the_next_from_starting(tmp_path):
    (tmp_path / "file").touch()
    profiler.start_trace(tmp_path / "file" / "folder", profiler_options=options())
    with pytest.raises(minijax.errors.JaxRuntimeError, match="not a directory"):
        profiler.stop_trace()
    with profiler.trace(tmp_path, profiler_options=options()):
        pass
    assert files_in(tmp_path)


def test_there_is_one_server():
    port = free_port()
    profiler.start_server(port)
    with pytest.raises(ValueError, match="Only one profiler server can be active at a time"):
        profiler.start_server(port)
    with socket.create_connection(("127.0.0.1", port), timeout=10):
        pass
    profiler.stop_server()
    profiler.start_server(port, requires_backend=False)
    profiler.stop_server()


def test_profiles_of_memory_are_compressed_and_tell_of_arrays(tmp_path):
    def the_line_that_made_it():
        return minijax.device_put(np.ones(1000, np.float32))

    held = the_line_that_made_it()
    profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    for profile in ((tmp_path / "memory.prof").read_bytes(), profiler.device_memory_profile()):
        assert b"the_line_that_made_it" in gzip.decompress(profile)
    assert held.shape == (1000,)


@pytest.mark.oracle
def test_options_are_those_of_jax():
    def program(jax):
        made = profiler_of(jax).ProfileOptions()
        return {name: getattr(made, name) for name in dir(made) if not name.startswith("_")}

    same(program)


def test_profiles_of_instructions_are_read(tmp_path):
    with profiler.trace(tmp_path, profiler_options=options()):
        minijax.jit(lambda x: x @ x)(X).block_until_ready()
    assert isinstance(experimental(minijax).get_profiled_instructions_proto(str(tmp_path)), bytes)


def test_profiles_of_other_processes_need_xprof():
    if importlib.util.find_spec("xprof") is None:
        with pytest.raises(ImportError, match="This script requires `xprof` to be installed"):
            importlib.import_module("minijax.collect_profile")


@pytest.fixture
def requests(monkeypatch):
    """The calls of a replacement for xprof, which writes a profile."""
    asked = []

    def trace(address, folder, workers, dataset_ops, duration, attempts, options):
        asked.append((address, duration, attempts, options))
        profile = Path(folder, "plugins", "profile", "now")
        profile.mkdir(parents=True)
        (profile / "host.xplane.pb").touch()

    def convert(paths, tool, params):
        assert [path.name for path in paths] == ["host.xplane.pb"]
        return '{"displayTimeUnit": "ns", "traceEvents": [], "metadata": {}}', "application/json"

    monkeypatch.setattr(collect_profile, "xprof_plugin", SimpleNamespace(trace=trace))
    monkeypatch.setattr(collect_profile, "xprof_convert", SimpleNamespace(xspace_to_tool_data=convert))
    return asked


def test_profiles_of_other_processes_are_written_as_those_of_this_one(requests, tmp_path, monkeypatch, capsys):
    offered = []
    monkeypatch.setattr(collect_profile.profiler, "offer", offered.append)
    collect_profile.collect_profile(7, 50, "far", tmp_path, True, {"python_tracer_level": 0})
    assert requests == [("far:7", 50, 3, {"host_tracer_level": 2, "device_tracer_level": 1, "python_tracer_level": 0})]
    assert files_in(tmp_path) == {"host.xplane.pb", "remote.trace.json.gz"} and not offered
    flags = ["8", "60", "--host_tracer_level=3", "--on", "--level", "-1", "--name=x", "--off=false"]
    collect_profile.main(*collect_profile.parser.parse_known_args(flags))
    address, duration, _, options = requests[1]
    assert (address, duration) == ("127.0.0.1:8", 60)
    levels = {"host_tracer_level": 3, "device_tracer_level": 1, "python_tracer_level": 1}
    assert options == {**levels, "on": True, "level": -1, "name": "x", "off": False}
    assert [path.name for path in offered] == ["perfetto_trace.json.gz"]
    assert str(tmp_path) in capsys.readouterr().out
    with pytest.raises(ValueError, match="Unknown positional argument encountered: extra"):
        collect_profile.main(*collect_profile.parser.parse_known_args(["8", "60", "extra"]))


def test_a_profile_of_a_program_that_says_import_jax(tmp_path):
    code = f"import jax\nwith jax.profiler.trace({str(tmp_path)!r}):\n    print(jax.numpy.ones(3))"
    run = subprocess.run([sys.executable, "-m", "minijax", "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout == "[1. 1. 1.]\n", run.stderr
    assert any(name.endswith(".xplane.pb") for name in files_in(tmp_path))
