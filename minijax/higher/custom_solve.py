"""`custom_linear_solve`: a solver of linear systems, differentiated as the mathematics says and not as it
computes.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from minijax.base import source, tree
from minijax.base.mask import Mask
from minijax.dispatch.call import names_in
from minijax.higher.agreement import fixpoint
from minijax.ir.body import Body, Flat, as_consts, source_of, trace_flat
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Linear, Primitive
from minijax.ir.trace import eval_jaxpr
from minijax.ir.types import Zero, typeof
from minijax.primitives import moving
from minijax.primitives.elementwise import neg
from minijax.primitives.zeros import add_zeros, instantiate
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.transpose import backward


class _LinearSolveTuple(NamedTuple):
    """Something for each of the four functions; the name is what equations print."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> "_LinearSolveTuple":
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def _grouped(items: Sequence, lengths: _LinearSolveTuple) -> tuple[_LinearSolveTuple, list]:
    """Operands as the constants of each function, and the right-hand side."""
    rest = iter(items)
    groups = [[next(rest) for _ in range(n)] for n in lengths]
    return _LinearSolveTuple(*groups), list(rest)


class CustomLinearSolve(Primitive):
    """Solves for x in matvec(x) = b; the jaxprs are (constants, vector) -> vector, the solvers' with more
    results.
    """

    name = "custom_linear_solve"
    multiple_results = True
    unites = False

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
            _, moved = jvp_flat(apply, [*consts.matvec, *results[:n]], [*pushed.matvec, *zeros])
            moved = [t if type(t) is Zero else neg(t) for t in moved]
            rhs = [add_zeros(t, m) for t, m in zip(rhs, moved, strict=True)]
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
            """A function's jaxpr, its results batched at least as `outputs` says, and how they are."""
            closed = getattr(jaxprs, name)
            if closed is None:
                return None, Mask(outputs)
            ins = tuple(0 if f else None for f in (*getattr(const_flags, name), *inputs))
            return batch_jaxpr(closed, axis, ins, (*outputs, *(False,) * (len(closed.outvars) - len(outputs))))

        def step(known: Sequence[bool]) -> tuple[_LinearSolveTuple, Mask]:
            b, x = known[:n], known[n:]
            solve, x_of_solve = batched("solve", b, x)
            vecmat, x_of_vecmat = batched("vecmat", b, x)
            matvec, b_of_matvec = batched("matvec", x, b)
            transpose_solve, b_of_solve = batched("transpose_solve", x, b)
            out_b, out_x = Mask(b_of_matvec[:n]) | b_of_solve[:n], Mask(x_of_solve[:n]) | x_of_vecmat[:n]
            return _LinearSolveTuple(matvec, vecmat, solve, transpose_solve), Mask((*out_b, *out_x))

        batched_jaxprs, known = fixpoint(step, (*flags, *flags))
        instantiated = [d is not None for d in dims[: len(dims) - n]] + list(known[:n])
        moved = [
            moving.axis_to_front(x, d, axis) if f else x for x, d, f in zip(operands, dims, instantiated, strict=True)
        ]
        out_avals = zip(batched_jaxprs.solve.out_avals, jaxprs.solve.out_avals, strict=True)
        results = self.bind(*moved, const_lengths=const_lengths, jaxprs=batched_jaxprs)
        return results, [0 if wide.ndim > thin.ndim else None for wide, thin in out_avals]

    def names_axis(self, params):
        return tuple(chain(*(names_in(j) for j in params["jaxprs"] if j is not None)))


custom_linear_solve_p = CustomLinearSolve()


class _LikeOperand(Flat):
    """A function of a tree like b as a flat one, its result checked to be such a tree; or that and `aux`."""

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
        """The function of trees, checked as well."""
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
    """Solves matvec(x) = b by `solve(matvec, b)`, with derivatives that solve such systems again.

    Reverse mode needs `transpose_solve(vecmat, b)`, unless `symmetric`. With `has_aux` solvers return (x,
    aux). Raises ValueError or TypeError where a function's result does not fit b.
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
    """As `custom_linear_solve`; `vecmat` is the transpose of `matvec` where the caller knows it better."""
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
    """The transpose of a linear function from one tree to one like it."""

    def transposed(ct):
        body = trace_flat(flat, avals, DebugInfo("linear_transpose", source_of(flat.fun)), as_consts)
        cts = backward(body.jaxpr, body.closed.consts, [Linear(a) for a in avals], tree.tree_leaves(ct))
        return treedef.unflatten(map(instantiate, cts))

    return transposed
