"""`scan`: runs a function along the leading axis of its arguments and carries a state from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, repeat
from typing import Any, TypeVar, cast, overload

import numpy as np

from minijax.base import cache, config, dtypes, errors, source, tree
from minijax.base.errors import JaxprTypeError
from minijax.base.mask import Mask
from minijax.base.symbolic.dimension import is_symbolic_dim
from minijax.calls.bodied import (
    CONST,
    STACKED,
    Binders,
    Bodied,
    Role,
    count_of,
    known_returning,
    numbered,
    partially_evaluated,
)
from minijax.calls.call import closed_call_p
from minijax.dispatch.operands import operand
from minijax.higher.check_bodies import trace_loop_body
from minijax.higher.scan_lowering import Slots, resized, unrolled
from minijax.ir import state
from minijax.ir.body import Body, check_positional_aliases
from minijax.ir.check import check_params, is_closed, is_count, same_types, types_text
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, substituted
from minijax.ir.primitive import Folding, is_undefined_primal
from minijax.ir.trace import Tracer, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import AbstractValue, ShapedArray, Zero, typeof
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import concatenate, index_in_dim
from minijax.primitives.zeros import instantiate, nonzero_mask, zeros_like_aval
from minijax.transforms.lower_types import HiControlFlow
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, PartialEvalCustom, partial_eval_jaxpr_custom
from minijax.transforms.prune import prune_closed
from minijax.transforms.transpose import transpose_jaxpr

_disable_jit = config.option("disable_jit")


_PARAMS = {
    "jaxpr": ("ClosedJaxpr", is_closed),
    "reverse": ("bool", lambda x: isinstance(x, bool)),
    "length": ("non-negative int", lambda n: is_symbolic_dim(n) or is_count(n)),
    **dict.fromkeys(("unroll", "num_consts", "num_carry"), ("non-negative int", is_count)),
}


def _check_groups(body_groups: Sequence[Sequence], operand_groups: Sequence[Sequence], length: int) -> None:
    """Raises JaxprTypeError unless the body takes constants, a carry and slices of the operands' types."""
    *rest, sequences = operand_groups
    if any(a.shape[:1] != (length,) for a in sequences if type(a) is ShapedArray):
        raise JaxprTypeError(f"scan of length {length} called with sequences of types {types_text(sequences)}")
    slices = [a.without_axis(0) if type(a) is ShapedArray else a for a in sequences]
    for what, ours, theirs in zip(("consts", "initial carry", "sequence"), body_groups, (*rest, slices), strict=True):
        # References are not compared: the body slices them when it reads them.
        pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if type(b) is ShapedArray]
        if len(ours) != len(theirs) or any(not same_types([a], [b]) for a, b in pairs):
            raise JaxprTypeError(
                f"scan jaxpr takes {what} types\n{types_text(ours)},\ncalled with {what} of types\n{types_text(theirs)}"
            )


class Scan(Bodied, HiControlFlow):
    """Runs `jaxpr`, (constants, carry, slices) -> (carry, results), `length` times."""

    closes_linear = False
    folding = Folding.EXACT
    name = "scan"
    splits_known = True
    constrain_results = False

    def check_equation(self, avals, params):
        check_params("scan", params, _PARAMS)
        closed, slots = _body(params)
        inputs = slots.operands(closed.in_avals)
        carried = slots.results(closed.out_avals)[0]
        if not same_types(inputs[1], carried):
            raise JaxprTypeError(
                f"scan input carry input and output types mismatch:\n{types_text(inputs[1])}\nvs\n{types_text(carried)}"
            )
        _check_groups(inputs, slots.operands(avals), params["length"])

    def infer(self, *avals, jaxpr, length, reverse, unroll, num_consts, num_carry):
        if len(avals) != (count := len(jaxpr.in_avals)):
            raise ValueError(f"scan: the body takes {count} operands, but {len(avals)} were given")
        outs = jaxpr.out_avals
        return [*outs[:num_carry], *(a.with_axis(0, length) for a in outs[num_carry:])]

    def lower(self, e, ins, outs, *operands, jaxpr, length, reverse, unroll, num_consts, num_carry):
        lowered = unrolled(jaxpr, Slots(num_consts, num_carry), length, reverse, unroll)
        return e.inlined(lowered.jaxpr, e.constants(lowered), operands)

    def bodies(self, params):
        return (params["jaxpr"],)

    def binders(self, params):
        (closed, (consts, carry)) = _body(params)
        xs, ys = len(closed.invars) - consts - carry, len(closed.outvars) - carry
        ins = numbered((Role.CONST, consts), (Role.CARRY, carry), (Role.SLICE, xs))
        return ins, numbered((Role.CARRY, carry), (Role.SLICE, ys))

    def call_of(self, params, bodies, operands, ins, outs):
        carry = count_of(Role.STATE, ins) + count_of(Role.CARRY, ins)
        return list(operands), _with_body(params, bodies[0], Slots(count_of(Role.CONST, ins), carry))

    def of_reference(self, binder):
        if binder.role is Role.CARRY:
            raise NotImplementedError("scan: a reference cannot be carried; capture it")
        value = binder._replace(role=Role.STATE if binder.role is Role.CONST else binder.role)
        return value, value

    def run_known(self, params, known, others, operands, ins, outs, role=None):
        """As the base class; equations on constants only run once, before the loop, and slices are not copied."""
        invariant, body, sources = _hoist_invariants(known[0], _slots(ins), n := len(outs))
        consts, carry, xs = _slots(ins).operands(operands)
        if state.is_eager():
            invariant, _ = prune_closed(invariant, (True,) * len(invariant.outvars), True)
        varies = Mask([kind != "invariant" for kind, _ in sources])
        # constants -> (residuals, constants of the body)
        computed = eval_jaxpr(invariant.jaxpr, invariant.consts, *consts)
        consts = computed[varies.count(False) :]
        results = []
        if body.outvars or body.effects:
            inner = Slots(len(consts), len(carry))
            results = self.bind_all([*consts, *carry, *xs], _with_body(params, body, inner))
        places = {"invariant": computed, "slice": xs, "stacked": results[n:]}
        leading = [STACKED if v else CONST for v in varies]
        return results[:n], [places[kind][i] for kind, i in sources], leading, others

    def partial_eval(self, staging, operands, unknown_in, **params):
        (parts,), _, out_unknown = self.settled(params, unknown_in, partially_evaluated)
        if all(out_unknown) and not parts.known.eqns:
            return staging.process(self, operands, params)
        return super().partial_eval(staging, operands, unknown_in, **params)

    def partial_eval_custom(self, eqn, unknown_in, policy):
        (ins, outs), (body,) = self.binders(eqn.params), self.bodies(eqn.params)

        def split(closed: ClosedJaxpr, unknown: tuple, least: tuple) -> tuple:
            parts = partial_eval_jaxpr_custom(closed, unknown, policy, (True,) * len(outs))
            return parts, parts.out_unknown | least

        (parts,), unknown, out_unknown = self.settled(eqn.params, unknown_in, split)
        known_out, unknown_out = out_unknown.partition(eqn.outvars)
        known_in = unknown.unmarked(eqn.invars)
        leading: Binders = ()

        def known(*operands):
            nonlocal leading
            bodies, known_outs = [known_returning(parts, out_unknown)], out_unknown.unmarked(outs)
            results = self.run_known(eqn.params, bodies, (), operands, unknown.unmarked(ins), known_outs)
            outs_of_known, residuals, leading, _ = results
            return [*outs_of_known, *residuals]

        info = body.debug_info._replace(arg_names=None, result_paths=None)
        jaxpr, consts = trace_to_jaxpr(known, [v.aval for v in known_in], info)
        called, residuals = _known_call(ClosedJaxpr(jaxpr, consts), eqn, known_in, known_out, leading)
        # Its results are computed again, those that are known and saved too.
        call = self.sorted_call(
            eqn.params, [_taking_all(body, parts, unknown)], [*residuals, *eqn.invars], [*leading, *ins], outs
        )
        return EqnParts([called], [self._with_call(eqn, call, eqn.outvars)], unknown_out, residuals)

    def transpose(self, cts, *operands, **params):
        slots = _body(params)[1]
        (closed,), used, _ = self.pruned(params, nonzero_mask(cts))
        carry_cts, ys_cts = slots.results(cts)
        carry_cts = [instantiate(ct) for ct in Mask(slots.operands(used)[1]).marked(carry_cts)]
        slots, values = slots.pick(used), used.marked(operands)
        lin_consts, _, lin_xs = slots.operands([is_undefined_primal(x) for x in values])
        linear = Mask((*lin_consts, *(True,) * slots.carry, *lin_xs))
        known, running = slots.pick(~linear), slots.pick(linear)
        known_consts, _, known_xs = known.operands(linear.unmarked(values))
        summed, _, _ = running.operands(linear.marked(values))
        sums = [zeros_like_aval(x.aval) for x in summed]

        body = _returning_constants(closed, tuple(lin_consts), tuple(typeof(ct).weak_type for ct in carry_cts))
        summed_avals, ys_avals = body.out_avals[: len(sums)], slots.results(closed.out_avals)[1]
        ct_avals = tuple(map(typeof, carry_cts))
        ys_cts = nonzero_mask(ys_cts).marked(ys_cts)
        ys_avals = [_as_weak_as(ct, a.to_ct_aval()) for a, ct in zip(ys_avals, ys_cts, strict=True)]
        ct_avals = (*(a.to_ct_aval() for a in summed_avals), *ct_avals, *ys_avals)
        instantiated = (True,) * sum(running) + (False,) * sum(lin_xs)
        back, nonzeros = transpose_jaxpr(body, linear, (True,) * len(ct_avals), instantiated, ct_avals)
        k, n = known.consts, linear.count(False)
        # (known constants, known slices, cts) -> (known constants, cts, known slices)
        back = permute_jaxpr(back, (*range(k), *range(n, len(back.invars)), *range(k, n)))
        results = self.bind_all(
            [*known_consts, *sums, *carry_cts, *ys_cts, *known_xs],
            _with_body({**params, "reverse": not params["reverse"]}, back, Slots(k, sum(running))),
        )
        # nonzero cotangents -> those of the linear inputs -> those of the inputs read -> those of all operands
        for mask in (nonzeros, linear, used):
            results = mask.merge(repeat(None), results)
        return [
            None if not is_undefined_primal(x) else Zero(x.aval) if ct is None else ct
            for x, ct in zip(operands, results, strict=True)
        ]

    def has_own_constants(self, params):
        return params["length"] < 2 or params["unroll"] != 1  # XLA sees several steps together, or none

    def lift(self, eqn, fixed, lift):
        return eqn if self.has_own_constants(eqn.params) else super().lift(eqn, fixed, lift)


scan_p = Scan()


def _body(params: dict) -> tuple[ClosedJaxpr, Slots]:
    return params["jaxpr"], Slots(params["num_consts"], params["num_carry"])


def _with_body(params: dict, closed: ClosedJaxpr, slots: Slots) -> dict:
    return {**params, "jaxpr": closed, "num_consts": slots.consts, "num_carry": slots.carry}


def _slots(ins: Binders) -> Slots:
    return Slots(count_of(Role.CONST, ins), count_of(Role.CARRY, ins))


@cache.weak_cache
def _hoist_invariants(closed: ClosedJaxpr, slots: Slots, results: int) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple]:
    """Hoists equations that depend only on constants out of a body, (operands) -> (`results` results, residuals).

    Returns the jaxpr to run before the loop, (constants) -> (invariant residuals, constants of the body), the body,
    (constants, carry, slices) -> (results, stacked residuals), and the source of each residual: its kind and index.
    """
    pruned, _ = prune_closed(closed, (True,) * len(closed.outvars), True)
    varying_in = (False,) * slots.consts + (True,) * (len(closed.invars) - slots.consts)
    varying_out = (True,) * results + (False,) * (len(closed.outvars) - results)
    parts = partial_eval_jaxpr(pruned, varying_in, varying_out)
    jaxpr = parts.unknown.jaxpr
    slices = {v: i for i, v in enumerate(jaxpr.invars[parts.num_residuals + slots.carry :])}
    varying, numbers = jaxpr.outvars[results:], count()
    body = jaxpr.replace(outvars=[*jaxpr.outvars[:results], *(v for v in varying if v not in slices)])
    sources = [("slice", slices[v]) if v in slices else ("stacked", next(numbers)) for v in varying]
    sources = Mask(parts.out_unknown[results:]).merge(zip(repeat("invariant"), count()), sources)
    return parts.known, ClosedJaxpr(body, parts.unknown.consts), tuple(sources)


def _known_call(
    closed: ClosedJaxpr, eqn: JaxprEqn, invars: list, outvars: Sequence[Var], leading: Binders
) -> tuple[JaxprEqn, list[Var]]:
    """The known part of a loop, `eqn`, as in jax a call of `closed`, and its residuals, which have these binders."""
    jaxpr, n = closed.jaxpr, len(outvars)
    residuals = [Var(v.aval) for v in jaxpr.outvars[n:]]
    first, last = Mask([b.role is Role.CONST for b in leading]).partition(range(len(leading)))[::-1]
    outs = [jaxpr.outvars[i] for i in (*(n + i for i in first), *range(n), *(n + i for i in last))]
    results = [*(residuals[i] for i in first), *outvars, *(residuals[i] for i in last)]
    body = closed.replace(jaxpr=jaxpr.replace(outvars=outs))
    params = dict(call_jaxpr=body)
    return JaxprEqn(invars, results, closed_call_p, params, body.effects, eqn.traceback, eqn.ctx), residuals


def _taking_all(body: ClosedJaxpr, parts: PartialEvalCustom, unknown: Mask) -> ClosedJaxpr:
    """The staged part of a body, (residuals, inputs) -> results, or the body itself, if it is the same."""
    staged, k = parts.staged.jaxpr, parts.num_residuals
    known, others = unknown.partition(body.jaxpr.invars)
    named = dict(zip(others, staged.invars[k + len(parts.input_residuals) :], strict=True))
    named.update(zip((known[i] for i in parts.input_residuals), staged.invars[k:], strict=False))
    inputs = [named.get(v) or Var(v.aval) for v in body.jaxpr.invars]
    if not k and staged.eqns == body.jaxpr.eqns and staged.outvars == body.jaxpr.outvars:
        return body
    return ClosedJaxpr(staged.replace(invars=[*staged.invars[:k], *inputs]), parts.staged.consts)


def _as_weak_as(value: Any, aval: AbstractValue) -> AbstractValue:
    return aval.update(weak_type=typeof(value).weak_type) if isinstance(aval, ShapedArray) else aval


@cache.weak_cache
def _returning_constants(closed: ClosedJaxpr, linear: tuple[bool, ...], weak: tuple[bool, ...]) -> ClosedJaxpr:
    """The body with its linear constants as leading results. Its transpose accumulates their cotangents.

    Its carry has the weak types of the incoming cotangents.
    """
    jaxpr = closed.jaxpr
    names = {}
    for v, is_weak in zip(jaxpr.invars[len(linear) :], weak, strict=False):
        if isinstance(v.aval, ShapedArray) and v.aval.weak_type != is_weak:
            names[v] = Var(v.aval.update(weak_type=is_weak))
    invars, outvars = substituted(jaxpr.invars, names), substituted(jaxpr.outvars, names)
    eqns = [eqn.renamed(names) for eqn in jaxpr.eqns] if names else jaxpr.eqns
    constants = Mask(linear).marked(invars[: len(linear)])
    return ClosedJaxpr(jaxpr.replace(invars=invars, eqns=eqns, outvars=[*constants, *outvars]), closed.consts)


# ---- the public function ----------------------------------------------------------------------------


Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]], init: Carry, xs: X | None = ...,
    length: int | None = ..., reverse: bool = ..., unroll: int | bool = ..., _split_transpose: bool = ...,
) -> tuple[Carry, Y]: ...  # fmt: skip
@overload  # a Python number is promoted to the type that `f` returns
def scan(
    f: Callable[[Any, Any], tuple[Carry, Y]], init: complex, xs: Any = ...,
    length: int | None = ..., reverse: bool = ..., unroll: int | bool = ..., _split_transpose: bool = ...,
) -> tuple[Carry, Y]: ...  # fmt: skip
@source.boundary
def scan(
    f: Callable[[Any, Any], tuple[Carry, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]:
    """Runs a function over the leading axis of arrays, and carries state from step to step.

    It equals the loop `for x in xs: carry, y = f(carry, x)`, with the ys stacked. The step is traced and compiled
    once, whatever the length, and the loop has derivatives in forward and in reverse mode. In reverse mode the
    residuals of all steps are kept; wrap `f` in `jax.checkpoint` to keep the carries alone.

    Args:
        f: The step: a function (carry, x) -> (carry, y). The carry it returns must have the tree, shapes and dtypes of
            the one it takes; a weak type of `init` is promoted. y is a pytree of any kind; None is common.
        init: The first carry: an array, a number, or a pytree of these.
        xs: The arrays to loop over: a pytree whose leaves have a leading axis of one size. None: each x is None, and
            `length` must be given.
        length: The number of steps. By default, the size of the leading axes.
        reverse: If true, the loop begins with the last slice. The ys stay at the places of their xs.
        unroll: How many steps an iteration of the compiled loop runs. True: all; False: one.

    Returns:
        A pair (last carry, stacked ys).

    Raises:
        TypeError: If the carry changes its tree, shape or dtype.
        ValueError: If the leading axes have different sizes, or the length is not known.

    See also: `jax.lax.fori_loop`, `jax.lax.map`, `jax.lax.associative_scan`, `jax.lax.while_loop`.

    Example:
        >>> def step(total, x):
        ...     total = total + x
        ...     return total, 10 * total
        >>> jax.lax.scan(step, 0.0, jnp.array([1.0, 2.0, 3.0]))
        (Array(6., dtype=float32), Array([10., 30., 60.], dtype=float32))

        A number of steps without arrays to loop over:

        >>> powers = jax.lax.scan(lambda x, _: (2 * x, x), 1, length=5)[1]
        >>> powers
        Array([ 1,  2,  4,  8, 16], dtype=int32, weak_type=True)
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable. Got {f!r}.")
    leaves, treedef = tree.flatten((init, xs))
    init_tree, xs_tree = treedef.children()
    carry, slices = Slots(0, init_tree.num_leaves).results(leaves)
    avals = [typeof(x) for x in leaves]
    length = _length(slices, length)
    if isinstance(unroll, Tracer):
        raise errors.ConcretizationTypeError(
            unroll, "The `unroll` argument to `scan` expects a concrete `int` or `bool` value."
        )
    if unroll is True or unroll is False:
        unroll = max(length, 1) if unroll else 1
    if unroll < 0:
        raise ValueError(f"scan: `unroll` must be a `bool` or a non-negative `int`. Got {unroll}.")
    if _disable_jit.value:
        return _python_loop(f, init, xs_tree, slices, length, reverse)
    check_positional_aliases(f, "scan", (init, xs), leaves)
    for a in avals[len(carry) :]:
        if type(a) is ShapedArray and a.entries[0] is not None:
            raise ValueError(f"scan: 0th dimension of all xs should be replicated. Got {a.sharding.spec}")
    rows = [a.without_axis(0) if a.is_high else resized(a) for a in avals[len(carry) :]]
    body, carry = trace_loop_body(f, carry, rows, treedef, "scan", init_tree, _carry_tree)
    return _bind(body, carry, slices, reverse=bool(reverse), length=length, unroll=int(unroll))


def _length(slices: Sequence, length: int | None) -> int:
    if length is not None:
        if isinstance(length, Tracer):
            raise errors.ConcretizationTypeError(
                length,
                "The `length` argument to `scan` expects a concrete `int` value. For a computed "
                "length, use `while_loop` or `fori_loop`.",
            )
        length = int(length)
    slices = [x for x in slices if not typeof(x).is_high]
    for x in slices:
        if not typeof(x).shape:
            kind = ValueError if type(x) in dtypes.PYTHON_SCALARS else IndexError
            raise kind(
                f"scan got value with no leading axis to scan over: {x}. Give it one, or capture it in the body."
            )
    sizes = list(dict.fromkeys(typeof(x).shape[0] for x in slices))
    if length is not None and any(n != length for n in sizes):
        raise ValueError(f"scan got `length` argument of {length} which disagrees with leading axis sizes {sizes}.")
    if len(sizes) > 1:
        raise ValueError(
            f"scan got values with different leading axis sizes: {', '.join(map(str, sizes))}. Slice xs to one."
        )
    if length is None and not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided. Pass xs or length.")
    return cast("int", sizes[0] if sizes else length)


def _python_loop(f, init, xs_tree, slices, length, reverse):
    if not length:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    carry, rows = init, [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        x = xs_tree.unflatten([index_in_dim(s, i, keepdims=False) for s in slices])
        carry, rows[i] = f(carry, x)
    return carry, tree.tree_map(lambda *ys: concatenate([expand_dims(y, (0,)) for y in ys], 0), *rows)


def _carry_tree(body: Body) -> Any:
    pair = body.out_tree.children()
    if len(pair) != 2:
        raise TypeError(
            f"scan body output must be a pair, got {body.out_tree.unflatten(body.closed.out_avals)}. Return (carry, "
            "y), with None for y if there is none."
        )
    return pair[0]


def _bind(body: Body, carry: Sequence, slices: Sequence, **loop: Any) -> Any:
    """Binds the loop. A carry that the body forwards becomes a constant; a slice that it returns is not computed."""
    closed, is_constant, copies = _drop_forwarded(body.jaxpr, Slots(len(body.captured), len(carry)))
    varying, constant = is_constant.partition(carry)
    consts = [*constant, *body.captured]
    counts = {"num_consts": len(consts), "num_carry": len(varying), "unroll": loop.pop("unroll")}
    results = scan_p.bind(*consts, *varying, *slices, **loop, jaxpr=closed, **counts)
    carried, ys = Slots(0, len(varying)).results(results)
    rest = iter(ys)
    ys = [next(rest) if i is None else _as_result(slices[i]) for i in copies]
    return body.out_tree.unflatten([*is_constant.merge(carried, constant), *ys])


def _as_result(x: Any) -> Any:
    return operand(x) if isinstance(x, np.ndarray) else x


@cache.weak_cache
def _drop_forwarded(jaxpr: Jaxpr, slots: Slots) -> tuple[ClosedJaxpr, Mask, tuple]:
    """Removes forwarded inputs from the results. Returns the body, the mask of constant carry, the slice of each y."""
    consts, carry, xs = slots.operands(jaxpr.invars)
    carry_out, ys = slots.results(jaxpr.outvars)
    is_constant = Mask([a is b for a, b in zip(carry, carry_out, strict=True)])
    slices = {v: i for i, v in enumerate(xs)}
    copies = tuple(slices.get(v) for v in ys)
    varying, constant = is_constant.partition(carry)
    # (consts, carry, slices) -> (constant carry, consts, varying carry, slices)
    invars = [*constant, *consts, *varying, *xs]
    computed = Mask((*~is_constant, *(i is None for i in copies)))
    info = jaxpr.debug_info
    names = dict(zip(jaxpr.invars, info.arg_names or (), strict=False))
    info = info._replace(
        arg_names=tuple(names.get(v, "") for v in invars), result_paths=tuple(computed.marked(info.result_paths or ()))
    )
    body = jaxpr.replace(invars=invars, outvars=computed.marked(jaxpr.outvars), debug_info=info)
    return ClosedJaxpr(body), is_constant, copies
