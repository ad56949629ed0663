"""`platform_dependent`: branches chosen by the platform that a program is lowered for."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import source
from minijax.higher.cond import group_of, trace_and_bind_branches
from minijax.ir.primitive import Primitive
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray
from minijax.run.clients import client


class PlatformIndex(Primitive):
    """The index of the group that includes the platform a program is lowered for."""

    name = "platform_index"

    def infer(self, *, platforms):
        return [ShapedArray((), np.dtype(np.int32))]

    def at_once(self, *, platforms):
        platform = client.lowering_platform(client.default_device())
        return [np.int32(group_of(platform, platforms))]

    def lower(self, e, ins, outs, *, platforms):
        (out,) = outs
        index = e.constant(group_of(e.platform, platforms), out)
        return e.case_(index, [lambda: [e.constant(0, out)]] * len(platforms), outs)

    def batch(self, axis, operands, dims, **params):
        return [self.bind(**params)], [None]


platform_index_p = PlatformIndex()


@source.boundary
def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """Calls the function given for the platform that the program is lowered for, or else `default`.

    Args:
        *args: The arguments of the function.
        default: The function for platforms that are not named.
        **per_platform: The function for a platform: `cpu`, `cuda`, `rocm` or `tpu`.

    Raises NotImplementedError when lowered for a platform without a function. The functions must return values of equal
    trees, shapes and dtypes.

    Example:
        >>> int(jax.lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x + 1))
        4
    """
    if "gpu" in per_platform:
        raise ValueError("platform_dependent: Use 'cuda' or 'rocm' for lax.platform_dependent.")
    functions = [*per_platform.values(), *([] if default is None else [default])]
    if not functions:
        raise TypeError("platform_dependent: no function was given; give one for a platform, or a default")
    # Platforms that share a function share a branch.
    places: dict[Any, tuple | None] = {}
    for platform, function in per_platform.items():
        places[function] = (*(places.get(function) or ()), platform)
    groups = [*places.items(), *([] if default is None else [(default, None)])]
    platforms = tuple(names for _, names in groups)
    names = {f"branch {i}": function for i, (function, _) in enumerate(groups)}
    index = platform_index_p.bind(platforms=platforms)
    if not isinstance(index, Tracer):  # the platform is known: no other function need have rules
        return groups[int(index)][0](*args)
    return trace_and_bind_branches("switch", index, names, args, branches_platforms=platforms)
