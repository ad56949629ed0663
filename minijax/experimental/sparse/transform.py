"""`sparsify`: transforms functions of dense arrays to functions of sparse arrays."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.jit import trace_function
from minijax.base import tree
from minijax.base.faces import listing
from minijax.base.linear_util import Store, WrappedFun, wrap_init
from minijax.experimental.sparse import sparsify_rules
from minijax.experimental.sparse._base import JAXSparse
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.sparsify_env import (  # noqa: F401
    SparsifyEnv,
    SparsifyValue,
    apply_rule,
    arrays_to_spvalues,
    eval_sparse,
    is_spvalue,
    sparse_rules_bcoo,
    sparse_rules_bcsr,
    spvalues_to_arrays,
    spvalues_to_avals,
)
from minijax.interop.arguments import flatten_fun_nokwargs
from minijax.interop.transformations import transformation_with_aux2
from minijax.ir import state
from minijax.ir.trace import Trace, Tracer
from minijax.run.array import Array

__all__, __dir__ = listing(
    __name__,
    """
    Array ArrayOrSparse SparseTrace SparseTracer SparsifyEnv SparsifyValue arrays_to_spvalues eval_sparse
    sparse_rules_bcoo sparse_rules_bcsr sparsify sparsify_fun sparsify_raw sparsify_subtrace spvalues_to_arrays
    spvalues_to_avals
""",
)

ArrayOrSparse = Array | BCOO
sparsify_rules  # imported to register its rules  # noqa: B018


def sparsify_raw(f: Callable) -> Callable:
    """Transforms `f` to a function (env, *values) -> (values of the leaves, tree of the result)."""

    @functools.wraps(f)
    def wrapped(spenv: SparsifyEnv, *spvalues: SparsifyValue, **params: Any):
        flat, _ = tree.tree_flatten(spvalues, is_leaf=is_spvalue)
        avals = spvalues_to_avals(spenv, spvalues)
        closed, out_tree = trace_function(functools.partial(f, **params) if params else f, avals, {}, (), "sparsify")
        return list(eval_sparse(closed.jaxpr, closed.consts, flat, spenv)), out_tree

    return wrapped


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """Transforms `f` to also accept sparse arrays, by the rules of `sparse_rules_bcoo` and `sparse_rules_bcsr`.

    Raises NotImplementedError for an operation on a sparse array without a rule. `use_tracer` runs `f` once on
    `SparseTracer`s, instead of tracing it to a jaxpr first.
    """
    return (_with_tracers if use_tracer else _with_interpreter)(f)


def _with_interpreter(f: Callable) -> Callable:
    raw = sparsify_raw(f)

    @functools.wraps(f)
    def wrapped(*args, **params):
        spenv = SparsifyEnv()
        spvalues = arrays_to_spvalues(spenv, args)
        results, out_tree = raw(spenv, *spvalues, **params)
        return out_tree.unflatten(spvalues_to_arrays(spenv, results))

    return wrapped


# ---- tracers -----------------------------------------------------------------------------------------


class SparseTracer(Tracer):
    """A tracer of a value of an environment."""

    __slots__ = ("_spvalue",)

    def __init__(self, trace: "SparseTrace", *, spvalue: SparsifyValue):
        super().__init__(trace, spvalues_to_avals(trace.spenv, spvalue))
        self._spvalue = spvalue

    @property
    def spenv(self) -> SparsifyEnv:
        return self._trace.spenv  # pyright: ignore[reportAttributeAccessIssue]

    def __repr__(self):
        return f"SparseTracer<{self.aval.str_short()}>"


class SparseTrace(Trace):
    """Applies the rules of sparse arrays under its parent trace."""

    __slots__ = ("tag", "spenv")

    def __init__(self, parent_trace: Any, tag: Any, spenv: SparsifyEnv):
        super().__init__(parent_trace)
        self.tag, self.spenv = tag, spenv

    def to_sparse_tracer(self, val: Any) -> SparseTracer:
        if isinstance(val, SparseTracer) and val._trace is self:
            return val
        with state.set_current_trace(self.parent):
            return SparseTracer(self, spvalue=self.spenv.dense(val))

    def process(self, primitive, operands, params):
        values = [self.to_sparse_tracer(x)._spvalue for x in operands]
        with state.set_current_trace(self.parent):
            if any(v.is_sparse() for v in values):
                results = apply_rule(primitive, self.spenv, values, params)
            else:
                results = map(self.spenv.dense, primitive.bind_all([self.spenv.data(v) for v in values], params))
            return [SparseTracer(self, spvalue=v) for v in list(results)]

    def process_custom_jvp(self, primitive, fun, jvp, operands, params):
        return fun(*operands)

    def process_custom_vjp(self, primitive, fun, fwd, bwd, operands, params):
        return fun(*operands)


@transformation_with_aux2
def sparsify_subtrace(
    f: Callable, store: Store, tag: Any, spenv: SparsifyEnv, spvalues: Sequence[SparsifyValue], *bufs: Any
) -> Sequence[Any]:
    """Runs a wrapped flat function on values; returns the environment's buffers and a thunk of the results' values."""
    trace = SparseTrace(state.current_trace(), tag, spenv)
    with state.set_current_trace(trace):
        results = f(*[SparseTracer(trace, spvalue=v) for v in spvalues])
        store.store([trace.to_sparse_tracer(x)._spvalue for x in results])
    return spenv._buffers


def sparsify_fun(wrapped_fun: WrappedFun, args: Sequence[ArrayOrSparse]) -> list[ArrayOrSparse]:
    """Runs a wrapped flat function of dense arrays on sparse ones."""
    spenv = SparsifyEnv()
    fun, spvalues = sparsify_subtrace(wrapped_fun, object(), spenv, arrays_to_spvalues(spenv, args))
    fun.call_wrapped()
    return spvalues_to_arrays(spenv, spvalues())


def _with_tracers(f: Callable) -> Callable:
    @functools.wraps(f)
    def wrapped(*args, **params):
        leaves, structure = tree.tree_flatten(args, is_leaf=lambda x: isinstance(x, JAXSparse))
        flat, out_tree = flatten_fun_nokwargs(wrap_init(f, params), structure)
        results = sparsify_fun(flat, leaves)
        return out_tree().unflatten(results)

    return wrapped
