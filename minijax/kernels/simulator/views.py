"""Reads and writes of buffers through the views of kernels, with checks of bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.composed.ref_views import Bitcast, Reshaped, Transposed, View
from minijax.indexing.language import Index, Listed, Slot, Span, Stretch, Window
from minijax.kernels.simulator.memories import Buffer

Selection = tuple  # for each axis an int, a slice with its start, stop and step, or an array
Stages = Sequence[Any]  # a selection of the buffer, then selections and views of what it selects


def stages_of(path: Sequence[Any], gets: Sequence[Callable[[list], Any]]) -> Callable[[list], Stages]:
    """A function from the values of a kernel to the stages of a view; `gets` gives the arrays of its indices."""
    made = [_selector(p, gets) if type(p) is Index else (lambda env, p=p: p) for p in path]
    if not made:
        return lambda env: ()
    if len(made) == 1:
        only = made[0]
        return lambda env: (only(env),)

    def stages(env):
        found: list = []
        for make in made:
            stage = make(env)
            if found and type(stage) is tuple and type(found[-1]) is tuple and _is_basic(found[-1]):
                found[-1] = _composed(found[-1], stage)
            else:
                found.append(stage)
        return found

    return stages


def _selector(index: Index, gets: Sequence) -> Callable[[list], Selection]:
    """A function from the values of a kernel to the selection of an index."""
    entries = [e for e in index.entries if e is not Ellipsis]
    whole = [slice(0, n, 1) for n in index.shape]
    if Ellipsis in index.entries:
        at = index.entries.index(Ellipsis)
        missing = len(index.shape) - sum(e is not None for e in entries)
        first = sum(e is not None for e in index.entries[:at])
        entries = [*entries[:at], *whole[first : first + missing], *entries[at:]]
    else:
        entries += whole[sum(e is not None for e in entries) :]
    if any(type(e) is Listed for e in entries):
        raise NotImplementedError("InterpretParams: a reference as an index is not simulated; pass interpret=True")
    if not any(type(e) in (Slot, Window, Stretch) for e in entries):
        fixed = tuple([_fixed(e) for e in entries])
        return lambda env: fixed
    made = [_dynamic(e, gets) for e in entries]
    return lambda env: tuple([m(env) for m in made])


def _fixed(e: Any) -> Any:
    return slice(e.start, e.start + (e.size - 1) * e.step + 1 if e.size else e.start, e.step) if type(e) is Span else e


def _dynamic(e: Any, gets: Sequence) -> Callable[[list], Any]:
    if type(e) is Slot:
        get = gets[e.place]
        return (lambda env: np.asarray(get(env))) if e.shape else (lambda env: int(get(env)))
    if type(e) is Window:
        get, size, step = gets[e.place], e.size, e.step

        def window(env):
            start = int(get(env))
            return slice(start, start + (size - 1) * step + 1 if size else start, step)

        return window
    if type(e) is Stretch:
        return _stretch(e, gets)
    item = _fixed(e)
    return lambda env: item


def _stretch(e: Stretch, gets: Sequence) -> Callable[[list], slice]:
    get, size = gets[e.place], e.size(gets)

    def stretch(env):
        start = int(get(env)) if e.start is None else e.start
        return slice(start, start + int(size(env)), 1)

    return stretch


def _is_basic(selection: Selection) -> bool:
    return all(type(e) is not np.ndarray and e is not None for e in selection)


def _composed(outer: Selection, inner: Selection) -> Selection:
    """The selection of a buffer that an index selects of what another one does."""
    rest, found = iter(inner), []
    for e in outer:
        if type(e) is not slice:
            found.append(e)
            continue
        item = next(rest)
        while item is None:
            found.append(None)
            item = next(rest)
        found.append(_within(e, item))
    return (*found, *rest)


def _within(outer: slice, item: Any) -> Any:
    if type(item) is slice:
        step = outer.step * item.step
        count = max(0, -(-(item.stop - item.start) // item.step))
        start = outer.start + item.start * outer.step
        return slice(start, start + (count - 1) * step + 1 if count else start, step)
    if type(item) is int and item < 0:
        item += -(-(outer.stop - outer.start) // outer.step)
    return outer.start + item * outer.step


# ---- bounds ------------------------------------------------------------------------------------------


def leaves(selection: Selection, shape: Sequence[int]) -> bool:
    """Returns whether a selection goes beyond an array of a shape. Negative numbers count from the end."""
    axis = 0
    for e in selection:
        if e is None:
            continue
        n = shape[axis]
        axis += 1
        if type(e) is slice:
            if e.stop > e.start and (e.start < 0 or e.stop > n):
                return True
        elif type(e) is int:
            if not -n <= e < n:
                return True
        elif e.size and (int(e.min()) < -n or int(e.max()) >= n):
            return True
    return False


def _message(verb: str, buffer: Buffer, selection: Selection, shape: Sequence[int]) -> str:
    shown = ", ".join(f"{e.start}:{e.stop}" if type(e) is slice else str(e) for e in selection)
    return f"Out-of-bounds {verb} of {buffer}: [{shown}] of a buffer that has shape {tuple(shape)}"


def _inside(buffer: Buffer, selection: Selection) -> tuple[Selection | None, tuple, tuple]:
    """The part of a selection that is in the buffer, the place of this in the value, and the value's shape.

    None if an int is outside. Raises IndexError for arrays.
    """
    kept, places, shape, is_outside = [], [], [], False
    axes = iter(buffer.shape)
    for e in selection:
        n = 1 if e is None else next(axes)
        if type(e) is int:
            is_outside = is_outside or not -n <= e < n
            kept.append(e)
        elif type(e) is slice:
            numbers = range(e.start, e.stop, e.step)
            valid = [k for k, i in enumerate(numbers) if 0 <= i < n]
            kept.append(slice(numbers[valid[0]], numbers[valid[-1]] + 1, e.step) if valid else slice(0, 0))
            places.append(slice(valid[0], valid[-1] + 1) if valid else slice(0, 0))
            shape.append(len(numbers))
        elif e is None:
            kept.append(None)
            places.append(slice(None))
            shape.append(1)
        else:
            raise IndexError(_message("access", buffer, selection, buffer.shape))
    return None if is_outside else tuple(kept), tuple(places), tuple(shape)


# ---- reading and writing -----------------------------------------------------------------------------


def read(buffer: Buffer, stages: Stages, raises: bool) -> np.ndarray:
    """A copy of the elements that a view selects; with `raises`, IndexError for a place out of bounds."""
    if not stages:
        return buffer.array.copy()
    first, rest = (stages[0], stages[1:]) if type(stages[0]) is tuple else (None, stages)
    x = buffer.array
    if first is not None:
        if leaves(first, x.shape):
            if raises and leaves(first, buffer.bounds):
                raise IndexError(_message("read", buffer, first, buffer.bounds))
            x = _read_partly(buffer, first)
        else:
            x = x[first]
    for stage in rest:
        x = viewed(x, stage)
    return np.array(x)


def _read_partly(buffer: Buffer, selection: Selection) -> np.ndarray:
    kept, places, shape = _inside(buffer, selection)
    x = np.full(shape, buffer.empty, buffer.array.dtype)
    if kept is not None:
        x[places] = buffer.array[kept]
    return x


def write(buffer: Buffer, stages: Stages, value: Any, adds: bool = False, mask: Any = None) -> None:
    """Writes the elements that a view selects, or adds to them. Raises ValueError for a place out of bounds."""
    first = stages[0] if stages and type(stages[0]) is tuple else None
    rest = stages if first is None else stages[1:]
    value = np.asarray(value)
    if first is None:
        _put(buffer.array, (...,), rest, value, adds, mask)
        return
    if not leaves(first, buffer.shape):
        _put(buffer.array, first, rest, value, adds, mask)
        return
    if mask is not None and not rest:
        _write_masked(buffer, first, value, mask)
        return
    if leaves(first, buffer.bounds):
        raise ValueError(_message("write", buffer, first, buffer.bounds))
    if rest:
        whole = _read_partly(buffer, first)
        _put_through(whole, rest, value, adds, mask)
        value, adds = whole, False
    kept, places, _ = _inside(buffer, first)
    if kept is not None:
        _put(buffer.array, kept, (), value[places], adds, None)


def _write_masked(buffer: Buffer, selection: Selection, value: np.ndarray, mask: Any) -> None:
    """Writes where a mask is true. Raises ValueError if it is true at a place out of bounds."""
    kept, places, shape = _inside(buffer, selection)
    mask = np.broadcast_to(mask, shape)
    inside = np.zeros(shape, np.bool_)
    if kept is not None:
        inside[places] = True
    if (mask & ~inside).any() and leaves(selection, buffer.bounds):
        raise ValueError(_message("masked swap", buffer, selection, buffer.bounds))
    if kept is not None:
        _put(buffer.array, kept, (), value[places], False, mask[places])


def _put(array: np.ndarray, selection: Selection, rest: Stages, value: np.ndarray, adds: bool, mask: Any) -> None:
    if rest:
        inner = array[selection]
        whole = np.array(inner)
        _put_through(whole, rest, value, adds, mask)
        array[selection] = whole
        return
    if mask is not None:
        value = np.where(mask, value, array[selection])
    if adds and not _is_basic(selection if selection != (...,) else ()):
        np.add.at(array, selection, value.astype(array.dtype, copy=False))
    elif adds:
        array[selection] = array[selection] + value
    else:
        array[selection] = value


def _put_through(x: np.ndarray, stages: Stages, value: np.ndarray, adds: bool, mask: Any) -> None:
    """Writes an array through a view of it."""
    stage, *rest = stages
    if type(stage) is tuple:
        _put(x, stage, rest, value, adds, mask)
        return
    part = np.array(viewed(x, stage))
    if rest:
        _put_through(part, rest, value, adds, mask)
    else:
        _put(part, (...,), (), value, adds, mask)
    x[...] = _unviewed(part, stage, x)


def viewed(x: np.ndarray, stage: Selection | View) -> np.ndarray:
    """The part of an array that a selection takes, or the array as another view shows it.

    Raises IndexError for a place out of bounds.
    """
    if type(stage) is tuple:
        if leaves(stage, x.shape):
            raise IndexError(f"Out-of-bounds read: {stage} of a view that has shape {x.shape}")
        return x[stage]
    if type(stage) is Reshaped:
        return np.reshape(x, stage.shape)
    if type(stage) is Transposed:
        return np.transpose(x, stage.permutation)
    assert isinstance(stage, Bitcast)
    return _bitcast(x, stage.dtype)


def _unviewed(part: np.ndarray, stage: View, x: np.ndarray) -> np.ndarray:
    if type(stage) is Reshaped:
        return part.reshape(x.shape)
    if type(stage) is Transposed:
        return np.transpose(part, np.argsort(stage.permutation))
    assert isinstance(stage, Bitcast)
    return _bitcast(part, x.dtype)


def _bitcast(x: np.ndarray, dtype: Any) -> np.ndarray:
    """The bits as another dtype; where its width differs, the last axis but one is scaled."""
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(dtype)
    if old == new:
        return np.ascontiguousarray(x).view(dtype)
    if min(old, new) < 8:
        raise NotImplementedError(f"bitcast of {x.dtype} to {dtype} in the simulator: elements of less than 8 bits")
    # (..., rows, columns) -> (..., columns, rows), where neighbours along rows are one element of memory
    columns_first = np.ascontiguousarray(np.swapaxes(x, -1, -2)).view(dtype)
    return np.swapaxes(columns_first, -1, -2)
