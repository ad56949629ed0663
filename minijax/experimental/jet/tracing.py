"""The trace of Taylor-mode differentiation: each operation also propagates Taylor coefficients."""

import functools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import minijax.numpy as jnp
from minijax.base import stack, tree
from minijax.ir import context, state
from minijax.ir.concrete import concrete_value
from minijax.ir.primitive import Primitive
from minijax.ir.trace import Trace, Tracer
from minijax.ir.types import register_value_type, typeof


class ZeroTerm:
    """Represents a Taylor coefficient that is zero.

    Example:
        >>> from minijax.experimental.jet import ZeroTerm, zero_term
        >>> isinstance(zero_term, ZeroTerm)
        True
    """


class ZeroSeries:
    """Represents Taylor coefficients that are all zero.

    Example:
        >>> from minijax.experimental.jet import zero_series, zero_prop
        >>> zero_prop(lax.sign_p, (3.0,), ([1.0],))[1] is zero_series
        True
    """


zero_term, zero_series = ZeroTerm(), ZeroSeries()
tree.register_pytree_node(ZeroTerm, lambda z: ((), None), lambda _, children: zero_term)
tree.register_pytree_node(ZeroSeries, lambda z: ((), None), lambda _, children: zero_series)

Series = Any  # of one value: a list of its coefficients, or `zero_series`
Rule = Callable[..., tuple[Any, Any]]  # (primals, series, **params) -> primal and series of results, one or lists
jet_rules: dict[Primitive, Rule] = {}
call_param_updaters: dict[Primitive, Callable] = {}


class JetTracer(Tracer):
    """Holds a value and its Taylor coefficients of order 1 and above.

    Example:
        >>> from minijax.experimental.jet import jet
        >>> def f(x):
        ...     print(type(x).__name__, x.primal, x.terms)
        ...     return x
        >>> _ = jet(f, (1.0,), ([1.0, 0.0],))
        JetTracer 1.0 [Array(1., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True)]
    """

    __slots__ = ("primal", "terms")

    def __init__(self, trace: "JetTrace", primal: Any, terms: Series):
        super().__init__(trace, typeof(primal))
        self.primal, self.terms = primal, terms

    def full_lower(self):
        return self.primal if self.terms is zero_series else self

    def concrete_value(self):
        return concrete_value(self.primal)

    def __repr__(self):
        return f"JetTracer<{self.aval}>"


class JetTrace(Trace):
    """Applies `jet_rules` under its parent trace, to series of `order` coefficients.

    Example:
        >>> from minijax.experimental.jet import jet
        >>> def f(x):
        ...     print(type(x._trace).__name__, x._trace.order)
        ...     return x
        >>> _ = jet(f, (1.0,), ([1.0, 0.0],))
        JetTrace 2
    """

    __slots__ = ("tag", "order")

    def __init__(self, tag: Any, parent_trace: Trace | None, order: int):
        super().__init__(parent_trace)
        self.tag, self.order = tag, order

    @property
    def parent_trace(self) -> Trace | None:
        return self.parent

    def to_primal_terms_pair(self, x: Any) -> tuple[Any, Series]:
        """A value and its series, which is zero for a value that is not a tracer of this trace."""
        if isinstance(x, JetTracer) and x._trace is self:
            return x.primal, x.terms
        if isinstance(x, Tracer):
            self.admit(x)
        return x, zero_series

    def process(self, primitive, operands, params):
        if primitive.is_hi:
            return primitive.to_lo(operands, params)
        pairs = [self.to_primal_terms_pair(x) for x in operands]
        primals, series = [p for p, _ in pairs], [s for _, s in pairs]
        with state.set_current_trace(self.parent):
            if all(s is zero_series for s in series):
                return primitive.bind_all(primals, params)
            if primitive not in jet_rules:
                raise KeyError(f"jet: there is no Taylor rule for the primitive '{primitive.name}'")
            series = [instantiated(p, s, self.order) for p, s in pairs]
            out, out_series = jet_rules[primitive](primals, series, **params)
        if not primitive.multiple_results:
            out, out_series = [out], [out_series]
        return [JetTracer(self, p, s) for p, s in zip(out, out_series, strict=True)]


def instantiated(primal: Any, series: Series, order: int) -> list:
    """The coefficients, with symbolic zeros as arrays."""
    terms = [zero_term] * order if series is zero_series else series
    aval = typeof(primal)
    return [jnp.zeros(aval.shape, aval.dtype) if t is zero_term else t for t in terms]


@stack.deep
def jet_subtrace(f: Callable, tag: Any, order: int, primals: Sequence, series: Sequence) -> tuple[tuple, tuple]:
    """The results of a flat function and their series of `order` terms, `zero_series` for constant results."""
    trace = JetTrace(tag, state.current_trace(), order)
    args = [JetTracer(trace, p, s) for p, s in zip(primals, series, strict=False)]
    out = context.run_under(trace, lambda: [trace.to_primal_terms_pair(x) for x in f(*args)])
    return tuple(p for p, _ in out), tuple(s for _, s in out)


def jet_fun(f: Callable, order: int, primals: Sequence, series: Sequence) -> tuple[Sequence, list]:
    """Calls the subtrace `f(tag, order, primals, series)` and instantiates symbolic zero series."""
    out, out_series = f(object(), order, primals, series)
    # One array of zeros serves all orders.
    zeros = ([jnp.zeros_like(p)] * order if s is zero_series else s for p, s in zip(out, out_series, strict=True))
    return out, list(zeros)


def jet_flat(fun: Callable, order: int, primals: Sequence, series: Sequence) -> tuple[Sequence, list]:
    """The results of a flat function and their series of `order` terms."""
    return jet_fun(functools.partial(jet_subtrace, fun), order, primals, series)


def jet_of(fun: Callable, primals: Sequence, series: Sequence) -> tuple[Any, list]:
    """The result of a function of arrays that returns one array, and its series."""
    (out,), (out_series,) = jet_flat(lambda *xs: [fun(*xs)], len(series[0]), primals, series)
    return out, out_series


register_value_type(JetTracer, attrgetter("aval"))
