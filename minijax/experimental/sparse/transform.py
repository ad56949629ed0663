"""`sparsify`: transforms functions of dense arrays to functions of sparse arrays, by the rules of `sparsify_rules`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax.api.jit import trace_function
from minijax.base import tree
from minijax.base.faces import listing
from minijax.base.linear_util import Store, WrappedFun, wrap_init
from minijax.experimental.sparse._base import BatchedFormat, JAXSparse
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.interop.arguments import flatten_fun_nokwargs
from minijax.interop.transformations import transformation_with_aux2
from minijax.ir import context, state
from minijax.ir.jaxpr import Jaxpr, Literal
from minijax.ir.trace import Trace, Tracer, environment, values_of
from minijax.ir.types import ShapedArray, typeof, unwrapped
from minijax.run.arrays.array import Array

__all__, __dir__ = listing(
    __name__,
    """
    Array ArrayOrSparse SparseTrace SparseTracer SparsifyEnv SparsifyValue arrays_to_spvalues eval_sparse
    sparse_rules_bcoo sparse_rules_bcsr sparsify sparsify_fun sparsify_raw sparsify_subtrace spvalues_to_arrays
    spvalues_to_avals
""",
)

ArrayOrSparse = Array | BCOO

# ---- values ------------------------------------------------------------------------------------------

# {primitive: rule (env, *values, **params) -> values}. Users may add rules.
sparse_rules_bcoo: dict[Any, Callable] = {}
sparse_rules_bcsr: dict[Any, Callable] = {}

# Operations that do not map zeros to zeros.
_DENSE = frozenset(
    """
    acos acosh and argmax argmin atan2 bessel_i0e clamp cos cosh cumlogsumexp cumprod digamma eq erfc 
    exp exp2 ge gt igamma igammac is_finite le lgamma log logistic lt ne nextafter not or rsqrt xor
    """.split()
)


class SparsifyValue(NamedTuple):
    """A value: its shape, and the numbers of its buffers in the environment."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def _refs(self) -> list[int]:
        """The numbers of its buffers."""
        return [ref for ref in (self.data_ref, self.indices_ref, self.indptr_ref) if ref is not None]

    def is_sparse(self) -> bool:
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The buffers of all values, which refer to them by number and may share them."""

    def __init__(self, bufs: Sequence[Any] = ()):
        self._buffers = list(bufs)

    def _push(self, buffer: Any) -> int:
        self._buffers.append(jnp.asarray(buffer))
        return len(self._buffers) - 1

    def _get(self, ref: int | None) -> Any:
        if ref is None:
            raise RuntimeError("SparsifyEnv: the value has no such buffer")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Any:
        return self._get(spvalue.data_ref)

    def indices(self, spvalue: SparsifyValue) -> Any:
        return self._get(spvalue.indices_ref)

    def indptr(self, spvalue: SparsifyValue) -> Any:
        return self._get(spvalue.indptr_ref)

    def dense(self, data: Any) -> SparsifyValue:
        """Adds a dense array and returns its value."""
        return SparsifyValue(tuple(typeof(data).shape), self._push(data))

    def sparse(
        self,
        shape: Sequence[int],
        data: Any = None,
        indices: Any = None,
        indptr: Any = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indptr_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """The value of a sparse array. Each buffer is new or has a number; a BCOO has no `indptr`."""
        refs: list[int | None] = []
        rows = ("data", data, data_ref), ("indices", indices, indices_ref), ("indptr", indptr, indptr_ref)
        for name, buffer, ref in rows:
            if buffer is not None and ref is not None:
                raise ValueError(f"SparsifyEnv.sparse: {name} and {name}_ref are both given")
            refs.append(ref if buffer is None else self._push(buffer))
        if None in refs[:2]:
            raise ValueError("SparsifyEnv.sparse: data and indices are needed")
        return SparsifyValue(tuple(shape), refs[0], refs[1], refs[2], indices_sorted, unique_indices)


def is_spvalue(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """Replaces the sparse and dense arrays of a tree by values."""

    def value(arg):
        if isinstance(arg, BatchedFormat):
            buffers, aux = arg.tree_flatten()
            return spenv.sparse(aux.pop("shape"), *buffers, **aux)
        if isinstance(arg, JAXSparse):
            raise NotImplementedError(f"sparsify: arguments of format {type(arg).__name__}")
        return spenv.dense(unwrapped(arg))

    return tree.tree_map(value, args, is_leaf=lambda x: isinstance(x, JAXSparse))


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Replaces the values of a tree by arrays."""

    def array(value):
        if value.is_dense():
            return spenv.data(value)
        buffers = tuple(spenv._buffers[ref] for ref in value._refs)
        flags = dict(indices_sorted=value.indices_sorted, unique_indices=value.unique_indices)
        return (BCSR if value.is_bcsr() else BCOO)(buffers, shape=value.shape, **flags)

    return tree.tree_map(array, spvalues, is_leaf=is_spvalue)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Replaces the values of a tree by the abstract values of dense arrays."""

    def aval(value):
        data = typeof(spenv.data(value))
        return ShapedArray(tuple(value.shape), data.dtype, data.weak_type and value.is_dense())

    return tree.tree_map(aval, spvalues, is_leaf=is_spvalue)


def apply_rule(
    primitive: Any, spenv: SparsifyEnv, values: Sequence[SparsifyValue], params: dict
) -> Sequence[SparsifyValue]:
    """Applies the rule of a primitive to operands with a sparse one. Raises NotImplementedError without a rule."""
    rules = sparse_rules_bcsr if any(v.is_bcsr() for v in values) else sparse_rules_bcoo
    if primitive not in rules:
        name = primitive.name
        advice = (
            " because it would result in dense output. If this is your intent, use sparse.todense() to convert your "
            "arguments to dense matrices."
        )
        raise NotImplementedError(f"sparse rule for {name} is not implemented{advice if name in _DENSE else '.'}")
    results = rules[primitive](spenv, *values, **params)
    return [results] if is_spvalue(results) else results


def eval_sparse(
    jaxpr: Jaxpr, consts: Sequence[Array], spvalues: Sequence[SparsifyValue], spenv: SparsifyEnv
) -> Sequence[SparsifyValue]:
    """Evaluates a jaxpr on values and returns those of its results."""
    env: dict = {v: spenv.dense(c) for v, c in environment(jaxpr, consts).items()}
    env.update(zip(jaxpr.invars, spvalues, strict=True))
    trace = state.current_trace()
    read = lambda atom: spenv.dense(values_of([atom], {})[0]) if type(atom) is Literal else env[atom]  # noqa: E731
    with context.within() as enter:
        for eqn in jaxpr.eqns:
            operands = [values_of([a], {})[0] if type(a) is Literal else env[a] for a in eqn.invars]
            enter(eqn.ctx, eqn.traceback)
            if any(is_spvalue(v) and v.is_sparse() for v in operands):
                values = [v if is_spvalue(v) else spenv.dense(v) for v in operands]
                results = apply_rule(eqn.primitive, spenv, values, eqn.params)
            else:
                arrays = [spenv.data(v) if is_spvalue(v) else v for v in operands]
                results = [spenv.dense(x) for x in eqn.primitive.rebind(trace, arrays, eqn.params)]
            env.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


# ---- the transformation ------------------------------------------------------------------------------


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
    """Transforms a function to also accept sparse arrays, by the rules `sparse_rules_bcoo` and `sparse_rules_bcsr`.

    Raises NotImplementedError for an operation on a sparse array without a rule. `use_tracer` runs `f` once on
    `SparseTracer`s, instead of tracing it to a jaxpr first.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.eye(2))
        >>> sparse.sparsify(lambda x: jnp.sum(2 * x))(x)
        Array(4., dtype=float32)
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
    """Is a tracer of a value of an environment of sparse values.

    Example:
        >>> from minijax.experimental import sparse
        >>> f = sparse.sparsify(lambda x: (print(type(x).__name__), 2 * x)[1], use_tracer=True)
        >>> f(sparse.BCOO.fromdense(jnp.array([0, 3]))).todense()
        SparseTracer
        Array([0, 6], dtype=int32)
    """

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
        if primitive.is_hi:
            return primitive.to_lo(operands, params)
        values = [self.to_sparse_tracer(x)._spvalue for x in operands]
        with state.set_current_trace(self.parent):
            if any(v.is_sparse() for v in values):
                results = apply_rule(primitive, self.spenv, values, params)
            else:
                results = map(self.spenv.dense, primitive.bind_all([self.spenv.data(v) for v in values], params))
            return [SparseTracer(self, spvalue=v) for v in list(results)]


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
