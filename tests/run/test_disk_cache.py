"""Programs on disk: who finds them, who must not, and what becomes of damaged ones."""

import contextlib
import errno
import importlib
import io
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import processes
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import monitoring
from minijax.base import cache, config
from minijax.run.programs import disk_cache, disk_files
from minijax.run.programs.compile import compile_count

X = np.arange(16, dtype=np.float32).reshape(4, 4)


def options(**values):
    """Context manager: the options of the disk cache with these values, in this thread."""
    stack = contextlib.ExitStack()
    for name, value in values.items():
        stack.enter_context(config.option(name)(value))
    return stack


@pytest.fixture
def folder(tmp_path):
    """A folder in which every program is stored."""
    chosen = tmp_path / "programs"
    disk_cache.reset_cache()
    with options(
        enable_compilation_cache=True, compilation_cache_dir=str(chosen), persistent_cache_min_compile_time_secs=0.0
    ):
        yield chosen
    disk_cache.reset_cache()


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("jit_*-minijax"))


def call(factor=2.0, x=X, **settings) -> tuple[np.ndarray, int]:
    """The result of a program that this process has dropped from its caches, and how often XLA compiled."""
    jax.clear_caches()
    before = compile_count()
    with options(**settings):
        result = np.asarray(jax.jit(lambda x: jnp.sin(x) @ x * factor)(x))
    return result, compile_count() - before


def heard(work) -> list[str]:
    """The events of the disk cache that listeners receive meanwhile."""
    told: list[str] = []

    def listen(event, *_, **__):
        if "compilation_cache" in event:
            told.append(event.rpartition("/")[2])

    monitoring.register_event_listener(listen)
    monitoring.register_event_duration_secs_listener(listen)
    try:
        work()
    finally:
        monitoring.unregister_event_listener(listen)
        monitoring.unregister_event_duration_listener(listen)
    return told


# ---- what is stored ----------------------------------------------------------------------------------


def test_a_program_is_compiled_once_and_then_loaded(folder):
    first, compiles = call()
    assert compiles == 1 and len(entries(folder)) == 1
    again, compiles = call()
    assert compiles == 0 and again.tobytes() == first.tobytes() == (np.asarray(jnp.sin(X) @ X * 2.0)).tobytes()


def test_programs_that_call_the_host_are_never_stored(folder):
    for function in (np.sin, np.cos):
        f = jax.jit(lambda x, f=function: jax.pure_callback(f, x, x))
        np.testing.assert_allclose(f(X), function(X), rtol=1e-6)
    assert entries(folder) == []


def test_listeners_receive_the_events_of_jax(folder):
    request = "compile_requests_use_cache"
    assert heard(call) == ["tasks_using_cache", request, "cache_misses"]
    assert heard(call) == [request, "cache_hits", "compile_time_saved_sec", "cache_retrieval_time_sec"]
    disk_cache.reset_cache()
    with options(enable_compilation_cache=False):
        assert heard(call) == ["task_disabled_cache"]


def test_the_file_and_its_folder_are_the_users_alone(folder):
    call()
    (entry,) = entries(folder)
    assert folder.stat().st_mode & 0o777 == 0o700 and entry.stat().st_mode & 0o777 == 0o600
    assert entry.name.startswith("jit__lambda") and list(folder.iterdir()) == [entry]


def test_source_positions_are_in_the_cache_key_only_on_request(folder):
    def located(module, name):
        text = f"module @jit_g {{ func.func public @main() -> tensor<f32> {{\n%r = stablehlo.constant dense<{module}> "
        return text + f': tensor<f32> loc("{name}")\nreturn %r : tensor<f32> }} }}'

    compile = importlib.import_module("minijax.run.programs.compile")

    def compiles(name):
        cache.clear_caches()
        before = compile_count()
        compile.compile_text(located("1.0", name), name="jit_g")
        return compile_count() - before

    assert [compiles("a.py"), compiles("b.py")] == [1, 0]
    with options(compilation_cache_include_metadata_in_key=True):
        assert [compiles("a.py"), compiles("b.py"), compiles("a.py")] == [1, 1, 0]


@pytest.mark.parametrize(
    "settings",
    [
        {"enable_compilation_cache": False},
        {"compilation_cache_dir": ""},
        {"persistent_cache_min_compile_time_secs": 1e6},
        {"persistent_cache_min_entry_size_bytes": 1 << 40},
        {"compilation_cache_max_size": 0},
        {"compilation_cache_max_size": 100},
    ],
)
def test_options_keep_programs_from_being_stored(folder, settings):
    assert [call(**settings)[1], call(**settings)[1]] == [1, 1] and not (folder.exists() and entries(folder))


def test_other_programs_options_and_types_are_other_entries(folder):
    call()
    assert call(factor=3.0)[1] == call(x=X[:2, :2])[1] == call(memory_fitting_level="O1")[1] == 1
    with options(enable_x64=True):
        wide, compiles = call(x=X.astype(np.float64))
        assert wide.dtype == np.float64 and compiles == 1
        assert call(x=X.astype(np.float64))[0].tobytes() == wide.tobytes()
    assert len(entries(folder)) == 5


def test_a_loaded_program_has_the_analyses_of_the_compiled_one(folder):
    def views():
        jax.clear_caches()
        compiled = jax.jit(lambda x: (x + 1.5, x @ x), donate_argnums=0).lower(X).compile()
        return compiled.as_text(), compiled.cost_analysis(), compiled.memory_analysis().argument_size_in_bytes

    first, before = views(), compile_count()
    assert views() == first and compile_count() == before


def test_donated_arguments_and_hidden_constants_survive(folder):
    constant = jnp.asarray(np.arange(64, dtype=np.float32))

    def run():
        jax.clear_caches()
        x, before = jax.device_put(np.ones(64, np.float32)), compile_count()
        y = jax.jit(lambda x: x * constant, donate_argnums=0)(x)
        return np.asarray(y).tolist(), x.is_deleted(), compile_count() - before

    assert run() == (list(range(64)), True, 1) and run() == (list(range(64)), True, 0)


def test_a_program_of_several_devices_is_loaded_for_them(folder):
    sharding = jax.NamedSharding(jax.make_mesh((4,), ("i",), devices=jax.devices()[:4]), jax.P("i"))

    def run():
        jax.clear_caches()
        x, before = jax.device_put(X, sharding), compile_count()
        y = jax.jit(lambda x: (x + 1, jnp.sum(x)))(x)
        return [np.asarray(part).tolist() for part in y], str(y[0].sharding), compile_count() - before

    first, again = run(), run()
    assert first[:2] == again[:2] and (first[2], again[2]) == (1, 0)


def test_linear_algebra_of_the_cpu_libraries_is_loaded(folder):
    def run():
        jax.clear_caches()
        before = compile_count()
        values = jax.jit(jnp.linalg.eigvalsh)(X + X.T)
        return np.asarray(values).tobytes(), compile_count() - before

    (first, one), (again, none) = run(), run()
    assert first == again and one == 1 and none == 0


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("xla_gpu_per_fusion_autotune_cache_dir", {"xla_gpu_per_fusion_autotune_cache_dir"}),
        ("none", set()), ("", set()), (None, set()), ("another", set()),
        ("xla_gpu_kernel_cache_file", {"xla_gpu_kernel_cache_file"}),
        ("all", {"xla_gpu_kernel_cache_file", "xla_gpu_per_fusion_autotune_cache_dir"}),
    ],
)  # fmt: skip
def test_xla_receives_the_paths_of_its_caches_and_keys_do_not_depend_on_them(folder, value, names):
    compile = importlib.import_module("minijax.run.programs.compile")
    with options(persistent_cache_enable_xla_caches=value):
        caches = disk_cache.xla_caches()
    assert {name for name, path in caches if path == str(folder / name)} == names
    devices, state = (jax.devices()[0],), config.state()
    prepared, serialized = compile._prepared_options(devices, (), compile.CLOSED, (), state, False, caches)
    assert serialized == compile._prepared_options(devices, (), compile.CLOSED, (), state, False)[1]
    assert (prepared.SerializeAsString() == serialized) == (not names)
    for setting in ({"compilation_cache_dir": None}, {"enable_compilation_cache": False}):
        with options(persistent_cache_enable_xla_caches=value, **setting):
            assert disk_cache.xla_caches() == ()


# ---- what is not to be trusted -----------------------------------------------------------------------


def truncate(entry):
    entry.write_bytes(entry.read_bytes()[:-100])


def empty(entry):
    entry.write_bytes(b"")


def flip(entry):
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)


def flip_seconds(entry):
    content = bytearray(entry.read_bytes())
    content[disk_files.HEADER.size - 1] ^= 1
    entry.write_bytes(content)


def open_to_the_group(entry):
    entry.chmod(0o620)


def open_to_all(entry):
    entry.chmod(0o602)


def link(entry):
    entry.rename(entry.with_name("moved"))
    entry.symlink_to(entry.with_name("moved"))


def make_pipe(entry):
    entry.unlink()
    os.mkfifo(entry)


def replace_program(entry):
    """Stores bytes that are not a program, with a correct checksum: only the checksum is verified."""
    content = entry.read_bytes()
    _, key, _, seconds = disk_files.HEADER.unpack_from(content)
    checksum = disk_files.checksum(key, seconds, b"no program")
    entry.write_bytes(disk_files.HEADER.pack(disk_files.FORMAT, key, checksum, seconds) + b"no program")


DAMAGES = [
    truncate, empty, flip, flip_seconds, open_to_the_group, open_to_all, link, make_pipe, replace_program,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_a_warning_and_a_compilation(folder, damage):
    first, _ = call()
    damage(*entries(folder))
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry for 'jit__lambda"):
        again, compiles = call()
    assert again.tobytes() == first.tobytes() and compiles == 1
    assert call()[1] == 0


def test_an_entry_that_cannot_be_replaced_is_a_warning_once(folder):
    call()
    (entry,) = entries(folder)
    entry.unlink()
    entry.mkdir()
    with pytest.warns(UserWarning) as told:
        assert [call()[1], call()[1], call(factor=3.0)[1]] == [1, 1, 1]
    assert [str(w.message).split()[1] for w in told] == ["reading", "writing"]


def test_another_programs_entry_is_not_run(folder):
    first, _ = call(factor=2.0)
    (entry,) = entries(folder)
    call(factor=3.0)
    (other,) = set(entries(folder)) - {entry}
    entry.write_bytes(other.read_bytes())
    with pytest.warns(UserWarning, match="another program or version"):
        assert call(factor=2.0)[0].tobytes() == first.tobytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_entry_is_not_run(folder):
    call()
    os.chown(*entries(folder), 12345, -1)
    with pytest.warns(UserWarning, match="owned by another user, 12345"):
        assert call()[1] == 1


def test_errors_are_raised_on_request(folder):
    call()
    truncate(*entries(folder))
    with pytest.raises(ValueError, match="checksum"):
        call(raise_persistent_cache_errors=True)


def test_contents_are_compared_on_request(folder):
    call(factor=2.0)
    (entry,) = entries(folder)
    _, key, _, seconds = disk_files.HEADER.unpack_from(entry.read_bytes())
    assert call(compilation_cache_check_contents=True)[1] == 1
    call(factor=3.0)
    (other,) = set(entries(folder)) - {entry}
    data = other.read_bytes()[disk_files.HEADER.size :]
    checksum = disk_files.checksum(key, seconds, data)
    entry.write_bytes(disk_files.HEADER.pack(disk_files.FORMAT, key, checksum, seconds) + data)
    with pytest.raises(RuntimeError, match="jax_compilation_cache_check_contents"):
        call(compilation_cache_check_contents=True)


# ---- room ---------------------------------------------------------------------------------------------


def age(entry, seconds):
    """Makes an entry look as if it had been used so long ago."""
    os.utime(entry, (os.stat(entry).st_mtime - seconds,) * 2)


def test_the_least_recently_used_entry_is_evicted_first(folder):
    made = []
    for i in range(4):
        call(factor=i + 2.0)
        made += [entry for entry in entries(folder) if entry not in made]
    for i, entry in enumerate(made):
        age(entry, 1000 - 100 * i)
    assert call(factor=2.0)[1] == 0  # the first made is the last used now
    size = sum(entry.stat().st_size for entry in made)
    call(factor=9.0, compilation_cache_max_size=size - 1)
    left = entries(folder)
    assert made[0] in left and made[1] not in left and made[2] not in left and len(left) == 3
    assert sum(entry.stat().st_size for entry in left) < size


def test_only_files_of_dead_writers_are_deleted(folder):
    folder.mkdir()
    names = ["jit_f-00-cache", ".01-minijax.tmp", ".02-minijax.tmp", "notes"]
    for name in names:
        (folder / name).write_bytes(b"x" * 5000)
    age(folder / names[1], 7200)
    call(compilation_cache_max_size=10_000)
    assert [name for name in names if (folder / name).exists()] == [names[0], *names[2:]] and len(entries(folder)) == 1


def test_the_users_own_folder_is_bounded(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    with options(compilation_cache_dir=None):
        assert disk_cache._limit() == 1 << 30
        with options(compilation_cache_max_size=-1):
            assert disk_cache._limit() == -1
        assert [call()[1], call()[1]] == [1, 0] and len(entries(tmp_path / "caches" / "minijax")) == 1
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert disk_cache._folder() == str(tmp_path / ".cache" / "minijax")
        monkeypatch.setenv("HOME", "nowhere")
        assert disk_cache._folder() is None and call()[1] == 1
    assert disk_cache._limit() == -1


def test_the_threshold_is_a_tenth_of_a_second_until_it_is_set():
    option = config.option("persistent_cache_min_compile_time_secs")
    assert option.value == 1.0 and not option.is_set and disk_cache._threshold() == 0.1
    with option(1.0):
        assert option.is_set and disk_cache._threshold() == 1.0
    assert not option.is_set


# ---- disks that fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("name", ["open", "replace"])
def test_a_disk_that_takes_nothing_is_a_warning_once(folder, monkeypatch, name, code):
    plain = getattr(os, name)

    def fail(path, *args, **kwargs):
        if str(path).startswith(str(folder)) and str(path).endswith(".tmp"):
            raise OSError(code, os.strerror(code))
        return plain(path, *args, **kwargs)

    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="Error writing persistent") as told:
        patch.setattr(os, name, fail)
        assert [call()[1], call()[1], call(factor=3.0)[1]] == [1, 1, 1]
    assert len(told) == 1 and list(folder.iterdir()) == []
    disk_cache.reset_cache()
    assert [call()[1], call()[1]] == [1, 0]


def test_a_partially_written_file_is_deleted(folder, monkeypatch):
    def fill(file, *_, **__):
        os.write(file, b"minijax")
        raise OSError(errno.ENOSPC, "No space left on device")

    plain = open
    monkeypatch.setattr("builtins.open", lambda f, *a, **k: fill(f) if a == ("wb",) else plain(f, *a, **k))
    with pytest.warns(UserWarning, match="No space left"):
        assert call()[1] == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc/nowhere/programs", "/dev/null/programs"])
def test_a_folder_that_cannot_be_made_is_a_warning_once(folder, place):
    with pytest.warns(UserWarning, match="Error writing persistent") as told:
        assert [call(compilation_cache_dir=place)[1], call(factor=3.0, compilation_cache_dir=place)[1]] == [1, 1]
    assert len(told) == 1


def test_warnings_that_are_errors_leave_the_next_call_alone(folder):
    first, _ = call()
    truncate(*entries(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Error reading"):
            call()
        assert call()[0].tobytes() == first.tobytes()


# ---- several processes ----------------------------------------------------------------------------------

PROGRAM = """
import sys
import os, jaxlib.version
count, version = int(os.environ["COUNT"]), sys.argv[1]
if version: jaxlib.version.__version__ = version
import minijax as jax, minijax.numpy as jnp, numpy as np
from minijax.run.programs.compile import compile_count
for i in range(count):
    x = np.asarray(jax.jit(lambda x: jnp.sin(x) + x)(np.ones(i + 1, np.float32)))
    assert x.shape == (i + 1,) and np.allclose(x, np.sin(1) + 1), (i, x)
print(compile_count(), end="")
"""


def environment(folder, **more):
    chosen = {
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "COUNT": "3",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "PYTHONPATH": str(processes.ROOT),
        "PYTHONWARNINGS": "error",
    }
    return {**os.environ, **chosen, **more}


def start(folder, version="", **more):
    command = [sys.executable, "-c", PROGRAM, version]
    return subprocess.Popen(command, env=environment(folder, **more), stdout=-1, stderr=-1, text=True)


def compiled(process) -> int:
    """How many programs a process compiled; it must end well, without a warning."""
    out, err = process.communicate(timeout=processes.PATIENCE)
    assert process.returncode == 0, err
    return int(out)


def test_processes_share_programs_but_those_of_another_jaxlib_or_other_flags_do_not(tmp_path):
    assert compiled(start(tmp_path)) == 3
    runs = [
        start(tmp_path),
        start(tmp_path, version="9.9.9"),
        start(tmp_path, XLA_FLAGS="--xla_cpu_enable_fast_math=true"),
    ]
    assert [compiled(run) for run in runs] == [0, 3, 3]


def test_killed_processes_leave_the_folder_intact(tmp_path):
    seed = random.Random(0)
    running = [start(tmp_path, COUNT="12", JAX_COMPILATION_CACHE_MAX_SIZE="20000") for _ in range(8)]
    while len(entries(tmp_path)) < 2 and any(process.poll() is None for process in running):
        time.sleep(0.01)
    for process in running[:-1]:
        time.sleep(seed.random() * 0.05)
        process.kill()
        process.communicate()
    compiled(running[-1])
    for entry in [*entries(tmp_path), *tmp_path.glob("trail-*")]:
        key = bytes.fromhex(entry.name.split("-")[-2])
        assert disk_files.read(str(entry), key)[1]
    settings = {"compilation_cache_dir": str(tmp_path), "persistent_cache_min_compile_time_secs": 0.0}
    call(enable_compilation_cache=True, compilation_cache_max_size=20_000, **settings)  # a killed one did not shrink it
    assert sum(entry.stat().st_size for entry in entries(tmp_path)) <= 20_000


@pytest.mark.parametrize("features", ["flags : fpu sse\n", ""])
def test_the_processor_is_part_of_the_key(folder, monkeypatch, features):
    plain = open
    call()
    made = io.StringIO(features + "\nprocessor : 1\n")
    monkeypatch.setattr("builtins.open", lambda f, *a, **k: made if f == "/proc/cpuinfo" else plain(f, *a, **k))
    assert call()[1] == 1 and len(entries(folder)) == 2


# ---- what a command loads ahead -------------------------------------------------------------------------


@pytest.fixture
def command(folder, monkeypatch):
    """A command line that has run before, with the programs of `call(factor=2.0)` and `call(factor=3.0)`."""
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py"])
    call(factor=2.0)
    call(factor=3.0)
    (trail,) = disk_cache._trails.values()
    trail._save()
    disk_cache.reset_cache()
    yield folder
    disk_cache.reset_cache()


def readers(monkeypatch) -> dict[str, str]:
    """Fills with the thread that reads each file from now on."""
    threads: dict[str, str] = {}
    plain = disk_files.read

    def read(path, key):
        threads[os.path.basename(path)[:6]] = threading.current_thread().name
        return plain(path, key)

    monkeypatch.setattr(disk_files, "read", read)
    return threads


def wait_for_threads():
    for thread in threading.enumerate():
        if thread.name == "minijax-disk":
            thread.join(processes.PATIENCE)


def test_the_same_command_loads_its_programs_ahead_of_need(command, monkeypatch):
    (trail,) = command.glob("trail-*")
    assert trail.stat().st_mode & 0o777 == 0o600
    threads = readers(monkeypatch)
    assert call(factor=2.0)[1] == 0
    wait_for_threads()
    threads.clear()
    result, compiles = call(factor=3.0)
    assert compiles == 0 and threads == {} and result.tobytes() == np.asarray(jnp.sin(X) @ X * 3.0).tobytes()


def test_another_command_loads_nothing_ahead(command, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "other.py"])
    threads = readers(monkeypatch)
    assert call(factor=2.0)[1] == 0
    wait_for_threads()
    assert call(factor=3.0)[1] == 0 and set(threads.values()) == {threading.current_thread().name}


def test_a_command_that_leaves_the_trail_drops_the_programs_ahead(command):
    assert call(factor=2.0)[1] == 0
    wait_for_threads()
    (trail,) = disk_cache._trails.values()
    assert len(trail._loaded) == 1
    assert call(factor=4.0)[1] == 1 and trail._loaded == {}
    assert call(factor=3.0)[1] == 0


@pytest.mark.parametrize("damage", [truncate, flip, open_to_all, make_pipe])
def test_a_damaged_trail_is_ignored(command, damage):
    damage(*command.glob("trail-*"))
    assert call(factor=2.0)[1] == call(factor=3.0)[1] == 0


def test_the_warning_of_a_damaged_program_points_at_the_caller(command):
    for entry in entries(command):
        truncate(entry)
    with pytest.warns(UserWarning, match="Error reading") as told:
        assert call(factor=2.0)[1] == call(factor=3.0)[1] == 1
    assert len(told) == 2


def test_a_fork_neither_waits_nor_writes_the_trail(command):
    (trail,) = command.glob("trail-*")
    before = trail.read_bytes()
    assert call(factor=2.0)[1] == 0
    wait_for_threads()
    (ours,) = disk_cache._trails.values()
    ours._process = -1  # as a fork sees it
    held, done = threading.Event(), threading.Event()

    def hold():  # as a thread did that the fork does not have
        with ours._changed:
            held.set()
            done.wait(processes.PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert call(factor=3.0)[1] == 0 and call(factor=5.0)[1] == 1
        ours._save()
    finally:
        done.set()
        thread.join()
    assert trail.read_bytes() == before


def test_a_process_may_end_while_programs_are_loaded_ahead(tmp_path):
    assert compiled(start(tmp_path, COUNT="8")) == 8
    assert [compiled(start(tmp_path, COUNT=count)) for count in ("1", "8")] == [0, 0]


# ---- the public module -------------------------------------------------------------------------------


def test_the_folder_is_set_as_in_jax(folder, tmp_path):
    module = importlib.import_module("minijax.experimental.compilation_cache.compilation_cache")
    assert [name for name in dir(module) if not name.startswith("_")] == ["reset_cache", "set_cache_dir"]
    before = config.compilation_cache_dir.default
    try:
        module.set_cache_dir("elsewhere")
        assert config.compilation_cache_dir.default == "elsewhere"
        with pytest.raises(ValueError, match="must be None or of type str"):
            module.set_cache_dir(tmp_path)
    finally:
        module.set_cache_dir(before)
    module.reset_cache()
    assert jax.experimental.compilation_cache.compilation_cache is module


def test_folders_elsewhere_than_on_this_machine_are_a_warning_once(folder):
    with pytest.warns(UserWarning, match="gs://bucket") as told:
        assert [call(compilation_cache_dir="gs://bucket/x")[1] for _ in range(2)] == [1, 1]
    assert len(told) == 1 and not Path("gs:").exists()


LINEAR_ALGEBRA = """
import warnings
warnings.simplefilter("error")
import minijax as jax, minijax.numpy as jnp
from minijax import monitoring
hits = []
monitoring.register_event_listener(lambda name, **_: hits.append(name.endswith("/cache_hits")))
jnp.linalg.inv(jnp.eye(2))
print(sum(hits))
"""


def test_linear_algebra_is_loaded_by_a_process_that_has_not_compiled_any(tmp_path):
    def hits():
        command = [sys.executable, "-c", LINEAR_ALGEBRA]
        process = subprocess.Popen(command, env=environment(tmp_path), stdout=-1, stderr=-1, text=True)
        return compiled(process)

    first = hits()
    assert first == 0 and hits() > 0
