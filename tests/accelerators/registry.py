"""What a program to compile for accelerators is, and where the programs are kept.

A program is a function of (jax, jnp, lax) that gives a function and its arguments' types: pairs (shape, dtype), which in
a program for several devices have a third part, a partition spec as a tuple (None: no sharding).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

# The topologies of each machine with up to 4, 16, 64 and 256 devices.
SIZES = 4, 16, 64, 256
TPUS = {
    "v5e": ("v5e:2x2", "v5e:4x4", "v5e:8x8", "v5e:16x16"),
    "v6e": ("v6e:2x2", "v6e:4x4", "v6e:8x8", "v6e:16x16"),
    "v5p": ("v5p:2x2x1", "v5p:2x2x4", "v5p:4x4x4", "v5p:4x8x8"),
}
MACHINES = (*TPUS, "h100")
# Modules that programs use and `import jax` does not bring.
MODULES = """
ad_checkpoint custom_batching export image memory numpy scipy.linalg scipy.ndimage scipy.optimize scipy.signal
scipy.sparse.linalg scipy.special scipy.stats experimental.checkify experimental.topologies
""".split()
F, B, H, I = "float32", "bfloat16", "float16", "int32"  # noqa: E741


class Program(NamedTuple):
    """A program, and the mesh that it runs over: sizes and names of its axes; none for one device.

    With several slices (for GPUs: nodes) the first axis of the mesh goes over them. A function that is jitted already
    takes no options.
    """

    make: Callable[[Any, Any, Any], tuple]
    mesh: dict[str, int] | None = None
    explicit: bool = False
    options: dict[str, Any] = {}  # of jit
    slices: int = 1
    x64: bool = False


PROGRAMS: dict[str, Program] = {}


def add(name: str, make: Callable[[Any, Any, Any], tuple], **fields: Any) -> None:
    assert name not in PROGRAMS, name
    PROGRAMS[name] = Program(make, **fields)


def program(**fields: Any) -> Callable:
    """Adds a function under its own name."""

    def added(make):
        add(make.__name__.strip("_"), make, **fields)
        return make

    return added


def add_each(prefix: str, functions: dict[str, Callable], *types: tuple, **fields: Any) -> None:
    """Adds functions of (jax, *arguments) that take arguments of the same types."""
    for name, f in functions.items():
        add(f"{prefix} {name}", lambda jax, jnp, lax, f=f: (functools.partial(f, jax), *types), **fields)
