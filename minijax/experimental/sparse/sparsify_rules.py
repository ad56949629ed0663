"""The rules of `sparsify`."""

from collections.abc import Callable, Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.jit import eval_shape, jit
from minijax.base import tree
from minijax.calls.custom_derivatives import custom_jvp_call_p
from minijax.dispatch.jit import jit_p
from minijax.experimental.sparse import bcoo_dot, bcoo_shapes, bcsr, transform
from minijax.experimental.sparse.api import todense_p
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general
from minijax.experimental.sparse.bcoo_layout import bcoo_transpose, bcoo_update_layout
from minijax.experimental.sparse.transform import SparsifyEnv, arrays_to_spvalues, eval_sparse, spvalues_to_arrays
from minijax.experimental.sparse.util import batch_sizes
from minijax.higher.cond import cond_p, switch
from minijax.higher.scan import scan, scan_p
from minijax.higher.while_loop import while_loop, while_p

# ---- elementwise -------------------------------------------------------------------------------------

_LINEAR = [getattr(lax, f"{name}_p") for name in "copy imag neg real convert_element_type conj".split()]
_ZERO_AT_ZERO = """
    abs asin asinh atan atanh bessel_i1e expm1 log1p sign sin sinh sqrt square tan tanh integer_pow
""".split()


def _of_data(primitive: Any) -> Callable:
    def rule(spenv, value, **params):
        if params.get("y", 1) <= 0:
            raise NotImplementedError(
                f"sparse rule for {primitive.name} with non-positive exponent {params['y']} is not implemented "
                "because it would result in dense output. If this is your intent, use sparse.todense() to convert your "
                "argument to a dense array."
            )
        if not (primitive in _LINEAR or value.unique_indices):
            mat = spvalues_to_arrays(spenv, value)
            value = arrays_to_spvalues(spenv, mat.sum_duplicates(nse=mat.nse, remove_zeros=False))
        return _with_data(spenv, value, primitive.bind(spenv.data(value), **params))

    return rule


def _with_data(spenv: SparsifyEnv, value: transform.SparsifyValue, data: Any) -> transform.SparsifyValue:
    """The value with its data replaced."""
    flags = dict(indices_sorted=bool(value.indices_sorted), unique_indices=bool(value.unique_indices))
    return spenv.sparse(value.shape, data, indices_ref=value.indices_ref, indptr_ref=value.indptr_ref, **flags)


for _primitive in (*_LINEAR, *[getattr(lax, f"{name}_p") for name in _ZERO_AT_ZERO]):
    transform.sparse_rules_bcoo[_primitive] = transform.sparse_rules_bcsr[_primitive] = _of_data(_primitive)


def _rule(primitive: Any) -> Callable:
    return lambda rule: transform.sparse_rules_bcoo.setdefault(primitive, rule)


@_rule(lax.add_p)
def _add(spenv, x, y):
    if x.is_sparse() and y.is_sparse():
        return _sum(spenv, x, y)
    mat, array = (x, y) if x.is_sparse() else (y, x)
    if lax.broadcast_shapes(x.shape, y.shape) != array.shape:
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the output shape is larger "
            "than Y.shape. This is to prevent silent densification of a large sparse array. If this is your intent, "
            "you can explicitly cast the sparse array to a dense matrix."
        )
    return spenv.dense(lax.add(spvalues_to_arrays(spenv, mat).todense(), spenv.data(array)))


def _sum(spenv, x, y):
    if x.shape != y.shape:
        raise NotImplementedError("Addition between sparse matrices of different shapes.")
    if x.indices_ref == y.indices_ref:
        return _with_data(spenv, x, lax.add(spenv.data(x), spenv.data(y)))
    a, b = spvalues_to_arrays(spenv, (x, y))
    if (a.n_batch, a.n_dense) != (b.n_batch, b.n_dense):
        raise NotImplementedError("Addition between sparse matrices with different batch/dense dimensions.")
    n = a.n_batch
    indices, data = (
        lax.concatenate([jnp.broadcast_to(buffer, (*batch_sizes(pair, n), *buffer.shape[n:])) for buffer in pair], n)
        for pair in ((a.indices, b.indices), (a.data, b.data))
    )
    return spenv.sparse(x.shape, data, indices)


@_rule(lax.sub_p)
def _sub(spenv, x, y):
    if not (x.is_sparse() and y.is_sparse()):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    return _sum(spenv, x, _with_data(spenv, y, lax.neg(spenv.data(y))))


@_rule(lax.mul_p)
def _mul(spenv, x, y):
    if x.is_sparse() and y.is_sparse():
        if x.indices_ref == y.indices_ref and x.unique_indices:
            return _with_data(spenv, x, lax.mul(spenv.data(x), spenv.data(y)))
        return arrays_to_spvalues(spenv, bcoo_dot.bcoo_multiply_sparse(*spvalues_to_arrays(spenv, (x, y))))
    mat, array = (x, y) if x.is_sparse() else (y, x)
    return _with_data(spenv, mat, bcoo_dot.bcoo_multiply_dense(spvalues_to_arrays(spenv, mat), spenv.data(array)))


@_rule(lax.div_p)
def _div(spenv, x, y):
    if y.is_sparse():
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense output. If this is your "
            "intent, use sparse.todense() to convert your arguments to a dense array."
        )
    return _mul(spenv, x, spenv.dense(1.0 / spenv.data(y)))


# ---- functions of arrays -----------------------------------------------------------------------------


def _of_arrays(function: Callable) -> Callable:
    def rule(spenv, *values, **params):
        return arrays_to_spvalues(spenv, function(*spvalues_to_arrays(spenv, values), **params))

    return rule


def _concatenate(*operands, dimension):
    if len({mat.n_batch for mat in operands}) > 1:
        n_batch = min(mat.n_batch for mat in operands)
        operands = [bcoo_update_layout(mat, n_batch=n_batch) for mat in operands]
    return bcoo_shapes.bcoo_concatenate(operands, dimension=dimension)


def _stack(*operands, axis):
    sizes = [*operands[0].shape]
    places = [k for k in range(len(sizes) + 1) if k != axis]
    shape = (*sizes[:axis], 1, *sizes[axis:])
    parts = [bcoo_shapes.bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=places) for x in operands]
    return bcoo_shapes.bcoo_concatenate(parts, dimension=axis)


def _reduce_sum(mat, *, axes, out_sharding):
    del out_sharding
    out = bcoo_shapes.bcoo_reduce_sum(mat, axes=axes)
    return out if out.shape else out.data.sum()


for _primitive, _function in {
    lax.broadcast_in_dim_p: bcoo_shapes.bcoo_broadcast_in_dim,
    lax.concatenate_p: _concatenate,
    lax.stack_p: _stack,
    lax.conv_general_dilated_p: bcoo_dot.bcoo_conv_general_dilated,
    lax.dot_general_p: bcoo_dot_general,
    lax.dynamic_slice_p: lambda mat, *starts, slice_sizes: bcoo_shapes.bcoo_dynamic_slice(mat, starts, slice_sizes),
    lax.gather_p: bcoo_shapes.bcoo_gather,
    lax.reduce_sum_p: _reduce_sum,
    lax.reshape_p: bcoo_shapes.bcoo_reshape,
    lax.rev_p: bcoo_shapes.bcoo_rev,
    lax.slice_p: bcoo_shapes.bcoo_slice,
    lax.squeeze_p: bcoo_shapes.bcoo_squeeze,
}.items():
    transform.sparse_rules_bcoo[_primitive] = _of_arrays(_function)


@_rule(lax.transpose_p)
def _transpose(spenv, value, *, permutation):
    mat = spvalues_to_arrays(spenv, value)
    out = bcoo_transpose(mat, permutation=permutation)
    result = arrays_to_spvalues(spenv, out)
    # Permuting only sparse axes leaves the data unchanged.
    return result if mat.n_batch or mat.n_dense else result._replace(data_ref=value.data_ref)


@_rule(todense_p)
def _todense(spenv, value, *_, tree):
    del tree
    return spenv.dense(spvalues_to_arrays(spenv, value).todense()) if value.is_sparse() else value


# ---- operations that call jaxprs ---------------------------------------------------------------------


def _eval_closed(closed: Any, arrays: Sequence) -> list:
    """Evaluates a closed jaxpr on sparse and dense arrays; its results may be sparse."""
    spenv = SparsifyEnv()
    values = arrays_to_spvalues(spenv, list(arrays))
    return spvalues_to_arrays(spenv, list(eval_sparse(closed.jaxpr, closed.consts, values, spenv)))


@_rule(jit_p)
def _jit(spenv, *values, jaxpr, name, inline, **_):
    if inline:
        return eval_sparse(jaxpr.jaxpr, jaxpr.consts, values, spenv)
    # Buffers that arguments share among them remain shared inside the call.
    places = {ref: k for k, ref in enumerate(dict.fromkeys(ref for v in values for ref in v._refs))}
    inner = [_renumbered(v, places.__getitem__) for v in values]
    out_values: list = []

    def call(*buffers):
        env = SparsifyEnv(buffers)
        out_values[:] = eval_sparse(jaxpr.jaxpr, jaxpr.consts, inner, env)
        return [env._buffers[ref] for v in out_values for ref in v._refs]

    call.__name__ = call.__qualname__ = name
    results = iter(jit(call)(*[spenv._buffers[ref] for ref in places]))
    return [_renumbered(v, lambda _: spenv._push(next(results))) for v in out_values]


def _renumbered(value: transform.SparsifyValue, number: Callable[[int], int]) -> transform.SparsifyValue:
    """The value with `number(ref)` for the number `ref` of each buffer."""
    names = ("data_ref", "indices_ref", "indptr_ref")
    return value._replace(**{k: number(ref) for k in names if (ref := getattr(value, k)) is not None})


def _without_promises(arrays: Sequence) -> list:
    """Drops the promises `indices_sorted` and `unique_indices`, which carries and branch results need not keep."""
    return [BCOO(x._bufs, shape=x.shape) if isinstance(x, BCOO) else x for x in arrays]


@_rule(while_p)
def _while(spenv, *values, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    arrays = spvalues_to_arrays(spenv, list(values))
    cond_consts, body_consts = arrays[:cond_nconsts], arrays[cond_nconsts : cond_nconsts + body_nconsts]
    init = _without_promises(arrays[cond_nconsts + body_nconsts :])
    out = while_loop(
        lambda carry: _eval_closed(cond_jaxpr, [*cond_consts, *carry])[0],
        lambda carry: _without_promises(_eval_closed(body_jaxpr, [*body_consts, *carry])),
        init,
    )
    return arrays_to_spvalues(spenv, out)


@_rule(cond_p)
def _cond(spenv, index, *values, branches, **_):
    arrays = spvalues_to_arrays(spenv, list(values))
    calls = [lambda *xs, closed=closed: _without_promises(_eval_closed(closed, xs)) for closed in branches]
    kinds = [tree.tree_structure(eval_shape(call, *arrays)) for call in calls]
    if len(set(kinds)) > 1:
        raise TypeError(
            "sparsified true_fun output must have same type structure as sparsified false_fun output, but the branches "
            f"of cond give {' and '.join(map(str, kinds))}"
        )
    return arrays_to_spvalues(spenv, switch(spenv.data(index), calls, *arrays))


@_rule(scan_p)
def _scan(spenv, *values, jaxpr, num_consts, num_carry, length, reverse, unroll, **_):
    end = num_consts + num_carry
    consts, carry, xs = values[:num_consts], values[num_consts:end], values[end:]
    if any(v.is_sparse() for v in xs) or len(jaxpr.jaxpr.outvars) > num_carry or xs:
        raise NotImplementedError("sparse rule for scan with x values.")
    fixed = spvalues_to_arrays(spenv, list(consts))
    init = _without_promises(spvalues_to_arrays(spenv, list(carry)))
    body = lambda c, _: (_without_promises(_eval_closed(jaxpr, [*fixed, *c])), None)  # noqa: E731
    out, _ = scan(body, init, None, length=length, reverse=reverse, unroll=unroll)
    return arrays_to_spvalues(spenv, out)


@_rule(custom_jvp_call_p)
def _custom_jvp_call(spenv, *values, call_jaxpr, **_):
    return eval_sparse(call_jaxpr.jaxpr, call_jaxpr.consts, values, spenv)


# ---- BCSR --------------------------------------------------------------------------------------------


transform.sparse_rules_bcsr.update(
    {
        lax.dot_general_p: _of_arrays(bcsr.bcsr_dot_general),
        lax.broadcast_in_dim_p: _of_arrays(bcsr.bcsr_broadcast_in_dim),
        lax.concatenate_p: _of_arrays(
            lambda *operands, dimension: bcsr.bcsr_concatenate(operands, dimension=dimension)
        ),
        **{p: transform.sparse_rules_bcoo[p] for p in (custom_jvp_call_p, todense_p)},
    }
)
