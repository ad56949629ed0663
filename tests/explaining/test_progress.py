"""Long compilations show themselves on terminals, and nowhere else."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minijax.run.programs import disk_files
from minijax.run.watching.progress import count_operations

ROOT = Path(__file__).resolve().parents[2]

SLOW = """
import time
import minijax as jax
from minijax.run.programs import compile
from minijax.run.watching import progress
progress._AFTER, progress._EVERY = 0.2, 0.1
fast = compile.backend_compile_and_load
def slow(*args):
    time.sleep(seconds)
    return fast(*args)
compile.backend_compile_and_load = slow
x = jax.device_put(1.0)
def f(x): return x * x + 1
{0}
"""


def on_terminal(last, seconds=0.8, code=SLOW, **variables):
    """What a program writes to a terminal that is its standard error."""
    main, side = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_ENABLE_COMPILATION_CACHE": "0", **variables}
    source = f"seconds = {seconds}\n" + code.replace("{0}", last)
    process = subprocess.Popen([sys.executable, "-c", source], stderr=side, stdout=subprocess.PIPE, env=environment)
    os.close(side)
    written = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while data := os.read(main, 4096):
            written += data
    os.close(main)
    process.communicate(timeout=60)
    assert process.returncode == 0, written
    return written.decode()


def test_a_terminal_shows_what_is_compiled_and_that_it_is_alive():
    text = on_terminal("jax.jit(f)(x)")
    lines = re.split(r"\r\n|\r", text.replace("\x1b[K", ""))
    alive = [line for line in lines if re.fullmatch(r"compiling f, \d+ operations: \d+ s", line)]
    assert len(alive) >= 2 and re.fullmatch(r"compiled f, \d+ operations: \d\.\d s", lines[-2]) and lines[-1] == ""


def test_whoever_waits_for_a_program_that_a_thread_compiles_sees_it():
    code = SLOW.replace("backend_compile_and_load", "_build").replace(
        "slow(*args):\n", "slow(*args):\n    waits.set()\n"
    )
    code = code.replace("{0}", "import threading; waits = threading.Event(); y = jax.jit(f)(x); waits.wait(5); {0}")
    silent, waiting = [on_terminal(last, code=code) for last in ("time.sleep(1)", "float(y)")]
    assert silent == "" and re.search(r"compiling f, \d+ operations: \d+ s", waiting)


def test_the_seconds_of_the_last_time_are_shown(tmp_path):
    disk = {"JAX_ENABLE_COMPILATION_CACHE": "1", "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    disk["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    assert "last time" not in on_terminal("jax.jit(f)(x)", **disk)
    changed = on_terminal("g = lambda x: f(x) * 3\ng.__name__ = 'f'\njax.jit(g)(x)", **disk)
    assert re.search(r"compiling f, \d+ operations: \d s \(last time \d\.\d s\)", changed)


@pytest.mark.parametrize("off", ["jax.config.update('minijax_progress', False)", "MINIJAX_PROGRESS"])
def test_an_option_turns_it_off(off):
    variables = {off: "0"} if off.isupper() else {}
    assert on_terminal(f"{'' if variables else off}\njax.jit(f)(x)", **variables) == ""


def test_fast_compilations_show_nothing():
    assert on_terminal("jax.jit(f)(x)", seconds=0, **{"JAX_ENABLE_COMPILATION_CACHE": "0"}).count("compil") == 0


def test_a_pipe_gets_nothing_and_has_no_thread():
    code = SLOW.replace("{0}", "jax.jit(f)(x)").replace(
        "time.sleep(seconds)", "import threading; assert threading.active_count() == 1; time.sleep(0.5)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_ENABLE_COMPILATION_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_notebook_shows_it_too():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cell = "seconds = 0.8\n" + SLOW.replace(
        "{0}", "jax.config.update('jax_enable_compilation_cache', False)\njax.jit(f)(x);"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute(
        env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    text = "".join(output["text"] for output in book.cells[0].outputs if output["output_type"] == "stream")
    assert text.startswith("\rcompiling f, ") and re.search(r"\rcompiled f, \d+ operations: \d\.\d s +\n$", text)


def test_a_compilation_that_fails_ends_its_line():
    code = """
def fail(*args):
    time.sleep(0.5)
    raise RuntimeError("no")
compile.backend_compile_and_load = fail
try: jax.jit(f)(x)
except RuntimeError: pass
"""
    assert on_terminal(code).endswith("\r\n")


def test_operations_are_counted():
    assert count_operations("module {\n  %0 = a\n  %1:2 = b\n  return %0\n}") == 2


def test_the_latest_program_of_a_name_counts(tmp_path):
    assert disk_files.seconds_of_latest(str(tmp_path / "absent"), "jit_f-") is None
    for n, name in enumerate(["jit_f-", "jit_f-", "jit_f-g-"]):
        path = tmp_path / f"{name}{n:064x}{disk_files.SUFFIX}"
        disk_files.write(str(path), bytes(32), n + 1.0, b"")
        os.utime(path, (n, n))
    assert disk_files.seconds_of_latest(str(tmp_path), "jit_f-") == 2.0
    (tmp_path / f"jit_h-{0:064x}{disk_files.SUFFIX}").write_bytes(b"short")
    assert disk_files.seconds_of_latest(str(tmp_path), "jit_h-") is None
