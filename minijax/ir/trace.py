"""Traces and tracers; tracing a function to a jaxpr, and evaluating a jaxpr."""

import gc
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.base import cache, config, dtypes, errors, source, stack
from minijax.base.mask import Mask
from minijax.base.naming import known_as
from minijax.base.referrers import kept_by
from minijax.base.util import curry, dir_without
from minijax.ir import context, effects, state
from minijax.ir.check import check_jaxpr
from minijax.ir.hitypes import AvalQDD
from minijax.ir.jaxpr import NO_EFFECTS, Atom, ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, substituted
from minijax.ir.refs import is_ref
from minijax.ir.types import (
    Aval,
    ShapedArray,
    Typed,
    canonical_value,
    checked_type,
    hi_classes,
    is_float0,
    of_type,
    register_value_type,
    symbol_kinds,
    typeof,
    value_kinds,
)

if TYPE_CHECKING:
    from minijax.ir.tracer_methods import ArrayMethods  # pyright: ignore[reportMissingModuleSource]
else:
    ArrayMethods = object

_here = source.here


class Trace:
    """An interpreter of operations; its rules run under `parent`.

    The library's traces define `process`. A user's trace defines `process_primitive`, `process_custom_jvp_call` and
    `process_custom_vjp_call`. These return one value, or several if `multiple_results`, and receive functions as
    `WrappedFun`.
    """

    __slots__ = ("parent", "beneath", "alive", "__weakref__")
    records_rules = False  # True if it records what a derivative rule computes on tangents
    keeps_refs = False  # True if it records the references that a jaxpr makes which it evaluates
    keeps_written_types = False  # True if a value that is written to a reference keeps its weak type
    records_ref_calls = False  # True if calls whose backward rules take references are recorded with them

    def __init__(self, parent: "Trace | None" = None):
        self.parent: Any = parent  # None for a trace that runs operations itself
        self.beneath: Any = None if parent is state.eval_trace[0] else parent  # `thread.trace` while rules run
        self.alive = True

    def process(self, primitive, operands: Sequence, params: dict) -> list:
        """Runs the operation's rule for this trace, or records it."""
        return primitive.processed_by(self, operands, params)

    def process_primitive(self, primitive, tracers: Sequence, params: dict, /) -> Any:
        results = self._process_of_library("process_primitive")(primitive, tracers, params)
        return results if primitive.multiple_results else results[0]

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers: Sequence, /, **params: Any) -> list:
        process, params = self._process_of_library("process_custom_jvp_call"), {**params, "subfuns": (fun, jvp)}
        return process(primitive.rule, tracers, primitive.rule.of_functions(**params))

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers: Sequence, /, **params: Any) -> list:
        process, params = self._process_of_library("process_custom_vjp_call"), {**params, "subfuns": (fun, fwd, bwd)}
        return process(primitive.rule, tracers, primitive.rule.of_functions(**params))

    def _process_of_library(self, method: str) -> Callable:
        """The method `process` of a trace of the library; a user's trace must define `method`."""
        if type(self).process is Trace.process:
            raise NotImplementedError(f"{type(self)} must override {method}")
        return self.process

    @property
    def main(self) -> Any:
        """An object that identifies the transformation; None for a trace that records a jaxpr."""
        return None if isinstance(self, JaxprTrace) else self

    def full_raise(self, x: Any) -> Any:
        return x

    def invalidate(self) -> None:
        self.finish()

    def is_valid(self) -> bool:
        return self.alive

    def qdd_of(self, x: Any) -> Any:
        """The current type of a mutable value's state."""
        return x.cur_qdd() if self.parent is None else self.parent.qdd_of(x)

    def admit(self, x: "Tracer") -> None:
        """Checks a tracer of another trace before it is used as a constant."""
        if not x._trace.alive:
            raise errors.UnexpectedTracerError(escaped_message(x))

    def finish(self) -> None:
        self.alive = False


@known_as("jax._src.core.Tracer")
class Tracer(ArrayMethods):
    """Represents an array inside a function that is traced, by `jax.jit`, `jax.vmap`, `jax.grad` and the like.

    It has the attributes and methods of arrays, and `isinstance(x, jax.Array)` is true for it; an operation on it is
    recorded, or transformed. Its value is not known as a rule, hence `float(x)` and `if x:` raise errors, see
    `jax.errors`. It is of no use after the function has returned. Programs test for it by `isinstance`.

    Attributes:
        aval: Its abstract value: shape, dtype and weak type; `jax.typeof(x)` returns it, too.

    See also: `jax.typeof`, `jax.errors.ConcretizationTypeError`, `jax.errors.UnexpectedTracerError`.

    Example:
        >>> f = lambda x: isinstance(x, jax.core.Tracer)
        >>> f(jnp.ones(2)), bool(jax.jit(f)(jnp.ones(2)))
        (False, True)
    """

    __slots__ = ("_trace", "aval", "__weakref__")
    __dir__ = dir_without(
        "addupdate bitcast block_until_ready concrete_value copy_to_host_async dim get is_concrete manual_axis_type "
        "mat memory_space origin set swap weak_type"
    )
    __hash__: Any = None
    __array_priority__ = 1000

    def __init__(self, trace: Trace, aval: Aval):
        self._trace = trace
        self.aval = aval

    def full_lower(self) -> Any:
        return self

    def get_referent(self) -> Any:
        """The value that the tracer wraps, in transformations that preserve a value's identity."""
        return self

    def to_concrete_value(self) -> Any:
        return self.concrete_value()

    def is_concrete(self) -> bool:
        return self.concrete_value() is not None

    def concrete_value(self) -> Any:
        """The value if the trace knows it, else None."""
        return None

    def _contents(self) -> list[tuple[str, Any]]:
        return []

    def __repr__(self):
        inside = ", ".join([f"{name}={value}" for name, value in self._contents()])
        return f"{type(self).__name__}({inside or self.aval})"

    def _origin_msg(self) -> str:
        return ""

    def _error_repr(self) -> str:
        shape = "of no type" if self.aval is None else f"with shape {self.aval.str_short()}"  # a user's own tracer
        return f"traced array {shape}"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise errors.ConcretizationTypeError(self, "A traced value cannot be pickled.")


def referent(x: Any) -> Any:
    return x.get_referent() if isinstance(x, Tracer) else x


def escaped_message(x: Tracer) -> str:
    text = (
        f"Encountered an unexpected tracer. A function transformed by JAX had a side effect: a value of type "
        f"{x.aval.str_short()} outlived the transformation that made it, perhaps in global state. Values must leave "
        "a function as its results."
    )
    if type(x) is DynamicJaxprTracer:
        info = x._trace.debug_info
        text += (
            f"\nThe function being traced when the value leaked was {info.func_src_info} traced for {info.traced_for}."
        )
    if getattr(x, "origin", None) is not None:
        text += f"\nThe leaked intermediate value was created on line {made_at(x)}."
    return f"{text}\nTo catch the leak earlier, set JAX_CHECK_TRACER_LEAKS or use `jax.checking_leaks()`."


@known_as("jax._src.interpreters.partial_eval.DynamicJaxprTracer")
class DynamicJaxprTracer(Tracer):
    """A variable of a jaxpr under construction."""

    __slots__ = ("val", "origin")

    def __init__(self, trace: "JaxprTrace", val: Atom, origin: Any):
        self._trace = trace
        self.aval = val.aval
        self.val = val
        self.origin = origin

    def concrete_value(self):
        return self._trace.known(self)

    def __repr__(self):
        return self._trace.shown(self)

    @property
    def parent(self) -> "TracingEqn | None":
        """The equation that computed the value; None for arguments and constants."""
        trace = self._trace
        eqn = next((e for e in reversed(trace.eqns) if any(v is self.val for v in e.outvars)), None)
        if eqn is None:
            return None
        operands: list = [DynamicJaxprTracer(trace, a, eqn.traceback) for a in eqn.invars]
        return TracingEqn(operands, eqn.outvars, eqn.primitive, eqn.params, eqn.effects, eqn.traceback, eqn.ctx)

    def _origin_msg(self) -> str:
        return origin_message(self)


class TracingEqn(JaxprEqn):
    """An equation of a jaxpr under construction: its operands are tracers."""

    __slots__ = ()
    in_tracers = property(attrgetter("invars"))

    def __repr__(self):
        names = "in_tracers", "outvars", "primitive", "params", "effects", "source_info", "ctx"
        return f"TracingEqn({', '.join([f'{name}={getattr(self, name)}' for name in names])})"


def origin_message(x: DynamicJaxprTracer) -> str:
    """Where a traced value came from: an argument of the traced function, or the line that made it."""
    info = x._trace.debug_info
    names = [x.origin] if isinstance(x.origin, str) else x._trace.argument_names_of(x.val)
    text = f"\nThe error occurred while tracing the function {info.func_src_info} for {info.traced_for}."
    if names:
        plural = "s" * (len(names) > 1)
        text += (
            f" This concrete value was not available in Python because it depends on the value{plural} of "
            f"the argument{plural} {' and '.join(names)}."
        )
    if not isinstance(x.origin, str):
        text += f"\nThe value was made at {made_at(x)}, by the operation {x._trace.operation_text(x.val)}"
    return text


def made_at(x: Tracer) -> str:
    """The user's line that made a tracer, or the name of the argument."""
    origin = getattr(x, "origin", None)
    return f"argument {origin}" if isinstance(origin, str) else source.summary(origin)


class JaxprTrace(Trace):
    """Records operations as the equations of a jaxpr."""

    keeps_written_types = True
    __slots__ = ("eqns", "invars", "consts", "const_vars", "offered", "originals", "debug_info", "keeps_refs", "place")

    def __init__(self, parent: Trace | None, debug_info: DebugInfo, keeps_refs: bool = True):
        super().__init__(parent)
        self.keeps_refs = keeps_refs
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        self.consts: list[Any] = []
        self.const_vars: dict[int, Var] = {}  # by the id of a value that `originals` keeps alive
        self.offered: list[Atom] = []  # variables of constants that are dropped if nothing reads them
        self.originals: list[Any] = []
        self.debug_info = debug_info
        # Equal tracebacks are one object: they are half of a jaxpr's memory, and loops over layers repeat them.
        self.place = parent.place if type(parent) is JaxprTrace else {}.setdefault

    def shown(self, x: DynamicJaxprTracer) -> str:
        """The representation of a tracer of this trace."""
        return f"JitTracer({x.aval})"

    def known(self, x: DynamicJaxprTracer) -> Any:
        """The value if it is known, else None."""
        return None

    def qdd_of(self, x):
        aval: Any = self.atom(x).aval
        return aval.mutable_qdd.cur_val

    def new_arg(self, aval: Aval, source_info: Any = None, name: str | None = None) -> DynamicJaxprTracer:
        var = _variable(aval)
        self.invars.append(var)
        return _tracer_of(self, var, name)

    def atom(self, x: Any) -> Atom:
        """The variable or literal that represents `x` in this jaxpr."""
        if type(x) is DynamicJaxprTracer and x._trace is self:
            return x.val
        return self._constant(x)

    def capture(self, operands: Sequence) -> None:
        """Captures values from outside the trace, in the order of the operands and even if nothing reads them."""
        for x in operands:
            if x._trace is not self if isinstance(x, Tracer) else type(x) not in symbol_kinds:
                self._constant(x)

    def offer(self, operands: Sequence) -> None:
        """Captures what is from outside the trace, in the order of the operands, if something reads it in the end."""
        for x in operands:
            if x._trace is not self if isinstance(x, Tracer) else type(x) in value_kinds and np.ndim(x):
                self.offered.append(self._constant(x))

    def instantiated(self, x: Any) -> Any:
        """A tracer of this trace for a number, as a constant instead of a literal; other values are unchanged."""
        if type(x) not in dtypes.PYTHON_SCALARS and not isinstance(x, np.generic):
            return x
        var = self.const_vars.get(~id(x))
        if var is None:
            var = self.const_vars[~id(x)] = Var(typeof(x))
            self.consts.append(x)
            self.originals.append(x)
        return _tracer_of(self, var, _here())

    def _constant(self, x: Any) -> Atom:
        # Several tracers may represent one variable of an outer trace.
        known = x.val if type(x) is DynamicJaxprTracer else x
        var = self.const_vars.get(id(known))
        if var is not None:
            return var
        if isinstance(x, np.generic):
            same, literal = _literals.get(id(x), (None, None))
            if same is x:
                return literal
        if isinstance(x, Tracer):
            self.admit(x)
            aval = x.aval
        else:
            aval = typeof(x)
            literal = as_literal(x, aval)
            if literal is not None:
                return literal
            if type(x) in symbol_kinds:
                primitive, params = symbol_kinds[type(x)].operation(x)
                return self.process(primitive, (), params)[0].val
        snapshot = value_kinds[np.ndarray].canonicalise(x) if type(x) is np.ndarray else x
        var = self.const_vars.get(id(snapshot))
        if var is None:
            var = Var(AvalQDD(aval, super().qdd_of(x)) if aval.has_qdd else aval)
            self.consts.append(snapshot)
        self.originals += (known, snapshot)
        self.const_vars[id(known)] = self.const_vars[id(snapshot)] = var
        return var

    def constvars(self) -> dict[Var, None]:
        """The variables of the constants, in their order; one variable may represent several values."""
        return dict.fromkeys(self.const_vars.values())

    def process(self, primitive, operands, params):
        if primitive.record is not None:
            results = primitive.record(self, operands, params)
            if results is not None:
                return results
        atoms, ins = [], []
        for x in operands:
            atom = x.val if type(x) is DynamicJaxprTracer and x._trace is self else self._constant(x)
            atoms.append(atom)
            ins.append(atom.aval)
        thread = state.thread
        origin = thread.origin or self.place(now := _here(), now)
        if primitive.fold is not None and all([type(a) is Literal for a in atoms]):
            folded = primitive.fold(*atoms, **params)
            if folded is not None:
                return [DynamicJaxprTracer(self, folded, origin)]
        avals, effs = primitive.typed(ins, params)
        ctx = thread.context
        if effs and any([type(a) is AvalQDD for a in avals]):
            outvars = list(map(_variable, avals))
            self.eqns.append(JaxprEqn(atoms, outvars, primitive, params, effs, origin, ctx))
            return [_tracer_of(self, v, origin) for v in outvars]
        if len(avals) == 1:
            var = Var(avals[0])
            self.eqns.append(JaxprEqn(atoms, [var], primitive, params, effs, origin, ctx))
            return [DynamicJaxprTracer(self, var, origin)]
        outvars = [Var(a) for a in avals]
        self.eqns.append(JaxprEqn(atoms, outvars, primitive, params, effs, origin, ctx))
        return [DynamicJaxprTracer(self, v, origin) for v in outvars]

    def append(self, primitive: Any, params: dict, aval: Aval, atoms: list[Atom]) -> DynamicJaxprTracer:
        """Records an equation of a known result type and without effects."""
        thread = state.thread
        origin = thread.origin or self.place(now := _here(), now)
        var = Var(aval)
        self.eqns.append(JaxprEqn(atoms, [var], primitive, params, NO_EFFECTS, origin, thread.context))
        return DynamicJaxprTracer(self, var, origin)

    def copy(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """A jaxpr without constants, as if it were traced again here: with variables of its own."""
        origin, jaxpr = state.thread.origin or self.place(now := _here(), now), closed.jaxpr
        own: dict[Any, Var] = {v: Var(v.aval) for v in jaxpr.invars}
        eqns = []
        for eqn in jaxpr.eqns:
            invars, outvars = substituted(eqn.invars, own), [Var(v.aval) for v in eqn.outvars]
            own.update(zip(eqn.outvars, outvars, strict=True))
            eqns.append(eqn.replace(invars, outvars, source_info=origin))
        invars, outvars = substituted(jaxpr.invars, own), substituted(jaxpr.outvars, own)
        return ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns))

    def inline(self, jaxpr: ClosedJaxpr, operands: Sequence) -> list:
        """Copies the equations of a jaxpr to the end of this one."""
        body = jaxpr.jaxpr
        env: dict[Atom, Atom] = {}
        if body.constvars:
            env.update((v, self.atom(x)) for v, x in environment(body, jaxpr.consts).items())
        for v, x in zip(body.invars, operands, strict=True):
            if type(x) is DynamicJaxprTracer and x._trace is self:
                env[v] = x.val
            elif type(x) in dtypes.PYTHON_SCALARS or _is_read(body, v):
                env[v] = atom = self._constant(x)
                self.offered.append(atom)
        thread = state.thread
        origin, outer = thread.origin or self.place(now := _here(), now), thread.context
        last: Any = None
        joined: Any = None
        replaced, append = env.get, self.eqns.append
        for eqn in body.eqns:
            primitive, ctx, outs = eqn.primitive, eqn.ctx, eqn.outvars
            invars = list(map(replaced, eqn.invars, eqn.invars))
            if primitive.fold is not None and all([type(a) is Literal for a in invars]):
                folded = primitive.fold(*invars, **eqn.params)
                if folded is not None:
                    env[outs[0]] = folded
                    continue
            if len(outs) == 1:
                env[outs[0]] = var = Var(outs[0].aval)
                outvars = [var]
            else:
                outvars = [Var(v.aval) for v in outs]
                env.update(zip(outs, outvars, strict=True))
            if outer is not context.EMPTY:
                if ctx is not last:  # neighbouring equations often share a context
                    last, joined = ctx, context.nested(ctx, outer)
                ctx = joined
            append(JaxprEqn(invars, outvars, primitive, eqn.params, eqn.effects, origin, ctx))
        if len(body.outvars) == 1:
            (a,) = body.outvars
            return [DynamicJaxprTracer(self, replaced(a, a), origin)]
        return [DynamicJaxprTracer(self, replaced(a, a), origin) for a in body.outvars]

    def to_jaxpr(self, results: Sequence) -> tuple[Jaxpr, list]:
        """The finished jaxpr, and the values of its constvars (arrays, and tracers of outer traces)."""
        outvars = [self.atom(x) for x in results]
        if self.offered:
            self._drop_unread(outvars)
        constvars = list(self.constvars())
        effs = effects.join(*(e.effects for e in self.eqns if e.effects))
        jaxpr = Jaxpr(constvars, self.invars, outvars, self.eqns, effs, self.debug_info)
        # What was captured under `enable_x64` keeps its type outside.
        pairs = zip(self.consts, constvars, strict=True)
        return jaxpr, [of_type(c, v.aval) if type(c) is np.ndarray else c for c, v in pairs]

    def _drop_unread(self, outvars: Sequence[Atom]) -> None:
        read = {v for eqn in self.eqns for v in eqn.invars}
        unread = {v for v in self.offered if type(v) is Var} - read.union(outvars)
        if unread:
            self.consts = [c for c, v in zip(self.consts, self.constvars(), strict=True) if v not in unread]
            self.const_vars = {key: v for key, v in self.const_vars.items() if v not in unread}

    def behind(self, atom: Atom, order: Mapping[Atom, Sequence[Atom]] | None = None) -> set[Atom]:
        """`atom` and all atoms that it was computed from; `order` adds dependencies (atom -> earlier atoms)."""
        makers = {v: e for e in self.eqns for v in e.outvars}
        seen, stack = set(), [atom]
        while stack:
            a = stack.pop()
            if type(a) is Literal or a in seen:
                continue
            seen.add(a)
            if a in makers:
                stack.extend(makers[a].invars)
            stack.extend((order or {}).get(a, ()))
        return seen

    def argument_names_of(self, atom: Atom) -> list[str]:
        """The names of the arguments that `atom` was computed from."""
        seen, names = self.behind(atom), self.debug_info.arg_names or ()
        return [names[i] for i, v in enumerate(self.invars) if v in seen and i < len(names)]

    def operation_text(self, atom: Atom) -> str:
        for eqn in reversed(self.eqns):
            if atom in eqn.outvars:
                return str(eqn)
        return "an argument"


def _variable(aval: Aval) -> Var:
    """A new variable. An AvalQDD is copied, since the trace records in it how the state's type changes."""
    return Var(AvalQDD(aval.aval, aval.qdd) if type(aval) is AvalQDD else aval)


def _is_read(jaxpr: Jaxpr, var: Var) -> bool:
    return var in jaxpr.outvars or any(var in eqn.invars for eqn in jaxpr.eqns)


def _tracer_of(trace: JaxprTrace, var: Var, origin: Any) -> DynamicJaxprTracer:
    """The tracer of a variable; its type omits the type of the state."""
    tracer = DynamicJaxprTracer(trace, var, origin)
    if type(var.aval) is AvalQDD:
        tracer.aval = var.aval.aval
    return tracer


_literals = cache.BoundedDict(4096)  # id -> a NumPy scalar, and its literal


def with_literal(x: np.generic) -> np.generic:
    """A scalar that lives long, with its literal, which traces then need not make."""
    if x.dtype.itemsize < 8:  # the type of wider ones depends on options
        _literals[id(x)] = x, as_literal(x, typeof(x))
    return x


def as_literal(x: Any, aval: Aval) -> Literal | None:
    """`x` as a literal if it is a scalar whose value costs nothing to read.

    Raises OverflowError for an int that its type cannot hold.
    """
    if type(x) in dtypes.PYTHON_SCALARS:
        if type(x) is int and x.bit_length() > 31:
            dtypes.check_int_fits(x, aval.dtype)
        return Literal(x, aval)
    if type(aval) is ShapedArray and not aval.shape and isinstance(x, (np.ndarray, np.generic, Typed)):
        scalar = np.asarray(x, aval.dtype)
        return Literal(scalar if is_float0(aval) else scalar[()], aval)
    base = dtypes.number_base(type(x))
    return None if base is None else as_literal(base(x), aval)


def checked_values(values: Sequence) -> list:
    """The values, those of NumPy with the dtypes of arrays.

    Raises TypeError if one has no type, OverflowError for an int that its type cannot hold.
    """
    for x in values:
        checked_type(x)
    return list(map(canonical_value, values))


class EvalTrace(Trace):
    """Runs operations eagerly; `dispatch.operations` sets `process`, and `compute`, which compiles an operation."""

    __slots__ = ()
    process: Callable[[Any, Sequence, dict], list]
    compute: Callable[[Any, Sequence, dict], list]


class CompileTimeTrace(Trace):
    """Runs operations on known values eagerly, and forwards those on tracers to its parent."""

    __slots__ = ()

    def process(self, primitive, operands, params):
        if any(isinstance(x, Tracer) for x in operands):
            with state.set_current_trace(self.parent):
                return self.parent.process(primitive, operands, params)
        if primitive.is_hi:
            return primitive.to_lo(operands, params)
        with state.set_current_trace(None):
            return EvalTrace.process(primitive, operands, params)


the_eval_trace = EvalTrace(None)
state.eval_trace[0] = the_eval_trace


def _leak(x: Tracer, ignored: set[int]) -> str:
    """The lines on a tracer that outlives its trace."""
    holder = kept_by(x, ignored, (Tracer, JaxprEqn))
    path = "" if holder is None else f"\n<{type(x).__name__} {id(x)}> is referred to by {holder}"
    return f"{x!r}\n{made_under(x)}{path}"


def made_under(x: Tracer) -> str:
    """Says which object a tracer is, and which line made it."""
    return f"This {type(x).__name__} with object id {id(x)} was created on line:\n  {made_at(x)}"


def checked_for_leaks(watched: "weakref.ref[Any]", outcome: Any) -> Any:
    """Returns `outcome`. Raises Exception if a tracer of the finished trace is still referenced elsewhere.

    Checks only under `jax.checking_leaks()`.
    """
    if not config.check_tracer_leaks.value:
        return outcome
    gc.collect()
    trace = watched()
    tracers = [] if trace is None else [r for r in gc.get_referrers(trace) if isinstance(r, Tracer)]
    if not tracers:  # somebody may keep the trace itself
        return outcome
    where = "\n".join([_leak(t, {id(tracers)}) for t in tracers])
    name = "DynamicJaxprTrace" if isinstance(trace, JaxprTrace) else type(trace).__name__
    advice = "Return values from the traced function instead of storing them elsewhere."
    raise Exception(f"Leaked trace {name}. Leaked tracer(s):\n{where}\n{advice}")


def forbid_tracing(function: str) -> None:
    """Raises RuntimeError if `jax_no_tracing` is set."""
    if config.no_tracing.value:
        raise RuntimeError(f"re-tracing function {function} for `jit`, but 'no_tracing' is set")


def trace_to_jaxpr(
    fun: Callable[..., Iterable], avals: Sequence[Aval], debug_info: DebugInfo, trace: "JaxprTrace | None" = None
) -> tuple[Jaxpr, list]:
    """Traces a flat function, by `trace` if given. Returns the jaxpr and the values of its constvars, maybe tracers."""
    return checked_for_leaks(*_record(fun, avals, debug_info, trace))


def _record(fun, avals, debug_info, trace):
    trace = trace or JaxprTrace(state.thread.trace, debug_info)
    traced = _deeply_traced if state.is_eager() else _traced
    jaxpr, consts = context.run_under(trace, traced, trace, fun, avals)
    if config.enable_checks.value:
        check_jaxpr(jaxpr)
    return weakref.ref(trace), (jaxpr, consts)


def _traced(trace, fun, avals):
    names = trace.debug_info.arg_names or (None,) * len(avals)
    with context.entered(context.without_names(context.current_context())):
        return trace.to_jaxpr(list(fun(*[trace.new_arg(a, None, n) for a, n in zip(avals, names, strict=False)])))


_deeply_traced = stack.deep(_traced)


def is_live(x: Any) -> bool:
    """Returns whether a captured value cannot be a constant: it is a tracer, contains one, or is mutable."""
    if type(x) in hi_classes:
        aval = typeof(x)
        return aval.has_qdd or any(map(is_live, aval.lower_val(x)))
    return isinstance(x, Tracer) or is_ref(x)


def close_over(jaxpr: Jaxpr, consts: Sequence) -> tuple[ClosedJaxpr, list]:
    """Makes captured tracers and references leading inputs. Returns the closed jaxpr, and those values."""
    return open_at(jaxpr, consts, Mask(map(is_live, consts)))


def open_at(jaxpr: Jaxpr, consts: Sequence, opened: Mask) -> tuple[ClosedJaxpr, list]:
    """Makes the constants that the mask marks leading inputs. Returns the closed jaxpr, and their values."""
    if not any(opened):
        return ClosedJaxpr(jaxpr, consts), []
    closed_vars, open_vars = opened.partition(jaxpr.constvars)
    closed_values, open_values = opened.partition(consts)
    jaxpr = constants_to_inputs(jaxpr.replace(constvars=open_vars)).replace(constvars=closed_vars)
    return ClosedJaxpr(jaxpr, closed_values), open_values


def constants_to_inputs(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its constvars as leading inputs."""
    if not jaxpr.constvars:
        return jaxpr
    info = jaxpr.debug_info
    if info.arg_names is not None:
        info = info._replace(arg_names=("",) * len(jaxpr.constvars) + info.arg_names)
    return jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars, debug_info=info)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence, *args: Any, propagate_source_info: bool = True) -> list:
    """Evaluates a jaxpr under the current trace; `propagate_source_info` keeps the equations' source lines."""
    env = environment(jaxpr, consts)
    env.update(zip(jaxpr.invars, args, strict=True))
    trace, last = state.current_trace(), last_uses(jaxpr)
    with context.within() as enter:
        for i, eqn in enumerate(jaxpr.eqns):
            operands = values_of(eqn.invars, env)
            enter(eqn.ctx, eqn.traceback if propagate_source_info else None)
            results = eqn.primitive.rebind(trace, operands, eqn.params)
            env.update(zip(eqn.outvars, results, strict=True))
            for v in last.get(i, ()):
                env.pop(v, None)
    return values_of(jaxpr.outvars, env)


def environment(jaxpr: Jaxpr, consts: Sequence) -> dict[Var, Any]:
    """Maps a jaxpr's constvars to their values."""
    return {v: of_type(c, v.aval) for v, c in zip(jaxpr.constvars, consts, strict=True)}


def values_of(atoms: Sequence[Atom], env: dict[Var, Any]) -> list:
    """The values of literals, each with its type, and of variables."""
    return [of_type(a.val, a.aval) if type(a) is Literal else env[a] for a in atoms]


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """For each equation, the variables that are not read after it."""
    last: dict[Var, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for v in (*eqn.outvars, *eqn.invars):
            if type(v) is not Literal:
                last[v] = i
    for v in jaxpr.outvars:
        if type(v) is not Literal:
            last.pop(v, None)
    uses: dict[int, list[Var]] = {}
    for v, i in last.items():
        uses.setdefault(i, []).append(v)
    return uses


@curry
def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> list:
    """Evaluates a closed jaxpr; without arguments, returns a flat function that does."""
    return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


register_value_type(DynamicJaxprTracer, attrgetter("aval"))
register_value_type(Tracer, attrgetter("aval"))
