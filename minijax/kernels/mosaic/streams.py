"""Indirect streams: copies of SparseCores at indices, of rows of an array, to or from vector memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.composed.refs import TransformedRef
from minijax.indexing.language import Index, Listed, Slot, Span
from minijax.kernels.mosaic.references import box_of, located
from minijax.kernels.mosaic.verbs import Memory, Value
from minijax.kernels.mosaic.walk import Kernel

_FAR = ("hbm", "vmem_shared")  # memory spaces that streams reach


class Stream(NamedTuple):
    """A copy at indices: its ends, the indices, in memory or a vector, and the one that is left out."""

    source: Memory
    target: Memory
    indices: Value
    ignored: int | None

    def start(self, k: Kernel, semaphore: Any, add: bool) -> None:
        """Starts the copy, which `add`s to what it writes to."""
        ignored = [] if self.ignored is None else [k.i32(self.ignored)]
        ends = [self.source.value, self.target.value, self.indices]
        operands = [*ends, located(k, semaphore).value, *ignored]
        k.op("tpu.enqueue_indirect_dma", operands, attributes=dict(add=str(add).lower()))

    def wait(self, k: Kernel, semaphore: Any) -> None:
        """Waits for the copy."""
        k.op("tpu.wait_indirect_dma", [located(k, semaphore).value, self.source.value, self.target.value])


def stream_of(k: Kernel, source: Any, target: Any, add: bool = False) -> Stream | None:
    """The stream that copies between two views; None if it is an ordinary copy.

    Raises ValueError for indices of vector memory and sums between other memories, NotImplementedError for indices
    that streams do not have, and sums without indices.
    """
    spaces = [_base(x).space for x in (source, target)]
    is_gather = spaces[0] in _FAR and spaces[1] == "vmem"
    if not is_gather and not (spaces[0] == "vmem" and spaces[1] in _FAR):
        if _is_listed(source) or _is_listed(target):
            raise NotImplementedError(
                f"async_copy: copies at indices are between VMEM and HBM or VMEM_SHARED, got {' to '.join(spaces)}"
            )
        if add:
            raise ValueError(
                f"async_copy: add=True is for copies between VMEM and HBM or VMEM_SHARED, got {' to '.join(spaces)}"
            )
        return None
    near, far = (target, source) if is_gather else (source, target)
    if _is_listed(near):
        raise ValueError("async_copy: only the end that is not in VMEM has indices on SparseCores; copy all of VMEM")
    # jax's modules have the views of ordinary copies twice.
    near = located(k, near)
    far, indices, ignored = _split(k, far, near.value.shape)
    far = located(k, far)
    if indices is None and add:
        raise NotImplementedError(
            "async_copy: add=True needs indices on SparseCores, as in `ref.at[plsc.Indices(i_ref)]`"
        )
    return None if indices is None else Stream(*((far, near) if is_gather else (near, far)), indices, ignored)


def _base(view: Any) -> Memory:
    return view.ref if type(view) is TransformedRef else view


def _entry(step: Any) -> Any:
    """The first entry of an index if it lists elements."""
    first = step.entries[0] if type(step) is Index and step.entries else None
    return first if type(first) is Listed or type(first) is Slot and first.shape else None


def _is_listed(view: Any) -> bool:
    return type(view) is TransformedRef and any(_entry(step) is not None for step in view._path)


def _split(k: Kernel, view: Any, shape: Sequence[int]) -> tuple[Any, Value | None, int | None]:
    """The view without its indices, the indices and the one that is ignored.

    Raises NotImplementedError unless the view ends with them and shows elements of this shape.
    """
    if not _is_listed(view):
        return view, None, None
    *before, last = view._path
    entry = _entry(last)
    if entry is None or any(_entry(step) is not None for step in before):
        raise NotImplementedError("async_copy: on SparseCores a view at indices has no views of it")
    rest = Index(last.shape, (Span(0, last.shape[0], 1, last.shape[0]), *last.entries[1:]))
    shown = TransformedRef(view.ref, (*before, rest), view._arrays)
    found = (*entry.shape, *_shape(view.ref, rest, view._arrays)[1:])
    if len(entry.shape) != 1 or found != tuple(shape):
        raise NotImplementedError(
            f"async_copy: indices on SparseCores are vectors, and choose as much as is copied, {tuple(shape)}, "
            f"got {found}"
        )
    indices = view._arrays[entry.place]
    if isinstance(indices, Value):
        return shown, indices, getattr(entry, "ignored", None)
    memory = located(k, TransformedRef(indices, entry.path, view._arrays[entry.place + 1 :]))
    if memory.space != "vmem":
        raise NotImplementedError(f"async_copy: indices are in VMEM on SparseCores, got {memory.space.upper()}")
    return shown, memory.value, entry.ignored


def _shape(ref: Memory, index: Index, arrays: Sequence[Any]) -> Sequence[Any]:
    return box_of(ref._replace(hidden=(False,) * len(index.shape)), index, arrays).shape
