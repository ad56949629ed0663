"""Lowers a jaxpr to the text of a module."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.base import source, stack
from minijax.base.symbolic.solver import solved
from minijax.hlo import spell
from minijax.hlo.emitter import Emitter, jaxpr_body, ordered_in
from minijax.hlo.locations import Located, LocationContext
from minijax.hlo.portable import rules_of
from minijax.hlo.program import Port, Program
from minijax.hlo.shardy import constraining
from minijax.hlo.sizes import SizesOfArguments
from minijax.hlo.spell import type_of
from minijax.hlo.writer import PLATFORM_INDEX, global_attributes
from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.types import Aval, token_type
from minijax.partition.layouts import Layout


class Module(NamedTuple):
    """The text of a lowered program, and the callbacks, effects and donations of its executable."""

    name: str
    text: str
    callbacks: list  # host functions, by their index in the text
    ordered: list  # ordered effects: one token each, before the arguments and before the results
    aliases: dict[int, int]  # donated argument -> the result that uses its buffer
    donors: tuple[int, ...]  # donated arguments whose buffer any result may use
    watchers: list  # functions that XLA calls while it compiles; if any, other programs do not share the executable
    located: Callable[..., Located]  # () -> the text with locations, which takes about as long again to emit
    is_polymorphic: bool = False  # it is for several platforms, or calls an exported program that is


def match_donated(donated: Sequence[bool], ins: Sequence[Aval], outs: Sequence[Aval]) -> dict[int, int]:
    """Assigns to each result the first unused donated argument of its shape, dtype and memory."""
    free: dict[tuple, list[int]] = {}
    for i, (aval, is_donated) in enumerate(zip(ins, donated, strict=False)):
        if is_donated:
            free.setdefault((aval.shape, aval.dtype, aval.memory_space), []).append(i)
    aliases = {}
    for out, aval in enumerate(outs):
        waiting = free.get((aval.shape, aval.dtype, aval.memory_space)) if free else None
        if waiting:
            aliases[waiting.pop(0)] = out
    return aliases


@stack.deep
def lower_jaxpr(program: Program) -> Module:
    """Lowers a program to the text of a module.

    The program's `constants` become arguments after the user's; the jaxpr's other constants are emitted in the module.
    The function takes the platform index if there are several platforms, then the tokens of ordered effects.
    """
    e = _emitter(program)
    closed, jaxpr, ordered = program.closed, program.closed.jaxpr, ordered_in(program.closed.jaxpr)
    aliases, donors = donations(program)
    index = [PLATFORM_INDEX] * (len(program.platforms) > 1)
    leading = [*index, *program.variables]
    before, end = len(index) + len(ordered), len(ordered) + len(program.ins)
    main = _main(e, program, index, len(ordered), aliases, donors)

    names = [f" loc({spell.string(port.name)})" for port in program.ins if port.name is not None]

    def located_head():
        shown = [" loc(unknown)"] * len(main.ins) if names_inner else [""] * before + names
        return e.meshes.head_on_mesh(main.head([f"%arg{i}" for i in range(len(main.ins))], shown))

    def body(args):
        e.globals, args = dict(zip(leading, args, strict=False)), args[len(leading) :]
        e.tokens = dict(zip(ordered, args, strict=False))
        constants = _constants(e, closed, dict(zip(program.constants, args[end:], strict=True)))
        results = jaxpr_body(e, jaxpr, constants, _whole_keys(e, args[len(ordered) : end], program.ins))
        results = list(map(functools.partial(_in_memory, e), results, program.outs))
        return [*e.tokens.values(), *_whole_keys(e, results, program.outs)]

    sizes = lambda args: _sizes(e, program.ins, args[before:])  # noqa: E731
    is_wrapped = program.variables or (program.for_export and ordered)
    names_inner = bool(is_wrapped and program.for_export)  # an exported program is always written with locations
    if is_wrapped:
        unnamed = [" loc(unknown)"] * (before + len(program.variables))
        body = main.wrapped(e, body, len(index), program.variables, sizes, (*unnamed, *names) if names_inner else ())
    e.function(main.head, len(main.ins), body, main.outs)
    e.functions[0][0] = e.meshes.head_on_mesh(e.functions[0][0])
    e.marks.append((e.functions[0], 1, len(e.functions[0]) - 1, e.function_context, None))
    written = e.written(name := spell.module_name(program.name), _attributes(e), located_head)
    seen = e.watchers, written.located, e.is_polymorphic
    return Module(name, written.text(), e.callbacks, ordered, aliases, donors, *seen)


def _emitter(program: Program) -> Emitter:
    """The emitter of a program's module, before the first operation."""
    e = Emitter(*program.platforms)
    e.for_export, e.rule_of = program.for_export, rules_of(e, program.overrides)
    e.around = e.function_context = LocationContext(program.scope, (), source.here())
    e.num_partitions, e.devices = program.num_partitions, program.devices
    e.mesh, e.manual = program.mesh, program.manual
    e.names_memory = any(port.memory_kind is not None for port in (*program.ins, *program.outs))
    is_partitioned = program.num_partitions > 1 and program.manual is None
    e.explicit = constraining(program.mesh) if is_partitioned and program.mesh is not None else None
    e.is_polymorphic |= bool(program.variables)
    return e


def _main(
    e: Emitter, program: Program, index: Sequence[str], tokens: int, aliases: Mapping[int, int], donors: Sequence[int]
) -> "_Main":
    """The types and attributes of `main`: (platform index, tokens, arguments, constants) -> (tokens, results)."""
    constants = list(program.constants.values())
    token_attributes = [{"jax.token": "true"}] * tokens
    ins = [*map(e.global_type, index), *[token_type] * tokens, *[p.aval for p in (*program.ins, *constants)]]
    outs = [*[token_type] * tokens, *[p.aval for p in program.outs]]
    in_attrs = [*map(global_attributes, index), *token_attributes]
    for i, port in enumerate((*program.ins, *constants)):
        attributes = _port_attributes(e, port)
        if i in aliases:
            attributes["tf.aliasing_output"] = f"{aliases[i] + tokens} : i32"
        if i in donors:
            attributes["jax.buffer_donor"] = "true"
        in_attrs.append(attributes)
    out_attrs = token_attributes + [_result_attributes(e, port) for port in program.outs]
    return _Main(ins, outs, in_attrs, out_attrs)


def _constants(e: Emitter, closed: ClosedJaxpr, names: dict[Var, str]) -> list[str]:
    """The names of a program's constants; emits those that are not arguments."""
    rows = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    return [names[v] if v in names else e.constant_of(value, v.aval) for v, value in rows]


def _sizes(e: Emitter, ins: Sequence[Port], args: Sequence[str]) -> dict[str, str]:
    """The values of the dimension variables in the types of arguments."""
    names = [port.path or port.name or f"args[{i}]" for i, port in enumerate(ins)]
    avals = [port.aval for port in ins]
    return solved([getattr(a, "shape", ()) for a in avals], names, SizesOfArguments(e, args, avals))


def _attributes(e: Emitter) -> dict[str, str]:
    """The attributes of the module."""
    sizes = {"mhlo.num_partitions": f"{e.num_partitions} : i32", "mhlo.num_replicas": "1 : i32"}
    if not e.for_export:
        return sizes
    return {**sizes, "jax.uses_shape_polymorphism": "true" if e.is_polymorphic else "false"}


class _Main(NamedTuple):
    """The types and attributes of a program's arguments and results."""

    ins: list
    outs: list
    in_attrs: list
    out_attrs: list

    def head(self, args: Sequence[str], locations: Sequence[str] = (), symbol: str = "public @main") -> str:
        """The first line of a function with these arguments and results."""
        rows = itertools.zip_longest(args, self.ins, self.in_attrs, locations, fillvalue="")
        texts = [f"{a}: {_with_attributes(t, d)}{where}" for a, t, d, where in rows]
        results = ", ".join([_with_attributes(t, d) for t, d in zip(self.outs, self.out_attrs, strict=True)])
        return f"  func.func {symbol}({', '.join(texts)}) -> ({results}) {{"

    def wrapped(
        self, e: Emitter, body: Callable, at: int, variables: Sequence[str], sizes: Callable, locations: Sequence[str]
    ) -> Callable:
        """A body that calls a function with jax's name, which holds `body` and takes the dimension variables too.

        They come before argument `at`; `sizes` emits their values, computed from the arguments. `locations` are those
        of the function's arguments.
        """
        types, attrs = list(map(e.global_type, variables)), list(map(global_attributes, variables))
        inner = self._replace(
            ins=[*self.ins[:at], *types, *self.ins[at:]], in_attrs=[*self.in_attrs[:at], *attrs, *self.in_attrs[at:]]
        )

        def call(args):
            callee = e.unique_symbol("_wrapped_jax_export_main")
            head = lambda names: inner.head(names, locations, f"private {callee}")  # noqa: E731
            e.function(head, len(inner.ins), body, self.outs)
            values = sizes(args) if variables else {}
            return e.call(callee, [*args[:at], *(values[v] for v in variables), *args[at:]], inner.ins, self.outs)

        return call


def donations(program: Program) -> tuple[dict[int, int], tuple[int, ...]]:
    """Donated argument -> the result that aliases it, and the donated arguments whose buffer any result may use.

    The sizes of shards are compared. A result whose sharding XLA chooses may use any buffer, others one of their size.
    """
    if not any(port.donated for port in program.ins):
        return {}, ()
    is_single = program.num_partitions == 1
    fixed = [i for i, port in enumerate(program.outs) if is_single or port.sharding is not None]
    any_size = len(fixed) < len(program.outs)
    fixed = [i for i in fixed if not program.outs[i].is_token]
    donated = [port.donated and not port.is_token for port in program.ins]
    ins, outs = [port.local_aval for port in program.ins], [program.outs[i].local_aval for i in fixed]
    aliases = {
        i: fixed[n]
        for i, n in match_donated(donated, ins, outs).items()
        if _have_same_layout(i, program.ins[i], program.outs[fixed[n]])
    }
    aliased = set(aliases.values())
    free = Counter(_size(out) for i, out in zip(fixed, outs, strict=True) if i not in aliased)
    candidates = {i: _size(aval) for i, aval in enumerate(ins) if donated[i] and i not in aliases}
    return aliases, _donors(candidates, free, any_size)


def _donors(candidates: Mapping[int, tuple], free: Counter, any_size: bool) -> tuple[int, ...]:
    """The donated arguments, of these sizes, for which a free result has the size; all if a result takes any size."""
    donors = []
    for i, size in candidates.items():
        is_free = free[size] > 0
        free[size] -= is_free
        if is_free or any_size:
            donors.append(i)
    return tuple(donors)


def _size(aval: Any) -> tuple:
    return aval.size, aval.memory_space


def _mode(layout: Any) -> str:
    """A layout as a value of the attribute `mhlo.layout_mode`."""
    return "auto" if layout is Layout.AUTO else "{" + ",".join(map(str, reversed(layout.major_to_minor))) + "}"


def _have_same_layout(i: int, donated: Port, result: Port) -> bool:
    """Returns whether a result may use the memory of donated argument `i`.

    Raises ValueError if XLA chooses the layout of one of them only.
    """
    have, want = (None if port.layout is None else _mode(port.layout) for port in (donated, result))
    if have != want and "auto" in (have, want):
        texts = ["AUTO" if mode == "auto" else f'"{mode}"' if mode else "the default" for mode in (have, want)]
        side = "output" if have == "auto" else "input"
        raise ValueError(
            f"jit: donated argument {i} has layout {texts[0]}, the result in its memory {texts[1]}. Did you mean to "
            f"set the **{side} layout** to **Layout.AUTO**? Then XLA chooses both"
        )
    return have == want


def _whole_keys(e: Emitter, names: Sequence[str], ports: Sequence[Port]) -> list[str]:
    """Keeps the words of each key on one device, where XLA chooses the sharding of an argument or a result."""
    if e.num_partitions == 1 or e.manual is not None:
        return list(names)
    rows = zip(names, ports, strict=True)
    return [e.replicate_key_words([x], [port.aval])[0] if port.sharding is None else x for x, port in rows]


def _in_memory(e: Emitter, result: str, port: Port) -> str:
    """A result, transferred to the memory that is requested for it."""
    if port.memory_kind is None or port.sharding is None:
        return result
    return e.annotate_placement(result, port.aval, port.memory_kind)


def _port_attributes(e: Emitter, port: Port) -> dict[str, str]:
    """The attributes of an argument or a result: layout, sharding and memory kind."""
    attributes = {}
    if port.layout is not None:
        attributes["mhlo.layout_mode"] = f'"{_mode(port.layout)}"'
    if port.sharding is not None:
        attributes["sdy.sharding"] = e.meshes.attribute(port.sharding, port.aval)
    if port.memory_kind is not None:
        attributes["mhlo.memory_kind"] = spell.string(port.memory_kind)
    return attributes


def _result_attributes(e: Emitter, port: Port) -> dict[str, str]:
    attributes = _port_attributes(e, port)
    if port.name is not None:
        attributes["jax.result_info"] = spell.string(port.name)
    return attributes


def _with_attributes(aval, attrs):
    return f"{type_of(aval)} {spell.dictionary(attrs)}" if attrs else type_of(aval)
