"""The methods ("verbs") that lowering rules call: one per StableHLO operation, and calls of nested jaxprs.

Each verb appends a line and returns the name of its result; types come from avals. Verbs that move data
(broadcast, slice, gather, ...) add the trailing dimensions of extended dtypes themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from operator import attrgetter
from typing import Any

from minijax.base import dtypes
from minijax.hlo.locations import LocationContext
from minijax.hlo.shardy import Meshes, constraining
from minijax.hlo.spell import results_of, suffix_of, types_of
from minijax.hlo.template import emitted, template_of, templates_for
from minijax.hlo.verbs.collective import Collective
from minijax.hlo.verbs.index import Index
from minijax.hlo.verbs.linalg import Linalg
from minijax.hlo.writer import Names
from minijax.ir.context import EMPTY, path
from minijax.ir.effects import ordered_effects
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.ir.rules import no_lowering
from minijax.ir.types import Name, ShapedArray, token_type

MAX_CALL_DEPTH = 64  # XLA crashes near 200 nested calls
constant_writers: dict[type, Callable[[Any, Any, ShapedArray], str]] = {}  # for constants of user-defined types


class Emitter(Index, Linalg, Collective):
    """Emits one module: has all the verbs, and lowers jaxprs."""

    def __init__(self, *platforms: str):
        super().__init__(*platforms)
        self.rule_of: Callable[[JaxprEqn], Callable] | None = None  # lowers an equation instead of its primitive
        self.for_export = False
        self.is_polymorphic = len(self.platforms) > 1  # the platform, or a size, is known only at run time
        self.num_partitions = 1
        self.devices: Sequence[Any] = ()  # of the program, if they are known
        self.names_memory = False  # the memories of arguments and results are named
        self.callbacks: list[Any] = []  # host functions that the executable needs
        self.watchers: list[Any] = []  # functions that XLA calls during compilation
        self.mesh: Any = None  # the mesh of the program's shardings
        self.explicit: Any = None  # the same, if results are constrained to the shardings in their types
        self.tokens: dict[Any, str] = {}  # ordered effect -> its current token
        self.meshes = Meshes(self.preamble, self.unique_symbol)
        self.manual: Any = None  # inside `manual_computation`: its mesh, and the axes that are manual so far
        self._called: dict[Any, tuple[str, int]] = {}  # (jaxpr, name) -> symbol, height of calls below
        self._call_types: dict[str, str] = {}  # symbol -> the types in its calls
        self._depth = self._height = 0

    def number_of(self, device: Any) -> int:
        """The position of a device among the program's. Raises ValueError if it is not one of them."""
        if device not in self.devices:
            raise ValueError(f"{device} is not among the devices of the program: {list(self.devices)}")
        return list(self.devices).index(device)

    def index_along_mesh_axis(self, mesh: Any, axis: Any, aval: ShapedArray) -> Name:
        """The position of the running device along a mesh axis, in a region in which all axes are manual."""
        at, unsigned = mesh.axis_names.index(axis), ShapedArray((), dtypes.uint32)
        inner = self.constant(prod(mesh.axis_sizes[at + 1 :]), unsigned)
        size = self.constant(mesh.axis_sizes[at], unsigned)
        place = self.binary("divide", self.partition_id(), inner, unsigned)
        return self.convert(self.binary("remainder", place, size, unsigned), unsigned, aval)

    # ---- nested jaxprs ----------------------------------------------------------------------------

    def call_jaxpr(
        self, closed: ClosedJaxpr, name: str, operands: Names, in_shardings: tuple = (), out_shardings: tuple = ()
    ) -> list[Name]:
        """Calls a private function with the body `closed`, emitted once; inlines it beyond 64 nested calls.

        Shardings (None: any) constrain its arguments and results. Recurses once per nested jaxpr: the caller of the
        lowering has raised Python's recursion limit.
        """
        shardings = in_shardings, out_shardings
        key = closed, name, self.platforms, self.manual, self.explicit, shardings
        private = self._called.get(key)
        if private is None or self._depth + private[1] > MAX_CALL_DEPTH:
            if self._depth >= MAX_CALL_DEPTH:
                return self._body(closed, operands, shardings)
            private = self._called[key] = self._write_private(closed, name, shardings)
        callee, height = private
        if height > self._height:
            self._height = height
        if not self.globals and not closed.jaxpr.effects:  # as `call_program`, with the types printed once
            types = self._call_types.get(callee)
            if types is None:
                ins, outs = closed.in_avals, closed.out_avals
                types = self._call_types[callee] = f" : ({types_of(ins)}) -> {results_of(outs)}"
            left, names = self.fresh(len(closed.jaxpr.outvars))
            call = "call" if self._in == "    " else "func.call"
            self.lines.append(f"{self._in}{left}{call} {callee}({', '.join(operands)}){types}")
            return names
        ordered = ordered_in(closed.jaxpr)
        tokens = [token_type] * len(ordered)
        operands = [*map(self.tokens.__getitem__, ordered), *operands]
        results = self.call_program(callee, operands, [*tokens, *closed.in_avals], [*tokens, *closed.out_avals])
        self.tokens.update(zip(ordered, results, strict=False))
        return results[len(ordered) :]

    def constrained_by_type(self, names: Names, avals: Sequence[Any]) -> list[Name]:
        """Constrains values to the shardings in their types, if the types have a mesh."""
        return [
            self.constrained(x, a, self.meshes.type_sharding_text(self.explicit, a)) if self.constrains_type(a) else x
            for x, a in zip(names, avals, strict=True)
        ]

    def constrains_type(self, aval: Any) -> bool:
        """Returns whether values of this type are constrained: it has a mesh, or no type has one."""
        return type(aval) is ShapedArray and (aval.has_mesh or not self.explicit.explicit_axes)

    def replicate_key_words(self, names: Names, avals: Sequence[Any]) -> list[Name]:
        """Constrains key arrays so that the words of one key stay on one device; other dimensions stay open."""
        return [
            self.constrained(x, a, self.meshes.open_text(a)) if type(a) is ShapedArray and suffix_of(a) else x
            for x, a in zip(names, avals, strict=True)
        ]

    def private(self, closed: ClosedJaxpr, name: str) -> str:
        """The symbol of a private function with the body `closed`, without calling it."""
        return self._private(closed, name)[0]

    def composite_jaxpr(
        self, closed: ClosedJaxpr, name: str, operands: Names, attributes: Mapping[str, Any]
    ) -> list[Name]:
        """A composite operation, whose decomposition `closed` is emitted once, as a private function."""
        callee, height = self._private(closed, name)
        self._height = max(self._height, height)
        return self.composite(name, callee, operands, closed.in_avals, closed.out_avals, attributes)

    def _private(self, closed, name):
        key = closed, name, self.platforms, self.manual, self.explicit, ((), ())
        if key not in self._called:
            outer, self.globals = self.globals, {}
            self._called[key] = self._write_private(closed, name, ((), ()))
            self.globals = outer
        return self._called[key]

    def constants(self, closed: ClosedJaxpr) -> list[Name]:
        """Emits the constants of a jaxpr."""
        return [self.constant_of(c, v.aval) for c, v in zip(closed.consts, closed.constvars, strict=True)]

    def constant_of(self, value: Any, aval: ShapedArray) -> Name:
        """Emits a constant; for a key array, its physical value."""
        if aval is token_type:
            value.block_until_ready()
            return self.create_token()
        if write := constant_writers.get(type(value)):
            return write(self, value, aval)
        return self.constant(getattr(value, "_base_array", value), aval)

    def inside(self, name: str) -> LocationContext:
        """The location context of operations inside the equation that is being lowered, or in its scope `name`."""
        scope, callers, base = self.around
        if self.eqn is not None and not name and not self.eqn.ctx.name_stack:
            return LocationContext(scope, (self.eqn.traceback, *callers), base)
        if self.eqn is None:
            return LocationContext("/".join(filter(None, (scope, name))), callers, base)
        names = filter(None, (scope, path(self.eqn.ctx.name_stack), name))
        return LocationContext("/".join(names), (self.eqn.traceback, *callers), base)

    def inlined(self, jaxpr: Jaxpr, const_names: Names, arg_names: Names, scope: str = "") -> list[Name]:
        """Lowers a jaxpr in place of an equation; the names of its operations get the equation's scopes and `scope`.

        Without `scope`, literals have the name of the equation.
        """
        outer, self.around = self.around, self.inside(scope)
        results = jaxpr_body(self, jaxpr, const_names, arg_names, bool(scope))
        self.around = outer
        return results

    def region(
        self, name: str | None, ordered: Sequence, build: Callable[..., Sequence[Name]]
    ) -> Callable[..., list[Name]]:
        """A region (tokens of ordered effects, *args) -> (tokens, *results), in the scope `name` if it is not None."""
        around, tokens = LocationContext() if name is None else self.inside(name), dict(self.tokens)

        def threaded(*args):
            outer = self.around, self.tokens
            self.around, self.tokens = around, {**tokens, **dict(zip(ordered, args, strict=False))}
            results = build(*args[len(ordered) :])
            results = [*(self.tokens[effect] for effect in ordered), *results]
            self.around, self.tokens = outer
            return results

        return threaded

    def _body(self, closed, operands, shardings):
        jaxpr, (before, after) = closed.jaxpr, shardings
        operands = self._constrained(operands, jaxpr.in_avals, before)
        results = jaxpr_body(self, jaxpr, self.constants(closed), operands)
        return self._constrained(results, jaxpr.out_avals, after)

    def _constrained(self, names, avals, shardings):
        if not shardings:
            return names
        rows = zip(names, avals, shardings, strict=True)
        return [x if s is None else self.sharding_constraint(x, a, s) for x, a, s in rows]

    def _write_private(self, closed, name, shardings):
        ordered, callee = ordered_in(closed.jaxpr), self.unique_symbol(name)
        tokens = [token_type] * len(ordered)
        ins, outs = [*tokens, *closed.in_avals], [*tokens, *closed.out_avals]
        outer = self.tokens, self.around, self.function_context, self._height
        self.around = self.function_context = LocationContext()
        self._height = 0
        self._depth += 1

        def body(args):
            self.tokens = dict(zip(ordered, args, strict=False))
            results = self._body(closed, args[len(ordered) :], shardings)
            return [*self.tokens.values(), *results]

        self.program_function(f"private {callee}", ins, outs, body)
        self._depth -= 1
        height = self._height + 1
        self.tokens, self.around, self.function_context, self._height = outer
        return callee, height


_aval_of = attrgetter("aval")


def jaxpr_body(
    e: Emitter, jaxpr: Jaxpr, const_names: Names, arg_names: Names, names_literals: bool = True
) -> list[Name]:
    """Lowers the equations of a jaxpr at the emitter's position. Returns the names of its results."""
    env: dict[Any, Name] = dict(zip(jaxpr.constvars, const_names, strict=True))
    env.update(zip(jaxpr.invars, arg_names, strict=True))
    find, mark, lines, outer = env.get, e.marks.append, e.lines, e.eqn
    around, rule_of = e.around, e.rule_of or _own_rule
    explicit, known, is_plain, templates = e.explicit, EMPTY, True, templates_for(e)
    is_sharded = e.num_partitions > 1 or explicit is not None
    for eqn in jaxpr.eqns:
        invars, outvars, context = eqn.invars, eqn.outvars, eqn.ctx
        operands = list(map(find, invars))
        if None in operands:
            operands = _with_literals(e, invars, operands, names_literals)
        ins, start, primitive = list(map(_aval_of, invars)), len(lines), eqn.primitive
        if context is not known:
            known, is_plain = context, context[1:] == EMPTY[1:]
        if templates is not None and is_plain and primitive.prints_alike:
            template = template_of(e, templates, primitive, ins, outvars, eqn.params)
            if type(template) is str:
                n = e._n = e._n + 1
                env[outvars[0]] = name = f"%{n}"
                lines.append(f"{e._in}{name} = {template % tuple(operands)}")
                mark((lines, start, start + 1, around, eqn))
                if is_sharded and suffix_of(outvars[0].aval):
                    (env[outvars[0]],) = _with_constraints(e, primitive, [name], [outvars[0].aval])
                continue
            if template:
                results = emitted(e, template, operands)
                mark((lines, start, len(lines), around, eqn))
                if is_sharded:
                    results = _with_constraints(e, primitive, results, list(map(_aval_of, outvars)))
                env.update(zip(outvars, results, strict=True))
                continue
        outs, e.eqn = list(map(_aval_of, outvars)), eqn
        lower = rule_of(eqn) or no_lowering(primitive, e.platform)
        if is_plain:
            results = lower(e, ins, outs, *operands, **eqn.params)
        else:
            results = _lowered_in_context(e, eqn, lower, ins, outs, operands)
        mark((lines, start, len(lines), around, eqn))
        if is_sharded:
            results = _with_constraints(e, primitive, results, outs)
            e.explicit = explicit
        if len(outvars) == 1:
            (env[outvars[0]],) = results
        else:
            env.update(zip(outvars, results, strict=True))
    e.eqn = outer
    results: list[Any] = list(map(find, jaxpr.outvars))
    return _with_literals(e, jaxpr.outvars, results, names_literals) if None in results else results


def _lowered_in_context(e: Emitter, eqn: JaxprEqn, lower: Callable, ins: list, outs: list, operands: Sequence) -> list:
    """As `lower`, under the equation's context; leaves `e.explicit` set to the equation's mesh."""
    start, context = len(e.lines), eqn.ctx
    mesh = context.cur_abstract_mesh
    if mesh is not None and e.num_partitions > 1:
        e.explicit = constraining(mesh)
    with eqn.context():
        results = lower(e, ins, outs, *operands, **eqn.params)
    e.annotate(start, compute_attributes(context.compute_type))
    e.tag(results, metadata_attributes(context.xla_metadata))
    return results


_own_rule: Callable[[JaxprEqn], Callable] = attrgetter("primitive.lower")


def _with_constraints(e: Emitter, primitive: Any, names: list[Name], avals: Sequence[Any]) -> list[Name]:
    """Constrains an equation's results to the shardings in their types, in a program for several devices."""
    if not primitive.constrain_results:
        return names
    return names if e.explicit is None else e.constrained_by_type(names, avals)


def _with_literals(e: Emitter, atoms: Sequence[Any], names: Sequence[Name | None], is_marked: bool) -> list[Name]:
    """Emits literals where they are read, as jax does."""
    start = len(e.lines)
    names = [e.constant_of(v.val, v.aval) if n is None else n for v, n in zip(atoms, names, strict=True)]
    if is_marked:
        e.marks.append((e.lines, start, len(e.lines), e.function_context, None))
    return names


COMPUTE_TYPES = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}


def compute_attributes(compute_type: str | None) -> dict[str, str]:
    """The frontend attributes for the compute type of an operation."""
    if compute_type is None:
        return {}
    kind, _, stream = compute_type.partition(":")
    if kind == "gpu_stream":
        return {"_xla_stream_annotation": stream, "inlineable": "false"}
    return {"_xla_compute_type": COMPUTE_TYPES[kind]}


def metadata_attributes(metadata: Any) -> dict[str, str]:
    """XLA metadata, a mapping or pairs, as frontend attributes."""
    shown = dict(metadata or ()).items()
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in shown}


def ordered_in(jaxpr: Jaxpr) -> list:
    """The ordered effects of a jaxpr, in the order of their tokens."""
    return sorted(ordered_effects.filter_in(jaxpr.effects), key=str) if jaxpr.effects else []
