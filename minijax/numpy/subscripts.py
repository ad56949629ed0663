"""NumPy indexing, `x[...]` and `x.at[...]`; an eager call runs one cached program."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, config, dtypes, errors
from minijax.base.mask import Mask
from minijax.base.source import hide_frames
from minijax.dispatch.jitted import jitted
from minijax.dispatch.operands import operand
from minijax.dispatch.operations import compile_function, programs
from minijax.dispatch.replay import replayed
from minijax.indexing.language import PLAIN, Index, Options, Slot, Span, Window, check_ints, parse
from minijax.indexing.reading import read, scatter
from minijax.ir import state
from minijax.ir.trace import DynamicJaxprTracer, Tracer
from minijax.ir.types import is_value, typeof, unwrapped
from minijax.numpy import creation, ufuncs
from minijax.primitives import gather_scatter, sharding, structural
from minijax.primitives.convert import convert
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array, ArrayImpl
from minijax.run.arrays.keys import PRNGKeyArray, key_array

_checks_ints = config.option("check_static_indices")
_LARGEST_INT32 = np.iinfo(np.int32).max
_UPDATES = {
    "set": gather_scatter.scatter,
    "add": gather_scatter.scatter_add,
    "subtract": gather_scatter.scatter_sub,
    "multiply": gather_scatter.scatter_mul,
    "min": gather_scatter.scatter_min,
    "max": gather_scatter.scatter_max,
}


def getitem(x: Any, index: Any, options: Options = PLAIN) -> Any:
    """`x[index]`: by a slice, a dynamic slice or a gather, depending on the index."""
    try:
        if options.fill_value is not None:
            options = options._replace(fill_value=_fill_value(options.fill_value))
        is_eager = type(x) is ArrayImpl and state.is_eager()
        if is_eager:
            items = _run_cached(x, index, options, None, ())
            if items is not None:
                return items
        elif type(x) is DynamicJaxprTracer and options is PLAIN and not _checks_ints.value:
            key = _static_key(index)
            if key is not None:
                return replayed(("getitem", key), (x,), lambda x: read(x, (), parse(index, x.shape)[0], PLAIN))
        ind, operands = parse(index, typeof(x).shape)
        if _checks_ints.value and options.mode is None:
            check_ints(ind, options.wrap_negative_indices)
        if is_eager:
            return read(x, operands, ind, options, x._sig.device is None)
        return replayed((ind, _options_key(options)), (x, *operands), lambda x, *rest: read(x, rest, ind, options))
    except Exception as error:
        hide_frames(error)
        raise


def _static_key(index: Any) -> Any:
    """An index of ints, slices of ints, None and Ellipsis as a key; None for any other."""
    kind = type(index)
    if kind is int or index is Ellipsis:
        return index
    if kind is slice:
        key = index.start, index.stop, index.step
        return key if all([end is None or type(end) is int for end in key]) else None
    if kind is not tuple or tuple in map(type, index):  # a tuple in a tuple is an array of positions
        return None
    key = [(item,) if item is None else _static_key(item) for item in index]
    return None if None in key else (tuple, *key)


def _options_key(options: Options) -> Any:
    return options if options is PLAIN else cache.key(options)  # fill values 0.0 and -0.0 are equal


def _fill_value(value: Any) -> Any:
    if isinstance(value, Tracer):
        raise errors.ConcretizationTypeError(value, "fill_value argument to indexed get()")
    return value.item() if hasattr(value, "item") else value


def update(x: Any, index: Any, values: Any, name: str, options: Options = PLAIN) -> Any:
    """`x` with the elements at `index` updated by `name`, a method of `x.at[index]`."""
    try:
        x = x if isinstance(x, Array) else creation.asarray(x)
        values = unwrapped(values)
        if not is_value(values):
            values = creation.asarray(values)
        elif type(values) is int and values > _LARGEST_INT32:
            dtype = typeof(x).dtype
            if dtype.kind == "u" and values <= dtypes.iinfo(dtype).max:
                values = creation.asarray(values, dtype)
        if type(x) is ArrayImpl and state.is_eager() and not isinstance(values, Tracer):
            updated = _run_cached(x, index, options, name, (operand(values),))
            if updated is not None:
                return updated
        rule = _UPDATES[name]
        ind, operands = parse(index, typeof(x).shape)
        key = (ind, _options_key(options), name)
        if isinstance(values, Tracer):
            return replayed(key, (x, values, *operands), lambda x, v, *rest: scatter(x, rest, v, ind, options, rule))
        if type(values) in dtypes.python_scalar_dtypes:
            key = (*key, cache.key(values))
            return replayed(key, (x, *operands), lambda x, *rest: scatter(x, rest, values, ind, options, rule))
        return scatter(x, operands, values, ind, options, rule)
    except Exception as error:
        hide_frames(error)
        raise


# ---- eager calls -------------------------------------------------------------------------------------


class _CachedIndex(NamedTuple):
    """The cached program for one kind of index, the sizes of the axes of its ints, and the starts of its slices."""

    run: Callable[[Sequence], Any]
    sizes: tuple[int, ...]
    starts: tuple[ArrayImpl, ...]


def _run_cached(x: ArrayImpl, index: Any, options: Options, name: str | None, new_values: tuple) -> Any:
    """Runs an index, or the update `name` with `new_values`, as one cached program; None if that is not possible."""
    parts = _static_parts(index, x._sig.shape)
    if parts is None:
        return None
    kinds, ints, arrays = parts
    how = options if options.fill_value is None else cache.key(options)
    key = (config.state(), x._sig, how, name, *[a._sig for a in new_values], *kinds)
    known = programs.get(key)
    if known is None:
        known = programs.once(key, _compile_index, x, index, options, name, new_values, ints, arrays)
        if known is None:
            programs.pop(key)
            return None
    run, sizes, starts = known
    leaves = [x, *new_values, *arrays]
    for i, n in zip(ints, sizes, strict=True):
        if i < 0 and options.wrap_negative_indices:
            i += n
        if not 0 <= i < n:
            return None
        leaves.append(transfer.scalar_operand(i))
    return run([*leaves, *starts] if starts else leaves)


def _static_parts(index: Any, shape: tuple[int, ...]) -> tuple[list, list, list] | None:
    """The static part of an index as a key, its ints, and its arrays; None for an index that is not cached."""
    kinds: list[Any] = []
    ints: list[int] = []
    arrays: list[ArrayImpl] = []
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if kind is int:
            kinds.append(int)
            ints.append(item)
        elif kind is slice:
            ends = (item.start, item.stop, item.step)
            for end in ends:
                if end is not None and type(end) is not int:
                    return None
            kinds += (slice, *ends)
        elif item is None or item is Ellipsis:
            kinds.append(item)
        elif isinstance(item, np.integer):
            kinds.append(int)
            ints.append(int(item))
        else:
            item_arrays = _index_arrays(item, () if kinds else shape)
            if item_arrays is None:
                return None
            arrays += item_arrays
            kinds += [a._sig for a in item_arrays]
    return kinds, ints, arrays


def _index_arrays(item: Any, shape: tuple[int, ...]) -> list[ArrayImpl] | None:
    """The integer arrays that replace an array in an index; a mask must have the first sizes of `shape`."""
    if type(item) is not ArrayImpl and type(item) is not np.ndarray:
        return None
    if item.dtype == np.bool_ and item.shape and item.shape == shape[: item.ndim]:
        return [transfer.to_device(places.astype(np.int32)) for places in np.nonzero(np.asarray(item))]
    if item.dtype.kind not in "iu":
        return None
    return [item if type(item) is ArrayImpl else transfer.to_device(item)]


def _compile_index(
    x: ArrayImpl, index: Any, options: Options, name: str | None, new_values: tuple, ints: list, arrays: list
) -> _CachedIndex | None:
    """Compiles the program for an index; ints and slice starts are operands, so that similar indices share it."""
    if x._sig.device is None or new_values and not _keeps_type(x, new_values[0]):
        return None
    ind = parse(index, x._sig.shape)[0]
    generalized = _as_operands(ind, options, len(arrays), len(ints))
    if generalized is None or name is None and ind.is_whole() and None not in ind.entries:
        return None
    ind, sizes, starts = generalized
    leaves = [x, *new_values, *arrays, *[transfer.scalar_operand(0)] * len(sizes)]
    leaves += [transfer.scalar_operand(i) for i in starts]
    key = (config.state(), ind, cache.key(options), name, *[a._sig for a in leaves])
    run = programs.once(key, compile_function, _flat_function(ind, options, name), leaves, name or "getitem")
    return _CachedIndex(run, tuple(sizes), tuple(leaves[len(leaves) - len(starts) :]))


def _keeps_type(x: Array, values: Array) -> bool:
    return dtypes.promote(dtypes.typed(x), dtypes.typed(values))[0] == x.dtype


def _as_operands(index: Index, options: Options, first: int, ints: int) -> tuple[Index, list, list] | None:
    """The index with its `ints` ints and then the starts of its slices replaced by operands, numbered from
    `first`; the sizes of the ints' axes, and the starts. None for an int out of bounds.
    """
    on_axes = index.on_axes()
    if not all(type(e) is not int or _is_in_bounds(e, index.shape[a], options) for a, e in on_axes):
        return None
    slides = all(map(_can_slide, [e for _, e in on_axes]))
    sizes: list[int] = []
    starts: list[int] = []

    def entry(e, n):
        if type(e) is int:
            sizes.append(n)
            return Slot(first + len(sizes) - 1, (), True)
        if slides and type(e) is Span and e.step == 1 and 0 < e.size < n <= _LARGEST_INT32:
            starts.append(e.start)
            return Window(first + ints + len(starts) - 1, e.size)
        return e

    operand_entries = iter([entry(e, index.shape[a]) for a, e in on_axes])
    entries = tuple(e if e is None or e is Ellipsis else next(operand_entries) for e in index.entries)
    return index._replace(entries=entries), sizes, starts


def _is_in_bounds(i: int, n: int, options: Options) -> bool:
    return (-n if options.wrap_negative_indices else 0) <= i < n <= _LARGEST_INT32


def _can_slide(entry: Any) -> bool:
    """Returns whether an entry of an index takes a contiguous part of its axis, so that a dynamic slice can read it."""
    return entry.step in (1, -1) if type(entry) is Span else type(entry) is int or not entry.shape


def _flat_function(index: Index, options: Options, name: str | None) -> Callable:
    if name is None:
        return lambda x, *operands: [read(x, operands, index, options)]
    return lambda x, values, *operands: [scatter(x, operands, values, index, options, _UPDATES[name])]


# ---- x.at --------------------------------------------------------------------------------------------


class _IndexUpdateHelper:
    """`x.at`: indexed, it gives the functional updates of `x`."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> "_IndexUpdateRef":
        return _IndexUpdateRef(self.array, index)

    def __getattr__(self, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}. Index first: `x.at[index].{name}(...)`."
        try:
            raise AttributeError(text, name=name, obj=self)
        except AttributeError as error:
            error.__traceback__ = None  # the error is shown at the user's line
            raise

    def __repr__(self):
        return f"_IndexUpdateHelper({self.array!r})"


_STATIC_ITEMS = (int, np.integer, np.bool_, slice, type(None), type(Ellipsis))


def _arrays_of(index: Any) -> tuple[Callable, list]:
    """An index as a function of its arrays, and its arrays."""
    items = list(index) if isinstance(index, tuple) else [index]
    arrays = Mask([not isinstance(item, _STATIC_ITEMS) for item in items])
    static, dynamic = arrays.partition(items)
    whole = lambda values: tuple(arrays.merge(static, values))  # noqa: E731
    return whole, dynamic


def _updating(name: str, doc: str) -> Callable:
    def method(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        options = Options(mode, None, indices_are_sorted, unique_indices, wrap_negative_indices)
        if out_sharding is None:
            return update(self.array, self.index, values, name, options)
        dtype = typeof(self.array).dtype
        if type(values) in (bool, int) and not dtypes.is_extended(dtype) and np.issubdtype(dtype, np.integer):
            values = convert(values, dtype)
        static, arrays = _arrays_of(self.index)
        compute = lambda x, values, *arrays: update(x, static(arrays), values, name, options)  # noqa: E731
        return sharding.with_auto_axes(f".{name}", compute, (self.array, values, *arrays), out_sharding)

    method.__name__, method.__doc__ = name, doc
    return method


class _IndexUpdateRef:
    """`x.at[index]`: its methods return a changed copy of `x`."""

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array, self.index = array, index

    def __repr__(self):
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """`x[index]`, with options, such as a mode for indices out of bounds."""
        options = Options(mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices)
        if out_sharding is None:
            return getitem(self.array, self.index, options)
        static, arrays = _arrays_of(self.index)
        if all(is_value(x) and not typeof(x).shape for x in arrays):  # slices keep the sharding of the type
            return getitem(self.array, self.index, options)
        compute = lambda x, *arrays: getitem(x, static(arrays), options)  # noqa: E731
        return sharding.with_auto_axes(".get", compute, (self.array, *arrays), out_sharding)

    set = _updating("set", "A copy of `x` with `x[index]` set to `values`.")
    add = _updating("add", "A copy of `x` with `values` added at `index`, repeatedly where indices repeat.")
    subtract = _updating("subtract", "A copy of `x` with `values` subtracted at `index`.")
    multiply = mul = _updating("multiply", "A copy of `x` with `x[index]` multiplied by `values`.")
    min = _updating("min", "A copy of `x` with the smaller of `x[index]` and `values` at `index`.")
    max = _updating("max", "A copy of `x` with the greater of `x[index]` and `values` at `index`.")

    def divide(self, values: Any, **options: Any) -> Any:
        """A copy of `x` with `x[index]` divided by `values`."""
        return self._as_factors("divide", values, **options)

    def power(self, values: Any, **options: Any) -> Any:
        """A copy of `x` with `x[index]` raised to the power of `values`."""
        return self._as_factors("power", values, **options)

    def _as_factors(self, name: str, values: Any, out_sharding: Any = None, **options: Any) -> Any:
        ones = structural.full_like(self.array, 1)
        factors = _IndexUpdateRef(ones, self.index).multiply(values, out_sharding=out_sharding, **options)
        return getattr(ufuncs, name)(self.array, factors)

    def apply(
        self,
        func: Callable,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy of `x` with the function of a scalar `func` applied at `index`, repeatedly where indices
        repeat.
        """

        def apply(x, vectors, values, numbers, **flags):
            return gather_scatter.scatter_apply(x, vectors, func, numbers, update_shape=typeof(values).shape, **flags)

        ind, operands = parse(self.index, typeof(self.array).shape)
        options = Options(mode, None, indices_are_sorted, unique_indices, wrap_negative_indices)
        return scatter(self.array, operands, None, ind, options, apply)


for _method in (_IndexUpdateRef.divide, _IndexUpdateRef.power):
    _method.__wrapped__ = _IndexUpdateRef.set  # whose signature they show
at = property(_IndexUpdateHelper)


# ---- iteration ---------------------------------------------------------------------------------------

_CHUNK = 100


def iterate(x: Any) -> Any:
    """The items of `x` along its first axis. Raises TypeError for an array of rank 0."""
    aval = typeof(x)
    if not aval.shape:
        raise TypeError("iteration over a 0-d array. `jnp.atleast_1d` gives it an axis.")
    if type(x) is PRNGKeyArray and state.is_eager():
        # As in jax, this does not consume the keys.
        return (key_array(x._impl, words) for words in iterate(x._base_array))
    if type(x) is ArrayImpl and state.is_eager():
        if x._sig.device is None and not x.is_fully_replicated:
            return map(transfer.to_device, x._value)
        return _items_of(x, aval.shape[0])
    return (structural.index_in_dim(x, i, keepdims=False) for i in range(int(aval.shape[0])))


def _items_of(x: Array, count: int) -> Any:
    for start in range(0, count, _CHUNK):
        part = x if count <= _CHUNK else getitem(x, slice(start, min(start + _CHUNK, count)))
        yield from _unstacked(part)


_unstacked = jitted("_unstack")(structural.unstack)
