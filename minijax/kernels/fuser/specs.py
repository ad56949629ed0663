"""Block specs of functions: from those of the results to those of the arguments, and the reverse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.api.jit import trace_function
from minijax.base import tree
from minijax.calls.call import Inlined
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from minijax.ir.trace import constants_to_inputs, trace_to_jaxpr, values_of
from minijax.kernels.blocks import BlockSpec, no_block_spec
from minijax.kernels.fuser.custom import custom_fusion_p
from minijax.kernels.fuser.rules import (
    KEY,
    OF_STEP,
    Applied,
    BlockIndexTransform,
    Site,
    clamped,
    evaluated,
    from_spec,
    is_squeezed,
    pulled,
    pushed,
    shape_in_kernel,
    shifted,
    size,
    to_spec,
)
from minijax.transforms.prune import prune_fresh

Blocks = dict[Var, "BlockIndexTransform | None"]


def make_scalar_prefetch_handler(*args: Any) -> Callable[..., Any]:
    """Creates a function that finds the scalars of a fusion among all prefetched scalars of a kernel.

    Args:
      *args: indices, the first one into the kernel's scalars, each further one into what the one before it found.

    Returns:
      A function of the kernel's prefetched scalars.

    Example:
        >>> pl.fuser.make_scalar_prefetch_handler(1, 0)("a", ["b", "c"])
        'b'
    """

    def scalar_prefetch_getter(*scalars):
        found = scalars
        for index in args:
            found = found[index]
        return found

    return scalar_prefetch_getter


# ---- functions as jaxprs without calls -----------------------------------------------------------------


def flattened(closed: ClosedJaxpr) -> Jaxpr:
    """The jaxpr with its constants as leading inputs, whose calls are replaced by their bodies."""
    jaxpr = constants_to_inputs(closed.jaxpr)
    if not any(isinstance(eqn.primitive, Inlined) for eqn in jaxpr.eqns):
        found = jaxpr
    else:
        info = DebugInfo("pull_block_spec", closed.debug_info.func_src_info)
        found, _ = trace_to_jaxpr(lambda *args: _without_calls(jaxpr, (), args), jaxpr.in_avals, info)
    return prune_fresh(found, (True,) * len(found.outvars), True)[0]


def _without_calls(jaxpr: Jaxpr, consts: Sequence, args: Sequence) -> list:
    env: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    for eqn in jaxpr.eqns:
        operands = values_of(eqn.invars, env)
        if isinstance(eqn.primitive, Inlined):
            body = eqn.primitive.body(eqn.params)
            results = _without_calls(body.jaxpr, body.consts, operands)
        else:
            results = eqn.primitive.bind_all(operands, eqn.params)
        env.update(zip(eqn.outvars, results, strict=True))
    return values_of(jaxpr.outvars, env)


def _flat_specs(specs: Any, treedef: Any, what: str) -> list:
    is_spec = lambda x: isinstance(x, BlockSpec) or x is no_block_spec  # noqa: E731
    leaves, found = tree.flatten(specs, is_spec)
    if found == treedef:
        return leaves
    raise ValueError(f"Expected {treedef} PyTree, got {found}: the specs of {what} must be in its tree")


# ---- pulling -------------------------------------------------------------------------------------------


class _Pulled:
    """A function with the blocks of all its values, as they follow from those of its results."""

    def __init__(self, jaxpr: Jaxpr, num_consts: int, handler: Callable | None, grid_len: int | None):
        self.jaxpr, self.handler, self.grid_len = jaxpr, handler, grid_len
        self.consts, self.invars = jaxpr.invars[:num_consts], jaxpr.invars[num_consts:]
        self.makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.blocks: Blocks = {}

    def pull(self, specs: Sequence) -> None:
        """Finds the blocks. Raises ValueError if two ways lead to different blocks of one array."""
        for v, spec in zip(self.jaxpr.outvars, specs, strict=True):
            self._set(v, from_spec(spec, v.aval.shape))
        for eqn in reversed(self.jaxpr.eqns):
            outs = [self.blocks.get(v) for v in eqn.outvars]
            known = next((block for block in outs if block is not None), None)
            if known is None:
                continue
            for v, block in zip(eqn.invars, self._operands(eqn, tuple(outs), known), strict=True):
                self._set(v, block)

    def _operands(self, eqn: JaxprEqn, outs: tuple, known: BlockIndexTransform) -> Sequence:
        if eqn.primitive is custom_fusion_p:
            found = list(eqn.params["pull_block_spec_rule"](outs))
            return [None] * (len(eqn.invars) - len(found)) + found
        if eqn.primitive.name == "dynamic_slice":
            return [self._dynamically_sliced(eqn, known)] + [None] * (len(eqn.invars) - 1)
        return pulled(eqn, known)

    def _set(self, atom: Any, block: BlockIndexTransform | None) -> None:
        if type(atom) is Literal or block is None or not (atom.aval.ndim or block is KEY):
            return
        found = self.blocks.setdefault(atom, block) or block
        if found != block and _on_axes(found, atom.aval.shape) != _on_axes(block, atom.aval.shape):
            raise ValueError(f"Fusion contains a DAG, cannot uniquely pull block specs:\n{self.jaxpr}")

    def _dynamically_sliced(self, eqn: JaxprEqn, out: BlockIndexTransform) -> BlockIndexTransform:
        shape, of = eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape
        starts = []
        for atom, n, m in zip(eqn.invars[1:], shape, of, strict=True):
            if type(atom) is Literal:
                starts.append(min(max(int(atom.val), 0), m - n))
            else:
                starts.append(clamped(Applied(OF_STEP, (self._reader(atom),)), m - n))
        return shifted("dynamic_slice", out, starts, shape, of)

    def _reader(self, atom: Var) -> Callable[[tuple], Any]:
        """The function that computes a scalar from the arguments of an index map."""

        def read(args):
            return self._scalar(atom, dict(zip(self.consts, self._captured(self._prefetched(args)), strict=True)))

        return read

    def _prefetched(self, args: tuple) -> tuple:
        """The prefetched scalars among the arguments of an index map."""
        if self.handler is None or self.grid_len is None:
            raise NotImplementedError(
                "pull_block_spec: the start of a dynamic_slice is read from prefetched scalars; pass grid_len and "
                "scalar_prefetch_handler"
            )
        return args[self.grid_len :]

    def _scalar(self, atom: Any, env: dict) -> Any:
        if type(atom) is Literal:
            return atom.val
        if atom not in env:
            eqn = self.makers.get(atom)
            if eqn is None:
                raise NotImplementedError("pull_block_spec: the start of a dynamic_slice depends on an argument")
            results = eqn.primitive.bind_all([self._scalar(a, env) for a in eqn.invars], eqn.params)
            env.update(zip(eqn.outvars, results, strict=True))
        return env[atom]

    def evaluate(self, program_ids: Sequence, scalars: Sequence, args: Sequence) -> list:
        """The blocks of the results from those of the arguments, in one step."""
        env: dict[Any, Any] = dict(zip(self.invars, args, strict=True))
        if self.consts:
            env |= zip(self.consts, self._captured(scalars), strict=True)
        step, needed = (*program_ids, *scalars), self._needed()
        for eqn in self.jaxpr.eqns:
            if needed.intersection(eqn.outvars):
                operands = [env.get(a) if type(a) is Var else values_of([a], env)[0] for a in eqn.invars]
                env.update(zip(eqn.outvars, self._results(eqn, operands, step), strict=True))
        return values_of(self.jaxpr.outvars, env)

    def _captured(self, scalars: Sequence) -> list:
        """The captured values, in the kernel. Raises ValueError if they are not among its prefetched scalars."""
        found = _scalars(self.handler, scalars)
        if len(found) != len(self.consts):
            raise ValueError(
                f"pull_block_spec: the function captures {len(self.consts)} values, and the kernel has {len(found)} "
                "scalars for it. get_fusion_values makes captured arrays arguments."
            )
        return found

    def _needed(self) -> set[Var]:
        """The variables that the kernel computes: all but the starts of slices, which index maps do."""
        needed: set = set(self.jaxpr.outvars)
        for eqn in reversed(self.jaxpr.eqns):
            if needed.intersection(eqn.outvars):
                needed.update(eqn.invars[:1] if eqn.primitive.name == "dynamic_slice" else eqn.invars)
        return needed

    def _results(self, eqn: JaxprEqn, operands: list, step: tuple) -> Sequence:
        block_of = lambda a: None if type(a) is Literal else self.blocks.get(a)  # noqa: E731
        site = Site(eqn, list(map(block_of, eqn.outvars)), list(map(block_of, eqn.invars)), step)
        if eqn.primitive is custom_fusion_p:
            captured = eqn.params["num_consts"] + eqn.params["pallas_num_consts"]
            return tree.tree_leaves(eqn.params["eval_rule"](site, *operands[captured:]))
        if all(block is None for block in site.outs):
            return site.bind(operands)
        return evaluated(site, *operands)


def _on_axes(block: BlockIndexTransform, shape: Sequence[int]) -> list:
    """The dimensions of a block and its numbers on them: the only block of an axis has the number 0."""
    parts = zip(block.dims, block.numbers, shape, strict=True)
    return [n if not is_squeezed(dim) and size(dim) == n else (dim, number) for dim, number, n in parts]


def _scalars(handler: Callable | None, scalars: Sequence) -> list:
    """The values of a fusion's scalars, which a kernel has as references or arrays of one element."""
    found = tree.tree_leaves(scalars) if handler is None else handler(*scalars)
    return [x[0] if np.shape(x) or not hasattr(x, "dtype") else x for x in found]


def pull_block_spec(
    f: Callable[..., Any],
    out_block_specs: BlockSpec | tuple[BlockSpec, ...],
    *,
    scalar_prefetch_handler: Any | None = None,
    grid_len: int | None = None,
    strict_mode: bool = True,
) -> Callable[..., tuple[Callable[..., Any], tuple, dict]]:
    """Finds the blocks of a function's arguments that the blocks of its results are computed from.

    Args:
      f: function of arrays, such as a `fuser.Fusion`.
      out_block_specs: tree of the results' `pl.BlockSpec`s.
      scalar_prefetch_handler: from `fuser.make_scalar_prefetch_handler`, if `f` reads prefetched scalars.
      grid_len: number of axes of the grid.
      strict_mode: whether the blocks that the function for the kernel gets must have the sizes that were found.

    Returns:
      A function of the arguments of `f`, arrays or types, that returns three values: a function for the kernel,
      (numbers of the step, prefetched scalars, *blocks of the arguments) -> blocks of the results; the specs of the
      positional arguments; and those of the keyword arguments.

    Raises:
      ValueError: if two ways through `f` need different blocks of one array, or the specs are not in the tree of the
        results.
      NotImplementedError: if an operation of `f` has no rule for blocks.

    See also: `fuser.push_block_spec`, `fuser.get_fusion_values`.

    Example:
        >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
        >>> spec = pl.BlockSpec((128, 256), lambda i, j: (i, j))
        >>> kernel_fn, (x_spec,), _ = pl.fuser.pull_block_spec(lambda x: jnp.exp(x).T, spec, grid_len=2)(x)
        >>> x_spec.block_shape, x_spec.index_map(0, 1)
        ((256, 128), (1, 0))
    """

    def wrapped(*args, **kwargs):
        closed, out_tree = trace_function(f, args, kwargs, (), "pull_block_spec")
        function = _Pulled(flattened(closed), len(closed.consts), scalar_prefetch_handler, grid_len)
        function.pull(_flat_specs(out_block_specs, out_tree, "the results"))
        in_tree = tree.tree_structure((args, kwargs))
        specs = [to_spec(function.blocks.get(v)) for v in function.invars]
        positional, named = in_tree.unflatten(specs)

        def kernel_fn(program_ids, scalar_prefetch, *args, **kwargs):
            leaves, found = tree.flatten((args, kwargs))
            if found != in_tree:
                raise ValueError(f"Expected {in_tree} PyTree, got {found}: the function for the kernel takes blocks")
            if strict_mode:
                _check_blocks(function, leaves)
            return out_tree.unflatten(function.evaluate(program_ids, scalar_prefetch, leaves))

        return kernel_fn, positional, named

    return wrapped


def _check_blocks(function: _Pulled, leaves: Sequence) -> None:
    """Raises ValueError if a block is not of the size that was found."""
    for i, (v, x) in enumerate(zip(function.invars, leaves, strict=True)):
        block = function.blocks.get(v)
        if block is None or block.block_shape is None or not hasattr(x, "shape"):
            continue
        shape = shape_in_kernel(block.dims)
        if tuple(x.shape) != shape:
            raise ValueError(f"pull_block_spec: block {i} has the shape {tuple(x.shape)} and should have {shape}")


# ---- pushing -------------------------------------------------------------------------------------------


def push_block_spec(f: Callable[..., Any], *in_spec_args: Any, **in_spec_kwargs: Any) -> Callable[..., Any]:
    """Finds the blocks of a function's results that are computed from blocks of its arguments.

    Args:
      f: function of arrays.
      *in_spec_args: the `pl.BlockSpec`s of its arguments, trees of them for arguments that are trees.
      **in_spec_kwargs: those of its keyword arguments.

    Returns:
      A function of the arguments of `f`, arrays or types, that returns the specs of the results.

    Raises:
      ValueError: if operands have different blocks, or the specs are not in the tree of the arguments.
      NotImplementedError: if an operation of `f` has no rule for blocks.

    See also: `fuser.pull_block_spec`.

    Example:
        >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
        >>> spec = pl.BlockSpec((128, 256), lambda i, j: (i, j))
        >>> pl.fuser.push_block_spec(lambda x: x.T + 1, spec)(x).block_shape
        (256, 128)
    """

    def wrapped(*args, **kwargs):
        in_tree = tree.tree_structure((args, kwargs))
        specs = _flat_specs((in_spec_args, in_spec_kwargs), in_tree, "the arguments")
        closed, out_tree = trace_function(f, args, kwargs, (), "push_block_spec")
        jaxpr = flattened(closed)
        blocks: Blocks = dict.fromkeys(jaxpr.invars)
        for v, spec in zip(jaxpr.invars[len(closed.consts) :], specs, strict=True):
            blocks[v] = from_spec(spec, v.aval.shape) if v.aval.ndim else None
        for eqn in jaxpr.eqns:
            blocks.update(_pushed(eqn, blocks))
        found = [None if type(v) is Literal else blocks[v] for v in jaxpr.outvars]
        return out_tree.unflatten(map(to_spec, found))

    return wrapped


def _pushed(eqn: JaxprEqn, blocks: Blocks) -> Mapping[Var, BlockIndexTransform | None]:
    """The blocks of an equation's results."""
    ins = [None if type(a) is Literal else blocks[a] for a in eqn.invars]
    if eqn.primitive is custom_fusion_p:
        captured = eqn.params["num_consts"] + eqn.params["pallas_num_consts"]
        specs = eqn.params["push_block_spec_rule"](tuple(map(to_spec, ins[captured:])))
        return {v: from_spec(s, v.aval.shape) for v, s in zip(eqn.outvars, specs, strict=True)}
    if all(block is None for block in ins):
        return dict.fromkeys(eqn.outvars)
    return dict.fromkeys(eqn.outvars, pushed(eqn, ins))
