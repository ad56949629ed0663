"""`while_loop`: repeats a function while a predicate holds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from minijax.base import cache, config, source, tree
from minijax.base.errors import JaxprTypeError
from minijax.base.mask import Mask
from minijax.calls.bodied import Bodied, Role, count_of, fixpoint, numbered
from minijax.higher.check_bodies import trace_loop_body
from minijax.higher.cond import keep_first_results
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.hlo.spell import physical
from minijax.ir import effects, state
from minijax.ir.body import Body, trace_body, with_leading
from minijax.ir.concrete import concrete_value
from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.primitive import Folding, Primitive
from minijax.ir.refs import Ref, is_ref
from minijax.ir.types import ShapedArray, token_type
from minijax.primitives.moving import as_array_or_constant
from minijax.transforms.batch import batch_jaxpr, batch_jaxpr_axes, move_batch_dim
from minijax.transforms.discharge import dereferenced, discharge_jaxpr
from minijax.transforms.lower_types import HiControlFlow
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, policy_decision
from minijax.transforms.prune import prune_closed

_disable_jit = config.option("disable_jit")
_FLAG = ShapedArray((), np.dtype(np.bool_))


class Loop(NamedTuple):
    """The parameters of a while loop: predicate and body, each with the number of constants before its carry."""

    cond_nconsts: int
    cond_jaxpr: ClosedJaxpr
    body_nconsts: int
    body_jaxpr: ClosedJaxpr

    def split(self, items: Sequence) -> tuple[Sequence, Sequence, Sequence]:
        """Splits one item for each operand into (predicate's constants, body's constants, carry)."""
        n = self.cond_nconsts + self.body_nconsts
        return items[: self.cond_nconsts], items[self.cond_nconsts : n], items[n:]


def _cached(function: Callable) -> Callable:
    """Decorator: caches a function of a loop, by thread state too, for the lifetime of the loop's body."""

    from_body: Any = state.traced_cache(lambda body, loop, args: function(Loop._make([*loop, body]), *args))
    return functools.wraps(function)(lambda loop, *args: from_body(loop.body_jaxpr, loop[:-1], args))


class While(Bodied, HiControlFlow):
    """Repeats a body on a carry while a predicate of the carry holds. The predicate may be batched."""

    folding = Folding.EXACT
    name = "while"
    dce_inside = False
    linearize: Any = None
    dce = Primitive.dce

    def infer(self, *avals, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
        if len(avals) != (count := cond_nconsts + len(body_jaxpr.in_avals)):
            raise JaxprTypeError(f"while: the bodies take {count} operands, but {len(avals)} were given")
        return body_jaxpr.out_avals

    def lower(self, e, ins, outs, *operands, **params):
        return _lower(e, ins, operands, Loop(**params))

    def discharge(self, operands, refs, **params):
        loop, k, types = Loop(**params), len(refs), tuple(x.aval for x in refs)
        places = tuple([refs.index(x) if is_ref(x) else None for x in operands])
        of_cond, of_body, carry = ([x for x in group if not is_ref(x)] for group in loop.split(operands))
        # (predicate's constants, body's constants, carry) -> (the same without references, their values, carry)
        values = [*of_cond, *of_body, *dereferenced(refs), *carry]
        return values, _without_refs(loop, places, types)._asdict(), lambda results: (results[k:], results[:k])

    def bodies(self, params):
        return (params["body_jaxpr"],)

    def binders(self, params):
        loop, n = Loop(**params), len(params["body_jaxpr"].outvars)
        ins = numbered((Role.TEST, loop.cond_nconsts), (Role.CONST, loop.body_nconsts), (Role.CARRY, n))
        return ins, numbered((Role.CARRY, n))

    def call_of(self, params, bodies, operands, ins, outs):
        of_test, consts, test = count_of(Role.TEST, ins), count_of(Role.CONST, ins), params["cond_jaxpr"]
        more = bodies[0].in_avals[consts + len(test.invars) - of_test :]
        return list(operands), Loop(of_test, _with_trailing(test, tuple(more)), consts, bodies[0])._asdict()

    def partial_eval(self, staging, operands, unknown_in, **params):
        if not any(unknown_in):
            return self.bind_all(operands, params)
        loop = Loop(**params)
        known, unknown = _known_loop(loop, Mask(unknown_in))
        if known is None:
            return staging.process(self, operands, params)
        outs = self.bind_all(unknown.unmarked(operands), known._asdict())
        carry = Mask(loop.split(unknown)[2])
        return carry.merge(outs, carry.marked(staging.process(self, operands, params)))

    def partial_eval_custom(self, eqn, unknown_in, policy):
        loop = Loop(**eqn.params)
        known, unknown = _known_loop(loop, Mask(unknown_in))
        if known is None or not any(unknown_in):
            return None
        known_outs, unknown_outs = Mask(loop.split(unknown)[2]).partition(eqn.outvars)
        invars, params = unknown.unmarked(eqn.invars), known._asdict()
        first = eqn.replace(params=params, invars=invars, outvars=known_outs, effects=self.effects(**params))
        save = policy is not None and policy_decision(policy, eqn) is True
        return EqnParts([first], [eqn], unknown_outs, known_outs if save else [])

    def transpose(self, cts, *operands, **params):
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic "
            "start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
        )

    def batch(self, axis, operands, dims, **params):
        loop = Loop(**params)
        cond_dims, body_dims, carry_dims = loop.split(dims)

        def step(carry):
            ins = [0 if c else None for c in carry]
            _, (flagged,) = batch_jaxpr(loop.cond_jaxpr, axis, (*cond_dims, *ins))
            if flagged:
                if effects.io_effects.filter_in(self.effects(**params)):
                    raise NotImplementedError("Unordered IO effects not supported in while_loop with batched predicate")
                return 0, [True] * len(carry)
            return loop.cond_jaxpr.out_avals[0].ndim, batch_jaxpr(loop.body_jaxpr, axis, (*body_dims, *ins))[1]

        at, carry = fixpoint(step, [d is not None for d in carry_dims])
        own = tuple(at if c else None for c in carry)
        batched = loop._replace(
            cond_jaxpr=batch_jaxpr(loop.cond_jaxpr, axis, (*cond_dims, *own))[0],
            body_jaxpr=batch_jaxpr_axes(loop.body_jaxpr, axis, (*body_dims, *own), own)[0],
        )
        *consts, inits = loop.split(operands)
        inits = [move_batch_dim(x, d, want, axis) for x, d, want in zip(inits, carry_dims, own, strict=True)]
        return self.bind_all([*consts[0], *consts[1], *inits], batched._asdict()), own

    def lift(self, eqn, fixed, lift):
        loop = Loop(**eqn.params)
        of_cond, of_body, carry = loop.split(fixed)
        cond, to_cond = lift(loop.cond_jaxpr, (*of_cond, *(False,) * len(carry)))
        body, to_body = lift(loop.body_jaxpr, (*of_body, *(False,) * len(carry)))
        lifted = Loop(loop.cond_nconsts + len(to_cond), cond, loop.body_nconsts + len(to_body), body)
        n = loop.cond_nconsts
        return eqn.replace(params=lifted._asdict(), invars=[*to_cond, *eqn.invars[:n], *to_body, *eqn.invars[n:]])


while_p = While()

# ---- rules ------------------------------------------------------------------------------------------


def _lower(e: Any, ins: Sequence, operands: Sequence[str], loop: Loop) -> Sequence[str]:
    """The state of the loop is all operands. Rows whose flag is False keep their values.

    If the predicate has ordered effects, its flag is part of the state: a cond region of StableHLO returns no tokens.
    """
    predicate, flags = loop.cond_jaxpr, loop.cond_jaxpr.out_avals[0]
    ordered = sorted({*ordered_in(loop.body_jaxpr.jaxpr), *ordered_in(predicate.jaxpr)}, key=str)

    def evaluate(*names):
        consts, _, carry = loop.split(names)
        return jaxpr_body(e, predicate.jaxpr, e.constants(predicate), [*consts, *carry])

    test, test_rows = e.region("while/cond", (), evaluate), e.region("while/body_pred", (), evaluate)
    first_flag = evaluate(*operands) if ordered_in(predicate.jaxpr) else []
    k = len(first_flag)

    def cond(*names):
        names = names[len(ordered) :]
        flag = names[:k] or test(*names)
        if not flags.shape:
            return flag
        return e.reduce(flag, [e.constant(False, _FLAG)], [flags], [_FLAG], tuple(range(flags.ndim)), "or")

    def body(*names):
        flag, names = names[:k], names[k:]
        _, consts, carry = loop.split(names)
        new = jaxpr_body(e, loop.body_jaxpr.jaxpr, e.constants(loop.body_jaxpr), [*consts, *carry])
        if flags.shape:
            rows, (flag,) = zip(new, carry, loop.split(ins)[2], strict=True), flag or test_rows(*names)
            new = [_select_rows(e, flag, flags, *row) for row in rows]
        state = [*names[: len(names) - len(carry)], *new]
        if ordered and _is_single_op([*(e.tokens[effect] for effect in ordered), *state]):
            # XLA takes the state of a loop whose body is one operation for constant if it starts as a constant.
            e.tokens[ordered[0]] = e.after_all([e.tokens[ordered[0]]])
        return [*evaluate(*state), *state] if k else state

    inits = [*(e.tokens[effect] for effect in ordered), *first_flag, *operands]
    types = [*(token_type for _ in ordered), *[flags] * k, *ins]
    results = e.while_(inits, types, cond, e.region("while/body", ordered, body))
    e.tokens.update(zip(ordered, results, strict=False))
    return loop.split(results[len(ordered) + k :])[2]


def _is_single_op(results: Sequence[str]) -> bool:
    operation = results[0].partition("#")[0]
    return all(x == f"{operation}#{i}" for i, x in enumerate(results))


def _select_rows(e: Any, flag: str, flags: ShapedArray, new: str, old: str, aval: ShapedArray) -> str:
    aval = physical(aval)
    wide = ShapedArray(aval.shape, flags.dtype)
    return e.select(e.broadcast_in_dim(flag, flags, wide, tuple(range(flags.ndim))), new, old, wide, aval)


@cache.weak_cache
def _with_trailing(closed: ClosedJaxpr, avals: tuple) -> ClosedJaxpr:
    """The jaxpr with more inputs, which it does not read."""
    if not avals:
        return closed
    info = closed.debug_info._replace(arg_names=None)
    return closed.replace(jaxpr=closed.jaxpr.replace(invars=[*closed.invars, *map(Var, avals)], debug_info=info))


@_cached
def _known_loop(loop: Loop, unknown: Mask) -> tuple[Loop | None, Mask]:
    """The loop over the known carry, None if the predicate is unknown, and the mask of unknown operands."""
    of_cond, of_body, carry = loop.split(unknown)

    def step(carry):
        parts = partial_eval_jaxpr(loop.body_jaxpr, (*of_body, *carry), carry)
        return parts, parts.out_unknown

    body, carry = fixpoint(step, carry)
    test = partial_eval_jaxpr(loop.cond_jaxpr, (*of_cond, *carry), (False,))
    if test.out_unknown[0]:
        return None, unknown
    test, body = keep_first_results(test.known, 1), keep_first_results(body.known, carry.count(False))
    return Loop(of_cond.count(False), test, of_body.count(False), body), Mask((*of_cond, *of_body, *carry))


@_cached
def _without_refs(loop: Loop, places: tuple, refs: tuple) -> Loop:
    """The loop that carries the values of references. `places`: the index of each operand's reference, or None."""
    of_cond, of_body, _ = loop.split(places)
    body, n = _discharged_jaxpr(loop.body_jaxpr, of_body, refs), len(loop.body_jaxpr.outvars)
    # (results, values of references) -> (values of references, results)
    body = permute_jaxpr(body, tuple(range(len(body.invars))), (*range(n, n + len(refs)), *range(n)))
    test = keep_first_results(_discharged_jaxpr(loop.cond_jaxpr, of_cond, refs), 1)
    return Loop(of_cond.count(None), test, of_body.count(None), body)


def _discharged_jaxpr(closed: ClosedJaxpr, places: Sequence, types: Sequence) -> ClosedJaxpr:
    """The jaxpr (constants, the values of all references, carry) -> (results, those values)."""
    are_refs = Mask(i is not None for i in places)
    plain = are_refs.unmarked(closed.in_avals[: len(places)])
    k = len(plain)
    leading = are_refs.merge(range(k), [k + i for i in are_refs.marked(places)])
    return discharge_jaxpr(with_leading(closed, tuple(leading), (*plain, *types)))


# ---- the public functions ---------------------------------------------------------------------------


T = TypeVar("T")


@overload
def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T) -> T: ...
@overload  # a Python number is promoted to the type that `body_fun` returns
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], T], init_val: complex) -> T: ...
@source.boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], T], init_val: Any) -> T:
    """Repeats a function while a condition holds, in one compiled loop.

    The number of steps may depend on traced values. Hence it lacks a reverse-mode derivative: use `jax.lax.scan`, or
    `jax.lax.fori_loop` with known bounds, where one is needed. Forward mode works. Under `jax.vmap` with a mapped
    condition, the loop runs until all elements are done.

    Args:
        cond_fun: A function val -> boolean scalar.
        body_fun: A function val -> val. It must keep the tree, shapes and dtypes of the value.
        init_val: The first value: an array, a number, or a pytree of these.

    Returns:
        The first value for which `cond_fun` is false.

    Raises:
        TypeError: If the body changes the tree, a shape or a dtype of the value, or if the condition is not a boolean
            scalar.

    See also: `jax.lax.fori_loop`, `jax.lax.scan`.

    Example:
        >>> @jax.jit
        ... def digits(n):
        ...     grow = lambda state: (state[0] // 10, state[1] + 1)
        ...     return jax.lax.while_loop(lambda state: state[0] > 0, grow, (n, 0))[1]
        >>> int(digits(1234))
        4
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    leaves, init_tree = tree.flatten(init_val)
    if _disable_jit.value:
        val = init_tree.unflatten(map(as_array_or_constant, leaves))
        while flag := concrete_value(cond_fun(val)):
            val = body_fun(val)
        if flag is not None:
            return val
    treedef = tree.tree_structure((init_val,))
    body, leaves = trace_loop_body(body_fun, leaves, (), treedef, "while_loop", init_tree, lambda body: body.out_tree)
    test = trace_body(cond_fun, body.in_avals, treedef, "while_loop")
    _check_predicate(test)
    return init_tree.unflatten(_bind(test, body, leaves))


def _check_predicate(test: Body) -> None:
    avals = test.closed.out_avals
    if not tree.treedef_is_strict_leaf(test.out_tree):
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {test.out_tree}.")
    if len(avals) != 1 or avals[0].shape or avals[0].dtype != np.bool_:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got output type(s) {avals}. Compare or reduce there."
        )


def _bind(test: Body, body: Body, leaves: Sequence) -> list:
    """Binds the loop. A carry that the body forwards and the predicate does not read becomes a constant of the body."""
    loop, is_constant = _hoisted(Loop(len(test.captured), test.closed, len(body.captured), body.closed))
    varying, constant = is_constant.partition(leaves)
    results = while_p.bind(*test.captured, *constant, *body.captured, *varying, **loop._asdict())
    return is_constant.merge(results, [x if isinstance(x, Ref) else as_array_or_constant(x) for x in constant])


@_cached
def _hoisted(loop: Loop) -> tuple[Loop, Mask]:
    """Makes the carry that the body forwards and the predicate does not read leading constants of the body.

    Returns the loop and the mask of that carry.
    """
    body, n, m = loop.body_jaxpr, loop.cond_nconsts, loop.body_nconsts
    reads = prune_closed(loop.cond_jaxpr, (True,))[1][n:]
    is_constant = Mask(a is b and not r for a, b, r in zip(body.invars[m:], body.outvars, reads, strict=True))
    if not any(is_constant):
        return loop, is_constant
    varying, constant = is_constant.partition(range(len(is_constant)))
    # (consts, carry) -> (constant carry, consts, varying carry)
    body = permute_jaxpr(body, (*(m + i for i in constant), *range(m), *(m + i for i in varying)), tuple(varying))
    pruned, _ = prune_closed(loop.cond_jaxpr, (True,), True)
    test = permute_jaxpr(pruned, (*range(n), *(n + i for i in varying)))
    return Loop(n, test, m + len(constant), body), is_constant
