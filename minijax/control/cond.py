"""`cond` and `switch`: one of several functions, chosen by a number."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, config, dtypes, source, tree
from minijax.base.util import picked
from minijax.control.call import names_in, split_tangents
from minijax.control.jitted import argument_names, check_results, result_paths, signature_of, source_of
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.ir import context, effects, state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn, Var
from minijax.ir.primitive import Primitive, is_linear
from minijax.ir.trace import JaxprTrace, Tracer, close_over, constants_to_inputs, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import ShapedArray, token_type, typeof, varying_axes
from minijax.ops.convert import convert, stop_gradient_p
from minijax.ops.elementwise import clamp, eq, ne, select_n
from minijax.ops.families import literal
from minijax.ops.moving import axis_to_front, broadcast_in_dim, held, move_axis
from minijax.ops.shape import empty_of
from minijax.ops.zeros import Zero, instantiate, made_varying
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.discharge import TakesRefs, discharge_jaxpr, values_of
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.partial_eval import PartialEval, partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, save_all
from minijax.transforms.prune import prune_closed
from minijax.transforms.transpose import transpose_jaxpr

_disable_jit = config.option("disable_jit")
_NO_OPERAND = object()

Branches = tuple[ClosedJaxpr, ...]


class Cond(TakesRefs):
    """Runs the branch whose number is the first operand on the other operands."""

    name = "cond"
    multiple_results = True
    dce_inside = True
    unites = False

    def infer(self, index, *avals, branches, **how):
        return branches[0].out_avals

    def effects(self, index, *avals, branches, **how):
        return effects.join(*(b.effects for b in branches))

    def lower(self, e, ins, outs, index, *operands, branches, branches_platforms=None):
        ordered = list(dict.fromkeys(effect for b in branches for effect in ordered_in(b.jaxpr)))
        scope, tokens = e.scope, dict(e.tokens)
        here = "/".join(s for s in (scope, *context.current_context().name_stack, "cond") if s)

        def build(i, closed):
            def branch():
                e.scope, e.tokens = f"{here}/branch_{i}_fun", dict(tokens)
                results = jaxpr_body(e, closed.jaxpr, e.constants(closed), operands)
                return [*(e.tokens[effect] for effect in ordered), *results]

            return branch

        chosen = range(len(branches))
        if branches_platforms is not None:
            chosen = [place_of(e.platform, branches_platforms)]
        results = e.case_(index, [build(i, branches[i]) for i in chosen], [*[token_type] * len(ordered), *outs])
        e.scope, e.tokens = scope, {**tokens, **dict(zip(ordered, results, strict=False))}
        return results[len(ordered) :]

    def discharge(self, operands, refs, *, branches, **how):
        n = len(branches[0].outvars)
        made = dict(how, branches=tuple(map(discharge_jaxpr, branches)))
        return values_of(operands), made, lambda results: (results[:n], results[n:])

    def jvp(self, primals, tangents, *, branches, **how):
        nonzeros = tuple(type(t) is not Zero for t in tangents[1:])
        nothing = (False,) * len(branches[0].outvars)
        out = either(jvp_jaxpr(b, nonzeros, nothing)[1] for b in branches)
        pushed = tuple(jvp_jaxpr(b, nonzeros, out)[0] for b in branches)
        given = [t for t in tangents[1:] if type(t) is not Zero]
        results = self.bind_all([*primals, *given], dict(branches=pushed, **how))
        return split_tangents(results[: len(out)], results[len(out) :], out)

    def linearize(self, nonzeros, primals, *, branches, **how):
        nonzeros = tuple(nonzeros[1:])
        out = either(linearize_jaxpr(b, nonzeros).out_nonzeros for b in branches)
        splits = [linearize_jaxpr(b, nonzeros, out) for b in branches]
        primal, linear = tuple(s.primal for s in splits), tuple(s.tangent for s in splits)
        known, later = share_residuals(primal, linear, len(out))
        results = self.bind_all(primals, dict(branches=known, **how))

        def push(*tangents):
            return self.bind_all([primals[0], *results[len(out) :], *tangents], dict(branches=later, **how))

        return results[: len(out)], out, push

    def partial_eval(self, staging, operands, unknown_in, *, branches, **how):
        if unknown_in[0]:
            return staging.process(self, operands, dict(branches=branches, **how))
        index, *rest = operands
        unknown_rest = tuple(unknown_in[1:])
        parts, out = _halves(branches, unknown_rest)
        n = out.count(False)
        known_parts, unknown_parts = share_residuals(tuple(p.known for p in parts), tuple(p.unknown for p in parts), n)
        outs = self.bind_all([index, *picked(rest, unknown_rest, False)], dict(branches=known_parts, **how))
        given = [index, *outs[n:], *picked(rest, unknown_rest)]
        done, staged = iter(outs), iter(staging.process(self, given, dict(branches=unknown_parts, **how)))
        return [next(staged if unknown else done) for unknown in out]

    def partial_eval_custom(self, eqn, unknown_in, policy):
        if not any(unknown_in):
            residuals = policy(self, *(v.aval for v in eqn.invars), **eqn.params)
            return EqnParts([eqn], [], [], eqn.outvars) if residuals else EqnParts([eqn], [eqn])
        if unknown_in[0]:
            return EqnParts([], [eqn], eqn.outvars)
        index, *rest = eqn.invars
        unknown_rest = tuple(unknown_in[1:])
        parts, out = _halves(eqn.params["branches"], unknown_rest)
        known_parts, n = tuple(p.known for p in parts), out.count(False)
        known, unknown, residuals, staged = picked(eqn.outvars, out, False), picked(eqn.outvars, out), [], eqn
        if policy is save_all:
            known_parts, unknown_parts = share_residuals(known_parts, tuple(p.unknown for p in parts), n)
            residuals = [Var(aval) for aval in known_parts[0].out_avals[n:]]
            staged = _resumed(eqn, unknown_parts, [index, *residuals, *picked(rest, unknown_rest)], unknown)
        else:
            known_parts = tuple(first_results(closed, n) for closed in known_parts)
        first = _resumed(eqn, known_parts, [index, *picked(rest, unknown_rest, False)], [*known, *residuals])
        return EqnParts([first], [staged], unknown, [*known, *residuals] if policy is save_all else [])

    def transpose(self, cts, index, *operands, branches, **how):
        linear = tuple(map(is_linear, operands))
        cts = [instantiate(ct) for ct in cts]
        closed = tuple(transpose_jaxpr(b, linear, (True,) * len(cts), True)[0] for b in branches)
        known = picked(operands, linear, False)
        results = iter(self.bind_all([index, *known, *cts], dict(branches=closed, **how)))
        return [None, *(next(results) if lin else None for lin in linear)]

    def batch(self, axis, operands, dims, *, branches, **how):
        if dims[0] is not None:
            return self._select(axis, operands, dims, branches)
        moved = [x if d is None else move_axis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
        ins = tuple(None if d is None else 0 for d in dims[1:])
        batched = either(batch_jaxpr(b, axis, ins)[1] for b in branches)
        closed = tuple(batch_jaxpr(b, axis, ins, batched)[0] for b in branches)
        return self.bind_all(moved, dict(branches=closed, **how)), [0 if b else None for b in batched]

    def _select(self, axis, operands, dims, branches):
        """Runs every branch on all rows of the operands, with derivatives for its own rows only."""
        index, *operands = (axis_to_front(x, d, axis.size) for x, d in zip(operands, dims, strict=True))
        ins = (0,) * len(operands)
        results = []
        for i, branch in enumerate(branches):
            here = eq(index, literal(index, i))
            given = [_own_rows(here, x) for x in operands]
            closed, _ = batch_jaxpr(branch, axis, ins, True)
            results.append(eval_jaxpr(closed.jaxpr, closed.consts, *given))
        selected = [select_n(_as_wide(index, cases[0]), *cases) for cases in zip(*results, strict=True)]
        return selected, [0] * len(selected)

    def names_axis(self, params):
        return tuple(dict.fromkeys(name for b in params["branches"] for name in names_in(b)))

    def dce(self, used, eqn):
        branches, used = eqn.params["branches"], tuple(used)
        reads = either(prune_closed(b, used)[1] for b in branches)
        pruned = tuple(prune_closed(b, used, reads)[0] for b in branches)
        invars = [eqn.invars[0], *picked(eqn.invars[1:], reads)]
        return [True, *reads], _resumed(eqn, pruned, invars, picked(eqn.outvars, used))

    def lift(self, eqn, fixed, lift):
        index, *rest = eqn.invars
        found = [lift(b, fixed[1:]) for b in eqn.params["branches"]]
        passed = [v for _, own in found for v in own]
        slots, ends = tuple(v.aval for v in passed), accumulate(len(own) for _, own in found)
        branches = tuple(
            widened(closed, tuple(range(end - len(own), end)), slots)
            for (closed, own), end in zip(found, ends, strict=True)
        )
        return eqn.replace(params={**eqn.params, "branches": branches}, invars=[index, *passed, *rest])


def place_of(platform: str, places: Sequence) -> int:
    """Which of the groups of platforms holds this one; a group None holds any."""
    found = [i for i, names in enumerate(places) if names is None or platform in names]
    if not found:
        raise NotImplementedError(
            f"MLIR translation rule for primitive 'platform_index(platforms={places})' not found for "
            f"platform {platform}"
        )
    return found[0]


class PlatformIndex(Primitive):
    """The number of the group of platforms that a program is lowered for."""

    name = "platform_index"

    def infer(self, *, platforms):
        return [ShapedArray((), np.dtype(np.int32))]

    def lower(self, e, ins, outs, *, platforms):
        (out,) = outs
        index = e.constant(place_of(e.platform, platforms), out)
        return e.case_(index, [lambda: [e.constant(0, out)]] * len(platforms), outs)

    def batch(self, axis, operands, dims, **params):
        return [self.bind(**params)], [None]


cond_p, platform_index_p = Cond(), PlatformIndex()


def either(flags: Any) -> tuple[bool, ...]:
    """For each place, whether any of the sequences of flags is set there."""
    return tuple(any(column) for column in zip(*flags, strict=True))


def _resumed(eqn: JaxprEqn, branches: Branches, invars: list, outvars: list) -> JaxprEqn:
    """The equation with other branches."""
    joined = effects.join(*(b.effects for b in branches))
    params = {**eqn.params, "branches": branches}
    return eqn.replace(params=params, invars=invars, outvars=outvars, effects=joined)


def _halves(branches: Branches, unknown_in: tuple[bool, ...]) -> tuple[list[PartialEval], tuple[bool, ...]]:
    """The branches split for operands that are unknown; which results are unknown in any of them."""
    nothing = (False,) * len(branches[0].outvars)
    out = either(partial_eval_jaxpr(b, unknown_in, nothing).out_unknown for b in branches)
    return [partial_eval_jaxpr(b, unknown_in, out) for b in branches], out


def first_results(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    return permute_jaxpr(closed, tuple(range(len(closed.invars))), tuple(range(count)))


def _as_wide(index: Any, x: Any) -> Any:
    """A number for each row, with the shape of `x`."""
    rank, shape = typeof(index).ndim, typeof(x).shape
    return index if rank == len(shape) else broadcast_in_dim(index, shape, tuple(range(rank)))


def _own_rows(here: Any, x: Any) -> Any:
    is_key = dtypes.is_extended(typeof(x).dtype)
    still = x if is_key else stop_gradient_p.bind(x)
    return select_n(_as_wide(here, x), still, x)


# ---- values that branches hand on -------------------------------------------------------------------


def share_residuals(known: Branches, unknown: Branches, kept: int) -> tuple[Branches, Branches]:
    """Known parts that return, after `kept` results, the same residuals, and unknown parts that take them."""
    return _share_residuals(known[0], known[1:], unknown, kept)


@cache.weak_cache
def _share_residuals(first: ClosedJaxpr, others: Branches, unknown: Branches, kept: int) -> tuple[Branches, Branches]:
    known = (first, *others)
    slots: list[Any] = []
    places = []
    for closed in known:
        places.append([])
        for aval in closed.out_avals[kept:]:
            free = (i for i, slot in enumerate(slots) if slot == aval and i not in places[-1])
            place = next(free, len(slots))
            slots += [aval] if place == len(slots) else []
            places[-1].append(place)
    filled = tuple(_filled(c, kept, at, slots) for c, at in zip(known, places, strict=True))
    return filled, tuple(widened(c, tuple(at), tuple(slots)) for c, at in zip(unknown, places, strict=True))


def _filled(closed: ClosedJaxpr, kept: int, places: Sequence[int], slots: Sequence) -> ClosedJaxpr:
    """Puts the residuals into their slots; the other slots get arrays that nobody reads."""
    jaxpr = closed.jaxpr
    trace = JaxprTrace(None, jaxpr.debug_info)
    with state.set_current_trace(trace):
        residuals = [trace.atom(empty_of(aval)) for aval in slots]
    for place, v in zip(places, jaxpr.outvars[kept:], strict=True):
        residuals[place] = v
    outvars, info = [*jaxpr.outvars[:kept], *residuals], jaxpr.debug_info._replace(result_paths=None)
    return ClosedJaxpr(jaxpr.replace(outvars=outvars, eqns=[*jaxpr.eqns, *trace.eqns], debug_info=info), closed.consts)


@cache.weak_cache
def widened(closed: ClosedJaxpr, places: tuple[int, ...], slots: tuple) -> ClosedJaxpr:
    """The jaxpr whose leading inputs are taken from `places` among inputs of the types `slots`."""
    jaxpr, n = closed.jaxpr, len(places)
    leading = [Var(aval) for aval in slots]
    for place, v in zip(places, jaxpr.invars[:n], strict=True):
        leading[place] = v
    info = jaxpr.debug_info
    if info.arg_names is not None:
        info = info._replace(arg_names=("",) * len(slots) + info.arg_names[n:])
    return ClosedJaxpr(jaxpr.replace(invars=[*leading, *jaxpr.invars[n:]], debug_info=info), closed.consts)


# ---- tracing ----------------------------------------------------------------------------------------


class Body(NamedTuple):
    """A function traced for the use of control flow; the values that it captured are leading inputs."""

    closed: ClosedJaxpr
    captured: list
    names: tuple[str, ...]
    out_tree: Any

    jaxpr = property(lambda self: self.closed.jaxpr)
    in_avals = property(lambda self: self.closed.in_avals[len(self.captured) :])


@cache.weak_cache
def _bodies_of(fun: Callable) -> cache.BoundedDict:
    return cache.BoundedDict(256)


def trace_body(fun: Callable, avals: Sequence, treedef: Any, traced_for: str) -> Body:
    """Traces a function of positional arguments; remembered with it, as long as what it captured is alive."""
    try:
        known = _bodies_of(fun)
    except TypeError:
        known = {}
    key = tuple(avals), treedef, traced_for, state.trace_key()
    found = known.get(key)
    if found is None or not all(x._trace.alive for x in found.captured if isinstance(x, Tracer)):
        found = known[key] = config.run_as_of(key[3][0], _trace_body, fun, key[0], treedef, traced_for)
    return found


def _trace_body(fun: Callable, avals: tuple, treedef: Any, traced_for: str) -> Body:
    outs: list[Any] = []

    def flat(*leaves):
        results, out_tree = tree.flatten(fun(*treedef.unflatten(leaves)))
        outs[:] = [out_tree]
        check_results(source_of(fun), results, out_tree)
        return results

    arguments = tree.treedef_tuple((treedef, tree.tree_structure({})))
    names = argument_names(signature_of(fun), arguments, ())
    jaxpr, captured = trace_to_jaxpr(flat, avals, DebugInfo(traced_for, source_of(fun), names))
    opened = constants_to_inputs(jaxpr)
    opened.debug_info = opened.debug_info._replace(result_paths=result_paths(outs[0]))
    banned = effects.control_flow_allowed_effects.filter_not_in(opened.effects)
    if banned:
        raise NotImplementedError(f"Effects not supported in `{traced_for}`: {banned}")
    return Body(ClosedJaxpr(opened), captured, names, outs[0])


def merge_captured(bodies: Sequence[Body]) -> tuple[list[ClosedJaxpr], list]:
    """The jaxprs of bodies over the union of what they captured, and its values in order of first use."""
    values: dict[Any, Any] = {}
    keys = [_identities(body.captured) for body in bodies]
    for body, own in zip(bodies, keys, strict=True):
        for key, x in zip(own, body.captured, strict=True):
            values.setdefault(key, x)
    place = {key: i for i, key in enumerate(values)}
    slots = tuple(typeof(x) for x in values.values())
    merged = [
        widened(body.closed, tuple(place[key] for key in own), slots) for body, own in zip(bodies, keys, strict=True)
    ]
    return merged, list(values.values())


def _identities(captured: Sequence) -> list:
    """What tells the captured values of one trace apart; each trace has its own copy of a NumPy array."""
    seen: Counter = Counter()
    keys = []
    for x in captured:
        key = (x.dtype, x.shape, x.tobytes()) if isinstance(x, np.ndarray) else id(x)
        keys.append((key, seen[key]))
        seen[key] += 1
    return keys


# ---- the public functions ---------------------------------------------------------------------------


@source.boundary
def cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """`true_fun(*operands)` if `pred`, a scalar, is true, else `false_fun(*operands)`; only one of them runs.

    Raises TypeError if the two return other structures or types.
    """
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        first, second = false_fun, operands[1]
        return _cond(pred, lambda x, y: first(x), lambda x, y: second(y), (true_fun, operands[0]))
    return _cond(pred, true_fun, false_fun, _operands("cond", operands, operand))


def _operands(name: str, operands: tuple, operand: Any) -> tuple:
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise TypeError(
            f"lax.{name}: if 'operand' keyword is passed then no positional operands can be passed, got "
            f"operand={operand!r} and positional operands {operands}"
        )
    return (operand,)


def _cond(pred: Any, true_fun: Callable, false_fun: Callable, operands: tuple) -> Any:
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if pred is None:
        raise TypeError("cond predicate is None")
    aval = _scalar_type(pred, "Pred must be a scalar", "Pred type must be either boolean or number")
    if not any(dtypes.issubdtype(aval.dtype, kind) for kind in (np.bool_, np.integer, np.floating)):
        raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype.name}.")
    if _disable_jit.value:
        known = concrete(pred)
        if known is not None:
            return true_fun(*operands) if bool(known) else false_fun(*operands)
    if isinstance(pred, (bool, int, float, np.generic, np.ndarray)):
        index = np.int32(bool(pred))
    else:
        index = convert(pred if aval.dtype == np.bool_ else ne(pred, literal(pred, 0)), np.dtype(np.int32))
    names = {"true_fun": true_fun, "false_fun": false_fun}
    return _bind("cond", index, names, operands, backwards=True)


def _scalar_type(x: Any, scalar: str, kind: str) -> Any:
    """The type of a number that chooses a branch. Raises TypeError if it is no scalar."""
    try:
        aval = typeof(x)
    except TypeError:
        raise TypeError(f"{scalar}, got {x} of type {type(x)}. {kind}.") from None
    if aval.shape:
        raise TypeError(f"{scalar}, got {x} of shape {aval.shape}.")
    return aval


def concrete(x: Any) -> Any:
    """The value of `x`, None if it is being traced."""
    return x.concrete_value() if isinstance(x, Tracer) else x


@source.boundary
def switch(index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """`branches[index](*operands)`, with an index out of bounds clamped; only that branch runs.

    Raises TypeError if the branches return different structures or types, ValueError if there are none.
    """
    operands, branches = _operands("switch", operands, operand), tuple(branches)
    if not all(map(callable, branches)):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    aval = _scalar_type(index, "Branch index must be scalar", "Index type must be an integer")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"Index type must be an integer, got {index} as {aval.dtype.name}")
    if not branches:
        raise ValueError("Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if _disable_jit.value:
        known = concrete(index)
        if known is not None:
            return branches[min(max(int(known), 0), last)](*operands)
    if isinstance(index, (int, np.generic, np.ndarray)):
        index = np.asarray(index).astype(np.int32)[()]
    index = clamp(np.int32(0), convert(index, np.dtype(np.int32)), np.int32(last))
    names = {f"branch {i}": branch for i, branch in enumerate(branches)}
    return _bind("switch", index, names, operands)


@source.boundary
def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """The results of the function for the platform that the program is lowered for, named by it: `cpu=f`.

    Raises ValueError for `gpu`, TypeError where there is no function or their results differ in type, and
    NotImplementedError when lowered for a platform that has none.
    """
    if "gpu" in per_platform:
        raise ValueError("platform_dependent: Use 'cuda' or 'rocm' for lax.platform_dependent.")
    functions = [*per_platform.values(), *([] if default is None else [default])]
    if not functions:
        raise TypeError("platform_dependent: there is no function; give one for a platform, or a default")
    # Platforms that share a function share a branch.
    places: dict[Any, tuple | None] = {}
    for platform, function in per_platform.items():
        places[function] = (*(places.get(function) or ()), platform)
    groups = [*places.items(), *([] if default is None else [(default, None)])]
    platforms = tuple(names for _, names in groups)
    names = {f"branch {i}": function for i, (function, _) in enumerate(groups)}
    index = platform_index_p.bind(platforms=platforms)
    return _bind("switch", index, names, args, branches_platforms=platforms)


def _bind(
    name: str, index: Any, functions: dict[str, Callable], operands: tuple, backwards: bool = False, **how: Any
) -> Any:
    """Traces the functions and binds `cond` to them, without the results that all take from one input."""
    leaves, treedef = tree.flatten(operands)
    avals = [typeof(x) for x in leaves]
    bodies = [trace_body(f, avals, treedef, name) for f in functions.values()]
    for other, body in list(zip(functions, bodies, strict=True))[1:]:
        _check_alike(name, functions, next(iter(functions)), bodies[0], other, body)
    if state.thread.manual:
        bodies = _varying_alike(bodies, varying_axes(typeof(index)))
    merged, captured = merge_captured(bodies)
    closed = tuple(reversed(merged)) if backwards else tuple(merged)
    given = [*captured, *leaves]
    sources = [_handed_on(column, closed) for column in zip(*(c.outvars for c in closed), strict=True)]
    kept = tuple(source is None for source in sources)
    results = iter(cond_p.bind(index, *given, branches=tuple(_without(c, kept) for c in closed), **how))
    return bodies[0].out_tree.unflatten([next(results) if i is None else held(given[i]) for i in sources])


def _varying_alike(bodies: Sequence[Body], index_axes: frozenset) -> list[Body]:
    """The branches, whose results vary over the mesh axes that one of them, or the index, varies over."""
    columns = zip(*(b.closed.out_avals for b in bodies), strict=True)
    wanted = [column[0].varying_over(index_axes.union(*map(varying_axes, column))) for column in columns]
    return [
        body if body.closed.out_avals == wanted else body._replace(closed=_varied(body.closed, wanted))
        for body in bodies
    ]


def _varied(closed: ClosedJaxpr, wanted: Sequence) -> ClosedJaxpr:
    def fun(*xs):
        results = eval_jaxpr(closed.jaxpr, closed.consts, *xs)
        return [made_varying(x, aval) for x, aval in zip(results, wanted, strict=True)]

    jaxpr, consts = trace_to_jaxpr(fun, closed.in_avals, closed.debug_info)
    return close_over(jaxpr, consts)[0]


def _handed_on(column: Sequence, closed: Branches) -> int | None:
    """The number of the input that is a result of every branch."""
    if column[0] not in closed[0].invars:
        return None
    i = closed[0].invars.index(column[0])
    return i if all(v is c.invars[i] for v, c in zip(column, closed, strict=True)) else None


@cache.weak_cache
def _without(closed: ClosedJaxpr, kept: tuple[bool, ...]) -> ClosedJaxpr:
    if all(kept):
        return closed
    info = closed.debug_info
    info = info._replace(result_paths=tuple(picked(info.result_paths, kept)))
    return closed.replace(jaxpr=closed.jaxpr.replace(outvars=picked(closed.outvars, kept), debug_info=info))


def _check_alike(name: str, functions: dict, one: str, first: Body, two: str, second: Body) -> None:
    """Raises TypeError if two branches return different structures or types."""
    who = "".join(f"\n{f} is {source_of(functions[f])}" for f in (one, two))
    if first.out_tree != second.out_tree:
        found = [
            f"{one} output{_at(path)} is a {a} but {two} output{_at(path)} is a {b}, so {why}"
            for path, a, b, why in tree.equality_errors_pytreedef(first.out_tree, second.out_tree)
        ] or [f"{one} output has structure {first.out_tree}, {two} output has structure {second.out_tree}"]
        raise TypeError(
            f"{name} branch outputs must have the same pytree structure, but they differ:\n{who}\n\n"
            f"{listed(found, False)}\n\nRevise {one} and/or {two} so that they have the same pytree "
            f"structure."
        )
    paths = [path for path, _ in tree.tree_leaves_with_path(first.out_tree.unflatten(first.closed.out_avals))]
    found = [
        f"the output of {one}{_at(path)} has type {a.str_short()} but the corresponding output of {two} has "
        f"type {b.str_short()}, so {' and '.join(differences(a, b))}"
        for path, a, b in zip(paths, first.closed.out_avals, second.closed.out_avals, strict=True)
        if differences(a, b)
    ]
    if found:
        raise TypeError(
            f"{name} branches must have equal output types but they differ.\n{who}\n\n{listed(found)}\n\n"
            f"Revise {one} and/or {two} so that all output types match."
        )


def _at(path: tuple) -> str:
    return f" at path {tree.keystr(path)}" if path else ""


def differences(a: Any, b: Any) -> list[str]:
    """How two types differ, weak types apart."""
    return [
        f"the {field.replace('_', ' ')}s do not match"
        for field in ("dtype", "shape", "memory_space")
        if getattr(a, field, None) != getattr(b, field, None)
    ]


def listed(reasons: Sequence[str], capital: bool = True) -> str:
    """Reasons as a sentence, or as a list of them."""
    if len(reasons) == 1:
        return f"{reasons[0][0].upper() if capital else reasons[0][0]}{reasons[0][1:]}."
    return ";\n".join(f"  * {reason}" for reason in reasons) + "."
