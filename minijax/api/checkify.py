"""`checkify`: interprets a function's jaxpr with its run-time checks as an additional result."""

import functools
from collections.abc import Callable, Sequence
from itertools import repeat
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minijax.api.checkify_errors import (
    DivisionByZeroError,
    Error,
    ErrorEffect,
    FailedCheckError,
    NaNError,
    OOBError,
    any_of,
    check_p,
    failing,
    init_error,
    leaf_count,
)
from minijax.base import dtypes, source, tree
from minijax.calls.bodied import CARRY, CONST, RESULT, Binder
from minijax.calls.call import Call, closed_of
from minijax.calls.custom_derivatives import custom_jvp_call_p, custom_jvp_p, custom_vjp_call_p, custom_vjp_p
from minijax.composed.arrays import cumulative, fft, special
from minijax.higher.cond import cond_p
from minijax.higher.custom_solve import custom_linear_solve_p
from minijax.higher.reduction import reduce_p
from minijax.higher.scan import scan_p
from minijax.higher.shard_map import shard_map_p
from minijax.higher.while_loop import Loop, while_p
from minijax.ir import context, state
from minijax.ir.body import Flat, debug_info, trace_flat
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.ir.primitive import Primitive
from minijax.ir.trace import close_over, environment, eval_jaxpr, last_uses, trace_to_jaxpr, values_of
from minijax.ir.types import Zero, typeof
from minijax.partition.meshes import P
from minijax.primitives import bessel, elementwise as ops
from minijax.primitives.barriers import dce_sink_p
from minijax.primitives.collective import psum_p
from minijax.primitives.conv import conv_general_dilated_p
from minijax.primitives.convert import convert
from minijax.primitives.dot import dot_general_p
from minijax.primitives.dynamic_slice import dynamic_index_in_dim, dynamic_slice_p, dynamic_update_slice_p
from minijax.primitives.families import scalar_like
from minijax.primitives.gather_dims import index_bounds, window_sizes
from minijax.primitives.gather_scatter import (
    gather_p,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
)
from minijax.primitives.moving import as_array_or_constant, broadcast_in_dim, expand_dims, reduce_sum_p, reshape_to
from minijax.primitives.random_bits import rng_uniform_p
from minijax.primitives.reduce import argmin, reduce_prod_p
from minijax.primitives.structural import concatenate, pad_p
from minijax.primitives.window import reduce_window_sum_p
from minijax.primitives.zeros import instantiate
from minijax.transforms.partial_eval import permute_jaxpr

_NO_ARGUMENTS = tree.tree_structure(())
ErrorCategory = type[Exception]
_INT32 = np.dtype(np.int32)

user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Checker:
    """Evaluates equations; `error` is the outcome of the checks so far."""

    def __init__(self, enabled: frozenset, error: Error):
        self.enabled, self.error = enabled, error
        self.origin: Any = None

    def run(self, closed: ClosedJaxpr, args: Sequence) -> list:
        """Evaluates a jaxpr, and adds its checks to the error."""
        jaxpr: Jaxpr = closed.jaxpr
        env: dict[Any, Any] = environment(jaxpr, closed.consts)
        env.update(zip(jaxpr.invars, args, strict=True))
        last = last_uses(jaxpr)
        with context.within() as enter:
            for i, eqn in enumerate(jaxpr.eqns):
                operands = values_of(eqn.invars, env)
                enter(eqn.ctx, eqn.traceback)
                self.origin = state.thread.origin
                results = self.equation(eqn, operands)
                env.update(zip(eqn.outvars, results, strict=True))
                for v in last.get(i, ()):
                    env.pop(v, None)
        return values_of(jaxpr.outvars, env)

    def equation(self, eqn: JaxprEqn, operands: Sequence) -> list:
        rule = _RULES.get(eqn.primitive)
        if rule is not None:
            return rule(self, eqn, operands)
        return (_call if isinstance(eqn.primitive, Call) else _unchecked)(self, eqn, operands)

    def check(self, kind: type, pred: Callable[[], Any], *args: Any) -> None:
        """Adds a check that fails with `kind(origin, *args)` if `pred()` is true; does nothing for a disabled kind."""
        if kind in self.enabled:
            self.error = failing(self.error, pred(), kind(self.origin, *args))


class Checked(NamedTuple):
    """A jaxpr whose leading inputs and results are the leaves of an error."""

    closed: ClosedJaxpr
    kinds: tuple[ErrorEffect, ...]  # of the resulting error
    metadata: dict


@state.traced_cache
def _checked(closed: ClosedJaxpr, enabled: frozenset, kinds: tuple, avals: tuple) -> Checked:
    """Returns the jaxpr with its checks; `kinds` and `avals` are those of the incoming error's leaves."""
    outcome: list = []

    def run(*args):
        checker = Checker(enabled, Error.of_flat(kinds, {}, args[: len(avals)]))
        results = checker.run(closed, args[len(avals) :])
        outcome[:] = checker.error.effects(), checker.error._metadata
        return [*checker.error.flat(), *results]

    info = closed.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, [*avals, *closed.in_avals], info)
    return Checked(close_over(jaxpr, consts)[0], *outcome)


def _checked_for(checker: Checker, closed: ClosedJaxpr) -> Checked:
    error = checker.error
    return _checked(closed, checker.enabled, error.effects(), tuple([typeof(x) for x in error.flat()]))


def _extend_error(checker: Checker, *bodies: ClosedJaxpr) -> None:
    """Extends the error to all kinds that the bodies can end in, and batches it over the axes of theirs."""
    checked = [_checked_for(checker, b) for b in bodies]
    kinds = [k for c in checked for k in c.kinds]
    shapes = [a.shape for c in checked for a in c.closed.out_avals[: len(c.kinds)]]
    checker.error = checker.error.with_effects(kinds).mapped(max(shapes, key=len, default=()))


def _take_error(checker: Checker, checked: Sequence[Checked], results: Sequence) -> list:
    """Stores the error that is among the results of checked jaxprs; returns the other results."""
    kinds, metadata = checked[0].kinds, checker.error._metadata
    for c in checked:
        metadata = metadata | c.metadata
    n = leaf_count(kinds)
    checker.error = Error.of_flat(kinds, metadata, results[:n])
    return list(results[n:])


# ---- rules: (checker, equation, operands) -> results ------------------------------------------------

Rule = Callable[[Checker, JaxprEqn, Sequence], list]


def _unchecked(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    return eqn.primitive.rebind(state.current_trace(), operands, eqn.params)


def _nan(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    results = _unchecked(checker, eqn, operands)
    numbers = [x for x in results if not dtypes.is_extended(typeof(x).dtype)]
    if numbers:
        has_nan = lambda: functools.reduce(ops.or_p.bind, [any_of(ops.ne_p.bind(x, x)) for x in numbers])  # noqa: E731
        checker.check(NaNError, has_nan, eqn.primitive.name)
    return results


def _div(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    _, y = operands
    checker.check(DivisionByZeroError, lambda: any_of(ops.eq_p.bind(y, scalar_like(y, 0))))
    return _nan(checker, eqn, operands)


def _gather(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    x, indices = operands
    index_map = eqn.params["dimension_numbers"].start_index_map
    results = _unchecked(checker, eqn, operands)
    _check_bounds(checker, eqn, x, indices, index_map, eqn.params["slice_sizes"])
    return results


def _scatter(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    x, indices, updates = operands
    numbers, aval = eqn.params["dimension_numbers"], typeof(x)
    sizes = window_sizes(numbers, aval.ndim, typeof(updates).shape)
    before, checker.enabled = checker.enabled, checker.enabled - nan_checks
    try:
        results = _unchecked(checker, eqn, operands)
        _check_bounds(checker, eqn, x, indices, numbers.scatter_dims_to_operand_dims, sizes)
    finally:
        checker.enabled = before
    checker.check(NaNError, lambda: any_of(ops.ne_p.bind(results[0], results[0])), eqn.primitive.name)
    return results


def _dynamic_slice(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    x, *starts = operands
    results = _unchecked(checker, eqn, operands)
    _check_starts(checker, eqn, x, starts, eqn.params["slice_sizes"])
    return results


def _dynamic_update_slice(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    x, update, *starts = operands
    results = _unchecked(checker, eqn, operands)
    _check_starts(checker, eqn, x, starts, typeof(update).shape)
    return results


def _check_starts(checker: Checker, eqn: JaxprEqn, x: Any, starts: Sequence, sizes: Sequence[int]) -> None:
    if OOBError in checker.enabled and starts:
        indices = concatenate([expand_dims(i, (0,)) for i in starts], 0)
        _check_bounds(checker, eqn, x, indices, range(len(starts)), sizes)


def _check_bounds(
    checker: Checker, eqn: JaxprEqn, x: Any, indices: Any, index_map: Sequence[int], sizes: Sequence[int]
) -> None:
    """Checks that index vectors, along the last axis, are in bounds; their entries index the axes `index_map`."""
    aval, rows = typeof(x), typeof(indices)
    if OOBError not in checker.enabled or not prod(rows.shape):
        return
    if rows.dtype.itemsize < _INT32.itemsize:
        indices = convert(indices, _INT32)
    limits = np.asarray(index_bounds(index_map, sizes, aval), typeof(indices).dtype)
    limits = broadcast_in_dim(limits, rows.shape, (rows.ndim - 1,))
    outside = ops.or_p.bind(ops.lt_p.bind(indices, scalar_like(indices, 0)), ops.gt_p.bind(indices, limits))
    place = argmin(reshape_to(ops.not_p.bind(outside), (prod(rows.shape),)), 0, np.int32)
    entry = ops.rem_p.bind(place, np.int32(len(index_map)))
    axes = np.asarray(index_map, _INT32)
    payload_parts = (
        (convert(reshape_to(indices, (prod(rows.shape),)), _INT32), place),
        (axes, entry),
        (np.asarray(aval.shape, _INT32)[axes], entry),
    )
    payload = concatenate([dynamic_index_in_dim(values, i, 0) for values, i in payload_parts], 0)
    checker.check(OOBError, lambda: any_of(outside), eqn.primitive.name, aval.shape, payload)


def _check(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    error = Error.of_flat(eqn.params["kinds"], dict(eqn.params["metadata"]), operands)
    for kind in error.effects():
        joined = checker.error.joined(error, kind)
        checker.error = joined if kind.error_type in checker.enabled else checker.error
    return []


def _call(checker: Checker, eqn: JaxprEqn, operands: Sequence, into: Binder = CONST, out: Binder = RESULT) -> list:
    """Calls checked bodies, (error, inputs) -> (error, results); `into` and `out` are the binders of the error."""
    primitive, params = eqn.primitive, eqn.params
    checked = [_checked_for(checker, body) for body in primitive.bodies(params)]
    leaves, (ins, outs) = checker.error.flat(), primitive.binders(params)
    ins, outs = [*repeat(into, len(leaves)), *ins], [*repeat(out, leaf_count(checked[0].kinds)), *outs]
    results = primitive.bound(params, [c.closed for c in checked], [*leaves, *operands], ins, outs)
    return _take_error(checker, checked, results)


def _cond(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    _extend_error(checker, *eqn.params["branches"])
    return _call(checker, eqn, operands)


def _scan(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    _extend_error(checker, eqn.params["jaxpr"])
    _carry_error(checker)
    return _call(checker, eqn, operands, CARRY, CARRY)


def _carry_error(checker: Checker) -> int:
    """Turns the leaves of the error into values that a loop can carry, and returns their number."""
    leaves = [as_array_or_constant(x) for x in checker.error.flat()]
    checker.error = Error.of_flat(checker.error.effects(), checker.error._metadata, leaves)
    return len(leaves)


def _while(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    loop = Loop(**eqn.params)
    if loop.cond_jaxpr.out_avals[0].shape:
        raise ValueError(
            "checkify: batched while-loops are not supported (checkify-of-vmap-of-while). Move the vmap outside, to "
            "have vmap-of-checkify-of-while."
        )
    of_cond, of_body, carry = loop.split(operands)
    checker.run(loop.cond_jaxpr, [*of_cond, *carry])
    body = _body_then_cond(loop.body_jaxpr, loop.cond_jaxpr, loop.cond_nconsts)
    _extend_error(checker, body, loop.cond_jaxpr)
    k, n, m = _carry_error(checker), loop.cond_nconsts, loop.body_nconsts
    test, checked = _checked_for(checker, loop.cond_jaxpr), _checked_for(checker, body)
    flag = test.closed.jaxpr.replace(outvars=test.closed.outvars[k:])
    # (error, constants, carry) -> (constants, error, carry)
    flag = permute_jaxpr(
        test.closed.replace(jaxpr=flag), (*range(k, k + n), *range(k), *range(k + n, len(flag.invars)))
    )
    last = len(checked.closed.invars)
    order = (*range(k, k + n + m), *range(k), *range(k + n + m, last))
    new = Loop(n, flag, n + m, permute_jaxpr(checked.closed, order))
    values = [*of_cond, *of_cond, *of_body, *checker.error.flat(), *carry]
    return _take_error(checker, [checked], while_p.bind_all(values, new._asdict()))


@state.traced_cache
def _body_then_cond(body: ClosedJaxpr, test: ClosedJaxpr, n: int) -> ClosedJaxpr:
    """Returns the body of a loop followed by the predicate: its checks are kept, though its result is not used."""

    def run(*args):
        results = eval_jaxpr(body.jaxpr, body.consts, *args[n:])
        dce_sink_p.bind(*eval_jaxpr(test.jaxpr, test.consts, *args[:n], *results), prevent_mlir_dce=False)
        return results

    info = body.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, [*test.in_avals[:n], *body.in_avals], info)
    return close_over(jaxpr, consts)[0]


def _shard_map(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    """Checks the body of a shard_map: each device has its own error, and the result is batched over the mesh axes."""
    params = eqn.params
    mesh, jaxpr = params["mesh"], params["jaxpr"]
    with shard_map_p.body_context(params):
        checked = _checked_shard_map_body(closed_of(jaxpr), checker.enabled, len(mesh.axis_names))
    k = len(checked.closed.outvars) - len(eqn.outvars)
    outs = [*(P(*mesh.axis_names) for _ in range(k)), *params["out_specs"]]
    results = shard_map_p.bind_sharded(params, checked.closed, operands, params["in_specs"], outs)
    checker.error = checker.error.then(Error.of_flat(checked.kinds, checked.metadata, results[:k]))
    return results[k:]


@state.traced_cache
def _checked_shard_map_body(closed: ClosedJaxpr, enabled: frozenset, axes: int) -> Checked:
    """Returns the checked body of a shard_map; its error has an axis of size 1 for each mesh axis."""
    checked = _checked(closed, enabled, (), ())
    k = len(checked.closed.outvars) - len(closed.outvars)

    def run(*args):
        results = eval_jaxpr(checked.closed.jaxpr, checked.closed.consts, *args)
        return [*(expand_dims(x, tuple(range(axes))) for x in results[:k]), *results[k:]]

    jaxpr, consts = trace_to_jaxpr(run, closed.in_avals, closed.debug_info._replace(arg_names=None, result_paths=None))
    return checked._replace(closed=close_over(jaxpr, consts)[0])


# ---- functions with derivative rules ----------------------------------------------------------------


class _Outcome:
    """The error of a function with a derivative rule; it is empty if only the rule was called."""

    def __init__(self, checker: Checker, closed: ClosedJaxpr):
        self.enabled, self.closed = checker.enabled, closed
        self.kinds: tuple[ErrorEffect, ...] = ()
        self.metadata: dict = {}

    def function(self, *args: Any) -> list:
        """Evaluates the function with its checks: (*leaves of the error, *results)."""
        checked = _checked(self.closed, self.enabled, (), ())
        results = eval_jaxpr(checked.closed.jaxpr, checked.closed.consts, *args)
        self.kinds, self.metadata = checked.kinds, checked.metadata
        return results

    def placeholders(self) -> list:
        """Returns the leaves of an error without failures, for a call of the rule."""
        return [as_array_or_constant(x) for x in init_error.with_effects(self.kinds).flat()]

    def count(self) -> int:
        """The number of leaves of the error."""
        return leaf_count(self.kinds)

    def join(self, checker: Checker, results: Sequence) -> list:
        k = self.count()
        checker.error = checker.error.then(Error.of_flat(self.kinds, self.metadata, results[:k]))
        return list(results[k:])


def _custom_jvp(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    params, outcome = eqn.params, _Outcome(checker, eqn.params["call_jaxpr"])

    def jvp(*args):
        results, placeholders = list(params["jvp_jaxpr_fun"](*args)), outcome.placeholders()
        tangents = [instantiate(Zero.from_primal_value(x)) for x in placeholders]
        half = len(results) // 2
        return [*placeholders, *results[:half], *tangents, *results[half:]]

    jvp.__name__ = getattr(params["jvp_jaxpr_fun"], "__name__", "jvp")
    outcome_of = _named(outcome.function, eqn)
    rest = dict(symbolic_zeros=params["symbolic_zeros"])
    results = custom_jvp_p.bind_all(operands, dict(fun=outcome_of, rule=jvp, **rest))
    return outcome.join(checker, results)


def _named(function: Callable, eqn: JaxprEqn) -> Callable:
    run = lambda *args: function(*args)  # noqa: E731
    run.__name__ = eqn.params["call_jaxpr"].debug_info.func_name
    return run


def _custom_vjp(checker: Checker, eqn: JaxprEqn, operands: Sequence) -> list:
    params, outcome = eqn.params, _Outcome(checker, eqn.params["call_jaxpr"])
    m = len(eqn.outvars)

    def fwd(*args):
        results = list(params["fwd_jaxpr_thunk"](*args))
        n = len(results) - m
        return [*results[:n], *outcome.placeholders(), *results[n:]]

    def bwd(*residuals_and_cts):
        n = len(residuals_and_cts) - m
        return params["bwd"](*residuals_and_cts[: n - outcome.count()], *residuals_and_cts[n:])

    fwd.__name__, bwd.__name__ = params["fwd_jaxpr_thunk"].__name__, params["bwd"].__name__
    rest = dict(out_trees=lambda: m + outcome.count(), symbolic_zeros=params["symbolic_zeros"])
    function = _named(outcome.function, eqn)
    results = custom_vjp_p.bind_all(operands, dict(fun=function, fwd=fwd, bwd=bwd, **rest))
    return outcome.join(checker, results)


_NAN = (
    ops.sub_p, ops.mul_p, ops.add_p, ops.rem_p, ops.integer_pow_p, ops.pow_p, ops.exp_p, ops.expm1_p, ops.log_p,
    ops.log1p_p, ops.sqrt_p, ops.rsqrt_p, ops.cbrt_p, ops.logistic_p, ops.sin_p, ops.cos_p, ops.tan_p, ops.tanh_p,
    ops.sinh_p, ops.cosh_p, ops.asin_p, ops.acos_p, ops.atan_p, ops.asinh_p, ops.acosh_p, ops.atanh_p, ops.atan2_p,
    ops.erf_p, ops.erfc_p, ops.erf_inv_p, ops.lgamma_p, ops.digamma_p, bessel.bessel_i0e_p, bessel.bessel_i1e_p,
    special.igamma_grad_a_p, special.igamma_p, special.igammac_p, special.regularized_incomplete_beta_p,
    cumulative.cumsum_p, cumulative.cumprod_p, cumulative.cummax_p, cumulative.cummin_p, cumulative.cumlogsumexp_p,
    conv_general_dilated_p, dot_general_p, fft.fft_p, pad_p, psum_p, reduce_p, reduce_prod_p, reduce_sum_p,
    reduce_window_sum_p, rng_uniform_p, custom_linear_solve_p,
)  # fmt: skip

# The only table from primitives to rules: the primitives' own files are below this transformation.
_RULES: dict[Primitive, Rule] = {
    **dict.fromkeys(_NAN, _nan),
    **dict.fromkeys((scatter_p, scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p), _scatter),
    ops.div_p: _div,
    gather_p: _gather,
    dynamic_slice_p: _dynamic_slice,
    dynamic_update_slice_p: _dynamic_update_slice,
    check_p: _check,
    cond_p: _cond,
    scan_p: _scan,
    while_p: _while,
    shard_map_p: _shard_map,
    custom_jvp_call_p: _custom_jvp,
    custom_vjp_call_p: _custom_vjp,
}


def checkify(f: Callable, errors: frozenset = user_checks) -> Callable:
    """Creates a function that returns the outcome of its checks together with its result.

    Args:
        f: A function that may call `check`, jitted or not.
        errors: A set of the checks to make: `user_checks` (those of `check`, the default), `nan_checks`, `div_checks`
            (by zero), `index_checks` (out of bounds), `float_checks`, `automatic_checks`, `all_checks`, and unions of
            these. All but the first are added to the operations themselves.

    Returns:
        A function of the same arguments that returns (an `Error`, the result of `f`). It can be jitted and mapped.

    Example:
        >>> from minijax.experimental import checkify
        >>> f = checkify.checkify(jax.jit(jnp.log), errors=checkify.nan_checks)
        >>> error, y = f(-1.0)
        >>> print(error.get())
        nan generated by primitive: log...
    """

    @source.boundary
    def checked_fun(*args, **kwargs):
        flat = Flat(lambda: f(*args, **kwargs), _NO_ARGUMENTS)
        body = trace_flat(flat, [], debug_info(f, "checkify", _NO_ARGUMENTS))
        checker = Checker(frozenset(errors), init_error)
        results = checker.run(body.closed, body.captured)
        return checker.error, body.out_tree.unflatten(results)

    return checked_fun
