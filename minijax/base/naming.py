"""The names of this package, and of the jax that it stands for."""

import sys

# The jax whose API this package has; `__version__` and the aliased distribution say so.
VERSION_INFO = (0, 10, 2)
VERSION = ".".join(map(str, VERSION_INFO))

ALIAS, PACKAGE = "jax", __name__.partition(".")[0]


def is_under(name: str, package: str) -> bool:
    """Whether a dotted name is the package or something in it."""
    return name == package or name.startswith(package + ".")


def mirror_loaded_modules() -> None:
    """Give each loaded module of this package its second name in `sys.modules`."""
    for name, module in list(sys.modules.items()):
        # A module that is still running is left to the import lock of its own name.
        if is_under(name, PACKAGE) and not getattr(module.__spec__, "_initializing", False):
            sys.modules.setdefault(ALIAS + name.removeprefix(PACKAGE), module)
