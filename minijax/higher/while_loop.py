"""`while_loop`: a function repeated while a predicate holds."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import config, source, tree
from minijax.base.mask import Mask
from minijax.dispatch.call import names_in, split_tangents
from minijax.higher.agreement import fixpoint, trace_loop
from minijax.higher.cond import concrete, first_results
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.hlo.spell import physical
from minijax.ir import context, effects, state
from minijax.ir.body import Body, trace_body, with_leading
from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.primitive import Folding
from minijax.ir.refs import is_ref
from minijax.ir.types import ShapedArray, token_type
from minijax.primitives.moving import held
from minijax.primitives.zeros import instantiate, nonzero_mask
from minijax.transforms.batch import batch_jaxpr, batch_jaxpr_axes, place
from minijax.transforms.discharge import TakesRefs, discharge_jaxpr, values_of
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts
from minijax.transforms.prune import prune_closed

_disable_jit = config.option("disable_jit")
_FLAG = ShapedArray((), np.dtype(np.bool_))


class Parts(NamedTuple):
    """A while loop: its body and predicate, each with a number of constants before the carry."""

    body: ClosedJaxpr
    cond: ClosedJaxpr
    cond_consts: int
    body_consts: int

    def split(self, items: Sequence) -> tuple[Sequence, Sequence, Sequence]:
        """Operands, or what belongs to them: the constants of the predicate, those of the body, the carry."""
        n = self.cond_consts + self.body_consts
        return items[: self.cond_consts], items[self.cond_consts : n], items[n:]

    def with_tangents(self, primals: Sequence, tangents: Sequence, nonzeros: Sequence[bool]) -> list:
        """Operands of the loop that carries tangents too; those are of the operands that `nonzeros` marks."""
        of_cond, of_body, carry = self.split(primals)
        k = sum(self.split(nonzeros)[1])
        # (operands, tangents) -> (predicate's constants, body's constants, their tangents, carry, its tangents)
        return [*of_cond, *of_body, *tangents[:k], *carry, *tangents[k:]]

    def params(self) -> dict[str, Any]:
        return dict(
            cond_nconsts=self.cond_consts, cond_jaxpr=self.cond, body_nconsts=self.body_consts, body_jaxpr=self.body
        )


def parts_of(params: dict) -> Parts:
    return Parts(params["body_jaxpr"], params["cond_jaxpr"], params["cond_nconsts"], params["body_nconsts"])


def _remembered(function: Callable) -> Callable:
    """Decorator: remembers what becomes of a loop, by thread state too, as long as its body lives."""

    @state.traced_cache
    def of_parts(body, cond, cond_consts, body_consts, *args):
        return function(Parts(body, cond, cond_consts, body_consts), *args)

    return functools.wraps(function)(lambda loop, *args: of_parts(*loop, *args))


class While(TakesRefs):
    """Repeats a body on a carry while a predicate of the carry holds; it may be one flag for each row."""

    folding = Folding.EXACT
    name = "while"
    multiple_results = True
    unites = False

    def infer(self, *avals, body_jaxpr, **params):
        return body_jaxpr.out_avals

    def effects(self, *avals, body_jaxpr, cond_jaxpr, **params):
        return effects.join(cond_jaxpr.effects, body_jaxpr.effects)

    def lower(self, e, ins, outs, *operands, **params):
        return _lower(e, ins, operands, parts_of(params))

    def discharge(self, operands, refs, **params):
        loop, k = parts_of(params), len(refs)
        places = tuple([refs.index(x) if is_ref(x) else None for x in operands])
        of_cond, of_body, carry = ([x for x in group if not is_ref(x)] for group in loop.split(operands))
        # (predicate's constants, body's constants, carry) -> (the same without references, their values, carry)
        values = [*of_cond, *of_body, *values_of(refs), *carry]
        return values, _without_refs(loop, places, k).params(), lambda results: (results[k:], results[:k])

    def jvp(self, primals, tangents, **params):
        loop = parts_of(params)
        pushed, nonzeros = _pushed(loop, nonzero_mask(tangents))
        moving = [instantiate(t) for t in nonzeros.marked(tangents)]
        results = self.bind_all(loop.with_tangents(primals, moving, nonzeros), pushed.params())
        carry = loop.split(nonzeros)[2]
        return split_tangents(results[: len(carry)], results[len(carry) :], carry)

    def partial_eval(self, staging, operands, unknown_in, **params):
        loop = parts_of(params)
        known, unknown = _known(loop, Mask(unknown_in))
        if known is None:
            return staging.process(self, operands, params)
        outs = self.bind_all(unknown.unmarked(operands), known.params())
        carry = Mask(loop.split(unknown)[2])
        return carry.merge(outs, carry.marked(staging.process(self, operands, params)))

    def partial_eval_custom(self, eqn, unknown_in, policy):
        loop = parts_of(eqn.params)
        save = policy is not None and policy(self, *(v.aval for v in eqn.invars), **eqn.params)
        if not any(unknown_in):
            return EqnParts([eqn], [], [], eqn.outvars) if save else EqnParts([eqn], [eqn])
        known, unknown = _known(loop, Mask(unknown_in))
        if known is None:
            return EqnParts([], [eqn], eqn.outvars)
        known_outs, unknown_outs = Mask(loop.split(unknown)[2]).partition(eqn.outvars)
        invars, params = unknown.unmarked(eqn.invars), known.params()
        first = eqn.replace(params=params, invars=invars, outvars=known_outs, effects=self.effects(**params))
        return EqnParts([first], [eqn], unknown_outs, known_outs if save else [])

    def transpose(self, cts, *operands, **params):
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic "
            "start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
        )

    def batch(self, axis, operands, dims, **params):
        loop = parts_of(params)
        cond_dims, body_dims, carry_dims = loop.split(dims)

        def step(carry):
            ins = [0 if c else None for c in carry]
            _, (flagged,) = batch_jaxpr(loop.cond, axis, (*cond_dims, *ins))
            if flagged:
                return 0, [True] * len(carry)
            return loop.cond.out_avals[0].ndim, batch_jaxpr(loop.body, axis, (*body_dims, *ins))[1]

        at, carry = fixpoint(step, [d is not None for d in carry_dims])
        own = tuple(at if c else None for c in carry)
        batched = loop._replace(
            cond=batch_jaxpr(loop.cond, axis, (*cond_dims, *own))[0],
            body=batch_jaxpr_axes(loop.body, axis, (*body_dims, *own), own)[0],
        )
        *consts, inits = loop.split(operands)
        inits = [place(x, d, want, axis) for x, d, want in zip(inits, carry_dims, own, strict=True)]
        return self.bind_all([*consts[0], *consts[1], *inits], batched.params()), own

    def names_axis(self, params):
        return tuple(dict.fromkeys((*names_in(params["cond_jaxpr"]), *names_in(params["body_jaxpr"]))))

    def lift(self, eqn, fixed, lift):
        loop = parts_of(eqn.params)
        of_cond, of_body, carry = loop.split(fixed)
        cond, to_cond = lift(loop.cond, (*of_cond, *(False,) * len(carry)))
        body, to_body = lift(loop.body, (*of_body, *(False,) * len(carry)))
        lifted = Parts(body, cond, loop.cond_consts + len(to_cond), loop.body_consts + len(to_body))
        n = loop.cond_consts
        return eqn.replace(params=lifted.params(), invars=[*to_cond, *eqn.invars[:n], *to_body, *eqn.invars[n:]])


while_p = While()

# ---- rules ------------------------------------------------------------------------------------------


def _lower(e: Any, ins: Sequence, operands: Sequence[str], loop: Parts) -> list[str]:
    """All operands are the state of the loop; rows whose flag is down keep theirs."""
    ordered = ordered_in(loop.body.jaxpr)
    if ordered_in(loop.cond.jaxpr):
        raise NotImplementedError("lax.while_loop: cond_fun has an ordered effect, which cannot be lowered")
    scope, tokens = e.scope, dict(e.tokens)
    here = "/".join(s for s in (scope, *context.current_context().name_stack, "while") if s)
    first, flags = len(ordered), loop.cond.out_avals[0]

    def test(names):
        consts, _, carry = loop.split(names[first:])
        e.scope, e.tokens = f"{here}/cond", dict(tokens)
        return jaxpr_body(e, loop.cond.jaxpr, e.constants(loop.cond), [*consts, *carry])[0]

    def cond(*names):
        flag = test(names)
        if not flags.shape:
            return [flag]
        return e.reduce([flag], [e.constant(False, _FLAG)], [flags], [_FLAG], tuple(range(flags.ndim)), "or")

    def body(*names):
        _, consts, carry = loop.split(names[first:])
        e.scope, e.tokens = f"{here}/body", {**tokens, **dict(zip(ordered, names, strict=False))}
        new = jaxpr_body(e, loop.body.jaxpr, e.constants(loop.body), [*consts, *carry])
        new_tokens = [e.tokens[effect] for effect in ordered]
        if flags.shape:
            flag = test(names)
            new = [_kept_rows(e, flag, flags, *row) for row in zip(new, carry, loop.split(ins)[2], strict=True)]
        return [*new_tokens, *names[first : len(names) - len(carry)], *new]

    results = e.while_([*(tokens[effect] for effect in ordered), *operands], [*[token_type] * first, *ins], cond, body)
    e.scope, e.tokens = scope, {**tokens, **dict(zip(ordered, results, strict=False))}
    return loop.split(results[first:])[2]


def _kept_rows(e: Any, flag: str, flags: ShapedArray, new: str, old: str, aval: ShapedArray) -> str:
    aval = physical(aval)
    wide = ShapedArray(aval.shape, flags.dtype)
    return e.select(e.broadcast_in_dim(flag, flags, wide, tuple(range(flags.ndim))), new, old, wide, aval)


@_remembered
def _pushed(loop: Parts, nonzeros: Mask) -> tuple[Parts, Mask]:
    """The loop with tangents behind the body's constants and behind the carry; which operands have one."""
    _, consts, carry = loop.split(nonzeros)
    pushed, carry = fixpoint(lambda carry: jvp_jaxpr(loop.body, (*consts, *carry), carry), carry)
    n, m, k = len(consts), len(carry), sum(consts)
    # (consts, carry, tangents of both) -> (consts, their tangents, carry, its tangents)
    order = (*range(n), *range(n + m, n + m + k), *range(n, n + m), *range(n + m + k, len(pushed.invars)))
    tangents = [Var(a.to_tangent_aval()) for a in Mask(carry).marked(loop.body.out_avals)]
    info = loop.cond.debug_info._replace(arg_names=None)
    test = loop.cond.jaxpr.replace(invars=[*loop.cond.invars, *tangents], debug_info=info)
    with_tangents = Parts(permute_jaxpr(pushed, order), loop.cond.replace(jaxpr=test), loop.cond_consts, n + k)
    return with_tangents, Mask((*(False,) * loop.cond_consts, *consts, *carry))


@_remembered
def _known(loop: Parts, unknown: Mask) -> tuple[Parts | None, Mask]:
    """The loop of what no unknown operand reaches, None if one reaches the predicate; which are unknown."""
    of_cond, of_body, carry = loop.split(unknown)

    def step(carry):
        parts = partial_eval_jaxpr(loop.body, (*of_body, *carry), carry)
        return parts, parts.out_unknown

    body, carry = fixpoint(step, carry)
    test = partial_eval_jaxpr(loop.cond, (*of_cond, *carry), (False,))
    if test.out_unknown[0]:
        return None, unknown
    known = first_results(body.known, carry.count(False)), first_results(test.known, 1)
    return Parts(*known, of_cond.count(False), of_body.count(False)), Mask((*of_cond, *of_body, *carry))


@_remembered
def _without_refs(loop: Parts, places: tuple, count: int) -> Parts:
    """The loop that carries the values of references; `places` number them among the operands."""
    of_cond, of_body, _ = loop.split(places)
    pairs = [*zip(of_cond, loop.cond.in_avals, strict=False), *zip(of_body, loop.body.in_avals, strict=False)]
    types = {i: a for i, a in pairs if i is not None}
    refs = [types[i] for i in range(count)]
    body, n = _over_values(loop.body, of_body, refs), len(loop.body.outvars)
    # (results, values of references) -> (values of references, results)
    body = permute_jaxpr(body, tuple(range(len(body.invars))), (*range(n, n + count), *range(n)))
    test = first_results(_over_values(loop.cond, of_cond, refs), 1)
    return Parts(body, test, of_cond.count(None), of_body.count(None))


def _over_values(closed: ClosedJaxpr, places: Sequence, types: Sequence) -> ClosedJaxpr:
    """The jaxpr (constants, the values of all references, carry) -> (results, those values)."""
    are_refs = Mask(i is not None for i in places)
    plain = are_refs.unmarked(closed.in_avals[: len(places)])
    k = len(plain)
    leading = are_refs.merge(range(k), [k + i for i in are_refs.marked(places)])
    return discharge_jaxpr(with_leading(closed, tuple(leading), (*plain, *types)))


# ---- the public functions ---------------------------------------------------------------------------


@source.boundary
def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """Repeats `val = body_fun(val)`, from `init_val`, while `cond_fun(val)` is true.

    It is compiled as one operation, and has no reverse-mode derivative. Raises TypeError if the body changes
    the structure or a type of the value, or if the predicate is no boolean scalar.
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    leaves, init_tree = tree.flatten(init_val)
    if _disable_jit.value:
        val = init_tree.unflatten(map(held, leaves))
        while flag := concrete(cond_fun(val)):
            val = body_fun(val)
        if flag is not None:
            return val
    treedef = tree.tree_structure((init_val,))
    body, leaves = trace_loop(body_fun, leaves, (), treedef, "while_loop", init_tree, lambda body: body.out_tree)
    test = trace_body(cond_fun, body.in_avals, treedef, "while_loop")
    _check_predicate(test)
    return init_tree.unflatten(_bind(test, body, leaves))


def _check_predicate(test: Body) -> None:
    avals = test.closed.out_avals
    if not tree.treedef_is_strict_leaf(test.out_tree):
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {test.out_tree}.")
    if len(avals) != 1 or avals[0].shape or avals[0].dtype != np.bool_:
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) {avals}.")


def _bind(test: Body, body: Body, leaves: Sequence) -> list:
    """Binds the loop; what the body hands on, and the predicate does not read, are constants of the body."""
    loop = Parts(body.closed, test.closed, len(test.captured), len(body.captured))
    stays = _staying(loop)
    moving, still = stays.partition(leaves)
    if still:
        loop = _without_staying(loop, stays)
    results = while_p.bind(*test.captured, *still, *body.captured, *moving, **loop.params())
    return stays.merge(results, map(held, still))


@_remembered
def _staying(loop: Parts) -> Mask:
    """Which carry the body hands on and the predicate does not read."""
    reads = prune_closed(loop.cond, (True,))[1][loop.cond_consts :]
    pairs = zip(loop.body.invars[loop.body_consts :], loop.body.outvars, strict=True)
    return Mask(a is b and not read for (a, b), read in zip(pairs, reads, strict=True))


@_remembered
def _without_staying(loop: Parts, stays: Mask) -> Parts:
    """The loop whose body has the carry that stays as leading constants."""
    moving, still = stays.partition(range(len(stays)))
    n, m = loop.cond_consts, loop.body_consts
    # (consts, carry) -> (staying carry, consts, moving carry)
    body = permute_jaxpr(loop.body, (*(m + i for i in still), *range(m), *(m + i for i in moving)), tuple(moving))
    pruned, _ = prune_closed(loop.cond, (True,), True)
    test = permute_jaxpr(pruned, (*range(n), *(n + i for i in moving)))
    return Parts(body, test, n, m + len(still))
