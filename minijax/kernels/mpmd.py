"""`kernel` and `core_map`: functions of references that run on each core of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from minijax.base import tree
from minijax.base.dims import shape_of
from minijax.base.thread import named_axis
from minijax.composed.callbacks.ffi import FrozenDict
from minijax.ir.body import source_of
from minijax.ir.context import extended_name_stack
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from minijax.ir.refs import REF_EFFECT, AbstractRef, Ref
from minijax.ir.trace import close_over, trace_to_jaxpr
from minijax.ir.types import Device, ShapedArray, Zero, typeof
from minijax.kernels.batching import one_by_one
from minijax.kernels.blocks import CostEstimate
from minijax.kernels.call import check_name, traced_kernel
from minijax.kernels.captured import scalars_as_refs, whole_array
from minijax.kernels.grid import Grid, within
from minijax.kernels.mapping import GridMapping, index_types
from minijax.kernels.memory import CoreMemorySpace, TpuMemorySpace, of_core, placed
from minijax.kernels.mosaic import cores
from minijax.kernels.operations.tpu import KERNEL_EFFECT
from minijax.kernels.parameters import CoreType, TpuParams
from minijax.kernels.primitive import pallas_call_p
from minijax.kernels.simulator.options import InterpretParams, chosen, traced_for
from minijax.kernels.writes import written
from minijax.primitives.moving import broadcast_in_dim
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.discharge import DischargeableCall, dereferenced


class MpmdMap(DischargeableCall):
    """Runs kernels, each on all cores of its mesh, with whole arrays: (arrays and references) -> results."""

    name = "mpmd_map"
    same_memory_space = False
    never_dead = True

    def infer(self, *avals, out_avals, **params):
        return list(out_avals)

    def effects(self, *avals, out_avals, **params):
        if any(type(a) is AbstractRef for a in avals):
            return REF_EFFECT
        return frozenset() if out_avals else KERNEL_EFFECT

    def discharge(self, operands, refs, **params):
        n, writes = len(operands), set[int]().union(*map(written, params["jaxprs"]))
        kept = [i for i, x in enumerate(operands) if isinstance(x, Ref) and i in writes]
        avals = [operands[i].aval.inner_aval for i in kept]
        first = len(params["out_avals"])

        def changed_in_place(jaxpr):
            # (operands, results, scratch) -> (operands, results, last values of references, scratch)
            own = [Var(jaxpr.invars[i].aval) for i in kept]
            invars = [*jaxpr.invars[: n + first], *own, *jaxpr.invars[n + first :]]
            return jaxpr.replace(invars=invars, debug_info=jaxpr.debug_info._replace(arg_names=None))

        aliases = {**params["input_output_aliases"].items, **{i: first + k for k, i in enumerate(kept)}}
        params = {
            **params,
            "jaxprs": tuple(map(changed_in_place, params["jaxprs"])),
            "out_avals": (*params["out_avals"], *avals),
            "input_output_aliases": FrozenDict(aliases),
        }
        values = dereferenced(operands)
        changed = {operands[i]: first + k for k, i in enumerate(kept)}
        first_of = {r: operands.index(r) for r in refs}

        def finish(results):
            return results[:first], [results[changed[r]] if r in changed else values[first_of[r]] for r in refs]

        return values, params, finish

    def lower(self, e, ins, outs, *operands, **params):
        is_compiled = e.platform == "tpu" and not params["interpret"]
        if _has_scalars(params):
            closed = _without_scalars(tuple(ins), params, is_compiled)
            return e.inlined(closed.jaxpr, e.constants(closed), operands)
        if is_compiled:
            return cores.lower(e, ins, outs, operands, params)
        if params["external_meshes"]:
            raise NotImplementedError(
                "pl.kernel: External meshes are not currently supported in fallback lowering: the memory of others is "
                "for compiled kernels"
            )
        if len(params["meshes"]) == 1:
            return pallas_call_p.lower(e, ins, outs, *operands, **_as_call(len(operands), params))
        how = params["interpret"]
        if isinstance(how, InterpretParams) or (not how and e.platform != "cpu"):
            raise NotImplementedError(
                "pl.kernel: several kernels run one after the other, with interpret=True, got the meshes "
                f"{params['meshes']}"
            )
        closed = _in_turn(tuple(ins), params)
        return e.inlined(closed.jaxpr, e.constants(closed), operands)

    def jvp(self, primals, tangents, **params):
        moved = nonzero_mask(tangents)
        outs, nonzeros, push = self.linearize(tuple(moved), primals, **params)
        found = iter(push(*moved.marked(tangents)))
        return outs, [next(found) if n else Zero.from_primal_value(x) for x, n in zip(outs, nonzeros, strict=True)]

    def linearize(self, nonzeros, primals, **params):
        if _has_scalars(params):
            raise NotImplementedError("pl.kernel: derivatives of kernels that capture scalars; pass them as operands")
        return pallas_call_p.linearize(nonzeros, primals, **_as_call(len(primals), params))

    def batch(self, axis, operands, dims, **params):
        return one_by_one(self, axis, operands, dims, params)


class CoreMap(DischargeableCall):
    """Runs a function of references, the constants of its jaxpr, on each core of a mesh."""

    name = "core_map"
    never_dead = True

    def infer(self, *avals, **params):
        return []

    def effects(self, *avals, **params):
        return REF_EFFECT if avals else KERNEL_EFFECT

    def lower(self, e, ins, outs, *operands, **params):
        order, params = _as_map(params)
        return mpmd_map_p.lower(e, [ins[i] for i in order], outs, *[operands[i] for i in order], **params)

    def _on_values(self, operands, params):
        order, params = _as_map(params)
        operands, (jaxpr,), (mesh,) = [operands[i] for i in order], params["jaxprs"], params["meshes"]
        if mesh.core_type is CoreType.SC_SCALAR_SUBCORE and _has_scalars(params):
            operands = [x if isinstance(x, Ref) else broadcast_in_dim(x, (1,), ()) for x in operands]
            with _within(mesh):
                params["jaxprs"] = (scalars_as_refs(jaxpr, mesh.core_type, True, len(operands)),)
        return mpmd_map_p.bind_all(operands, params)


mpmd_map_p, core_map_p = MpmdMap(), CoreMap()


def _has_scalars(params: Mapping[str, Any]) -> bool:
    """Returns whether kernels have captured scalars among their operands."""
    return any(type(v.aval) is not AbstractRef for v in params["jaxprs"][0].invars)


def _without_scalars(ins: tuple, params: dict, is_compiled: bool) -> ClosedJaxpr:
    """The call of kernels with vectors of one element instead of captured scalars."""
    jaxprs = []
    for mesh, jaxpr in zip(params["meshes"], params["jaxprs"], strict=True):
        with _within(mesh, (*params["meshes"], *params["external_meshes"])):
            is_copied = is_compiled and mesh.core_type is not CoreType.TC
            jaxprs.append(scalars_as_refs(jaxpr, mesh.core_type, is_copied))
    is_scalar = [type(v.aval) is not AbstractRef for v in params["jaxprs"][0].invars[: len(ins)]]

    def run(*operands):
        vectors = [broadcast_in_dim(x, (1,), ()) if s else x for x, s in zip(operands, is_scalar, strict=True)]
        return mpmd_map_p.bind_all(vectors, {**params, "jaxprs": tuple(jaxprs)})

    return _as_program(run, ins, params)


def _as_program(run: Callable, ins: tuple, params: dict) -> ClosedJaxpr:
    """A function in place of a call, as a jaxpr."""
    info = DebugInfo("mpmd_map", params["jaxprs"][0].debug_info.func_src_info)
    return close_over(*trace_to_jaxpr(run, ins, info))[0]


def _in_turn(ins: tuple, params: dict) -> ClosedJaxpr:
    """Calls of several kernels one after the other. Each begins with the results of the one before."""

    aliased = params["input_output_aliases"].items
    own = [k for k in range(len(params["out_avals"])) if k not in aliased.values()]

    def run(*operands):
        operands, n, results = list(operands), len(operands), []
        for mesh, jaxpr in zip(params["meshes"], params["jaxprs"], strict=True):
            begun = own if results else []
            # (operands, results, scratch) -> (operands, earlier results, results, scratch)
            earlier = [Var(jaxpr.invars[n + k].aval) for k in begun]
            info = jaxpr.debug_info._replace(arg_names=None)
            jaxpr = jaxpr.replace(invars=[*jaxpr.invars[:n], *earlier, *jaxpr.invars[n:]], debug_info=info)
            aliases = FrozenDict({**aliased, **{n + i: k for i, k in enumerate(begun)}})
            one = dict(params, meshes=(mesh,), jaxprs=(jaxpr,), input_output_aliases=aliases)
            results = mpmd_map_p.bind_all([*operands, *[results[k] for k in begun]], one)
            for i, k in aliased.items():
                operands[i] = results[k]
        return results

    return _as_program(run, ins, params)


def _as_map(params: dict) -> tuple[list[int], dict]:
    """The parameters of a `core_map` as those of an `mpmd_map`, and the order of its operands: scalars come first."""
    jaxpr = params["jaxpr"]
    order = sorted(range(len(jaxpr.constvars)), key=lambda i: type(jaxpr.constvars[i].aval) is AbstractRef)
    own = [*[jaxpr.constvars[i] for i in order], *jaxpr.invars]
    shared = {n: params[n] for n in ("compiler_params", "cost_estimate", "debug", "interpret", "metadata", "name")}
    return order, dict(
        shared,
        external_meshes=(),
        input_output_aliases=FrozenDict({}),
        jaxprs=(jaxpr.replace(constvars=[], invars=own),),
        meshes=(params["mesh"],),
        out_avals=(),
    )


def _as_call(inputs: int, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a `pallas_call` over the cores, whose operands and results are whole arrays.

    Raises NotImplementedError for several kernels, which `lower` does not call it for.
    """
    (mesh, *more), (jaxpr, *_) = params["meshes"], params["jaxprs"]
    if more:
        raise NotImplementedError(f"pl.kernel: several kernels have no derivatives, got the meshes {params['meshes']}")
    outs = params["out_avals"]
    grid, names = tuple(mesh.shape.values()), tuple(mesh.axis_names)
    index_tree, index_avals = index_types(len(grid), [], [])
    refs = [of_core(placed(v.aval, mesh), mesh.core_type) for v in jaxpr.invars]
    last = inputs + len(outs)
    blocks = [whole_array(r, index_avals, "an operand") for r in refs[:last]]
    mapping = GridMapping(
        grid, names, tuple(blocks), index_tree, index_avals, (), 0, inputs, len(outs), tuple(refs[last:])
    )
    options = params["compiler_params"] or TpuParams()
    if getattr(options, "dimension_semantics", ()) is None:
        options = options.replace(dimension_semantics=mesh.dimension_semantics)
    return dict(
        jaxpr=jaxpr,
        grid_mapping=mapping,
        compiler_params=options,
        input_output_aliases=tuple(params["input_output_aliases"].items.items()),
        mesh=mesh,
        **{n: params[n] for n in ("cost_estimate", "debug", "interpret", "metadata", "name", "out_avals")},
    )


def _space_of(aval: Any) -> Any:
    space = getattr(aval, "memory_space", None)
    return space if isinstance(space, TpuMemorySpace | CoreMemorySpace) else None


def _within(mesh: Any, meshes: Sequence[Any] = ()) -> ExitStack:
    """Context manager: traces a function over the cores of a mesh, which knows the axes of `meshes`, too."""
    axes = ExitStack()
    for name, size in {n: s for m in meshes for n, s in m.shape.items() if n not in mesh.axis_names}.items():
        axes.enter_context(named_axis(name, size))
    axes.enter_context(within(Grid(tuple(mesh.shape.values())), tuple(mesh.axis_names)))
    return axes


def kernel(
    body: Any = None,
    out_type: Any = (),
    *,
    mesh: Any,
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: CostEstimate | None = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """Creates a function that runs a kernel on each core of a mesh, with references to whole arrays.

    Without a `body` it returns a decorator.

    Args:
      body: function of references: those of the operands, of the results and of the scratch. It copies between them and
        returns nothing. `jax.lax.axis_index` of the mesh's axis tells the core. Or a sequence of such functions, each
        for one of several meshes.
      out_type: tree of the results' types, such as `jax.ShapeDtypeStruct`s, or `pltpu.HBM(shape, dtype)`.
      mesh: mesh of cores, as `pltpu.create_tensorcore_mesh` returns.
      scratch_types: types of memory of each core; a dict gives keyword arguments.
      compiler_params: options of the compiler, `pl.tpu.CompilerParams`.
      interpret: True runs the kernel as operations of XLA, one core after the other, as kernels run on a CPU anyway;
        `pltpu.InterpretParams` runs it on a simulated TPU, all cores at a time.
      cost_estimate: `pl.CostEstimate` for XLA's scheduler.
      debug: whether to print the kernel's jaxpr and its module when it is lowered.
      name: name in profiles and modules. By default, that of `body`.
      metadata: texts that are kept with the call.

    Returns:
      A function of arrays, references and trees of these that returns arrays in the tree of `out_type`.

    Raises:
      NotImplementedError: when several bodies are simulated, or compiled for TensorCores: with `interpret=True` they
        run one after the other.
      TypeError: for another mesh, or a name that is not a text.
      ValueError: if a type of results or scratch is not that of an array, or the kernel captures an array that is not
        a scalar, or returns something.

    See also: `pl.core_map`, `pl.pallas_call`.

    Example:
        >>> mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
        >>> @pl.kernel(out_type=jax.ShapeDtypeStruct((4,), jnp.float32), mesh=mesh, interpret=True)
        ... def copy_halves(x_ref, o_ref):
        ...     half = pl.ds(2 * jax.lax.axis_index("core"), 2)
        ...     pltpu.sync_copy(x_ref.at[half], o_ref.at[half])
        >>> copy_halves(jnp.arange(4.0))
        Array([0., 1., 2., 3.], dtype=float32)
    """
    options = dict(
        compiler_params=compiler_params,
        cost_estimate=cost_estimate,
        debug=debug,
        interpret=interpret,
        metadata=None if metadata is None else FrozenDict(dict(metadata.items())),
        name=name,
    )
    _check_bodies(body, mesh)
    check_name("pl.kernel", name)
    if body is None:
        return lambda f: _over([f], out_type, [mesh], scratch_types, options)
    bodies, meshes = ([body], [mesh]) if callable(body) else (list(body), list(mesh))
    return _over(bodies, out_type, meshes, scratch_types, options)


def _check_bodies(body: Any, mesh: Any) -> None:
    """Raises ValueError unless there are as many bodies as meshes, TypeError for what is not a mesh."""
    several = isinstance(mesh, Sequence)
    if body is not None and not callable(body) and not several:
        if not isinstance(body, Sequence):
            raise TypeError(f"pl.kernel: body: the first argument must be callable, got {body!r}")
        raise ValueError("pl.kernel: mesh must be a sequence when body is a sequence of callables, got one mesh.")
    if several and (body is None or callable(body)):
        where = "using pl.kernel as a decorator" if body is None else "body is a single callable"
        raise ValueError(f"pl.kernel: mesh cannot be a sequence when {where}. Pass one mesh.")
    _check_meshes(list(mesh) if several else [mesh], len(body) if several else 1)


def _check_meshes(meshes: Sequence, bodies: int) -> None:
    """Raises ValueError unless there are as many meshes as bodies, and at least one, TypeError for another thing."""
    for i, one in enumerate(meshes):
        if not hasattr(one, "default_memory_space"):
            raise TypeError(
                f"pl.kernel: mesh must be a mesh of cores, got {one!r}. Make it by pltpu.create_tensorcore_mesh."
            )
        for other in meshes[i + 1 :]:
            one.check_is_compatible_with(other)
    if len(meshes) != bodies:
        raise ValueError(
            f"pl.kernel: body and mesh sequences must have the same length. Got {bodies} bodies, {len(meshes)} meshes"
        )
    if not meshes:
        raise ValueError("pl.kernel: At least one mesh/function pair is required")


def _over(bodies: Sequence, out_type: Any, meshes: Sequence, scratch_types: Any, options: dict) -> Callable:
    """The function that runs kernels, each over its mesh."""
    out_type, scratch_types = [tuple(x) if isinstance(x, list) else x for x in (out_type, scratch_types)]
    outs, out_tree = tree.flatten(out_type)
    out_avals = tuple(map(_result_type, outs))
    scratch, scratch_tree = tree.flatten(scratch_types)

    def wrapper(*args):
        leaves, in_tree = tree.flatten(args)
        if len(passed := [x for x in leaves if isinstance(x, Ref)]) > len(set(map(id, passed))):
            raise NotImplementedError("pl.kernel: Cannot pass the same ref into a mpmd map multiple times")
        avals = tuple(map(typeof, leaves))
        if len(meshes) > 1:
            _check_scratch(scratch)
        external = _others(meshes, (*avals, *out_avals))
        refs = [*[_as_ref(a, meshes) for a in (*avals, *out_avals)], *map(_scratch_ref, scratch)]
        trees = in_tree, out_tree, scratch_tree
        with traced_for(options["interpret"]):
            traced = [_traced(f, m, (*meshes, *external), refs, trees) for f, m in zip(bodies, meshes, strict=True)]
        captured = list({id(x): x for _, found in traced for x in found}.values())
        if any(c is x for c in captured for x in passed):
            raise NotImplementedError("pl.kernel: Closed-over ref aliases with a passed-in ref is not supported.")
        params = dict(
            external_meshes=external,
            input_output_aliases=FrozenDict({}),
            jaxprs=tuple([_closed(jaxpr, len(leaves), found, captured) for jaxpr, found in traced]),
            meshes=tuple(meshes),
            out_avals=out_avals,
            **{**options, "interpret": chosen(options["interpret"])},
        )
        with extended_name_stack(*([] if options["name"] is None else [options["name"]])):
            return out_tree.unflatten(mpmd_map_p.bind(*leaves, *captured, **params))

    return wrapper


def _check_scratch(types: Sequence) -> None:
    """Raises NotImplementedError for memory of cores that names none of several meshes."""
    for one in types:
        space = one.get_ref_aval().memory_space
        if not isinstance(space, CoreMemorySpace) and space not in (TpuMemorySpace.HBM, TpuMemorySpace.VMEM_SHARED):
            raise NotImplementedError(
                "pl.kernel: MPMD map with more than one mesh requires scratch_type to have a `core_type` specified, "
                f"but {one} is missing it. Say to which mesh it belongs by `@ mesh`"
            )


def _others(meshes: Sequence, avals: Sequence) -> tuple:
    """The meshes beside `meshes` that own memory of operands and results. Raises ValueError unless all go together."""
    found: list[Any] = []
    for a in avals:
        space = _space_of(a) if type(a) is ShapedArray else None
        if isinstance(space, CoreMemorySpace) and space.mesh not in (*meshes, *found):
            found.append(space.mesh)
    for i, mesh in enumerate(every := (*meshes, *found)):
        for other in every[max(i + 1, len(meshes)) :]:
            mesh.check_is_compatible_with(other)
    return tuple(found)


def _traced(body: Callable, mesh: Any, meshes: Sequence, refs: Sequence, trees: tuple) -> tuple[Jaxpr, list]:
    """A kernel as a jaxpr, and the references that it captures."""
    where = source_of(body)
    words = (
        f"The kernel function in the mpmd_map {where}",
        "non-Ref constants",
        f"The kernel function in mpmd_map {where}",
    )
    with _within(mesh, meshes):
        return traced_kernel(body, "mpmd_map", refs, trees, words, True)


def _closed(jaxpr: Jaxpr, inputs: int, own: Sequence, captured: Sequence) -> Jaxpr:
    """The jaxpr with what all kernels capture as inputs, after those of the operands; it captures its `own` itself."""
    known = {id(x): v for x, v in zip(own, jaxpr.constvars, strict=True)}
    extra = [known.get(id(x)) or Var(typeof(x)) for x in captured]
    invars = [*jaxpr.invars[:inputs], *extra, *jaxpr.invars[inputs:]]
    return jaxpr.replace(constvars=[], invars=invars, debug_info=jaxpr.debug_info._replace(arg_names=None))


def _scratch_ref(x: Any) -> AbstractRef:
    """The type of the reference to scratch. Raises ValueError for another thing."""
    if not hasattr(x, "get_ref_aval"):
        raise ValueError(f"Unsupported abstract value type: {(type(x), x)}. Scratch is as pltpu.VMEM(shape, dtype)")
    return x.get_ref_aval()


def _as_ref(aval: Any, meshes: Sequence) -> AbstractRef:
    """The type of the reference to an operand or result. Raises ValueError if the meshes have different defaults."""
    if isinstance(aval, AbstractRef):
        return aval
    space = aval.memory_space
    if space is Device:
        space, *others = {mesh.default_memory_space: None for mesh in meshes}
        if others:
            raise ValueError(
                "pl.kernel: Multiple meshes with different default memory spaces are not supported. Name the memory "
                f"space, as pltpu.HBM(shape, dtype) does, got {meshes}"
            )
    return AbstractRef(ShapedArray(aval.shape, aval.dtype), space)


def _result_type(x: Any) -> ShapedArray:
    """The type of a result, with the memory space that `out_type` names. Raises ValueError for another thing."""
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(f"pl.kernel: Invalid out_shape type: {type(x)}. It is a tree of types of arrays, got {x!r}")
    x = x.get_array_aval().update(memory_space=x.get_ref_aval().memory_space) if hasattr(x, "get_ref_aval") else x
    space, aval = _space_of(x), ShapedArray(shape_of(x.shape), x.dtype)
    return aval if space is None else aval.update(memory_space=space)


def core_map(
    mesh: Any,
    *,
    compiler_params: Any = None,
    interpret: Any = False,
    debug: bool = False,
    cost_estimate: CostEstimate | None = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: Any = (),
) -> Callable[[Callable[..., None]], None]:
    """Runs the decorated function at once, on each core of a mesh. It reads and writes references that it captures.

    Args:
      mesh: mesh of cores, as `pltpu.create_tensorcore_mesh` returns.
      compiler_params, interpret, debug, cost_estimate, metadata: as in `pl.kernel`.
      name: name in profiles and modules. By default, that of the function.
      scratch_shapes: types of memory of each core, which the function gets as arguments.

    Raises ValueError if the function captures an array that is not a scalar, or returns something.

    See also: `pl.kernel`, `jax.new_ref`.

    Example:
        >>> x, y = jax.new_ref(jnp.arange(3)), jax.new_ref(jnp.zeros(3, jnp.int32))
        >>> @pl.core_map(pltpu.create_tensorcore_mesh("core"), interpret=True)
        ... def copy():
        ...     pltpu.sync_copy(x, y)
        >>> print(y[...])
        [0 1 2]
    """
    scratch_shapes = tuple(scratch_shapes) if isinstance(scratch_shapes, list) else scratch_shapes

    def run(f):
        scratch, scratch_tree = tree.flatten(scratch_shapes)
        refs, empty = list(map(_scratch_ref, scratch)), tree.tree_structure(())
        where = f"The kernel function in core_map {source_of(f)}", "non-scalar constants"
        with _within(mesh), traced_for(interpret):
            jaxpr, captured = traced_kernel(f, "pallas_core_map", refs, (empty, empty, scratch_tree), where, True)
        core_map_p.bind(
            *captured,
            compiler_params=compiler_params,
            cost_estimate=cost_estimate,
            debug=debug,
            debug_info=jaxpr.debug_info,
            interpret=chosen(interpret),
            jaxpr=jaxpr,
            mesh=mesh,
            metadata=None if metadata is None else FrozenDict(dict(metadata.items())),
            name=jaxpr.debug_info.func_name if name is None else name,
        )

    return run
