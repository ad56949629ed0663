"""Caches: what they remember, forget, hold alive and keep apart."""

import gc
import sys
import threading
import time
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from minijax.base import cache


def counted(decorate):
    calls = []

    @decorate
    def function(*args, **kwargs):
        calls.append((args, kwargs))
        return object()

    return function, calls


def test_results_are_remembered_by_all_arguments():
    function, calls = counted(cache.cache)
    assert function(1, x=2) is function(1, x=2)
    assert function(1, x=2, y=3) is function(1, y=3, x=2)
    assert function(1, x=2) is not function(1, x=3)
    assert len(calls) == 3 and function.cache_size() == 3


def test_clear_caches_empties_all():
    function, calls = counted(cache.cache(maxsize=10))
    weak, weak_calls = counted(cache.weak_cache)
    cleared = []
    cache.on_clear(lambda: cleared.append(1))
    function(1), weak("a")
    cache.clear_caches()
    function(1), weak("a")
    assert len(calls) == 2 and len(weak_calls) == 2 and cleared == [1]


def test_caches_are_emptied_while_threads_make_others():
    ended, interval = threading.Event(), sys.getswitchinterval()

    def make():
        while not ended.is_set():
            cache.BoundedDict(4)

    threads = [threading.Thread(target=make) for _ in range(3)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        ends = time.monotonic() + 0.3
        while time.monotonic() < ends:
            cache.clear_caches()
    finally:
        ended.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()


def test_caches_are_bounded_and_keep_the_youngest():
    function, calls = counted(cache.cache(maxsize=8))
    for i in range(100):
        function(i)
    assert function.cache_size() <= 8
    function(99)
    assert len(calls) == 100


def test_errors_are_not_remembered():
    calls = []

    @cache.cache
    def fails(x):
        calls.append(x)
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            fails(1)
    assert calls == [1, 1]
    with pytest.raises(TypeError, match="unhashable"):
        fails([])


@pytest.mark.parametrize("decorate", [cache.cache, cache.weak_cache])
def test_threads_that_miss_together_compute_once(decorate):
    calls, barrier = [], threading.Barrier(4)

    @decorate
    def slow(x):
        calls.append(x)
        time.sleep(0.05)
        return x

    def work():
        barrier.wait()
        slow("key")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == ["key"]


def test_a_cache_miss_may_use_the_same_cache():
    @cache.cache
    def factorial(n):
        return n * factorial(n - 1) if n else 1

    assert factorial(20) == 2432902008176640000


class Owner:
    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


def test_weak_owners_are_compared_by_equality_and_not_kept_alive():
    function, calls = counted(cache.weak_cache)
    owner = Owner("a")
    assert function(owner, 1) is function(Owner("a"), 1) is not function(owner, 2)
    assert function.cache_size() == 2
    del owner
    calls.clear()
    gc.collect()
    assert function.cache_size() == 0


def test_results_that_hold_their_owner_do_not_keep_it():
    function = cache.weak_cache(lambda owner, make: make(owner))
    makers = [lambda o: o, lambda o: (1, o, o), lambda o: Pair(o, 2)]
    owner = Owner("a")
    for make in makers:
        first = function(owner, make)
        assert first == make(owner) and type(first) is type(make(owner))
        again = function(owner, make)
        assert again == first and type(again) is type(first)
    assert function(owner, makers[0]) is owner is function(owner, makers[1])[2]
    del owner, first, again
    gc.collect()
    assert function.cache_size() == 0


def test_owners_without_weak_references_are_held():
    function, _ = counted(cache.weak_cache)
    assert function((1, 2)) is function((1, 2))
    with pytest.raises(TypeError, match="unhashable"):
        function([])


def test_weak_caches_are_bounded_in_owners_and_results():
    function, _ = counted(cache.weak_cache(maxsize=4))
    owners = [Owner(i) for i in range(50)]
    for owner in owners:
        function(owner, 0)
    for i in range(50):
        function(owners[0], i)
    assert function.cache_size() <= 8


class Pair(NamedTuple):
    a: object
    b: object


class Half(float):
    pass


NAN = float("nan")
APART = [
    1, 1.0, True, 1 + 0j, 0, 0.0, -0.0, False, 0j, complex(0.0, -0.0), complex(-0.0, 0.0), None, "1", b"1",
    (1,), (1.0,), (True,), [1], ((1,),), ((1.0,),), (1, (2, (3.0,))), (1, (2, (3,))), Pair(1, 2), (1, 2),
    Pair(1.0, 2), {"a": 1}, {"a": 1.0}, {"b": 1}, {1}, {1.0}, frozenset({1}), slice(0, 1), slice(0.0, 1),
    slice(None), NAN, float("inf"), Half(0.5), 0.5, int, float, (), [], {}, ...,
    np.float32(1), np.int32(1), np.float64(0.0), np.float64(-0.0), Fraction(1), np.bool_(True),
]  # fmt: skip


def test_keys_keep_values_apart():
    keys = [cache.key(value) for value in APART]
    assert len(set(keys)) == len(keys)


def test_keys_of_equal_values_are_equal():
    again = [1, 1.0, True, 0.0, -0.0, (1, (2, (3.0,))), Pair(1.0, 2), {"a": 1.0}, [1], {1}, slice(0, 1)]
    for value in again:
        assert cache.key(value) in {cache.key(other) for other in APART}, value
    assert cache.key(float("nan")) == cache.key(NAN)
