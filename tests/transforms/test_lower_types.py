"""Lowering of hijax types, shown: a jaxpr over values of user-defined types before, and over their lo values after."""

from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import hijax
from minijax.extend.core import Effect
from minijax.transforms.lower_types import lower_hi_jaxpr


@dataclass(frozen=True)
class Pair:
    first: Any
    second: Any


@dataclass(frozen=True)
class PairType(hijax.HiType):
    first: Any
    second: Any

    def lo_ty(self):
        return [self.first, self.second]

    def lower_val(self, value):
        return [value.first, value.second]

    def raise_val(self, first, second):
        return Pair(first, second)

    def str_short(self, short_dtypes=False, **_):
        return f"Pair[{self.first.str_short(short_dtypes)},{self.second.str_short(short_dtypes)}]"


hijax.register_hitype(Pair, lambda pair: PairType(jax.typeof(pair.first), jax.typeof(pair.second)))


class Swap(hijax.HiPrimitive):
    def abstract_eval(self, pair):
        return PairType(pair.second, pair.first), set()

    def to_lojax(self, pair):
        return Pair(pair.second, pair.first)


class SumOfParts(hijax.HiPrimitive):
    def abstract_eval(self, pair):
        return pair.first, set()

    def to_lojax(self, pair):
        return pair.first + pair.second


swap_p, sum_p = Swap("swap"), SumOfParts("sum_of_parts")
PAIR = Pair(jnp.ones(2), jnp.arange(2.0))


def test_a_hi_value_becomes_its_lo_values_and_a_hi_primitive_its_lo_operations():
    closed = jax.make_jaxpr(lambda pair: (swap_p.bind(pair), sum_p.bind(pair)))(PAIR)
    assert str(closed) == cleandoc("""
        { lambda ; a:Pair[f32[2],f32[2]]. let
            b:Pair[f32[2],f32[2]] = swap a
            c:f32[2] = sum_of_parts a
          in (b, c) }
    """)
    lowered = lower_hi_jaxpr(closed)
    # A swap has no operations: the lo values change places.
    assert str(lowered.closed) == cleandoc("""
        { lambda ; a:f32[2] b:f32[2]. let c:f32[2] = add a b in (b, a, c) }
    """)
    assert list(lowered.hi_indices(lowered.out_types)) == [0, 0, 1]
    assert lowered.closed.debug_info.arg_names == ("pair", "pair")
    assert lowered.closed.debug_info.result_paths == ("result[0]", "result[0]", "result[1]")
    pair, total = lowered.raise_values([PAIR], [PAIR.second, PAIR.first, PAIR.first + PAIR.second])
    assert (pair.first.tolist(), pair.second.tolist(), total.tolist()) == ([0, 1], [1, 1], [1, 2])


def test_a_hi_carry_of_a_loop_becomes_a_carry_for_each_lo_value():
    closed = jax.make_jaxpr(lambda p: lax.scan(lambda p, _: (swap_p.bind(p), sum_p.bind(p)), p, None, length=3))(PAIR)
    assert str(closed) == cleandoc("""
        { lambda ; a:Pair[f32[2],f32[2]]. let
            b:Pair[f32[2],f32[2]] c:f32[3,2] = scan[
              jaxpr={ lambda ; d:Pair[f32[2],f32[2]]. let
                  e:Pair[f32[2],f32[2]] = swap d
                  f:f32[2] = sum_of_parts d
                in (e, f) }
              length=3
              num_carry=1
              num_consts=0
              reverse=False
              unroll=1
            ] a
          in (b, c) }
    """)
    assert str(lower_hi_jaxpr(closed).closed) == cleandoc("""
        { lambda ; a:f32[2] b:f32[2]. let
            c:f32[2] d:f32[2] e:f32[3,2] = scan[
              jaxpr={ lambda ; f:f32[2] g:f32[2]. let h:f32[2] = add f g in (g, f, h) }
              length=3
              num_carry=2
              num_consts=0
              reverse=False
              unroll=1
            ] a b
          in (c, d, e) }
    """)


# ---- mutable values -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """The type of the value that a counter holds (its quasi-dynamic data)."""

    type: Any

    def normalize(self):
        return self


class Counter:
    def __init__(self, value):
        self.value = value

    def cur_qdd(self):
        return State(jax.typeof(self.value))


class CounterType(hijax.MutableHiType):
    def __hash__(self):
        return hash(CounterType)

    def __eq__(self, other):
        return isinstance(other, CounterType)

    def str_short(self, short_dtypes=False, **_):
        return "Counter"

    def lo_ty_qdd(self, state):
        return [state.type]

    def new_from_loval(self, state, value):
        return Counter(value)

    def read_loval(self, state, counter):
        return [counter.value]

    def update_from_loval(self, state, counter, value):
        counter.value = value


class CounterEffect(Effect):
    pass


hijax.register_hitype(Counter, lambda counter: CounterType())
hijax.control_flow_allowed_effects.add_type(CounterEffect)


class Get(hijax.HiPrimitive):
    def abstract_eval(self, counter):
        return counter.mutable_qdd.cur_val.type, {CounterEffect()}

    def to_lojax(self, counter):
        return counter.value


class Set(hijax.HiPrimitive):
    multiple_results = True

    def abstract_eval(self, counter, x):
        counter.mutable_qdd.update(State(x))
        return [], {CounterEffect()}

    def to_lojax(self, counter, x):
        counter.value = x
        return []


get_p, set_p = Get("get_counter"), Set("set_counter")


def add(counter, x):
    set_p.bind(counter, get_p.bind(counter) + x)
    return get_p.bind(counter) * 2


def add_thrice(counter, x):
    def step(_, carry):
        set_p.bind(counter, get_p.bind(counter) + x)
        return carry

    lax.fori_loop(0, 3, step, None)


def counter_of_one():
    return Counter(jnp.float32(1))


def test_the_final_state_of_a_mutable_argument_is_a_leading_result():
    closed = jax.make_jaxpr(add)(counter_of_one(), jnp.float32(2))
    assert str(closed) == cleandoc("""
        { lambda ; a:Counter b:f32[]. let
            c:f32[] = get_counter a
            d:f32[] = add c b
            set_counter a d
            e:f32[] = get_counter a
            f:f32[] = mul e 2.0:f32[]
          in (f,) }
    """)
    lowered = lower_hi_jaxpr(closed)
    # (state, x) -> (final state, result)
    assert str(lowered.closed) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = add a b
            d:f32[] = mul c 2.0:f32[]
          in (c, d) }
    """)
    counter = counter_of_one()
    assert lowered.raise_values([counter, 2.0], [3.0, 6.0]) == [6.0]
    assert counter.value == 3.0


def test_a_jitted_function_changes_its_mutable_argument():
    counter = counter_of_one()
    assert jax.jit(add)(counter, 2.0) == 6 and counter.value == 3
    jax.jit(add_thrice)(counter, 2.0)
    assert counter.value == 9


def test_a_state_that_a_loop_changes_becomes_a_carry():
    closed = jax.make_jaxpr(add_thrice)(counter_of_one(), jnp.float32(2))
    assert str(closed) == cleandoc("""
        { lambda ; a:Counter b:f32[]. let
            _:i32[] = scan[
              jaxpr={ lambda ; c:Counter d:f32[] e:i32[]. let
                  f:i32[] = add e 1:i32[]
                  g:f32[] = get_counter c
                  h:f32[] = add g d
                  set_counter c h
                in (f,) }
              length=3
              num_carry=1
              num_consts=2
              reverse=False
              unroll=1
            ] a b 0:i32[]
          in () }
    """)
    assert str(lower_hi_jaxpr(closed).closed) == cleandoc("""
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] _:i32[] = scan[
              jaxpr={ lambda ; d:f32[] e:f32[] f:i32[]. let
                  g:i32[] = add f 1:i32[]
                  h:f32[] = add e d
                in (h, g) }
              length=3
              num_carry=2
              num_consts=1
              reverse=False
              unroll=1
            ] b a 0:i32[]
          in (c,) }
    """)


def test_a_mutable_value_cannot_be_returned():
    closed = jax.make_jaxpr(lambda counter: counter)(counter_of_one())
    with pytest.raises(TypeError, match="mutable values cannot be returned"):
        lower_hi_jaxpr(closed)


def test_a_loop_cannot_change_the_type_of_a_state():
    def step(_, counter):
        set_p.bind(counter, jnp.ones(2))

    counter = counter_of_one()
    with pytest.raises(TypeError, match="type-changing mutations not allowed in scan body"):
        lax.fori_loop(0, 3, lambda i, _: step(i, counter), None)
