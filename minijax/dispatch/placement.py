"""On which devices a program runs, and how its arguments and results lie on them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minijax.base import cache, dtypes
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from minijax.ir.types import AbstractValue, ShapedArray, space_of, token_type
from minijax.partition import meshes
from minijax.partition.layouts import Layout, check_layout, shown, stored
from minijax.partition.memory import Device, Host, MemorySpace
from minijax.partition.meshes import Mesh, P
from minijax.partition.shardings import MEMORY_KINDS, NamedSharding, Sharding, check_fits
from minijax.run import client
from minijax.run.array import Signature


class Leaving(NamedTuple):
    """How a program is lowered that is to leave the process."""

    rules: tuple[tuple[Any, Any], ...]  # primitives, and what lowers them instead of them
    paths: tuple[str, ...]  # where its arguments are among those of a call, as messages say


class ProgramOptions(NamedTuple):
    """How a jaxpr is compiled, besides what it computes."""

    name: str
    donated: tuple[bool, ...] = ()
    keep_unused: bool = False
    device: Any = None
    compiler_options: tuple[tuple[str, Any], ...] = ()
    in_shardings: tuple[Sharding | None, ...] = ()  # None: as the argument lies
    out_shardings: tuple[Sharding | None, ...] = ()  # None: as XLA likes
    in_layouts: tuple = ()  # None: as the argument's
    out_layouts: tuple = ()  # None: the default one
    export: Leaving | None = None
    is_pjit: bool = False  # then the mesh that it runs on is that of `with mesh:`

    @property
    def context_mesh(self) -> Mesh | None:
        """The mesh that the program runs on, if one is set."""
        if self.is_pjit:
            return meshes.entered_mesh()
        mesh = meshes.mesh_of_specs()
        return mesh if isinstance(mesh, Mesh) else meshes.context_mesh()


class Placement(NamedTuple):
    """The devices of a program; for several, each argument's and result's sharding or None: XLA chooses."""

    devices: tuple  # () of an abstract mesh
    committed: bool
    in_shardings: tuple[Sharding | None, ...] = ()
    out_shardings: tuple[Sharding | None, ...] = ()
    mesh: Mesh | None = None  # names the axes of what XLA chooses
    names_memory: bool = False  # it uses other memories than that of the devices
    in_layouts: tuple = ()  # None: the default one; () where all are
    out_layouts: tuple = ()

    @property
    def num_devices(self) -> int:
        """How many devices the program runs on; those of an abstract mesh are not there yet."""
        return len(self.devices) if self.devices or self.mesh is None else self.mesh.size

    @property
    def is_sharded(self) -> bool:
        """Whether the text says how arguments and results lie."""
        return not self.devices or len(self.devices) > 1 or self.names_memory

    def replicated(self) -> Sharding:
        """The sharding that has the whole array on each device."""
        if self.mesh is not None:
            return NamedSharding(self.mesh, P())
        return client.single_device_sharding(self.devices[0])

    def argument_shardings(self, used: Sequence[int]) -> list[Sharding]:
        """The shardings of the arguments of a program on one device."""
        asked = self.in_shardings or (None,) * (1 + max(used, default=0))
        return [asked[i] or self.replicated() for i in used]

    def result_shardings(self, count: int) -> list[Sharding]:
        """The shardings of the results of a program on one device."""
        return [self.replicated() if s is None else s for s in self.out_shardings or (None,) * count]

    def memory_kinds(self, avals: Sequence[AbstractValue]) -> list[str] | None:
        """The memory of each result; None if all are in that of the devices."""
        if not self.names_memory:
            return None
        outs = self.out_shardings or (None,) * len(avals)
        return [
            s.memory_kind if s is not None else MEMORY_KINDS.get(space_of(aval), MEMORY_KINDS[Device])
            for s, aval in zip(outs, avals, strict=True)
        ]


@cache.weak_cache
def shardings_in(jaxpr: Jaxpr) -> tuple[Any, ...]:
    """What the equations of a jaxpr, and of those inside it, say of placement: (whose, sharding)."""
    named_by: dict[Any, None] = {}
    seen, waiting = set(), [jaxpr]
    while waiting:
        now = waiting.pop()
        if now not in seen:
            seen.add(now)
            for eqn in now.eqns:
                if named := eqn.primitive.shardings(eqn.params):
                    named_by.update(dict.fromkeys([(eqn.primitive.name, s) for s in named]))
                waiting.extend(jaxprs_in_params(eqn.params))
    return tuple(named_by)


def choose_placement(operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr) -> Placement:
    """Where to run a program on operands with these signatures.

    Raises ValueError if operands, the options and the program do not agree on the devices, or if an operand
    does not lie, or cannot be laid, as the options say.
    """
    placement = _choose_devices(operands, options, closed)
    layouts = _layouts_of(operands, options, closed)
    return placement if layouts is None else placement._replace(in_layouts=layouts[0], out_layouts=layouts[1])


def _layouts_of(operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr) -> tuple | None:
    """The layouts of arguments and results; None where all are the default one."""
    fixed = {
        v for eqn in closed.eqns if eqn.primitive.name in _CONSTRAINTS and eqn.params["layout"] for v in eqn.outvars
    }
    laid = any(sig.layout is not None for sig in operands)
    if not (laid or fixed or options.in_layouts or options.out_layouts):
        return None
    names = closed.debug_info.arg_names or [f"args[{i}]" for i in range(len(operands))]
    asked = (*(None,) * (len(operands) - len(options.in_layouts)), *options.in_layouts)
    ins = []
    for sig, layout, name in zip(operands, asked, names, strict=False):
        check_layout(layout, sig.aval, f"jit arguments with pytree key path {name}")
        ins.append(sig.layout if layout is None else _stored(layout, sig.aval.ndim))
    outs = []
    wanted = options.out_layouts or (None,) * len(closed.outvars)
    for v, aval, layout in zip(closed.outvars, closed.out_avals, wanted, strict=True):
        check_layout(layout, aval, "jit outputs with pytree key path result")
        outs.append(Layout.AUTO if layout is None and v in fixed else layout and _stored(layout, aval.ndim))
    return tuple(ins), tuple(outs)


_CONSTRAINTS = ("layout_constraint", "sharding_constraint")


def _stored(layout, ndim):
    return layout if layout is Layout.AUTO else stored(layout, ndim)


def check_argument_layouts(operands: Sequence[Signature], options: ProgramOptions) -> None:
    """Raises ValueError for a committed operand that has another layout than was asked for."""
    for sig, layout in zip(operands, options.in_layouts, strict=False):
        if isinstance(layout, Layout) and sig.committed and stored(layout, sig.aval.ndim) != sig.layout:
            raise ValueError(
                f"Layout passed to jit does not match the layout on the respective arg. Got jit layout: {layout},\n"
                f"arg layout: {shown(sig.layout, sig.aval.ndim)} for arg type: {sig.aval.str_short()}."
            )


def _choose_devices(operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr) -> Placement:
    inside = shardings_in(closed.jaxpr)
    if options.device is not None:
        alone = [(_RESULTS, client.single_device_sharding(options.device))]
        _check_devices(alone + _with_devices(inside), operands, (), options)
        return Placement((options.device,), True)
    device, alike = None, not options.in_shardings and not options.out_shardings
    for sig in operands:
        if sig.committed:
            alone = sig.device is not None and sig.sharding == client.single_device_sharding(sig.device)
            alike = alike and alone and device in (None, sig.device)
            device = sig.device
        elif sig.device is None:
            raise NotImplementedError(
                f"Having uncommitted Array sharded on multiple devices is not supported. {options.name} is called with "
                f"one that lies as {sig.sharding}"
            )
    if not alike or inside or options.context_mesh is not None or options.export is not None:
        return _sharded(operands, options, closed, inside)
    return Placement((client.default_device() if device is None else device,), device is not None)


def _sharded(
    operands: Sequence[Signature], options: ProgramOptions, closed: ClosedJaxpr, inside: Sequence[tuple[str, Any]]
) -> Placement:
    """The placement that operands, options and the program itself ask for."""
    requested = options.in_shardings or (None,) * len(operands)
    requested = (*(None,) * (len(operands) - len(requested)), *requested)
    names = closed.debug_info.arg_names or [f"args[{i}]" for i in range(len(operands))]
    ins = [_argument_sharding(x, s, n, options) for x, s, n in zip(operands, requested, names, strict=False)]
    outs = options.out_shardings or (None,) * len(closed.outvars)
    outs = _result_shardings(outs, closed.out_avals, closed.debug_info.result_paths)
    claims, mesh = _claims(ins, outs, inside), options.context_mesh
    concrete = _with_devices(claims)
    spaces = [s for _, s in inside if isinstance(s, MemorySpace)]
    names_memory = Host in spaces or not all(s._in_default_memory for _, s in claims)
    if not concrete:
        if mesh is None and (named := [s for s in (*ins, *outs) if s is not None]):
            return _abstract(named, ins, outs, names_memory)
        if mesh is None:
            _check_abstract(claims)
            whole = Placement((client.default_device(),), bool(spaces), names_memory=names_memory)
            if not names_memory:
                return whole
            return whole._replace(in_shardings=(None,) * len(ins), out_shardings=(None,) * len(outs))
    if mesh is not None:
        concrete.append((_CONTEXT, NamedSharding(mesh, P())))
    devices = _check_devices(concrete, operands, names, options)
    ins, outs = ([_on_devices(s, devices) for s in shardings] for shardings in (ins, outs))
    mesh = next((s.mesh for _, s in concrete if isinstance(s, NamedSharding)), None)
    if mesh is not None and mesh.are_all_axes_explicit:
        rows = zip(outs, closed.out_avals, strict=True)
        outs = [_sharding_of_type(mesh, aval) if s is None else s for s, aval in rows]
    if len(devices) > 1:
        ins = [_replicated_if_whole(x, devices) if s is None else s for x, s in zip(operands, ins, strict=True)]
    return Placement(devices, True, tuple(ins), tuple(outs), mesh, names_memory)


def _is_abstract(sharding: Any) -> bool:
    return isinstance(getattr(sharding, "mesh", None), meshes.AbstractMesh)


def _abstract(named: Sequence, ins: list, outs: list, names_memory: bool) -> Placement:
    """The placement over a mesh without devices, of a program that can be lowered but not run."""
    mesh = named[0].mesh
    for s in named:
        if s.mesh.size != mesh.size:
            raise ValueError(f"AbstractMesh should be of the same size across all shardings. Got {mesh} and {s.mesh}")
    return Placement((), True, tuple(ins), tuple(outs), mesh, names_memory)


def _check_abstract(claims: Sequence) -> None:
    """Raises ValueError if equations speak of a mesh of several devices where the program runs on one."""
    for whose, s in claims if meshes.abstract_context() is None else ():
        if s.mesh.size > 1:
            raise ValueError(
                f"Length of device assignment 1 is not equal to the size of the mesh {s.mesh.size} of {whose}, {s}. "
                "`jax.set_mesh` makes a mesh the program's"
            )


def over_abstract_context(placement: Placement, closed: ClosedJaxpr) -> Placement:
    """The placement of a program that is lowered without devices, over the mesh without devices that is set, if any."""
    mesh: Any = meshes.abstract_context()
    if mesh is None or meshes.context_mesh() is not None or placement.num_devices != 1 or placement.committed:
        return placement
    ins, outs = ((None,) * len(side) for side in (closed.in_avals, closed.out_avals))
    return Placement((), True, ins, outs, mesh)


def _with_devices(claims: Sequence) -> list[tuple[Any, Any]]:
    """Those of the claims that say on which devices."""
    return [claim for claim in claims if not (isinstance(claim[1], MemorySpace) or _is_abstract(claim[1]))]


def _check_devices(claims: Sequence, operands: Sequence[Signature], names: Sequence[str], options: Any) -> tuple:
    """The devices that all claims are for. Raises ValueError if they are for different ones."""
    devices = claims[0][1]._device_assignment
    for other in claims[1:]:
        if other[1]._device_assignment != devices:
            _incompatible(claims[0], other, operands, names, options)
    return devices


def _on_devices(sharding: Sharding | None, devices: tuple) -> Sharding | None:
    """A sharding, if over an abstract mesh on these devices instead. Raises ValueError for another number of them."""
    if not isinstance(sharding, NamedSharding) or not _is_abstract(sharding):
        return sharding
    mesh = sharding.mesh
    if mesh.size != len(devices):
        raise ValueError(f"AbstractMesh size: {mesh.size} does not match the device assignment size: {len(devices)}")
    return sharding.update(mesh=Mesh(np.reshape(devices, mesh.axis_sizes), mesh.axis_names, mesh.axis_types))


def on_devices(placement: Placement, devices: tuple) -> Placement:
    """A placement over an abstract mesh on these devices. Raises ValueError for another number of them."""
    if (size := placement.num_devices) != len(devices):
        raise ValueError(
            f"The size of abstract mesh {size}, {placement.mesh}, must match the length of device assignment: "
            f"{len(devices)}"
        )
    ins, outs = ([_on_devices(s, devices) for s in side] for side in (placement.in_shardings, placement.out_shardings))
    whole: Any = _on_devices(NamedSharding(placement.mesh, P()), devices)
    return placement._replace(devices=devices, in_shardings=tuple(ins), out_shardings=tuple(outs), mesh=whole.mesh)


def mesh_of_type(mesh: Any, aval: Any) -> Any:
    """The devices of `mesh`, under the axes that a type names if it does."""
    split = aval._sharding if type(aval) is ShapedArray else None
    if split is None or mesh.has_axes_of(split.mesh):
        return mesh
    named = split.mesh
    return Mesh(np.reshape(mesh._flat_devices_tuple, named.axis_sizes), named.axis_names, named.axis_types)


def _sharding_of_type(mesh: Any, aval: Any) -> Sharding | None:
    """How a result lies over a mesh of Explicit axes alone; None if its type is of another with Auto ones, or none."""
    if type(aval) is not ShapedArray or (mesh := mesh_of_type(mesh, aval)).auto_axes:
        return None
    if aval._sharding is not None:
        return NamedSharding(mesh, aval._sharding.spec)
    context = meshes.abstract_context()
    return None if context is None or context.explicit_axes else NamedSharding(mesh, P())


_RESULTS, _CONTEXT = "explicit output sharding", "jit's context mesh"


def _claims(ins: Sequence, outs: Sequence, inside: Sequence[tuple[str, Any]]) -> list[tuple[Any, Any]]:
    """Who asks for which sharding: the number of an operand, the results, or the name of a primitive."""
    claims: list[tuple[Any, Any]] = [(i, s) for i, s in enumerate(ins) if s is not None]
    claims += [(_RESULTS, s) for s in outs if s is not None]
    return claims + [claim for claim in inside if not isinstance(claim[1], MemorySpace)]


def _replicated_if_whole(sig: Signature, devices: tuple) -> Sharding | None:
    """Scalars and keys go to every device; of an uncommitted array XLA may take what it wants."""
    if sig.aval is token_type:
        return None
    whole = not sig.aval.shape or dtypes.is_extended(sig.aval.dtype)
    return client.single_device_sharding(devices[0]) if whole else None


def _argument_sharding(sig: Signature, asked: Sharding | None, name: str, options) -> Sharding | None:
    if asked is None:
        return sig.sharding if sig.committed else None
    check_fits(asked, sig.aval, f"pjit arguments with pytree key path {name}")
    if sig.committed and sig.sharding.memory_kind != asked.memory_kind:
        raise ValueError(
            "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got jit memory "
            f"kind: {asked.memory_kind}, arg memory kind: {sig.sharding.memory_kind} for arg type: "
            f"{sig.aval.str_short()}, argument {name} of {options.name}"
        )
    if sig.committed and not sig.sharding.is_equivalent_to(asked, sig.aval.ndim):
        raise ValueError(
            "Sharding passed to jit does not match the sharding on the respective arg. "
            f"Got jit sharding: {asked},\narg sharding: {sig.sharding} for arg type: "
            f"{sig.aval.str_short()}, argument {name} of {options.name}"
        )
    return asked


def _result_shardings(outs: Sequence, avals: Sequence, paths: Sequence[str] | None) -> list:
    paths = paths if paths and len(paths) == len(avals) else ["result"] * len(avals)
    for s, aval, path in zip(outs, avals, paths, strict=True):
        if s is not None:
            check_fits(s, aval, f"pjit outputs with pytree key path {path}")
    return list(outs)


def _incompatible(first, second, operands, names, options) -> NoReturn:
    def told(claim):
        whose, sharding = claim
        devices = sharding._device_assignment
        where = f"with device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"
        if isinstance(whose, int):
            return (
                f"argument {names[whose]} of {options.name} with shape {operands[whose].aval.str_short()} and {where}"
            )
        return f"{whose}{'' if whose in (_RESULTS, _CONTEXT) else ' inside jit'} {where}"

    raise ValueError(f"Received incompatible devices for jitted computation. Got {told(first)} and {told(second)}")
