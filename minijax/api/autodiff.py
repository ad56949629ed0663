"""Differentiation as users call it: grad, jvp, vjp, linearize, Jacobians."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from minijax.api.cotangents import DontWant, delivered
from minijax.api.jit import jit
from minijax.api.shapes import abstract
from minijax.api.vmap import vmap
from minijax.base import dtypes, source, tree
from minijax.base.mask import Mask
from minijax.base.util import dir_without
from minijax.ir import body, context
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from minijax.ir.primitive import UndefinedPrimal
from minijax.ir.refs import Ref
from minijax.ir.trace import eval_jaxpr
from minijax.ir.types import (
    ShapedArray,
    Zero,
    checked_type,
    is_float0,
    is_value,
    scalar,
    space_of,
    typed_value,
    typeof,
    varying_axes,
)
from minijax.partition.meshes import P, abstract_context
from minijax.partition.shardings import UNSPECIFIED, unsharded
from minijax.primitives import moving
from minijax.primitives.convert import convert, convert_element_type_p
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.elementwise import add, eq
from minijax.primitives.families import scalar_like
from minijax.primitives.moving import as_array_or_constant
from minijax.primitives.sharding import reshard_like
from minijax.primitives.structural import split
from minijax.primitives.zeros import cast_replicated_like, instantiate, zeros_like_aval
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.linearize import linearize_flat
from minijax.transforms.partial_eval import evaluated_and_staged
from minijax.transforms.prune import prune_closed
from minijax.transforms.transpose import backward

Args = ParamSpec("Args")
R = TypeVar("R")
Aux = TypeVar("Aux")


def _check_value(name: str, x: Any) -> None:
    if not is_value(x):
        raise TypeError(
            f"{name}: argument {x!r} of type {type(x)} is not a valid JAX type. Differentiate for arrays or numbers, "
            "and capture other values in the function."
        )
    try:
        checked_type(x)
    except TypeError as error:
        raise TypeError(f"{name}: argument {x!r} of type {type(x)} is not a valid JAX type. {error}") from None


class _Differentiable(body.Flat):
    """A flat function that checks its results, and records their number and the tree of the auxiliary output."""

    def __init__(self, fun: Callable, in_tree: Any, has_aux: bool = False):
        super().__init__(fun, in_tree)
        self.has_aux = has_aux
        self.count, self.aux_tree = 0, None

    def flattened(self, result):
        aux = []
        if self.has_aux:
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    "expected function with aux output to return a two-element tuple, but got type "
                    f"{type(result)} with value {result!r} from {self.__name__} (has_aux=True)"
                )
            aux, self.aux_tree = tree.flatten(result[1])
            result = result[0]
        leaves = super().flattened(result)
        for x in leaves:
            _check_value(f"the result of {self.__name__}", x)
        self.count = len(leaves)
        return [*leaves, *aux]

    def unflattened(self, leaves: Sequence) -> tuple:
        """Returns (result,), or (result, aux) with `has_aux`, in their trees."""
        out = self.out_tree.unflatten(leaves[: self.count])
        return (out, self.aux_tree.unflatten(leaves[self.count :])) if self.has_aux else (out,)

    def linearized(self, xs: Sequence, purpose: str) -> tuple[list, list[bool], Jaxpr, list]:
        """Linearizes at `xs`: (results, which of them have nonzero tangents, linear jaxpr, its constants)."""
        run = functools.partial(context.under, context.JVP, self)
        leaves, nonzeros, jaxpr, consts = linearize_flat(run, xs, None, DebugInfo(purpose, body.source_of(self.fun)))
        nonzeros = nonzeros[: self.count]
        used = [i < sum(nonzeros) for i in range(len(jaxpr.outvars))]
        if not all(used):
            closed, _ = prune_closed(ClosedJaxpr(jaxpr, consts), used, True)
            jaxpr, consts = closed.jaxpr, closed.consts
        return leaves, nonzeros, jaxpr, consts


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence, tangents: Sequence, has_aux: Literal[False] = ...
) -> tuple[R, Any]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]], primals: Sequence, tangents: Sequence, has_aux: Literal[True]
) -> tuple[R, Any, Aux]: ...
@source.boundary
def jvp(fun: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False) -> tuple[Any, ...]:
    """Computes the value of a function and its directional derivative, in forward mode.

    One pass through `fun` costs a small multiple of a call, and needs no memory for residuals. Prefer it to `vjp`
    for functions with fewer inputs than outputs.

    Args:
        fun: A differentiable function of arrays, or of pytrees of arrays.
        primals: A tuple or list of the positional arguments at which `fun` is evaluated.
        tangents: The direction: a tuple or list with trees, shapes and dtypes of `primals`. Tangents of integers and
            booleans have dtype `jax.dtypes.float0`.
        has_aux: If true, `fun` returns a pair (output, aux), and aux is not differentiated.

    Returns:
        A pair (output, tangent of the output); with `has_aux` a triple that ends with aux.

    Raises:
        TypeError: If primals and tangents differ in tree or dtype.
        ValueError: If they differ in shape.

    See also: `jax.linearize`, `jax.vjp`, `jax.jacfwd`.

    Example:
        >>> value, slope = jax.jvp(lambda x: x**3, (2.0,), (1.0,))
        >>> float(value), float(slope)
        (8.0, 12.0)
    """
    body.check_callable(fun, "jax.jvp")
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    xs, in_tree = tree.flatten(tuple(primals))
    ts, tangent_tree = tree.flatten(tuple(tangents))
    if in_tree != tangent_tree or isinstance(primals, tuple) != isinstance(tangents, tuple):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure "
            f"{tree.tree_structure(primals)} whereas tangents have tree structure {tree.tree_structure(tangents)}. "
            "Pass a tangent for each primal, in the same containers."
        )
    for x, t in zip(xs, ts, strict=True):
        _check_value("jvp", x)
        _check_tangent(x, t)
    flat = _Differentiable(fun, in_tree, has_aux)
    ts = [Zero(typeof(t)) if is_float0(typeof(t)) else t for t in ts]
    leaves, out_ts = jvp_flat(functools.partial(context.under, context.JVP, flat), xs, ts)
    out, *aux = flat.unflattened(leaves)
    return (out, flat.out_tree.unflatten(map(instantiate, out_ts[: flat.count])), *aux)


def _check_tangent(x: Any, t: Any) -> None:
    want, have = typeof(x).to_tangent_aval(), typeof(t)
    if want.is_high or have.is_high:
        if want != have:
            raise TypeError(f"jax.jvp: the tangent of a value of type {typeof(x)} is one of type {want}, not of {have}")
        return
    if want.dtype != have.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of "
            f"int/bool primal dtype the tangent dtype must be float0. Got primal dtype {typeof(x).dtype} and "
            f"so expected tangent dtype {want.dtype}, but got tangent dtype {have.dtype} instead. "
            "Convert the tangent with `astype`."
        )
    if want.shape != have.shape:
        raise ValueError(
            f"jvp called with different primal and tangent shapes; Got primal shape {want.shape} and tangent "
            f"shape as {have.shape}"
        )


@overload
def linearize(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = ...) -> tuple[R, Callable[..., Any]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., Any], Aux]: ...
@source.boundary
def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple[Any, Callable] | tuple[Any, Callable, Any]:
    """Computes the value of a function and its derivative there, as a linear function of tangents.

    The nonlinear part runs once; each call of the linear function then costs less than `jax.jvp`.

    Args:
        fun: A differentiable function of arrays, or of pytrees of arrays.
        *primals: The arguments at which `fun` is linearized.
        has_aux: If true, `fun` returns a pair (output, aux), and aux is not differentiated.

    Returns:
        A pair (output, function from tangents of `primals` to the tangent of the output); with `has_aux` also aux.

    See also: `jax.jvp`, `jax.linear_transpose`.

    Example:
        >>> value, f_jvp = jax.linearize(jnp.sin, 0.0)
        >>> float(value), float(f_jvp(2.0))
        (0.0, 2.0)
    """
    body.check_callable(fun, "jax.linearize")
    xs, in_tree = tree.flatten(primals)
    flat = _Differentiable(fun, in_tree, has_aux)
    leaves, nonzeros, jaxpr, consts = flat.linearized(xs, "linearize")
    out_tree, avals, in_avals = flat.out_tree, [typeof(x) for x in leaves[: flat.count]], [typeof(x) for x in xs]
    out, *aux = flat.unflattened(leaves)
    push = functools.partial(_pushed, jaxpr, in_tree, in_avals, out_tree, avals, Mask(nonzeros))
    return (out, tree.Partial(push, consts), *aux)


def _pushed(
    jaxpr: Jaxpr, in_tree: Any, in_avals: list, out_tree: Any, avals: list, nonzeros: Mask, consts: list, *tangents: Any
) -> Any:
    ts, tangent_tree = tree.flatten(tangents)
    if tangent_tree != in_tree:
        raise TypeError(
            f"linearized function called on tangents of another tree than the primals: {tangent_tree} "
            f"instead of {in_tree}"
        )
    for a, t in zip(in_avals, ts, strict=True):
        if not _is_same_type(typeof(t), a.to_tangent_aval()):
            missing = tuple(sorted(map(str, varying_axes(typeof(t)) - varying_axes(a))))
            advice = (
                f". This might be fixed by applying `jax.lax.pcast(..., {missing}, to='varying')` to the primal value "
                "passed to `jax.linearize`"
            )
            raise ValueError(
                "linearized function called on tangent values inconsistent with the original primal "
                f"values: got tangent aval {typeof(t)} for primal aval {a}{advice if missing else ''}"
            )
    zeros = (instantiate(Zero(a.to_tangent_aval())) for a in nonzeros.unmarked(avals))
    return out_tree.unflatten(nonzeros.merge(zeros, eval_jaxpr(jaxpr, consts, *ts)))


class VJP:
    """The function from the result's cotangent to the arguments' cotangents, as a pytree of its residuals."""

    __dir__ = dir_without("consts nonzeros out_avals refs unwanted")

    def __init__(self, fun, in_tree, out_tree, out_avals, nonzeros, jaxpr, unwanted, consts, refs=()):
        self.fun, self.in_tree, self.refs, self.unwanted = fun, in_tree, refs, unwanted
        self.out_tree, self.out_avals, self.nonzeros = out_tree, out_avals, nonzeros
        self.jaxpr, self.consts = jaxpr, consts

    def _parts(self):
        rest = self.fun, self.in_tree, self.out_tree, tuple(self.out_avals), tuple(self.nonzeros), self.jaxpr
        return (self.consts, *([self.refs] if self.refs else ())), (*rest, self.unwanted)

    def with_refs(self, *maybe_ct_refs: Any) -> VJP:
        """Returns a VJP that accumulates the cotangents of some arguments into the references given for them.

        Those results are a `jax.ad.GradRef`. The cotangent of an argument with `jax.ad.DontWant` is not computed: the
        result is a `jax.ad.DidntWant`. Any other, such as `jax.ad.GradValue`, gives the cotangent. Raises ValueError if
        the tree of references is not that of the arguments.
        """
        refs, refs_tree = tree.flatten(maybe_ct_refs)
        if refs_tree != self.in_tree:
            raise ValueError(f"with_refs: the tree {refs_tree} of references is not the arguments', {self.in_tree}")
        unwanted = tuple([isinstance(x, DontWant) for x in refs])
        refs = [x if isinstance(x, Ref) else None for x in refs]
        return VJP(*self._parts()[1][:-1], unwanted, self.consts, refs)

    def __repr__(self):
        return f"VJP(fun={self.jaxpr}, in_tree={self.in_tree}, out_tree={self.out_tree}, residuals={self.consts})"

    def __call__(self, *args):
        if len(args) != 1:
            raise TypeError(
                f"The function returned by jax.vjp applied to {body.function_name(self.fun)} was called with "
                f"{len(args)} arguments, but functions returned by jax.vjp must be called with a single "
                f"argument corresponding to the single value returned by {body.function_name(self.fun)}."
            )
        cts, ct_tree = tree.flatten(args[0])
        if ct_tree != self.out_tree:
            raise ValueError(
                f"unexpected tree structure of the argument to the VJP function of {body.function_name(self.fun)}: the "
                f"cotangents have tree {ct_tree}, the result has {self.out_tree}. Pass a cotangent for each result, in "
                "the same containers."
            )
        for ct, a in zip(cts, self.out_avals, strict=True):
            self._check(ct, a)
        linear = [UndefinedPrimal(v.aval) for v in self.jaxpr.invars]
        nonzero_cts = Mask(self.nonzeros).marked(cts)
        avals = [a.to_ct_aval() for a in Mask(self.nonzeros).marked(self.out_avals)]
        nonzero_cts = [Zero(a) if is_float0(a) else ct for ct, a in zip(nonzero_cts, avals, strict=True)]
        if not self.refs:
            results = context.under(context.TRANSPOSE, backward, self.jaxpr, self.consts, linear, nonzero_cts)
            return self.in_tree.unflatten(list(map(instantiate, results)))
        dropped = Mask(self.unwanted).marked(self.jaxpr.invars)
        results = context.under(context.TRANSPOSE, backward, self.jaxpr, self.consts, linear, nonzero_cts, dropped)
        return self.in_tree.unflatten(list(map(delivered, results, self.refs, self.unwanted)))

    def _check(self, ct, aval):
        want, have = aval.to_ct_aval(), typeof(ct)
        # The cotangent of an integer may have any dtype: it is zero.
        comparable = have.update(dtype=want.dtype) if is_float0(want) else have
        if not _is_same_type(want, comparable):
            raise ValueError(
                "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                f"{have.str_short()}, but expected {want.str_short()} because the corresponding output of "
                f"the differentiated function {body.function_name(self.fun)} had JAX type {aval.str_short()}. "
                "Pass a cotangent of the type of the result."
            )


def _differ_in_sharding(a: ShapedArray, b: ShapedArray) -> bool:
    """Returns whether both types have a sharding over Explicit axes, and these differ."""
    return a.has_mesh and b.has_mesh and a.entries != b.entries


def _is_same_type(a: Any, b: Any) -> bool:
    if a.is_high or b.is_high:
        return a == b
    if type(a) is not type(b):
        return False
    if type(a) is ShapedArray and (a.reduction_state != b.reduction_state or _differ_in_sharding(a, b)):
        return False
    return (a.shape, a.dtype, space_of(a), varying_axes(a)) == (b.shape, b.dtype, space_of(b), varying_axes(b))


tree.register_pytree_node(VJP, VJP._parts, lambda rest, saved: VJP(*rest, *saved))


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = ..., reduce_axes: Sequence = ...
) -> tuple[R, Callable[..., Any]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True], reduce_axes: Sequence = ...
) -> tuple[R, Callable[..., Any], Aux]: ...
@source.boundary
def vjp(
    fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Sequence = ()
) -> tuple[Any, Callable] | tuple[Any, Callable, Any]:
    """Computes the value of a function, and the function that pulls cotangents back to its arguments.

    This is reverse mode: `fun` runs once and keeps residuals, and one call of the returned function gives the
    product of a cotangent with the whole Jacobian. `jax.grad` is the special case of a scalar result.

    Args:
        fun: A differentiable function of arrays, or of pytrees of arrays.
        *primals: The arguments at which `fun` is evaluated.
        has_aux: If true, `fun` returns a pair (output, aux), and aux is not differentiated.
        reduce_axes: Not supported; leave it empty.

    Returns:
        A pair (output, vjp function); with `has_aux` a triple that ends with aux. The vjp function takes one cotangent
        with the tree, shapes and dtypes of the output, and returns a tuple with a cotangent for each of `primals`.

    Raises:
        ValueError: By the vjp function, if the cotangent does not have the type of the output.

    Example:
        >>> value, f_vjp = jax.vjp(lambda x, y: x * y, 2.0, 5.0)
        >>> [float(ct) for ct in f_vjp(1.0)]
        [5.0, 2.0]
    """
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to vjp is deprecated")
    body.check_callable(fun, "jax.vjp")
    return _vjp(fun, primals, has_aux)


def _vjp(fun: Callable, primals: Sequence, has_aux: bool) -> Any:
    xs, in_tree = tree.flatten(tuple(primals))
    for x in xs:
        _check_value("vjp", x)
    xs = list(map(typed_value, xs))
    flat = _Differentiable(fun, in_tree, has_aux)
    leaves, nonzeros, jaxpr, consts = flat.linearized(xs, "vjp")
    # jax orders residuals with the arguments first.
    places = {id(x): i for i, x in enumerate(xs)}
    order = sorted(range(len(consts)), key=lambda i: places.get(id(consts[i]), len(xs)))
    if order != list(range(len(consts))):
        jaxpr = jaxpr.replace(constvars=[jaxpr.constvars[i] for i in order])
        consts = [consts[i] for i in order]
    out_avals = [typeof(x) for x in leaves[: flat.count]]
    out, *aux = flat.unflattened(leaves)
    return (out, VJP(fun, in_tree, flat.out_tree, out_avals, nonzeros, jaxpr, (), consts), *aux)


@source.boundary
def grad(
    fun: Callable[Args, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence = (),
) -> Callable[Args, Any]:
    """Creates a function that computes the gradient of a scalar-valued function.

    The gradient is computed in reverse mode: it costs a small multiple of one call of `fun`, whatever the number of
    inputs. `fun` must be written in terms of `jax.numpy` and other traceable operations. `grad` can be nested for
    higher derivatives, and composed with `jax.jit` and `jax.vmap`.

    Args:
        fun: A function that returns a scalar: an array of shape () with a floating-point dtype. Its arguments at
            `argnums` are arrays, numbers, or pytrees of these.
        argnums: The number, or a sequence of numbers, of the positional arguments to differentiate by. By default 0,
            the first one. Negative numbers count from the end.
        has_aux: If true, `fun` returns a pair (value, aux), and aux is returned as it is.
        holomorphic: If true, arguments and result are complex, and `fun` is differentiated as a holomorphic function.
        allow_int: If true, integer and boolean arguments are allowed; their gradients have dtype `float0`.
        reduce_axes: Not supported; leave it empty.

    Returns:
        A function of the same arguments as `fun`. It returns the gradient, which has the tree and shapes of the
        argument; a tuple of gradients if `argnums` is a sequence; and (gradient, aux) with `has_aux`.

    Raises:
        TypeError: By the returned function, if the result of `fun` is not a real scalar, or if an argument to
            differentiate by has an integer dtype.

    See also: `jax.value_and_grad`, `jax.vjp`, `jax.jacrev`, `jax.hessian`.

    Example:
        >>> float(jax.grad(jnp.tanh)(0.0))
        1.0
        >>> loss = lambda params, x: jnp.sum((params["w"] * x + params["b"]) ** 2)
        >>> jax.grad(loss)({"w": 2.0, "b": 1.0}, jnp.array([1.0, 2.0]))
        {'b': Array(16., dtype=float32, weak_type=True), 'w': Array(26., dtype=float32, weak_type=True)}
    """
    both = _evaluator(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    def gradient(*args, **kwargs):
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return _named(
        gradient, fun, f"Gradient of {body.function_name(fun)} with respect to positional argument(s) {argnums}."
    )


def _named(function: Callable, fun: Callable, doc: str) -> Callable:
    return body.named_after(source.boundary(function), fun, doc)


@source.boundary
def value_and_grad(
    fun: Callable[Args, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence = (),
) -> Callable[Args, tuple[R, Any]]:
    """Creates a function that computes the value of a scalar-valued function and its gradient in one pass.

    The arguments are those of `jax.grad`. Training loops use it to report the loss without a second evaluation.

    Returns:
        A function of the same arguments as `fun`. It returns (value, gradient), or ((value, aux), gradient) with
        `has_aux`. The gradient is a tuple if `argnums` is a sequence.

    Raises:
        TypeError: As `jax.grad`.

    Example:
        >>> value, gradient = jax.value_and_grad(lambda x: jnp.sum(x**2))(jnp.array([1.0, 2.0]))
        >>> print(value, gradient)
        5.0 [2. 4.]
    """
    evaluate = _evaluator(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    return _named(
        evaluate, fun, f"Value and gradient of {body.function_name(fun)} with respect to argument(s) {argnums}."
    )


def _evaluator(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes) -> Callable:
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to grad is deprecated")
    body.check_callable(fun, "jax.grad (or jax.value_and_grad)")
    nums = _numbers_of(argnums, "jax.grad (or jax.value_and_grad)")

    def evaluate(*args, **kwargs):
        if nums and max(nums) >= len(args):
            raise TypeError(
                f"differentiating with respect to {argnums=} requires at least {max(nums) + 1} positional "
                f"arguments to be passed by the caller, but got only {len(args)} positional arguments. "
                "Pass this argument by position, or change argnums."
            )
        partial, chosen = _restricted_to(fun, nums, args, kwargs)
        for x in tree.tree_leaves(chosen):
            _check_input("grad", x, holomorphic, allow_int)
        value, pullback, *aux = _vjp(partial, chosen, has_aux)
        _check_scalar(value)
        _check_output("grad", value, holomorphic)
        cts = pullback(_unit_cotangent(typeof(value)))
        g = tuple(cts) if isinstance(argnums, Sequence) else cts[0]
        return ((value, *aux) if has_aux else value), g

    return evaluate


def _unit_cotangent(aval: ShapedArray) -> Any:
    """Returns the cotangent 1 that gradients start from, weakly typed if the value is."""
    ct_aval = aval.to_ct_aval()
    if any(ct_aval.manual_axis_type.reduction):
        raise ValueError(
            f"grad: the gradient of a value of type {aval.str_short()} would begin with a 1, expected "
            f"{ct_aval.str_short()}: convert the value by `jax.lax.pcast` or `jax.lax.psum`"
        )
    one = as_array_or_constant(cast_replicated_like(scalar(1, aval.dtype, aval.weak_type), aval))
    return reshard_like(one, ct_aval)


def _restricted_to(fun: Callable, nums: Sequence[int], args: Sequence, kwargs: dict) -> tuple[Callable, tuple]:
    """Returns `fun` as a function of the positional arguments `nums`, and those arguments."""
    positions = _positions(nums, len(args))
    chosen = tuple(args[i] for i in positions)
    if not kwargs and positions == list(range(len(args))):
        return fun, chosen

    def partial(*xs):
        full = list(args)
        for i, x in zip(positions, xs, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return functools.update_wrapper(partial, fun, assigned=("__name__", "__module__")), chosen


def _numbers_of(argnums: Any, name: str) -> tuple:
    nums = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)
    if not all([hasattr(n, "__index__") for n in nums]):
        raise TypeError(f"{name}: argnums must be an int or a sequence of ints, got {argnums!r}")
    return nums


def _positions(nums: Sequence[int], count: int) -> list[int]:
    for n in nums:
        if not -count <= n < count:
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have value greater than or "
                f"equal to -len(args) and less than len(args), but got value {n} for len(args) == {count}."
            )
    return [n + count if n < 0 else n for n in nums]


def _check_input(name: str, x: Any, holomorphic: bool, allow_int: bool) -> None:
    _check_value(name, x)
    if typeof(x).is_high:
        return
    dtype = typeof(x).dtype
    dtypes.check_for_programs(dtype)
    if holomorphic:
        _check_complex(name, "input", dtype)
    elif dtypes.issubdtype(dtype, dtypes.extended) or dtypes.issubdtype(dtype, np.integer) or dtype == np.bool_:
        if not allow_int:
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
                f"np.inexact), but got {dtype.name}. If you want to use Boolean- or integer-valued inputs, "
                "use vjp or set allow_int to True."
            )
    elif not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(f"{name} requires numerical-valued inputs, but got {dtype.name}.")


_REAL = "Convert them with `astype(complex)`, or leave out holomorphic."


def _check_complex(name: str, which: str, dtype: np.dtype) -> None:
    if not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{name} with holomorphic=True requires {which}s with complex dtype, but got {dtype.name}. {_REAL}"
        )


def _check_real(name: str, which: str, dtype: np.dtype, advice: str) -> None:
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"{name} requires real-valued {which}s ({which} dtype that is a sub-dtype of np.floating), but got "
            f"{dtype.name}. For {advice} directly."
        )


_HOLOMORPHIC = (
    "holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic functions involving"
)


def _check_scalar(x: Any) -> None:
    text = "Gradient only defined for scalar-output functions. Output"
    if not is_value(x):
        raise TypeError(f"{text} was {x}. Return a scalar; with has_aux=True, the pair of it and other results.")
    if isinstance(x, Ref):
        raise TypeError(f"{text} had abstract value {typeof(x)}.")
    if typeof(x).shape:
        raise TypeError(
            f"{text} had shape: {typeof(x).shape}. A sum or a mean makes a scalar of it; jax.jacrev and jax.jacfwd "
            "take derivatives of arrays."
        )


def _check_output(name: str, x: Any, holomorphic: bool) -> None:
    dtype = typeof(x).dtype
    if holomorphic:
        _check_complex(name, "output", dtype)
    elif dtypes.is_complex(dtype):
        _check_real(name, "output", dtype, f"{_HOLOMORPHIC} complex outputs, use jax.vjp")
    else:
        _check_real(name, "output", dtype, "differentiation of functions with integer outputs, use jax.vjp")


@source.boundary
def jacfwd(
    fun: Callable[Args, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[Args, Any]:
    """Creates a function that computes the Jacobian of a function in forward mode, column by column.

    It pushes all unit vectors of the input through `fun` at once, by `jax.vmap`. This suits Jacobians with more rows
    than columns, that is functions with more outputs than inputs.

    Args:
        fun: A differentiable function of arrays, or of pytrees of arrays.
        argnums, has_aux, holomorphic: As for `jax.grad`.

    Returns:
        A function of the same arguments as `fun`. It returns an array of shape `(*output shape, *input shape)`; for
        pytrees, the tree of the output with the tree of the input at each leaf. With `has_aux`, it returns
        (Jacobian, aux).

    See also: `jax.jacrev`, `jax.hessian`, `jax.jvp`.

    Example:
        >>> print(jax.jacfwd(lambda x: jnp.array([x[0] * x[1], x[1]]))(jnp.array([2.0, 3.0])))
        [[3. 2.]
         [0. 1.]]
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, False, _forward_columns)


@source.boundary
def jacrev(
    fun: Callable[Args, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Args, Any]:
    """Creates a function that computes the Jacobian of a function in reverse mode, row by row.

    It pulls all unit vectors of the output back through `fun` at once, by `jax.vmap`. This suits Jacobians with more
    columns than rows, that is functions with more inputs than outputs.

    Args:
        fun: A differentiable function of arrays, or of pytrees of arrays.
        argnums, has_aux, holomorphic, allow_int: As for `jax.grad`.

    Returns:
        A function of the same arguments as `fun`, whose results are those of `jax.jacfwd`.

    See also: `jax.jacfwd`, `jax.hessian`, `jax.vjp`.

    Example:
        >>> print(jax.jacrev(lambda x: jnp.array([x[0] * x[1], x[1]]))(jnp.array([2.0, 3.0])))
        [[3. 2.]
         [0. 1.]]
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, allow_int, _reverse_rows)


def jacobian(
    fun: Callable[Args, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Args, Any]:
    """Creates a function that computes the Jacobian of a function in reverse mode; an alias of `jax.jacrev`.

    Example:
        >>> jax.jacobian(lambda x: x**2)(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


def _jacobian(fun, argnums, has_aux, holomorphic, allow_int, make) -> Callable:
    body.check_callable(fun, "jax.jacfwd (or jax.jacrev)")
    nums = _numbers_of(argnums, "jax.jacfwd (or jax.jacrev)")

    def jacobian_of(*args, **kwargs):
        partial, chosen = _restricted_to(fun, nums, args, kwargs)
        name = "jacfwd" if make is _forward_columns else "jacrev"
        for x in tree.tree_leaves(chosen):
            if make is _forward_columns and not holomorphic:
                _check_forward_input(x)
            else:
                _check_input(name, x, holomorphic, allow_int)
        jac, *aux = make(partial, chosen, has_aux, holomorphic, not isinstance(argnums, Sequence))
        return (jac, *aux) if has_aux else jac

    return _named(jacobian_of, fun, f"Jacobian of {body.function_name(fun)} with respect to argument(s) {argnums}.")


def _check_forward_input(x: Any) -> None:
    _check_value("jacfwd", x)
    _check_real("jacfwd", "input", typeof(x).dtype, f"{_HOLOMORPHIC} complex inputs or integer inputs, use jax.jvp")


def _basis(value: Any) -> Any:
    """Returns the standard basis of the space of a tree of arrays, stacked along a new leading axis."""
    leaves, treedef = tree.flatten(value)
    sizes = [typeof(x).size for x in leaves]
    dtype = dtypes.result_type(*leaves) if leaves else np.dtype(np.float32)
    ndim = sum(sizes)
    rows, columns = (broadcasted_iota(dtypes.default_int_dtype(), (ndim, ndim), i) for i in (0, 1))
    identity = convert(eq(add(rows, scalar_like(rows, 0)), columns), dtype)
    parts = []
    for x, block in zip(leaves, split(identity, sizes, 1), strict=True):
        aval = getattr(typeof(x), "inner_aval", typeof(x))
        block = moving.reshape_to(block, (ndim, *aval.shape))
        # With a sharding given, the conversion is recorded in the jaxpr even if it changes nothing.
        sharding: Any = UNSPECIFIED
        if aval.has_mesh and abstract_context() is not None:
            sharding = aval.own_sharding.update(spec=P(None, *aval.own_sharding.spec))
        params = dict(new_dtype=aval.dtype, weak_type=aval.weak_type, sharding=sharding)
        parts.append(cast_replicated_like(convert_element_type_p.bind(block, **params), aval))
    return treedef.unflatten(parts)


def _forward_columns(fun, chosen, has_aux, holomorphic, single):
    def push(tangents):
        return jvp(fun, chosen, tangents, has_aux)

    out_axes = (None, -1, None) if has_aux else (None, -1)
    value, columns, *aux = vmap(push, out_axes=out_axes)(_basis(chosen))
    if holomorphic:
        tree.tree_map(lambda y: _check_output("jacfwd", y, True), value)
    example = chosen[0] if single else chosen
    return (tree.tree_map(lambda y, rows: _unraveled(example, rows, -1, y), value, columns), *aux)


def _reverse_rows(fun, chosen, has_aux, holomorphic, single):
    value, pullback, *aux = _vjp(fun, chosen, has_aux)
    tree.tree_map(lambda y: _check_output("jacrev", y, holomorphic), value)
    rows = vmap(pullback)(_basis(value))
    primals, rows = (chosen[0], rows[0]) if single else (chosen, rows)
    jac = tree.tree_map(lambda x, row: _unraveled(value, row, 0, x), primals, rows)
    return (tree.tree_transpose(tree.tree_structure(rows), tree.tree_structure(value), jac), *aux)


def _unraveled(example: Any, array: Any, axis: int, like: Any) -> Any:
    """Splits the axis of `array` that runs over all elements of `example` into its tree; dtypes are that of `like`."""
    leaves, treedef = tree.flatten(example)
    aval, shape = typeof(like), typeof(array).shape
    axis %= len(shape)
    if typeof(array).dtype == dtypes.float0:
        array = zeros_like_aval(ShapedArray(shape, aval.dtype, aval.weak_type))
    parts = split(array, [typeof(x).size for x in leaves], axis)
    shapes = [(*shape[:axis], *typeof(x).shape, *shape[axis + 1 :]) for x in leaves]
    return treedef.unflatten([_with_dtype(moving.reshape_to(x, s), aval) for x, s in zip(parts, shapes, strict=True)])


def _with_dtype(x: Any, aval: ShapedArray) -> Any:
    """Converts `x` to the dtype of `aval`; records an equation for equal dtypes too if just one type has a mesh."""
    have = typeof(x)
    if have.has_mesh == aval.has_mesh:
        return convert(x, aval.dtype, aval.weak_type)
    sharding = unsharded(have.ndim) if have.has_mesh else UNSPECIFIED
    return convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type, sharding=sharding)


@source.boundary
def hessian(
    fun: Callable[Args, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[Args, Any]:
    """Creates a function that computes the Hessian of a function, all its second derivatives.

    It is `jax.jacfwd` of `jax.jacrev`. For a function of n numbers it needs memory for n * n numbers; for the product
    of a Hessian and a vector, use `jax.jvp` of `jax.grad` instead. The arguments are those of `jax.jacfwd`.

    Returns:
        A function of the same arguments as `fun`. It returns an array of shape `(*output, *input, *input)`, or trees.

    Example:
        >>> print(jax.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([2.0, 3.0])))
        [[6. 4.]
         [4. 0.]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


@source.boundary
def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence = ()) -> Callable:
    """Transposes a function that is linear in all its arguments.

    Of `primals` only trees, shapes and dtypes are used; they may be `jax.ShapeDtypeStruct`s. Returns a function that
    takes a cotangent of the output and returns a tuple of cotangents of the arguments. It raises TypeError if the
    function is not linear in arrays of floats.

    Example:
        >>> transposed = jax.linear_transpose(lambda x: 3.0 * x, 1.0)
        >>> [float(ct) for ct in transposed(2.0)]
        [6.0]
    """
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to transpose is deprecated")
    body.check_callable(fun, "jax.linear_transpose")
    xs, in_tree = tree.flatten(primals)
    avals = [abstract(x) for x in xs]
    info = body.debug_info(fun, "linear_transpose", in_tree)
    closed, _, out_tree = body.trace_flat(body.Flat(fun, in_tree), avals, info, body.as_consts)
    ins, outs = ([a.dtype for a in types] for types in (avals, closed.out_avals))
    if not any(all(dtypes.issubdtype(d, k) for d in (*ins, *outs)) for k in (np.inexact, np.integer)):
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer "
            f"functions, but got {ins} -> {outs}."
        )

    # An equation may have results that are known, such as the primal ones of a jvp, and linear ones.
    closed, residuals = evaluated_and_staged(closed)
    jaxpr = closed.jaxpr

    @source.boundary
    def transposed_fun(consts, out_cotangent):
        cts, ct_tree = tree.flatten(out_cotangent)
        if ct_tree != out_tree:
            raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got {ct_tree}")
        for c, v in zip(cts, jaxpr.outvars, strict=True):
            if not _is_same_type(typeof(c), v.aval):
                raise TypeError(f"cotangent type does not match function output, expected {v.aval} but got {typeof(c)}")
        operands = [*consts[len(closed.consts) :], *[UndefinedPrimal(a) for a in avals]]
        known = consts[: len(closed.consts)]
        results = context.under(context.TRANSPOSE, backward, jaxpr, known, operands, cts)[len(residuals) :]
        return in_tree.unflatten(
            [c if type(c) is np.ndarray else as_array_or_constant(c) for c in map(instantiate, results)]
        )

    return tree.Partial(transposed_fun, [*closed.consts, *residuals])


@source.boundary
def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """Splits reverse mode into two functions: a forward and a backward pass.

    `fwd(*args)` returns (result, residuals), and `bwd(residuals, cotangent)` the cotangents of the arguments `argnums`.
    With `has_aux`, `fun` returns (result, aux), and `fwd` (result, residuals, aux). Unlike the function that `jax.vjp`
    returns, `bwd` is the same for all calls, which `jax.jit` compiles once.

    Example:
        >>> forward, backward = jax.fwd_and_bwd(lambda x: x**2, argnums=0)
        >>> y, residuals = forward(3.0)
        >>> y, backward(residuals, 1.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    body.check_callable(fun, "jax.fwd_and_bwd")
    nums = tuple(argnums) if isinstance(argnums, Sequence) else (operator.index(argnums),)

    def fwd(*args):
        return _vjp(*_restricted_to(fun, nums, args, {}), has_aux)

    def bwd(residuals, ct):
        cts = residuals(ct)
        return tuple(cts) if isinstance(argnums, Sequence) else cts[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
