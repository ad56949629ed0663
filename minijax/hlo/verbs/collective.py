"""Verbs for collectives, point-to-point communication, and shardings."""

from collections.abc import Sequence
from typing import Any

from minijax.hlo import spell
from minijax.hlo.regions import REGION_BODY
from minijax.hlo.shardy import Meshes, constraining
from minijax.hlo.spell import int_pairs, results_of, suffix_of, type_of, types_of
from minijax.hlo.verbs.reduction import Reduction
from minijax.hlo.writer import PLATFORM_INDEX, Avals, Build, Names, Region
from minijax.ir.types import Name, ShapedArray, token_type
from minijax.partition.meshes import AxisType, P

Pairs = Sequence[tuple[int, int]]  # (source, target)


class Collective(Reduction):
    """Communication between devices, in `groups` that are rows of device positions; and shardings."""

    manual: Any  # inside `manual_computation`: its mesh, and the axes that are manual so far
    explicit: Any  # the mesh, if results are constrained to the shardings in their types
    meshes: Meshes
    groups = 0  # the number of sharding groups

    def all_reduce(self, x: Name, aval: ShapedArray, groups: Any, reducer: Build | str) -> Name:
        attrs = f"{_channel_and_groups(groups)}, use_global_device_ids"
        return self.op("all_reduce", (x,), (aval,), (aval,), attrs, (self._reducer(reducer, (aval,), "all_reduce"),))[0]

    def all_gather(self, x: Name, aval: ShapedArray, out: ShapedArray, dim: int, groups: Any) -> Name:
        attrs = f"all_gather_dim = {dim} : i64, {_channel_and_groups(groups)}, use_global_device_ids"
        return self.op("all_gather", (x,), (aval,), (out,), attrs)[0]

    def reduce_scatter(
        self, x: Name, aval: ShapedArray, out: ShapedArray, dim: int, groups: Any, reducer: Build | str
    ) -> Name:
        attrs = f"{_channel_and_groups(groups)}, scatter_dimension = {dim} : i64, use_global_device_ids"
        return self.op(
            "reduce_scatter", (x,), (aval,), (out,), attrs, (self._reducer(reducer, (aval,), "reduce_scatter"),)
        )[0]

    def all_to_all(
        self, x: Name, aval: ShapedArray, out: ShapedArray, split_dim: int, concat_dim: int, count: int, groups: Any
    ) -> Name:
        attrs = (
            f"concat_dimension = {concat_dim} : i64, {_channel_and_groups(groups)}, "
            f"split_count = {count} : i64, split_dimension = {split_dim} : i64"
        )
        return self.op("all_to_all", (x,), (aval,), (out,), attrs)[0]

    def ragged_all_to_all(self, operands: Names, ins: Avals, outs: Avals, groups: Any) -> list[Name]:
        """Sends slices of the first operand into the second, by offsets and sizes."""
        config = {"channel_id": "1 : i64", "replica_groups": spell.int_matrix(groups)}
        attrs = {"api_version": "4 : i32", "backend_config": spell.dictionary(config)}
        call = f"stablehlo.custom_call @ragged_all_to_all({', '.join(operands)}) {spell.dictionary(attrs)}"
        return self.results(call, ins, outs)

    def collective_permute(self, x: Name, aval: ShapedArray, pairs: Pairs) -> Name:
        return self.op("collective_permute", (x,), (aval,), (aval,), _channel_and_pairs(pairs))[0]

    def collective_broadcast(self, x: Name, aval: ShapedArray, groups: Any) -> Name:
        """The value of the first member of each group, on all of its members."""
        return self.op("collective_broadcast", (x,), (aval,), (aval,), _channel_and_groups(groups))[0]

    def send(self, x: Name, token: Name, aval: ShapedArray, pairs: Pairs) -> Name:
        """Sends a value to the targets of the pairs. Returns a token."""
        return self.op("send", (x, token), (aval, token_type), (token_type,), _channel_and_pairs(pairs))[0]

    def recv(self, token: Name, out: ShapedArray, pairs: Pairs) -> list[Name]:
        """Receives the value that a pair's source sends. Returns the value and a token."""
        return self.op("recv", (token,), (token_type,), (out, token_type), _channel_and_pairs(pairs))

    def partition_id(self) -> Name:
        return self.assign("stablehlo.partition_id : tensor<ui32>")

    # ---- shardings --------------------------------------------------------------------------------

    def sharding_constraint(self, x: Name, aval: ShapedArray, sharding: Any) -> Name:
        return self.constrained(x, aval, self.meshes.sharding_text(sharding, aval))

    def constrained(self, x: Name, aval: ShapedArray, sharding: str) -> Name:
        """As `sharding_constraint`, with the sharding in the syntax of Shardy."""
        return self.assign(f"sdy.sharding_constraint {x} <{sharding}> : {type_of(aval)}")

    def sharding_group(self, operands: Names, avals: Avals) -> None:
        """Requires the same sharding for all operands; each group of a module has a number."""
        for x, aval in zip(operands, avals, strict=True):
            self.line(f"sdy.sharding_group {x} group_id={self.groups} : {type_of(aval)}")
        self.groups += 1

    def fully_manual(self, operands: Names, ins: Avals, outs: Avals, build: Build) -> list[Name]:
        """Emits `build` in a region in which all axes of the mesh are manual, with replicated operands."""
        mesh = self.manual[0]
        rest = [n for n in mesh.axis_names if n not in self.manual[1]]
        if not rest:
            return list(build(*operands))
        mesh = mesh.update_axis_types(dict.fromkeys(rest, AxisType.Manual))
        specs = [P()] * len(ins), [P()] * len(outs)  # replicated
        return self.manual_computation(operands, ins, outs, *specs, mesh, rest, Region(ins, outs, build))

    def manual_computation(self, operands: Names, ins: Avals, outs: Avals, in_specs: Sequence, out_specs: Sequence,
                           mesh: Any, axes: Sequence, body: Region) -> list[Name]:  # fmt: skip
        """Runs `body` on each device's shards of the operands; the mesh axes `axes` become manual in it."""
        outer = self.manual, self.explicit
        self.manual = mesh, frozenset(mesh.manual_axes)
        self.explicit = None if mesh.size == 1 else constraining(mesh)
        if mesh.size == 1:  # the shard is the global value, and the module is not partitioned
            results = list(body.build(*operands))
            self.manual, self.explicit = outer
            return results
        is_sized = operands and token_type not in ins and any(name != PLATFORM_INDEX for name in self.globals)
        write = self._sized_region if is_sized else self._region
        results = write(operands, ins, outs, in_specs, out_specs, mesh, axes, body)
        self.manual, self.explicit = outer
        return results

    def _region(self, operands, ins, outs, in_specs, out_specs, mesh, axes, body):
        shared = list(map(self.global_type, self.globals))
        operands, ins = [*self.globals.values(), *operands], [*shared, *ins]
        texts = (
            self._shardings_text(mesh, [*[P()] * len(shared), *in_specs], ins),
            self._shardings_text(mesh, out_specs, outs),
        )
        names = self.block_args(len(operands))
        left, results = self.fresh(len(outs))
        self.line(
            f"{left}sdy.manual_computation({', '.join(operands)}) "
            f"in_shardings=[{texts[0]}] out_shardings=[{texts[1]}] manual_axes={_axis_names(axes)} "
            f"({self._typed(names, [*shared, *body.args])}) {{"
        )
        build = self.taking_globals(lambda args: body.build(*args))
        self._inside(lambda *args: build(args), names, body.outs, "sdy.return")
        self.line(f"}} : ({types_of(ins)}) -> {results_of(outs)}")
        return results

    def _sized_region(self, operands, ins, outs, in_specs, out_specs, mesh, axes, body):
        """A region in the form that Shardy has in HLO, a function: XLA refines shapes only there."""
        callee = self.unique_symbol(REGION_BODY)
        self.program_function(f"private {callee}", body.args, body.outs, lambda args: body.build(*args))
        texts = {"in": self._shardings_text(mesh, in_specs, ins), "out": self._shardings_text(mesh, out_specs, outs)}

        def convert_shapes(name, operands, ins, outs, side):
            shapes = [(*a.shape, *suffix_of(a)) for a in outs]
            lists = [self.size_list(shape) for shape in shapes]
            frontend = {
                f"xla.sdy.{side}_shardings": f"#sdy.sharding_per_value<[{self.meshes.inlined(mesh, texts[side])}]>",
                "xla.sdy.manual_axes": f"#sdy<manual_axes{_axis_names(axes)}>",
            }
            numbers = ", ".join([str(len(ins) + i) for i in range(len(lists))])
            attrs = {
                "has_side_effect": "true",
                "indices_of_shape_operands": f"dense<[{numbers}]> : tensor<{len(lists)}xi64>",
                "mhlo.frontend_attributes": spell.dictionary({k: spell.string(v) for k, v in frontend.items()}),
            }
            call = f"stablehlo.custom_call @{name}({', '.join([*operands, *lists])}) {spell.dictionary(attrs)}"
            return self.results(call, [*ins, *[self.list_type(len(shape)) for shape in shapes]], outs)

        parts = convert_shapes("xla.sdy.GlobalToLocalShape", operands, ins, body.args, "in")
        names = ", ".join([*self.globals.values(), *parts])
        types = [*map(self.global_type, self.globals), *body.args]
        results = self.results(f"func.call {callee}({names}) {{no_inline}}", types, body.outs)
        return convert_shapes("xla.sdy.LocalToGlobalShape", results, body.outs, outs, "out")

    def _shardings_text(self, mesh, specs, avals):
        return ", ".join(
            [f"<{self.meshes.region_sharding_text(mesh, s, a)}>" for s, a in zip(specs, avals, strict=True)]
        )


def _axis_names(axes: Sequence) -> str:
    return "{" + ", ".join([spell.string(str(a)) for a in axes]) + "}"


_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def _channel_and_pairs(pairs: Pairs) -> str:
    return f"{_CHANNEL}, source_target_pairs = {int_pairs(pairs)}"


def _channel_and_groups(groups: Any) -> str:
    return f"{_CHANNEL}, replica_groups = {spell.int_matrix(groups)}"
