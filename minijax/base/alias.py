"""Makes `jax` and `jax.*` name the modules of this package: the same objects, under both names."""

import sys

from minijax.base.lazy import defer

_finder = defer("minijax.base.finder")

# The jax whose API this package has; `__version__` and the aliased distribution say so.
VERSION_INFO = (0, 10, 2)
VERSION = ".".join(map(str, VERSION_INFO))

ALIAS, PACKAGE = "jax", __name__.partition(".")[0]


def install() -> None:
    """Let `import jax` and `import jax.X`, from now on, give `minijax` and `minijax.X`."""
    if any(isinstance(finder, _finder.AliasFinder) for finder in sys.meta_path):
        return
    loaded = [name for name, module in sys.modules.items() if is_under(name, ALIAS) and module is not None]
    if loaded:
        raise RuntimeError(
            f"minijax.install: {min(loaded, key=len)} is already loaded; install before anything imports "
            "jax, or run the program with python -m minijax"
        )
    # First in line: the path finder would run minijax/numpy.py once more under the name jax.numpy.
    sys.meta_path.insert(0, _finder.AliasFinder())
    mirror_loaded_modules()


def is_under(name: str, package: str) -> bool:
    """Whether a dotted name is the package or something in it."""
    return name == package or name.startswith(package + ".")


def mirror_loaded_modules() -> None:
    """Give each loaded module of this package its second name in `sys.modules`."""
    for name, module in list(sys.modules.items()):
        # A module that is still running is left to the import lock of its own name.
        if is_under(name, PACKAGE) and not getattr(module.__spec__, "_initializing", False):
            sys.modules.setdefault(ALIAS + name.removeprefix(PACKAGE), module)
