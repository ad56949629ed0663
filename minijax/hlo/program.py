"""A program to be lowered: a jaxpr, its arguments and results as ports, and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.types import Aval, token_type
from minijax.partition.layouts import AutoLayout, Layout


class Port(NamedTuple):
    """An argument or a result of a program."""

    aval: Aval
    name: str | None = None  # of an argument, for locations; of a result, its path in the tree
    path: str | None = None  # of an argument of an exported program, for messages
    sharding: Any = None  # None: XLA chooses
    layout: Layout | AutoLayout | None = None  # None: the default layout
    memory_kind: str | None = None  # None: the program names no memories
    donated: bool = False

    @property
    def local_aval(self) -> Aval:
        """The type of the shard on each device."""
        if self.sharding is None:
            return self.aval
        shape = self.sharding.shard_shape(self.aval.shape)
        return self.aval.update(shape=shape, sharding=None, memory_space=self.sharding._memory_space)

    @property
    def is_token(self) -> bool:
        """True if the port is a token, which has no memory."""
        return self.aval is token_type


class Program(NamedTuple):
    """A jaxpr without unread arguments and dead equations, with a port for each argument and result."""

    name: str
    closed: ClosedJaxpr
    ins: tuple[Port, ...]
    outs: tuple[Port, ...]
    constants: Mapping[Var, Port] = {}  # the constants that are arguments after the user's
    platforms: tuple[str, ...] = ("cpu",)
    devices: tuple = ()
    num_partitions: int = 1
    mesh: Any = None
    manual: Any = None  # the mesh and its manual axes if the program is that of one device
    scope: str = ""  # precedes the names of operations in locations
    variables: Sequence[str] = ()  # the dimension variables of the arguments
    for_export: bool = False  # the module has the calling convention of jax.export
    overrides: Mapping[Any, Callable] = {}  # lowering rules that replace those of primitives


def plain_program(
    name: str,
    closed: ClosedJaxpr,
    *,
    platforms: Sequence[str] = ("cpu",),
    arg_names: Sequence[str | None] | None = None,
    result_names: Sequence[str] | None = None,
) -> Program:
    """A program on one device; only the names of its arguments and results are specified."""
    ins, outs = closed.in_avals, closed.out_avals
    in_ports = [Port(aval, n) for aval, n in zip(ins, arg_names or (None,) * len(ins), strict=True)]
    out_ports = [Port(aval, n) for aval, n in zip(outs, result_names or (None,) * len(outs), strict=True)]
    return Program(name, closed, tuple(in_ports), tuple(out_ports), platforms=tuple(platforms))
