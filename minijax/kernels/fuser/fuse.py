"""`fuse`: makes functions of what is before and after the fusible kernel of a function, and gives them to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.api.jit import trace_function
from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import tree
from minijax.base.mask import Mask
from minijax.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from minijax.ir.trace import environment, eval_jaxpr
from minijax.ir.types import of_type, typeof
from minijax.kernels.fuser.fusion import Fusion, fusible_p
from minijax.primitives.moving import as_array_or_constant
from minijax.transforms.prune import prune_fresh


def fuse(
    f: Callable[..., Any] | None = None,
    *,
    resolve_fusion_dtypes: bool = True,
    debug: bool = False,
    strict_mode: bool = True,
) -> Callable[..., Any]:
    """Creates a function whose operations before and after its fusible kernel are part of the kernel.

    Args:
      f: function that calls one function made by `fuser.fusible`. If it calls several, the first one is meant.
      resolve_fusion_dtypes: whether dtypes that only fusions have are replaced; there are only the ordinary ones here.
      debug: whether to print the jaxpr of `f`.
      strict_mode: that of each `fuser.Fusion`.

    Returns:
      A function of the same arguments and results.

    Raises:
      ValueError: if nothing in `f` is fusible, or a result depends on two results of a kernel that takes a function for
        each of them.

    See also: `fuser.fusible`.

    Example:
        >>> @pl.fuser.fusible
        ... def double(x_fn, out_fn):
        ...     result = 2 * x_fn()
        ...     return result if out_fn is None else out_fn(result)
        >>> pl.fuser.fuse(lambda x: double(x + 1) * 3)(jnp.ones(2))
        Array([12., 12.], dtype=float32)
    """

    def decorator(f):
        def wrapper(*args, **kwargs):
            types, named_types = tree.tree_map(_strong, (args, kwargs))
            closed, out_tree = trace_function(f, types, named_types, (), "fuse")
            if debug:
                sys.stdout.write(f"Jaxpr before fusion:\n{closed.jaxpr}\n")
            leaves = tree.tree_leaves((args, kwargs))
            known = environment(closed.jaxpr, closed.consts)
            known |= {v: of_type(x, v.aval) for v, x in zip(closed.jaxpr.invars, leaves, strict=True)}
            return out_tree.unflatten(_Fused(closed.jaxpr, known, strict_mode)())

        return wrapper

    return decorator if f is None else decorator(f)


class _Group(NamedTuple):
    """The results of the kernel that one function takes, and which results of the function around follow from it."""

    variables: Sequence[Var]
    types: Any  # in the tree of the kernel's results
    results: list[int]


class _Fused:
    """A jaxpr that calls a fusible kernel, with the values of its inputs."""

    def __init__(self, jaxpr: Jaxpr, known: dict[Var, Any], strict: bool):
        self.jaxpr, self.known, self.strict = jaxpr, known, strict
        found = next((eqn for eqn in jaxpr.eqns if eqn.primitive is fusible_p), None)
        if found is None:
            raise ValueError("No fusible eqn found: fuse takes a function that calls one made by `fuser.fusible`")
        self.kernel: JaxprEqn = found

    def __call__(self) -> list:
        params = self.kernel.params
        groups = self._groups()
        inputs = params["in_tree"].unflatten(map(self._input, self.kernel.invars[params["num_consts"] :]))
        prefix = tree.tree_structure(params["output_fusion_prefix"])
        result = params["func"](*inputs, prefix.unflatten(map(self._output, groups)))
        found: dict[int, Any] = {}
        for group, part in zip(groups, prefix.flatten_up_to(result), strict=True):
            values = tree.tree_leaves(part)
            if len(values) != len(group.results):
                raise ValueError(
                    f"fuse: {params['func']} returns {len(values)} values where {len(group.results)} results follow. "
                    "It has to return its results through the function that it gets last."
                )
            found |= dict(zip(group.results, values, strict=True))
        return [found[i] if i in found else self._value(v) for i, v in enumerate(self.jaxpr.outvars)]

    def _groups(self) -> list[_Group]:
        """For each function of results, the results of the kernel that it takes, and those that it returns."""
        params = self.kernel.params
        prefix = tree.tree_structure(params["output_fusion_prefix"])
        variables = params["out_tree"].unflatten(map(_Leaf, self.kernel.outvars))
        trees = prefix.flatten_up_to(variables)
        parts = [[leaf.variable for leaf in tree.tree_leaves(part)] for part in trees]
        origin = {v: {i} for i, part in enumerate(parts) for v in part}
        for eqn in self.jaxpr.eqns:
            if eqn is not self.kernel:
                behind = set().union(*[origin.get(a, ()) for a in eqn.invars if type(a) is Var])
                origin.update(dict.fromkeys(eqn.outvars, behind))
        types = [tree.tree_map(lambda leaf: leaf.variable.aval, part) for part in trees]
        groups = [_Group(part, of, []) for part, of in zip(parts, types, strict=True)]
        for i, atom in enumerate(self.jaxpr.outvars):
            behind = origin.get(atom, set()) if type(atom) is Var else set()
            if len(behind) > 1:
                raise ValueError(
                    f"Outputs must be disjoint in order to use separate output fusions: result {i} depends on several "
                    f"results of {params['func']}, which takes a function for each. Use output_fusion_prefix=True."
                )
            for n in behind:
                groups[n].results.append(i)
        return groups

    def _part(self, invars: Sequence[Var], outvars: Sequence[Any]) -> Callable[..., tuple]:
        """The function from some variables to others, on the values that are known."""
        others = [v for v in self.known if v not in invars]
        eqns = [eqn for eqn in self.jaxpr.eqns if not set(eqn.outvars) & set(invars)]
        whole = self.jaxpr.replace(constvars=[], invars=[*others, *invars], outvars=outvars, eqns=eqns)
        jaxpr, used = prune_fresh(whole, (True,) * len(outvars), (*[False] * len(others), *[True] * len(invars)))
        values = Mask(used[: len(others)]).marked([self.known[v] for v in others])

        def run(*args, **kwargs):
            return tuple(eval_jaxpr(jaxpr, (), *values, *tree.tree_leaves((args, kwargs))))

        return run

    def _value(self, atom: Any) -> Any:
        """The value of an atom that no result of the kernel is behind."""
        if type(atom) is Literal or atom in self.known:
            return as_array_or_constant(atom.val) if type(atom) is Literal else self.known[atom]
        return self._part((), [atom])()[0]

    def _input(self, atom: Any) -> Fusion:
        return Fusion(lambda: self._value(atom), ((), {}), atom.aval, self.strict)

    def _output(self, group: _Group) -> Fusion | None:
        """The function of a group, or None if its results are those of the kernel as they are."""
        outvars = [self.jaxpr.outvars[i] for i in group.results]
        if outvars == list(group.variables):
            return None
        out_type = tuple([v.aval for v in outvars])
        return Fusion(self._part(group.variables, outvars), (group.types, {}), out_type, self.strict)


class _Leaf:
    """A variable as a leaf of a tree."""

    def __init__(self, variable: Var):
        self.variable = variable


def _strong(x: Any) -> Any:
    """The argument, or its type if that is weak: inside of a fused function no types are."""
    aval = typeof(x)
    return ShapeDtypeStruct(aval.shape, aval.dtype) if getattr(aval, "weak_type", False) else x
