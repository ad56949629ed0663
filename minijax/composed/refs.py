"""Making, reading and writing references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes, tree
from minijax.base.source import hide_frames
from minijax.composed.ref_views import Indices, View, bitcasting, reshaping, transposing
from minijax.indexing.language import Index, Listed, Slot, Span, Stretch, Window, of_operands, parse
from minijax.indexing.reading import from_front
from minijax.ir import show, state
from minijax.ir.jaxpr import DebugInfo, JaxprEqn, Literal
from minijax.ir.primitive import Axis, Primitive
from minijax.ir.refs import REF_EFFECT, AbstractRef, Ref, is_ref
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, trace_to_jaxpr
from minijax.ir.types import AbstractValue, ShapedArray, Zero, is_value, typeof
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import add, clamp, eq, select_n
from minijax.primitives.families import scalar_like
from minijax.primitives.gather_dims import Slice
from minijax.primitives.moving import as_array_or_constant, filled
from minijax.primitives.structural import pad
from minijax.primitives.zeros import instantiate
from minijax.run.arrays.array import Array, ArrayImpl, copied
from minijax.transforms.batch import BatchTrace, batch_flat, move_batch_dim
from minijax.transforms.discharge import checked_write, mixed_error

_INT32 = ShapedArray((), np.dtype(np.int32))
# False while a kernel is traced whose indices are checked when it runs.
checks_bounds: ContextVar[bool] = ContextVar("checks_bounds", default=True)


def _is_recording() -> bool:
    return type(state.thread.trace) is JaxprTrace


class RefOperation(Primitive):
    """An operation on a reference. It is recorded in a jaxpr, or else performed eagerly on the reference's value."""

    auto_pvary = False
    writes = False

    def bind_all(self, operands, params):
        if self.writes:
            _check_mapped(self.name, operands[0])
        if is_ref(operands[0]) and (not _is_recording() or operands[0]._trace is state.thread.trace):
            if operands[0].freed:
                raise RuntimeError(f"{self.name}: the reference of type {operands[0].aval} was freed before")
            return self.perform(*operands, **params)
        return super().bind_all(operands, params)

    def bind(self, *operands, **params):
        results = self.bind_all(operands, params)
        return results if self.multiple_results else results[0]

    def rebind(self, trace, operands, params):
        return self.bind_all(operands, params)

    def effects(self, *avals, **params):
        return REF_EFFECT

    def perform(self, ref: Ref, *operands: Any, **params: Any) -> list:
        """Changes the value of the reference and returns the results."""
        raise NotImplementedError(self.name)

    def jvp(self, primals, tangents, **params):
        """Applies the operation to the reference of tangents as well."""
        if type(tangents[0]) is Zero and any(type(t) is not Zero for t in tangents):
            raise mixed_error(self.name, "a differentiated", "a non-differentiated", typeof(primals[0]))
        results = self.bind_all(primals, params)
        if type(tangents[0]) is Zero:
            return results, [Zero.from_primal_value(r) for r in results]
        checked_ref(self.name, tangents[0])
        return results, self.bind_all(self.tangents_of(primals, tangents), params)

    def tangents_of(self, primals: Sequence, tangents: Sequence) -> list:
        """The operands of the operation on tangents. The arrays of the index have no tangents."""
        return [tangents[0], *primals[1:]]


class NewRef(RefOperation):
    """A reference to a new copy of a value."""

    name = "new_ref"

    def bind_all(self, operands, params):
        if _is_recording():
            return Primitive.bind_all(self, operands, params)
        x = as_array_or_constant(operands[0])
        return [Ref(copied(x) if type(x) is ArrayImpl else x, params["kind"])]

    def rebind(self, trace, operands, params):
        if trace.keeps_refs:
            return Primitive.rebind(self, trace, operands, params)
        return [Ref(as_array_or_constant(operands[0]), params["kind"])]

    def infer(self, aval, *, memory_space=None, **params):
        return [AbstractRef(aval, memory_space)]


class EmptyRef(RefOperation):
    """A reference to zeros."""

    name = "empty_ref"

    def bind_all(self, operands, params):
        trace = state.current_trace()
        return Primitive.bind_all(self, operands, params) if _is_recording() else self.rebind(trace, operands, params)

    def rebind(self, trace, operands, params):
        if trace.keeps_refs:
            return Primitive.rebind(self, trace, operands, params)
        ty = params["ty"]
        return [Ref(ty.raise_val(*[filled(a.shape, 0, a.dtype) for a in ty.lo_ty()]))]

    def infer(self, *, ty, memory_space):
        return [AbstractRef(ty, memory_space)]


class FreeRef(RefOperation):
    """Ends the use of a reference."""

    name = "free_ref"
    multiple_results = True

    def infer(self, ref):
        return []

    def perform(self, ref):
        ref.freed = True
        return []


class Freeze(RefOperation):
    """The value of a reference that is not used any more."""

    name = "freeze"

    def infer(self, ref):
        return [ref.inner_aval]

    def perform(self, ref):
        return [ref._value]

    def batch(self, axis, operands, dims):
        return self.bind_all(operands, {}), [None]


def _user_index(index: Index, arrays: Sequence, clamps: bool = False) -> tuple:
    """The index as a user writes it. Integers out of bounds, which are allowed under a trace, are clamped.

    With `clamps`, dynamic slices and scalars are clamped too, as reads do anyway. In an index with arrays or strided
    slices, scalars out of bounds write nothing.
    """
    is_plain = Ellipsis not in index.entries
    items = [e for _, e in index.places()]
    is_block = all(not typeof(arrays[e.place]).shape if type(e) is Slot else getattr(e, "step", 1) == 1 for e in items)

    def item(axis, e):
        size = index.shape[axis] if is_plain else 0
        if type(e) is int:
            return min(max(e, -size), size - 1) if size else e
        if type(e) is Window and clamps and size:
            low = from_front(convert(arrays[e.place], np.dtype(np.int32)), size)
            start = clamp(np.int32(0), low, np.int32(size - (e.size - 1) * e.step - 1))
            return Slice(start, e.size, e.step)
        if type(e) is Slot and clamps and is_block:
            last = index.shape[axis] - 1
            at = from_front(convert(arrays[e.place], np.dtype(np.int32)), last + 1)
            return clamp(np.int32(0), at, np.int32(last))
        return e if e is Ellipsis else e.item(arrays)

    return tuple([item(axis, e) for axis, e in index.places()])


def _resized(index: Index, arrays: Sequence) -> tuple[Index, Sequence]:
    """An index and its arrays, with the elements of references in it, and with slices as long as they may be."""
    entries, arrays = list(index.entries), list(arrays)
    for i, e in enumerate(entries):
        if type(e) is Stretch:
            entries[i] = e.bounded(e.limit)
        elif type(e) is Listed:
            entries[i] = Slot(len(arrays), e.shape)
            arrays.append(_elements(e, arrays))
    return index._replace(entries=tuple(entries)), arrays


def _elements(e: Listed, arrays: Sequence) -> Any:
    """The indices that a reference, or an array, has now; those that are ignored are out of bounds."""
    x, others = arrays[e.place], arrays[e.place + 1 :][: e.count]
    found = as_array_or_constant(read_view(x._value if isinstance(x, Ref) else x, e.path, others))
    if e.ignored is None:
        return found
    beyond = filled(e.shape, np.iinfo(typeof(found).dtype).max, typeof(found).dtype)
    return select_n(eq(found, scalar_like(found, e.ignored)), found, beyond)


Path = Sequence[Index | View]


def _index_text(index: Index | View, names: Sequence[str], atoms: Sequence) -> str:
    """The index as jaxprs print it."""
    if type(index) is not Index:
        return str(index)

    def item(axis, e):
        if type(e) is Span:
            return f"{e.start or ''}:{_stop(e.start + e.size, index.shape[axis])}"
        if type(e) is Window and isinstance(start := atoms[e.place], Literal):
            return f"{start!r}:{_stop(start.val + e.size, index.shape[axis])}"
        if type(e) is Window:
            return f"{names[e.place]}:{names[e.place]}+{e.size}"
        if type(e) is Stretch:
            start, size = names[e.place] if e.start is None else str(e.start), e.size(names)
            return f"{start}:{start}+{size}" if start != "0" else f":{size}"
        if type(e) is Listed and e.ignored is not None:
            return f"{names[e.place]}~{e.ignored}"
        return names[e.place] if type(e) in (Slot, Listed) else str(e)

    if _is_ellipsis(index):
        return f"[{','.join(':' * len(index.shape))}]"
    return f"[{','.join(item(axis, e) for axis, e in index.places() if e is not Ellipsis)}]"


def _stop(stop: Any, size: Any) -> Any:
    return "" if stop == size else stop


def _is_ellipsis(index: Index | View) -> bool:
    """True if the index is only `...`."""
    return type(index) is Index and index.entries == (Ellipsis,)


def selects_all(index: Index | View) -> bool:
    return type(index) is Index and index.is_whole() and None not in index.entries


def view_text(ref: Any, path: Path, arrays: Sequence, name: Callable) -> str:
    """A view of a reference as jaxprs print it; `name` gives the names of variables."""
    names = [str(a.val) if isinstance(a, Literal) else name(a, False) for a in arrays]
    text = "".join(_index_text(index, names, arrays) for index in path)
    return show.mark_reference(name(ref, False) + (text or "[...]"))


class Indexed(RefOperation):
    """An operation on elements of a reference. Each index of the path applies to the view of the one before it."""

    def text_of(self, eqn: JaxprEqn, name: Any, first: int) -> str:
        path = eqn.params["path"]
        is_dots = len(path) == 1 and _is_ellipsis(path[0])
        return view_text(eqn.invars[0], () if is_dots else path, eqn.invars[first:], name)

    def batch(self, axis, operands, dims, *, path):
        raise mixed_error(self.name, "vmapped", "an unbatched", typeof(operands[0]))


class Writing(Indexed):
    """(reference, value, *arrays of the index)"""

    writes = True

    def tangents_of(self, primals, tangents):
        return [tangents[0], instantiate(tangents[1]), *primals[2:]]


class Get(Indexed):
    """Reads: (reference, *arrays of the index)."""

    name = "get"
    reads_only = True

    def infer(self, ref, *arrays, path):
        read = lambda x, *arrays: [read_view(x, path, arrays)]  # noqa: E731
        types = [a.inner_aval if type(a) is AbstractRef else a for a in (ref, *arrays)]
        return trace_to_jaxpr(read, types, DebugInfo("get", "get"))[0].out_avals

    def perform(self, ref, *arrays, path):
        value = read_view(ref._value, path, arrays)
        # The user may donate or delete the result.
        return [copied(value) if value is ref._value and type(value) is ArrayImpl else value]

    def batch(self, axis, operands, dims, *, path):
        values = get(operands[0])
        unnamed = Axis(None, axis.size)
        read = lambda *arrays: [read_view(values, path, arrays)]  # noqa: E731
        (result,), (dim,) = batch_flat(read, unnamed, operands[1:], dims[1:])
        return [move_batch_dim(result, dim, 0, unnamed)], [0]

    def show_eqn(self, eqn, name):
        return f"{name(eqn.outvars[0], True)} <- {self.text_of(eqn, name, 1)}"


def read_view(x: Any, path: Path, arrays: Sequence) -> Any:
    """The elements of a value that a path selects."""
    for index in path:
        if type(index) is not Index:
            x = index.of(x)
        elif not selects_all(index):
            x, index = _reaching(as_array_or_constant(x), index)
            x = x[_user_index(*_resized(index, arrays))]
    return x


def _reaching(x: Any, index: Index) -> tuple[Any, Index]:
    """A value with zeros after the end of axes that a slice goes beyond, and the index of it."""
    ends = [e.start + (e.size - 1) * e.step + 1 if type(e) is Span else 0 for _, e in index.on_axes()]
    past = [end - n for end, n in zip(ends, index.shape, strict=False)]
    beyond = [max(n, 0) if isinstance(n, int) else 0 for n in past]  # slices to symbolic ends are cut where they begin
    if not any(beyond):
        return x, index
    padding = [(0, n, 0) for n in [*beyond, *[0] * (x.ndim - len(beyond))]]
    x = pad(x, np.zeros((), typeof(x).dtype), padding)
    return x, index._replace(shape=typeof(x).shape)


def updated_view(x: Any, path: Path, arrays: Sequence, value: Any, name: str) -> Any:
    """`x` with the elements that a path selects set to `value`, or with `value` added to them."""
    if not path:
        return value if name == "set" else add(x, value)
    index, *rest = path
    if type(index) is not Index:
        return index.back(updated_view(index.of(x), rest, arrays, value, name), typeof(x).shape)
    if rest:
        value, name = updated_view(read_view(x, (index,), arrays), rest, arrays, value, name), "set"
    if name == "set" and selects_all(index):
        return value
    longer, index = _reaching(as_array_or_constant(x), index)
    view = longer.at[_user_index(*_resized(index, arrays), clamps=True)]
    x_new = view.set(value) if name == "set" else view.add(value)
    return x_new if longer.shape == typeof(x).shape else x_new[tuple(map(slice, typeof(x).shape))]


def type_of_elements(ref: AbstractRef, path: Path, arrays: Sequence[AbstractValue]) -> AbstractValue:
    """The type of the indexed elements of a reference, from types."""
    return get_p.typed([ref, *arrays], dict(path=path))[0][0] if path else ref.inner_aval


class Swap(Writing):
    """Writes elements and returns the old ones."""

    name = "swap"

    def infer(self, ref, value, *arrays, path):
        return get_p.infer(ref, *arrays, path=path)

    def perform(self, ref, value, *arrays, path):
        before = read_view(ref._value, path, arrays)
        write(self, ref, updated_view(ref._value, path, arrays, value, "set"))
        return [before]

    def show_eqn(self, eqn, name):
        place, value = self.text_of(eqn, name, 2), name(eqn.invars[1], False)
        result = name(eqn.outvars[0], True)
        if result.startswith("_"):
            return f"{place} <- {value}"
        return f"{result}, {place} <- {place}, {value}"


class AddUpdate(Writing):
    """Adds in place."""

    name = "addupdate"
    multiple_results = True

    def infer(self, ref, value, *arrays, path):
        return []

    def perform(self, ref, value, *arrays, path):
        write(self, ref, updated_view(ref._value, path, arrays, value, "add"))
        return []

    def show_eqn(self, eqn, name):
        return f"{self.text_of(eqn, name, 2)} += {name(eqn.invars[1], False)}"


def _check_mapped(name: str, ref: Ref) -> None:
    """Raises Exception for a write under vmap to a reference that was made outside: every row would write to it."""
    trace = state.thread.trace
    while trace is not None and trace is not ref._trace:
        if isinstance(trace, BatchTrace):
            raise mixed_error(name, "vmapped", "an unbatched", ref.aval)
        trace = trace.parent


def write(primitive: Primitive, ref: Ref, value: Any) -> None:
    ref._value = checked_write(primitive.name, ref, value)


new_ref_p, freeze_p, get_p, swap_p, addupdate_p = NewRef(), Freeze(), Get(), Swap(), AddUpdate()
empty_ref_p, free_ref_p = EmptyRef(), FreeRef()


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Creates a mutable reference to a copy of an array: `ref[...]` reads it, and `ref[...] = x` writes it.

    References work under `jax.jit` and in loops, as arguments or captured values; functions cannot return those that
    they got. Raises TypeError if `init_val` is not an array.

    Example:
        >>> total = jax.new_ref(jnp.zeros(()))
        >>> @jax.jit
        ... def add(x):
        ...     total[...] += x
        >>> add(2.0), add(3.0)
        (None, None)
        >>> float(total[...])
        5.0
    """
    if not is_value(init_val) or isinstance(init_val, Ref):
        raise TypeError(
            f"Error interpreting argument to new_ref as a JAX value. The problematic value is of type "
            f"{type(init_val)} and was passed to new_ref at position 0."
        )
    init_val = as_array_or_constant(init_val)
    if not typeof(init_val).is_high:
        dtypes.check_for_programs(typeof(init_val).dtype)
    return new_ref_p.bind(init_val, memory_space=memory_space, kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Creates a mutable reference to an array of zeros with the shape and dtype of `ty`.

    Example:
        >>> jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32))[...]
        Array([0., 0.], dtype=float32)
    """
    is_high = isinstance(ty, AbstractValue) and ty.is_high
    ty = ty if is_high else ShapedArray(ty.shape, np.dtype(ty.dtype))
    return empty_ref_p.bind(ty=ty, memory_space=memory_space)


def free_ref(ref: Ref) -> None:
    """Ends the use of a reference.

    Example:
        >>> ref = jax.new_ref(jnp.zeros(2))
        >>> jax.free_ref(ref)
        >>> ref[...]
        Traceback (most recent call last):
        RuntimeError: get: the reference of type Ref{float32[2]} was freed before...
    """
    free_ref_p.bind_all([checked_ref("free_ref", ref)], {})


def freeze(ref: Ref) -> Array:
    """Ends the use of a reference, and returns its value as an array.

    Example:
        >>> ref = jax.new_ref(jnp.zeros(2))
        >>> ref[0] = 1.0
        >>> jax.freeze(ref)
        Array([1., 0.], dtype=float32)
    """
    return freeze_p.bind(checked_ref("freeze", ref))


def get(ref: Ref, idx: Any = None) -> Any:
    """Reads the elements of a reference that an index selects; None selects all.

    Raises ValueError for an index that does not fit the shape.

    Example:
        >>> ref = jax.new_ref(jnp.array([1, 2, 3]))
        >>> jax.ref.get(ref, slice(1, None)), jax.ref.get(ref)
        (Array([2, 3], dtype=int32), Array([1, 2, 3], dtype=int32))
    """
    try:
        ref, path, arrays = _resolved("ref_get", ref, idx)
    except Exception as error:
        hide_frames(error)
        raise
    return get_p.bind(ref, *arrays, path=path)


def swap(ref: Ref, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Writes the elements selected by an index, and returns the old ones.

    Raises ValueError for a value of another dtype or shape than theirs.

    Example:
        >>> ref = jax.new_ref(jnp.array([1, 2, 3]))
        >>> jax.ref.swap(ref, 1, 10), ref[...]
        (Array(2, dtype=int32), Array([ 1, 10,  3], dtype=int32))
    """
    try:
        ref, path, arrays = _resolved(_function_name, ref, idx)
        value = _checked_value("swap", ref, value, path, arrays)
    except Exception as error:
        hide_frames(error)
        raise
    return swap_p.bind(ref, value, *arrays, path=path)


def set(ref: Ref, idx: Any, value: Any) -> None:  # noqa: A001
    """Writes the elements of a reference that an index selects.

    Example:
        >>> ref = jax.new_ref(jnp.array([1, 2, 3]))
        >>> jax.ref.set(ref, 1, 10)
        >>> ref[...]
        Array([ 1, 10,  3], dtype=int32)
    """
    swap(ref, idx, value, "ref_set")


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Adds `x` to the elements of a reference that an index selects.

    Example:
        >>> ref = jax.new_ref(jnp.array([1, 2, 3]))
        >>> jax.ref.addupdate(ref, 1, 10)
        >>> ref[...]
        Array([ 1, 12,  3], dtype=int32)
    """
    ref, path, arrays = _resolved("ref_addupdate", ref, idx)
    x = _checked_value("addupdate", ref, x, path, arrays)
    addupdate_p.bind(ref, x, *arrays, path=path)


def checked_ref(name: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise ValueError(f"Can only call `{name}` on a `Ref`: {ref}")
    return ref


def parts_of(ref: Any) -> tuple[Ref, tuple, Sequence]:
    """The reference under a view, the path of the view and its arrays; the path of a reference is empty."""
    if type(ref) is not TransformedRef:
        return ref, (), ()
    view = ref.here
    return view.ref, view._path, view._arrays


def _resolved(name: str, ref: Any, idx: Any) -> tuple[Ref, tuple, list]:
    """The reference, the path of indices (those of the view, and `idx`), and the arrays of the path."""
    base, path, arrays = parts_of(ref)
    if not path and checked_ref(name, ref).aval.inner_aval.is_high:
        return ref, (_full_index_of_hi(name, ref.aval.inner_aval, idx),), []
    checks_ints = base.aval.memory_space is not None or is_ref(ref) and not _is_recording()
    index, operands = _parsed(_items(idx), ref.shape, checks_ints)
    if name != "ref_at" and any(type(e) is Stretch for e in index.entries):
        raise NotImplementedError(f"{name}: only copies take slices whose size is not known, got {idx}")
    index = index.after(len(arrays)) if arrays else index
    if not path or name == "ref_at" or not _is_ellipsis(index):
        path = (*path, index)
    return base, path, [*arrays, *operands]


def _items(idx: Any) -> tuple:
    """The items of an index, where None selects all."""
    return idx if isinstance(idx, tuple) else (... if idx is None else idx,)


def _parsed(items: tuple, shape: Sequence[int], checks_ints: bool) -> tuple[Index, list]:
    """The index of an array of `shape`, and the arrays in it. Raises ValueError if it is out of bounds."""
    if not items or len(items) == 1 and items[0] is Ellipsis:
        return Index(shape, (Ellipsis,)), []
    if any(map(_is_for_copies, items)):
        return _parsed_for_copies(_without_ellipsis(items, len(shape)), shape)
    _check_bounds(items, shape, checks_ints)
    index, arrays = parse(tuple(map(_as_array_index, items)), shape)
    if not any(map(_is_long, items, index.entries)):
        return index, arrays
    entries = [_long_span(i) if _is_long(i, e) else e for i, e in zip(items, index.entries, strict=False)]
    return index._replace(entries=(*entries, *index.entries[len(entries) :])), arrays


def _is_for_copies(item: Any) -> bool:
    """Returns whether only copies take an item of an index."""
    return isinstance(item, Ref | TransformedRef | Indices) or type(item) is Slice and item.is_dynamic_size


def _parsed_for_copies(items: tuple, shape: Sequence[int]) -> tuple[Index, list]:
    """As `_parsed`, for items among which are references, views, `Indices` or slices of sizes that are not known."""
    plain, given = _parsed(tuple(slice(None) if _is_for_copies(i) else i for i in items), shape, True)
    entries, arrays, rest = [], [], iter(given)
    for axis, (item, e, n) in enumerate(zip(items, plain.entries, shape, strict=True)):
        if not _is_for_copies(item):
            own = [next(rest)] if of_operands(e) else []
        elif type(item) is Slice:
            e, own = _stretch(item, n)
        elif all(isinstance(i, slice | Slice) for i in (*items[:axis], *items[axis + 1 :])):
            e, own = _list(item)
        else:
            raise NotImplementedError(f"a reference can be an index only beside slices, got indices={items}")
        entries.append(e._replace(place=len(arrays)) if own else e)
        arrays += own
    return plain._replace(entries=tuple(entries)), arrays


def _stretch(item: Slice, n: int) -> tuple[Stretch, list]:
    """The entry of a slice whose size is not known, on an axis of size `n`, and its operands."""
    if item.stride not in (None, 1):
        raise NotImplementedError(f"a slice of a size that is not known must have stride 1, got {item.stride}")
    if item.is_dynamic_start:
        return Stretch(0, None, n), [item.start, item.size]
    return Stretch(0, int(item.start), max(n - int(item.start), 0)), [item.size]


def _list(item: Any) -> tuple[Listed, list]:
    """The entry of a reference, a view or `Indices`, and its operands."""
    given = item if isinstance(item, Indices) else Indices(item)
    base, path, views = parts_of(given.values)
    shape = given.values.shape if path else typeof(base).shape
    if not shape:
        raise TypeError(f"indices of a reference must be a vector, got the scalar {given.values}")
    return Listed(0, shape, path, len(views), given.ignored_value), [base, *views]


def _without_ellipsis(items: tuple, rank: int) -> tuple:
    """The items, with full slices in place of an ellipsis."""
    at = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
    rest = items[at + 1 :]
    return (*items[:at], *[slice(None)] * (rank - at - len(rest)), *rest)


def _is_long(item: Any, entry: Any) -> bool:
    """Returns whether an item is a slice that goes beyond its axis."""
    return type(item) is Slice and type(entry) is Span and entry.size < item.size


def _long_span(s: Slice) -> Span:
    stride = s.stride or 1
    return Span(int(s.start), s.size, stride, int(s.start) + s.size * stride)


def _full_index_of_hi(name: str, aval: AbstractValue, idx: Any) -> Index:
    """The index of all of a value of a user-defined type. Raises NotImplementedError for another index."""
    shape = getattr(aval, "shape", None)
    named = [i for i in _items(idx) if i is not Ellipsis]
    if named and (shape is None or len(named) != len(shape) or not all(map(_is_all, named, shape))):
        raise NotImplementedError(f"{name}: a reference to a value of type {aval} must be read and written as a whole")
    return Index((), (Ellipsis,))


def _is_all(item: Any, size: int) -> bool:
    return isinstance(item, slice) and item.indices(size) == (0, size, 1)


def _as_array_index(item: Any) -> Any:
    """Converts an item of a reference's index to one of an array's index, where True is a new axis."""
    if isinstance(item, bool | np.bool_):
        return int(item)
    if type(item) is Slice and not item.is_dynamic_start and item.stride:
        return slice(int(item.start), int(item.start) + item.size * item.stride, item.stride)
    return item


def _check_bounds(items: tuple, shape: Sequence[int], checks_ints: bool) -> None:
    """Raises ValueError for an index that is too long, adds axes or is out of bounds."""
    counts = [_axes_of(item) for item in items]
    if sum(counts) > len(shape):
        raise ValueError(f"`indices` must not be longer than `shape`: indices={items}, {shape=}")
    if any(item is None for item in items):
        raise ValueError(f"None cannot add an axis to a reference: indices={items}, {shape=}")
    is_plain = not any(item is Ellipsis for item in items)
    axis = 0
    for item, count in zip(items, counts, strict=True):
        if item is Ellipsis:
            axis += len(shape) - sum(counts)
        else:
            _check_item(item, shape[axis], checks_ints and is_plain)
        axis += count


def _check_item(item: Any, size: int, checks_int: bool) -> None:
    if type(item) is Slice:
        _check_slice(item, size)
    elif isinstance(item, slice):
        if item.step is not None and item.step < 1:
            raise ValueError(f"slice must have a step >= 1 (found: {item.step})")
        if size and (start := _start_of(item, size)) >= size:
            raise ValueError(f"Out of bound slice: start={start}, dim={size}.")
    elif checks_int:
        _check_int(item, size)


def _start_of(item: slice, size: int) -> int:
    """The start of a slice; 0 for one of symbolic sizes, and for a traced start, which the parser rejects."""
    known = isinstance(item.start, int | np.integer | type(None)) and isinstance(size, int)
    return slice(item.start, None).indices(size)[0] if known else 0


def _axes_of(item: Any) -> int:
    """The number of axes that an item of an index consumes."""
    is_mask = isinstance(item, np.ndarray | ArrayImpl) and item.dtype == np.bool_ and item.ndim > 0
    return item.ndim if is_mask else int(item is not None and item is not Ellipsis)


def _check_slice(s: Slice, size: int) -> None:
    stride = s.stride or 1
    if not s.is_dynamic_start and s.start == 0:  # may be longer than the axis, as jax allows for masked reads
        return
    if not 0 <= (0 if s.is_dynamic_start else s.start) <= size - s.size * stride + stride - 1:
        raise ValueError(f"Out of bound slice: start={s.start}, size={s.size}, stride={s.stride}, dim={size}.")


def _check_int(i: Any, size: int) -> None:
    is_known = isinstance(i, np.integer | ArrayImpl) and not i.shape and np.issubdtype(i.dtype, np.integer)
    if (isinstance(i, int) or is_known) and int(i) >= size and checks_bounds.get():
        raise ValueError(f"Out of bound indexer: idx={i}, dim={size}.")


def _checked_value(name: str, ref: Ref, value: Any, path: tuple, arrays: Sequence) -> Any:
    aval = typeof(value)
    if type(aval) is AbstractRef:
        raise ValueError(f"Cannot store a Ref into another Ref. Did you forget to load the value, ref[...], of {aval}?")
    if (inner := ref.aval.inner_aval).is_high or aval.is_high:
        if inner != aval:
            raise ValueError(f"Invalid type for `{name}`. Ref type: {inner}. Value type: {aval}.")
        return value
    place = type_of_elements(ref.aval, path, [typeof(a) for a in arrays])
    if name == "swap" and _is_converted(aval, place.dtype):
        value = convert(as_array_or_constant(value), place.dtype)
    elif aval.dtype != place.dtype:
        raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {place.dtype}. Value dtype: {aval.dtype}.")
    if aval.shape != place.shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: {place.shape}. Value shape: "
            f"{aval.shape}."
        )
    return as_array_or_constant(value)


def _is_converted(aval: Any, dtype: Any) -> bool:
    """Returns whether a value of this type is converted where it is written: any integer, and weakly typed floats."""
    if dtypes.issubdtype(dtype, np.integer):
        return dtypes.issubdtype(aval.dtype, np.integer)
    return aval.weak_type and all(dtypes.issubdtype(d, np.floating) for d in (aval.dtype, dtype))


@tree.register_pytree_node_class
class TransformedRef:
    """A view of indexed elements of a reference, `ref.at[...]`, which can be read, written and viewed again.

    Its leaves are the reference and the arrays of the indices.
    """

    def __init__(self, ref: Ref, path: tuple, arrays: Sequence):
        self.ref, self._path, self._arrays = ref, path, arrays

    # The trace that the numbers of its index belong to, and the view with these as operands, for inner traces.
    _made = _captured = None

    @property
    def here(self) -> TransformedRef:
        """The view as the current trace uses it: an inner trace captures the numbers of its index, as jax's does."""
        trace = state.thread.trace
        return self if self._made is trace or type(trace) is not JaxprTrace else self.with_leaves

    @property
    def with_leaves(self) -> TransformedRef:
        """The view with numbers of its index that are values of the trace in which it was made."""
        made = self._made
        if made is None:
            return self
        if self._captured is None:
            self._captured = with_operands(self, lambda n: DynamicJaxprTracer(made, Literal(np.int32(n), _INT32), None))
        return self._captured

    _type = property(lambda self: type_of_elements(self.ref.aval, self._path, [typeof(a) for a in self._arrays]))
    shape = property(lambda self: self._type.shape)
    dtype = property(lambda self: self._type.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))
    at = property(lambda self: RefIndexer(self))

    def __getitem__(self, idx: Any) -> Any:
        return get(self, idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        set(self, idx, value)

    def __repr__(self):
        return f"TransformedRef({self.ref!r}, {self._path}, {self._arrays})"

    def tree_flatten(self) -> tuple:
        view = self.with_leaves if type(state.thread.trace) is JaxprTrace else self
        return (view.ref, *view._arrays), view._path

    @classmethod
    def tree_unflatten(cls, path: tuple, leaves: Sequence) -> TransformedRef:
        return cls(leaves[0], path, leaves[1:])


def with_operands(view: TransformedRef, number: Callable, operand: Callable = lambda x: x) -> TransformedRef:
    """The view with static positions as operands, which `number` makes; `operand` converts the others.

    Both are called in the order of the index.
    """
    arrays: list = []
    path = [
        step._replace(entries=tuple([_placed(e, view._arrays, arrays, number, operand) for e in step.entries]))
        if type(step) is Index
        else step
        for step in view._path
    ]
    return TransformedRef(view.ref, tuple(path), arrays)


def _placed(e: Any, given: Sequence, arrays: list, number: Callable, operand: Callable) -> Any:
    """An entry of an index, whose operands are added to `arrays`."""
    place = len(arrays)
    if isinstance(e, int):
        arrays.append(number(e))
        return Slot(place, (), True)
    if not of_operands(e):
        return e
    own = given[e.place : e.place + 1 + (e.count if type(e) is Listed else type(e) is Stretch and e.start is None)]
    if type(e) is Listed:
        listed = with_operands(TransformedRef(own[0], e.path, own[1:]), number, operand)
        arrays += [listed.ref, *listed._arrays]
        return e._replace(place=place, path=listed._path, count=len(listed._arrays))
    arrays += map(operand, own)
    return e._replace(place=place)


class RefIndexer:
    """`ref.at`, whose items are views."""

    def __init__(self, ref: Any):
        self.ref = ref

    def __getitem__(self, idx: Any) -> TransformedRef:
        return _made_here(TransformedRef(*_resolved("ref_at", self.ref, idx)))


def _made_here(view: TransformedRef) -> TransformedRef:
    if _is_recording():
        view._made = state.thread.trace
    return view


def _viewed(ref: Any, view: View) -> TransformedRef:
    base, path, arrays = parts_of(ref)
    return _made_here(TransformedRef(base, (*path, view), [*arrays]))


METHODS = {
    "get": lambda self, idx=(): get(self, idx),
    "set": lambda self, value, idx=(): set(self, idx, value),
    "swap": lambda self, value, idx=(): swap(self, idx, value),
    "addupdate": lambda self, value, idx=(): addupdate(self, idx, value),
}
VIEWS = {
    "reshape": lambda self, *shape: _viewed(self, reshaping(self, shape)),
    "transpose": lambda self, permutation: _viewed(self, transposing(self, permutation)),
    "bitcast": lambda self, dtype: _viewed(self, bitcasting(self, dtype)),
    "T": lambda self: _viewed(self, transposing(self, range(len(self.shape))[::-1])),
}


def _install() -> None:
    Ref.__getitem__ = get
    Ref.__setitem__ = set
    Ref.at = property(RefIndexer)
    for cls in (Ref, TransformedRef):
        for name, method in (METHODS | VIEWS).items():
            setattr(cls, name, property(method) if name == "T" else method)


_install()
