"""From a jaxpr to the text of a module."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.base import source, stack
from minijax.base.symbolic_solver import solved
from minijax.hlo import spell
from minijax.hlo.emitter import Emitter, jaxpr_body, ordered_in
from minijax.hlo.locations import Located, Surroundings
from minijax.hlo.portable import rules_of
from minijax.hlo.shardy import constraining
from minijax.hlo.sizes import SizesOfArguments
from minijax.hlo.spell import type_of
from minijax.hlo.writer import PLATFORM_INDEX, global_attributes
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.ir.types import Aval, token_type
from minijax.partition.layouts import Layout


class Module(NamedTuple):
    """The text of a program, and the callbacks, effects and donations of its executable."""

    name: str
    text: str
    callbacks: list  # host functions, by their index in the text
    ordered: list  # ordered effects: one token each, before the arguments and before the results
    aliases: dict[int, int]  # donated argument -> the result that takes its buffer
    donors: tuple[int, ...]  # donated arguments whose buffer any result may take
    watchers: list  # functions that XLA calls while it compiles: such a program is its own
    located: Callable[..., Located]  # the text with locations, which takes about as long again
    is_polymorphic: bool = False  # it is for several platforms, or calls a program that is


def match_donated(donated: Sequence[bool], ins: Sequence[Aval], outs: Sequence[Aval]) -> dict[int, int]:
    """Gives each result the first donated argument of its shape and dtype that is still free."""
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
def lower_jaxpr(closed: ClosedJaxpr, *, name: str, platforms: Sequence[str] = ("cpu",), donated: Sequence[bool] = (),
                arg_names: Sequence[str] | None = None, result_names: Sequence[str] | None = None,
                arg_attrs: Sequence[Mapping[str, str]] | None = None,
                result_attrs: Sequence[Mapping[str, str]] | None = None, hoisted: Sequence[Var] = (),
                in_shardings: Sequence = (), out_shardings: Sequence = (), num_partitions: int = 1,
                memory_kinds: Sequence[str] | None = None,
                devices: Sequence[Any] = (), attributes: Mapping[str, str] | None = None,
                mesh: Any = None, preamble: Sequence[str] = (), scope: str = "", manual: Any = None,
                variables: Sequence[str] = (), for_export: bool = False, arg_paths: Sequence[str] | None = None,
                overrides: Mapping[Any, Callable] = {}) -> Module:  # fmt: skip
    """The module of a program whose unread arguments and dead equations the caller has dropped.

    The constants `hoisted` become arguments after the user's; the others are written into the text.
    Attributes are texts by name; shardings, for several partitions, may be None: then XLA chooses.
    `memory_kinds` are those of the results, where a program uses several: then the shardings' are written
    too. `scope` goes before the names of operations in locations. `manual` are the mesh and its axes if the
    program is that of one device. `variables` are the dimension variables of its arguments. A program for several
    platforms takes the index of the present one first. What is written `for_export` has jax's calling convention;
    `arg_paths` are what its messages call arguments. `overrides` lower equations of primitives instead of these.
    """
    e = Emitter(*platforms)
    e.for_export, e.rule_of = for_export, rules_of(e, overrides)
    e.around = e.around_function = Surroundings(scope, (), source.here())
    e.num_partitions, e.devices, e.mesh, e.manual = num_partitions, devices, mesh, manual
    is_split = num_partitions > 1 and manual is None
    e.explicit = constraining(mesh) if is_split and mesh is not None else None
    e.preamble += preamble
    jaxpr, ordered = closed.jaxpr, ordered_in(closed.jaxpr)
    attrs = arg_attrs or (), result_attrs or ()
    aliases, donors = donations(donated, jaxpr, in_shardings, out_shardings, num_partitions == 1, *attrs)
    arg_attrs = _with_shardings(e, arg_attrs, jaxpr.in_avals, in_shardings, names_memory := memory_kinds is not None)
    result_attrs = _with_shardings(e, result_attrs, jaxpr.out_avals, out_shardings)
    tokens, hoisted_avals = [token_type] * len(ordered), [v.aval for v in hoisted]
    index = [PLATFORM_INDEX] * (len(platforms) > 1)
    leading = [*index, *variables]
    e.is_polymorphic |= bool(variables)
    ins = [*map(e.global_type, index), *tokens, *jaxpr.in_avals, *hoisted_avals]
    outs = [*tokens, *jaxpr.out_avals]
    in_attrs = [*map(global_attributes, index), *[{"jax.token": "true"}] * len(ordered)] + [
        _arg_attrs(i, arg_attrs, aliases, donors, len(ordered)) for i in range(len(jaxpr.invars))
    ]
    hoisted_shardings = in_shardings[len(jaxpr.invars) :]
    in_attrs += _with_shardings(e, None, hoisted_avals, hoisted_shardings, names_memory) or [{}] * len(hoisted)
    out_attrs = [{"jax.token": "true"}] * len(ordered) + [
        _result_attrs(i, result_attrs, result_names, memory_kinds) for i in range(len(jaxpr.outvars))
    ]
    main = _Main(ins, outs, in_attrs, out_attrs)

    def located_head():
        locations = [""] * (len(index) + len(ordered)) + [f" loc({spell.string(n)})" for n in arg_names or ()]
        return e.meshes.on_a_mesh(main.head([f"%arg{i}" for i in range(len(ins))], locations))

    def body(args):
        e.globals, args = dict(zip(leading, args, strict=False)), args[len(leading) :]
        e.tokens = dict(zip(ordered, args, strict=False))
        end = len(ordered) + len(jaxpr.invars)
        constants = _constants(e, closed, dict(zip(hoisted, args[end:], strict=True)))
        results = jaxpr_body(e, jaxpr, constants, args[len(ordered) : end])
        return [*e.tokens.values(), *_annotated(e, results, jaxpr.out_avals, out_shardings, memory_kinds)]

    before = len(index) + len(ordered)
    sizes = lambda args: _sizes(e, jaxpr.in_avals, args[before:], arg_paths or arg_names)  # noqa: E731
    is_wrapped = variables or (for_export and ordered)
    e.function(main.head, len(ins), main.wrapped(e, body, len(index), variables, sizes) if is_wrapped else body, outs)
    e.functions[0][0] = e.meshes.on_a_mesh(e.functions[0][0])
    e.marks.append((e.functions[0], 1, len(e.functions[0]) - 1, e.around_function, None))
    written = e.written(name := spell.module_name(name), {**_attributes(e), **(attributes or {})}, located_head)
    told = e.watchers, written.located, e.is_polymorphic
    return Module(name, written.text(), e.callbacks, ordered, aliases, donors, *told)


def _constants(e: Emitter, closed: ClosedJaxpr, names: dict[Var, str]) -> list[str]:
    """The names of a program's constants; those that have none yet are written."""
    rows = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    return [names[v] if v in names else e.constant_of(value, v.aval) for v, value in rows]


def _sizes(e: Emitter, avals: Sequence[Aval], args: Sequence[str], names: Sequence[str] | None) -> dict[str, str]:
    """The values of the dimension variables in the types of arguments."""
    names = names or [f"args[{i}]" for i in range(len(avals))]
    return solved([getattr(a, "shape", ()) for a in avals], names, SizesOfArguments(e, args, avals))


def _attributes(e: Emitter) -> dict[str, str]:
    """What the text says of a program as a whole."""
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
        """The first line of a function with these."""
        rows = itertools.zip_longest(args, self.ins, self.in_attrs, locations, fillvalue="")
        texts = [f"{a}: {_with(t, d)}{where}" for a, t, d, where in rows]
        results = ", ".join([_with(t, d) for t, d in zip(self.outs, self.out_attrs, strict=True)])
        return f"  func.func {symbol}({', '.join(texts)}) -> ({results}) {{"

    def wrapped(self, e: Emitter, body: Callable, at: int, variables: Sequence[str], sizes: Callable) -> Callable:
        """A body that calls a function of jax's name, which holds `body` and takes dimension variables as well.

        These stand before argument `at`; `sizes` writes their values, of the arguments.
        """
        types, attrs = list(map(e.global_type, variables)), list(map(global_attributes, variables))
        inner = self._replace(
            ins=[*self.ins[:at], *types, *self.ins[at:]], in_attrs=[*self.in_attrs[:at], *attrs, *self.in_attrs[at:]]
        )

        def call(args):
            callee = e.unique_symbol("_wrapped_jax_export_main")
            e.function(lambda names: inner.head(names, symbol=f"private {callee}"), len(inner.ins), body, self.outs)
            values = sizes(args) if variables else {}
            return e.call(callee, [*args[:at], *(values[v] for v in variables), *args[at:]], inner.ins, self.outs)

        return call


def donations(
    donated: Sequence[bool],
    jaxpr: Jaxpr,
    in_shardings: Sequence,
    out_shardings: Sequence,
    whole: bool,
    arg_attrs: Sequence[Mapping[str, str]] = (),
    result_attrs: Sequence[Mapping[str, str]] = (),
) -> tuple[dict[int, int], tuple[int, ...]]:
    """The donated arguments that alias a result, with the result, and those whose buffer XLA may give to any.

    What counts is each device's part. A result that XLA lays out may take any buffer, others one of their
    size. `whole`: there is one device.
    """
    if not any(donated):
        return {}, ()
    # The results whose layouts are known before XLA chooses.
    fixed = [i for i, s in enumerate(out_shardings) if s is not None]
    if whole or not in_shardings:
        fixed = list(range(len(jaxpr.outvars)))
        in_shardings = in_shardings or (None,) * len(donated)
        out_shardings = out_shardings or (None,) * len(fixed)
    is_open = len(fixed) < len(jaxpr.outvars)
    # Tokens have no memory.
    fixed = [i for i in fixed if jaxpr.out_avals[i] is not token_type]
    donated = [d and aval is not token_type for d, aval in zip(donated, jaxpr.in_avals, strict=True)]
    outs = [on_one_device(jaxpr.out_avals[i], out_shardings[i]) for i in fixed]
    ins = [on_one_device(a, s) for a, s in zip(jaxpr.in_avals, in_shardings, strict=False)]
    aliases = match_donated(donated, ins, outs)
    aliases = {i: n for i, n in aliases.items() if _same_layout(i, fixed[n], arg_attrs, result_attrs)}
    taken = set(aliases.values())
    sizes = Counter((out.size, out.memory_space) for n, out in enumerate(outs) if n not in taken)
    donors = []
    for i, is_donated in enumerate(donated):
        if is_donated and i not in aliases:
            size = ins[i].size, ins[i].memory_space
            fits = sizes[size] > 0
            sizes[size] -= fits
            if fits or is_open:
                donors.append(i)
    return {i: fixed[n] for i, n in aliases.items()}, tuple(donors)


_LAYOUT = "mhlo.layout_mode"


def layout_attributes(layouts: Sequence) -> list[dict[str, str]]:
    """What a program's text says of the layouts of its arguments or results, of which None is the default one."""
    return [{} if layout is None else {_LAYOUT: f'"{_mode(layout)}"'} for layout in layouts]


def _mode(layout):
    return "auto" if layout is Layout.AUTO else "{" + ",".join(map(str, reversed(layout.major_to_minor))) + "}"


def _same_layout(i, out, arg_attrs, result_attrs):
    """Whether a donated argument may be a result's memory. Raises ValueError if XLA chooses the layout of one alone."""
    have = arg_attrs[i].get(_LAYOUT) if arg_attrs else None
    want = result_attrs[out].get(_LAYOUT) if result_attrs else None
    if have != want and '"auto"' in (have, want):
        texts = ["AUTO" if mode == '"auto"' else f"{mode or 'the default'}" for mode in (have, want)]
        side = "output" if have == '"auto"' else "input"
        raise ValueError(
            f"jit: donated argument {i} has layout {texts[0]}, the result in its memory {texts[1]}. Did you mean to "
            f"set the **{side} layout** to **Layout.AUTO**? Then XLA chooses both"
        )
    return have == want


def on_one_device(aval: Aval, sharding: Any) -> Aval:
    """The type of each device's part."""
    if sharding is None:
        return aval
    shape = sharding.shard_shape(aval.shape)
    return aval.update(shape=shape, sharding=None, memory_space=sharding._memory_space)


def _annotated(e, results, avals, shardings, memory_kinds):
    """Results that are asked for in some memory, brought there."""
    if memory_kinds is None:
        return results
    rows = zip(results, avals, shardings, memory_kinds, strict=True)
    return [x if s is None else e.annotate_placement(x, aval, kind) for x, aval, s, kind in rows]


def _with_shardings(e, attrs, avals, shardings, names_memory=False):
    if not any(s is not None for s in shardings):
        return attrs
    attrs = [dict(a) for a in attrs] if attrs else [{} for _ in avals]
    for own, aval, sharding in zip(attrs, avals, shardings, strict=False):
        if sharding is not None:
            own["sdy.sharding"] = e.meshes.attribute(sharding, aval)
            if names_memory:
                own["mhlo.memory_kind"] = spell.string(sharding.memory_kind)
    return attrs


def _arg_attrs(i, arg_attrs, aliases, donors, shift):
    attrs = dict(arg_attrs[i]) if arg_attrs else {}
    if i in aliases:
        attrs["tf.aliasing_output"] = f"{aliases[i] + shift} : i32"
    if i in donors:
        attrs["jax.buffer_donor"] = "true"
    return attrs


def _result_attrs(i, result_attrs, names, memory_kinds):
    attrs = dict(result_attrs[i]) if result_attrs else {}
    if memory_kinds is not None:
        attrs["mhlo.memory_kind"] = spell.string(memory_kinds[i])
    if names is not None:
        attrs["jax.result_info"] = spell.string(names[i])
    return attrs


def _with(aval, attrs):
    return f"{type_of(aval)} {spell.dictionary(attrs)}" if attrs else type_of(aval)
