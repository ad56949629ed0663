"""Making, reading and writing references."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base.lazy import defer
from minijax.ir import state
from minijax.ir.jaxpr import DebugInfo, JaxprEqn, Literal
from minijax.ir.primitive import Primitive
from minijax.ir.refs import REF_EFFECT, AbstractRef, Ref, is_ref
from minijax.ir.trace import JaxprTrace, Tracer, trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, is_value, typeof
from minijax.ops.convert import convert
from minijax.ops.moving import full, held
from minijax.run.array import ArrayImpl, copied

_api = defer("minijax.api.vmap")
_indexing = defer("minijax.numpy.indexing")


def _records() -> bool:
    return type(state.thread.trace) is JaxprTrace


class OfRefs(Primitive):
    """An operation on a reference. Recorded in a jaxpr; elsewhere done at once on the reference's value."""

    unites = False

    def bind_all(self, operands, params):
        if is_ref(operands[0]) and (not _records() or operands[0]._trace is state.thread.trace):
            return self.done(*operands, **params)
        return super().bind_all(operands, params)

    def bind(self, *operands, **params):
        results = self.bind_all(operands, params)
        return results if self.multiple_results else results[0]

    def rebind(self, trace, operands, params):
        return self.bind_all(operands, params)

    def effects(self, *avals, **params):
        return REF_EFFECT

    def done(self, ref: Ref, *operands: Any, **params: Any) -> list:
        """The results; the value of the reference is changed."""
        raise NotImplementedError(self.name)

    def jvp(self, primals, tangents, **params):
        if any(type(t) is not Zero for t in tangents):
            raise _mixed(self.name, "a differentiated", "a non-differentiated", typeof(primals[0]))
        results = self.bind_all(primals, params)
        return results, [Zero(typeof(r).to_tangent_aval()) for r in results]


def _mixed(name: str, value: str, kind: str, aval: Any) -> Exception:
    return Exception(
        f"performing a {_VERBS[name]} operation with {value} value on {kind} array reference of type "
        f"{aval}. Move the array reference to be an argument of the transformed function?"
    )


_VERBS = {"swap": "set/swap", "addupdate": "addupdate", "get": "get", "freeze": "freeze"}


class NewRef(OfRefs):
    """A reference to a new copy of a value."""

    name = "new_ref"

    def bind_all(self, operands, params):
        if _records():
            return Primitive.bind_all(self, operands, params)
        x = held(operands[0])
        return [Ref(copied(x) if type(x) is ArrayImpl else x)]

    def rebind(self, trace, operands, params):
        return [Ref(held(operands[0]))]

    def infer(self, aval, **params):
        return [AbstractRef(aval)]


class EmptyRef(OfRefs):
    """A reference to zeros."""

    name = "empty_ref"

    def bind_all(self, operands, params):
        return (
            Primitive.bind_all(self, operands, params) if _records() else self.rebind(None, operands, params)
        )

    def rebind(self, trace, operands, params):
        return [Ref(full(params["ty"].shape, np.zeros((), params["ty"].dtype)[()]))]

    def infer(self, *, ty, memory_space):
        return [AbstractRef(ty)]


class FreeRef(OfRefs):
    """The end of a reference."""

    name = "free_ref"
    multiple_results = True

    def infer(self, ref):
        return []

    def done(self, ref):
        return []


class Freeze(OfRefs):
    """The value of a reference that is not written any more."""

    name = "freeze"

    def infer(self, ref):
        return [ref.inner_aval]

    def done(self, ref):
        return [ref._value]

    def batch(self, axis, operands, dims):
        return self.bind_all(operands, {}), [None]


class Slice(NamedTuple):
    """A slice in an index."""

    start: int | None
    stop: int | None
    step: int | None

    def __str__(self):
        start = "" if self.start in (0, None) else self.start
        stop = "" if self.stop is None else self.stop
        return f"{start}:{stop}" + (f":{self.step}" if self.step not in (1, None) else "")


class Operand(NamedTuple):
    """An array in an index: operand number `n` after the reference and the value."""

    n: int


def _packed(index: Any) -> tuple[tuple, list]:
    """An index as something static with numbers for its arrays, and the arrays. True counts as 1."""
    arrays: list[Any] = []

    def item(x):
        if isinstance(x, slice):
            if x.step is not None and x.step < 1:
                raise ValueError(f"slice must have a step >= 1 (found: {x.step})")
            return Slice(x.start, x.stop, x.step)
        if isinstance(x, bool | int):
            return int(x)
        if x is None or x is Ellipsis:
            return x
        arrays.append(x)
        return Operand(len(arrays) - 1)

    return tuple([item(x) for x in (index if isinstance(index, tuple) else (index,))]), arrays


def _unpacked(index: tuple, arrays: Sequence, shape: Sequence[int]) -> tuple:
    """The index as NumPy has it; numbers beyond an axis, which traces let pass, mean its nearest element."""
    plain = Ellipsis not in index and None not in index
    sizes = [*shape, *(None,) * len(index)] if plain else [None] * len(index)

    def item(x, size):
        if type(x) is Slice:
            return slice(*x)
        if type(x) is Operand:
            return arrays[x.n]
        return min(max(x, -size), size - 1) if type(x) is int and size else x

    return tuple(map(item, index, sizes[: len(index)]))


class Indexed(OfRefs):
    """An operation on the elements that an index names."""

    def text_of(self, eqn: JaxprEqn, name: Any, first: int) -> str:
        ref, arrays, index = eqn.invars[0], eqn.invars[first:], list(eqn.params["index"])
        names = [str(a.val) if isinstance(a, Literal) else name(a, False) for a in arrays]
        at = index.index(Ellipsis) if Ellipsis in index else len(index)
        named = sum(x is not None and x is not Ellipsis for x in index)
        index[at : at + 1] = [Slice(None, None, None)] * (ref.aval.ndim - named)
        items = [names[x.n] if type(x) is Operand else str(x) for x in index] if named else ["..."]
        return f"{name(ref, False)}[{','.join(items)}]"

    def batch(self, axis, operands, dims, *, index):
        raise _mixed(self.name, "vmapped", "an unbatched", typeof(operands[0]))


class Get(Indexed):
    """Reads: (reference, *arrays of the index)."""

    name = "get"

    def infer(self, ref, *arrays, index):
        read = lambda x, *arrays: [_read(x, index, arrays)]  # noqa: E731
        return trace_to_jaxpr(read, [ref.inner_aval, *arrays], DebugInfo("get", "get"))[0].out_avals

    def done(self, ref, *arrays, index):
        found = _read(ref._value, index, arrays)
        # The user may donate or delete what was read.
        return [copied(found) if found is ref._value and type(found) is ArrayImpl else found]

    def batch(self, axis, operands, dims, *, index):
        whole = get(operands[0])
        mapped = _api.vmap(lambda *arrays: _read(whole, index, arrays), tuple(dims[1:]), axis_size=axis.size)
        return [mapped(*operands[1:])], [0]

    def show_eqn(self, eqn, name):
        return f"{name(eqn.outvars[0], True)} <- {self.text_of(eqn, name, 1)}"


def _read(x, index, arrays):
    return x if _is_whole(index) else _indexing.getitem(x, _unpacked(index, arrays, typeof(x).shape))


def _is_whole(index: tuple) -> bool:
    return all(x is Ellipsis or x == (None, None, None) for x in index)


class Swap(Indexed):
    """Reads and writes: (reference, value, *arrays of the index)."""

    name = "swap"

    def infer(self, ref, value, *arrays, index):
        return get_p.infer(ref, *arrays, index=index)

    def done(self, ref, value, *arrays, index):
        before = _read(ref._value, index, arrays)
        place = _unpacked(index, arrays, ref.shape)
        _write(self, ref, value if _is_whole(index) else _indexing.update(ref._value, place, value, "set"))
        return [before]

    def show_eqn(self, eqn, name):
        place, value = self.text_of(eqn, name, 2), name(eqn.invars[1], False)
        result = name(eqn.outvars[0], True)
        if result.startswith("_"):
            return f"{place} <- {value}"
        return f"{result}, {place} <- {place}, {value}"


class AddUpdate(Indexed):
    """Adds in place: (reference, value, *arrays of the index)."""

    name = "addupdate"
    multiple_results = True

    def infer(self, ref, value, *arrays, index):
        return []

    def done(self, ref, value, *arrays, index):
        place = _unpacked(index, arrays, ref.shape)
        _write(self, ref, _indexing.update(ref._value, place, value, "add"))
        return []

    def show_eqn(self, eqn, name):
        return f"{self.text_of(eqn, name, 2)} += {name(eqn.invars[1], False)}"


def _write(primitive: Primitive, ref: Ref, value: Any) -> None:
    # A value of a transformation that began after the reference was made would outlive it there.
    if isinstance(value, Tracer):
        trace = ref._trace
        while trace is not None and trace is not value._trace:
            trace = trace.parent
        if trace is None:
            mapped = hasattr(value, "dim")
            words = ("vmapped", "an unbatched") if mapped else ("a differentiated", "a non-differentiated")
            raise _mixed(primitive.name, *words, ref.aval)
    weak = type(value) is ArrayImpl and ref.aval.inner_aval.weak_type
    ref._value = convert(value, ref.dtype, weak_type=True) if weak else value


new_ref_p, freeze_p, get_p, swap_p, addupdate_p = NewRef(), Freeze(), Get(), Swap(), AddUpdate()
empty_ref_p, free_ref_p = EmptyRef(), FreeRef()


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A mutable reference to a copy of `init_val`.

    Raises TypeError for what is no array.
    """
    if not is_value(init_val) or isinstance(init_val, Ref):
        raise TypeError(
            f"Error interpreting argument to new_ref as a JAX value. The problematic value is of type "
            f"{type(init_val)} and was passed to new_ref at position 0."
        )
    return new_ref_p.bind(held(init_val), memory_space=memory_space, kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A mutable reference to an array of that shape and dtype, whose elements are zeros."""
    return empty_ref_p.bind(ty=ShapedArray(ty.shape, np.dtype(ty.dtype)), memory_space=memory_space)


def free_ref(ref: Ref) -> None:
    """Ends the use of a reference."""
    free_ref_p.bind_all([_checked("free_ref", ref)], {})


def freeze(ref: Ref) -> Any:
    """The value of a reference that is neither read nor written after."""
    return freeze_p.bind(_checked("freeze", ref))


def get(ref: Ref, idx: Any = None) -> Any:
    """The elements of a reference that an index names; None: all.

    Raises ValueError for an index that does not fit the shape.
    """
    index, arrays = _placed("ref_get", ref, idx)
    return get_p.bind(ref, *arrays, index=index)


def swap(ref: Ref, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Writes the elements that an index names, and gives those that were there.

    Raises ValueError for a value of another dtype or shape than theirs.
    """
    index, arrays = _placed(_function_name, ref, idx)
    value = _fitted("swap", ref, value, index, arrays)
    return swap_p.bind(ref, value, *arrays, index=index)


def set(ref: Ref, idx: Any, value: Any) -> None:  # noqa: A001
    """Writes the elements that an index names."""
    swap(ref, idx, value, "ref_set")


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Adds `x` to the elements that an index names."""
    index, arrays = _placed("ref_addupdate", ref, idx)
    x = _fitted("addupdate", ref, x, index, arrays)
    addupdate_p.bind(ref, x, *arrays, index=index)


def _checked(name: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise ValueError(f"Can only call `{name}` on a `Ref`: {ref}")
    return ref


def _placed(name: str, ref: Ref, idx: Any) -> tuple[tuple, list]:
    index, arrays = _packed(... if idx is None else idx)
    shape = _checked(name, ref).shape
    places = [x for x in index if x is not None and x is not Ellipsis]
    if len(places) > len(shape):
        raise ValueError(f"`indices` must not be longer than `shape`: indices={index}, {shape=}")
    if is_ref(ref) and not _records() and Ellipsis not in index and None not in index:
        for x, n in zip(_unpacked(index, arrays, ()), shape, strict=False):
            lowest = -n if type(x) is int else None
            known = lowest is not None or isinstance(x, np.integer | ArrayImpl) and _is_whole_number(x)
            if known and (int(x) >= n or lowest is not None and x < lowest):
                raise ValueError(f"Out of bound indexer: idx={x}, dim={n}.")
    return index, arrays


def _is_whole_number(x: Any) -> bool:
    return not x.shape and np.issubdtype(x.dtype, np.integer)


def _fitted(name: str, ref: Ref, value: Any, index: tuple, arrays: Sequence) -> Any:
    (there,), _ = get_p.typed([ref.aval, *map(typeof, arrays)], dict(index=index))
    aval = typeof(value)
    if aval.dtype != ref.dtype:
        raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {ref.dtype}. Value dtype: {aval.dtype}.")
    if aval.shape != there.shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: {there.shape}. "
            f"Value shape: {aval.shape}."
        )
    return convert(held(value), ref.dtype)


def _install() -> None:
    Ref.__getitem__ = get
    Ref.__setitem__ = set
    Ref.addupdate = addupdate


_install()
