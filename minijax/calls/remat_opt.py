"""The forward rule of a `custom_vjp` function as one operation.

Dead code elimination replaces it by a call of the function if no residual is read. Under `checkpoint`, the rule
therefore runs only in the backward pass.
"""

from collections.abc import Callable
from itertools import compress

from minijax.base.mask import Mask
from minijax.calls.call import Inlined, closed_call_p
from minijax.ir.body import source_of
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Literal
from minijax.ir.rules import no_reverse_mode_error
from minijax.ir.trace import constants_to_inputs, trace_to_jaxpr
from minijax.ir.types import typeof
from minijax.primitives.moving import move_axis
from minijax.primitives.zeros import instantiate, nonzero_mask
from minijax.transforms.batch import batch_jaxpr_axes
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.partial_eval import permute_jaxpr
from minijax.transforms.prune import prune_closed


class RematOpt(Inlined):
    """Calls `fwd_jaxpr`: (captured values, arguments) -> (residuals, results).

    `fun_jaxpr_thunk()` is the jaxpr of the results alone, with the same operands.
    """

    name = "remat_opt"
    body_name = "fwd_jaxpr"
    dce_inside = True

    def jvp(self, primals, tangents, *, fwd_jaxpr, fun_jaxpr_thunk, num_consts, num_res):
        # (primals, tangents) -> (captured values, their nonzero tangents, arguments, their tangents)
        nonzeros = (*nonzero_mask(tangents[:num_consts]), *(True,) * (len(primals) - num_consts))
        consts, count, given = (
            nonzeros[:num_consts].count(True),
            len(primals),
            [*primals, *compress(tangents, nonzeros)],
        )
        spots = (*range(num_consts), *range(count, count + consts))
        spots = (*spots, *range(num_consts, count), *range(count + consts, len(given)))

        def pushed(closed: ClosedJaxpr) -> ClosedJaxpr:
            every = (True,) * len(closed.outvars)
            return permute_jaxpr(jvp_jaxpr(closed, nonzeros, every)[0], spots)

        def fun_jvp_jaxpr_thunk():
            return pushed(fun_jaxpr_thunk())

        fun_jvp_jaxpr_thunk.__qualname__ = "_remat_opt_jvp.<locals>.fun_jvp_jaxpr_thunk"  # as jax prints it
        n = len(fwd_jaxpr.outvars)
        order = [*range(num_res), *range(n, n + num_res), *range(num_res, n), *range(n + num_res, 2 * n)]
        fwd = pushed(fwd_jaxpr)
        fwd = fwd.map_jaxpr(lambda jaxpr: jaxpr.replace(outvars=[jaxpr.outvars[i] for i in order]))
        params = dict(fun_jaxpr_thunk=fun_jvp_jaxpr_thunk, num_res=2 * num_res, num_consts=num_consts + consts)
        results = self.bind(*(instantiate(given[i]) for i in spots), fwd_jaxpr=fwd, **params)
        by_place = dict(zip(order, results, strict=True))
        return [by_place[i] for i in range(n)], [by_place[n + i] for i in range(n)]

    def linearize(self, nonzeros, primals, **params):
        raise no_reverse_mode_error(self)

    def batch(self, axis, operands, dims, *, fwd_jaxpr, fun_jaxpr_thunk, num_consts, num_res):
        operands = [x if d is None else move_axis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
        fun, dims = fun_jaxpr_thunk(), tuple(None if d is None else 0 for d in dims)
        free = (None,) * num_res
        _, fun_dims = batch_jaxpr_axes(fun, axis, dims)
        _, fwd_dims = batch_jaxpr_axes(fwd_jaxpr, axis, dims)
        result_dims = tuple(a if b is None else b for a, b in zip(fun_dims, fwd_dims[num_res:], strict=True))
        fun, _ = batch_jaxpr_axes(fun, axis, dims, result_dims)
        fwd, out_dims = batch_jaxpr_axes(fwd_jaxpr, axis, dims, (*free, *result_dims))
        results = self.bind(
            *operands, fwd_jaxpr=fwd, fun_jaxpr_thunk=_thunk(fun), num_consts=num_consts, num_res=num_res
        )
        return results, list(out_dims)

    def dce(self, used, eqn):
        params = eqn.params
        n, consts = params["num_res"], params["num_consts"]
        outvars = Mask(used).marked(eqn.outvars)
        if not any(used[:n]):
            call = dict(call_jaxpr=params["fun_jaxpr_thunk"]())
            function_call = eqn.replace(primitive=closed_call_p, params=call, outvars=eqn.outvars[n:])
            return closed_call_p.dce(used[n:], function_call)
        # The captured values are kept as long as the equation may become a call of the function.
        keep = (any(used[n:]),) * consts + (True,) * (len(eqn.invars) - consts)
        closed, used_inputs = prune_closed(params["fwd_jaxpr"], used, keep)
        params = dict(params, fwd_jaxpr=closed, num_res=sum(used[:n]), num_consts=sum(used_inputs[:consts]))
        invars = used_inputs.marked(eqn.invars)
        new = eqn.replace(params=params, effects=closed.effects, invars=invars, outvars=outvars)
        return list(used_inputs), new


remat_opt_p = RematOpt()


def _thunk(closed: ClosedJaxpr) -> Callable[[], ClosedJaxpr]:
    def thunk():
        return closed

    thunk.__qualname__ = "_memoize.<locals>.memoized"  # as jax prints it
    return thunk


def optimized_forward(fun: Callable, fwd: Callable, out_count: Callable[[], int]) -> Callable:
    """A flat forward rule, (*primals) -> (*residuals, *results), as one operation."""

    def optimized(*primals):
        avals = [typeof(x) for x in primals]
        rule, consts = trace_to_jaxpr(fwd, avals, DebugInfo("custom_vjp fwd", source_of(fwd)))
        plain, captured = trace_to_jaxpr(fun, avals, DebugInfo("custom_vjp fun", source_of(fun)))
        # Both jaxprs take the values that either captures.
        rule_vars = {id(c): v for c, v in zip(consts, rule.constvars, strict=True)}
        only_captured = [(c, v) for c, v in zip(captured, plain.constvars, strict=True) if id(c) not in rule_vars]
        function_vars = {id(c): v for c, v in zip(captured, plain.constvars, strict=True)}
        rule = rule.replace(constvars=[*rule.constvars, *(v for _, v in only_captured)])
        consts = [*consts, *(c for c, _ in only_captured)]
        plain = plain.replace(constvars=[function_vars.get(id(c), rule_vars.get(id(c))) for c in consts])
        n = len(rule.outvars) - out_count()
        inputs = {v: x for v, x in zip(rule.invars, primals, strict=True)}
        are_inputs = Mask([type(v) is not Literal and v in inputs for v in rule.outvars[:n]])
        fresh, forwarded = are_inputs.partition(rule.outvars[:n])
        rule = rule.replace(outvars=[*fresh, *rule.outvars[n:]])
        forward, result = (ClosedJaxpr(constants_to_inputs(jaxpr)) for jaxpr in (rule, plain))
        params = dict(fun_jaxpr_thunk=_thunk(result), num_consts=len(consts), num_res=len(fresh))
        results = remat_opt_p.bind(*consts, *primals, fwd_jaxpr=forward, **params)
        residuals = are_inputs.merge(results[: len(fresh)], (inputs[v] for v in forwarded))
        return [*residuals, *results[len(fresh) :]]

    optimized.__name__ = fwd.__name__
    return optimized
