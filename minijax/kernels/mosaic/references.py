"""The rules of operations on references: views, reads and writes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.base.dtypes import KeyType
from minijax.composed.ref_views import Bitcast, Reshaped
from minijax.composed.refs import TransformedRef, with_operands
from minijax.indexing.language import Index, Slot, Span, Stretch, Window
from minijax.ir.refs import AbstractRef
from minijax.kernels.memory import CoreMemorySpace, MemorySpace, TpuMemorySpace, of_core
from minijax.kernels.mosaic.verbs import Key, Memory, Value, ints, memref, vector
from minijax.kernels.mosaic.walk import Kernel, Site, rule, unchanged
from minijax.kernels.operations.helpers import enable_poison_buffers
from minijax.kernels.parameters import CoreType
from minijax.kernels.text import Region, Type, element_of

# Values that are read and written as 32-bit integers outside of the registers.
_FLAGS = np.dtype(np.int32)


def element_of_memory(dtype: Any) -> str:
    """The element type of references to this dtype: flags are stored as integers, semaphores have their own types."""
    name = str(dtype)
    if name in ("dma_sem", "semaphore", "barrier_semaphore"):
        return "!tpu.dma_semaphore" if name == "dma_sem" else "!tpu.semaphore"
    return element_of(_FLAGS if dtype == np.bool_ or type(dtype) is KeyType else dtype)


def space_of(memory_space: Any) -> str:
    """The name of a memory space in Mosaic; blocks are in VMEM unless their spec says otherwise."""
    if type(memory_space) is CoreMemorySpace:
        return f"{memory_space.memory_space}, {memory_space.mesh.core_type}"
    name = "default" if memory_space is None else str(memory_space)
    return "vmem" if name == "default" else name


def on_core(aval: Any, core: CoreType) -> Any:
    """The type of a reference whose memory space is known on subcores, which have defaults of their own."""
    if core is CoreType.TC or aval.memory_space not in (None, MemorySpace.DEFAULT):
        return of_core(aval, core)
    if aval.memory_space is None:
        return AbstractRef(aval.inner_aval, TpuMemorySpace.HBM)
    is_vector = core is CoreType.SC_VECTOR_SUBCORE
    return AbstractRef(aval.inner_aval, TpuMemorySpace.VMEM if is_vector else TpuMemorySpace.SMEM)


def type_of_memory(aval: Any) -> Type:
    """The type of a reference to the whole of a value."""
    return memref(stored_shape(aval.shape, aval.dtype), element_of_memory(aval.dtype), space_of(aval.memory_space))


def stored_shape(shape: Sequence[int], dtype: Any) -> tuple[int, ...]:
    """The shape of an array in memory, where the words of keys have axes of their own."""
    return (*shape, *dtype.physical_suffix) if type(dtype) is KeyType else tuple(shape)


def memory(value: Value, aval: Any, hidden: Sequence[bool] | None = None) -> Memory:
    """A reference of a type, whose memref may have dimensions that are hidden."""
    return Memory(value, space_of(aval.memory_space), aval.dtype, tuple(hidden or [False] * len(value.shape)))


class Box(NamedTuple):
    """The elements that an index selects in a memref: on each dimension a start, a size and a stride.

    A start is an int or a value, and so is a size in a copy. Dimensions in `dropped` are not in the result.
    """

    starts: list[Any]
    sizes: list[Any]
    strides: list[int]
    dropped: list[bool]

    @property
    def shape(self) -> list[int]:
        """The shape of the result."""
        return [n for n, d in zip(self.sizes, self.dropped, strict=True) if not d]


def _whole(shape: Sequence[int]) -> Index:
    return Index(tuple(shape), (Ellipsis,))


def box_of(ref: Memory, index: Index, arrays: Sequence[Any]) -> Box:
    """The elements of a reference that an index selects. Raises NotImplementedError for an index with arrays."""
    items = [e for e in index.entries if e is not Ellipsis]
    entries = iter(items or [Span(0, n, 1, n) for n in ref.shape])
    box = Box([], [], [], [])
    for size, is_hidden in zip(ref.value.shape, ref.hidden, strict=True):
        start, count, stride, is_dropped = (0, size, 1, True) if is_hidden else _item(next(entries), arrays)
        for part, new in zip(box, (start, count, stride, is_dropped), strict=True):
            part.append(new)
    return box


def _item(entry: Any, arrays: Sequence[Any]) -> tuple[Any, Any, int, bool]:
    """(start, size, stride, whether the axis is dropped) of an entry of an index."""
    if type(entry) is Span and entry.step > 0:
        return entry.start, entry.size, entry.step, False
    if type(entry) is Window:
        return arrays[entry.place], entry.size, entry.step or 1, False
    if type(entry) is Stretch:
        return arrays[entry.place] if entry.start is None else entry.start, entry.size(arrays), 1, False
    if isinstance(entry, int):
        return entry, 1, 1, True
    if type(entry) is Slot and not entry.shape:
        return arrays[entry.place], 1, 1, True
    raise NotImplementedError(
        "Indexing references with arrays is not supported in kernels for TPUs: use ints, slices and `pl.ds`"
    )


# ---- views ---------------------------------------------------------------------------------------------


def viewed(k: Kernel, ref: Memory, path: Sequence[Any], arrays: Sequence[Any]) -> Memory:
    """A view of a reference."""
    for step in path:
        ref = _sliced(k, ref, box_of(ref, step, arrays)) if type(step) is Index else _transformed(k, ref, step)
    return ref


def _sliced(k: Kernel, ref: Memory, box: Box) -> Memory:
    if any(s != 1 for s in box.strides):
        raise NotImplementedError("Strided slices of references are unsupported.")
    starts = [k.as_i32(s) for s in box.starts]
    value = k.memory_slice(ref, starts, box.sizes)
    if any(box.dropped):
        shape = [n for n, d in zip(value.shape, box.dropped, strict=True) if not d]
        value = k.one("tpu.memref_squeeze", [value], memref(shape, value.element, ref.space))
    return ref._replace(value=value, hidden=(False,) * len(value.shape))


def _transformed(k: Kernel, ref: Memory, step: Any) -> Memory:
    """A view by a bitcast or a reshape. Raises NotImplementedError for other views and hidden dimensions."""
    if any(ref.hidden):
        raise NotImplementedError(
            f"{type(step).__name__}: a view of a block with dimensions that the kernel does not see"
        )
    if type(step) is Reshaped:
        kind = memref(step.shape, ref.value.element, ref.space)
        return ref._replace(value=k.one("tpu.memref_reshape", [ref.value], kind), hidden=(False,) * len(step.shape))
    if type(step) is Bitcast:
        dtype = step.dtype
        shape = list(ref.shape)
        if (old := dtypes.itemsize_bits(ref.dtype)) != (new := dtypes.itemsize_bits(dtype)):
            shape[-2] = shape[-2] * old // new
        value = k.one("tpu.memref_bitcast", [ref.value], memref(shape, element_of_memory(dtype), ref.space))
        return ref._replace(value=value, dtype=np.dtype(dtype))
    raise NotImplementedError(f"Unsupported transform: {step}")


def located(k: Kernel, ref: Any) -> Memory:
    """The view that an argument of an operation is: a reference or a `TransformedRef` of one."""
    if type(ref) is TransformedRef:
        return viewed(k, ref.ref, ref._path, ref._arrays)
    return ref


def with_constants(k: Kernel, ref: Any) -> Any:
    """A view whose static positions are constants of the kernel, made in the order of the index."""
    return with_operands(ref, k.i32, k.as_i32) if type(ref) is TransformedRef else ref


def target(k: Kernel, ref: Memory, path: Sequence[Any], arrays: Sequence[Any]) -> tuple[Memory, Box]:
    """The view and the box in it of a read or write: the last index is part of the operation."""
    path = list(path)
    last = path.pop() if path and type(path[-1]) is Index else None
    ref = viewed(k, ref, path, arrays)
    return ref, box_of(ref, _whole(ref.shape) if last is None else last, arrays)


# ---- reads and writes ------------------------------------------------------------------------------------


def _read(k: Kernel, ref: Memory, box: Box, indices: Sequence[Value]) -> Value:
    """The elements of a box as the kernel sees them."""
    return _as_flags(k, ref, _without(k, _load(k, ref, box, indices), box))


def _as_flags(k: Kernel, ref: Memory, x: Value) -> Value:
    """The flags that were read of a reference to flags."""
    return k.compare("ne", x, k.dense(0, x.shape, _FLAGS)) if ref.dtype == np.bool_ else x


def _without(k: Kernel, x: Value, box: Box) -> Value:
    """Drops the dimensions that are not in the result."""
    return k.reshape(x, box.shape) if x.shape and any(box.dropped) else x


def _load(k: Kernel, ref: Memory, box: Box, indices: Sequence[Value]) -> Value:
    _check_accessible(ref, "Loads")
    dtype = _FLAGS if ref.dtype == np.bool_ else ref.dtype
    if ref.space == "smem":
        if box.shape:
            raise ValueError("Can only load scalars from SMEM")
        return k.one("memref.load", [ref.value, *indices], vector((), dtype))
    result = vector(box.sizes, dtype)
    if any(s != 1 for s in box.strides):
        return k.one("tpu.strided_load", [ref.value, *indices], result, strides=ints(box.strides, "i32"))
    return k.one("vector.load", [ref.value, *indices], result)


def _check_accessible(ref: Memory, what: str) -> None:
    if ref.space not in ("vmem", "smem"):
        raise ValueError(
            f"{what} are only allowed on VMEM and SMEM references. {ref.space.upper()} memory space can only be "
            "accessed using async_copy."
        )


def _store(k: Kernel, ref: Memory, box: Box, indices: Sequence[Value], x: Value, mask: Value | None) -> None:
    if ref.space == "smem":
        k.op("memref.store", [x, ref.value, *indices])
        return
    if any(s != 1 for s in box.strides):
        if mask is not None:
            raise NotImplementedError("masked swap with strided store")
        k.op("tpu.strided_store", [x, ref.value, *indices], attributes=dict(strides=ints(box.strides, "i32")))
        return
    k.vector_store(ref.value, indices, x, mask)


def _write(k: Kernel, ref: Memory, box: Box, x: Value, mask: Value | None = None) -> Value:
    """Writes the elements of a box, and returns the old ones."""
    _check_accessible(ref, "Stores")
    if ref.space == "smem" and mask is not None:
        raise ValueError("SMEM store does not support masks")
    if not box.shape and ref.space != "smem":
        raise ValueError("Cannot store scalars to VMEM")
    indices = [k.as_index(s) for s in box.starts]
    old = _load(k, ref, box, indices)
    if ref.space == "smem":
        old = _as_flags(k, ref, old)
    if ref.dtype == np.bool_:
        x = k.cast("extui", x, "i32")
    if ref.space != "smem":
        old = _without(k, old, box)
        if x.shape != tuple(box.sizes):
            x, mask = (v if v is None else k.reshape(v, box.sizes) for v in (x, mask))
        old = _as_flags(k, ref, old)
    _store(k, ref, box, indices, x, mask)
    return old


@rule("get", arguments=unchanged, late=True)
def _get(k: Kernel, site: Site, ref: Memory, *arrays: Any, path: Sequence[Any]) -> Value | Key:
    if type(ref.dtype) is KeyType:
        return _read_key(k, ref)
    ref, box = target(k, ref, path, arrays)
    _check_accessible(ref, "Loads")
    return _read(k, ref, box, [k.as_index(s) for s in box.starts])


def _read_key(k: Kernel, ref: Memory) -> Key:
    if ref.space != "smem":
        raise ValueError(
            "PRNG keys must be loaded from SMEM. Did you set the memory space to MemorySpace.SMEM in the BlockSpec for "
            "the PRNG key input?"
        )
    if ref.dtype._impl.name != "pallas_tpu":
        raise NotImplementedError(f"Can only load Pallas keys, not {ref.dtype}: make them by `pltpu.to_pallas_key`")
    if len(ref.shape) > len(ref.dtype.physical_suffix):
        raise NotImplementedError("Can only load a single key per load.")
    word = vector((), _FLAGS)
    places = [[*[0] * (len(ref.value.shape) - 1), i] for i in range(2)]
    return Key(tuple([k.one("memref.load", [ref.value, *map(k.index, place)], word) for place in places]))


@rule("swap", arguments=unchanged, late=True)
def _swap(k: Kernel, site: Site, ref: Memory, value: Any, *arrays: Any, path: Sequence[Any]) -> Value:
    value = k.value(value, site.ins[1])
    ref, box = target(k, ref, path, arrays)
    return _write(k, ref, box, value)


def _unpacked(ref: Any) -> tuple[Memory, Sequence[Any], Sequence[Any]]:
    return (ref.ref, ref._path, ref._arrays) if type(ref) is TransformedRef else (ref, (), ())


@rule("masked_load", arguments=unchanged, late=True)
def _masked_load(k: Kernel, site: Site, *operands: Any, args_tree: Any, **_: Any) -> Value:
    ref, mask, other = args_tree.unflatten(operands)
    if mask is not None or other is not None:
        raise NotImplementedError("masked_load: kernels for TPUs read without mask; select with `jnp.where` afterwards")
    ref, box = target(k, *_unpacked(ref))
    _check_accessible(ref, "Loads")
    return _read(k, ref, box, [k.as_index(s) for s in box.starts])


@rule("masked_swap", arguments=unchanged, late=True)
def _masked_swap(k: Kernel, site: Site, *operands: Any, args_tree: Any, **_: Any) -> Value:
    avals = args_tree.unflatten(site.ins)
    ref, value, mask = args_tree.unflatten(operands)
    value = k.value(value, avals[1])
    mask = None if mask is None else k.value(mask, avals[2])
    ref, box = target(k, *_unpacked(ref))
    return _write(k, ref, box, value, mask)


# ---- memory of its own -----------------------------------------------------------------------------------


def allocated(k: Kernel, aval: Any) -> Memory:
    """Memory of a type, which lives as long as the region in which it is made."""
    aval = on_core(aval, k.core)
    kind = type_of_memory(aval)
    if kind.element.startswith("!tpu"):
        return memory(k.one("tpu.sem_alloc", (), kind), aval)
    made = memory(k.memory_of_its_own(kind), aval)
    if enable_poison_buffers.value and made.space == "vmem":
        _poison(k, made)
    return made


def _poison(k: Kernel, ref: Memory) -> None:
    """Fills memory with NaN, or with the smallest integer."""
    dtype = _FLAGS if ref.dtype == np.bool_ else ref.dtype
    is_inexact = dtypes.issubdtype(dtype, np.inexact)
    values = k.fill(np.nan if is_inexact else dtypes.iinfo(dtype).min, ref.shape, dtype)
    zero = k.index(0)
    k.op("vector.store", [values, ref.value, *[zero] * len(ref.shape)])


def region(k: Kernel, results: Sequence[Type], body: Callable[[], Sequence[Value]]) -> list[Value]:
    """`tpu.region`: `body()` writes what is in it and returns its results."""
    return k.op("tpu.region", (), results, None, [Region((), body, "tpu.yield")])


@rule("empty_ref")
def _empty_ref(k: Kernel, site: Site, **_: Any) -> Memory:
    return allocated(k, site.out)


@rule("run_scoped")
def _run_scoped(k: Kernel, site: Site, *captured: Any, jaxpr: Any, collective_axes: Any, **_: Any) -> list[Value]:
    if collective_axes:
        raise ValueError("run_scoped lowering outside of Pallas does not support collective_axes.")

    def body():
        own = [allocated(k, v.aval) for v in jaxpr.invars]
        return k.values(jaxpr, [*captured, *own])

    return region(k, [vector(v.aval.shape, v.aval.dtype) for v in jaxpr.outvars], body)
