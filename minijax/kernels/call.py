"""`pallas_call`: makes a function that runs a kernel over a grid."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.api.jit import jit
from minijax.base import paths, tree
from minijax.base.dims import shape_of
from minijax.composed.callbacks.ffi import FrozenDict
from minijax.ir.body import argument_names, signature_of, source_of
from minijax.ir.context import extended_name_stack
from minijax.ir.jaxpr import DebugInfo, Jaxpr
from minijax.ir.refs import AbstractRef, Ref
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray, typeof
from minijax.kernels.blocks import BlockSpec, CostEstimate, GridSpec, no_block_spec
from minijax.kernels.grid import Grid, within
from minijax.kernels.mapping import GridMapping, block_mapping, grid_bounds, index_types
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.primitive import pallas_call_p
from minijax.kernels.simulator.options import chosen, traced_for
from minijax.transforms.prune import prune_fresh


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},  # noqa: B006
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: CostEstimate | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """Creates a function that runs a kernel, once for each step of a grid.

    Args:
      kernel: function of references: those of the prefetched scalars, of the operands' blocks, of the results' blocks
        and of the scratch. It reads and writes them, and returns nothing.
      out_shape: tree of the results' shapes and dtypes, such as `jax.ShapeDtypeStruct`s. In each step the kernel gets a
        reference for each.
      grid_spec: `pl.GridSpec` with the next five.
      grid: size of each axis of the grid; the last axis is the fastest.
      in_specs: sequence of the operands' `pl.BlockSpec`s. By default, each block is the whole operand.
      out_specs: tree of the results' `pl.BlockSpec`s.
      scratch_shapes: types of memory that the kernel gets besides, kept from step to step; a dict gives keyword
        arguments.
      input_output_aliases: for operands by number, the number of the result that begins as the operand and uses its
        memory.
      debug: whether to print the kernel's jaxpr and its module when it is lowered.
      interpret: True runs the kernel as operations of XLA on any device, as kernels run on a CPU anyway;
        `pltpu.InterpretParams` runs it on a simulated TPU.
      name: name in profiles and modules. By default, that of `kernel`.
      compiler_params: options of a compiler, `pl.triton.CompilerParams` or `pl.tpu.CompilerParams`.
      cost_estimate: `pl.CostEstimate` for XLA's scheduler.
      metadata: texts that are kept with the call.

    Returns:
      A function of arrays and trees of arrays that returns arrays in the tree of `out_shape`.

    Raises:
      ValueError: if a spec does not fit its array, or the kernel captures an array or returns something.

    See also: `pl.BlockSpec`, `pl.program_id`, `pl.when`, `pl.run_scoped`.

    Example:
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = 2 * x_ref[...]
        >>> spec = pl.BlockSpec((2,), lambda i: (i,))
        >>> f = pl.pallas_call(double, jax.ShapeDtypeStruct((4,), jnp.float32), grid=2, in_specs=[spec], out_specs=spec,
        ...                    interpret=True)
        >>> f(jnp.arange(4.0))
        Array([0., 2., 4., 6.], dtype=float32)
    """
    spec = _grid_spec(grid_spec, grid, in_specs, out_specs, scratch_shapes)
    check_name("pallas_call", name)
    out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    call = _Call(
        kernel,
        out_shape,
        spec,
        tuple(input_output_aliases.items()),
        dict(
            debug=debug,
            interpret=interpret,
            mesh=None,
            name=name,
            compiler_params=compiler_params,
            cost_estimate=cost_estimate,
            metadata=None if metadata is None else FrozenDict(dict(metadata.items())),
        ),
    )

    def wrapped(*args):
        return call(args)

    return jit(wrapped, inline=True)


pallas_call_p.called = pallas_call


def check_name(function: str, name: Any) -> None:
    """Raises TypeError for a name that is not a text."""
    if not isinstance(name, str | None):
        raise TypeError(f"{function}: name: expected string or bytes-like object, got {type(name).__name__!r}")


def _grid_spec(grid_spec: GridSpec | None, grid: Any, in_specs: Any, out_specs: Any, scratch_shapes: Any) -> GridSpec:
    """The spec of the grid. Raises ValueError if a part of it is given twice."""
    if grid_spec is None:
        return GridSpec(grid, in_specs, out_specs, scratch_shapes)
    given = dict(grid=(grid, ()), in_specs=(in_specs, no_block_spec), out_specs=(out_specs, no_block_spec))
    for name, (value, default) in {**given, "scratch_shapes": (scratch_shapes, ())}.items():
        if value is not default and value != default:
            shown = "no_block_spec" if default is no_block_spec else default
            raise ValueError(f"If `grid_spec` is specified, then `{name}` must be `{shown}`. It is {value}")
    return grid_spec


@dataclasses.dataclass
class _Call:
    """A kernel with its specs, which is traced for the types of the operands."""

    kernel: Callable
    out_shape: Any
    spec: GridSpec
    aliases: tuple[tuple[int, int], ...]
    options: dict

    def __call__(self, args: tuple) -> Any:
        leaves, in_tree = tree.flatten(args)
        avals = tuple(map(_array_type, leaves))
        outs, out_tree = tree.flatten(self.out_shape)
        out_avals = tuple(map(_result_type, outs))
        grid, bounds = grid_bounds(self.spec.grid)
        mapping, scalar_refs = self.mapping(grid, avals, in_tree, out_avals, out_tree)
        mapping = mapping.with_result_spaces([getattr(x, "memory_space", None) for x in outs])
        self._check_aliases(avals, out_avals)
        jaxpr, captured = self.traced(mapping, scalar_refs, in_tree, out_tree)
        params = dict(
            jaxpr=jaxpr, grid_mapping=mapping, input_output_aliases=self.aliases, out_avals=out_avals, **self.options
        )
        params["interpret"] = chosen(params["interpret"])
        name = self.options["name"]
        with extended_name_stack(*([] if name is None else [name])):
            results = pallas_call_p.bind(*captured, *bounds, *leaves, **params)
        return out_tree.unflatten(results)

    def mapping(
        self, grid: tuple, avals: tuple, in_tree: Any, out_avals: tuple, out_tree: Any
    ) -> tuple[GridMapping, list[AbstractRef]]:
        """The blocks of all operands and results, and the types of the references of prefetched scalars."""
        spec, local = self.spec, Grid(grid)
        count = spec.num_scalar_prefetch
        parts = in_tree.children()
        prefetched = sum(part.num_leaves for part in parts[:count])
        scalars = [AbstractRef(a, TpuMemorySpace.SMEM) for a in avals[:prefetched]]
        index_tree, index_avals = index_types(len(grid), scalars, parts[:count])
        in_specs = _flat_specs("in_specs", spec.in_specs, "inputs", tree.treedef_tuple(parts[count:]))
        out_specs = _flat_specs("out_specs", spec.out_specs, "out_shape", out_tree)
        origins = ["args" + "".join(path) for path in paths.leaf_paths(in_tree)][prefetched:]
        origins += ["outputs" + "".join(path) for path in paths.leaf_paths(out_tree)]
        blocks = [
            block_mapping(s, a, origin, local, index_tree, index_avals)
            for s, a, origin in zip([*in_specs, *out_specs], [*avals[prefetched:], *out_avals], origins, strict=True)
        ]
        scratch = tuple([s.get_ref_aval() for s in tree.tree_leaves(spec.scratch_shapes)])
        mapping = GridMapping(
            grid,
            spec.grid_names,
            tuple(blocks),
            index_tree,
            index_avals,
            (),
            prefetched,
            len(in_specs),
            len(out_specs),
            scratch,
        )
        return mapping, scalars

    def traced(self, mapping: GridMapping, scalars: Sequence, in_tree: Any, out_tree: Any) -> tuple[Jaxpr, list]:
        """The kernel as a jaxpr, and the references that it captures. Raises ValueError if it captures an array or
        returns something."""
        trees = in_tree, out_tree, tree.tree_structure(self.spec.scratch_shapes)
        refs = [*scalars, *[b.ref_aval for b in mapping.block_mappings], *mapping.scratch_avals]
        where = f"The kernel function in the pallas_call {source_of(self.kernel)}"
        with within(mapping.local_grid, mapping.grid_names), traced_for(self.options["interpret"]):
            jaxpr, consts = traced_kernel(self.kernel, "pallas_call kernel", refs, trees, (where, "constants"))
        return prune_fresh(jaxpr, (), True)[0], consts

    def _check_aliases(self, avals: tuple, out_avals: tuple) -> None:
        """Raises ValueError for an alias of an operand or result that is not there, or of another type."""
        for i, o in self.aliases:
            for kind, k, of in (("input", i, avals), ("output", o, out_avals)):
                if not 0 <= k < len(of):
                    raise ValueError(
                        f"input_output_aliases contains the mapping '{i}:{o}' with {kind} index {k} outside the range "
                        f"[0, {len(of)})"
                    )
            if (avals[i].shape, avals[i].dtype) != (out_avals[o].shape, out_avals[o].dtype):
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' referring to input[{i}] with abstract value "
                    f"{avals[i].str_short()} and to output[{o}] with a different abstract value "
                    f"{out_avals[o].str_short()}"
                )


def traced_kernel(
    kernel: Callable,
    purpose: str,
    refs: Sequence,
    trees: tuple[Any, Any, Any],
    words: tuple[str, ...],
    allows_scalars: bool = False,
) -> tuple[Jaxpr, list]:
    """A function of references as a jaxpr, and the references, and scalars if these are allowed, that it captures.

    `trees` are those of its inputs, results and scratch; scratch in a dict is passed by name. `words` are for messages:
    the function, what it must not capture, and the function that returns something, if that is told otherwise.

    Raises ValueError if it captures an array or returns something.
    """
    in_tree, out_tree, scratch_tree = trees
    n, m = in_tree.num_leaves, in_tree.num_leaves + out_tree.num_leaves
    where, constants = words[:2]

    def run(*leaves):
        outs = out_tree.unflatten(leaves[n:m])
        scratch = scratch_tree.unflatten(leaves[m:])
        positional = (*in_tree.unflatten(leaves[:n]), *(outs if isinstance(outs, tuple) else (outs,)))
        named = isinstance(scratch, dict)
        result = kernel(*positional, **scratch) if named else kernel(*positional, *scratch)
        if result is not None:
            returned = words[2] if len(words) > 2 else where
            raise ValueError(
                f"{returned} should return None. It returns a PyTree: {tree.tree_structure(result)}. Write results "
                "to the references of the results."
            )
        return []

    info = DebugInfo(purpose, source_of(kernel), _names(kernel, in_tree, out_tree, scratch_tree))
    jaxpr, consts = trace_to_jaxpr(run, refs, info)
    arrays = [typeof(c) for c in consts if not isinstance(c, Ref)]
    if allows_scalars:
        arrays = [a for a in arrays if a.shape]
    if arrays:
        shown = ", ".join(a.str_short(True) for a in arrays)
        raise ValueError(f"{where} captures {constants} [{shown}]. You should pass them as inputs.")
    return jaxpr, consts


def _names(kernel: Callable, in_tree: Any, out_tree: Any, scratch_tree: Any) -> tuple[str, ...]:
    """The names of the kernel's references."""
    outs = out_tree.children() if (out_tree.node_data() or (None,))[0] is tuple else (out_tree,)
    node = scratch_tree.node_data()
    is_named = node is not None and node[0] is dict
    positional = [*in_tree.children(), *outs, *(() if is_named else scratch_tree.children())]
    both = tree.treedef_tuple((tree.treedef_tuple(positional), scratch_tree if is_named else tree.tree_structure({})))
    return argument_names(signature_of(kernel), both, ())


def _array_type(x: Any) -> ShapedArray:
    aval = typeof(x)
    return aval.update(weak_type=False) if isinstance(aval, ShapedArray) else aval


def _result_type(x: Any) -> ShapedArray:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(f"Invalid out_shape type: {type(x)}")
    return ShapedArray(shape_of(x.shape), x.dtype)


def _flat_specs(name: str, specs: Any, of: str, treedef: Any) -> list:
    """A spec for each leaf. Raises ValueError if the trees differ."""
    if specs is no_block_spec:
        return [no_block_spec] * treedef.num_leaves
    is_spec = lambda x: isinstance(x, BlockSpec) or x is no_block_spec  # noqa: E731
    leaves, found = tree.flatten(specs, is_spec)
    if found != treedef:
        differences = list(tree.equality_errors_pytreedef(found, treedef))
        lines = [
            f"    * at {tree.keystr(path) or 'the root'}, `{name}` is a {mine} but `{of}` is a {theirs}, so {why}"
            for path, mine, theirs, why in differences
        ]
        raise ValueError(
            f"Pytree for `{name}` and `{of}` do not match. There are {len(lines)} mismatches, including:\n"
            + "\n".join(lines)
        )
    return leaves
