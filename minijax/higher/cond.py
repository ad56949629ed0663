"""`cond` and `switch`: run one of several branches, chosen by an index."""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from minijax.base import cache, config, dtypes, source, tree
from minijax.base.errors import JaxprTypeError
from minijax.base.mask import Mask
from minijax.calls.bodied import CONST, RESULT, Bodied, Residuals, Role, numbered
from minijax.higher.check_bodies import check_branches
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.ir import context, effects, state
from minijax.ir.body import check_positional_aliases, merge_captured_inputs, trace_body, with_leading
from minijax.ir.check import check_params, is_closed, same_types, types_text
from minijax.ir.concrete import concrete_value
from minijax.ir.hitypes import full_type
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.primitive import Folding, Primitive, is_undefined_primal
from minijax.ir.trace import JaxprTrace, Tracer, eval_jaxpr
from minijax.ir.types import ShapedArray, token_type, typeof
from minijax.primitives.convert import convert, stop_gradient_p
from minijax.primitives.counting import empty_of
from minijax.primitives.elementwise import clamp, eq, ne, select_n
from minijax.primitives.families import scalar_like
from minijax.primitives.moving import as_array_or_constant, axis_to_front, broadcast_in_dim
from minijax.primitives.zeros import instantiate
from minijax.run.clients import client
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.lower_types import HiControlFlow
from minijax.transforms.partial_eval import permute_jaxpr
from minijax.transforms.transpose import transpose_jaxpr

_disable_jit = config.option("disable_jit")
_NO_OPERAND = object()

Branches = tuple[ClosedJaxpr, ...]


_PARAMS = {"branches": ("tuple of ClosedJaxpr", lambda x: isinstance(x, tuple) and all(map(is_closed, x)))}


def _check_branch(number: int, first: ClosedJaxpr, branch: ClosedJaxpr) -> None:
    """Raises JaxprTypeError unless a branch has the input and output types of the first one."""
    takes = "takes", "input", first.in_avals, branch.in_avals
    gives = "outputs", "output", first.out_avals, branch.out_avals
    for verb, what, ours, theirs in (takes, gives):
        if len(ours) != len(theirs):
            plural = "inputs" if what == "input" else "values"
            raise JaxprTypeError(f"cond branch 0 {verb} {len(ours)} {plural}, branch {number} {verb} {len(theirs)}")
        if not same_types(ours, theirs):
            raise JaxprTypeError(
                f"cond branches 0 and {number} have mismatching {what} types: "
                f"{types_text(ours)} vs {types_text(theirs)}"
            )


class Cond(Bodied, HiControlFlow):
    """Runs the branch whose number is the first operand on the other operands."""

    closes_linear = False
    folding = Folding.EXACT
    name = "cond"

    def check_equation(self, avals, params):
        check_params("cond", params, _PARAMS)
        if not params["branches"]:
            raise JaxprTypeError("cond requires at least one branch function")
        first, *others = params["branches"]
        for number, branch in enumerate(others, 1):
            _check_branch(number, first, branch)
        index, *operands = avals
        input_types = first.in_avals
        if len(operands) != len(input_types):
            raise JaxprTypeError(
                f"cond called with {len(operands)} non-predicate operands, but branches take {len(input_types)} inputs"
            )
        if index.dtype != np.int32:
            raise JaxprTypeError(f"cond called with index of type {index.dtype} instead of int32")
        if not same_types(operands, input_types):
            raise JaxprTypeError(
                f"cond branches take input types {types_text(input_types)}, "
                f"called with operands of type {types_text(operands)}"
            )

    def infer(self, index, *avals, branches, **how):
        return branches[0].out_avals

    def lower(self, e, ins, outs, index, *operands, branches, branches_platforms=None):
        ordered = list(dict.fromkeys(effect for b in branches for effect in ordered_in(b.jaxpr)))

        def build(i, closed):
            branch = lambda: jaxpr_body(e, closed.jaxpr, e.constants(closed), operands)  # noqa: E731
            return e.region(f"cond/branch_{i}_fun", ordered, branch)

        chosen = range(len(branches))
        if branches_platforms is not None:
            chosen = [group_of(e.platform, branches_platforms)]
        results = e.case_(index, [build(i, branches[i]) for i in chosen], [*[token_type] * len(ordered), *outs])
        e.tokens.update(zip(ordered, results, strict=False))
        return results[len(ordered) :]

    def bodies(self, params):
        return params["branches"]

    def binders(self, params):
        first = params["branches"][0]
        ins = numbered((Role.INDEX, 1), (Role.CONST, len(first.invars)))
        return ins, numbered((Role.RESULT, len(first.outvars)))

    def call_of(self, params, bodies, operands, ins, outs):
        return list(operands), {**params, "branches": tuple(bodies)}

    def residuals(self, params, known, others, ins, outs):
        known, others = share_residuals(tuple(known), tuple(others), n := len(outs))
        places = range(n, len(known[0].outvars))
        return Residuals(known, others, [RESULT] * len(places), [("out", i) for i in places], [CONST] * len(places))

    def transpose(self, cts, index, *operands, branches, **how):
        linear = Mask(map(is_undefined_primal, operands))
        cts = list(map(instantiate, cts))
        avals = tuple(map(typeof, cts))
        closed = tuple(transpose_jaxpr(b, linear, (True,) * len(cts), True, avals)[0] for b in branches)
        operands = [index, *linear.unmarked(operands), *cts]
        return [None, *linear.merge(repeat(None), self.bind_all(operands, dict(branches=closed, **how)))]

    def batch(self, axis, operands, dims, **params):
        if dims[0] is None:
            return super().batch(axis, operands, dims, **params)
        return self._select(axis, operands, dims, params["branches"])

    def _select(self, axis, operands, dims, branches):
        """Runs every branch on the whole batch and selects results. Only a branch's own rows have derivatives."""
        if any(effects.io_effects.filter_in(b.effects) for b in branches):
            raise NotImplementedError("IO effect not supported in vmap-of-cond.")
        index, *operands = (axis_to_front(x, d, axis) for x, d in zip(operands, dims, strict=True))
        ins = (0,) * len(operands)
        results = []
        for i, branch in enumerate(branches):
            is_own = eq(index, scalar_like(index, i))
            own = [_with_derivative_on_own_rows(is_own, x) for x in operands]
            closed, _ = batch_jaxpr(branch, axis, ins, True)
            results.append(eval_jaxpr(closed.jaxpr, closed.consts, *own))
        selected = [select_n(_broadcast_rows(index, cases[0]), *cases) for cases in zip(*results, strict=True)]
        return selected, [0] * len(selected)


def group_of(platform: str, groups: Sequence) -> int:
    """The index of the first group of platforms that includes `platform`. A group None includes every platform."""
    holding = [i for i, names in enumerate(groups) if names is None or platform in names]
    if not holding:
        raise NotImplementedError(
            f"MLIR translation rule for primitive 'platform_index(platforms={groups})' not found for "
            f"platform {platform}"
        )
    return holding[0]


cond_p = Cond()


def keep_first_results(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    return permute_jaxpr(closed, tuple(range(len(closed.invars))), tuple(range(count)))


def _broadcast_rows(index: Any, x: Any) -> Any:
    """Broadcasts the value of each row to the shape of `x`."""
    rank, shape = typeof(index).ndim, typeof(x).shape
    return index if rank == len(shape) else broadcast_in_dim(index, shape, tuple(range(rank)))


def _with_derivative_on_own_rows(is_own: Any, x: Any) -> Any:
    is_key = dtypes.is_extended(typeof(x).dtype)
    stopped = x if is_key else stop_gradient_p.bind(x)
    return select_n(_broadcast_rows(is_own, x), stopped, x)


# ---- residuals --------------------------------------------------------------------------------------


def share_residuals(known: Branches, unknown: Branches, count: int) -> tuple[Branches, Branches]:
    """Makes known branches return residuals of the same types after `count` results, and unknown ones take them."""
    return _share_residuals(known[0], known[1:], unknown, count)


@cache.weak_cache
def _share_residuals(first: ClosedJaxpr, others: Branches, unknown: Branches, count: int) -> tuple[Branches, Branches]:
    known = (first, *others)
    types: list[Any] = []
    places: list[tuple[int, ...]] = []
    for closed in known:
        own: list[int] = []
        for aval in closed.out_avals[count:]:
            free = (i for i, other in enumerate(types) if other == aval and i not in own)
            place = next(free, len(types))
            types += [aval] if place == len(types) else []
            own.append(place)
        places.append(tuple(own))
    filled = tuple(_with_residuals(c, count, own, types) for c, own in zip(known, places, strict=True))
    return filled, tuple(with_leading(c, own, tuple(types)) for c, own in zip(unknown, places, strict=True))


def _with_residuals(closed: ClosedJaxpr, count: int, places: Sequence[int], types: Sequence) -> ClosedJaxpr:
    """Puts the results after the first `count` at `places` among the residuals; the others are arrays never read."""
    jaxpr = closed.jaxpr
    trace = JaxprTrace(None, jaxpr.debug_info)
    with state.set_current_trace(trace), context.entered(context.EMPTY):
        residuals = [trace.atom(empty_of(aval)) for aval in types]
    for eqn in trace.eqns:
        eqn.traceback = None  # the branch has their source position
    for place, v in zip(places, jaxpr.outvars[count:], strict=True):
        residuals[place] = v
    outvars, info = [*jaxpr.outvars[:count], *residuals], jaxpr.debug_info._replace(result_paths=None)
    return ClosedJaxpr(jaxpr.replace(outvars=outvars, eqns=[*jaxpr.eqns, *trace.eqns], debug_info=info), closed.consts)


# ---- the public functions ---------------------------------------------------------------------------


@source.boundary
def cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """Calls one of two functions, depending on a boolean scalar that may be traced.

    Both functions are traced, and one of them runs. Under `jax.vmap` with a mapped predicate, both run and the results
    are selected; then neither may have side effects. Outside of traced code a Python `if` does as well.

    Args:
        pred: A boolean scalar, or a number, which is true unless it is 0.
        true_fun: A function of the operands, for a true predicate.
        false_fun: A function of the operands, for a false predicate.
        *operands: Arrays, numbers, or pytrees of these. The functions may also close over arrays.
        operand: The older form: a single operand, by keyword.

    Returns:
        The result of the function that was called.

    Raises:
        TypeError: If the results of the functions differ in tree, shape or dtype, or if `pred` is not a scalar.

    See also: `jax.lax.switch`, `jax.lax.select`, `jax.numpy.where`.

    Example:
        >>> @jax.jit
        ... def safe_log(x):
        ...     return jax.lax.cond(x > 0, lambda x: jnp.log(x), lambda x: -jnp.inf, x)
        >>> float(safe_log(1.0)), float(safe_log(-1.0))
        (0.0, -inf)
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
        raise TypeError(
            "lax.cond: true_fun and false_fun arguments should be callable. Pass functions and their operands apart: "
            "lax.cond(pred, true_fun, false_fun, *operands)."
        )
    if pred is None:
        raise TypeError("cond predicate is None")
    aval = _scalar_type(pred, "Pred must be a scalar", "Pred type must be either boolean or number")
    if not any(dtypes.issubdtype(aval.dtype, kind) for kind in (np.bool_, np.integer, np.floating)):
        raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype.name}.")
    if _disable_jit.value:
        known = concrete_value(pred)
        if known is not None:
            return true_fun(*operands) if bool(known) else false_fun(*operands)
    if isinstance(pred, (bool, int, float, np.generic, np.ndarray)):
        index = np.int32(bool(pred))
    else:
        index = convert(pred if aval.dtype == np.bool_ else ne(pred, scalar_like(pred, 0)), np.dtype(np.int32))
    names = {"true_fun": true_fun, "false_fun": false_fun}
    return trace_and_bind_branches("cond", index, names, operands, backwards=True)


def _scalar_type(x: Any, scalar: str, kind: str) -> Any:
    """The type of a predicate or a branch index. Raises TypeError if it is not a scalar."""
    try:
        aval = typeof(x)
    except TypeError:
        raise TypeError(f"{kind}, got {x} of type {type(x)}. {scalar}.") from None
    if aval.shape:
        raise TypeError(
            f"{scalar}, got {x} of shape {aval.shape}. Reduce it, for instance with `jnp.all`, or choose by elements "
            "with `jnp.where` or `jnp.select`."
        )
    return aval


@source.boundary
def switch(index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """Calls one of several functions, chosen by an integer scalar that may be traced.

    All functions are traced, and one of them runs. Under `jax.vmap` with a mapped index, all run and the results are
    selected.

    Args:
        index: An integer scalar. It is clamped to the numbers of the branches.
        branches: A sequence of functions of the operands.
        *operands: Arrays, numbers, or pytrees of these.
        operand: The older form: a single operand, by keyword.

    Returns:
        The result of the function that was called.

    Raises:
        TypeError: If the results of the functions differ in tree, shape or dtype, or if `index` is not an integer.
        ValueError: If `branches` is empty.

    See also: `jax.lax.cond`, `jax.lax.select_n`.

    Example:
        >>> branches = [lambda x: x, lambda x: -x, lambda x: 10 * x]
        >>> [int(jax.lax.switch(i, branches, 5)) for i in (0, 1, 7)]
        [5, -5, 50]
    """
    operands = _operands("switch", operands, operand)
    if not isinstance(branches, Iterable) or not all(map(callable, branches := tuple(branches))):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    aval = _scalar_type(index, "Branch index must be scalar", "Index type must be an integer")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(
            f"Index type must be an integer, got {index} as {aval.dtype.name}. Convert it with `astype(int)`."
        )
    if not branches:
        raise ValueError("Empty branch sequence: pass at least one function to lax.switch.")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if _disable_jit.value:
        known = concrete_value(index)
        if known is not None:
            return branches[min(max(int(known), 0), last)](*operands)
    if isinstance(index, (int, np.generic, np.ndarray)):
        index = np.asarray(index).astype(np.int32)[()]
    index = clamp(np.int32(0), convert(index, np.dtype(np.int32)), np.int32(last))
    names = {f"branch {i}": branch for i, branch in enumerate(branches)}
    return trace_and_bind_branches("switch", index, names, operands)


def trace_and_bind_branches(
    name: str, index: Any, functions: dict[str, Callable], operands: tuple, backwards: bool = False, **how: Any
) -> Any:
    """Traces the functions and binds `cond`. A result that every branch forwards from the same input bypasses it."""
    leaves, treedef = tree.flatten(operands)
    avals = [full_type(x) for x in leaves]
    check_positional_aliases(next(iter(functions.values())), name, operands, leaves)
    bodies = [trace_body(f, avals, treedef, name) for f in functions.values()]
    check_branches(name, functions, bodies)
    merged, captured = merge_captured_inputs(bodies)
    closed = tuple(reversed(merged)) if backwards else tuple(merged)
    inputs = [*captured, *leaves]
    sources = [_forwarded(column, closed) for column in zip(*(c.outvars for c in closed), strict=True)]
    computed = Mask(source is None for source in sources)
    results = cond_p.bind(index, *inputs, branches=tuple(_without(c, computed) for c in closed), **how)
    forwarded = (as_array_or_constant(inputs[i]) for i in sources if i is not None)
    return bodies[0].out_tree.unflatten(computed.merge(forwarded, results))


def _forwarded(column: Sequence, closed: Branches) -> int | None:
    """The index of the input that every branch returns as this result, or None."""
    if column[0] not in closed[0].invars:
        return None
    i = closed[0].invars.index(column[0])
    return i if all(v is c.invars[i] for v, c in zip(column, closed, strict=True)) else None


@cache.weak_cache
def _without(closed: ClosedJaxpr, computed: Mask) -> ClosedJaxpr:
    """The jaxpr with only the results that are computed."""
    if all(computed):
        return closed
    info = closed.debug_info
    info = info._replace(result_paths=tuple(computed.marked(info.result_paths)))
    return closed.replace(jaxpr=closed.jaxpr.replace(outvars=computed.marked(closed.outvars), debug_info=info))


class PlatformIndex(Primitive):
    """The index of the group that includes the platform a program is lowered for."""

    name = "platform_index"

    def infer(self, *, platforms):
        return [ShapedArray((), np.dtype(np.int32))]

    def at_once(self, *, platforms):
        platform = client.lowering_platform(client.default_device())
        return [np.int32(group_of(platform, platforms))]

    def lower(self, e, ins, outs, *, platforms):
        (out,) = outs
        index = e.constant(group_of(e.platform, platforms), out)
        return e.case_(index, [lambda: [e.constant(0, out)]] * len(platforms), outs)

    def batch(self, axis, operands, dims, **params):
        return [self.bind(**params)], [None]


platform_index_p = PlatformIndex()


@source.boundary
def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """Calls the function given for the platform that the program is lowered for, or else `default`.

    Args:
        *args: The arguments of the function.
        default: The function for platforms that are not named.
        **per_platform: The function for a platform: `cpu`, `cuda`, `rocm` or `tpu`.

    Raises NotImplementedError when lowered for a platform without a function. The functions must return values of equal
    trees, shapes and dtypes.

    Example:
        >>> int(jax.lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x + 1))
        4
    """
    if "gpu" in per_platform:
        raise ValueError("platform_dependent: Use 'cuda' or 'rocm' for lax.platform_dependent.")
    functions = [*per_platform.values(), *([] if default is None else [default])]
    if not functions:
        kind = NotImplementedError if state.is_eager() else TypeError
        raise kind("platform_dependent: no function was given; give one for a platform, or a default")
    # Platforms that share a function share a branch.
    places: dict[Any, tuple | None] = {}
    for platform, function in per_platform.items():
        places[function] = (*(places.get(function) or ()), platform)
    groups = [*places.items(), *([] if default is None else [(default, None)])]
    platforms = tuple(names for _, names in groups)
    names = {f"branch {i}": function for i, (function, _) in enumerate(groups)}
    index = platform_index_p.bind(platforms=platforms)
    if not isinstance(index, Tracer):  # the platform is known: no other function need have rules
        return groups[int(index)][0](*args)
    return trace_and_bind_branches("switch", index, names, args, branches_platforms=platforms)
