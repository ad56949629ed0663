"""Programs: variables, literals, equations, jaxprs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from minijax.base.naming import known_as
from minijax.base.util import dir_without
from minijax.ir.atoms import Atom as Atom, DropVar as DropVar, Literal as Literal, Var as Var
from minijax.ir.context import EqnContext, NameStack, SourceInfo, entered
from minijax.ir.show import Printed, eqn_text
from minijax.ir.types import hi_classes


class DebugInfo(NamedTuple):
    """The source of a traced function, and the names of its arguments and results."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        """The file of the function, if it is written in Python."""
        place = self.func_src_info.partition(" at ")[2]
        return place.rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        """The first line of the function in its file."""
        line = self.func_src_info.rpartition(":")[2]
        return int(line) if line.isdigit() else None

    def replace_func_name(self, name: str) -> "DebugInfo":
        """The same information about a function of another name."""
        return self._replace(func_src_info=" ".join([name, *self.func_src_info.split(" ")[1:]]))

    def safe_arg_names(self, expected_count: int) -> tuple[str, ...]:
        """The names of `expected_count` arguments, empty where they are unknown."""
        return ("",) * expected_count if self.arg_names is None else self.arg_names


@known_as("jax._src.core.JaxprEqn")
class JaxprEqn:
    """One operation: `outvars = primitive[params](invars)`."""

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "traceback", "ctx")
    __dir__ = dir_without("context renamed traceback")

    def __init__(
        self, invars: list[Atom], outvars: list[Var], primitive, params: dict, effs, source_info, ctx: EqnContext
    ):
        self.invars = invars
        self.outvars = outvars
        self.primitive = primitive
        self.params = params
        self.effects = effs
        self.traceback = source_info
        self.ctx = ctx

    def replace(
        self,
        invars: list[Atom] | None = None,
        outvars: list[Var] | None = None,
        primitive=None,
        params: dict | None = None,
        effects=None,
        source_info=None,
        ctx: EqnContext | None = None,
    ) -> "JaxprEqn":
        new_values: tuple[Any, ...] = invars, outvars, primitive, params, effects, source_info, ctx
        own = (getattr(self, name) for name in JaxprEqn.__slots__)
        return JaxprEqn(*[mine if new is None else new for new, mine in zip(new_values, own, strict=True)])

    def renamed(self, names: Mapping[Any, Atom]) -> "JaxprEqn":
        """The equation with variables replaced by others, or by literals."""
        return self.replace(substituted(self.invars, names), substituted(self.outvars, names))

    @property
    def source_info(self) -> SourceInfo:
        """Where the operation was called, and its name stack."""
        return SourceInfo(getattr(self.traceback, "traceback", self.traceback), NameStack(self.ctx.name_stack))

    def context(self) -> AbstractContextManager:
        """Context manager: re-enters the thread state that the equation was recorded under."""
        return entered(self.ctx)

    def __str__(self):
        return eqn_text(self)

    __repr__ = __str__


def substituted(atoms: Sequence[Any], names: Mapping[Any, Atom]) -> list[Any]:
    """The atoms, those that are keys of `names` replaced."""
    return [names.get(a, a) for a in atoms]


NO_EFFECTS: frozenset = frozenset()


@known_as("jax._src.core.Jaxpr")
class Jaxpr(Printed):
    """A program: typed inputs, constants, a list of equations, outputs."""

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "is_high", "_inner", "__weakref__")
    __dir__ = dir_without("inner")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: frozenset = NO_EFFECTS,
        debug_info: DebugInfo | None = None,
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = effects
        self.debug_info = debug_info or DebugInfo("unknown", "<unknown>")
        # True if it has hi types or hi primitives, which lowering replaces.
        # Computed on construction, for inner jaxprs first: they may be nested too deeply for recursion.
        self.is_high = bool(hi_classes) and self._has_high_parts()

    in_avals = property(lambda self: [v.aval for v in self.invars])
    out_avals = property(lambda self: [v.aval for v in self.outvars])

    @property
    def inner(self) -> "tuple[Jaxpr, ...]":
        """The jaxprs among the parameters of the equations."""
        try:
            return self._inner
        except AttributeError:
            calls = [eqn for eqn in self.eqns if eqn.params and eqn.primitive.has_bodies]
            self._inner = tuple([j for eqn in calls for j in eqn.primitive.jaxprs(eqn.params)])
            return self._inner

    def _has_high_parts(self) -> bool:
        atoms = (*self.constvars, *self.invars, *self.outvars)
        return any(a.aval.is_high for a in atoms) or any(is_high_call(e.primitive, e.params) for e in self.eqns)

    def replace(self, **fields) -> "Jaxpr":
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(**{**{name: getattr(self, name) for name in names}, **fields})


@known_as("jax._src.core.ClosedJaxpr")
class ClosedJaxpr(Printed):
    """A jaxpr with the values of its constants."""

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"ClosedJaxpr: {len(jaxpr.constvars)} constvars, {len(consts)} consts")
        self.jaxpr = jaxpr
        self.consts = list(consts)

    is_high = property(lambda self: self.jaxpr.is_high)
    literals = property(lambda self: self.consts)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    constvars = property(lambda self: self.jaxpr.constvars)
    debug_info = property(lambda self: self.jaxpr.debug_info)
    in_avals = property(lambda self: [v.aval for v in self.jaxpr.invars])
    out_avals = property(lambda self: [v.aval for v in self.jaxpr.outvars])

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> "ClosedJaxpr":
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> "ClosedJaxpr":
        return ClosedJaxpr(f(self.jaxpr), self.consts)


_PROGRAMS = (Jaxpr, ClosedJaxpr)
_may_hold: dict[type, bool] = {}  # by the class of a parameter: whether it is a jaxpr or has items


def _holds(kind: type) -> bool:
    _may_hold[kind] = answer = issubclass(kind, (Jaxpr, ClosedJaxpr, tuple, list))
    return answer


def jaxprs_in_params(params: dict) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters; of a closed one, its `jaxpr`."""
    for value in params.values():
        kind = type(value)
        if not (_may_hold[kind] if kind in _may_hold else _holds(kind)):
            continue
        if isinstance(value, (tuple, list)):
            for item in value:
                if isinstance(item, _PROGRAMS):
                    yield item.jaxpr if isinstance(item, ClosedJaxpr) else item
        elif isinstance(value, _PROGRAMS):
            yield value.jaxpr if isinstance(value, ClosedJaxpr) else value


def is_high_call(primitive: Any, params: dict) -> bool:
    """Returns whether an operation is a hi primitive, or has a parameter that is a hi jaxpr."""
    return primitive.is_hi or any(j.is_high for j in jaxprs_in_params(params))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of the jaxpr's own equations."""
    yield from jaxpr.inner
