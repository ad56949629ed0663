"""Programs on disk: who finds them, who must not, and what becomes of damaged ones."""

import contextlib
import importlib
import os
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import monitoring
from minijax.base import cache, config
from minijax.run import disk_cache
from minijax.run.compile import compile_count

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
    return sorted(folder.glob("*-minijax"))


def call(factor=2.0, x=X, **settings) -> tuple[np.ndarray, int]:
    """The result of a program that this process does not know any more, and how often XLA compiled."""
    jax.clear_caches()
    before = compile_count()
    with options(**settings):
        result = np.asarray(jax.jit(lambda x: jnp.sin(x) @ x * factor)(x))
    return result, compile_count() - before


def heard(work) -> list[str]:
    """What listeners hear of the disk cache meanwhile."""
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


def test_listeners_hear_what_jax_tells_them(folder):
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


def test_source_positions_count_only_if_asked_for(folder):
    def located(module, name):
        text = f"module @jit_g {{ func.func public @main() -> tensor<f32> {{\n%r = stablehlo.constant dense<{module}> "
        return text + f': tensor<f32> loc("{name}")\nreturn %r : tensor<f32> }} }}'

    compile = importlib.import_module("minijax.run.compile")

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
    assert call(factor=3.0)[1] == call(x=X[:2, :2])[1] == call(exec_time_optimization_effort=0.5)[1] == 1
    with options(enable_x64=True):
        wide, compiles = call(x=X.astype(np.float64))
        assert wide.dtype == np.float64 and compiles == 1
        assert call(x=X.astype(np.float64))[0].tobytes() == wide.tobytes()
    assert len(entries(folder)) == 5


def test_what_a_loaded_program_tells_is_what_the_compiled_one_told(folder):
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
    content[disk_cache._HEADER.size - 1] ^= 1
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
    """Puts what is no program under a right checksum: what the checksum says is all that is known of it."""
    content = entry.read_bytes()
    _, key, _, seconds = disk_cache._HEADER.unpack_from(content)
    checksum = disk_cache._checksum(key, seconds, b"no program")
    entry.write_bytes(disk_cache._HEADER.pack(disk_cache._FORMAT, key, checksum, seconds) + b"no program")


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
    with pytest.warns(UserWarning, match="another program's"):
        assert call(factor=2.0)[0].tobytes() == first.tobytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_entry_is_not_run(folder):
    call()
    os.chown(*entries(folder), 12345, -1)
    with pytest.warns(UserWarning, match="owned by another user, 12345"):
        assert call()[1] == 1


def test_errors_are_raised_if_asked_for(folder):
    call()
    truncate(*entries(folder))
    with pytest.raises(ValueError, match="checksum"):
        call(raise_persistent_cache_errors=True)


def test_contents_are_compared_if_asked_for(folder):
    call(factor=2.0)
    (entry,) = entries(folder)
    _, key, _, seconds = disk_cache._HEADER.unpack_from(entry.read_bytes())
    assert call(compilation_cache_check_contents=True)[1] == 1
    call(factor=3.0)
    (other,) = set(entries(folder)) - {entry}
    data = other.read_bytes()[disk_cache._HEADER.size :]
    checksum = disk_cache._checksum(key, seconds, data)
    entry.write_bytes(disk_cache._HEADER.pack(disk_cache._FORMAT, key, checksum, seconds) + data)
    with pytest.raises(RuntimeError, match="jax_compilation_cache_check_contents"):
        call(compilation_cache_check_contents=True)


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
