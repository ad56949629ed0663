"""`custom_root`: differentiates a root finder by the implicit function theorem."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.autodiff import jvp, linearize
from minijax.api.custom import custom_jvp
from minijax.base import source, tree
from minijax.ir.body import Flat, source_of, trace_flat
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.trace import eval_jaxpr
from minijax.ir.types import typeof
from minijax.primitives.elementwise import neg
from minijax.primitives.zeros import zeros_like_aval


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
