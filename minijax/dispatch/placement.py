"""The devices on which a program runs, and the sharding and layout of each argument and result."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minijax.base import cache, dtypes, stack
from minijax.base.mask import Mask
from minijax.hlo.program import Port
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr
from minijax.ir.types import ShapedArray, space_of
from minijax.partition import meshes
from minijax.partition.layouts import AutoLayout, Layout, check_layout, shown, stored
from minijax.partition.memory import Device, Host, MemorySpace
from minijax.partition.meshes import Mesh, P
from minijax.partition.shardings import MEMORY_KINDS, UNSPECIFIED, NamedSharding, Sharding, check_sharding_of_type
from minijax.run.arrays.array import Signature
from minijax.run.clients import client
from minijax.transforms.prune import prune_closed


class Request(NamedTuple):
    """The sharding, layout and donation that are requested for an argument or a result of a program."""

    sharding: Sharding | None = None  # None: the argument's own; XLA chooses that of a result
    layout: Layout | AutoLayout | None = None  # None: the argument's own; the default one of a result
    donated: bool = False
    path: str | None = None  # of an argument of an exported program, for messages


def requests(shardings: Sequence = (), layouts: Sequence = (), donated: Sequence[bool] = ()) -> tuple[Request, ...]:
    """A request for each argument or result; () if nothing is requested of any."""
    rows = zip_longest(shardings, layouts, donated)
    made = [Request(None if s is UNSPECIFIED else s, layout, bool(d)) for s, layout, d in rows]
    return tuple(made) if any(request != _NOTHING for request in made) else ()


_NOTHING = Request()


class ProgramOptions(NamedTuple):
    """The options of a program, besides its jaxpr."""

    name: str
    ins: tuple[Request, ...] = ()  # of the last arguments; nothing is requested for the others, before them
    outs: tuple[Request, ...] = ()
    keep_unused: bool = False
    device: Any = None
    compiler_options: tuple[tuple[str, Any], ...] = ()
    export: tuple[tuple[Any, Any], ...] | None = None  # of an exported program: (primitive, its lowering rule) pairs
    is_pjit: bool = False  # the context mesh is that of `with mesh:`
    counts_unread: bool = False  # the devices of arguments that are not read count, as for an operation

    @property
    def context_mesh(self) -> Mesh | None:
        """The context mesh, on which the program runs, if any."""
        if self.is_pjit:
            return meshes.legacy_context_mesh()
        mesh = meshes.mesh_for_specs()
        return mesh if isinstance(mesh, Mesh) else meshes.context_mesh()

    def of_arguments(self, count: int) -> tuple[Request, ...]:
        """A request for each of `count` arguments."""
        return (*(_NOTHING,) * (count - len(self.ins)), *self.ins)

    @property
    def requests_shardings(self) -> bool:
        """True if a sharding is requested of any argument or result."""
        return any(request.sharding is not None for request in (*self.ins, *self.outs))


class Placement(NamedTuple):
    """The devices of a program and the ports of its arguments and results; XLA chooses shardings that are None."""

    devices: tuple  # () of an abstract mesh
    committed: bool
    ins: tuple[Port, ...]
    outs: tuple[Port, ...]
    mesh: Mesh | None = None  # whose axes name the shardings that XLA chooses
    names_memory: bool = False  # the program uses other memories than that of the devices

    @property
    def num_devices(self) -> int:
        """The number of devices, also of an abstract mesh."""
        return len(self.devices) if self.devices or self.mesh is None else self.mesh.size

    @property
    def is_sharded(self) -> bool:
        """True if the module states shardings."""
        return not self.devices or len(self.devices) > 1 or self.names_memory

    def replicated(self) -> Sharding:
        """The sharding that replicates an array over the devices."""
        if self.mesh is not None:
            return NamedSharding(self.mesh, P())
        return client.single_device_sharding(self.devices[0])


@cache.weak_cache
def shardings_in(jaxpr: Jaxpr) -> tuple[Any, ...]:
    """The shardings in equations of a jaxpr and its inner jaxprs: (name of the primitive, sharding) pairs."""
    named_by: dict[Any, None] = {}
    seen, waiting = set(), [jaxpr]
    while waiting:
        now = waiting.pop()
        if now not in seen:
            seen.add(now)
            for eqn in now.eqns:
                if eqn.primitive.shardings is not None:
                    for s in eqn.primitive.shardings(eqn.params):
                        named_by[eqn.primitive.name, s] = None
            waiting.extend(now.inner)
    return tuple(named_by)


def choose_placement(operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr) -> Placement:
    """Chooses the devices of a program, and the shardings and layouts, for operands with these signatures.

    Raises ValueError if operands, options and program require different devices, or if an operand does not have, or
    cannot have, the sharding or layout that is requested.
    """
    ins, outs = _ports(operands, options, closed)
    if options.keep_unused or options.counts_unread or options.export is not None:
        placement = _choose_devices(operands, options, closed, ins, outs)
    else:  # the devices of what nothing reads do not count
        part, reads = _read_part(closed)
        placement = _choose_devices(reads.marked(operands), options, part, reads.marked(ins), outs)
        if not all(reads):
            unread = without_sharding(reads.unmarked(ins))
            placement = placement._replace(ins=tuple(reads.merge(unread, placement.ins)))
    return _with_layouts(placement, operands, options, closed)


def _ports(operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr) -> tuple[list, list]:
    """The arguments and results with their names, donations and requested shardings."""
    info, wanted = closed.debug_info, options.of_arguments(len(operands))
    names = info.arg_names or (None,) * len(operands)
    ins = [
        Port(sig.aval, name, request.path, request.sharding, donated=request.donated)
        for sig, name, request in zip(operands, names, wanted, strict=False)
    ]
    avals, paths = closed.out_avals, info.result_paths
    paths = paths if paths is not None and len(paths) == len(avals) else (None,) * len(avals)
    outs = [Port(aval, path) for aval, path in zip(avals, paths, strict=True)]
    if options.outs:
        outs = [port._replace(sharding=r.sharding) for port, r in zip(outs, options.outs, strict=True)]
    return ins, outs


def _with_layouts(
    placement: Placement, operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr
) -> Placement:
    """The placement with the layouts of arguments and results."""
    constrained = _with_layout_constraints(closed)
    requests_layouts = any(request.layout for request in (*options.ins, *options.outs))
    if not (requests_layouts or constrained or any(sig.layout is not None for sig in operands)):
        return placement
    ins, outs = [], []
    for i, (port, sig, r) in enumerate(zip(placement.ins, operands, options.of_arguments(len(operands)), strict=True)):
        check_layout(r.layout, sig.aval, f"jit arguments with pytree key path {_name(port, i)}")
        ins.append(port._replace(layout=sig.layout if r.layout is None else _stored(r.layout, sig.aval.ndim)))
    wanted = options.outs or (_NOTHING,) * len(placement.outs)
    for v, port, request in zip(closed.outvars, placement.outs, wanted, strict=True):
        check_layout(layout := request.layout, port.aval, "jit outputs with pytree key path result")
        chosen = Layout.AUTO if layout is None and v in constrained else layout and _stored(layout, port.aval.ndim)
        outs.append(port._replace(layout=chosen))
    return placement._replace(ins=tuple(ins), outs=tuple(outs))


_CONSTRAINTS = ("layout_constraint", "sharding_constraint")


def _with_layout_constraints(closed: ClosedJaxpr) -> set:
    """The variables whose layouts a constraint determines."""
    eqns = [eqn for eqn in closed.eqns if eqn.primitive.name in _CONSTRAINTS and eqn.params["layout"]]
    return {v for eqn in eqns for v in eqn.outvars}


def _name(port: Port, i: int) -> str:
    """The name of argument `i` in messages."""
    return port.name or f"args[{i}]"


def _stored(layout, ndim):
    return layout if layout is Layout.AUTO else stored(layout, ndim)


def check_argument_layouts(operands: Sequence[Signature], options: ProgramOptions) -> None:
    """Raises ValueError for a committed operand with another layout than the requested one."""
    for sig, request in zip(operands, options.of_arguments(len(operands)), strict=True) if options.ins else ():
        layout = request.layout
        if isinstance(layout, Layout) and sig.committed and stored(layout, sig.aval.ndim) != sig.layout:
            raise ValueError(
                f"Layout passed to jit does not match the layout on the respective arg. Got jit layout: {layout},\n"
                f"arg layout: {shown(sig.layout, sig.aval.ndim)} for arg type: {sig.aval.str_short()}."
            )


@stack.deep
def _read_part(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Mask]:
    """The jaxpr without dead equations and unread arguments, and which arguments are read."""
    return prune_closed(closed, (True,) * len(closed.outvars))


def _choose_devices(
    operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr, ins: list[Port], outs: list[Port]
) -> Placement:
    inside = shardings_in(closed.jaxpr)
    if options.device is not None:
        required = [(_RESULTS, client.single_device_sharding(options.device))]
        _check_devices(required + _with_concrete_devices(inside), ins, options)
        return Placement((options.device,), True, without_sharding(ins), without_sharding(outs))
    device, is_plain = None, not options.requests_shardings
    for sig in operands:
        if sig.committed:
            is_single = sig.device is not None and sig.sharding == client.single_device_sharding(sig.device)
            is_plain = is_plain and is_single and device in (None, sig.device)
            device = sig.device
        elif sig.device is None:
            raise NotImplementedError(
                f"Having uncommitted Array sharded on multiple devices is not supported. {options.name} is called with "
                f"one sharded as {sig.sharding}"
            )
    if not is_plain or inside or options.context_mesh is not None or options.export is not None:
        return _placement_by_shardings(operands, options, closed, ins, outs)
    return Placement(
        (client.default_device() if device is None else device,), device is not None, tuple(ins), tuple(outs)
    )


def without_sharding(ports: Sequence[Port]) -> tuple[Port, ...]:
    """The ports without shardings."""
    return tuple([port if port.sharding is None else port._replace(sharding=None) for port in ports])


def _placement_by_shardings(
    operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr, ins: list[Port], outs: list[Port]
) -> Placement:
    """The placement that operands, options and the program itself require."""
    inside = shardings_in(closed.jaxpr)
    ins = [_of_argument(i, sig, port, options) for i, (sig, port) in enumerate(zip(operands, ins, strict=True))]
    _check_results(outs)
    required, mesh = _requirements(ins, outs, inside), options.context_mesh
    concrete = _with_concrete_devices(required)
    spaces = [s for _, s in inside if isinstance(s, MemorySpace)]
    if concrete or mesh is not None:
        placement = _over_devices(concrete, mesh, ins, outs, options)
    elif named := [port.sharding for port in (*ins, *outs) if port.sharding is not None]:
        placement = _abstract(named, ins, outs)
    else:
        _check_abstract([*ins, *outs])
        placement = Placement((client.default_device(),), bool(spaces), tuple(ins), tuple(outs))
    names_memory = Host in spaces or not all(s._in_default_memory for _, s in required)
    return _naming_memories(placement) if names_memory else placement


def _over_devices(
    concrete: list, mesh: Mesh | None, ins: list[Port], outs: list[Port], options: ProgramOptions
) -> Placement:
    """The placement over the devices of concrete requirements and of the context mesh."""
    if mesh is not None:
        concrete = [*concrete, (_CONTEXT, NamedSharding(mesh, P()))]
    devices = _check_devices(concrete, ins, options)
    ins, outs = ([_on_devices(port, devices) for port in ports] for ports in (ins, outs))
    mesh = next((s.mesh for _, s in concrete if isinstance(s, NamedSharding)), None)
    if mesh is not None and mesh.are_all_axes_explicit:
        outs = [p if p.sharding else p._replace(sharding=_sharding_of_type(mesh, p.aval)) for p in outs]
    if len(devices) > 1:
        ins = [p if p.sharding else p._replace(sharding=_replicated_if_scalar(p.aval, devices)) for p in ins]
    return Placement(devices, True, tuple(ins), tuple(outs), mesh)


def _naming_memories(placement: Placement) -> Placement:
    """The placement with the memory kind of each sharding, and of each result."""

    def with_kind(port, default):
        return port._replace(memory_kind=default if port.sharding is None else port.sharding.memory_kind)

    kinds = [MEMORY_KINDS.get(space_of(port.aval), MEMORY_KINDS[Device]) for port in placement.outs]
    ins, outs = tuple([with_kind(port, None) for port in placement.ins]), tuple(map(with_kind, placement.outs, kinds))
    return placement._replace(ins=ins, outs=outs, names_memory=True)


def _is_abstract(sharding: Any) -> bool:
    return isinstance(getattr(sharding, "mesh", None), meshes.AbstractMesh)


def _abstract(named: Sequence, ins: list[Port], outs: list[Port]) -> Placement:
    """The placement over an abstract mesh of a program that can be lowered but not run."""
    mesh = named[0].mesh
    for s in named:
        if s.mesh.size != mesh.size:
            raise ValueError(f"AbstractMesh should be of the same size across all shardings. Got {mesh} and {s.mesh}")
    return Placement((), True, tuple(ins), tuple(outs), mesh)


def _check_abstract(ports: Sequence[Port]) -> None:
    """Raises ValueError if a type has a mesh of several devices and the program runs on one."""
    for aval in [p.aval for p in ports] if meshes.abstract_context() is None else ():
        if aval.has_mesh and aval.sharding.mesh.size > 1:
            raise ValueError(
                f"Length of device assignment 1 is not equal to the size of the mesh {aval.sharding.mesh.size} of "
                f"{aval.str_short(True)}. `jax.set_mesh` makes a mesh the program's"
            )


def over_abstract_context(placement: Placement) -> Placement:
    """The placement of a program that is lowered without devices, over the abstract context mesh if there is one."""
    mesh: Any = meshes.abstract_context()
    if mesh is None or meshes.context_mesh() is not None or placement.num_devices != 1 or placement.committed:
        return placement
    ins, outs = ([p._replace(memory_kind=None) for p in side] for side in (placement.ins, placement.outs))
    return Placement((), True, without_sharding(ins), without_sharding(outs), mesh)


def _with_concrete_devices(required: Sequence) -> list[tuple[Any, Any]]:
    """The requirements that name devices."""
    return [pair for pair in required if not (isinstance(pair[1], MemorySpace) or _is_abstract(pair[1]))]


def _check_devices(required: Sequence, ins: Sequence[Port], options: ProgramOptions) -> tuple:
    """The devices of all requirements. Raises ValueError if these differ."""
    devices = required[0][1]._device_assignment
    for other in required[1:]:
        if other[1]._device_assignment != devices:
            _incompatible(required[0], other, ins, options)
    return devices


def _on_devices(port: Port, devices: tuple) -> Port:
    """The port with its sharding over these devices if that is over an abstract mesh, which must be of equal size."""
    sharding = port.sharding
    if not isinstance(sharding, NamedSharding) or not _is_abstract(sharding):
        return port
    return port._replace(sharding=sharding.update(mesh=concrete_mesh(sharding.mesh, devices)))


def concrete_mesh(mesh: Any, devices: tuple) -> Mesh:
    """An abstract mesh over these devices. Raises ValueError for another number of them."""
    if mesh.size != len(devices):
        raise ValueError(f"AbstractMesh size: {mesh.size} does not match the device assignment size: {len(devices)}")
    return Mesh(np.reshape(devices, mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


def on_devices(placement: Placement, devices: tuple) -> Placement:
    """A placement over an abstract mesh on these devices instead. Raises ValueError for another number of them."""
    if (size := placement.num_devices) != len(devices):
        raise ValueError(
            f"The size of abstract mesh {size}, {placement.mesh}, must match the length of device assignment: "
            f"{len(devices)}"
        )
    ins, outs = (tuple([_on_devices(port, devices) for port in side]) for side in (placement.ins, placement.outs))
    return placement._replace(devices=devices, ins=ins, outs=outs, mesh=concrete_mesh(placement.mesh, devices))


def mesh_of_type(mesh: Any, aval: Any) -> Any:
    """`mesh`, with the axes of the mesh in a type if that differs."""
    if not aval.has_mesh or mesh.has_axes_of(named := aval.own_sharding.mesh):
        return mesh
    return Mesh(np.reshape(mesh._flat_devices_tuple, named.axis_sizes), named.axis_names, named.axis_types)


def _sharding_of_type(mesh: Any, aval: Any) -> Sharding | None:
    """The sharding of a result over a mesh with Explicit axes only; None if its type has a mesh with Auto axes."""
    if type(aval) is not ShapedArray or (mesh := mesh_of_type(mesh, aval)).auto_axes:
        return None
    if aval.has_mesh:
        sharding = NamedSharding(mesh, aval.own_sharding.spec)
        return sharding.with_memory_kind(MEMORY_KINDS[Host]) if space_of(aval) is Host else sharding
    context = meshes.abstract_context()
    return None if context is None or context.explicit_axes else NamedSharding(mesh, P())


_RESULTS, _CONTEXT = "explicit output sharding", "jit's context mesh"


def _requirements(ins: Sequence[Port], outs: Sequence[Port], inside: Sequence) -> list[tuple[Any, Any]]:
    """Pairs (source, sharding): the source is the number of an operand, `_RESULTS`, or the name of a primitive."""
    required: list[tuple[Any, Any]] = [(i, port.sharding) for i, port in enumerate(ins) if port.sharding is not None]
    required += [(_RESULTS, port.sharding) for port in outs if port.sharding is not None]
    return required + [pair for pair in inside if not isinstance(pair[1], MemorySpace)]


def _replicated_if_scalar(aval: Any, devices: tuple) -> Sharding | None:
    """The sharding that replicates scalars and keys; None for others: XLA chooses those of uncommitted arrays."""
    if not isinstance(aval, ShapedArray):
        return None
    is_scalar = not aval.shape or dtypes.is_extended(aval.dtype)
    return client.single_device_sharding(devices[0]) if is_scalar else None


def _of_argument(i: int, sig: Signature, port: Port, options: ProgramOptions) -> Port:
    """The port with its operand's sharding if that is committed. Raises ValueError if another one is requested."""
    requested = port.sharding
    if requested is None and not sig.committed:
        return port
    if requested is None:
        if isinstance(sig.aval, ShapedArray):  # a `ShapeDtypeStruct` may not be divisible
            sig.sharding.shard_shape(sig.aval.shape)
        return port._replace(sharding=sig.sharding)
    name = _name(port, i)
    check_sharding_of_type(requested, sig.aval, f"pjit arguments with pytree key path {name}")
    if sig.committed and sig.sharding.memory_kind != requested.memory_kind:
        raise ValueError(
            "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got jit memory "
            f"kind: {requested.memory_kind}, arg memory kind: {sig.sharding.memory_kind} for arg type: "
            f"{sig.aval.str_short()}, argument {name} of {options.name}"
        )
    if sig.committed and not sig.sharding.is_equivalent_to(requested, sig.aval.ndim):
        raise ValueError(
            "Sharding passed to jit does not match the sharding on the respective arg. "
            f"Got jit sharding: {requested},\narg sharding: {sig.sharding} for arg type: "
            f"{sig.aval.str_short()}, argument {name} of {options.name}"
        )
    return port


def _check_results(outs: Sequence[Port]) -> None:
    for port in outs:
        if port.sharding is not None:
            path = "result" if port.name is None else port.name
            check_sharding_of_type(port.sharding, port.aval, f"pjit outputs with pytree key path {path}")


def _incompatible(first: tuple, second: tuple, ins: Sequence[Port], options: ProgramOptions) -> NoReturn:
    def described(requirement):
        source, sharding = requirement
        devices = sharding._device_assignment
        where = f"with device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"
        if isinstance(source, int):
            port = ins[source]
            return f"argument {_name(port, source)} of {options.name} with shape {port.aval.str_short()} and {where}"
        return f"{source}{'' if source in (_RESULTS, _CONTEXT) else ' inside jit'} {where}"

    raise ValueError(
        f"Received incompatible devices for jitted computation. Got {described(first)} and {described(second)}"
    )
