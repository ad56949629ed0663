"""Forked and spawned processes."""

import os
import warnings

import pytest
from processes import run_python

import minijax

FORK = """
import importlib, os, sys, warnings

jax = importlib.import_module(sys.argv[1])
jnp = importlib.import_module(sys.argv[1] + ".numpy")

def fork():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    print([(w.category.__name__, str(w.message), os.path.basename(w.filename)) for w in caught])

fork()
jax.config.update("jax_enable_x64", False)
jax.make_jaxpr(lambda x: x * 2)(1.0)
fork()
jax.devices()
fork()
jax.jit(lambda x: x + 1)(jnp.ones(3))
fork()
fork()
"""


@pytest.mark.oracle
def test_a_fork_warns_when_jaxs_does():
    ours, theirs = [run_python(FORK, side).splitlines() for side in ("minijax", "jax")]
    assert ours[0] == theirs[0] == "[]"
    assert ours[2:] == theirs[2:] and len(ours) == 5
    assert "os.fork() is incompatible with multithreaded code, and JAX is multithreaded" in ours[2]


def test_the_warning_can_be_turned_into_an_error_that_keeps_the_process():
    minijax.devices()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        child = os.fork()
        if not child:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert minijax.jit(lambda x: x + 1)(1) == 2


USED_BY_CHILD = """
import os, warnings
import minijax, minijax.numpy as jnp
from minijax.base import tree

warnings.simplefilter("ignore")
jnp.ones(3) + 1
child = os.fork()
if not child:
    # What needs no device works in the child.
    text = str(minijax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0))
    leaves = tree.tree_leaves({"a": [1, 2]})
    os._exit(0 if "sin" in text and leaves == [1, 2] else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_can_trace():
    assert run_python(USED_BY_CHILD, timeout=100).split() == ["0"]


FIRST_USE_IN_CHILD = """
import os
import minijax, minijax.numpy as jnp

children = []
for i in range(2):
    child = os.fork()
    if not child:
        os._exit(int(minijax.jit(lambda x: x + i)(jnp.ones(3)).sum()))
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
print(minijax.jit(lambda x: x + 5)(jnp.ones(3)).sum())
"""


def test_processes_forked_before_the_first_use_each_start_their_own_client():
    assert run_python(FIRST_USE_IN_CHILD, timeout=200).split("\n")[:2] == ["[3, 6]", "18.0"]


SPAWNED = """
import concurrent.futures, multiprocessing, sys
import minijax, minijax.numpy as jnp

def work(x):
    import minijax
    return minijax.jit(lambda y: y * 2)(x)

if __name__ == "__main__":
    x = jnp.arange(3.0)
    assert work(x).tolist() == [0, 2, 4]
    context = multiprocessing.get_context(sys.argv[1])
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        results = list(pool.map(work, [x, x + 1]))
    print([r.tolist() for r in results], type(results[0]).__name__, results[0].weak_type)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_pool_of_new_processes_takes_and_returns_arrays(method, tmp_path):
    # A file, since a spawned process imports the main module anew.
    path = tmp_path / "main.py"
    path.write_text(SPAWNED)
    run = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    run = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, {str(path)!r}, {method!r}]).returncode)"
    assert run_python(run, timeout=300).strip() == "[[0.0, 2.0, 4.0], [2.0, 4.0, 6.0]] ArrayImpl False"
