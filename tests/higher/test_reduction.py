"""Reductions by functions, along axes and over windows, against jax: programs, texts and values."""

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, ours, run_on, same, same_error, sweep, theirs
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

INF = np.inf
FORWARD = ("plain", "jit", "jvp", "vmap", "vmap_of_vmap", "jit_of_vmap_of_jvp")
TRANSFORMS = (*FORWARD, "vjp", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad")


def array(*sizes, dtype=np.float32):
    return np.asarray(np.random.RandomState(0).randn(*sizes) * 3).astype(dtype)


def affine(a, b):
    return a * b + 1


def pair(a, b):
    return a[0] * b[0], a[1] - b[1]


def whole(operands, inits, how, *dimensions):
    """`reduce` of the arguments, by a function or the name of one in lax."""
    return lambda lax: lambda *xs: lax.reduce(operands(*xs), inits, _named(lax, how), dimensions)


def windowed(operands, inits, how, *window):
    return lambda lax: lambda *xs: lax.reduce_window(operands(*xs), inits, _named(lax, how), *window)


def _named(lax, how):
    return getattr(lax, how) if isinstance(how, str) else how


def one(x):
    return x


def two(x, y):
    return x, y


X = array(2, 3, 4)
REDUCTIONS = [
    Case("affine", whole(one, 2.0, affine, 0), (X,)),
    Case("odd", whole(one, 2.0, affine, 1), (X,)),
    Case("last-first", whole(one, 2.0, affine, 2, 0), (X,)),
    Case("all", whole(one, np.float32(2), affine, 0, 1, 2), (X,)),
    Case("none", whole(one, 2.0, affine), (X,)),
    Case("empty", whole(one, 2.0, affine, 0), (array(0, 3),)),
    Case("single", whole(one, 2.0, affine, 0), (array(1, 3),)),
    Case("sub", whole(one, 1.0, "sub", 1), (X,)),
    Case("sum-from-one", whole(one, 1.0, "add", 1), (X,)),
    Case("max-from-zero", whole(one, 0.0, "max", 1), (X,)),
    Case("product-from-zero", whole(one, 0.0, "mul", 1), (X,)),
    Case("two", whole(two, (0.5, 1.0), pair, 1), (X, X)),
    Case("list", whole(lambda x, y: [x, y], [0.5, 1.0], pair, 1), (X, X)),
    Case(
        "dict",
        whole(
            lambda x, y: {"a": x, "b": y}, {"a": 1.0, "b": 2.0}, lambda p, q: {"a": p["a"] * q["b"], "b": p["b"] + 1}, 0
        ),
        (X, X),
    ),
    Case("tuple-of-one", whole(lambda x: (x,), (0.0,), lambda p, q: (p[0] + q[0],), 1), (X,)),
]
WINDOWS = [
    Case("product", windowed(one, 1.0, "mul", (2, 2), (1, 2), "SAME"), (array(4, 5),)),
    Case("affine", windowed(one, 2.0, affine, (2, 2), (1, 2), ((0, 1), (1, 1)), (2, 1), (1, 2)), (array(4, 5),)),
    Case("sum-from-one", windowed(one, 1.0, "add", (2,)), (array(5),)),
    Case("max-from-zero", windowed(one, 0.0, "max", (2,)), (array(5),)),
    Case("two", windowed(two, (1.0, 2.0), pair, (2, 3), (1, 2), "SAME_LOWER"), (array(4, 5), array(4, 5))),
    Case("sums", windowed(lambda x: {"a": x}, {"a": 0.0}, lambda p, q: {"a": p["a"] + q["a"]}, (2,)), (array(5),)),
    Case("rank-0", windowed(one, 2.0, "add", (), ()), (array(),)),
    Case("empty", windowed(one, 2.0, "add", (9,)), (array(5),)),
]


def test_reductions_under_every_transform_equal_jax_s():
    sweep([transformed(c, t) for c in REDUCTIONS for t in TRANSFORMS])


def test_windows_under_forward_transforms_equal_jax_s():
    sweep([transformed(c, t) for c in WINDOWS for t in (*FORWARD, "vjp")])


def test_second_tangents_of_windows_equal_jax_s():
    def program(jax):
        def tangent(f):
            return lambda x: jax.jvp(f, (x,), (x,))[1]

        return tangent(tangent(lambda x: jax.lax.reduce_window(x, 1.0, jax.lax.mul, (2,))))

    sweep([Case("jvp-of-jvp", program, (array(5),))])


FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.complex64)


def test_functions_that_are_reductions_become_them_as_in_jax():
    cases = []
    for name in ("add", "mul", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor"):
        for dtype in (np.float32, ml_dtypes.bfloat16, np.complex64, np.int32, np.int8, np.uint8, bool):
            for init in (
                0,
                1,
                0.0,
                -0.0,
                -1,
                1.0,
                0j,
                INF,
                -INF,
                np.nan,
                True,
                False,
                255,
                -128,
                -(2**31),
                np.int64(-(2**31)),
                np.int8(-128),
                np.uint8(255),
                np.float16(-INF),
            ):
                for make, where in ((whole, (0,)), (windowed, ((2,),))):
                    label = f"{name}-{np.dtype(dtype)}-{init!r}-{make.__name__}"
                    x = np.abs(array(4)).astype(dtype)
                    cases.append(Case(label, make(one, init, name, *where), (x,), raises=LISTED))
    sweep(cases)


def test_every_dtype_equals_jax_s():
    sweep(
        [
            Case(
                f"{np.dtype(d)}-{make.__name__}", make(one, np.dtype(d).type(1), "sub", *where), (array(3, 4, dtype=d),)
            )
            for d in (*FLOATS, np.int8, np.uint32)
            for make, where in ((whole, (1,)), (windowed, ((2, 2),)))
        ]
    )
    sweep(
        [
            transformed(Case(f"{np.dtype(d)}", whole(one, np.dtype(d).type(1), affine, 1), (array(3, 4, dtype=d),)), t)
            for d in FLOATS
            for t in ("jvp", "vjp")
        ]
    )


def test_initial_values_may_be_traced():
    def program(make, *where):
        return lambda lax: lambda x, i: run_on_lax(make(one, i, "add", *where), lax)(x)

    cases = [
        Case("whole", program(whole, 0), (array(3, 4), np.float32(1))),
        Case("windowed", program(windowed, (2, 2)), (array(3, 4), np.float32(0))),
    ]
    sweep([transformed(c, t) for c in cases for t in ("plain", "jit", "jvp", "vmap", "vjp")])


def run_on_lax(program, lax):
    return program(lax)


@pytest.mark.parametrize("weak", [(True, True), (True, False), (False, True), (False, False)])
def test_weak_types_are_those_of_jax(weak):
    x, init = (1.5 if w else np.float32(1.5) for w in weak)

    def program(make, how, *where):
        return lambda lax: lambda x: make(one, init, how, *where)(lax)(lax.broadcast_in_dim(x, (3,), ()))

    def strong(a, b):
        return a * b + np.float32(3)

    cases = [
        Case(f"{make.__name__}-{getattr(how, '__name__', how)}", program(make, how, *where), (x,))
        for how in (affine, "sub", strong)
        for make, where in ((whole, (0,)), (windowed, ((2,),)))
    ]
    sweep([transformed(c, t) for c in cases for t in ("plain", "jvp")])


@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 2), (2, 1)])
def test_operands_batched_in_different_places_are_brought_together_as_in_jax(axes):
    args = [array(4, 5) if a is None else np.moveaxis(array(3, 4, 5), 0, a) for a in axes]
    programs = {"whole": whole(two, (0.5, 1.0), pair, 1), "windowed": windowed(two, (0.5, 1.0), pair, (2, 2))}
    sweep([Case(f"{n}-{axes}", mapped(p, axes), tuple(args)) for n, p in programs.items()])


def mapped(program, axes):
    return lambda jax: jax.vmap(run_on(jax, program), in_axes=axes)


def places(jnp):
    def better(a, b):
        return jnp.maximum(a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])

    return better


def test_values_with_their_places_equal_jax_s():
    numbers = np.arange(4, dtype=np.int32)

    def program(jnp, lax):
        return lambda x: lax.reduce((x, numbers), (-INF, 0), places(jnp), (0,))

    def window(jnp, lax):
        return lambda x: lax.reduce_window((x, numbers), (-INF, 0), places(jnp), (2,))

    cases = [Case("whole", program, (array(4),)), Case("window", window, (array(4),))]
    sweep([transformed(c, t) for c in cases for t in ("plain", "jit", "vmap")], tier="full")


def test_derivatives_of_values_with_their_places_are_those_of_the_values():
    """jax raises where an operand has no tangent."""
    jax = ours()
    x, numbers = array(8), np.arange(8, dtype=np.int32)

    def whole(x):
        return jax.lax.reduce((x, numbers), (-INF, 0), places(jax.numpy), (0,))[0]

    def window(x):
        return jax.lax.reduce_window((x, numbers), (-INF, 0), places(jax.numpy), (2,))[0]

    hot = np.zeros(8, np.float32)
    hot[np.argmax(x)] = 1
    np.testing.assert_array_equal(jax.grad(whole)(x), hot)
    np.testing.assert_array_equal(jax.jvp(whole, (x,), (2 * x,))[1], 2 * x.max())
    np.testing.assert_array_equal(jax.jvp(window, (x,), (2 * x,))[1], 2 * np.maximum(x[1:], x[:-1]))


def test_functions_with_inner_programs_equal_jax_s():
    def nested(inner):
        return lambda jax, jnp, lax: lambda x: lax.reduce(x, 1.0, inner(jax, jnp, lax), (1,))

    inners = {
        "jit": lambda jax, jnp, lax: jax.jit(lambda a, b: a - b),
        "where": lambda jax, jnp, lax: lambda a, b: jnp.where(a > b, a * b, b),
        "cond": lambda jax, jnp, lax: lambda a, b: lax.cond(a > b, lambda: a, lambda: b),
    }
    cases = [Case(n, nested(inner), (X,)) for n, inner in inners.items()]
    sweep([transformed(c, t) for c in cases for t in ("plain", "vmap")], tier="full")
    sweep([transformed(c, t) for c in cases[:2] for t in ("jvp", "vjp")], tier="full")


def test_branches_in_the_function_have_derivatives():
    jax = ours()

    def largest(a, b):
        return jax.lax.cond(a > b, lambda: a, lambda: b)

    x = array(5)
    hot = (x == x.max()).astype(np.float32)
    np.testing.assert_array_equal(jax.grad(lambda x: jax.lax.reduce(x, -INF, largest, (0,)))(x), hot)


def test_functions_may_close_over_arrays():
    """jax fails to lower such functions."""
    jax, x = ours(), array(3, 4)
    factor = jax.numpy.arange(3.0)
    add = lambda a, b: a + b + factor.sum()  # noqa: E731
    np.testing.assert_allclose(jax.lax.reduce(x, 0.0, add, (0,)), x.sum(0) + 9, rtol=1e-5)
    windows = jax.jit(lambda x: jax.lax.reduce_window(x, 0.0, add, (3, 1)))(x)
    np.testing.assert_allclose(windows, x.sum(0, keepdims=True) + 9, rtol=1e-5)


def test_equations_name_the_function_as_jax_s_do():
    def program(jax, lax):
        functions = lax.bitwise_and, lax.max, jax.jit(affine), lax.sub, affine
        return lambda x: [lax.reduce(x, 5, f, (0,)) for f in functions]

    sweep([Case("names", program, (array(3, dtype=np.int32),))])


def test_results_have_the_function_s_tree():
    same(lambda lax: lax.reduce([X, X], [0.0, 1.0], lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)))
    same(lambda lax: lax.reduce((X,), (0.0,), lax.add, (0,)))


ERRORS = {
    "trees": (lambda lax: lax.reduce((X, X), 1.0, affine, (1,)), "same tree structure"),
    "dtypes": (lambda lax: lax.reduce(X, 1, affine, (1,)), "dtypes should match"),
    "initial array": (lambda lax: lax.reduce(X, np.ones(2, np.float32), affine, (1,)), "non-scalar"),
    "string": (lambda lax: lax.reduce(X, "a", affine, (1,)), ""),
    "no function": (lambda lax: lax.reduce(X, 1.0, 3, (1,)), ""),
    "dimension": (lambda lax: lax.reduce(X, 1.0, affine, (3,)), "out of bounds"),
    "twice": (lambda lax: lax.reduce(X, 1.0, affine, (1, 1)), ""),
    "negative": (lambda lax: lax.reduce(X, 1.0, affine, (-1,)), ""),
    "negative sum": (lambda lax: lax.reduce(X, 0.0, lax.add, (-1,)), "out-of-bounds"),
    "no tuple": (lambda lax: lax.reduce(X, 1.0, affine, 1), ""),
    "predicate": (lambda lax: lax.reduce(X, 1.0, lambda a, b: a > b, (1,)), ""),
    "array": (lambda lax, jnp: lax.reduce(X, 1.0, lambda a, b: jnp.stack([a, b]), (1,)), ""),
    "bool sum": (lambda lax: lax.reduce(X > 0, False, lax.add, (1,)), "does not accept dtype bool"),
    "shapes": (lambda lax: lax.reduce((X, X[0]), (1.0, 1.0), pair, (1,)), ""),
    "traced": (lambda jax, lax: jax.jit(lambda x, y: lax.reduce(x, 1.0, lambda a, b: a * b + y, (0,)))(X, 1.0),
               "can't close over Tracers"),
    "initial tangent": (lambda jax, lax: jax.jvp(lambda i: lax.reduce(X, i, affine, (0,)), (1.0,), (1.0,)),
                        "initial values"),
    "batched initial": (lambda jax, lax: jax.vmap(lambda i: lax.reduce(X, i, affine, (0,)))(X[0, 0]), ""),
    "window trees": (lambda lax: lax.reduce_window((X, X), 1.0, affine, (1, 1, 1)), "same tree structure"),
    "window of nothing": (lambda lax: lax.reduce_window((), (), affine, (1,)), "at least one operand"),
    "window dtypes": (lambda lax: lax.reduce_window(X, 1, affine, (1, 1, 1)), "inconsistent dtypes"),
    "window initial": (lambda lax: lax.reduce_window(X, np.ones(1, np.float32), affine, (1, 1, 1)), "scalars"),
    "window tuple": (lambda lax: lax.reduce_window((X,), (0.0,), lax.add, (1, 1, 1)), ""),
    "window rank": (lambda lax: lax.reduce_window(X, 1.0, affine, (1, 1)), "wrong number of window_dimensions"),
    "window results": (lambda lax: lax.reduce_window(X, 1.0, lambda a, b: (a, b), (1, 1, 1)), "tree structure"),
    "window predicate": (lambda lax: lax.reduce_window(X, 1.0, lambda a, b: a > b, (1, 1, 1)), ""),
    "window traced": (lambda jax, lax: jax.jit(
        lambda x, y: lax.reduce_window(x, 1.0, lambda a, b: a * b + y, (1, 1, 1)))(X, 1.0), "close over Tracers"),
    "window initial tangent": (lambda jax, lax: jax.jvp(
        lambda i: lax.reduce_window(X, i, affine, (1, 1, 1)), (1.0,), (1.0,)), "init_value_tangent"),
    "window batched initial": (lambda jax, lax: jax.vmap(
        lambda i: lax.reduce_window(X, i, affine, (1, 1, 1)))(X[0, 0]), "initial values"),
    "window gradient": (lambda jax, lax: jax.grad(
        lambda x: lax.reduce_window(x, 1.0, lax.mul, (1, 1, 2)).sum())(X), "Linearization failed"),
    "window gradient in jit": (lambda jax, lax: jax.grad(jax.jit(
        lambda x: lax.reduce_window(x, 1.0, lax.mul, (1, 1, 2)).sum()))(X), "Linearization failed"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    program, phrase = ERRORS[name]
    same_error(lambda: run_on(ours(), program), lambda: run_on(theirs(), program), [phrase])
