"""Verbs for control flow, calls of functions and custom calls, and ordering."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.hlo import spell
from minijax.hlo.custom_call import CustomCall, HostTransfers, layouts_by
from minijax.hlo.locations import LocationContext
from minijax.hlo.sizes import Sizes, has_sizes
from minijax.hlo.spell import attribute, types_of
from minijax.hlo.writer import FLAG, INDEX, Avals, Build, Names, Region
from minijax.ir.types import Name, ShapedArray, token_type

_NOTHING, _ANSWER = ShapedArray((1,), dtypes.float32), ShapedArray((), dtypes.float32)
_HOST_CALLS = {"cpu": "cpu", "cuda": "gpu", "rocm": "gpu"}  # part of the names of XLA's targets


class Control(Sizes):
    """Loops, branches, shared functions, and custom calls."""

    callbacks: list[Any]
    watchers: list[Any]
    meshes: Any
    sharding_constraint: Any
    num_partitions: int
    manual: Any  # inside `manual_computation`: its mesh, and the axes that are manual so far
    _called: dict[Any, tuple[str, int]]  # (jaxpr, name) -> symbol, height of calls below
    _height: int

    def while_(self, inits: Names, avals: Avals, cond: Build, body: Build) -> list[Name]:
        """Repeats `body(*state) -> state` while `cond(*state) -> flag`."""
        names = [self._stemmed("iterArg") for _ in inits]
        state = ", ".join([f"{n} = {x}" for n, x in zip(names, inits, strict=True)])
        left, results = self.fresh(len(inits))
        types = f" : {types_of(avals)}" if inits else ""
        self.lines.append(f"{self._in}{left}stablehlo.while({state}){types} cond {{")
        self._inside(cond, names, (FLAG,))
        self.lines.append(f"{self._in}}} do {{")
        self._inside(body, names, avals)
        self.lines.append(f"{self._in}}}")
        return results

    def case_(self, index: Name, branches: Sequence[Build], outs: Avals) -> list[Name]:
        """Runs the branch with an int32 index; branches take no arguments and may capture values."""
        regions = [Region((), outs, branch) for branch in branches]
        return self.op("case", (index,), (ShapedArray((), dtypes.int32),), outs, "", regions)

    def select_constant(self, index: Name, items: Sequence[int]) -> Name:
        """The item at an int32 index of a fixed sequence."""
        branches = [lambda i=i: [self.constant(i, INDEX)] for i in items]
        return self.case_(index, branches, [INDEX])[0]

    def case_of_lines(self, index: Name, branches: Sequence[tuple[Sequence[str], Names]], outs: Avals) -> list[Name]:
        """As `case_`, for branches given as (lines, names of results); lines are indented as in a region here."""

        def build(lines, results):
            self.lines += lines
            return results

        return self.case_(index, [functools.partial(build, *branch) for branch in branches], outs)

    def call(self, callee: str, operands: Names, ins: Avals, outs: Avals) -> list[Name]:
        """Calls the function with symbol `callee`."""
        call = "call" if self._in == "    " else "func.call"
        return self.results(f"{call} {callee}({', '.join(operands)})", ins, outs)

    def call_program(self, callee: str, operands: Names, ins: Avals, outs: Avals) -> list[Name]:
        """As `call`, for a function that takes the module's globals first."""
        return self.call(
            callee, [*self.globals.values(), *operands], [*map(self.global_type, self.globals), *ins], outs
        )

    def composite(self, name: str, decomposition: str, operands: Names, ins: Avals, outs: Avals,
                  attributes: Mapping[str, Any], version: int = 0) -> list[Name]:  # fmt: skip
        """A composite operation; the function with the symbol `decomposition` defines its semantics."""
        attrs = {"decomposition": decomposition}
        if attributes:
            attrs["composite_attributes"] = attribute(attributes)
        if version:
            attrs["version"] = f"{version} : i32"
        text = f"stablehlo.composite {spell.string(name)} {', '.join(operands)} {spell.dictionary(attrs)}"
        return self.results(text, ins, outs)

    def call_shared(self, name: str, key: Any, operands: Names, ins: Avals, outs: Avals, build: Build) -> list[Name]:
        """Calls a private function, which `build` emits at the first call with this key and these types."""
        self._height = max(self._height, 1)
        return self.call_program(self._shared(name, key, ins, outs, build), operands, ins, outs)

    def shared(self, name: str, key: Any, ins: Avals, outs: Avals, build: Build, visibility: str = "private ") -> str:
        """The symbol of a function, which `build` emits the first time with this key and these types."""
        outer, self.globals = self.globals, {}
        callee = self._shared(name, key, ins, outs, build, visibility)
        self.globals = outer
        return callee

    def _shared(self, name, key, ins, outs, build, visibility="private "):
        key = (key, *ins, *outs), name, self.platforms, self.manual
        if key not in self._called:
            callee = self.unique_symbol(name)
            outer, self.around = self.around, LocationContext()
            self.program_function(f"{visibility}{callee}", ins, outs, lambda args: build(*args))
            self.around = outer
            self._called[key] = callee, 1
        return self._called[key][0]

    def custom_call(self, target: str, operands: Names, ins: Avals, outs: Avals, **options: Any) -> list[Name]:
        """Calls the function that is registered with XLA as `target`; the options are the fields of a `CustomCall`."""
        if self.reduction is not None:  # XLA would end the process
            raise NotImplementedError(f"Cannot lower effectful `{self.reduction}`: its function calls `{target}`")
        call, attrs = CustomCall(target, **options), {}
        if call.shaped and any(map(has_sizes, outs)):
            attrs["indices_of_shape_operands"] = spell.dense(np.arange(len(ins), len(ins) + len(outs)))
            shapes = [spell.physical(a).shape for a in outs]
            operands, ins = (*operands, *map(self.size_list, shapes)), (*ins, *[self.list_type(len(s)) for s in shapes])
            if call.operand_layouts is not None:
                call = replace(call, operand_layouts=[*call.operand_layouts, *[(0,)] * len(outs)])
        attrs |= call.attributes(len(outs))
        text = f"stablehlo.custom_call {spell.symbol(target)}({', '.join(operands)}) {spell.dictionary(attrs)}"
        return self.results(text, ins, outs)

    def host_call(self, function: Any, operands: Names, ins: Avals, outs: Avals, *, has_side_effect: bool = False,
                  partitioned: bool = False, device: int | None = 0, answers: bool = False) -> list[Name]:  # fmt: skip
        """Calls a host function, once per device in a manual region or if `partitioned`.

        In other programs only the device with the number `device` calls it, on global arrays. On TPUs values are sent
        and received; if `answers`, an answer is received from a function without results.
        """
        if self.platform == "tpu":
            return self._host_transfers(function, operands, ins, outs, device or 0, answers)
        if self.platform not in _HOST_CALLS:
            raise NotImplementedError(f"host callbacks in programs for the platform {self.platform}")
        index, sharding = len(self.callbacks), None
        self.callbacks.append(function)
        if not (partitioned or self.num_partitions == 1 or self.manual):
            sharding = self.meshes.on_one_device(device or 0, max(len(outs), 1))
        target = f"xla_ffi_{'partitioned_' * partitioned}python_{_HOST_CALLS[self.platform]}_callback"
        options = dict(backend_config={"index": np.uint64(index)}, has_side_effect=has_side_effect, sharding=sharding)
        results = self.custom_call(target, operands, ins, outs, **options, **layouts_by(_row_major, ins, outs))
        if sharding is None:
            return results
        # Without the constraint the results would be taken to be on all devices.
        rows = zip(results, outs, strict=True)
        return [self.sharding_constraint(x, a, None) if isinstance(a, ShapedArray) else x for x, a in rows]

    def _host_transfers(
        self, function: Any, operands: Names, ins: Avals, outs: Avals, device: int, answers: bool
    ) -> list[Name]:
        """Sends the operands of a host function to it, and receives its results, in the order of a token."""
        has_token = list(ins[:1]) == [token_type]
        token, *operands = operands if has_token else (self.create_token(), *operands)
        sent, received = ins[has_token:], outs[has_token:]
        if not operands:
            operands, sent = [self.constant(np.zeros(1, np.float32), _NOTHING)], [_NOTHING]
        if not received and (has_token or answers):
            received = [_ANSWER]
        first = 2 + sum([len(call.sends) + len(call.receives) for call in self.callbacks])  # 1 is that of collectives
        call = HostTransfers(function, first, sent, received)
        self.callbacks.append(call)
        results = []
        for x, aval, channel in zip(operands, sent, call.channels[0], strict=True):
            text = f'"stablehlo.send"({x}, {token}) {self._on_channel(channel, 2, device, 1)}'
            (token,) = self.results(text, (aval, token_type), (token_type,))
        for aval, channel in zip(received, call.channels[1], strict=True):
            text = f'"stablehlo.recv"({token}) {self._on_channel(channel, 3, device, 2)}'
            result, token = self.results(text, (token_type,), (aval, token_type))
            results.append(result)
        results = results[: len(outs) - has_token]
        return [token, *results] if has_token else results

    def _on_channel(self, channel: int, kind: int, device: int, count: int) -> str:
        """The properties and attributes of a transfer to the host (2) or from it (3)."""
        attrs = {
            "mhlo.frontend_attributes": spell.dictionary(
                {
                    "_xla_host_transfer_handler_name": spell.string("pjrt_rendezvous"),
                    "_xla_host_transfer_rendezvous": spell.string(str(channel)),
                }
            )
        }
        if self.num_partitions > 1:
            on_one, manual = self.meshes.on_one_device, self.meshes.on_each_device
            attrs["sdy.sharding"] = manual(count) if self.manual else on_one(device, count)
        handle = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = {kind}>"
        return f"<{{{handle}, is_host_transfer = true}}> {spell.dictionary(attrs)}"

    def buffer_call(self, function: Any, operands: Names, ins: Avals, outs: Avals, *, has_side_effect: bool,
                    aliases: Mapping[int, int], in_graphs: bool) -> list[Name]:  # fmt: skip
        """Calls a host function with the buffers of operands and results; `in_graphs` allows GPU command buffers."""
        if self.platform not in _HOST_CALLS:
            raise ValueError(f"`buffer_callback` not supported on {self.platform} backend.")
        place, config = _HOST_CALLS[self.platform], {"index": np.uint64(len(self.callbacks))}
        self.callbacks.append(function)
        target = f"xla_buffer_python_{place}_callback{'_cmd_buffer' * (in_graphs and place == 'gpu')}"
        options = dict(backend_config=config, has_side_effect=has_side_effect, aliases=aliases)
        return self.custom_call(target, operands, ins, outs, **options, **layouts_by(_row_major, ins, outs))

    def inspect_sharding(self, function: Any, config: bytes, x: Name, aval: ShapedArray) -> None:
        """Makes XLA call a function with the sharding of a value when it compiles; `config` identifies the function."""
        self.watchers.append(function)
        self.custom_call(
            "InspectSharding", [x], [aval], [aval], api_version=1, backend_config=config, has_side_effect=True
        )

    def annotate_placement(self, x: Name, aval: ShapedArray, memory_kind: str) -> Name:
        """Places a value in a memory of this kind."""
        frontend = {"_xla_buffer_placement": memory_kind}
        return self.custom_call(
            "annotate_device_placement", [x], [aval], [aval], api_version=1, has_side_effect=True, frontend=frontend
        )[0]

    def top_k_comparator(self, direction: str, dtype: Any) -> str:
        """The symbol of a function (x, y, index of x, index of y) -> whether x precedes y, compared by GT or LT."""
        unit, index = ShapedArray((), dtype), ShapedArray((), dtypes.int32)

        def before(x, y, *places):
            return [self.result(f"stablehlo.compare {direction}, {x}, {y}", (unit, unit), FLAG)]

        name = f"top_k_{direction.lower()}_{spell.element(dtype)}_comparator"
        return self.shared(name, None, (unit, unit, index, index), (FLAG,), before, "")

    def optimization_barrier(self, operands: Names, avals: Avals) -> list[Name]:
        if not operands:
            return []
        left, results = self.fresh(len(operands))
        self.line(f"{left}stablehlo.optimization_barrier {', '.join(operands)} : {types_of(avals)}")
        return results

    def create_token(self) -> Name:
        return self.assign("stablehlo.create_token : !stablehlo.token")

    def after_all(self, tokens: Names) -> Name:
        """A token that waits for others."""
        return self.assign(f"stablehlo.after_all {', '.join(tokens)} : !stablehlo.token")


def _row_major(aval: Any) -> Sequence[int]:
    return range(len(spell.physical(aval).shape))[::-1] if isinstance(aval, ShapedArray) else ()
