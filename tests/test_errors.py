"""Misuse raises what jax raises: equal classes and bases, and the phrases that programs match on."""

import copy
import math
import pickle
import warnings

import compare
import numpy as np
import pytest

pytestmark = pytest.mark.oracle


class Thing:
    """Neither an array nor a tree."""


def same_raised(program, *phrases):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare.same_error(
            lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
        )


def table(cases):
    return pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in cases.items()])


# Operations that need the values of a traced array

BOOL = "Attempted boolean conversion of traced array with shape bool[]."
INDEX = "The __index__() method was called on traced array with shape int32[]"
NUMPY = "The numpy.ndarray conversion method __array__() was called on traced array with shape float32[3]"
ABSTRACT = "Abstract tracer value encountered where concrete value is expected: traced array with shape "
DEPENDS = "This concrete value was not available in Python because it depends on the value of the argument x."
SHAPE = "Shapes must be 1D sequences of concrete values of integer type, got "
STATIC = "try using `static_argnums` or applying `jit` to smaller subfunctions"
IMMUTABLE = "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use"


def _truth(x):
    assert x > 0


def _loop(x):
    while x > 0:
        x = x - 1


OF_A_FLOAT = {
    "if": (lambda x, jnp: 1 if x > 0 else 2, BOOL, DEPENDS, "for jit"),
    "while": (lambda x, jnp: _loop(x), BOOL, DEPENDS),
    "assert": (lambda x, jnp: _truth(x), BOOL),
    "and": (lambda x, jnp: (x > 0) and x, BOOL),
    "or": (lambda x, jnp: (x > 0) or x, BOOL),
    "not": (lambda x, jnp: not (x > 0), BOOL),
    "in a list": (lambda x, jnp: x in [1.0, 2.0], BOOL),
    "max": (lambda x, jnp: max(x, 2.0), BOOL),
    "bool": (lambda x, jnp: bool(x > 0), BOOL),
    "int": (lambda x, jnp: int(x), ABSTRACT + "float32[]", "The problem arose with the `int` function.", DEPENDS),
    "float": (lambda x, jnp: float(x), ABSTRACT, "The problem arose with the `float` function.", DEPENDS),
    "complex": (lambda x, jnp: complex(x), ABSTRACT, "The problem arose with the `complex` function."),
    "math": (lambda x, jnp: math.sin(x), ABSTRACT, "`float` function"),
    "%f": (lambda x, jnp: "%f" % x, ABSTRACT),  # noqa: UP031
    "item": (lambda x, jnp: x.item(), ABSTRACT, "item() method", DEPENDS),
    "pickle": (lambda x, jnp: pickle.dumps(x), ABSTRACT, DEPENDS),
    "a format": (lambda x, jnp: f"{x:.3f}", "unsupported format string passed to"),
    "len": (lambda x, jnp: len(x), "len() of unsized object"),
    "iter": (lambda x, jnp: list(x), "iteration over a 0-d array"),
    "hash": (lambda x, jnp: {x: 1}, "unhashable type"),
    "float as index": (lambda x, jnp: [1, 2][x], "Only integer scalar arrays can be converted to a scalar index."),
}
OF_AN_INT = {
    "range": (lambda x, jnp: range(x), INDEX, DEPENDS),
    "index": (lambda x, jnp: [1, 2][x], INDEX, DEPENDS),
    "hex": (lambda x, jnp: hex(x), INDEX),
    "numpy index": (lambda x, jnp: np.ones(3)[x], "The numpy.ndarray conversion method __array__() was called"),
    "zeros": (lambda x, jnp: jnp.zeros(x), SHAPE, STATIC, DEPENDS),
    "zeros of two": (lambda x, jnp: jnp.zeros((2, x)), SHAPE, STATIC, DEPENDS),
    "full": (lambda x, jnp: jnp.full((x,), 1), SHAPE, STATIC, DEPENDS),
    "eye": (lambda x, jnp: jnp.eye(x), SHAPE, STATIC, DEPENDS),
    "reshape": (lambda x, jnp: jnp.reshape(jnp.ones(6), (x, 3)), SHAPE, STATIC, DEPENDS),
    "reshape method": (lambda x, jnp: jnp.ones(6).reshape(x, 3), SHAPE, STATIC, DEPENDS),
    "broadcast_to": (lambda x, jnp: jnp.broadcast_to(1.0, (x, 3)), SHAPE, STATIC, DEPENDS),
    "arange": (lambda x, jnp: jnp.arange(x), ABSTRACT, "It arose in the jnp.arange argument 'stop'", DEPENDS),
    "linspace": (lambda x, jnp: jnp.linspace(0, 1, x), ABSTRACT, "'num'", DEPENDS),
    "repeat": (lambda x, jnp: jnp.repeat(jnp.ones(2), x), ABSTRACT, DEPENDS),
    "axis": (lambda x, jnp: jnp.sum(jnp.ones((2, 2)), axis=x), ABSTRACT, DEPENDS),
    "expand_dims": (lambda x, jnp: jnp.expand_dims(jnp.ones(2), x), ABSTRACT, DEPENDS),
    "split": (lambda x, jnp: jnp.split(jnp.ones(4), x), ABSTRACT, DEPENDS),
    "slice": (lambda x, jnp: jnp.ones(5)[:x], "Slice entries must be static integers. Got slice(None, "),
}
OF_A_VECTOR = {
    "asarray": (lambda x, jnp: np.asarray(x), NUMPY, DEPENDS),
    "__array__": (lambda x, jnp: x.__array__(), NUMPY, DEPENDS),
    "np.sin": (lambda x, jnp: np.sin(x), NUMPY),
    "np.add": (lambda x, jnp: np.add(np.ones(3), x), NUMPY),
    "tolist": (lambda x, jnp: x.tolist(), ABSTRACT + "float32[3]", "The tolist() method was called on", DEPENDS),
    "delete": (lambda x, jnp: x.delete(), "The delete() method was called on traced array"),
    "devices": (lambda x, jnp: x.devices(), "The devices() method was called on traced array"),
    "dlpack": (lambda x, jnp: x.__dlpack__(), "The __dlpack__() method was called on traced array"),
    "in": (lambda x, jnp: 3 in x, BOOL),
    "sorted": (lambda x, jnp: sorted(x), BOOL),
    "bool": (lambda x, jnp: bool(x), "The truth value of an array with more than one element is ambiguous."),
    "int": (lambda x, jnp: int(x), "Only scalar arrays can be converted to Python scalars; got arr.ndim=1"),
    "item assignment": (lambda x, jnp: x.__setitem__(0, 1.0), IMMUTABLE, ".at["),
    "mask": (lambda x, jnp: x[x > 0], "Array boolean indices must be concrete; got bool[3]"),
    "nonzero": (lambda x, jnp: jnp.nonzero(x), ABSTRACT, "The size argument of jnp.nonzero must be statically"),
    "where": (lambda x, jnp: jnp.where(x), ABSTRACT),
    "unique": (lambda x, jnp: jnp.unique(x), ABSTRACT),
    "buffer": (lambda x, jnp: memoryview(x), "a bytes-like object is required"),
}


def _under_jit(body, value):
    return lambda jax, jnp: jax.jit(lambda x: body(x, jnp))(value)


@table(OF_A_FLOAT)
def test_a_traced_scalar_has_no_value(case):
    same_raised(_under_jit(case[0], 1.0), *case[1:])


@table(OF_AN_INT)
def test_a_traced_integer_is_refused_as_a_size(case):
    same_raised(_under_jit(case[0], 1), *case[1:])


@table(OF_A_VECTOR)
def test_a_traced_vector_has_no_values(case):
    same_raised(_under_jit(case[0], np.arange(3, dtype=np.float32)), *case[1:])


def _positive(x):
    return x if x > 0 else -x


WHERE_TRACED = {
    "grad of jit": (lambda jax: jax.grad(jax.jit(_positive))(1.0), "the function _positive at ", "for jit"),
    "jit of grad": (lambda jax: jax.jit(jax.grad(_positive))(1.0), "the function _positive at ", "argument x"),
    "scan": (lambda jax: jax.lax.scan(lambda c, x: (_positive(c), x), 1.0, np.ones(2)), "for scan", "argument c"),
    "while": (lambda jax: jax.lax.while_loop(lambda c: c < 3, _positive, 1.0), "for while_", "argument x"),
    "cond": (lambda jax: jax.lax.cond(True, _positive, lambda x: x, 1.0), "for cond", "argument x"),
    "fori": (
        lambda jax: jax.lax.fori_loop(0, 3, lambda i, x: _positive(x), 1.0),
        "the function <lambda> at ",
        "test_errors.py",
    ),
    "fori with traced bounds": (
        lambda jax: jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda i, x: _positive(x), 1.0))(3),
        "the function <lambda> at ",
        "test_errors.py",
    ),
    "checkpoint": (lambda jax: jax.checkpoint(_positive)(1.0), "for checkpoint", "argument x"),
    "make_jaxpr": (lambda jax: jax.make_jaxpr(_positive)(1.0), "argument x"),
    "eval_shape": (lambda jax: jax.eval_shape(_positive, 1.0), "argument x"),
    "vmap": (lambda jax: jax.vmap(_positive)(np.ones(2)), "test_errors.py"),
    "a tree": (lambda jax: jax.jit(lambda d: _positive(d["a"][0]))({"a": [1.0]}), "the argument d['a'][0]"),
    "two arguments": (lambda jax: jax.jit(lambda d, *, k: _positive(d * k))(1.0, k=2.0), "arguments d and k"),
    "varargs": (lambda jax: jax.jit(lambda *a: _positive(a[1]))(1.0, 2.0), "the argument a[1]"),
}


@table(WHERE_TRACED)
def test_the_message_names_function_purpose_and_argument(case):
    same_raised(case[0], BOOL, *case[1:])


def test_map_names_the_function_that_it_was_given():
    import minijax as jax

    with pytest.raises(jax.errors.TracerBoolConversionError, match="the function _positive at .* for scan"):
        jax.lax.map(_positive, np.ones(2))


def test_our_message_names_the_line_and_the_operation_that_made_the_value():
    import minijax as jax

    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"test_errors.py:\d+ \(_positive\)") as found:
        jax.jit(_positive)(1.0)
    assert "gt" in str(found.value)
    assert str(copy.copy(found.value)) == str(pickle.loads(pickle.dumps(found.value))) == str(found.value)


def test_values_are_concrete_outside_jit_where_those_of_jax_are():
    for program in (
        lambda jax: jax.grad(_positive)(1.0),
        lambda jax: jax.jvp(_positive, (-1.0,), (1.0,)),
        lambda jax: jax.grad(lambda x: x * int(x))(2.0),
        lambda jax: jax.grad(lambda x: x * x.item())(2.0),
        lambda jax, jnp: jax.vmap(lambda x, y: x if y > 0 else -x, (0, None))(jnp.arange(3.0), 1.0),
    ):
        compare.same(program)


# Arguments and results of transformations

NOT_STATIC = "this argument was not marked as static using the static_argnums or static_argnames"
OF_JIT = {
    "a string": (lambda jax: jax.jit(lambda x: x)("a"), "Error interpreting argument to", "at path x", NOT_STATIC),
    "a string inside": (lambda jax: jax.jit(lambda x, y: y)({"k": [1, "a"]}, 2.0), "at path x['k'][1]"),
    "an object": (lambda jax: jax.jit(lambda x: x)(Thing()), "of type <class ", "Thing"),
    "a function": (lambda jax: jax.jit(lambda x: x)(len), "Error interpreting argument to"),
    "strings": (lambda jax: jax.jit(lambda x: x)(np.array(["a"])),),
    "objects": (lambda jax: jax.jit(lambda x: x)(np.array([Thing()], object)),),
    "a string returned": (
        lambda jax: jax.jit(lambda x: "a")(1.0),
        "traced for jit returned a value of type <class 'str'",
    ),
    "an object returned": (lambda jax: jax.jit(lambda x: {"a": Thing()})(1.0), "at output component", "['a']"),
    "too few": (lambda jax: jax.jit(lambda x, y: x)(1.0), "missing 1 required positional argument: 'y'"),
    "too many": (lambda jax: jax.jit(lambda x: x)(1.0, 2.0), "takes 1 positional argument but 2 were given"),
    "unhashable": (lambda jax: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1]), "Non-hashable static arguments"),
    "unhashable by name": (
        lambda jax: jax.jit(lambda n: 1, static_argnames="n")(n=[1]),
        "Non-hashable static arguments",
    ),
    "static array": (lambda jax, jnp: jax.jit(lambda n: 1, static_argnums=0)(jnp.ones(2)), "Non-hashable static"),
    "static tracer": (lambda jax: jax.jit(lambda x: jax.jit(lambda n: 1, static_argnums=0)(x))(1.0), "Non-hashable"),
    "static out of range": (lambda jax: jax.jit(lambda x: x, static_argnums=5), "static_argnums=(5,)"),
    "static unknown": (lambda jax: jax.jit(lambda x: x, static_argnames="zz"), "invalid argnames {'zz'}"),
    "static and donated": (lambda jax: jax.jit(lambda x: x, static_argnums=0, donate_argnums=0), "cannot intersect"),
    "no function": (lambda jax: jax.jit(3), "Expected a callable value, got 3"),
    "a generator": (lambda jax: jax.jit(lambda: (yield)), "Expected a function, got a generator function"),
    "a large int": (lambda jax: jax.jit(lambda x: x)(2**40),),
    "a large int inside": (lambda jax: jax.jit(lambda x: x * 2**40)(1.0),),
}
OF_DERIVATIVES = {
    "no function": (lambda jax: jax.grad(3), "Expected a callable value, got 3"),
    "a string": (lambda jax: jax.grad(lambda x: x)("a"), "is not a valid JAX type"),
    "an int": (lambda jax: jax.grad(lambda x: x * 1.0)(1), "grad requires real- or complex-valued inputs", "int32"),
    "a bool": (lambda jax: jax.grad(lambda x: x * 1.0)(True), "grad requires real- or complex-valued inputs", "bool"),
    "complex result": (lambda jax: jax.grad(lambda x: x * 1j)(1.0), "grad requires real-valued outputs", "complex64"),
    "int result": (lambda jax, jnp: jax.grad(lambda x: jnp.int32(1))(1.0), "grad requires real-valued outputs"),
    "vector result": (
        lambda jax, jnp: jax.grad(lambda x: x)(jnp.ones(3)),
        "Gradient only defined for scalar-output functions.",
        "(3,)",
    ),
    "vector of one": (lambda jax, jnp: jax.grad(lambda x: x)(jnp.ones(1)), "Gradient only defined for scalar-output"),
    "a pair": (lambda jax: jax.grad(lambda x: (x, x))(1.0), "Gradient only defined for scalar-output functions."),
    "None": (lambda jax: jax.grad(lambda x: None)(1.0), "Gradient only defined for scalar-output functions."),
    "a string returned": (lambda jax: jax.grad(lambda x: "s")(1.0), "is not a valid JAX type"),
    "argnums": (
        lambda jax: jax.grad(lambda x: x, argnums=2)(1.0),
        "requires at least 3 positional arguments",
        "but got only 1",
    ),
    "keywords alone": (lambda jax: jax.grad(lambda x: x)(x=1.0), "requires at least 1 positional arguments"),
    "no aux": (lambda jax: jax.grad(lambda x: x, has_aux=True)(1.0),),
    "holomorphic": (lambda jax: jax.grad(lambda x: x, holomorphic=True)(1.0), "requires inputs with complex dtype"),
    "jacfwd": (lambda jax: jax.jacfwd(lambda x: x)(1), "jacfwd requires real-valued inputs"),
    "jacrev": (lambda jax: jax.jacrev(lambda x: x)(1), "jacrev requires real- or complex-valued inputs"),
    "jvp's tree": (lambda jax: jax.jvp(lambda x: x, (1.0,), ((1.0,),)), "must have the same tree structure"),
    "jvp's tuple": (lambda jax: jax.jvp(lambda x: x, 1.0, 1.0), "must be tuples or lists"),
    "jvp's dtype": (
        lambda jax: jax.jvp(lambda x: x, (1.0,), (1,)),
        "primal and tangent arguments to jax.jvp do not match",
    ),
    "jvp's shape": (
        lambda jax: jax.jvp(lambda x: x, (1.0,), (np.ones(2, np.float32),)),
        "different primal and tangent shapes",
    ),
    "jvp's int": (lambda jax: jax.jvp(lambda x: x, (1,), (1,)), "the tangent dtype must be float0"),
    "vjp's tree": (lambda jax: jax.vjp(lambda x: (x, x), 1.0)[1](1.0), "unexpected tree structure"),
    "vjp's shape": (
        lambda jax: jax.vjp(lambda x: x, 1.0)[1](np.ones(2, np.float32)),
        "unexpected JAX type",
        "float32[2]",
    ),
    "vjp's dtype": (lambda jax: jax.vjp(lambda x: x, 1.0)[1](1), "unexpected JAX type (e.g. shape/dtype)", "int32[]"),
    "vjp's count": (lambda jax: jax.vjp(lambda x: x, 1.0)[1](1.0, 2.0), "was called with 2 arguments"),
    "linearize's shape": (
        lambda jax: jax.linearize(lambda x: x, 1.0)[1](np.ones(2)),
        "inconsistent with the original primal",
    ),
    "linearize's tree": (lambda jax: jax.linearize(lambda x: x, 1.0)[1](1.0, 2.0),),
}
OF_VMAP = {
    "no function": (lambda jax: jax.vmap(3), "Expected a callable value, got 3"),
    "sizes": (
        lambda jax: jax.vmap(lambda x, y: x)(np.ones(2), np.ones(3)),
        "vmap got inconsistent sizes for array axes to be mapped",
    ),
    "axis_size": (lambda jax: jax.vmap(lambda x: x, axis_size=3)(np.ones(2)), "vmap got inconsistent sizes"),
    "sizes in a tree": (lambda jax: jax.vmap(lambda x: x)({"a": np.ones(2), "b": np.ones(3)}), "inconsistent sizes"),
    "a scalar": (lambda jax: jax.vmap(lambda x: x)(1.0), "its rank should be at least 1, but is only 0"),
    "axis": (lambda jax: jax.vmap(lambda x: x, in_axes=2)(np.ones(2)), "rank should be at least 3, but is only 1"),
    "nothing mapped": (
        lambda jax: jax.vmap(lambda x: x, in_axes=None)(np.ones(2)),
        "at least one non-None value in in_axes",
    ),
    "count of in_axes": (lambda jax: jax.vmap(lambda x: x, in_axes=(0, 0))(np.ones(2)), "len(in_axes)=2, len(args)=1"),
    "in_axes": (
        lambda jax: jax.vmap(lambda x: x, in_axes="a")(np.ones(2)),
        "vmap in_axes must be an int, None, or a tuple",
    ),
    "unmapped result": (lambda jax: jax.vmap(lambda x: x, out_axes=None)(np.ones(2)),),
    "out_axes": (
        lambda jax: jax.vmap(lambda x: x, out_axes=3)(np.ones(2)),
        "axis 3 is out of bounds for array of dimension 1",
    ),
    "out_axes' tree": (lambda jax: jax.vmap(lambda x: x, out_axes=(0, 0))(np.ones(2)), "must be a tree prefix"),
    "no arguments": (lambda jax: jax.vmap(lambda: 1)(), "must be passed at least one argument containing an array"),
    "a string": (lambda jax: jax.vmap(lambda x: x)("a"), "is not a valid JAX type"),
    "a string returned": (lambda jax: jax.vmap(lambda x: "s")(np.ones(2)), "is not a valid JAX type"),
    "an axis name": (lambda lax: lax.psum(1.0, "i"), "unbound axis name: i"),
}
OF_CONTROL = {
    "scan's carry": (lambda lax: lax.scan(lambda c, x: (1, x), 1.0, np.ones(2)),),
    "scan's carry tree": (lambda lax: lax.scan(lambda c, x: ((c, c), x), 1.0, np.ones(2)),),
    "scan's pair": (lambda lax: lax.scan(lambda c, x: c, 1.0, np.ones(2)),),
    "scan's lengths": (lambda lax: lax.scan(lambda c, x: (c, x), 1.0, (np.ones(2), np.ones(3))),),
    "scan's length": (lambda lax: lax.scan(lambda c, x: (c, x), 1.0, np.ones(2), length=3),),
    "scan without length": (lambda lax: lax.scan(lambda c, x: (c, x), 1.0, None),),
    "cond's trees": (lambda lax: lax.cond(True, lambda x: (x, x), lambda x: x, 1.0),),
    "cond's types": (lambda lax: lax.cond(True, lambda x: x, lambda x: 1, 1.0),),
    "cond's predicate": (lambda lax: lax.cond(np.ones(2), lambda x: x, lambda x: x, 1.0), "Pred must be a scalar"),
    "cond's branch": (lambda lax: lax.cond(True, 3, lambda x: x, 1.0),),
    "switch without branches": (lambda lax: lax.switch(0, []), "Empty branch sequence"),
    "switch's index": (lambda lax: lax.switch(1.0, [lambda: 1, lambda: 2]),),
    "while's test": (
        lambda lax: lax.while_loop(lambda c: c, lambda c: c, 1.0),
        "cond_fun must return a boolean scalar",
    ),
    "while's carry": (lambda lax: lax.while_loop(lambda c: c < 3, lambda c: 1, 1.0),),
    "while's tree": (lambda lax: lax.while_loop(lambda c: c < 3, lambda c: (c, c), 1.0),),
    "fori's carry": (lambda lax: lax.fori_loop(0, 3, lambda i, c: 1, 1.0),),
}


@table(
    {
        f"{what}: {name}": case
        for what, cases in (
            ("jit", OF_JIT),
            ("derivatives", OF_DERIVATIVES),
            ("vmap", OF_VMAP),
            ("control", OF_CONTROL),
        )
        for name, case in cases.items()
    }
)
def test_wrong_arguments_and_results_are_refused(case):
    same_raised(*case)


# Arrays and operations

AMBIGUOUS = "The truth value of an array with more than one element is ambiguous."
SCALARS = "Only scalar arrays can be converted to Python scalars; got arr.ndim=1"
SCALAR_INDEX = "Only integer scalar arrays can be converted to a scalar index."
NO_DTYPE = "is not a valid JAX array type. Only arrays of numeric types are supported by JAX."
OF_ARRAYS = {
    "item assignment": (lambda jnp: jnp.ones(3).__setitem__(0, 1), IMMUTABLE, ".at["),
    "hash": (lambda jnp: {jnp.ones(3)}, "unhashable type"),
    "bool": (lambda jnp: bool(jnp.ones(3)), AMBIGUOUS),
    "bool of nothing": (lambda jnp: bool(jnp.ones(0)), "The truth value of an empty array is ambiguous."),
    "if": (lambda jnp: 1 if jnp.ones(3) else 2, AMBIGUOUS),
    "int": (lambda jnp: int(jnp.ones(3)), SCALARS),
    "float of one": (lambda jnp: float(jnp.ones(1)), SCALARS),
    "float of complex": (lambda jnp: float(jnp.complex64(1)),),
    "index": (lambda jnp: [1, 2][jnp.float32(1)], SCALAR_INDEX),
    "range": (lambda jnp: range(jnp.arange(3)), SCALAR_INDEX),
    "len": (lambda jnp: len(jnp.float32(1)), "len() of unsized object"),
    "iter": (lambda jnp: list(jnp.float32(1)), "iteration over a 0-d array"),
    "item": (lambda jnp: jnp.ones(3).item(), "can only convert an array of size 1 to a Python scalar"),
    "read-only": (lambda jnp: np.asarray(jnp.ones(3)).__setitem__(0, 2), "read-only"),
    "index of floats": (lambda jnp: jnp.ones(3)[1.0], "Indexer must have integer or boolean type"),
    "index by name": (lambda jnp: jnp.ones(3)["a"], "JAX does not support string indexing"),
    "index by list": (
        lambda jnp: jnp.ones(3)[[0, 1]],
        "Using a non-tuple sequence for multidimensional indexing is not allowed",
    ),
    "too many indices": (lambda jnp: jnp.ones(3)[0, 0], "Too many indices: array is 1-dimensional, but 2 were indexed"),
    "mask": (lambda jnp: jnp.ones(3)[jnp.array([True, False])], "boolean index did not match shape of indexed array"),
    "add a string": (lambda jnp: jnp.ones(3) + "a", "unsupported operand type(s) for +"),
    "add a list": (lambda jnp: jnp.ones(3) + [1, 2, 3], "unsupported operand type(s) for +"),
    "add an object": (lambda jnp: Thing() + jnp.ones(3), "unsupported operand type(s) for +"),
    "list": (
        lambda jnp: jnp.sum([1, 2, 3]),
        "sum requires ndarray or scalar arguments, got <class 'list'> at position 0.",
    ),
    "None": (lambda jnp: jnp.sin(None), "sin requires ndarray or scalar arguments"),
    "a string": (lambda jnp: jnp.sin("a"), "Error interpreting argument to"),
    "array of a string": (lambda jnp: jnp.array("a"), NO_DTYPE),
    "array of an object": (lambda jnp: jnp.array(Thing()), NO_DTYPE),
    "array of None": (lambda jnp: jnp.array([None, 1]), "None is not a valid value for jnp.array"),
    "ragged": (lambda jnp: jnp.array([[1], [1, 2]]), "inhomogeneous shape"),
    "dtype": (lambda jnp: jnp.array([1], dtype="foo"), "data type 'foo' not understood"),
    "object dtype": (lambda jnp: jnp.array([1], dtype=object), "JAX only supports number, bool, and string dtypes"),
    "shapes": (lambda jnp: jnp.ones(3) + jnp.ones(4), "add got incompatible shapes for broadcasting: (3,), (4,)."),
    "matmul": (
        lambda jnp: jnp.ones((2, 3)) @ jnp.ones((2, 3)),
        "requires contracting dimensions to have the same shape",
    ),
    "matmul of a scalar": (lambda jnp: jnp.ones((2, 3)) @ 1.0, "matmul input operand 1 must have ndim at least 1"),
    "reshape": (lambda jnp: jnp.ones(6).reshape(4), "cannot reshape array of shape (6,) (size 6) into shape"),
    "reshape by -1": (lambda jnp: jnp.ones(6).reshape(4, -1), "does not evenly divide 6"),
    "reshape by floats": (lambda jnp: jnp.ones(6).reshape(2.0, 3), SHAPE),
    "zeros": (lambda jnp: jnp.zeros(2.0), SHAPE),
    "axis": (lambda jnp: jnp.ones(3).sum(2), "axis 2 is out of bounds for array of dimension 1"),
    "axes": (lambda jnp: jnp.ones((3, 3)).sum((0, 0)), "duplicate value in 'axis': (0, 0)"),
    "stack": (lambda jnp: jnp.stack([jnp.ones(2), jnp.ones(3)]), "All input arrays must have the same shape."),
    "concatenate": (lambda jnp: jnp.concatenate([]), "Need at least one array to concatenate."),
    "max of nothing": (
        lambda jnp: jnp.max(jnp.ones(0)),
        "zero-size array to reduction operation max which has no identity",
    ),
    "and of floats": (lambda jnp: jnp.ones(3) & jnp.ones(3), "and does not accept dtype float32 at position 0."),
    "lax.add's dtypes": (
        lambda lax, jnp: lax.add(jnp.float32(1), jnp.int32(1)),
        "lax.add requires arguments to have the same dtypes, got float32, int32.",
    ),
    "lax.add's shapes": (
        lambda lax, jnp: lax.add(jnp.ones(2), jnp.ones(3)),
        "add got incompatible shapes for broadcasting",
    ),
    "lax.sin of an int": (lambda lax: lax.sin(1), "sin does not accept dtype int32."),
    "lax.slice": (lambda lax, jnp: lax.slice(jnp.ones(3), (0,), (5,)),),
    "overflow": (lambda jnp: jnp.asarray(2**40), "Python int 1099511627776 too large to convert to int32"),
    "overflow in arithmetic": (lambda jnp: jnp.ones(3) + 2**40,),
    "overflow of a dtype": (lambda jnp: jnp.array(300, dtype=jnp.uint8), "out of bounds for uint8"),
}


@table(OF_ARRAYS)
def test_operations_refuse_the_calls_that_jax_refuses(case):
    same_raised(*case)


def test_integers_overflow_under_jit_as_they_do_outside():
    for program in (
        lambda jax, jnp: jax.jit(lambda x: jnp.maximum(x, 2**40))(1.0),
        lambda jax, jnp: jax.jit(lambda x: jnp.bitwise_and(x, 0xFFFFFFFF))(jnp.uint32(7)),
        lambda jax, lax: jax.jit(lambda x: lax.add(x, 2**40))(1.0),
    ):
        same_raised(program)
    compare.same(lambda jnp: jnp.full(3, 2**40, jnp.float32))
    compare.same(lambda lax: lax.full((), 2**40, np.float32))


def test_strict_promotion_and_ranks_raise_and_warn_as_in_jax():
    def strict(jax, jnp):
        with jax.numpy_dtype_promotion("strict"):
            return jnp.float32(1) + jnp.int32(1)

    def ranks(jax, jnp):
        with jax.numpy_rank_promotion("raise"):
            return jnp.ones((2, 3)) + jnp.ones(3)

    def warned(jax, jnp):
        with warnings.catch_warnings(record=True) as seen, jax.numpy_rank_promotion("warn"):
            warnings.simplefilter("always")
            value = jnp.ones((2, 3)) + jnp.ones(3)
        assert "Following NumPy automatic rank promotion for add on shapes (2, 3) (3,)." in str(seen[0].message)
        return value

    same_raised(strict, "have no available implicit dtype promotion path")
    same_raised(ranks, "Operands could not be broadcast together for add on shapes (2, 3) (3,)", "='raise'")
    compare.same(warned)
