"""Makes `jax` and `jax.*` aliases of the modules of this package: both names give the same objects."""

import sys

from minijax.base.naming import ALIAS, install_names_of_jax, is_under
from minijax.interop.finder import AliasFinder
from minijax.interop.startup import present


def install() -> None:
    """Makes `import jax` and `import jax.X` give `minijax` and `minijax.X` from now on.

    Example:
        >>> import subprocess, sys
        >>> program = "import minijax; minijax.install(); import jax; print(jax is minijax)"
        >>> print(subprocess.check_output([sys.executable, "-c", program], text=True))
        True
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    loaded = [name for name, module in sys.modules.items() if is_under(name, ALIAS) and module is not None]
    if loaded:
        raise RuntimeError(
            f"minijax.install: {min(loaded, key=len)} is already loaded; install before anything imports "
            "jax, or run the program with python -m minijax"
        )
    # It must be the first finder: the path finder would run minijax/numpy again under the name jax.numpy.
    sys.meta_path.insert(0, AliasFinder())
    install_names_of_jax()
    present()
