"""The caches: bounded, locked on a miss, registered so that `clear_caches` empties them all."""

import functools
import operator
import struct
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any

import numpy as np

from minijax.base import config

_registry: "weakref.WeakSet[Any]" = weakref.WeakSet()
_beginning = threading.RLock()
_extra_clearers: list[Callable[[], None]] = []


class BoundedDict:
    """A registered mapping for hand-written caches; drops its least recently stored half when full."""

    # `get` is the method of the dict itself, for speed. Most caches of the library never get an item in a process: the
    # first one to be stored makes `_pending`.
    __slots__ = ("_items", "_maxsize", "get", "_pending", "__weakref__")

    def __init__(self, maxsize: int = 4096):
        self._items: dict = {}
        self._maxsize = maxsize
        self.get = self._items.get
        self._pending: _Pending | None = None

    def _begin(self) -> "_Pending":
        """The locks of this cache, which is registered."""
        pending = self._pending
        if pending is None:
            with _beginning:
                pending = self._pending
                if pending is None:
                    _registry.add(self)
                    pending = self._pending = _Pending()
        return pending

    def __setitem__(self, name: Hashable, value: Any) -> None:
        with self._begin().lock:
            if len(self._items) >= self._maxsize:
                _drop_older_half(self._items)
            self._items[name] = value

    def once(self, name: Any, compute: Callable[..., Any], *args: Any) -> Any:
        """Returns the value of that name, or stores `compute(*args)`; if several threads miss at once, one computes."""

        def compute_and_store():
            self[name] = value = compute(*args)
            return value

        return self._begin().once(name, lambda: self._items.get(name, _MISS), compute_and_store, self._options_of(name))

    @staticmethod
    def _options_of(name: Any) -> Any:
        """Returns the option state under which that name's value is computed; None means the thread's own."""
        return None

    def __contains__(self, name: Hashable) -> bool:
        return name in self._items

    def __len__(self) -> int:
        return len(self._items)

    def pop(self, name: Hashable, default: Any = None) -> Any:
        with self._begin().lock:
            return self._items.pop(name, default)

    def names(self) -> list[Hashable]:
        """The names that have a value, the oldest first."""
        with self._begin().lock:
            return list(self._items)

    def cache_clear(self) -> None:
        with self._begin().lock:
            self._items.clear()


class Keyed(BoundedDict):
    """A cache whose keys begin with an option state; missing values are computed under that state."""

    __slots__ = ()
    _options_of = staticmethod(operator.itemgetter(0))


_MISS = object()


def _drop_older_half(items: MutableMapping) -> None:
    for name in list(items)[: (len(items) + 1) // 2]:
        del items[name]


def cache(function: Callable | None = None, *, maxsize: int = 4096) -> Any:
    """Decorator: remembers results by positional and keyword arguments, compared by `==`.

    Two threads that miss together compute once; a call that raises stores nothing.
    """
    if function is None:
        return functools.partial(cache, maxsize=maxsize)
    items = BoundedDict(maxsize)
    lookup = items._items.get

    def cached(*args, **kwargs):
        name = (args, tuple(sorted(kwargs.items()))) if kwargs else args
        value = lookup(name, _MISS)
        return value if value is not _MISS else items.once(name, lambda: function(*args, **kwargs))

    return _finish(cached, function, items)


def weak_cache(
    function: Callable | None = None, *, maxsize: int = 4096, under: Callable[[], tuple] | None = None
) -> Any:
    """Decorator: as `cache`, with the first argument held weakly; its results die with it.

    The first argument is compared by `==`; it is held strongly if it does not support weak references. `under()`
    returns what else results depend on; its first item is the option state under which they are computed.
    """
    if function is None:
        return functools.partial(weak_cache, maxsize=maxsize, under=under)
    by_owner = _WeakOwners(maxsize)
    pending = _Pending()

    def cached(owner, *args, **kwargs):
        name = (args, tuple(sorted(kwargs.items()))) if kwargs else args
        dependencies = None
        if under is not None:
            dependencies = under()
            name = (dependencies, name)
        results = by_owner.of(owner)
        result = results.get(name, _MISS)
        if result is not _MISS:
            return result if type(result) is not _WithoutOwner else result.with_owner(owner)
        return missed(owner, args, kwargs, name, results, dependencies and dependencies[0])

    # A function of its own: variables of closures would slow down the lookup.
    def missed(owner, args, kwargs, name, results, options):
        def find():
            result = results.get(name, _MISS)
            return result if type(result) is not _WithoutOwner else result.with_owner(owner)

        def compute():
            result = function(owner, *args, **kwargs)
            by_owner.store(results, name, _remove_owner(owner, result))
            return result

        return pending.once((owner, name), find, compute, options)

    return _finish(cached, function, by_owner)


class _WithoutOwner:
    """A result that contains the owner, stored with a gap in the owner's place: the full result would keep it alive."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Callable[..., Any], parts: list):
        self.kind, self.parts = kind, parts

    def with_owner(self, owner: Any) -> Any:
        return self.kind(owner if part is _MISS else part for part in self.parts)


def _remove_owner(owner, result):
    if result is owner:
        return _WithoutOwner(next, [_MISS])
    if isinstance(result, tuple) and any(part is owner for part in result):
        kind = getattr(type(result), "_make", type(result))
        return _WithoutOwner(kind, [_MISS if part is owner else part for part in result])
    return result


class WeakValues:
    """A registered mapping of weakly held values; the last `keep` values that were used are held strongly."""

    def __init__(self, keep: int):
        self._items: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self._last: OrderedDict = OrderedDict()
        self._keep = keep
        self._pending = _Pending()
        self._lock = self._pending.lock
        _registry.add(self)

    def once(self, name: Hashable, compute: Callable[[], Any]) -> Any:
        """Returns the value of that name, or stores `compute()`; if several threads miss together, one computes."""
        value = self._pending.once(name, lambda: self._items.get(name, _MISS), compute)
        with self._lock:
            self._items[name] = self._last[name] = value
            self._last.move_to_end(name)
            if len(self._last) > self._keep:
                self._last.popitem(last=False)
        return value

    def __contains__(self, name: Hashable) -> bool:
        return name in self._items

    def __len__(self) -> int:
        return len(self._items)

    def cache_clear(self) -> None:
        with self._lock:
            self._items.clear()
            self._last.clear()


def _finish(cached, function, store):
    functools.update_wrapper(cached, function)
    cached.cache_clear = store.cache_clear
    cached.cache_size = store.__len__
    cached.store = store
    return cached


class _Running:
    """A computation that a thread is running; its lock is held until the computation ends."""

    __slots__ = ("thread", "lock", "depth")

    def __init__(self):
        self.thread = threading.get_ident()
        self.lock = threading.Lock()
        self.depth = 0


_waiting: dict[int, _Running] = {}  # by thread: what it waits for
_waiting_lock = threading.Lock()


def _wait_until_done(other: _Running) -> bool:
    """Waits until `other` ends; returns False immediately if `other` is run by, or waits for, this thread."""
    me = threading.get_ident()
    try:
        with _waiting_lock:
            at: _Running | None = other
            while at is not None:
                if at.thread == me:
                    return False
                at = _waiting.get(at.thread)
            _waiting[me] = other
        with other.lock:
            return True
    finally:
        _waiting.pop(me, None)


_MAX_DEPTH = 200


class _Pending:
    """The keys that are being computed: one thread computes, others wait, and waiting never forms a cycle."""

    # An interrupt may come anywhere, hence locks are held only by `with`. An entry whose lock is free is stale;
    # the next computation removes it.
    __slots__ = ("_running", "lock")

    def __init__(self):
        self._running: dict[Hashable, _Running] = {}
        self.lock = threading.RLock()  # for those who store

    def once(self, name: Hashable, find: Callable[[], Any], compute: Callable[[], Any], options: Any = None) -> Any:
        """Returns `find()`; if that is `_MISS`, the result of `compute`, which stores it and runs under `options`."""
        if options is not None:
            compute = functools.partial(config.run_as_of, options, compute)
        mine = _Running()
        with mine.lock:
            while True:
                value = find()
                if value is not _MISS:
                    return value
                other = self._running.setdefault(name, mine)
                if other is mine:
                    break
                if not _wait_until_done(other):
                    return self._compute_nested(other, compute)
                if self._running.get(name) is other:
                    self._running.pop(name, None)
            try:
                self._drop_stale()
                value = find()
                return compute() if value is _MISS else value
            finally:
                self._running.pop(name, None)

    def _drop_stale(self):
        # From the oldest on, up to one that runs: looking at all would make nested computations quadratic.
        try:
            while True:
                name, mark = next(iter(self._running.items()))
                if mark.lock.locked():
                    return
                if self._running.get(name) is mark:
                    self._running.pop(name, None)
        except RuntimeError:  # another thread changed the dict between `iter` and `next`
            return

    def _compute_nested(self, other, compute):
        """Calls `compute` although `other` computes the same key: its thread is this one, or waits for this one."""
        other.depth += 1
        try:
            if other.depth > _MAX_DEPTH:
                raise RecursionError("maximum recursion depth exceeded: a function calls itself with equal arguments")
            return compute()
        finally:
            other.depth -= 1


class _WeakOwners:
    """For each live owner, a dict of results; `len` counts results."""

    __slots__ = ("_owners", "_strong", "_maxsize", "_lock", "__weakref__")

    def __init__(self, maxsize: int):
        self._owners: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._strong = BoundedDict(maxsize)
        self._maxsize = maxsize
        self._lock = threading.RLock()
        _registry.add(self)

    def of(self, owner: Any) -> dict:
        """Returns the results stored for an owner, by name."""
        try:
            results = self._owners.data.get(weakref.ref(owner))  # as its method `get`, without a call
        except TypeError:  # the owner does not support weak references
            results = self._strong.get(owner)
            return results if results is not None else self._strong.once(owner, dict)
        if results is not None:
            return results
        with self._lock:
            # Results may hold their owner alive, so its death alone would not bound the cache.
            if len(self._owners) >= self._maxsize:
                _drop_older_half(self._owners)
            return self._owners.setdefault(owner, {})

    def store(self, results: dict, name: Hashable, value: Any) -> None:
        with self._lock:
            if len(results) >= self._maxsize:
                _drop_older_half(results)
            results[name] = value

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._owners.values())) + sum(map(len, self._strong._items.values()))

    def cache_clear(self) -> None:
        with self._lock:
            self._owners.clear()
            self._strong.cache_clear()


def register(store: Any) -> None:
    """Makes `clear_caches` call `store.cache_clear()`, as long as the store lives; its length counts values."""
    _registry.add(store)


def on_clear(clear: Callable[[], None]) -> Callable[[], None]:
    """Registers a function that `clear_caches` calls, for stores that are not defined in this file."""
    _extra_clearers.append(clear)
    return clear


def clear_caches() -> None:
    """Empties every cache, as `jax.clear_caches`.

    Example:
        >>> f = jax.jit(lambda x: 2 * x)
        >>> f(1), f._cache_size()
        (Array(2, dtype=int32, weak_type=True), 1)
        >>> jax.clear_caches()
        >>> f._cache_size()
        0
    """
    for store in _stores():
        store.cache_clear()
    for clear in _extra_clearers:
        clear()


def _stores() -> list:
    while True:
        try:
            return list(_registry)
        except RuntimeError:  # another thread has made a cache meanwhile
            pass


# ---- keys -------------------------------------------------------------------------------------------

_PLAIN = frozenset({str, bytes, int, type(None), type, type(Ellipsis)})
_pack_double = struct.Struct("<d").pack


def key(value: Any) -> Hashable:
    """Returns a hashable key for `value` that distinguishes 1, 1.0 and True, and 0.0 and -0.0.

    Recurses into tuples, lists, dicts, sets and slices; NaNs with the same bits have equal keys.
    """
    cls = type(value)
    if cls in _PLAIN:
        return value
    make = _key_makers.get(cls)
    if make is not None:
        return make(value)
    if isinstance(value, tuple):
        return (cls, *map(key, value))
    if isinstance(value, np.generic):
        return cls, value.dtype, value.tobytes()
    if isinstance(value, float):
        return cls, _pack_double(value), value
    if isinstance(value, complex):
        return cls, _key_of_complex(value), value
    # The key includes the class, since values of different classes may be equal: Fraction(1) == 1.
    return cls, value


def _key_of_complex(value):
    return complex, _pack_double(value.real), _pack_double(value.imag)


def _key_of_tuple(value):
    for item in value:
        if type(item) not in _PLAIN:
            return (tuple, *map(key, value))
    return (tuple, *value)


_key_makers: dict[type, Callable[[Any], Hashable]] = {
    bool: lambda value: (bool, value),
    float: lambda value: (float, _pack_double(value)),
    complex: _key_of_complex,
    tuple: _key_of_tuple,
    list: lambda value: (list, *map(key, value)),
    dict: lambda value: (dict, tuple([(key(name), key(item)) for name, item in value.items()])),
    slice: lambda value: (slice, key(value.start), key(value.stop), key(value.step)),
    set: lambda value: (set, frozenset(map(key, value))),
    frozenset: lambda value: (frozenset, frozenset(map(key, value))),
}
