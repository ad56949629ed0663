"""Has other processes take minijax for jax: a folder on Python's path holds a package `jax` that gives minijax.

It serves those that are not started by `python -m minijax` themselves: the processes that a program starts, by
`PYTHONPATH`, and every process of an environment, by a `.pth` file of its site-packages.
"""

import os
import sys

from minijax.base.lazy import defer

_sysconfig = defer("sysconfig")

VARIABLE = "MINIJAX_AS_JAX"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "as_jax")

# What a `.pth` file inserts comes before site-packages, and Python puts the program's folder before that.
SWITCH = f'import os, sys; os.environ.get("{VARIABLE}") == "0" or sys.path.insert(0, {FOLDER!a})\n'


def let_children_see_jax() -> None:
    """Let Python processes that this one starts take minijax for jax."""
    os.environ[VARIABLE] = "1"
    path = os.environ.get("PYTHONPATH", "")
    if path.split(os.pathsep)[0] != FOLDER:
        os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, path] if path else [FOLDER])
    # multiprocessing and pytest-xdist hand this process's own path on.
    if FOLDER not in sys.path:
        sys.path.insert(0 if sys.flags.safe_path else 1, FOLDER)


def switch_file() -> str:
    """The path of the `.pth` file that has every process of this environment take minijax for jax."""
    return os.path.join(_sysconfig.get_path("purelib"), "minijax_as_jax.pth")


def switch_on(file: str) -> bool:
    """Write the file; False where it is there already."""
    if os.path.exists(file):
        with open(file, encoding="ascii", errors="replace") as opened:
            if opened.read() == SWITCH:
                return False
    with open(file, "w", encoding="ascii") as opened:
        opened.write(SWITCH)
    return True


def switch_off(file: str) -> bool:
    """Remove the file; False where there is none."""
    try:
        os.remove(file)
    except FileNotFoundError:
        return False
    return True
