"""The rules of copies, semaphores and devices."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minijax.kernels.memory import CoreMemorySpace
from minijax.kernels.mosaic.references import located, with_constants
from minijax.kernels.mosaic.streams import stream_of
from minijax.kernels.mosaic.verbs import Memory, Value, memref
from minijax.kernels.mosaic.walk import Kernel, Site, rule
from minijax.kernels.operations.selection import SelectedRef
from minijax.kernels.parameters import CoreType
from minijax.kernels.text import I32, Region

# ---- devices -------------------------------------------------------------------------------------------


def _coordinate(k: Kernel, name: Any) -> Value:
    """The position of this device on an axis of the mesh."""
    if name not in k.mesh:
        raise NameError(
            f"Found an unbound axis name: {name}. To fix this, please call axis_index under `jax.shard_map`."
        )
    device = k.one("tpu.device_id", (), I32)
    names = list(k.mesh)
    size, stride = k.i32(k.mesh[name]), k.i32(prod(k.mesh[n] for n in names[names.index(name) + 1 :]))
    return k.binary("rem", k.binary("div", device, stride), size)


@rule("axis_index")
def _axis_index(k: Kernel, site: Site, axis_name: Any) -> Value:
    if axis_name in k.grid.names:
        return k.grid.ids[list(k.grid.names).index(axis_name)]
    return _coordinate(k, axis_name)


def _as_value(k: Kernel, x: Any) -> Value:
    return x if isinstance(x, Value) else k.i32(int(x))


class _Destination(NamedTuple):
    """The numbers of a device, of its core and of its subcore; None for this one."""

    device: Value | None = None
    core: Value | None = None
    subcore: Value | None = None


def _destination(k: Kernel, device: Any, kind: Any, semaphore: Any = None) -> _Destination:
    """Where a signal or a copy goes: a device, which is given as such or by its coordinates, and one of its cores.

    The type of the semaphore tells to which kind of cores it belongs.
    """
    space = getattr(getattr(semaphore, "ref", semaphore), "memory_space", None)
    mesh = space.mesh if type(space) is CoreMemorySpace and space.mesh.core_type is not k.core else None
    if device is None and mesh is None:
        return _Destination()
    if getattr(kind, "value", kind) == "logical" or getattr(kind, "name", "") == "LOGICAL":
        number, places = (None if device is None else _as_value(k, device)), {}
    else:
        number, places = _place(k, device, () if mesh is None else mesh.axis_names)
    if mesh is None:
        if places and k.core is not CoreType.TC:
            raise NotImplementedError(
                f"device_id names other subcores by {list(places)}; subcores signal and copy to none of their kind"
            )
        return _Destination(number, *places.values())
    if missing := [n for n in mesh.axis_names if n not in places and n not in k.grid.names]:
        raise ValueError(
            f"When addressing {mesh.core_type} from {k.core} the following axes are missing from the mesh: {missing}. "
            f"Name them in device_id, which has {list(places)}; the kernel's own are {list(k.grid.names)}"
        )
    return _Destination(number, *_of_cores(k, mesh, places))


def _place(k: Kernel, device: Any, axes: Sequence[Any]) -> tuple[Value | None, dict[Any, Value]]:
    """The number of a device, and the numbers of the core on the axes of cores that `device` names."""
    if not isinstance(device, Mapping):
        return (None if device is None else _number(k, device)), {}
    own = {n: _as_value(k, x) for n, x in device.items() if n in axes or n in k.grid.names}
    rest = {n: x for n, x in device.items() if n not in own}
    if other := [n for n in own if axes and n not in axes]:
        raise ValueError(f"Unrecognized axes in device_id: {other}. The semaphore's cores have the axes {list(axes)}")
    return (None if own and not rest else _number(k, rest)), own


def _of_cores(k: Kernel, mesh: Any, places: Mapping[Any, Value]) -> list[Value | None]:
    """The numbers on the axes of a mesh of other cores; those of this core on the axes that `places` leaves out."""
    is_far = mesh.core_type is CoreType.SC_VECTOR_SUBCORE or k.core is CoreType.SC_VECTOR_SUBCORE
    is_filled = is_far and mesh.core_type is not CoreType.TC
    own = lambda n: k.grid.ids[list(k.grid.names).index(n)] if is_filled and n in k.grid.names else None  # noqa: E731
    return [places[n] if n in places else own(n) for n in mesh.axis_names]


def _number(k: Kernel, device: Any) -> Value | None:
    """The number of a device with these coordinates on the mesh."""
    names = list(k.mesh)
    if isinstance(device, Mapping):
        unknown = [n for n in device if n not in k.mesh]
        if unknown:
            raise ValueError(f"device_id names axes {unknown} that the mesh of axes {names} does not have")
        places = [device[n] if n in device else _coordinate(k, n) for n in names]
    else:
        places = list(device) if isinstance(device, tuple | list) else [device]
        if len(places) != len(names):
            raise ValueError(
                "Number of device ids must match the number of mesh axes, but got "
                f"{len(places)} ids for the mesh axes {names}."
            )
    number = None
    for i, place in enumerate(places):
        stride = k.i32(prod(k.mesh[n] for n in names[i + 1 :]))
        part = k.binary("mul", _as_value(k, place), stride)
        number = k.binary("add", k.i32(0) if number is None else number, part)
    return number


# ---- semaphores ------------------------------------------------------------------------------------------


def of_tree(k: Kernel, site: Site, operands: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """The arguments of an operation, in which numbers are constants of the kernel, made in their order."""
    tree = params["tree"] if "tree" in params else params["args_tree"]
    return [_constants(k, x, a) for x, a in zip(*map(tree.unflatten, (operands, site.ins)), strict=True)]


def _constants(k: Kernel, x: Any, aval: Any) -> Any:
    if isinstance(x, Value | Memory) or x is None:
        return x
    if isinstance(x, Mapping):
        return {name: _constants(k, v, aval[name]) for name, v in x.items()}
    if isinstance(x, tuple | list):
        return tuple([_constants(k, v, a) for v, a in zip(x, aval, strict=True)])
    if type(x) is SelectedRef:
        refs = [_constants(k, r, a) for r, a in zip(x.refs, aval.refs, strict=True)]
        return SelectedRef(_constants(k, x.index, aval.index), refs)
    if hasattr(x, "_path"):
        return with_constants(k, x)
    return k.value(x, aval) if hasattr(aval, "shape") else k.constant(x, np.bool_ if isinstance(x, bool) else np.int32)


@rule("semaphore_signal", arguments=of_tree)
def _signal(
    k: Kernel, site: Site, sem: Any, count: Value, device: Any, core: Any, *, device_id_type: Any, args_tree: Any
) -> None:
    sem = located(k, sem)
    place = _destination(k, device, device_id_type, args_tree.unflatten(site.ins)[0])
    if core is not None and place.core is not None:
        raise ValueError("semaphore_signal: device_id names a core; leave out core_index")
    core = place.core if core is None else core
    k.grouped("tpu.sem_signal", [[sem.value], [count], [place.device], [core], [place.subcore]])


def _of_wait(k: Kernel, site: Site, operands: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    # jax's modules have a constant of `decrement`, too.
    return [*of_tree(k, site, operands, params), k.constant(True, np.bool_)][:2]


@rule("semaphore_wait", arguments=_of_wait)
def _wait(k: Kernel, site: Site, sem: Any, count: Value, decrement: bool, **_: Any) -> None:
    if not decrement:
        raise NotImplementedError("semaphore_wait: kernels for TPUs always subtract the value; signal it again")
    k.op("tpu.sem_wait", [located(k, sem).value, count])


@rule("semaphore_read", arguments=of_tree)
def _read(k: Kernel, site: Site, sem: Any, **_: Any) -> Value:
    return k.one("tpu.sem_read", [located(k, sem).value], I32)


@rule("get_barrier_semaphore")
def _barrier(k: Kernel, site: Site, **_: Any) -> Memory:
    kind = memref((), "!tpu.semaphore", "semaphore_mem")
    return Memory(k.one("tpu.sem_barrier", (), kind), "semaphore_mem", site.out.dtype, ())


# ---- copies ----------------------------------------------------------------------------------------------


@rule("dma_start", arguments=of_tree)
def _dma_start(
    k: Kernel, site: Site, *refs: Any, device_id_type: Any, tree: Any, priority: int = 0, add: bool = False
) -> None:
    source, target, semaphore, sent, device = refs
    if k.core is not CoreType.TC:
        if (stream := stream_of(k, source, target, add)) is not None:
            _check_local(device)
            return stream.start(k, semaphore, add)
    elif add:
        raise NotImplementedError("DMA with add=True is not supported.")
    elif _is_flags(source) or _is_flags(target):
        raise NotImplementedError("DMAs with bool dtypes are not supported.")
    place = _destination(k, device, device_id_type, tree.unflatten(site.ins)[2])
    attributes = dict(priority=f"{priority} : i32", strict_ordering="false")

    def write(source, target, semaphore, sent):
        sent = None if sent is None else located(k, sent)
        semaphore, target, source = (located(k, x) for x in (semaphore, target, source))
        refs = [[None if x is None else x.value] for x in (source, sent, target, semaphore)]
        k.grouped("tpu.enqueue_dma", [*refs, *[[x] for x in place]], **attributes)

    _for_each_choice(k, [source, target, semaphore, sent], write)


def _check_local(device: Any) -> None:
    if device is not None:
        raise NotImplementedError("async_remote_copy: SparseCores copy at indices on one device only")


def _for_each_choice(k: Kernel, refs: Sequence[Any], write: Callable) -> None:
    """Writes an operation on references; if one of them is chosen by a number, an operation for each choice."""
    place = next((i for i, x in enumerate(refs) if type(x) is SelectedRef), None)
    if place is None:
        write(*refs)
        return
    chosen = refs[place]

    def branch(ref):
        _for_each_choice(k, [*refs[:place], ref, *refs[place + 1 :]], write)
        return []

    def choose(index, left):
        if len(left) == 1:
            return branch(left[0])
        if len(left) < len(chosen.refs):
            index = k.binary("sub", index, k.i32(1))
        test = k.compare("eq", index, k.i32(0))
        regions = [Region((), body, "scf.yield") for body in (lambda: branch(left[0]), lambda: choose(index, left[1:]))]
        k.op("scf.if", [test], (), None, regions)
        return []

    choose(chosen.index, chosen.refs)


def _is_flags(ref: Any) -> bool:
    """Returns whether a reference, or a view of one, is to flags."""
    if type(ref) is SelectedRef:
        return any(map(_is_flags, ref.refs))
    return getattr(ref, "ref", ref).dtype == np.bool_


@rule("dma_wait", arguments=of_tree)
def _dma_wait(
    k: Kernel, site: Site, *refs: Any, device_id_type: Any, insert_dummy_device: bool = False, **_: Any
) -> None:
    source, target, semaphore, _other, device = refs
    if k.core is not CoreType.TC and (stream := stream_of(k, source, target)) is not None:
        _check_local(device)
        return stream.wait(k, semaphore)
    zero = k.i32(0) if insert_dummy_device else None
    number, core, _ = (zero, zero, None) if insert_dummy_device else _destination(k, device, device_id_type)

    def write(*refs):
        semaphore, target, source = ([located(k, x).value] for x in reversed(refs))
        k.grouped("tpu.wait_dma2", [semaphore, source, target, [number], [core]], strict_ordering="false")

    _for_each_choice(k, [source, target, semaphore], write)
