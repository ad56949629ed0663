"""User-defined operations, with an expansion and rules, on arrays or on values of user-defined types."""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from minijax.base import tree
from minijax.base.mask import Mask
from minijax.ir.primitive import Axis, Primitive, is_undefined_primal
from minijax.ir.refs import REF_EFFECT, AbstractRef, is_ref
from minijax.ir.types import Aval, Ct, Val, Zero, hi_classes, is_float0, typeof
from minijax.primitives.zeros import add_any, instantiate, nonzero_mask
from minijax.transforms.batch import batch_flat, fit_cotangent, move_batch_dim, with_axis
from minijax.transforms.jvp import with_zeros


class GradAccum:
    """Accumulates cotangents of one operand of type `aval`."""

    def __init__(self, aval: Aval):
        self.aval = aval
        self.total: Ct = Zero(aval)

    def accum(self, ct: Ct) -> None:
        """Adds a cotangent."""
        raise NotImplementedError(f"{type(self).__name__}.accum")

    def __repr__(self):
        return f"{type(self).__name__}({self.aval.str_short()})"


class ValAccum(GradAccum):
    """Holds the sum of the accumulated cotangents."""

    total: Any

    def accum(self, ct: Any) -> None:
        if type(ct) is not Zero and ct is not None:
            self.total = ct if type(self.total) is Zero else add_any(self.total, ct)


class NullAccum(GradAccum):
    """Discards the cotangents of an operand that is not differentiated."""

    def accum(self, ct):
        pass


def _required_rule(what: str, *names: str) -> Callable:
    """A rule that raises NotImplementedError unless a subclass overrides it."""
    wanted = " or ".join([f"`{name}`" for name in names])

    def rule(self, *args):
        raise NotImplementedError(f"for {what} support, subclass {type(self)} must implement {wanted}")

    return rule


class VJPHiPrimitive:
    """An operation with the types and parameters of one call.

    A subclass's `__init__` sets `in_avals`, a tuple of types or trees of them, `out_aval` and the dict `params`, whose
    items become attributes, and then calls this `__init__`. A subclass defines:

    - for evaluation, `expand`, (*arguments) -> result
    - for `grad`, `vjp_fwd`, (flags of the differentiated arguments, *arguments) -> (result, residuals), and either
      `vjp_bwd_retval`, (residuals, cotangent) -> tuple of cotangents, or `vjp_bwd`, (residuals, cotangent,
      *accumulators), which calls their `accum`
    - for `linearize`, `lin` and `linearized`
    - for `jvp`, a `jvp` of tuples; linear operations that it calls need `transpose`, (cotangent, *accumulators)
    - for `vmap`, `batch`, (axis, arguments, their dims) -> (result, its dims), or `batch_dim_rule`, (axis, dims of the
      arguments) -> dims of the result
    """

    in_avals: tuple
    out_aval: Any
    params: dict[str, Any]
    effects: Any = frozenset()

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self.overrides("vjp_bwd") and self.overrides("vjp_bwd_retval"):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`")
        self.in_avals_flat, self.in_tree = tree.flatten(tuple(self.in_avals))
        self.out_avals_flat, self.out_tree = tree.flatten(self.out_aval)
        self.__dict__.update(self.params)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        hi_classes.add(cls)

    def overrides(self, name: str) -> bool:
        """Returns whether the subclass defines the rule `name`."""
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    def __call__(self, *args):
        if len(args) != len(self.in_avals):
            raise TypeError(f"{self} takes {len(self.in_avals)} arguments, but {len(args)} were given")
        leaves = self.in_tree.flatten_up_to(args)
        self.check(*map(typeof, leaves))
        return self.out_tree.unflatten(call_hi_primitive_p.bind_all(leaves, dict(_prim=self)))

    def check(self, *arg_tys: Any) -> None:
        """Raises if an argument is of a wrong type."""

    def __repr__(self):
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> tuple:
        return tuple(self.in_avals_flat), self.in_tree, tuple(self.out_avals_flat), self.out_tree

    def __eq__(self, other):
        return type(self) is type(other) and (self._key(), self.params) == (other._key(), other.params)

    def __hash__(self):
        return hash((type(self), self._key(), tuple(self.params.items())))

    expand: Callable = _required_rule("evaluation", "expand")
    jvp: Callable = _required_rule("jvp", "jvp")
    transpose: Callable = _required_rule("transpose", "transpose")
    vjp_fwd: Callable = _required_rule("grad", "vjp_fwd")
    vjp_bwd: Callable = _required_rule("grad", "vjp_bwd", "vjp_bwd_retval")
    vjp_bwd_retval: Callable = vjp_bwd
    lin: Callable = _required_rule("linearize", "lin", "linearized")
    linearized: Callable = lin
    batch_dim_rule: Callable = _required_rule("vmap", "batch", "batch_dim_rule")

    def batch(self, axis_data: Axis, args: tuple, dims: tuple) -> tuple[Any, Any]:
        """The batched result, and its batch dims."""
        out_dims = self.batch_dim_rule(axis_data, dims)
        return VmapOf(self, axis_data, dims, out_dims)(*args), out_dims


class VmapOf(VJPHiPrimitive):
    """An operation mapped over an axis. Its rules are the mapped rules of the operation."""

    prim: VJPHiPrimitive
    axis_data: Axis

    def __init__(self, prim: VJPHiPrimitive, axis: Axis, in_dims: tuple, out_dim: Any):
        self._ins, self._outs = tree.flatten_axes("vmap in_dims", prim.in_tree, in_dims), _broadcast_dims(out_dim, prim)
        self.in_avals = prim.in_tree.unflatten(_with_axis(prim.in_avals_flat, self._ins, axis))
        self.out_aval = prim.out_tree.unflatten(_with_axis(prim.out_avals_flat, self._outs, axis))
        self.params = dict(prim=prim, axis_data=axis, in_dims=in_dims, out_dim=out_dim)
        super().__init__()

    def _mapped(self, fun: Callable, leaves: Sequence, dims: Sequence, out_dims: Sequence) -> list:
        """Maps a flat function. Its first results have the axis at `out_dims`, the remaining ones in front."""
        results, at = batch_flat(fun, self.axis_data, leaves, dims)
        out_dims = [*out_dims, *repeat(0, len(results) - len(out_dims))]
        return [move_batch_dim(x, d, to, self.axis_data) for x, d, to in zip(results, at, out_dims, strict=True)]

    def expand(self, *args):
        def run(*xs):
            return self.prim.out_tree.flatten_up_to(self.prim.expand(*self.in_tree.unflatten(xs)))

        return self.out_tree.unflatten(self._mapped(run, self.in_tree.flatten_up_to(args), self._ins, self._outs))

    def jvp(self, primals, tangents):
        xs, ts = self.in_tree.flatten_up_to(primals), self.in_tree.flatten_up_to(tangents)
        nonzeros, n, m = nonzero_mask(ts), len(xs), len(self._outs)

        def run(*values):
            own = with_zeros(values[:n], nonzeros.merge(repeat(None), values[n:]))
            pair = self.prim.jvp(self.in_tree.unflatten(values[:n]), self.in_tree.unflatten(own))
            return [instantiate(x) for part in pair for x in self.out_tree.flatten_up_to(part)]

        dims = [*self._ins, *nonzeros.marked(self._ins)]
        results = self._mapped(run, [*xs, *nonzeros.marked(ts)], dims, self._outs * 2)
        return self.out_tree.unflatten(results[:m]), self.out_tree.unflatten(results[m:])

    def vjp_fwd(self, nzs_in, *args):
        trees, n = [], len(self._outs)

        def run(*xs):
            out, residuals = self.prim.vjp_fwd(nzs_in, *self.in_tree.unflatten(xs))
            leaves, residual_tree = tree.flatten(residuals)
            trees.append(residual_tree)
            return [*self.out_tree.flatten_up_to(out), *leaves]

        results = self._mapped(run, self.in_tree.flatten_up_to(args), self._ins, self._outs)
        return self.out_tree.unflatten(results[:n]), trees[0].unflatten(results[n:])

    def vjp_bwd_retval(self, res, outgrad):
        leaves, residual_tree = tree.flatten(res)
        n, wanted = len(leaves), Mask([True] * len(self._ins))

        def run(*values):
            return list(map(instantiate, _backward(self.prim, residual_tree.unflatten(values[:n]), values[n:], wanted)))

        values, dims = [*leaves, *self.out_tree.flatten_up_to(outgrad)], [*repeat(0, n), *self._outs]
        rows = zip(*batch_flat(run, self.axis_data, values, dims), self._ins, strict=True)
        return self.in_tree.unflatten([fit_cotangent(x, d, to, self.axis_data) for x, d, to in rows])

    def batch_dim_rule(self, axis_data, dims):
        return 0


def _broadcast_dims(dims: Any, prim: VJPHiPrimitive) -> list:
    """Broadcasts a tree prefix of dims to the results of an operation."""
    return tree.flatten_axes("vmap out_dims", prim.out_tree, dims)


def _with_axis(avals: Sequence[Aval], dims: Sequence, axis: Axis) -> list[Aval]:
    return [a if d is None else with_axis(a, d, axis) for a, d in zip(avals, dims, strict=True)]


def _backward(prim: VJPHiPrimitive, residuals: Any, cts: Sequence, wanted: Mask) -> list[Ct]:
    """The cotangents of the operands, by `vjp_bwd_retval` or by `vjp_bwd`, which skips those not `wanted`."""
    avals = [a.to_ct_aval() for a in prim.in_avals_flat]
    outgrad = prim.out_tree.unflatten(map(instantiate, cts))
    if not prim.overrides("vjp_bwd"):
        results = prim.in_tree.flatten_up_to(tuple(prim.vjp_bwd_retval(residuals, outgrad)))
        return [Zero(a) if ct is None else ct for ct, a in zip(results, avals, strict=True)]
    accums = [(ValAccum if w else NullAccum)(a) for w, a in zip(wanted, avals, strict=True)]
    prim.vjp_bwd(residuals, outgrad, *prim.in_tree.unflatten(accums))
    return [a.total for a in accums]


class CallHiPrimitive(Primitive):
    """A call of a `VJPHiPrimitive`, which defines the rules."""

    name = "call_hi_primitive"
    multiple_results = True
    is_hi = True
    auto_pvary = False

    def rebind(self, trace, operands, params):
        if any(map(is_ref, operands)):
            return self.to_lo(operands, params)
        return super().rebind(trace, operands, params)

    def infer(self, *avals, _prim):
        return list(_prim.out_avals_flat)

    def effects(self, *avals, _prim):
        return frozenset(REF_EFFECT if any(type(a) is AbstractRef for a in avals) else _prim.effects)

    def at_once(self, *operands, _prim):
        return _prim.out_tree.flatten_up_to(_prim.expand(*_prim.in_tree.unflatten(operands)))

    def to_lo(self, operands, params):
        return self.at_once(*operands, **params)

    def jvp(self, primals, tangents, *, _prim):
        if not _prim.overrides("jvp") and _prim.overrides("vjp_fwd"):
            nonzeros = nonzero_mask(tangents)
            results, nzs_out, push = _linearize_by_vjp(_prim, nonzeros, primals)
            return results, nzs_out.merge(map(Zero, _float0_types(results, nzs_out)), push(*nonzeros.marked(tangents)))
        args = (_prim.in_tree.unflatten(xs) for xs in (primals, tangents))
        results, pushed = map(_prim.out_tree.flatten_up_to, _prim.jvp(*args))
        return results, pushed

    def linearize(self, nonzeros, primals, *, _prim):
        nonzeros = Mask(nonzeros)
        if _prim.overrides("vjp_fwd"):
            return _linearize_by_vjp(_prim, nonzeros, primals)
        if not _prim.overrides("lin"):
            return None if _prim.overrides("jvp") else _prim.vjp_fwd(nonzeros)
        out, residuals = _prim.lin(_prim.in_tree.unflatten(nonzeros), *_prim.in_tree.unflatten(primals))

        def push(*tangents):
            tangents = with_zeros(primals, nonzeros.merge(repeat(None), tangents))
            pushed = _prim.linearized(residuals, *_prim.in_tree.unflatten(tangents))
            return list(map(instantiate, _prim.out_tree.flatten_up_to(pushed)))

        return _prim.out_tree.flatten_up_to(out), Mask([True] * len(_prim.out_avals_flat)), push

    def transpose(self, cts, *operands, _prim):
        accums = [ValAccum(x.aval) if is_undefined_primal(x) else x for x in operands]
        outgrad = _prim.out_tree.unflatten(map(instantiate, cts))
        _prim.transpose(outgrad, *_prim.in_tree.unflatten(accums))
        return [a.total if isinstance(a, ValAccum) else None for a in accums]

    def batch(self, axis, operands, dims, *, _prim):
        args, in_dims = _prim.in_tree.unflatten(operands), _prim.in_tree.unflatten(dims)
        out, out_dims = _prim.batch(axis, args, in_dims)
        return _prim.out_tree.flatten_up_to(out), _broadcast_dims(out_dims, _prim)


call_hi_primitive_p = CallHiPrimitive()


def _float0_types(results: Sequence[Val], nzs_out: Mask) -> list[Aval]:
    """The tangent types of the results that are not differentiable."""
    return [typeof(x).to_tangent_aval() for x in nzs_out.unmarked(results)]


def _linearize_by_vjp(prim: VJPHiPrimitive, nonzeros: Mask, primals: Sequence) -> tuple[list, Mask, Callable]:
    """Results, the mask of differentiable ones, and a push of tangents, which has only a transpose rule."""
    out, residuals = prim.vjp_fwd(prim.in_tree.unflatten(nonzeros), *prim.in_tree.unflatten(primals))
    leaves, residual_tree = tree.flatten(residuals)
    results = prim.out_tree.flatten_up_to(out)
    nzs_out = Mask([not is_float0(typeof(x).to_tangent_aval()) for x in results])
    out_avals = tuple([typeof(x).to_tangent_aval() for x in results])
    params = dict(_prim=prim, residual_tree=residual_tree, nonzeros=nonzeros, out_avals=out_avals)
    return results, nzs_out, lambda *tangents: nzs_out.marked(hi_lin_p.bind_all([*leaves, *tangents], params))


class HiLin(Primitive):
    """The derivative of a call that has only vjp rules: (residuals, tangents) -> tangents."""

    name = "hi_lin"
    multiple_results = True
    auto_pvary = False
    has_backward_rule = True

    def infer(self, *avals, out_avals, **params):
        return list(out_avals)

    def at_once(self, *operands, _prim, **params):
        return _prim.jvp()

    def lower(self, e, ins, outs, *operands, _prim, **params):
        return _prim.jvp()

    def transpose(self, cts, *operands, _prim, residual_tree, nonzeros, out_avals):
        k = residual_tree.num_leaves
        results = _backward(_prim, residual_tree.unflatten(operands[:k]), cts, nonzeros)
        return [None] * k + nonzeros.marked(results)


hi_lin_p = HiLin()
