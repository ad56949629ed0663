"""Deprecated functions: former names and arguments."""

from collections.abc import Callable
from typing import Any

from minijax.api import shard_map as shards
from minijax.api.jit import jit
from minijax.dispatch.jit_shardings import shardings_of
from minijax.dispatch.jitted import Engine
from minijax.partition.shardings import UNSPECIFIED


def pjit(fun: Callable, in_shardings: Any = UNSPECIFIED, out_shardings: Any = UNSPECIFIED, static_argnums: Any = None,
         static_argnames: Any = None, donate_argnums: Any = None, donate_argnames: Any = None,
         keep_unused: bool = False, device: Any = None, backend: Any = None, inline: bool = False,
         compiler_options: Any = None) -> Any:  # fmt: skip
    """`jax.jit` under the mesh entered by `with mesh:`, not the one set by `set_mesh`.

    Specs refer to that mesh, and under it None means replicated.
    """
    given = {name: value for name, value in locals().items() if name != "fun"}
    jitted = jit(fun, **given)
    ins, outs = (shardings_of(name, given[name], "pjit") for name in ("in_shardings", "out_shardings"))
    engine = jitted._engine
    options = engine.options._replace(caller="pjit", in_shardings=ins, out_shardings=outs)
    return type(jitted)(Engine(engine.fun, options, engine.resolved, None, engine.signature, by_user=True))


def shard_map(f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True) -> Callable:
    """`jax.shard_map`; `check_rep` is the former name of `check_vma`."""
    return shards.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
