"""Operations that a library of the device computes, which XLA does not divide over devices by itself."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base import tree
from minijax.calls.custom_partitioning import custom_partitioning_p
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Primitive
from minijax.ir.rules import no_lowering
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray
from minijax.partition.factors import SdyShardingRule
from minijax.partition.meshes import PartitionSpec
from minijax.partition.shardings import NamedSharding


class Chosen(NamedTuple):
    """An operand or result, and the sharding that the compiler has chosen for it."""

    aval: ShapedArray
    sharding: Any

    @property
    def entries(self) -> tuple:
        """The mesh axes of each axis, or None; of a sharding without names, None for all."""
        ndim = self.aval.ndim
        return tuple(self.sharding.spec.padded(ndim)) if isinstance(self.sharding, NamedSharding) else (None,) * ndim


class Division(NamedTuple):
    """The function that each device runs on its parts, and the entries of the specs of results and operands."""

    function: Callable[..., Any]
    outs: Sequence[tuple]
    ins: Sequence[tuple]


class Divided(Primitive):
    """An operation for CUDA whose parts are computed by the same operation, in programs for several devices."""

    has_bodies = False

    def lower(self, e, ins, outs, *operands, **params):
        if e.platform != "cuda":
            no_lowering(self, e.platform)
        if e.num_partitions == 1 or e.manual is not None:
            return self.call(e, ins, outs, operands, **params)
        closed = ClosedJaxpr(*trace_to_jaxpr(lambda *xs: self._flat(xs, params), ins, DebugInfo("jit", self.name)))
        return custom_partitioning_p.lower(
            e, ins, outs, *operands, call=closed, partition=(functools.partial(self._partition, params), Chosen),
            sharding_rule=self.rule(ins, outs), static_args=(), decode_shardings=True,
            in_tree=tree.tree_structure(tuple(ins)), out_tree=tree.tree_structure(list(outs)),
            infer_sharding_from_operands=None, propagate_user_sharding=None,
        )  # fmt: skip

    def _flat(self, operands: Sequence, params: dict) -> list:
        results = self.bind(*operands, **params)
        return results if self.multiple_results else [results]

    def _partition(self, params: dict, mesh: Any, operands: Sequence[Chosen], results: Sequence[Chosen]) -> tuple:
        division = self.divided(mesh, operands, params)
        outs, ins = ([NamedSharding(mesh, PartitionSpec(*s)) for s in side] for side in (division.outs, division.ins))
        return mesh, division.function, outs, tuple(ins)

    def call(self, e: Any, ins: Sequence, outs: Sequence, operands: Sequence[str], /, **params: Any) -> list[str]:
        """Emits the call of the library on one device."""
        raise NotImplementedError

    def rule(self, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> SdyShardingRule:
        """The factors by which shardings propagate."""
        raise NotImplementedError

    def divided(self, mesh: Any, operands: Sequence[Chosen], params: dict) -> Division:
        """How devices divide the operation, given the shardings of its operands."""
        raise NotImplementedError


def names_of(axes: Any) -> tuple:
    """The mesh axes in an entry of a spec."""
    return axes if isinstance(axes, tuple) else () if axes is None else (axes,)


def evenly(mesh: Any, axes: Any, *sizes: int) -> Any:
    """An entry of a spec, or None if its mesh axes do not divide all sizes evenly."""
    count = math.prod([mesh.shape[name] for name in names_of(axes)])
    return None if any([size % count for size in sizes]) else axes
