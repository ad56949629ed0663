"""The package `jax` of processes that have this folder on their path: importing it gives minijax.

With `MINIJAX_AS_JAX=0` in its environment, a process gets the real jax.
"""

import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = os.path.dirname(os.path.dirname(FOLDER))


def _give_minijax():
    if sys.version_info < (3, 11):  # noqa: UP036 (another environment may have an older one)
        raise _unusable("is older than Python 3.11, which minijax needs")
    spec = importlib.util.find_spec("minijax")
    # A folder of that name without an `__init__.py` is only a namespace package.
    if spec is None or not spec.has_location:
        _load_minijax_from_here()
    importlib.import_module("minijax.interop.alias").install()
    sys.modules["jax"] = sys.modules["minijax"]


def _load_minijax_from_here():
    """Loads the minijax around this folder without its neighbours, which may be those of another Python."""
    missing = [name for name in ("jaxlib", "ml_dtypes", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        raise _unusable("has no " + ", ".join(missing) + ", which minijax needs")
    spec = importlib.util.spec_from_file_location("minijax", os.path.join(PACKAGE, "__init__.py"))
    sys.modules["minijax"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _unusable(reason):
    return ImportError(
        f"jax means minijax here, by the folder {FOLDER} on Python's path, but {sys.executable} {reason}. Install "
        "minijax there, or start it with MINIJAX_AS_JAX=0 in its environment to have the real jax.",
        name="jax",
    )


def _give_the_real_jax():
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != os.path.realpath(FOLDER)]
    importlib.import_module("jax")


if __name__ == "jax":
    del sys.modules["jax"]
    if os.environ.get("MINIJAX_AS_JAX") == "0":
        _give_the_real_jax()
    else:
        _give_minijax()
