"""The interpreter of `sparsify`: values that refer to buffers of an environment, and rules by primitive."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax.base import tree
from minijax.experimental.sparse._base import BatchedFormat, JAXSparse
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.ir import context, state
from minijax.ir.jaxpr import Jaxpr, Literal
from minijax.ir.trace import environment, values_of
from minijax.ir.types import ShapedArray, typeof
from minijax.run.array import Array

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
        for name, buffer, ref in (
            ("data", data, data_ref),
            ("indices", indices, indices_ref),
            ("indptr", indptr, indptr_ref),
        ):
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
        return spenv.dense(arg)

    return tree.tree_map(value, args, is_leaf=lambda x: isinstance(x, JAXSparse))


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Replaces the values of a tree by arrays."""

    def array(value):
        flags = dict(indices_sorted=value.indices_sorted, unique_indices=value.unique_indices)
        if value.is_bcoo():
            return BCOO((spenv.data(value), spenv.indices(value)), shape=value.shape, **flags)
        if value.is_bcsr():
            buffers = spenv.data(value), spenv.indices(value), spenv.indptr(value)
            return BCSR(buffers, shape=value.shape, **flags)
        return spenv.data(value)

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
