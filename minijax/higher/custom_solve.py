"""`custom_linear_solve`: a user-defined linear solver, differentiated implicitly and not through its steps."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from minijax.base import source, tree
from minijax.base.mask import Mask
from minijax.calls.bodied import fixpoint, names_in
from minijax.ir.body import Body, Flat, as_consts, source_of, trace_flat
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Primitive, UndefinedPrimal
from minijax.ir.trace import eval_jaxpr
from minijax.ir.types import Zero, typeof
from minijax.primitives import moving
from minijax.primitives.elementwise import neg
from minijax.primitives.zeros import add_zeros, instantiate
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.transpose import backward


class _LinearSolveTuple(NamedTuple):
    """One item for each of the four functions. Printed equations show the class name."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> "_LinearSolveTuple":
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def _grouped(items: Sequence, lengths: _LinearSolveTuple) -> tuple[_LinearSolveTuple, list]:
    """Splits operands into the constants of each function and the right-hand side."""
    rest = iter(items)
    groups = [[next(rest) for _ in range(n)] for n in lengths]
    return _LinearSolveTuple(*groups), list(rest)


class CustomLinearSolve(Primitive):
    """Solves matvec(x) = b for x. The jaxprs are (constants, vector) -> vector; a solver's may have more results."""

    name = "custom_linear_solve"
    multiple_results = True
    auto_pvary = False

    def infer(self, *avals, const_lengths, jaxprs):
        _, b = _grouped(avals, const_lengths)
        return [*b, *jaxprs.solve.out_avals[len(b) :]]

    def effects(self, *avals, jaxprs, **params):
        return jaxprs.solve.effects

    def at_once(self, *operands, const_lengths, jaxprs):
        consts, b = _grouped(operands, const_lengths)
        return eval_jaxpr(jaxprs.solve.jaxpr, jaxprs.solve.consts, *consts.solve, *b)

    def lower(self, e, ins, outs, *operands, const_lengths, jaxprs):
        consts, b = _grouped(operands, const_lengths)
        return e.inlined(jaxprs.solve.jaxpr, e.constants(jaxprs.solve), [*consts.solve, *b])

    def jvp(self, primals, tangents, *, const_lengths, jaxprs):
        consts, b = _grouped(primals, const_lengths)
        pushed, rhs = _grouped(tangents, const_lengths)
        params = dict(const_lengths=const_lengths, jaxprs=jaxprs)
        results = self.bind(*primals, **params)
        n = len(b)
        if any(type(t) is not Zero for t in pushed.matvec):
            zeros = [Zero.from_primal_value(x) for x in results[:n]]
            apply = lambda *xs: eval_jaxpr(jaxprs.matvec.jaxpr, jaxprs.matvec.consts, *xs)  # noqa: E731
            _, matvec_tangents = jvp_flat(apply, [*consts.matvec, *results[:n]], [*pushed.matvec, *zeros])
            matvec_tangents = [t if type(t) is Zero else neg(t) for t in matvec_tangents]
            rhs = [add_zeros(t, m) for t, m in zip(rhs, matvec_tangents, strict=True)]
        solved = self.bind(*chain(*consts), *map(instantiate, rhs), **params)
        return results, [*solved[:n], *(Zero.from_primal_value(x) for x in results[n:])]

    def transpose(self, cts, *operands, const_lengths, jaxprs):
        if jaxprs.transpose_solve is None:
            raise TypeError(
                "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve"
            )
        consts, b = _grouped(operands, const_lengths)
        if all(type(ct) is Zero for ct in cts[: len(b)]):
            cts_of_b = [Zero(x.aval) for x in b]
        else:
            rhs = map(instantiate, cts[: len(b)])
            cts_of_b = self.bind(
                *chain(*consts.transposed()), *rhs, const_lengths=const_lengths.transposed(), jaxprs=jaxprs.transposed()
            )[: len(b)]
        return [*(None for _ in chain(*consts)), *cts_of_b]

    def batch(self, axis, operands, dims, *, const_lengths, jaxprs):
        const_flags, flags = _grouped([d is not None for d in dims], const_lengths)
        n = len(flags)

        def batched(name: str, inputs: Sequence[bool], outputs: Sequence[bool]) -> tuple[ClosedJaxpr | None, Mask]:
            """The batched jaxpr of a function, and the mask of its batched results, which includes `outputs`."""
            closed = getattr(jaxprs, name)
            if closed is None:
                return None, Mask(outputs)
            ins = tuple(0 if f else None for f in (*getattr(const_flags, name), *inputs))
            return batch_jaxpr(closed, axis, ins, (*outputs, *(False,) * (len(closed.outvars) - len(outputs))))

        def step(batched_flags: Sequence[bool]) -> tuple[_LinearSolveTuple, Mask]:
            b, x = batched_flags[:n], batched_flags[n:]
            solve, x_of_solve = batched("solve", b, x)
            vecmat, x_of_vecmat = batched("vecmat", b, x)
            matvec, b_of_matvec = batched("matvec", x, b)
            transpose_solve, b_of_solve = batched("transpose_solve", x, b)
            out_b, out_x = Mask(b_of_matvec[:n]) | b_of_solve[:n], Mask(x_of_solve[:n]) | x_of_vecmat[:n]
            return _LinearSolveTuple(matvec, vecmat, solve, transpose_solve), Mask((*out_b, *out_x))

        batched_jaxprs, batched_flags = fixpoint(step, (*flags, *flags))
        instantiated = [d is not None for d in dims[: len(dims) - n]] + list(batched_flags[:n])
        in_front = [
            moving.axis_to_front(x, d, axis) if f else x for x, d, f in zip(operands, dims, instantiated, strict=True)
        ]
        out_avals = zip(batched_jaxprs.solve.out_avals, jaxprs.solve.out_avals, strict=True)
        results = self.bind(*in_front, const_lengths=const_lengths, jaxprs=batched_jaxprs)
        return results, [0 if batched_aval.ndim > aval.ndim else None for batched_aval, aval in out_avals]

    def names_axis(self, params):
        return tuple(chain(*(names_in(j.jaxpr) for j in params["jaxprs"] if j is not None)))


custom_linear_solve_p = CustomLinearSolve()


class _LikeOperand(Flat):
    """A flat function of b's leaves. Checks that its result, apart from `aux`, has the structure and shapes of b."""

    def __init__(self, name: str, fun: Callable, treedef: Any, shapes: Sequence, has_aux: bool = False):
        super().__init__(fun, tree.treedef_tuple((treedef,)))
        self.name, self.treedef, self.shapes, self.has_aux = name, treedef, shapes, has_aux

    def flattened(self, result):
        if self.has_aux:
            x, aux = result
            result = x, aux
        leaves = super().flattened(result)
        structure = self.out_tree.children()[0] if self.has_aux else self.out_tree
        shapes = [typeof(x).shape for x in leaves[: structure.num_leaves]]
        if shapes != self.shapes:
            raise ValueError(f"{self.name}() output shapes must match b, got {shapes} and {self.shapes}")
        if structure != self.treedef:
            raise TypeError(f"{self.name}() output pytree structure must match b, got {structure} and {self.treedef}.")
        return leaves

    def of_trees(self, x: Any) -> Any:
        """Calls the checked function on a tree and returns a tree."""
        return self.treedef.unflatten(self(*tree.flatten(x)[0]))


@source.boundary
def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solves a linear system by a function of the user's, with derivatives that are linear solves, too.

    Args:
        matvec: The linear function, x -> A x, of trees like `b`.
        b: The right-hand side, an array or a pytree.
        solve: A function (matvec, b) -> x that solves the system. It is not differentiated.
        transpose_solve: A function (vecmat, b) -> x for the transposed system; reverse mode needs it.
        symmetric: If true, `solve` serves the transposed system, too.
        has_aux: If true, the solvers return (x, aux).

    Example:
        >>> solve = lambda matvec, b: b / 2.0
        >>> float(jax.grad(lambda b: jax.lax.custom_linear_solve(lambda x: 2.0 * x, b, solve, symmetric=True))(1.0))
        0.5
    """
    return linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)


def linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
    vecmat: Callable | None = None,
) -> Any:
    """As `custom_linear_solve`. `vecmat`, if given, is the transpose of `matvec`, which need not be derived then."""
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, treedef = tree.flatten(b)
    avals = [typeof(x) for x in leaves]
    shapes = [a.shape for a in avals]

    def traced(flat: _LikeOperand, fun: Callable) -> Body:
        return trace_flat(flat, avals, DebugInfo("custom_linear_solve", source_of(fun)))

    apply = _LikeOperand("matvec", matvec, treedef, shapes)
    forward = _LikeOperand("solve", lambda x: solve(apply.of_trees, x), treedef, shapes, has_aux)
    bodies = [traced(apply, matvec), None, traced(forward, solve), None]
    if transpose_solve is not None:
        transposed = apply
        if not symmetric:
            vecmat = vecmat or _transposed(apply, treedef, avals)
            transposed = _LikeOperand("vecmat", vecmat, treedef, shapes)
        bodies[1] = bodies[0] if symmetric else traced(transposed, matvec)
        back = lambda x: transpose_solve(transposed.of_trees, x)  # noqa: E731
        bodies[3] = traced(_LikeOperand("transpose_solve", back, treedef, shapes, has_aux), transpose_solve)
    consts = [body.captured if body else [] for body in bodies]
    lengths, jaxprs = _LinearSolveTuple(*map(len, consts)), _LinearSolveTuple(*(b and b.closed for b in bodies))
    results = custom_linear_solve_p.bind(*chain(*consts), *leaves, const_lengths=lengths, jaxprs=jaxprs)
    return bodies[2].out_tree.unflatten(results)


def _transposed(flat: Flat, treedef: Any, avals: Sequence) -> Callable:
    """The transpose of a linear function whose argument and result have the same structure."""

    def transposed(ct):
        body = trace_flat(flat, avals, DebugInfo("linear_transpose", source_of(flat.fun)), as_consts)
        cts = backward(body.jaxpr, body.closed.consts, [UndefinedPrimal(a) for a in avals], tree.tree_leaves(ct))
        return treedef.unflatten(map(instantiate, cts))

    return transposed
