"""Verbs of collectives, point-to-point communication, and shardings."""

from collections.abc import Sequence
from typing import Any

from minijax.hlo import spell
from minijax.hlo.shardy import Meshes
from minijax.hlo.spell import int_pairs, results_of, type_of, types_of
from minijax.hlo.verbs.reduction import Reduction
from minijax.hlo.writer import Avals, Build, Names, Region
from minijax.ir.types import Name, ShapedArray, token_type

Pairs = Sequence[tuple[int, int]]  # (source, target)


class Collective(Reduction):
    """Exchanges between devices, whose `groups` are a row of positions a group; and shardings."""

    manual: Any  # inside `manual_computation`: its mesh, and the axes that are manual so far
    meshes: Meshes
    groups = 0  # of values that are laid out alike

    def all_reduce(self, x: Name, aval: ShapedArray, groups: Any, reducer: Build | str) -> Name:
        attrs = f"{_collective(groups)}, use_global_device_ids"
        return self.op("all_reduce", (x,), (aval,), (aval,), attrs, (self._reducer(reducer, (aval,)),))[0]

    def all_gather(self, x: Name, aval: ShapedArray, out: ShapedArray, dim: int, groups: Any) -> Name:
        attrs = f"all_gather_dim = {dim} : i64, {_collective(groups)}, use_global_device_ids"
        return self.op("all_gather", (x,), (aval,), (out,), attrs)[0]

    def reduce_scatter(
        self, x: Name, aval: ShapedArray, out: ShapedArray, dim: int, groups: Any, reducer: Build | str
    ) -> Name:
        attrs = f"{_collective(groups)}, scatter_dimension = {dim} : i64, use_global_device_ids"
        return self.op("reduce_scatter", (x,), (aval,), (out,), attrs, (self._reducer(reducer, (aval,)),))[0]

    def all_to_all(self, x: Name, aval: ShapedArray, out: ShapedArray, split_dim: int, concat_dim: int,
                   split_count: int, groups: Any) -> Name:  # fmt: skip
        attrs = (
            f"concat_dimension = {concat_dim} : i64, {_collective(groups)}, "
            f"split_count = {split_count} : i64, split_dimension = {split_dim} : i64"
        )
        return self.op("all_to_all", (x,), (aval,), (out,), attrs)[0]

    def ragged_all_to_all(self, operands: Names, ins: Avals, outs: Avals, groups: Any) -> list[Name]:
        """Sends slices of the first operand into the second, by offsets and sizes."""
        config = {"channel_id": "1 : i64", "replica_groups": spell.int_matrix(groups)}
        attrs = {"api_version": "4 : i32", "backend_config": spell.dictionary(config)}
        call = f"stablehlo.custom_call @ragged_all_to_all({', '.join(operands)}) {spell.dictionary(attrs)}"
        return self.results(call, ins, outs)

    def collective_permute(self, x: Name, aval: ShapedArray, pairs: Pairs) -> Name:
        return self.op("collective_permute", (x,), (aval,), (aval,), _from_to(pairs))[0]

    def send(self, x: Name, token: Name, aval: ShapedArray, pairs: Pairs) -> Name:
        """Sends a value to the other members of its pairs; a token."""
        return self.op("send", (x, token), (aval, token_type), (token_type,), _from_to(pairs))[0]

    def recv(self, token: Name, out: ShapedArray, pairs: Pairs) -> list[Name]:
        """The value sent to this member, and a token."""
        return self.op("recv", (token,), (token_type,), (out, token_type), _from_to(pairs))

    def partition_id(self) -> Name:
        return self.assign("stablehlo.partition_id : tensor<ui32>")

    # ---- shardings --------------------------------------------------------------------------------

    def sharding_constraint(self, x: Name, aval: ShapedArray, sharding: Any) -> Name:
        return self.constrained(x, aval, self.meshes.sharding_text(sharding, aval))

    def constrained(self, x: Name, aval: ShapedArray, sharding: str) -> Name:
        """As `sharding_constraint`, with the sharding as Shardy spells it."""
        return self.assign(f"sdy.sharding_constraint {x} <{sharding}> : {type_of(aval)}")

    def sharding_group(self, operands: Names, avals: Avals) -> None:
        """Values that are laid out alike; each group of a module has its number."""
        for x, aval in zip(operands, avals, strict=True):
            self.line(f"sdy.sharding_group {x} group_id={self.groups} : {type_of(aval)}")
        self.groups += 1

    def manual_computation(self, operands: Names, ins: Avals, outs: Avals, in_shardings: Sequence,
                           out_shardings: Sequence, mesh: Any, axes: Sequence,
                           body: Region) -> list[Name]:  # fmt: skip
        """Runs `body` on each device's part of the operands, along the mesh axes `axes`."""
        outer = self.manual
        inner = frozenset(axes) | (outer[1] if outer is not None else frozenset())
        if mesh.size == 1:  # one device has all of it, and its programs are not partitioned
            self.manual = mesh, inner
            results = list(body.build(*operands))
            self.manual = outer
            return results
        places = [
            ", ".join([f"<{self.meshes.sharding_text(s, a)}>" for s, a in zip(shardings, avals, strict=True)])
            for shardings, avals in ((in_shardings, ins), (out_shardings, outs))
        ]
        names = self.block_args(len(operands))
        left, results = self.fresh(len(outs))
        quoted = ", ".join([spell.string(str(a)) for a in axes])
        self.line(
            f"{left}sdy.manual_computation({', '.join(operands)}) "
            f"in_shardings=[{places[0]}] out_shardings=[{places[1]}] manual_axes={{{quoted}}} "
            f"({self._typed(names, body.args)}) {{"
        )
        self.manual = mesh, inner
        self._inside(body.build, names, body.outs, "sdy.return")
        self.manual = outer
        self.line(f"}} : ({types_of(ins)}) -> {results_of(outs)}")
        return results


_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def _from_to(pairs: Pairs) -> str:
    return f"{_CHANNEL}, source_target_pairs = {int_pairs(pairs)}"


def _collective(groups: Any) -> str:
    return f"{_CHANNEL}, replica_groups = {spell.int_matrix(groups)}"
