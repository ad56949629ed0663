"""The transformation `jet`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import source, tree
from minijax.base.linear_util import Store
from minijax.composed.arrays import special
from minijax.experimental.jet import rules as rules, tracing  # imported to register the rules
from minijax.experimental.jet.tracing import jet_flat, zero_term
from minijax.interop.transformations import transformation2, transformation_with_aux2
from minijax.primitives import elementwise as ops


def fact(n: int) -> Any:
    """Computes the factorial as a float, by lgamma.

    Example:
        >>> jax.experimental.jet.fact(4.0).round(3)
        Array(24.000002, dtype=float32, weak_type=True)
    """
    return ops.exp(special.lgamma(n + 1.0))


@source.boundary
def jet(fun: Callable, primals: Sequence, series: Sequence, factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """Computes `fun(*primals)`, and the Taylor series of its leaves for arguments with these Taylor series.

    `series` holds a list for each argument with its terms of order 1, 2, …: derivatives, or Taylor coefficients if
    `factorial_scaled` is false. The second result has a list of terms in place of each leaf. Raises ValueError for
    lists of different lengths and for arguments that are not arrays, KeyError for an operation without a rule.

    Example:
        >>> primal, series = jax.experimental.jet.jet(jnp.sin, (0.0,), ([1.0, 0.0, 0.0],))
        >>> [float(x) for x in (primal, *series)]
        [0.0, 1.0, 0.0, -1.0000009536743164]
    """
    lengths = {len(s) for s in series}
    if len(lengths) != 1:
        raise ValueError(f"jet: jet terms have inconsistent lengths for different arguments: {sorted(lengths)}")
    (order,) = lengths
    if factorial_scaled:
        series = [[t / fact(k) for k, t in enumerate(terms, 1)] for terms in series]
    pairs = list(zip(primals, series, strict=False))
    for i, (x, terms) in enumerate(pairs):
        check_is_array(x, f"primal value at position {i}")
        for j, t in enumerate(terms):
            if t is not zero_term:
                check_is_array(t, f"term {j} for argument {i}")
    out_tree: Any = None

    def flat(*args):
        nonlocal out_tree
        leaves, out_tree = tree.flatten(fun(*args))
        return leaves

    out, out_series = jet_flat(flat, order, [x for x, _ in pairs], [list(terms) for _, terms in pairs])
    if factorial_scaled:
        out_series = [[t * fact(k) for k, t in enumerate(terms, 1)] for terms in out_series]
    return out_tree.unflatten(out), out_tree.unflatten(out_series)


def check_is_array(x: Any, what: str) -> None:
    if not tree.treedef_is_leaf(tree.tree_structure(x)):
        raise ValueError(f"jet: {what} is not an array")


jet2 = functools.partial(jet, factorial_scaled=False)
jet_subtrace, jet_fun = transformation2(tracing.jet_subtrace), transformation2(tracing.jet_fun)


@transformation_with_aux2
def traceable(f: Callable, store: Store, in_tree_def: Any, *primals_and_series: Any) -> list:
    """Flattens a wrapped function (primals, series) -> (results, series); also gives a thunk of the result's tree."""
    primals, series = in_tree_def.unflatten(primals_and_series)
    results, out_series = f(primals, series)
    leaves, out_tree = tree.flatten((results, out_series))
    store.store(out_tree)
    return leaves
