"""`while_loop` and `fori_loop`: a function repeated while a predicate holds, or a number of times."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, config, dtypes, source, tree
from minijax.control.call import names_in
from minijax.control.cond import Body, concrete, first_results, trace_body
from minijax.control.jitted import standing_for
from minijax.control.scan import check_carry, fixpoint, scan
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.hlo.spell import physical
from minijax.ir import context, effects, state
from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.refs import is_ref
from minijax.ir.trace import close_over, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, token_type, typeof
from minijax.ops.convert import convert
from minijax.ops.elementwise import add, lt
from minijax.ops.moving import held
from minijax.ops.zeros import instantiate
from minijax.transforms.batch import batch_jaxpr, batch_jaxpr_axes, place
from minijax.transforms.discharge import TakesRefs, discharge_jaxpr, values_of
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts
from minijax.transforms.prune import prune_closed

_disable_jit = config.option("disable_jit")
_FLAG = ShapedArray((), np.dtype(np.bool_))


class Parts(NamedTuple):
    """A while loop: its predicate and body, each with a number of constants before the carry."""

    cond: ClosedJaxpr
    body: ClosedJaxpr
    cond_consts: int
    body_consts: int

    def split(self, items: Sequence) -> tuple[list, list, list]:
        """Operands, or what belongs to them: the constants of the predicate, those of the body, the carry."""
        n = self.cond_consts + self.body_consts
        return list(items[: self.cond_consts]), list(items[self.cond_consts : n]), list(items[n:])

    def params(self) -> dict[str, Any]:
        return dict(
            cond_nconsts=self.cond_consts, cond_jaxpr=self.cond, body_nconsts=self.body_consts, body_jaxpr=self.body
        )


def parts_of(params: dict) -> Parts:
    return Parts(params["cond_jaxpr"], params["body_jaxpr"], params["cond_nconsts"], params["body_nconsts"])


class While(TakesRefs):
    """Repeats a body on a carry while a predicate of the carry holds; it may be one flag for each row."""

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
        loop = parts_of(params)
        places = tuple([refs.index(x) if is_ref(x) else None for x in operands])
        made = _without_refs(loop.body, loop.cond, loop.cond_consts, loop.body_consts, places, len(refs))
        k = len(refs)
        cond, body, carry = ([x for x in group if not is_ref(x)] for group in loop.split(operands))
        flat = [*cond, *body, *values_of(refs), *carry]
        return flat, made.params(), lambda results: (results[k:], results[:k])

    def jvp(self, primals, tangents, **params):
        loop = parts_of(params)
        pushed, flags = _pushed(loop, tuple(type(t) is not Zero for t in tangents))
        zeros = {i: instantiate(tangents[i]) for i in _wanted(tangents, flags)}
        results = self.bind_all(_with_tangents(loop, primals, tangents, flags, zeros), pushed.params())
        return _results(results, loop, flags)

    def linearize(self, nonzeros, primals, **params):
        loop = parts_of(params)
        pushed, flags = _pushed(loop, tuple(nonzeros))
        unknown = [None if nz else Zero(typeof(p).to_tangent_aval()) for p, nz in zip(primals, nonzeros, strict=True)]
        zeros = {i: instantiate(unknown[i]) for i in _wanted(unknown, flags)}
        _, of_body, of_carry = loop.split(flags)
        unknown_in = [f for group in loop.split(flags) for f in [*[False] * len(group), *[True] * sum(group)]]
        known, _ = _known(pushed, tuple(unknown_in))
        outs = self.bind_all(primals, known.params())

        def push(*tangents):
            rest = iter(tangents)
            given = [next(rest) if t is None else t for t in unknown]
            results = self.bind_all(_with_tangents(loop, primals, given, flags, zeros), pushed.params())
            return results[len(outs) :]

        return outs, tuple(of_carry), push

    def partial_eval(self, staging, operands, unknown_in, **params):
        known, flags = _known(parts_of(params), tuple(unknown_in))
        if known is None:
            return staging.process(self, operands, params)
        known_in = [x for x, unknown in zip(operands, flags, strict=True) if not unknown]
        outs, staged = iter(self.bind_all(known_in, known.params())), staging.process(self, operands, params)
        carry = parts_of(params).split(flags)[2]
        return [x if unknown else next(outs) for x, unknown in zip(staged, carry, strict=True)]

    def partial_eval_custom(self, eqn, unknown_in, policy):
        save = policy is not None and policy(self, *(v.aval for v in eqn.invars), **eqn.params)
        if not any(unknown_in):
            return EqnParts([eqn], [], [], eqn.outvars) if save else EqnParts([eqn], [eqn])
        known, flags = _known(parts_of(eqn.params), tuple(unknown_in))
        if known is None:
            return EqnParts([], [eqn], eqn.outvars)
        carry = parts_of(eqn.params).split(flags)[2]
        outs = [v for v, unknown in zip(eqn.outvars, carry, strict=True) if not unknown]
        first = eqn.replace(
            params=known.params(),
            outvars=outs,
            effects=effects.join(known.cond.effects, known.body.effects),
            invars=[v for v, unknown in zip(eqn.invars, flags, strict=True) if not unknown],
        )
        unknown = [v for v, unknown in zip(eqn.outvars, carry, strict=True) if unknown]
        return EqnParts([first], [eqn], unknown, outs if save else [])

    def transpose(self, cts, *operands, **params):
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic "
            "start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
        )

    def batch(self, axis, operands, dims, **params):
        loop = parts_of(params)
        cond_dims, body_dims, carry_dims = loop.split(dims)
        rank = loop.cond.out_avals[0].ndim

        def step(carry):
            ins = [0 if c else None for c in carry]
            _, (flagged,) = batch_jaxpr(loop.cond, axis, (*cond_dims, *ins))
            if flagged:
                return 0, [True] * len(carry)
            return rank, batch_jaxpr(loop.body, axis, (*body_dims, *ins))[1]

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
        made = Parts(cond, body, loop.cond_consts + len(to_cond), loop.body_consts + len(to_body))
        n = loop.cond_consts
        return eqn.replace(params=made.params(), invars=[*to_cond, *eqn.invars[:n], *to_body, *eqn.invars[n:]])


while_p = While()


@state.traced_cache
def _without_refs(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_consts: int, body_consts: int, places: tuple, count: int
) -> Parts:
    """The loop that carries the values of references; `places` number them among the operands."""
    of_cond, of_body, _ = Parts(cond, body, cond_consts, body_consts).split(places)
    pairs = [*zip(of_cond, cond.in_avals, strict=False), *zip(of_body, body.in_avals, strict=False)]
    kinds = {i: a.inner_aval for i, a in pairs if i is not None}
    values = [kinds[i] for i in range(count)]
    test, step = _over_values(cond, of_cond, values), _over_values(body, of_body, values)
    predicate = permute_jaxpr(test, tuple(range(len(test.invars))), (count,))
    return Parts(predicate, step, of_cond.count(None), of_body.count(None))


def _over_values(closed: ClosedJaxpr, places: Sequence, kinds: Sequence) -> ClosedJaxpr:
    """The jaxpr (constants, the values of all references, carry) -> (those values, results)."""
    flat, plain, n = discharge_jaxpr(closed), places.count(None), len(closed.outvars)

    def run(*args):
        given, values = iter(args[:plain]), list(args[plain : plain + len(kinds)])
        consts = [next(given) if i is None else values[i] for i in places]
        results = eval_jaxpr(flat.jaxpr, flat.consts, *consts, *args[plain + len(kinds) :])
        for i, value in zip([i for i in places if i is not None], results[n:], strict=True):
            values[i] = value
        return [*values, *results[:n]]

    own = [a for i, a in zip(places, closed.in_avals, strict=False) if i is None]
    info = closed.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, [*own, *kinds, *closed.in_avals[len(places) :]], info)
    return close_over(jaxpr, consts)[0]


# ---- rules ------------------------------------------------------------------------------------------


def _lower(e: Any, ins: Sequence, operands: Sequence[str], loop: Parts) -> list[str]:
    """All operands are the state of the loop; rows whose flag is down keep theirs."""
    ordered = ordered_in(loop.body.jaxpr)
    if ordered_in(loop.cond.jaxpr):
        raise NotImplementedError("lax.while_loop: cond_fun has an ordered effect, which cannot be lowered")
    scope, tokens = e.scope, dict(e.tokens)
    here = "/".join(s for s in (scope, *context.current_context().name_stack, "while") if s)
    first, flags = len(ordered), loop.cond.out_avals[0]
    carry_avals = loop.split(ins)[2]

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
        made = [e.tokens[effect] for effect in ordered]
        if flags.shape:
            flag = test(names)
            new = [_kept_rows(e, flag, flags, *row) for row in zip(new, carry, carry_avals, strict=True)]
        return [*made, *names[first : len(names) - len(carry)], *new]

    inits = [*(tokens[effect] for effect in ordered), *operands]
    results = e.while_(inits, [*[token_type] * first, *ins], cond, body)
    e.scope, e.tokens = scope, {**tokens, **dict(zip(ordered, results, strict=False))}
    return loop.split(results[first:])[2]


def _kept_rows(e: Any, flag: str, flags: ShapedArray, new: str, old: str, aval: ShapedArray) -> str:
    aval = physical(aval)
    wide = ShapedArray(aval.shape, flags.dtype)
    return e.select(e.broadcast_in_dim(flag, flags, wide, tuple(range(flags.ndim))), new, old, wide, aval)


def _pushed(loop: Parts, nonzeros: tuple[bool, ...]) -> tuple[Parts, tuple[bool, ...]]:
    """The loop with tangents behind the body's constants and behind the carry; which operands have one."""
    return _pushed_loop(loop.body, loop.cond, loop.cond_consts, loop.body_consts, nonzeros)


@cache.weak_cache
def _pushed_loop(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_consts: int, body_consts: int, nonzeros: tuple[bool, ...]
) -> tuple[Parts, tuple[bool, ...]]:
    loop = Parts(cond, body, cond_consts, body_consts)
    _, consts, carry = loop.split(nonzeros)

    def step(carry):
        return jvp_jaxpr(body, (*consts, *carry), carry)

    pushed, carry = fixpoint(step, carry)
    n, m, k = len(consts), len(carry), sum(consts)
    order = (*range(n), *range(n + m, n + m + k), *range(n, n + m), *range(n + m + k, len(pushed.invars)))
    tangents = [Var(a.to_tangent_aval()) for a, nz in zip(body.out_avals, carry, strict=True) if nz]
    info = cond.debug_info._replace(arg_names=None)
    wider = cond.replace(jaxpr=cond.jaxpr.replace(invars=[*cond.invars, *tangents], debug_info=info))
    made = Parts(wider, permute_jaxpr(pushed, order), cond_consts, body_consts + k)
    return made, (*(False,) * cond_consts, *consts, *carry)


def _wanted(tangents: Sequence, flags: Sequence[bool]) -> list[int]:
    """The operands that must have a tangent and have none."""
    return [i for i, (t, flag) in enumerate(zip(tangents, flags, strict=True)) if flag and type(t) is Zero]


def _with_tangents(loop: Parts, primals: Sequence, tangents: Sequence, flags: Sequence[bool], zeros: dict) -> list:
    """The operands of the loop with tangents."""
    given = [zeros.get(i, t) for i, t in enumerate(tangents)]
    groups = zip(loop.split(primals), loop.split(given), loop.split(flags), strict=True)
    return [
        x
        for values, pushed, wanted in groups
        for x in (*values, *(t for t, flag in zip(pushed, wanted, strict=True) if flag))
    ]


def _results(results: Sequence, loop: Parts, flags: Sequence[bool]) -> tuple[list, list]:
    carry = loop.split(flags)[2]
    primals, rest = list(results[: len(carry)]), iter(results[len(carry) :])
    return primals, [
        next(rest) if nz else Zero(typeof(p).to_tangent_aval()) for p, nz in zip(primals, carry, strict=True)
    ]


@cache.weak_cache
def _known_loop(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_consts: int, body_consts: int, unknown: tuple[bool, ...]
) -> tuple[Parts | None, tuple[bool, ...]]:
    loop = Parts(cond, body, cond_consts, body_consts)
    of_cond, of_body, carry = loop.split(unknown)

    def step(carry):
        parts = partial_eval_jaxpr(body, (*of_body, *carry), carry)
        return parts, parts.out_unknown

    parts, carry = fixpoint(step, carry)
    test = partial_eval_jaxpr(cond, (*of_cond, *carry), (False,))
    if test.out_unknown[0]:
        return None, unknown
    known, flag = (first_results(p.known, n) for p, n in ((parts, carry.count(False)), (test, 1)))
    return Parts(flag, known, of_cond.count(False), of_body.count(False)), (*of_cond, *of_body, *carry)


def _known(loop: Parts, unknown: tuple[bool, ...]) -> tuple[Parts | None, tuple[bool, ...]]:
    """The loop of what no unknown operand reaches, None if one reaches the predicate; which are unknown."""
    return _known_loop(loop.body, loop.cond, loop.cond_consts, loop.body_consts, unknown)


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
        known = concrete(cond_fun(val))
        while known is not None and known:
            val = body_fun(val)
            known = concrete(cond_fun(val))
        if known is not None:
            return val
    treedef = tree.tree_structure((init_val,))
    body = trace_body(body_fun, [typeof(x) for x in leaves], treedef, "while_loop")
    promoted = _promoted(leaves, body)
    if any(a is not b for a, b in zip(promoted, leaves, strict=True)):
        leaves = promoted
        body = trace_body(body_fun, [typeof(x) for x in leaves], treedef, "while_loop")
    check_carry("while_loop", body._replace(out_tree=tree.treedef_tuple([body.out_tree])), init_tree)
    test = trace_body(cond_fun, body.in_avals, treedef, "while_loop")
    _check_predicate(test)
    return init_tree.unflatten(_bind(test, body, leaves))


def _promoted(leaves: Sequence, body: Body) -> list:
    """A weakly typed initial value with the dtype that the body's result asks for."""
    made = []
    if len(body.closed.outvars) != len(leaves):
        return list(leaves)
    for x, have, out in zip(leaves, body.in_avals, body.closed.out_avals, strict=True):
        if have.weak_type and have.dtype != out.dtype:
            dtype = dtypes.promote((have.dtype, True), (out.dtype, out.weak_type))[0]
            x = x if dtype == have.dtype else convert(x, dtype)
        made.append(x)
    return made


def _check_predicate(test: Body) -> None:
    found = test.closed.out_avals
    if not tree.treedef_is_strict_leaf(test.out_tree):
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {test.out_tree}.")
    if len(found) != 1 or found[0].shape or found[0].dtype != np.bool_:
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) {found}.")


def _bind(test: Body, body: Body, leaves: Sequence) -> list:
    """Binds the loop; what the body hands on, and the predicate does not read, are constants of the body."""
    loop = Parts(test.closed, body.closed, len(test.captured), len(body.captured))
    inner, stays = _settled(loop.body, loop.cond, loop.cond_consts, loop.body_consts)
    fixed = [x for x, stay in zip(leaves, stays, strict=True) if stay]
    carry = [x for x, stay in zip(leaves, stays, strict=True) if not stay]
    results = iter(while_p.bind(*test.captured, *fixed, *body.captured, *carry, **inner.params()))
    return [held(x) if stay else next(results) for x, stay in zip(leaves, stays, strict=True)]


@cache.weak_cache
def _settled(
    body: ClosedJaxpr, cond: ClosedJaxpr, cond_consts: int, body_consts: int
) -> tuple[Parts, tuple[bool, ...]]:
    """The loop without the carry that stays, and which of it does."""
    pruned, _ = prune_closed(cond, (True,), True)
    reads = prune_closed(cond, (True,))[1][cond_consts:]
    carry = body.invars[body_consts:]
    stays = tuple(a is b and not read for a, b, read in zip(carry, body.outvars, reads, strict=True))
    kept = [i for i, stay in enumerate(stays) if not stay]
    if len(kept) == len(stays):
        return Parts(cond, body, cond_consts, body_consts), stays
    fixed = [body_consts + i for i, stay in enumerate(stays) if stay]
    moving = [body_consts + i for i in kept]
    inner = permute_jaxpr(body, (*fixed, *range(body_consts), *moving), tuple(kept))
    test = permute_jaxpr(pruned, (*range(cond_consts), *(cond_consts + i for i in kept)))
    return Parts(test, inner, cond_consts, body_consts + len(fixed)), stays


@source.boundary
def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: int | bool | None = None) -> Any:
    """Repeats `val = body_fun(i, val)`, from `init_val`, for i from `lower` up to `upper`.

    With bounds known when it is traced it is a `scan`, which has a reverse-mode derivative and can be
    unrolled; otherwise a `while_loop`. Raises TypeError if the bounds have different types.
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    dtype = _bounds_dtype(typeof(lower), typeof(upper))
    bounds = [concrete(b) for b in (lower, upper)]
    if all(b is not None and not typeof(b).shape for b in bounds):
        first, last = (int(b) if isinstance(b, int) else int(np.asarray(b).item()) for b in bounds)
        if _disable_jit.value:
            for i in range(first, last):
                init_val = body_fun(i, init_val)
            return init_val
        return _counted(first, max(last - first, 0), body_fun, init_val, 1 if unroll is None else unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")

    def test(loop_carry):
        return lt(loop_carry[0], loop_carry[1])

    def step(loop_carry):
        i, end, val = loop_carry
        return add(i, _one(i)), end, body_fun(i, val)

    lower, upper = (b if typeof(b).dtype == dtype else convert(b, dtype) for b in (lower, upper))
    return while_loop(test, standing_for(step, body_fun), (lower, upper, init_val))[2]


def _bounds_dtype(lower: Any, upper: Any) -> np.dtype:
    """The dtype of the counter: that of both bounds, or of the one that is no Python integer."""
    if lower.dtype == upper.dtype:
        return lower.dtype
    signed = all(np.issubdtype(b.dtype, np.signedinteger) for b in (lower, upper))
    if not signed or lower.weak_type == upper.weak_type:
        raise TypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {lower.dtype.name} and "
            f"{upper.dtype.name}"
        )
    return upper.dtype if lower.weak_type else lower.dtype


def _counted(first: int, count: int, body_fun: Callable, init_val: Any, unroll: int | bool) -> Any:
    def step(loop_carry, _):
        i, val = loop_carry
        return (add(i, _one(i)), body_fun(i, val)), None

    body = standing_for(step, body_fun)
    return scan(body, (first, init_val), None, length=count, unroll=unroll)[0][1]


def _one(i: Any) -> Any:
    """1 in the type of a counter."""
    aval = typeof(i)
    one = np.ones((), aval.dtype)[()]
    return one.item() if aval.weak_type else one
