"""Copies between memories, by the engines that run beside the cores."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.composed.refs import TransformedRef, parts_of
from minijax.indexing.language import Index, Listed, Stretch, Window, keeps_axis
from minijax.ir.refs import Ref
from minijax.kernels.memory import SemaphoreType, is_semaphore
from minijax.kernels.operations.base import KernelOperation, check_reference, is_view, store, text_of, type_of, value_of
from minijax.kernels.operations.scoped import run_scoped
from minijax.kernels.operations.selection import SelectedRef
from minijax.kernels.operations.semaphores import COUNTER, DeviceIdType, check_device_ids
from minijax.kernels.operations.trees import printed, printed_argument
from minijax.primitives.convert import convert
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.elementwise import add, bitwise_and, clamp, lt, mul, select_n, sub
from minijax.primitives.moving import as_array_or_constant, broadcast_in_dim
from minijax.primitives.structural import full_like, pad


class DmaStart(KernelOperation):
    """Starts a copy: (source, destination, semaphore of its end, semaphore of the sender or None, device or None)."""

    name = "dma_start"
    tree_param = "tree"

    def performed(self, src, dst, dst_sem, src_sem, device_id, *, priority, add: bool, device_id_type):
        if device_id is not None:
            raise NotImplementedError("dma_start: copies to other devices cannot be interpreted as one program")
        if _ignores(src):
            raise NotImplementedError("plsc.Indices: reads with an ignored value cannot be interpreted; pass None")
        (src, dst_now), mask = _bounded(src, dst)
        source, _ = _with_room(src, mask is not None)
        value, (target, finish) = as_array_or_constant(value_of(source)), _with_room(dst_now, mask is not None)
        if mask is not None:
            others = full_like(value, 0) if add else as_array_or_constant(value_of(target))
            value = select_n(mask, others, value)
        store(self, target, value, "add" if add else "set")
        finish()
        _count(self, dst_sem, dst, 1)
        return []

    def as_printed(self, eqn):
        args = self.arguments(eqn.invars, eqn.params)
        if args[-1] is None:
            return eqn
        found = list(map(printed_argument, args))
        text = ", ".join([text for _, text in found])
        return printed(eqn, [x for leaves, _ in found for x in leaves], tree=f"PyTreeDef(({text}))")

    def show_eqn(self, eqn, name):
        if isinstance(eqn.params["tree"], str):
            return None
        src, dst, dst_sem, *_ = self.arguments(eqn.invars, eqn.params)
        how = f"p{eqn.params['priority']}{', add' * eqn.params['add']}"
        return f"dma_start({how}) {text_of(src, name)} -> {text_of(dst, name)} {text_of(dst_sem, name)}"


class DmaWait(KernelOperation):
    """Waits for the end of a copy to a destination: (source, destination, semaphore, other semaphore, device)."""

    name = "dma_wait"
    tree_param = "tree"

    def performed(self, src, dst, sem, other_sem, device_id, *, device_id_type, insert_dummy_device):
        _count(self, sem, dst, -1)
        return []

    def show_eqn(self, eqn, name):
        _, dst, sem, *_ = self.arguments(eqn.invars, eqn.params)
        return f"dma_wait {text_of(dst, name)} {text_of(sem, name)}"


dma_start_p, dma_wait_p = DmaStart(), DmaWait()


def _entries(view: Any) -> list[Any]:
    """The entries of the last index of a view, one for each of its axes; nothing for a view of another kind."""
    path = () if type(view) is SelectedRef else parts_of(view)[1]
    if not path or type(path[-1]) is not Index or Ellipsis in path[-1].entries:
        return []
    entries = [[e] if keeps_axis(e) else [None] * len(getattr(e, "shape", ())) for e in path[-1].entries]
    return [e for kept in entries for e in kept]


def sizes_of(view: Any) -> dict[int, Any]:
    """The numbers of elements of a view on its axes where they are not known before the kernel runs."""
    found = [(axis, e) for axis, e in enumerate(_entries(view)) if type(e) is Stretch]
    return {axis: e.size(parts_of(view)[2]) for axis, e in found}


def _bounded(src: Any, dst: Any) -> tuple[tuple[Any, Any], Any]:
    """The ends of a copy as views of known sizes, and which of their elements are copied; None: all."""
    sizes = sizes_of(src) | sizes_of(dst)
    if not sizes:
        return (src, dst), None
    shape = tuple([min(pair) for pair in zip(type_of(src).shape, type_of(dst).shape, strict=True)])
    mask = functools.reduce(
        bitwise_and,
        [
            lt(broadcasted_iota(np.int32, shape, a), broadcast_in_dim(convert(n, np.dtype(np.int32)), shape, ()))
            for a, n in sizes.items()
        ],
    )
    return (_cut(src, shape), _cut(dst, shape)), mask


def _cut(view: Any, shape: tuple[int, ...]) -> Any:
    """The first elements of a view. Raises NotImplementedError for one that ends in no index."""
    ref, path, arrays = parts_of(view)
    if type_of(view).shape == shape and not sizes_of(view):
        return view
    sizes = iter(shape)
    if None in _entries(view) or not _entries(view):
        raise NotImplementedError(
            f"dma_start: a slice of a size that is not known is copied to or from the view {view}"
        )
    last = path[-1]
    cut = lambda e, n: e.bounded(n) if type(e) is Stretch else e._replace(size=n)  # noqa: E731
    entries = tuple([cut(e, next(sizes)) if keeps_axis(e) else e for e in last.entries])
    return TransformedRef(ref, (*path[:-1], last._replace(entries=entries)), arrays)


def _with_room(view: Any, is_cut: bool = False) -> tuple[Any, Callable[[], None]]:
    """A view of a longer array, if its window may stick out of the array, and a function that cuts the array again.

    The tiles of arrays in memory are whole, so that copies may read and write beyond the end. A view that `is_cut` has
    windows longer than the copied part.
    """
    if type(view) is not TransformedRef:
        return view, lambda: None
    ref, path, arrays = parts_of(view)
    index = path[0] if path and type(path[0]) is Index else None
    beyond = [] if index is None else [_beyond(e, index.shape[axis], is_cut) for axis, e in index.on_axes()]
    if index is None or not any(beyond):
        return view, lambda: None
    shape = ref.shape
    room = [(0, n, 0) for n in [*beyond, *[0] * (len(shape) - len(beyond))]]
    longer = Ref(pad(as_array_or_constant(ref._value), np.zeros((), ref.dtype)[()], room))

    def finish():
        ref._value = longer._value[tuple(map(slice, shape))]

    return TransformedRef(longer, (index._replace(shape=longer.shape), *path[1:]), arrays), finish


def _beyond(entry: Any, length: int, is_cut: bool) -> int:
    """How far a window may stick out of an axis."""
    return entry.size - 1 if type(entry) is Window and (is_cut or length % entry.size) else 0


def _ignores(view: Any) -> bool:
    """Returns whether some elements of a view are left out."""
    entries = [e for index in parts_of(view)[1] if type(index) is Index for e in index.entries]
    return any(type(e) is Listed and e.ignored is not None for e in entries)


def _count(primitive: KernelOperation, sem: Any, dst: Any, sign: int) -> None:
    """Adds the number of elements that are copied to a semaphore, or subtracts it."""
    sizes = sizes_of(dst)
    known = [n for axis, n in enumerate(type_of(dst).shape) if axis not in sizes]
    most = np.iinfo(COUNTER).max
    size: Any = np.int32(min(int(np.prod(known, dtype=np.int64)), most))
    for n in sizes.values():
        size = clamp(np.int32(0), mul(size, convert(n, np.dtype(np.int32))), np.int32(most))
    before = as_array_or_constant(value_of(sem))
    store(primitive, sem, (add if sign > 0 else sub)(before, convert(size, COUNTER) if sizes else COUNTER.type(size)))


@dataclasses.dataclass
class AsyncCopyDescriptor:
    """Is a copy that can be started and waited for, which `pltpu.make_async_copy` returns."""

    src_ref: Any
    dst_ref: Any
    dst_sem: Any
    src_sem: Any = None
    device_id: Any = None
    device_id_type: DeviceIdType = DeviceIdType.MESH

    @property
    def is_remote(self) -> bool:
        """Whether the destination is on another device."""
        return self.src_sem is not None

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Starts the copy; with `add`, the elements are added to those of the destination."""
        if priority < 0:
            raise ValueError(f"DMA start priority must be non-negative: {priority}")
        self._check()
        _check_copy(self.src_ref, self.dst_ref)
        dma_start_p.call(
            self.src_ref,
            self.dst_ref,
            self.dst_sem,
            self.src_sem,
            self.device_id,
            priority=priority,
            add=add,
            device_id_type=self.device_id_type,
        )

    def _check(self) -> None:
        """Raises ValueError for what is not a reference, a device without a semaphore here, and another device's id."""
        for x in (self.src_ref, self.dst_ref, self.dst_sem):
            check_reference(x, "DMA source/destination/semaphore arguments must be Refs.", "dma_start")
        if (self.src_sem is None) != (self.device_id is None):
            raise ValueError("Either both or neither `src_sem` and `device_id` can be set.")
        if self.src_sem is not None:
            check_reference(self.src_sem, "DMA source semaphore must be a Ref.", "dma_start")
        for sem in (self.dst_sem, self.src_sem):
            if sem is not None and type_of(sem).shape:
                raise ValueError(f"Cannot signal on a non-()-shaped semaphore: {type_of(sem).shape}")
        check_device_ids(self.device_id)

    def wait(self) -> None:
        """Waits until the copy has ended; for one to another device, until both have."""
        if self.is_remote:
            self.wait_send()
        self.wait_recv()

    def wait_send(self) -> None:
        """Waits until this device has sent. Raises ValueError for a copy on one device."""
        if not self.is_remote:
            raise ValueError("Cannot wait on send of a local copy.")
        self._wait(self.dst_ref, self.src_ref, self.src_sem, self.dst_sem, is_sent=True)

    def wait_recv(self) -> None:
        """Waits until this device has received."""
        self._wait(self.src_ref, self.dst_ref, self.dst_sem, self.src_sem)

    def _wait(self, src: Any, dst: Any, sem: Any, other_sem: Any, is_sent: bool = False) -> None:
        check_reference(sem, "Expected the destination semaphore to be a reference", "dma_wait")
        if type_of(sem).dtype != SemaphoreType.DMA.dtype:
            kind = "regular semaphore" if is_semaphore(type_of(sem).dtype) else f"reference to {type_of(sem)}"
            raise ValueError(f"dma_wait requires a DMA semaphore, but got a {kind}. Use pl.semaphore_wait() instead.")
        dma_wait_p.call(
            src, dst, sem, other_sem, self.device_id, device_id_type=self.device_id_type, insert_dummy_device=is_sent
        )


def _check_copy(src: Any, dst: Any) -> None:
    """Raises TypeError for a source and a destination of different types."""
    one, other = type_of(src), type_of(dst)
    free = sizes_of(src) | sizes_of(dst)
    shapes = [[n for axis, n in enumerate(x.shape) if axis not in free] for x in (one, other)]
    if len(one.shape) != len(other.shape) or shapes[0] != shapes[1] or one.dtype != other.dtype:
        raise TypeError(
            f"copy: source and destination must have the same dtypes and shapes, got {one.str_short()} and "
            f"{other.str_short()}"
        )


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """Creates a copy between two memories of a device, without starting it.

    Args:
      src_ref: reference, or a view of one.
      dst_ref: reference, or a view of one, of the same shape and dtype.
      sem: semaphore of type `pltpu.SemaphoreType.DMA`, which is signalled at the end.

    Returns:
      A copy with the methods `start` and `wait`.

    See also: `pltpu.async_copy`, `pltpu.sync_copy`.

    Example:
        >>> def kernel(x, o, semaphore):
        ...     copy = pltpu.make_async_copy(x, o, semaphore)
        ...     copy.start()
        ...     copy.wait()
        >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((2,), jnp.int32)
        >>> f = pl.pallas_call(kernel, out, in_specs=[anywhere], out_specs=anywhere,
        ...                    scratch_shapes=[pltpu.SemaphoreType.DMA], interpret=True)
        >>> f(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False) -> AsyncCopyDescriptor:
    """Starts a copy between two memories of a device.

    Args:
      src_ref, dst_ref, sem: as in `pltpu.make_async_copy`.
      priority: 0 or 1, which engine copies.
      add: whether the elements are added to those of the destination.

    Returns:
      The copy, whose method `wait` waits for its end.

    Example:
        >>> def kernel(x, o, semaphore):
        ...     copy = pltpu.async_copy(x, o, semaphore)
        ...     copy.wait()
        >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((2,), jnp.int32)
        >>> f = pl.pallas_call(kernel, out, in_specs=[anywhere], out_specs=anywhere,
        ...                    scratch_shapes=[pltpu.SemaphoreType.DMA], interpret=True)
        >>> f(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def make_async_remote_copy(
    src_ref: Any,
    dst_ref: Any,
    send_sem: Any,
    recv_sem: Any,
    device_id: Any,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
) -> AsyncCopyDescriptor:
    """Creates a copy to another device, without starting it.

    Args:
      src_ref: reference on this device, or a view of one.
      dst_ref: reference on the other device: every device names its own.
      send_sem: semaphore of copies, which is signalled when all is sent.
      recv_sem: semaphore of copies on the other device, which is signalled when all has arrived.
      device_id: device, named as `device_id_type` says.
      device_id_type: as in `pl.semaphore_signal`.

    Returns:
      A copy with the methods `start`, `wait`, `wait_send` and `wait_recv`.

    Example:
        >>> def kernel(x, o, sent, received):
        ...     copy = pltpu.make_async_remote_copy(x, o, sent, received, 0, pl.DeviceIdType.LOGICAL)
        ...     copy.start()
        ...     copy.wait()
        >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((2,), jnp.int32)
        >>> f = pl.pallas_call(kernel, out, in_specs=[anywhere], out_specs=anywhere,
        ...                    scratch_shapes=[pltpu.SemaphoreType.DMA] * 2, interpret=pltpu.InterpretParams())
        >>> print(f(jnp.array([1, 2])))
        [1 2]
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, recv_sem, send_sem, device_id, device_id_type)


def async_remote_copy(
    src_ref: Any,
    dst_ref: Any,
    send_sem: Any,
    recv_sem: Any,
    device_id: Any,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
) -> AsyncCopyDescriptor:
    """Starts a copy to another device. Arguments and result: as `pltpu.make_async_remote_copy`.

    Example:
        >>> def kernel(x, o, sent, received):
        ...     pltpu.async_remote_copy(x, o, sent, received, 0, pl.DeviceIdType.LOGICAL).wait()
        >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((2,), jnp.int32)
        >>> f = pl.pallas_call(kernel, out, in_specs=[anywhere], out_specs=anywhere,
        ...                    scratch_shapes=[pltpu.SemaphoreType.DMA] * 2, interpret=pltpu.InterpretParams())
        >>> print(f(jnp.array([1, 2])))
        [1 2]
    """
    copy = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    copy.start()
    return copy


def run_together(copies: Sequence[AsyncCopyDescriptor], add: bool = False) -> None:
    """Starts copies, and then waits for all."""
    for copy in copies:
        copy.start(add=add)
    for copy in copies:
        copy.wait()


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copies between two memories of a device, and waits for the end.

    Args:
      src_ref, dst_ref: references, views, or trees of these.
      add: whether the elements are added to those of the destination.

    Example:
        >>> anywhere = pl.BlockSpec(memory_space=pl.ANY)
        >>> out = jax.ShapeDtypeStruct((2,), jnp.int32)
        >>> f = pl.pallas_call(pltpu.sync_copy, out, in_specs=[anywhere], out_specs=anywhere, interpret=True)
        >>> f(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    sources, targets = (tree.tree_leaves(x, is_view) for x in (src_ref, dst_ref))

    def copy(sem):
        run_together([make_async_copy(s, d, sem) for s, d in zip(sources, targets, strict=True)], add)

    run_scoped(copy, SemaphoreType.DMA)
