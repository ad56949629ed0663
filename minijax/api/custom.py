"""Functions with user-defined derivatives: `custom_jvp`, `custom_vjp`, `custom_gradient`, `custom_root`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from minijax.api.autodiff import jvp, linearize
from minijax.api.shapes import abstract
from minijax.base import config, dtypes, errors, source, tree, tree as trees
from minijax.base.mask import Mask
from minijax.base.naming import known_as
from minijax.base.paths import leaf_paths
from minijax.base.thread import called_at_own_lines
from minijax.base.util import dir_without
from minijax.calls.custom_derivatives import (
    SymbolicZero,
    bind_custom_jvp,
    bind_custom_vjp,
    optimized_forward,
    symbolic,
    unsymbolic,
)
from minijax.dispatch.jitted import is_of_library
from minijax.dispatch.replay import replayed_alone
from minijax.ir import state
from minijax.ir.body import (
    Flat,
    argument_names,
    as_consts,
    check_aliases,
    function_name,
    signature_of,
    source_of,
    trace_flat,
)
from minijax.ir.check import same_types, types_text
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.refs import Ref
from minijax.ir.trace import JaxprTrace, Tracer, checked_values, eval_jaxpr
from minijax.ir.types import Zero, is_value, space_of, typed_value, typeof
from minijax.primitives.elementwise import neg
from minijax.primitives.zeros import add_any, instantiate, zeros_like_aval
from minijax.run.arrays.array import ArrayImpl
from minijax.transforms.batch import BatchTracer

_LEAVES = frozenset((ArrayImpl, bool, type(None)))


@dataclasses.dataclass
class CustomVJPPrimal:
    """Represents an argument of a forward rule with `symbolic_zeros`: its value, and whether it is perturbed.

    Example:
        >>> f = jax.custom_vjp(lambda x, y: x * y)
        >>> def forward(x, y):
        ...     print(x.perturbed, y.perturbed)
        ...     return x.value * y.value, y.value
        >>> f.defvjp(forward, lambda y, ct: (ct * y, None), symbolic_zeros=True)
        >>> jax.grad(f)(2.0, 3.0)
        True False
        Array(3., dtype=float32, weak_type=True)
    """

    value: Any
    perturbed: bool


def _resolve_kwargs(signature: inspect.Signature | None, args: tuple, kwargs: dict) -> tuple:
    """Returns all arguments by position, with defaults except for keyword-only ones."""
    if signature is None:
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if unresolved := bound.kwargs.keys() & kwargs.keys():
        names = ", ".join(sorted(unresolved))
        raise TypeError(f"The following keyword arguments could not be resolved to positions: {names}")
    return bound.args


def _check_no_refs(title: str, leaves: Sequence, allowed: Sequence = ()) -> None:
    """Raises ValueError for a reference among the results, unless it is one of `allowed`, the arguments."""
    for x in leaves:
        if isinstance(x, Ref) and not any(x is y for y in allowed):
            raise ValueError(
                f"{title} returned a mutable array reference of type {typeof(x)}, but references cannot be returned: a "
                "custom_vjp fwd function alone may return its arguments as residuals."
            )


class _Unquoted(str):
    """A string that the repr of a tree shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class _Primal(Flat):
    """The decorated function on leaves; its rules must return results of the same tree and, if known, types."""

    residual_tree: Any = None
    out_avals: Sequence | None = None

    def flattened(self, result):
        leaves = super().flattened(result)
        _check_no_refs(f"function {self.__name__}", leaves)
        if state.thread.trace is not None:
            self.out_avals = [typeof(x) for x in checked_values(leaves)] if all(map(is_value, leaves)) else None
        return leaves

    def check_results(self, title: str, kind: str, results: Sequence, out_tree: Any) -> None:
        """Records the tree of a rule's results. Raises TypeError if tree or types differ from the function's."""
        avals = [typeof(x) if is_value(x) else None for x in results]
        if self.out_tree is not None and self.out_tree != out_tree:
            shown = [_Unquoted("?" if a is None else a.str_short()) for a in avals]
            n = self.out_tree.num_leaves
            own = [_Unquoted(a.str_short()) for a in self.out_avals or ()] or [_Unquoted("*")] * n
            raise TypeError(
                f"{title} {_PAIRS[kind][0].format(self.__name__)}, but instead the {kind} rule output's first element "
                f"had container/pytree structure:\n    {out_tree.unflatten(shown)}\nwhile the custom_"
                f"{_KINDS[kind]}-decorated function {self.__name__} had output container/pytree structure:\n"
                f"    {self.out_tree.unflatten(own)}."
            )
        self.out_tree = out_tree
        if self.out_avals is not None and not same_types(avals, self.out_avals):
            raise TypeError(
                f"{title} {_PAIRS[kind][1].format(self.__name__)}, but instead the {kind} rule output's first element "
                f"had shapes/dtypes of:\n    {types_text(avals)}\nwhile the custom_{_KINDS[kind]}-decorated "
                f"function {self.__name__} had output shapes/dtypes of:\n    {types_text(self.out_avals)}"
            )


_JVP_PAIR = (
    "must produce a pair (list or tuple of length two) where the first element represents the primal output (equal "
    "in value to the output of the custom_jvp-decorated function {}, and in particular "
)
_VJP_PAIR = (
    "must produce a pair (list or tuple of length two) where the first element represents the primal output (equal "
    "to the output of the custom_vjp-decorated function {}) and the second element represents residuals (i.e. values "
    "stored from the forward pass for use on the backward pass)"
)
_KINDS = {"JVP": "jvp", "fwd": "vjp"}
# For each kind of rule the requirement that messages state: for a wrong tree, and for wrong types.
_PAIRS = {
    "JVP": (f"{_JVP_PAIR}of the same container/pytree structure)", f"{_JVP_PAIR}with leaves of the same shape/dtype)"),
    "fwd": (_VJP_PAIR, _VJP_PAIR),
}


_SETTERS = frozenset(("defjvp", "defjvps", "defvjp", "def_vmap"))


P = ParamSpec("P")
R = TypeVar("R")


class _Custom(Generic[P, R]):
    """A function with user-defined rules: resolves its arguments to positions, and separates `nondiff_argnums`."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    __dir__ = dir_without("arity signature")

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.signature = signature_of(fun)
        parameters = self.signature.parameters if self.signature is not None else {}
        named = [list(parameters).index(n) for n in nondiff_argnames or () if self.signature is not None]
        self.nondiff_argnums = tuple(sorted({*(nondiff_argnums or ()), *named}))
        by_position = all(p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters.values())
        self.arity = len(parameters) if by_position else None

    def __getattr__(self, name):
        """Forwards a setter such as `defvjp` to the decorated function, which may have rules of another kind."""
        if name in _SETTERS and isinstance(inner := self.__dict__.get("fun"), _Custom):
            return getattr(inner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., R]:
        return self if instance is None else functools.partial(self, instance)

    def _positional(self, args: tuple, kwargs: dict) -> tuple:
        if not kwargs and len(args) == self.arity:
            return args
        try:
            return _resolve_kwargs(self.signature, args, kwargs)
        except TypeError as error:
            raise TypeError(
                f"The input arguments to the {type(self).__name__}-decorated function {function_name(self.fun)} "
                f"could not be resolved to positional-only arguments. Binding failed with the error:\n{error}"
            ) from error

    def _split(self, args: tuple) -> tuple[tuple, tuple]:
        """Separates the arguments into (nondifferentiable, others)."""
        if not self.nondiff_argnums:
            return (), args
        dynamic, fixed = self._nondiff(len(args)).partition(args)
        return tuple(fixed), tuple(dynamic)

    def _merge(self, fixed: Sequence, dynamic: Sequence) -> Sequence:
        return self._nondiff(len(fixed) + len(dynamic)).merge(dynamic, fixed) if fixed else dynamic

    def _nondiff(self, count: int) -> Mask:
        places = {n + count if n < 0 else n for n in self.nondiff_argnums}
        return Mask([i in places for i in range(count)])

    def _call_eagerly(self, args: tuple) -> Any:
        """Calls the function eagerly: none of its rules is needed."""
        result = self.fun(*args)
        if type(result) is ArrayImpl:
            return result
        leaves, out_tree = tree.flatten(result)
        return out_tree.unflatten(checked_values(leaves))

    def _flat(self, fixed: tuple, in_tree: Any) -> _Primal:
        return _Primal(self.fun, in_tree, lambda dynamic: (self._merge(fixed, dynamic), {}))


@known_as("jax._src.custom_derivatives.custom_jvp")
class custom_jvp(_Custom[P, R]):  # noqa: N801
    """Gives a function its own rule for forward-mode derivatives.

    Use it as a decorator, then set the rule by `defjvp` or `defjvps`. The function's body runs where no derivative is
    taken, and the rule where one is. Reverse mode works too, because JAX transposes the rule: the tangent of the
    result must be linear in the tangents of the arguments.

    Args:
        fun: The function. Keyword arguments of a call are resolved to positional ones.
        nondiff_argnums: Numbers of the positional arguments that are passed to the rule first, as they are. They
            cannot be arrays that are differentiated; functions and static numbers are typical.
        nondiff_argnames: Names of such arguments.

    Raises:
        AttributeError: By a call, if no rule was set.

    See also: `jax.custom_vjp`, for a rule of reverse mode alone.

    Example:
        >>> @jax.custom_jvp
        ... def log1pexp(x):
        ...     return jnp.log(1 + jnp.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t
        >>> float(jax.grad(log1pexp)(100.0))
        1.0
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None
        self.symbolic_zeros = False
        self._replays = is_of_library(fun) and not self.nondiff_argnums

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Sets the rule that computes the result and its tangent, and returns the rule.

        Args:
            jvp: A function of the nondifferentiable arguments, if any, then of two tuples: primals and tangents. It
                returns a pair (result, tangent of the result) of equal trees, shapes and dtypes.
            symbolic_zeros: If true, tangents that are known to be zero are passed as `SymbolicZero`s, not as arrays of
                zeros.

        Example:
            >>> f = jax.custom_jvp(lambda x, y: x * y)
            >>> f.defjvp(lambda primals, tangents: (f(*primals), 10 * tangents[0]))
            <function ...>
            >>> [float(g) for g in jax.grad(f, argnums=(0, 1))(2.0, 3.0)]
            [10.0, 0.0]
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Sets a rule for each argument: a function of (tangent, result, *primals) that returns a term of the tangent.

        None means that the derivative by this argument is zero. The terms are added. Raises TypeError for a function
        with `nondiff_argnums`.

        Example:
            >>> f = jax.custom_jvp(lambda x, y: x * y)
            >>> f.defjvps(lambda t, out, x, y: t * y, None)
            >>> [float(g) for g in jax.grad(f, argnums=(0, 1))(2.0, 3.0)]
            [3.0, 0.0]
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals, tangents):
            if len(jvps) != len(tangents):
                raise ValueError(f"defjvps of {self.__name__} got {len(jvps)} functions for {len(tangents)} arguments")
            out = self(*primals)
            terms = [t(x, out, *primals) for t, x in zip(jvps, tangents, strict=True) if t is not None]
            if not terms:
                return out, tree.tree_map(lambda x: instantiate(Zero.from_primal_value(x)), out)
            return out, functools.reduce(functools.partial(tree.tree_map, add_any), terms)

        self.defjvp(jvp)

    @source.boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {function_name(self.fun)} using defjvp. Call `f.defjvp(rule)` "
                "first."
            )
        args = self._positional(args, kwargs)
        if state.thread.trace is None and _LEAVES.issuperset(map(type, args)):
            return self._call_eagerly(args)
        if self._replays and type(state.thread.trace) is JaxprTrace:
            return replayed_alone((self, self.jvp, self.symbolic_zeros), args, self._called)
        return self._called(*args)

    def _called(self, *args: Any) -> Any:
        fixed, dynamic = self._split(args)
        leaves, in_tree = tree.flatten(dynamic)
        leaves = list(map(typed_value, leaves))
        fun = self._flat(fixed, in_tree)
        jvp = self._flat_jvp(fixed, fun)
        results = bind_custom_jvp(fun, jvp, leaves, self.symbolic_zeros)
        return fun.out_tree.unflatten(results)

    def _flat_jvp(self, fixed: tuple, fun: _Primal) -> Callable:
        rule, name, in_tree = self.jvp, function_name(self.jvp), fun.in_tree
        title = f"Custom JVP rule {name} for function {function_name(self.fun)}"

        def jvp(*values):
            half = len(values) // 2
            primals, tangents = values[:half], values[half:]
            if self.symbolic_zeros:
                tangents = [symbolic(t) for t in tangents]
            pair = called_at_own_lines(rule, *fixed, in_tree.unflatten(primals), in_tree.unflatten(tangents))
            _check_pair(title, pair, "representing primal and tangent outputs", str)
            results, out_tree = tree.flatten(pair[0])
            tangents_out, tangent_tree = tree.flatten(pair[1])
            if out_tree != tangent_tree:
                raise TypeError(
                    f"{title} must produce primal and tangent outputs with equal container (pytree) "
                    f"structures, but got {out_tree} and {tangent_tree} respectively."
                )
            fun.check_results(title, "JVP", results, out_tree)
            tangents_out = [unsymbolic(t) for t in tangents_out]
            _check_tangents(results, tangents_out)
            return [*results, *tangents_out]

        jvp.__name__ = name
        return jvp


def _check_pair(title: str, pair: Any, meaning: str, shown: Callable) -> None:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise TypeError(f"{title} must produce a pair (list or tuple of length two) {meaning}, but got {shown(pair)}.")


def _check_tangents(results: Sequence, tangents: Sequence) -> None:
    for x, t in zip(results, tangents, strict=True):
        aval = typeof(x)
        want, have = aval.to_tangent_aval(), t.aval if type(t) is Zero else typeof(t)
        if not same_types([want], [have]):
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. "
                f"Expected {want.str_short()} (tangent type of {aval.str_short()}) but got {have.str_short()}."
            )


@known_as("jax._src.custom_derivatives.custom_vjp")
class custom_vjp(_Custom[P, R]):  # noqa: N801
    """Gives a function its own rules for reverse-mode derivatives.

    Use it as a decorator, then set the two rules by `defvjp`: the forward rule computes the result and the residuals,
    and the backward rule turns the residuals and the cotangent of the result into cotangents of the arguments.
    Functions with such rules cannot be differentiated in forward mode.

    Args:
        fun: The function. Keyword arguments of a call are resolved to positional ones.
        nondiff_argnums: Numbers of the positional arguments that are not differentiated and are passed to the
            backward rule first. They should not be arrays.
        nondiff_argnames: Names of such arguments.

    Raises:
        AttributeError: By a call, if no rules were set.
        TypeError: By `jax.jvp` and `jax.jacfwd` of the function.

    See also: `jax.custom_jvp`, which serves both modes.

    Example:
        >>> @jax.custom_vjp
        ... def clip_gradient(x):
        ...     return x
        >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
        >>> float(jax.grad(lambda x: 100 * clip_gradient(x))(3.0))
        1.0
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.symbolic_zeros = self.optimize_remat = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Sets the forward and the backward rule.

        Args:
            fwd: A function of the arguments of the function; it returns a pair (result, residuals). Residuals are a
                pytree of arrays.
            bwd: A function of the nondifferentiable arguments, if any, the residuals, and the cotangent of the result.
                It returns a tuple with the cotangent of each differentiable argument; None means zero.
            symbolic_zeros: If true, `fwd` gets a `CustomVJPPrimal` for each array, and `bwd` a `SymbolicZero` for each
                cotangent that is known to be zero.
            optimize_remat: If true, `jax.checkpoint` calls the function itself in the forward pass, and `fwd` in the
                backward pass only. The function has one reverse-mode derivative then, and not a second.

        Raises:
            NotImplementedError: If both options are set.

        Example:
            >>> f = jax.custom_vjp(lambda x, y: x * y)
            >>> f.defvjp(lambda x, y: (x * y, (x, y)), lambda residuals, ct: (ct * residuals[1], None))
            >>> [float(g) for g in jax.grad(f, argnums=(0, 1))(2.0, 3.0)]
            [3.0, 0.0]
        """
        if optimize_remat and symbolic_zeros:
            raise NotImplementedError("defvjp: the remat optimization for custom_vjp does not support symbolic zeros")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self.optimize_remat = optimize_remat

    @source.boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {function_name(self.fun)} using defvjp. Call "
                "`f.defvjp(fwd, bwd)` first."
            )
        args = self._positional(args, kwargs)
        if state.thread.trace is None and _LEAVES.issuperset(map(type, args)):
            return self._call_eagerly(args)
        fixed, dynamic = self._split(args)
        if any(isinstance(x, Tracer) for x in tree.tree_leaves(fixed)):
            raise errors.UnexpectedTracerError(
                "Found a JAX Tracer object passed as an argument to a custom_vjp function "
                f"({function_name(self.fun)}) in a position indicated by nondiff_argnums as non-differentiable. Such "
                "arguments may be functions and other values without tracers; pass arrays as the other arguments."
            )
        leaves, in_tree = tree.flatten(dynamic)
        leaves = list(map(typed_value, leaves))
        names = lambda: argument_names(self.signature, tree.tree_structure((args, {})), ())  # noqa: E731
        check_aliases(self.fun, "custom_vjp", tree.tree_leaves(args), names)
        fun = self._flat(fixed, in_tree)
        fwd = self._flat_fwd(fixed, fun)
        bwd = self._flat_bwd(fixed, fun, [typeof(x) for x in leaves])
        count = lambda: fun.out_tree.num_leaves  # noqa: E731
        if self.optimize_remat:
            fwd = optimized_forward(fun, fwd, count)
        results = bind_custom_vjp(fun, fwd, bwd, leaves, count, self.symbolic_zeros)
        return fun.out_tree.unflatten(results)

    def _flat_fwd(self, fixed: tuple, fun: _Primal) -> Callable:
        name = function_name(self.fwd)
        title = f"Custom VJP fwd rule {name} for function {function_name(self.fun)}"

        def fwd(*leaves):
            if self.symbolic_zeros:
                leaves = [CustomVJPPrimal(*pair) for pair in leaves]
            pair = called_at_own_lines(self.fwd, *self._merge(fixed, fun.in_tree.unflatten(leaves)))
            _check_pair(
                title,
                pair,
                "where the first element represents the primal output and the second element represents residuals",
                repr,
            )
            results, out_tree = tree.flatten(pair[0])
            fun.check_results(title, "fwd", results, out_tree)
            residuals, fun.residual_tree = tree.flatten(pair[1])
            given = [x.value for x in leaves] if self.symbolic_zeros else leaves
            _check_no_refs(f"custom_vjp fwd function {name}", residuals, given)
            return [*residuals, *results]

        fwd.__name__ = name
        return fwd

    def _flat_bwd(self, fixed: tuple, fun: _Primal, avals: Sequence) -> Callable:
        name = function_name(self.bwd)
        title = f"{name} for function {function_name(self.fun)}"

        def bwd(*residuals_and_cts):
            n = fun.residual_tree.num_leaves
            residuals = fun.residual_tree.unflatten(residuals_and_cts[:n])
            cts = [symbolic(ct) for ct in residuals_and_cts[n:]]
            cts = called_at_own_lines(self.bwd, *fixed, residuals, fun.out_tree.unflatten(cts))
            cts = tuple(cts) if isinstance(cts, list) else cts
            return _checked_cotangents(title, cts, fun.in_tree, [a.to_ct_aval() for a in avals])

        bwd.__name__ = name
        return bwd


_disable_bwd_checks = config.option("disable_bwd_checks")


def _checked_cotangents(title: str, cts: tuple, in_tree: Any, avals: Sequence) -> list:
    """Returns the checked leaves of the cotangents; None, for an argument or a leaf, means zero."""
    given, treedef = tree.flatten(cts, lambda x: x is None)
    try:
        if not isinstance(cts, tuple):
            raise ValueError
        leaves = tree.broadcast_leaves(given, treedef, in_tree)
    except ValueError:
        raise TypeError(
            "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the "
            "args tuple of the primal function, and in particular must produce a tuple of length equal to "
            "the number of arguments to the primal function, but got bwd output structure "
            f"{tree.tree_structure(cts)} for primal input structure {in_tree}, from {title}."
        ) from None
    paths = functools.cache(lambda: _cotangent_paths(in_tree))
    rows = enumerate(zip(leaves, avals, strict=True))
    return [_checked_cotangent(lambda i=i: f"output{paths()[i]}", ct, a) for i, (ct, a) in rows]


def _cotangent_paths(in_tree: Any) -> list[str]:
    try:
        dummy = in_tree.unflatten([object()] * in_tree.num_leaves)
        return [tree.keystr(path) for path, _ in tree.tree_leaves_with_path(dummy)]
    except Exception:  # of a user's class that takes arrays only
        return list(map("".join, leaf_paths(in_tree)))


def _checked_cotangent(where: Callable[[], str], ct: Any, aval: Any) -> Any:
    """Returns one cotangent, for an argument of type `aval`. Raises ValueError for another type."""
    if ct is None or type(ct) is Zero:
        return Zero(aval)
    have = ct.aval if type(ct) is SymbolicZero else typeof(ct)
    if type(ct) is SymbolicZero and not _disable_bwd_checks.value and not same_types([have], [aval]):
        raise ValueError(
            "Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does not match the corresponding "
            f"input tangent shape/dtype: at {where()} the SymbolicZero had shape/dtype {have.str_short()} while the "
            f"corresponding input had shape/dtype {aval.str_short()}. Consider just returning a None here instead of "
            "a SymbolicZero object."
        )
    if type(ct) is SymbolicZero or aval.dtype == dtypes.float0 or have.dtype == dtypes.float0:
        return Zero(aval)
    kinds = [(a.shape, space_of(a), getattr(a, "manual_axis_type", None)) for a in (have, aval)]
    if kinds[0] != kinds[1] and not _disable_bwd_checks.value:
        what = "shapes" if have.shape != aval.shape else "memory spaces"
        what = "manual axis types" if kinds[0][:2] == kinds[1][:2] else what
        raise ValueError(
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal function, "
            f"but at {where()} the bwd rule produced an output of type {have.str_short()} corresponding to an input of "
            f"type {aval.str_short()}, so the {what} do not match. Return a cotangent of "
            "its argument's type."
        )
    return ct


def custom_gradient(fun: Callable[P, Any]) -> Callable[P, Any]:
    """Makes a function differentiable that returns its value together with its vjp function.

    `fun` returns a pair (value, vjp function). The vjp function takes a cotangent of the value and returns the
    cotangent of the argument, or a tuple of them if there are several.

    Example:
        >>> f = jax.custom_gradient(lambda x: (x**2, lambda ct: 5.0 * ct))
        >>> float(f(3.0)), float(jax.grad(f)(3.0))
        (9.0, 5.0)
    """

    @custom_vjp
    def wrapped_fun(*args, **kwargs):
        return fun(*args, **kwargs)[0]

    def fwd(*args, **kwargs):
        out, pullback = fun(*args, **kwargs)
        return out, _convert_pullback(pullback, out)

    def bwd(pullback, ct):
        cts = pullback(ct)
        return cts if isinstance(cts, tuple) else (cts,)

    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


def _convert_pullback(pullback: Callable, out: Any) -> tree.Partial:
    """Converts the vjp function of the result `out` to a pytree: the values that it closes over are the leaves."""
    leaves, out_tree = tree.flatten(out)
    flat = Flat(pullback, tree.treedef_tuple((out_tree,)))
    info = DebugInfo("custom_gradient", source_of(pullback))
    body = trace_flat(flat, [typeof(x).to_ct_aval() for x in leaves], info, as_consts)

    def converted(consts, ct):
        return body.out_tree.unflatten(eval_jaxpr(body.jaxpr, consts, *tree.tree_leaves(ct)))

    return tree.Partial(converted, body.closed.consts)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Returns the values in a tree of `CustomVJPPrimal`. Raises TypeError for any other leaf.

    Example:
        >>> from minijax.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
        >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, True), CustomVJPPrimal(2.0, False)])
        [1.0, 2.0]
    """
    return trees.tree_map(_value, tree, is_leaf=lambda x: type(x) is CustomVJPPrimal)


def _value(leaf: Any) -> Any:
    if type(leaf) is not CustomVJPPrimal:
        raise TypeError(f"custom_vjp_primal_tree_values: unexpected leaf type {type(leaf)}")
    return leaf.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Returns the zero tangents of a tree of values, arrays or `SymbolicZero`s; those of integers have dtype float0.

    Example:
        >>> jax.custom_derivatives.zero_from_primal(jnp.ones(2))
        Array([0., 0.], dtype=float32)
    """
    made = symbolic if symbolic_zeros else instantiate
    return trees.tree_map(lambda x: made(Zero.from_primal_value(x)), val)


@source.boundary
def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """Hoists the values that a function closes over and that may be differentiated: functions become free of tracers.

    Of the arguments only types and tree are used. The returned function raises TypeError for another tree.

    Example:
        >>> y = jnp.float32(3.0)
        >>> converted, hoisted = jax.closure_convert(lambda x: x * y, 1.0)
        >>> converted(2.0, *hoisted)
        Array(6., dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"closure_convert: expected a callable, got {fun!r}")
    leaves, in_tree = trees.flatten(example_args)
    info = DebugInfo("closure_convert", source_of(fun))
    body = trace_flat(Flat(fun, in_tree), [abstract(x) for x in leaves], info, as_consts)
    perturbed = Mask(map(_may_be_perturbed, body.closed.consts))
    fixed, hoisted = perturbed.partition(body.closed.consts)

    def converted_fun(*args_and_consts):
        n = len(args_and_consts) - len(hoisted)
        args, args_tree = trees.flatten(args_and_consts[:n])
        if args_tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the same Pytree structure as the "
                f"example arguments. Expected {in_tree}, but got {args_tree}"
            )
        consts = perturbed.merge(fixed, args_and_consts[n:])
        return body.out_tree.unflatten(eval_jaxpr(body.jaxpr, consts, *args))

    return converted_fun, hoisted


def _may_be_perturbed(x: Any) -> bool:
    """Returns whether a captured value may be perturbed by a differentiation that is running."""
    while type(x) is BatchTracer:
        x = x.val
    return isinstance(x, Tracer) and dtypes.issubdtype(x.aval.dtype, np.inexact)


class _Traced:
    """A function of pytrees like the arguments, traced to a jaxpr of (captured values, arguments)."""

    def __init__(self, fun: Callable, args: Sequence, of: Callable):
        leaves, in_tree = tree.flatten(args)
        info = DebugInfo("custom_root", source_of(of))
        self.body = trace_flat(Flat(fun, in_tree), [typeof(x) for x in leaves], info)

    def __call__(self, consts: Sequence, *args: Any) -> Any:
        results = eval_jaxpr(self.body.jaxpr, [], *consts, *tree.flatten(args)[0])
        return self.body.out_tree.unflatten(results)

    def check(self, name: str, like: str, expected: Any, is_pair: bool = False) -> None:
        """Raises TypeError if the tree of the result (of a pair: its first element) is not `expected`."""
        out_tree = self.body.out_tree
        if is_pair:
            if out_tree.node_data() is None or out_tree.node_data()[0] is not tuple or out_tree.num_nodes < 2:
                raise ValueError(
                    f"{name}() produced a pytree with structure {out_tree}, but a pytree tuple with auxiliary "
                    "output was expected because has_aux was set to True."
                )
            out_tree = out_tree.children()[0]
        if out_tree != expected:
            raise TypeError(f"{name}() output pytree structure must match {like}, got {out_tree} and {expected}.")


@source.boundary
def custom_root(
    f: Callable,
    initial_guess: Any,
    solve: Callable[[Callable, Any], Any],
    tangent_solve: Callable[[Callable, Any], Any],
    has_aux: bool = False,
) -> Any:
    """Finds a root of a function by a solver of the user's, with derivatives by the implicit function theorem.

    The solver is `solve(f, initial_guess)`; it is not differentiated. `tangent_solve(g, y)` solves g(x) = y for g, the
    linearization of `f` at the root. With `has_aux`, `solve` returns (root, aux).

    Example:
        >>> def newton(f, x):
        ...     return jax.lax.fori_loop(0, 20, lambda _, x: x - f(x) / jax.grad(f)(x), x)
        >>> root = lambda a: jax.lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> print(root(4.0), jax.grad(root)(4.0))
        2.0 0.25
    """
    guess_tree = tree.tree_structure(initial_guess)
    function = _Traced(f, (initial_guess,), f)
    function.check("f", "initial_guess", guess_tree)
    solver = _Traced(lambda x: solve(f, x), (initial_guess,), solve)
    solver.check("solve", "initial_guess", guess_tree, has_aux)

    def linear_solve(x, y):
        return tangent_solve(linearize(f, x)[1], y)

    tangent_solver = _Traced(linear_solve, (initial_guess, initial_guess), tangent_solve)
    tangent_solver.check("tangent_solve", "x", guess_tree)

    @custom_jvp
    def _custom_root(consts, guess):
        return solver(consts[1], guess)

    @_custom_root.defjvp
    def _root_jvp(primals, tangents):
        consts, const_tangents = primals[0], tangents[0][0]
        result = _custom_root(*primals)
        solution, *aux = result if has_aux else (result,)
        _, f_tangent = jvp(lambda c: function(c, solution), (consts[0],), (const_tangents,))
        tangent = tree.tree_map(neg, tangent_solver(consts[2], solution, f_tangent))
        if not has_aux:
            return result, tangent
        zeros = tree.tree_map(lambda x: zeros_like_aval(typeof(x)), aux)
        return result, (tangent, *zeros)

    return _custom_root([f.body.captured for f in (function, solver, tangent_solver)], initial_guess)
