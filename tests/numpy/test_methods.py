"""Operators, methods and properties of arrays and tracers."""

import copy
import operator
from typing import NamedTuple

import numpy as np
import pytest
from compare import EITHER, LISTED, Case, check_eager, same, same_error, sweep

import minijax
import minijax.numpy as mnp

pytestmark = pytest.mark.oracle


def array(*shape, dtype="float32", start=1):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) + start).astype(dtype)


X, I, B = array(2, 3), array(2, 3, dtype="int32"), array(2, 3, dtype="bool", start=0)  # noqa: E741

ARITHMETIC = "add sub mul truediv floordiv mod pow".split()
BITS = "and_ or_ xor lshift rshift".split()
COMPARISON = "eq ne lt le gt ge".split()
OTHERS = {"scalar": 2, "float": 2.5, "numpy-scalar": np.float32(3), "numpy-int": np.int32(2), "array": array(3)}


def operated(name, other):
    return lambda jnp: lambda x: getattr(operator, name)(x, other)


def reflected(name, other):
    return lambda jnp: lambda x: getattr(operator, name)(other, x)


@pytest.mark.parametrize("kind", OTHERS)
def test_operators_agree_with_either_operand_first(kind, tier):
    names = ARITHMETIC + COMPARISON
    cases = [Case(f"{n}-{kind}", operated(n, OTHERS[kind]), (X,)) for n in names]
    sweep(cases + [Case(f"{n}-{kind}-reflected", reflected(n, OTHERS[kind]), (X,)) for n in names], tier)


def test_operators_on_bits_agree(tier):
    cases = [Case(n, operated(n, 3), (I,)) for n in BITS] + [Case(f"{n}-r", reflected(n, 3), (I,)) for n in BITS]
    cases += [Case(f"{n}-bool", operated(n, True), (B,)) for n in BITS[:3]]
    sweep(cases, tier)


METHODS = [
    Case("neg", lambda jnp: lambda x: -x, (X,)),
    Case("pos", lambda jnp: lambda x: +x, (X,)),
    Case("abs", lambda jnp: abs, (X,)),
    Case("invert", lambda jnp: lambda x: ~x, (B,)),
    Case("matmul", lambda jnp: lambda x: x @ x.T, (X,)),
    Case("rmatmul", lambda jnp: lambda x: array(4, 2) @ x, (X,)),
    Case("divmod", lambda jnp: lambda x: divmod(x, 2), (X,)),
    Case("rdivmod", lambda jnp: lambda x: divmod(7, x), (I,)),
    Case("round", lambda jnp: lambda x: round(x), (X,)),
    Case("round-digits", lambda jnp: lambda x: round(x, 1), (X,)),
    Case("iter", lambda jnp: lambda x: list(x), (X,)),
    Case("reversed", lambda jnp: lambda x: list(reversed(x)), (array(3),)),
    Case("len", lambda jnp: lambda x: x * len(x), (X,)),
    Case("T", lambda jnp: lambda x: x.T, (array(2, 3, 4),)),
    Case("mT", lambda jnp: lambda x: x.mT, (array(2, 3, 4),)),
    Case("mT-vector", lambda jnp: lambda x: x.mT, (array(3),), raises=LISTED),
    Case("real", lambda jnp: lambda x: x.real, (array(2, dtype="complex64"),)),
    Case("imag", lambda jnp: lambda x: x.imag, (X,)),
    Case("conj", lambda jnp: lambda x: x.conj(), (array(2, dtype="complex64"),)),
    Case("copy", lambda jnp: lambda x: copy.copy(x), (X,)),
    Case("deepcopy", lambda jnp: lambda x: copy.deepcopy(x), (X,)),
    Case("astype", lambda jnp: lambda x: x.astype(int), (X,)),
    Case("astype-named", lambda jnp: lambda x: (x.astype(dtype="int8"), x.astype(int, True)), (X,)),
    Case("astype-device", lambda jnp: lambda x: x.astype(bool, False, None), (X,)),
    Case("astype-bool", lambda jnp: lambda x: x.astype(bool), (X,)),
    Case("sum", lambda jnp: lambda x: x.sum(0), (X,)),
    Case("mean", lambda jnp: lambda x: x.mean(axis=1, keepdims=True), (X,)),
    Case("std", lambda jnp: lambda x: x.std(ddof=1), (X,)),
    Case("argmax", lambda jnp: lambda x: x.argmax(1), (X,)),
    Case("ptp", lambda jnp: lambda x: x.ptp(), (X,)),
    Case("clip", lambda jnp: lambda x: x.clip(0, 1), (X,)),
    Case("clip-max", lambda jnp: lambda x: x.clip(max=2), (X,)),
    Case("round-method", lambda jnp: lambda x: x.round(2), (X,)),
    Case("dot", lambda jnp: lambda x: x.dot(x.T), (X,)),
    Case("view", lambda jnp: lambda x: x.view("int32"), (X,)),
    Case("view-wider", lambda jnp: lambda x: x.view("int32"), (array(2, 4, dtype="int8"),)),
    Case("view-narrower", lambda jnp: lambda x: x.view("uint8"), (I,)),
    Case("view-bad", lambda jnp: lambda x: x.view("int32"), (array(2, 3, dtype="int8"),), raises=LISTED),
    Case("byteswap", lambda jnp: lambda x: x.byteswap(), (X,)),
    Case("types", lambda jnp: lambda x: x * (x.ndim + x.size + x.itemsize + x.nbytes + x.shape[1]), (X,)),
]
SHAPED = [
    Case("reshape", lambda jnp: lambda x: x.reshape(3, -1), (X,)),
    Case("reshape-tuple", lambda jnp: lambda x: x.reshape((3, 2)), (X,)),
    Case("reshape-fortran", lambda jnp: lambda x: x.reshape((3, -1), order="F"), (X,)),
    Case("ravel", lambda jnp: lambda x: x.ravel(), (X,)),
    Case("flatten", lambda jnp: lambda x: x.flatten(), (X,)),
    Case("transpose", lambda jnp: lambda x: x.transpose(1, 0), (X,)),
    Case("transpose-tuple", lambda jnp: lambda x: x.transpose((1, 0)), (X,)),
    Case("transpose-all", lambda jnp: lambda x: x.transpose(), (X,)),
    Case("squeeze", lambda jnp: lambda x: x[None].squeeze(0), (X,)),
    Case("swapaxes", lambda jnp: lambda x: x.swapaxes(0, 1), (X,)),
    Case("getitem", lambda jnp: lambda x: x[0, 1:], (X,)),
    Case("at", lambda jnp: lambda x: x.at[0].set(1.0), (X,)),
]


def test_methods_and_properties_agree(tier):
    sweep(METHODS, tier)


def test_methods_of_shape_agree(tier):
    sweep(SHAPED, tier)


def test_methods_run_eagerly():
    for case in METHODS[::4]:
        check_eager(case)
    check_eager(Case("numpy-first", lambda jnp: lambda x: np.float32(2) * x, (X,)))
    check_eager(Case("weak", lambda jnp: lambda x: x + 1, (3.0,)))
    check_eager(Case("contains", lambda jnp: lambda x: 2.0 in x, (array(3),)))


UNDER_JIT = {
    "bool": lambda x: bool(x[0, 0]),
    "bool-of-many": lambda x: bool(x),
    "int": lambda x: int(x[0, 0]),
    "int-of-many": lambda x: int(x),
    "float": lambda x: float(x[0, 0]),
    "complex": lambda x: complex(x[0, 0]),
    "index": lambda x: operator.index(x.astype(int)[0, 0]),
    "index-of-float": lambda x: operator.index(x[0, 0]),
    "range": lambda x: range(x.astype(int)[0, 0]),
    "array": lambda x: np.asarray(x),
    "numpy-function": lambda x: np.add(1.0, x),
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "iter-of-scalar": lambda x: list(x[0, 0]),
    "len-of-scalar": lambda x: len(x[0, 0]),
    "hash": lambda x: hash(x),
    "format": lambda x: f"{x:.3f}",
    "setitem": lambda x: operator.setitem(x, 0, 1),
    "contains-matrix": lambda x: 1.0 in x,
    "sharding": lambda x: x.sharding,
    "device": lambda x: x.device,
    "devices": lambda x: x.devices(),
    "committed": lambda x: x.committed,
    "block": lambda x: x.block_until_ready(),
    "delete": lambda x: x.delete(),
    "unknown": lambda x: x.foo,
    "flat": lambda x: x.flat,
    "add-none": lambda x: x + None,
    "add-list": lambda x: x + [1, 2],
    "list-add": lambda x: [1, 2] + x,
    "tuple-times": lambda x: (1, 2) * x,
    "eq-list": lambda x: x == [1, 2],
    "lt-str": lambda x: x < "a",
    "str-add": lambda x: "a" + x,
    "pow-three": lambda x: pow(x, 2, 3),
    "dlpack": lambda x: x.__dlpack__(),
}


@pytest.mark.parametrize("name", UNDER_JIT)
def test_operations_that_need_a_value_raise_the_error_of_jax_under_jit(name):
    jax = pytest.importorskip("jax")
    same_error(lambda: minijax.make_jaxpr(UNDER_JIT[name])(X), lambda: jax.make_jaxpr(UNDER_JIT[name])(X))


OUTSIDE_JIT = {
    "bool": lambda x: x * x if x > 2 else x + x,
    "int": lambda x: x * int(x),
    "item": lambda x: x * x.item(),
    "index": lambda x: x * [1.0, 2.0, 3.0, 4.0][x.astype(int)],
    "float": lambda x: x * float(x),
    "tolist": lambda x: x * x.tolist(),
    "array": lambda x: x * np.asarray(x),
    "round": lambda x: x * round(x, 1),
}


@pytest.mark.parametrize("name", OUTSIDE_JIT)
@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap"])
def test_values_are_concrete_outside_jit_where_those_of_jax_are(name, transform):
    def program(jax):
        f = OUTSIDE_JIT[name]
        if transform == "jvp":
            return lambda x: jax.jvp(f, (x,), (x,))
        return lambda x: getattr(jax, transform)(f)(x)

    argument = np.array([1.0, 3.0], np.float32) if transform == "vmap" else np.float32(3.0)
    check_eager(Case(f"{name}-{transform}", program, (argument,), raises=LISTED))


def test_comparison_with_other_objects_is_false():
    x = mnp.ones(3)
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'ArrayImpl' and 'list'"):
        x + [1]


def test_tracers_are_arrays_and_so_are_their_parents():
    seen = []
    minijax.jit(lambda x: (seen.append(isinstance(x, minijax.Array)), x)[1])(1.0)
    assert seen == [True] and isinstance(mnp.ones(2), minijax.Array)
    assert mnp.ones(2).__array_namespace__() is mnp
    with pytest.raises(ValueError, match="available versions"):
        mnp.ones(2).__array_namespace__(api_version="2021")


class Scaled(NamedTuple):
    """A named tuple that defines operators."""

    scale: float

    def __mul__(self, other):
        return Scaled(self.scale * other)

    def __rmul__(self, other):
        return Scaled(other * self.scale)

    def __rsub__(self, other):
        return "a difference"

    def __eq__(self, other):
        return "a comparison"


class Plain(list):
    """A list that does not define operators."""


@pytest.mark.parametrize("name", ["mul", "add", "sub", "eq", "ne", "lt", "matmul", "pow"])
@pytest.mark.parametrize("other", [Scaled(2.0), Plain([1.0]), [1.0], (1.0,)], ids=lambda x: type(x).__name__)
def test_operators_leave_it_to_classes_of_others(name, other):
    op = getattr(operator, name)
    for swapped in (False, True):

        def program(jnp, swapped=swapped):
            x = jnp.ones(3)
            return op(other, x) if swapped else op(x, other)

        same(lambda jnp, program=program: str(program(jnp)), raises=EITHER)


class Held:
    """An object with `__jax_array__`."""

    def __init__(self, jnp, x):
        self._jnp, self._x = jnp, x

    def __jax_array__(self):
        return self._jnp.asarray(self._x)


def test_objects_with_jax_array_are_accepted_as_arguments():
    x = np.arange(6.0, dtype=np.float32)
    same(lambda jnp: jnp.roll(Held(jnp, x), Held(jnp, np.array([1]))))
    same(lambda jnp: jnp.roll(x.reshape(2, 3), (Held(jnp, 1), Held(jnp, 2)), (0, 1)))
    same(lambda jnp: jnp.delete(Held(jnp, x), Held(jnp, np.array(-3))))
    same(lambda jnp: jnp.delete(Held(jnp, x), Held(jnp, np.array([1, -3]))))
    same(lambda jnp: jnp.iscomplexobj(Held(jnp, np.array([1j], np.complex64))))


@pytest.mark.parametrize("name", ["nargs", "nin", "nout", "identity", "_func"])
def test_properties_of_ufuncs_are_for_reading(name):
    for ufunc in (mnp.add, mnp.frompyfunc(lambda x, y: x, 2, 1)):
        getattr(ufunc, name)
        with pytest.raises(AttributeError):
            setattr(ufunc, name, None)
