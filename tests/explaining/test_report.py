"""`minijax --report` counts what a program did, exactly, says why, and costs nothing without it."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

THREE_REASONS = """
import functools, sys
import jax, jax.numpy as jnp
import numpy as np
@functools.partial(jax.jit, static_argnums=1)
def f(x, n): return x * n + 1
@jax.jit
def g(p): return p["w"] - 1
f(np.float32(1), 3); f(1.0, 3); f(1.0, 4)
for _ in range(10): f(1.0, 4)
g({"w": np.float32(1)}); g({"w": np.float32(1), "b": np.float32(2)})
print(sys.argv[1:])
"""


def run(*arguments, code=None, cwd, **variables):
    """The process of `minijax ARGUMENTS`, without a disk cache; of `python -c CODE` if there is code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_ENABLE_COMPILATION_CACHE": "0", **variables}
    command = ["-m", "minijax", *arguments] if code is None else ["-c", code]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=120, env=environment, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done


def counts(text, name):
    """The five counts of a row: traced, lowered, compiled, loaded, called."""
    (row,) = re.findall(rf"^{re.escape(name)} +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ", text, re.MULTILINE)
    return tuple(map(int, row))


@pytest.fixture
def program(tmp_path):
    (tmp_path / "prog.py").write_text(THREE_REASONS)
    return tmp_path


def test_the_counts_and_reasons_are_exact(program):
    done = run("--report", "prog.py", "a", "-b", cwd=program)
    assert done.stdout == "['a', '-b']\n"
    assert done.stderr.startswith("minijax report: prog.py a -b\n")
    assert counts(done.stderr, "f at prog.py:5") == (3, 3, 2, 0, 13)  # a weak type makes no other module
    assert counts(done.stderr, "g at prog.py:7") == (2, 2, 1, 0, 2)
    assert "  x became weak: float32[] -> weak float32[]\n" in done.stderr
    assert "  the static argument `n` was 3, then 4\n" in done.stderr
    assert "  the tree of the arguments differs: `p['b']` is new\n" in done.stderr


@pytest.mark.parametrize("way", ["-m", "-c", "variable", "plain python", "python's option"])
def test_every_way_to_run_a_program_is_reported(program, way):
    ways = {
        "-m": (("--report", "-m", "prog"), {}),
        "-c": (("--report", "-c", THREE_REASONS), {}),
        "variable": (("prog.py",), {"MINIJAX_REPORT": "1"}),
        "python's option": (("--report", "-X", "dev", "prog.py"), {}),
        "plain python": ((), {"code": THREE_REASONS.replace("import jax,", "import minijax as jax,").replace(
            "jax.numpy as jnp", "minijax.numpy as jnp"), "MINIJAX_REPORT": "1"}),
    }  # fmt: skip
    arguments, more = ways[way]
    done = run(*arguments, cwd=program, **more)
    assert done.stderr.count("minijax report: ") == 1
    assert re.search(r"^f\b.* 3 +3 +2 +0 +13 ", done.stderr, re.MULTILINE)


class Links(HTMLParser):
    found = ()

    def handle_starttag(self, tag, attrs):
        self.found += tuple([value for name, value in attrs if name in ("src", "href")])


def test_the_page_is_one_file_that_loads_nothing(program):
    done = run("--report=out.html", "prog.py", "</script>", cwd=program)
    page = (program / "out.html").read_text()
    links = Links()
    links.feed(page)
    assert links.found == () and "http" not in page and "import" not in page.split("<script>")[0]
    assert page.count("</script>") == 1 and "became weak: float32[] -> weak float32[]" in page
    assert f"the report is in {program / 'out.html'}\n" in done.stderr


def test_a_page_that_cannot_be_written_is_said(program):
    done = run("--report=absent/out.html", "prog.py", cwd=program)
    assert "minijax --report: cannot write" in done.stderr and "f at prog.py:5" in done.stderr


def test_large_values_and_unused_donations_are_listed(tmp_path):
    (tmp_path / "large.py").write_text("""
import jax, numpy as np, warnings
warnings.simplefilter("ignore")
small = np.ones((8, 8), np.float32)
large = np.ones((1024, 1024), np.float32)
def f(x): return x + large + small[0, 0]
jax.jit(f)(jax.device_put(large))
jax.device_put(small)
def total(x): return x.sum()
jax.jit(total, donate_argnums=0)(small)
""")
    text = run("--report", "large.py", cwd=tmp_path).stderr
    assert "Constants over 1 MB that functions captured\n  f: float32[1024,1024], 4 MiB\n" in text
    assert "  host to device: float32[1024, 1024], 4 MiB, at large.py:7 (<module>)" in text
    assert "Donated buffers that could not be used\n  total: float32[8,8]\n" in text
    assert "[8, 8]" not in text


def test_programs_from_disk_are_loaded_and_not_compiled(program):
    disk = {"JAX_ENABLE_COMPILATION_CACHE": "1", "JAX_COMPILATION_CACHE_DIR": str(program / "cache")}
    disk["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    first, second = (run("--report", "prog.py", cwd=program, **disk).stderr for _ in range(2))
    assert counts(first, "f at prog.py:5") == (3, 3, 2, 0, 13)
    assert counts(second, "f at prog.py:5") == (3, 3, 0, 2, 13)


def test_operations_references_effects_and_stages_are_counted(tmp_path):
    (tmp_path / "ops.py").write_text("""
import jax, jax.numpy as jnp
from jax import lax
x = jax.device_put(1.0)
for _ in range(5): lax.sin_p.bind(x)
def shown(x):
    jax.debug.print("{}", x, ordered=True)
    return x
shown = jax.jit(shown)
shown(x); shown(x)
def write(ref, x): ref[...] = x
write, ref = jax.jit(write), jax.new_ref(x)
write(ref, x); write(ref, x); write(ref, x)
def ahead(x): return x + 2
ahead = jax.jit(ahead).lower(x).compile()
ahead(x); ahead(x)
def failing(x): raise ValueError
try: jax.jit(failing)(x)
except ValueError: pass
""")
    text = run("--report", "ops.py", cwd=tmp_path).stderr
    assert counts(text, "sin") == (1, 1, 1, 0, 5)
    assert counts(text, "shown at ops.py:6") == (1, 1, 1, 0, 2)
    assert counts(text, "write at ops.py:11") == (1, 1, 1, 0, 3)
    assert counts(text, "ahead at ops.py:14") == (1, 1, 1, 0, 2)
    assert counts(text, "failing at ops.py:17") == (1, 0, 0, 0, 0)


def test_a_donated_argument_is_refused_as_without_a_report(tmp_path):
    (tmp_path / "donated.py").write_text("""
import jax
f, x = jax.jit(lambda x: x + 1, donate_argnums=0), jax.device_put(1.0)
f(x)
try: f(x)
except ValueError as error: print(type(error).__name__, error)
""")
    on, off = (run(*words, "donated.py", cwd=tmp_path).stdout for words in (("--report",), ()))
    assert on == off and "deleted" in on


def test_a_program_that_is_not_reported_has_no_hooks():
    code = """
import sys
import minijax as jax, minijax.numpy as jnp
jax.jit(jnp.sin)(1.0)
from minijax.base import monitoring
from minijax.dispatch import executable, explain, hot, lowering, operations
from minijax.dispatch.jitted import Engine
from minijax.run.arrays import array, transfer
from minijax.run.programs import compile, launch
for owner, name in [
    (explain, "note"), (Engine, "_compile"), (Engine, "_call_traced"), (operations, "_compile_operation"),
    (compile, "_build"), (lowering, "warn_of_constants"), (executable, "_warn_of_unused_donations"),
    (transfer, "put_numpy"), (hot, "put_numpy"), (transfer, "put_host"), (transfer, "copy_raw"),
    (launch, "program_of"), (launch, "_program"), (launch, "bind"), (monitoring, "log_disk_cache_hit"),
]:
    f = getattr(owner, name)
    assert f.__name__ == name and not hasattr(f, "__wrapped__"), name
    assert "explaining" not in f.__code__.co_filename, name
assert array.ArrayImpl._value.fget is array.ArrayImpl._numbers
assert not monitoring.is_observed()
assert not [name for name in sys.modules if name.startswith("minijax.explaining")]
"""
    assert run(code=code, cwd=ROOT).stderr == ""


def test_long_lists_are_cut_on_the_terminal(tmp_path):
    (tmp_path / "many.py").write_text("""
import jax
f = jax.jit(lambda x, n: x, static_argnums=1)
for n in range(300): f(1, n)
""")
    done = run("--report=out.html", "many.py", cwd=tmp_path)
    assert done.stderr.count("the static argument `n` was") == 10 and "  ... 191 more\n" in done.stderr
    page = (tmp_path / "out.html").read_text()
    assert page.count("the static argument `n` was") == 200 and "others (99 times)" in page


def test_the_help_names_it():
    assert "--report" in run("--help", cwd=ROOT).stdout
