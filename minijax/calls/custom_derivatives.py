"""Functions with user-defined derivative rules: custom_jvp and custom_vjp."""

from collections.abc import Callable, Sequence
from itertools import chain, compress
from typing import Any

from minijax.base.dtypes import PYTHON_SCALARS
from minijax.base.linear_util import wrap_init
from minijax.base.mask import Mask
from minijax.base.thread import called_under
from minijax.calls.call import Inlined, closed_call_p
from minijax.ir import state
from minijax.ir.body import source_of
from minijax.ir.hitypes import full_type
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn, Literal
from minijax.ir.primitive import ANY_NAME, Primitive
from minijax.ir.refs import is_ref
from minijax.ir.rules import no_reverse_mode_error
from minijax.ir.trace import JaxprTrace, Trace, checked_values, constants_to_inputs, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import Zero, is_float0, typeof
from minijax.primitives.moving import move_axis
from minijax.primitives.zeros import instantiate, nonzero_mask
from minijax.transforms.batch import batch_jaxpr_axes, batched, batched_backward, batched_jvp
from minijax.transforms.jvp import jvp_jaxpr, zero_if_float0
from minijax.transforms.linearize import RuleTrace
from minijax.transforms.partial_eval import partial_eval_into, permute_jaxpr
from minijax.transforms.prune import prune_closed

_NO_FORWARD = (
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function. Use reverse mode (jax.vjp, jax.grad), or "
    "jax.custom_jvp, whose rule serves both modes."
)


class CustomRule(Primitive):
    """A call of a Python function with rules of its own; its parameters are the functions.

    It runs the rules of the trace that it is bound to, and no jaxpr has it: a trace that records runs the function, and
    records `call`.
    """

    multiple_results = True
    auto_pvary = False
    is_hi = True
    call: "CustomDerivativeCall"

    def of_functions(self, *, subfuns: Sequence, **rest: Any) -> dict:
        """The parameters for functions in jax's form, which users' traces bind and get."""
        raise NotImplementedError(self.name)

    def record(self, trace: JaxprTrace, operands: Sequence, params: dict) -> list:
        fun = params["fun"]
        trace.capture(operands)
        info = DebugInfo(self.name, getattr(fun, "__name__", "fun"))
        jaxpr, consts = called_under(trace, trace_to_jaxpr, fun, [full_type(x) for x in operands], info)
        closed = ClosedJaxpr(constants_to_inputs(jaxpr), [])
        return trace.process(self.call, [*consts, *operands], self.call_params(params, closed, len(consts)))

    def call_params(self, params: dict, closed: ClosedJaxpr, num_consts: int) -> dict:
        """The parameters of `call`; `closed` is the function, with captured values as leading operands."""
        raise NotImplementedError(self.name)

    def at_once(self, *operands, fun, **rules):
        return checked_values(called_under(None, fun, *checked_values(operands)))

    def to_lo(self, operands, params):
        return list(params["fun"](*operands))

    def partial_eval(self, staging, operands, unknown_in, **params):
        if not any(unknown_in):
            return self.bind_all(operands, params)
        return list(called_under(RuleTrace(state.current_trace(), staging), params["fun"], *operands))

    def names_axis(self, params):
        return ANY_NAME  # the functions may capture batched values, and use any axis


class CustomJVP(CustomRule):
    """A call of the flat function `fun` with the flat rule `rule`, (*primals, *tangents) -> (*results, *tangents)."""

    name = "custom_jvp_call"

    def call_params(self, params, closed, num_consts):
        def lifted(*xs):
            half = len(xs) // 2
            return params["rule"](*xs[num_consts:half], *xs[half + num_consts :])

        rule = _lifted(params["rule"], num_consts, lifted)
        symbolic_zeros = params["symbolic_zeros"]
        return dict(call_jaxpr=closed, jvp_jaxpr_fun=rule, num_consts=num_consts, symbolic_zeros=symbolic_zeros)

    def jvp(self, primals, tangents, *, fun, rule, symbolic_zeros):
        results = rule(*primals, *(tangents if symbolic_zeros else map(instantiate, tangents)))
        half = len(results) // 2
        return results[:half], [zero_if_float0(t) for t in results[half:]]

    def batch(self, axis, operands, dims, *, fun, rule, symbolic_zeros):
        fun, fun_dims = batched(fun, axis, dims)
        rule, rule_dims = batched_jvp(rule, axis, dims)
        results = self.bind_all(operands, dict(fun=fun, rule=rule, symbolic_zeros=symbolic_zeros))
        return results, fun_dims or rule_dims

    def of_functions(self, *, subfuns, symbolic_zeros):
        fun, user = [f.call_wrapped for f in subfuns]
        rule = lambda *xs: list(map(unsymbolic, user(*(map(symbolic, xs) if symbolic_zeros else xs))))  # noqa: E731
        return dict(fun=fun, rule=rule, symbolic_zeros=symbolic_zeros)

    def processed_by(self, trace, operands, params):
        rule = _named_as(params["rule"], lambda *xs: list(map(symbolic, params["rule"](*xs))))
        functions, symbolic_zeros = (wrap_init(params["fun"]), wrap_init(rule)), params["symbolic_zeros"]
        return list(trace.process_custom_jvp_call(self.call, *functions, operands, symbolic_zeros=symbolic_zeros))


class CustomVJP(CustomRule):
    """A call of the flat function `fun` with flat forward and backward rules.

    `fwd`: primals -> (*residuals, *results), with `out_trees()` results; `bwd`: (*residuals, *cotangents) ->
    cotangents.
    """

    name = "custom_vjp_call"
    has_backward_rule = True

    def call_params(self, params, closed, num_consts):
        fwd, bwd, n = params["fwd"], params["bwd"], num_consts
        forward = _lifted(fwd, n, lambda *primals: fwd(*primals[n:]))
        backward = _lifted(bwd, n, lambda *residuals_and_cts: [None] * n + list(bwd(*residuals_and_cts)))
        rest = dict(out_trees=params["out_trees"], symbolic_zeros=params["symbolic_zeros"])
        return dict(call_jaxpr=closed, fwd_jaxpr_thunk=forward, num_consts=n, bwd=backward, **rest)

    def jvp(self, primals, tangents, *, fun, fwd, bwd, out_trees, symbolic_zeros):
        """The results, and their tangents by `custom_lin`, which has only a transpose rule."""
        nonzeros, trace = nonzero_mask(tangents), state.thread.trace
        # The forward rule gets primals only: it runs below a trace that records tangents.
        beneath = trace.beneath if trace is not None and trace.records_rules else trace
        primals = zip(primals, nonzeros, strict=True) if symbolic_zeros else primals
        results = called_under(beneath, fwd, *primals)
        n = out_trees()
        residuals, outs = results[: len(results) - n], results[len(results) - n :]
        out_avals = [typeof(x).to_tangent_aval() for x in outs]
        params = dict(bwd=bwd, out_avals=tuple(out_avals), in_zeros=_HashableFlags(~nonzeros))
        operands = [*residuals, *nonzeros.marked(tangents)]
        pushed = custom_lin_p.bind_all(operands, dict(num_res=len(residuals), symbolic_zeros=symbolic_zeros, **params))
        return outs, [Zero(a) if is_float0(a) else t for a, t in zip(out_avals, pushed, strict=True)]

    def batch(self, axis, operands, dims, *, fun, fwd, bwd, **rest):
        fun, fun_dims = batched(fun, axis, dims)
        fwd, fwd_dims = batched(fwd, axis, dims)
        bwd = batched_backward(bwd, axis, fwd_dims, dims)
        results = self.bind_all(operands, dict(fun=fun, fwd=fwd, bwd=bwd, **rest))
        return results, fun_dims or fwd_dims[len(fwd_dims) - len(results) :]

    def of_functions(self, *, subfuns, out_trees, symbolic_zeros):
        fun, user_fwd, user_bwd = [f.call_wrapped for f in subfuns]

        def fwd(*primals):
            pairs = primals if symbolic_zeros else [(x, True) for x in primals]
            return user_fwd(*chain.from_iterable(pairs))

        bwd = lambda *xs: list(map(unsymbolic, user_bwd(*(map(symbolic, xs) if symbolic_zeros else xs))))  # noqa: E731
        return dict(fun=fun, fwd=fwd, bwd=bwd, out_trees=out_trees, symbolic_zeros=symbolic_zeros)

    def processed_by(self, trace, operands, params):
        rest = {name: params[name] for name in ("out_trees", "symbolic_zeros")}

        def fwd(*pairs):  # x, whether it is perturbed, y, whether it is perturbed, ...
            primals = pairs[::2]
            return params["fwd"](*(zip(primals, pairs[1::2], strict=True) if rest["symbolic_zeros"] else primals))

        functions = params["fun"], _named_as(params["fwd"], fwd), params["bwd"]
        return list(trace.process_custom_vjp_call(self.call, *map(wrap_init, functions), operands, **rest))


class CustomDerivativeCall(Inlined):
    """The base of both calls in jaxprs. Evaluation and lowering ignore the rules; other traces get a `CustomRule`."""

    body_name = "call_jaxpr"
    dce_inside = True
    rule: CustomRule

    def bind(self, *operands, **params):
        return self.rebind(state.current_trace(), operands, params)

    def bind_all(self, operands, params):
        return self.rebind(state.current_trace(), operands, params)

    def rebind(self, trace: Trace, operands, params):
        if _discharges_refs(trace, operands):
            return self.at_once(*operands, **params)
        try:
            fun = _function(params["call_jaxpr"])
        except KeyError:
            return trace.process(self.rule, operands, self.rule.of_functions(**params))
        return trace.process(self.rule, operands, dict(fun=fun, **self.rule_params(operands, params)))

    def rule_params(self, operands: Sequence, params: dict) -> dict:
        """The parameters of `rule` but for the function."""
        raise NotImplementedError(self.name)

    def partial_eval(self, staging, operands, unknown_in, **params):
        if not any(unknown_in):
            return self.bind_all(operands, params)
        return partial_eval_into(staging, params["call_jaxpr"], operands)

    def dce(self, used, eqn):
        closed, _ = prune_closed(self.body(eqn.params), used := Mask(used), True)
        if all(used) and closed is self.body(eqn.params):
            return [True] * len(eqn.invars), eqn
        params = {**eqn.params, self.body_name: closed, **self.rules_of(eqn.params, used)}
        outvars = used.marked(eqn.outvars)
        new = eqn.replace(params=params, outvars=outvars, effects=closed.effects)
        return [True] * len(eqn.invars), new

    def rules_of(self, params: dict, used: Mask) -> dict:
        """The rules, as parameters, of the function that returns only the `used` results."""
        raise NotImplementedError(self.name)


class CustomJVPCall(CustomDerivativeCall):
    """A call of a jaxpr whose jvp rule is `jvp_jaxpr_fun`: (*primals, *tangents) -> (*results, *tangents)."""

    name = "custom_jvp_call"
    rule = CustomJVP()

    def rule_params(self, operands, params):
        symbolic_zeros = params["symbolic_zeros"]
        return dict(rule=_of_types(params["jvp_jaxpr_fun"], operands, symbolic_zeros), symbolic_zeros=symbolic_zeros)

    def rules_of(self, params, used):
        def jvp(*values):
            results = params["jvp_jaxpr_fun"](*values)
            return [x for half in (results[: len(used)], results[len(used) :]) for x in used.marked(half)]

        return dict(jvp_jaxpr_fun=_named_as(params["jvp_jaxpr_fun"], jvp))

    def show_params(self, eqn: JaxprEqn):
        p = eqn.params
        shown = [("name", p["call_jaxpr"].debug_info.func_name), ("call_jaxpr", p["call_jaxpr"])]
        shown.append(("jvp", getattr(p["jvp_jaxpr_fun"], "__name__", "jvp")))
        if p["num_consts"]:
            shown.append(("num_consts", p["num_consts"]))
        return [*shown, ("symbolic_zeros", p["symbolic_zeros"])]


def _discharges_refs(trace: Trace, operands: Sequence) -> bool:
    """True if an operand is a reference that the trace discharges. The function is then recorded without its rules."""
    return type(trace) is JaxprTrace and any(is_ref(x) and x._trace is trace for x in operands)


def _function(closed: ClosedJaxpr) -> Callable:
    def fun(*args):
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    fun.__name__ = closed.debug_info.func_name
    return fun


def _lifted(rule: Callable, consts: int, lifted: Callable) -> Callable:
    """`rule`, or `lifted` under its name if the function's first operands are captured values."""
    return _named_as(rule, lifted) if consts else rule


def _of_types(rule: Callable, operands: Sequence, symbolic_zeros: bool) -> Callable:
    """The rule, or one that traces it if an operand is a Python number: the user's rule gets tracers, as in jax."""
    if symbolic_zeros or not any(type(x) in PYTHON_SCALARS for x in operands):
        return rule

    def traced(*values):
        info = DebugInfo("custom rule", getattr(rule, "__name__", "rule"))
        return eval_jaxpr(*trace_to_jaxpr(rule, [full_type(x) for x in values], info), *values)

    return _named_as(rule, traced)


def _named_as(rule: Callable, new: Callable) -> Callable:
    new.__name__ = getattr(rule, "__name__", "rule")
    return new


class CustomVJPCall(CustomDerivativeCall):
    """A call of a jaxpr with forward and backward rules; see `CustomVJP`."""

    name = "custom_vjp_call"
    has_backward_rule = True
    rule = CustomVJP()

    # Staged as a whole: a second derivative needs its rules.
    def partial_eval(self, staging, operands, unknown_in, **params):
        return self.rebind(staging if any(unknown_in) else state.current_trace(), operands, params)

    def rule_params(self, operands, params):
        rest = {k: params[k] for k in ("bwd", "out_trees", "symbolic_zeros")}
        return dict(fwd=_of_types(params["fwd_jaxpr_thunk"], operands, params["symbolic_zeros"]), **rest)

    def rules_of(self, params, used):
        dropped = [Zero(a.to_ct_aval()) for a in used.unmarked(params["call_jaxpr"].out_avals)]
        zeros = dropped if params["symbolic_zeros"] else list(map(instantiate, dropped))

        def fwd(*values):
            results = params["fwd_jaxpr_thunk"](*values)
            n = len(results) - len(used)
            return [*results[:n], *used.marked(results[n:])]

        def bwd(*residuals_and_cts):
            n = len(residuals_and_cts) - sum(used)
            return params["bwd"](*residuals_and_cts[:n], *used.merge(zeros, residuals_and_cts[n:]))

        rules = dict(fwd_jaxpr_thunk=_named_as(params["fwd_jaxpr_thunk"], fwd), bwd=_named_as(params["bwd"], bwd))
        return {**rules, "out_trees": lambda: sum(used)}

    def show_params(self, eqn: JaxprEqn):
        p = eqn.params
        shown = [("name", p["call_jaxpr"].debug_info.func_name), ("bwd", p["bwd"].__name__)]
        shown += [("call_jaxpr", p["call_jaxpr"]), ("fwd", p["fwd_jaxpr_thunk"].__name__)]
        if p["num_consts"]:
            shown.append(("num_consts", p["num_consts"]))
        return [*shown, ("symbolic_zeros", p["symbolic_zeros"])]


class _HashableFlags(list):
    """A hashable list of flags, for cache keys."""

    def __hash__(self):
        return hash(tuple(self))


class CustomLin(Primitive):
    """The derivative of a custom_vjp function: a linear operation that has only a transpose rule."""

    name = "custom_lin"
    multiple_results = True
    auto_pvary = False
    has_backward_rule = True

    def infer(self, *avals, out_avals, **params):
        return list(out_avals)

    def at_once(self, *operands, **params):
        raise TypeError(_NO_FORWARD)

    def lower(self, e, ins, outs, *operands, **params):
        raise TypeError(_NO_FORWARD)

    def transpose(self, cts, *operands, num_res, bwd, in_zeros, symbolic_zeros, out_avals):
        residuals = operands[:num_res]
        cts = cts if symbolic_zeros else [instantiate(ct) for ct in cts]
        cts_in = zip(Mask(in_zeros).unmarked(bwd(*residuals, *cts)), operands[num_res:], strict=True)
        return [None] * num_res + [Zero(x.aval) if ct is None else ct for ct, x in cts_in]

    def batch(self, axis, operands, dims, *, num_res, bwd, in_zeros, symbolic_zeros, out_avals):
        raise TypeError(_NO_FORWARD)

    def show_params(self, eqn):
        p = eqn.params
        return [("bwd", p["bwd"].__name__), *((n, p[n]) for n in ("in_zeros", "num_res", "symbolic_zeros"))]


class SymbolicZero:
    """Represents a tangent or cotangent known to be zero, in rules defined with `symbolic_zeros=True`.

    Example:
        >>> f = jax.custom_jvp(lambda x, y: x * y)
        >>> def rule(primals, tangents):
        ...     print(type(tangents[1]).__name__)
        ...     return f(*primals), tangents[0] * primals[1]
        >>> _ = f.defjvp(rule, symbolic_zeros=True)
        >>> jax.grad(f)(2.0, 3.0)
        SymbolicZero
        Array(3., dtype=float32, weak_type=True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __getattr__(self, name):
        if name == "aval":
            raise AttributeError(name)
        return getattr(self.aval, name)

    def __repr__(self):
        return "SymbolicZero"

    @staticmethod
    def from_primal_value(x: Any) -> "SymbolicZero":
        return SymbolicZero(typeof(x).to_tangent_aval())


def symbolic(t: Any) -> Any:
    """The tangent as passed to a rule with symbolic zeros."""
    return SymbolicZero(t.aval) if type(t) is Zero else t


def unsymbolic(t: Any) -> Any:
    return Zero(t.aval) if type(t) is SymbolicZero else t


custom_jvp_call_p = CustomJVPCall()
custom_vjp_call_p = CustomVJPCall()
custom_lin_p = CustomLin()
custom_jvp_p, custom_vjp_p = CustomJVPCall.rule, CustomVJPCall.rule
custom_jvp_p.call, custom_vjp_p.call = custom_jvp_call_p, custom_vjp_call_p


def bind_custom_jvp(fun: Callable, rule: Callable, operands: Sequence, symbolic_zeros: bool) -> list:
    """Calls a flat function with a flat jvp rule under the current trace."""
    return custom_jvp_p.bind_all(operands, dict(fun=fun, rule=rule, symbolic_zeros=symbolic_zeros))


def bind_custom_vjp(
    fun: Callable, fwd: Callable, bwd: Callable, operands: Sequence, out_count: Callable, symbolic_zeros: bool
) -> list:
    """Calls a flat function with flat forward and backward rules; `out_count()` is its number of results."""
    params = dict(fun=fun, fwd=fwd, bwd=bwd, out_trees=out_count, symbolic_zeros=symbolic_zeros)
    return custom_vjp_p.bind_all(operands, params)


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
