"""Makes `import jax` give minijax in other processes, by a folder on Python's path that contains a package `jax`.

Subprocesses of a program get it by `PYTHONPATH`, and all processes of an environment by a `.pth` file in its
site-packages. Processes that are started by `python -m minijax` do not need it.
"""

import os
import sys

from minijax.base.lazy import defer

_sysconfig = defer("sysconfig")

VARIABLE = "MINIJAX_AS_JAX"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "as_jax")

# The path entry of a `.pth` file comes before site-packages, and the program's own folder before that.
SWITCH = f'import os, sys; os.environ.get("{VARIABLE}") == "0" or sys.path.insert(0, {FOLDER!a})\n'


def let_children_see_jax() -> None:
    """Makes `import jax` give minijax in Python subprocesses."""
    os.environ[VARIABLE] = "1"
    path = os.environ.get("PYTHONPATH", "")
    if path.split(os.pathsep)[0] != FOLDER:
        os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, path] if path else [FOLDER])
    # multiprocessing and pytest-xdist pass this process's own sys.path to subprocesses.
    if FOLDER not in sys.path:
        sys.path.insert(0 if sys.flags.safe_path else 1, FOLDER)


def switch_file() -> str:
    """Returns the path of the `.pth` file that makes `import jax` give minijax in this environment."""
    return os.path.join(_sysconfig.get_path("purelib"), "minijax_as_jax.pth")


def switch_on(file: str) -> bool:
    """Writes the `.pth` file; returns False if it exists already."""
    if os.path.exists(file):
        with open(file, encoding="ascii", errors="replace") as opened:
            if opened.read() == SWITCH:
                return False
    with open(file, "w", encoding="ascii") as opened:
        opened.write(SWITCH)
    return True


def switch_off(file: str) -> bool:
    """Removes the `.pth` file; returns False if it does not exist."""
    try:
        os.remove(file)
    except FileNotFoundError:
        return False
    return True
