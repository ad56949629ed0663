"""Derivatives as users call them: gradients, Jacobians, products with vectors, and what they reject."""

import collections

import compare
import numpy as np
import pytest

import minijax

Point = collections.namedtuple("Point", "x y")
X = np.array([0.5, -1.5, 2.0], np.float32)
M = np.arange(6.0, dtype=np.float32).reshape(2, 3)
FLOAT0 = compare.FLOAT0


def twice(f, *args):
    """The result of `f`, a function of (jax, jnp), and its jaxpr."""

    def program(jax, jnp):
        g = f(jax, jnp)
        placed = compare.placed(jax, args)
        return g(*placed), compare._unwrapped(compare.normal(str(jax.make_jaxpr(g)(*placed))))

    return program


def _grad_names(jax, jnp):
    def f(x):
        """doc"""
        return x

    g, h = jax.grad(f), jax.value_and_grad(f, argnums=(0, 1))
    return g.__name__, g.__doc__.split()[:3], h.__name__, h.__wrapped__ is f, jax.jacfwd(f).__name__


def _argnums(jax, jnp):
    f = lambda x, y, z: jnp.sum(x * y["a"] + z * z)  # noqa: E731
    args = jnp.asarray(X), {"a": jnp.asarray(X)}, 2.0
    return [
        jax.grad(f, argnums)(*args) for argnums in (0, 1, 2, -1, (0,), (0, 1), (2, 0), (-1, -3), [0, 2], np.int64(1))
    ]


def _keywords(jax, jnp):
    f = lambda x, *, k, n=2: k * x**n  # noqa: E731
    return jax.grad(f)(3.0, k=2.0), jax.value_and_grad(f)(3.0, k=2, n=3)


def _aux(jax, jnp):
    f = lambda x, y: (jnp.sum(x) * y, {"x": x, "n": None, "k": 3, "s": (x * 2,)})  # noqa: E731
    x = jnp.asarray(X)
    return (
        jax.grad(f, has_aux=True)(x, 2.0),
        jax.value_and_grad(f, (0, 1), has_aux=True)(x, 2.0),
        jax.jacrev(f, has_aux=True)(x, 2.0),
        jax.jacfwd(f, has_aux=True)(x, 2.0),
        jax.hessian(f, has_aux=True)(x, 2.0),
        jax.jvp(f, (x, 2.0), (x, 1.0), has_aux=True),
        jax.linearize(f, x, 2.0, has_aux=True)[::2],
        jax.vjp(f, x, 2.0, has_aux=True)[::2],
        jax.vjp(f, x, 2.0, has_aux=True)[1](1.0),
        jax.linearize(f, x, 2.0, has_aux=True)[1](x, 1.0),
    )


def _aux_objects(jax, jnp):
    value, g = jax.value_and_grad(lambda x: (x * 2, ["text", abs]), has_aux=True)(1.0)
    return value, g


def _aux_is_concrete(jax, jnp):
    _, aux = jax.grad(lambda x: (x * x, {"v": x + 1, "n": np.float32(3)}), has_aux=True)(2.0)
    return aux


def _int_arguments(jax, jnp):
    f = lambda x, n: x * n  # noqa: E731
    both = jax.grad(f, (0, 1), allow_int=True)(2.0, 3)
    boolean = jax.grad(lambda b, x: jnp.where(b, x, -x), allow_int=True)(True, 2.0)
    return both, boolean, jax.vjp(f, 2.0, 3)[1](1.0), jax.grad(f)(2.0, 3)


def _tree_with_ints(jax, jnp):
    t = {"w": jnp.asarray(X), "n": jnp.arange(3)}
    return jax.grad(lambda t: jnp.sum(t["w"] * t["n"]), allow_int=True)(t)


def _jacobians_of_integers(jax, jnp):
    f = lambda n: n * jnp.ones(2)  # noqa: E731
    return (
        jax.jacrev(f, allow_int=True)(3),
        jax.jacrev(f, allow_int=True)(jnp.arange(2)),
        jax.jacfwd(lambda x: (x, jnp.int32(1)))(2.0),
        jax.vmap(jax.grad(lambda n: n * 1.0, allow_int=True))(jnp.arange(3)),
    )


def _jacobians_of_mixed_types(jax, jnp):
    f = lambda d: {"a": d["p"] * 2.0, "b": d["q"] * np.float32(2)}  # noqa: E731
    d = {"p": 3.0, "q": jnp.ones(2, "float16")}
    return jax.jacfwd(f)(d), jax.jacrev(f)(d), jax.hessian(lambda x: x**3)(2.0)


def _holomorphic(jax, jnp):
    z = jnp.asarray(1.5 + 0.5j)
    return (
        jax.grad(lambda z: jnp.sin(z) * z, holomorphic=True)(z),
        jax.jacfwd(lambda z: z * z, holomorphic=True)(z),
        jax.jacrev(lambda z: z * z, holomorphic=True)(z),
        jax.hessian(lambda z: z**3, holomorphic=True)(z),
        jax.grad(lambda z: jnp.real(z * jnp.conj(z)))(z),
    )


def _control_flow(jax, jnp):
    seen = []

    def f(x):
        if x > 1:
            seen.append(str(x.aval))
            return x * x
        while x < 1:
            x = x * 2
        return jnp.sin(x) if bool(x > 1) else x * 3

    return (
        jax.grad(f)(2.0),
        jax.grad(f)(0.3),
        jax.jvp(f, (0.2,), (1.0,)),
        jax.linearize(f, 0.4)[1](1.0),
        jax.grad(jax.grad(f))(3.0),
        jax.vjp(f, 0.25)[1](2.0),
        seen,
    )


def _numpy_of_tracers(jax, jnp):
    seen = []

    def f(x):
        seen.append(int(jnp.argmax(x)))
        return x[seen[-1]] * x[0]

    return jax.grad(f)(jnp.asarray(X)), seen


def _stop(jax, jnp):
    return jax.grad(lambda x: jax.lax.stop_gradient(x) * x)(3.0), jax.grad(lambda x: 2.0)(1.0)


def _jvp(jax, jnp):
    f = lambda t, n: {"p": Point(t["a"] * t["b"], t["a"]), "n": n, "c": 2.0}  # noqa: E731
    t = {"a": jnp.asarray(X), "b": 2.0}
    zero = np.zeros((), FLOAT0)
    return jax.jvp(f, (t, 3), (t, zero)), jax.jvp(f, [t, 3], [t, zero]), jax.jvp(lambda x: (), (1.0,), (1.0,))


def _linearize(jax, jnp):
    out, push = jax.linearize(lambda x, t: {"a": jnp.sin(x) * t[0], "c": 1.0, "n": 2}, jnp.asarray(X), (2.0, None))
    return out, push(jnp.asarray(X), (1.0, None)), str(jax.make_jaxpr(push)(jnp.asarray(X), (1.0, None)))


def _vjp(jax, jnp):
    out, pull = jax.vjp(lambda x, t: {"a": x * t[0], "b": 3.0, "n": 1}, jnp.asarray(X), (2.0, None))
    ct = {"a": jnp.ones(3), "b": 1.0, "n": np.zeros((), FLOAT0)}
    return out, pull(ct), pull(ct), str(jax.make_jaxpr(pull)(ct)), jax.vjp(lambda x: (), 1.0)[1](())


def _vjp_is_a_tree(jax, jnp):
    @jax.jit
    def forward(x):
        return jax.vjp(lambda x: jnp.sin(x) * x, x)

    out, pull = forward(2.0)
    return out, pull(1.0), jax.jit(lambda p, ct: p(ct))(pull, 2.0)


def _linearized_is_a_tree(jax, jnp):
    out, push = jax.jit(lambda x: jax.linearize(jnp.sin, x))(2.0)
    return out, push(1.0)


def _jacobians(jax, jnp):
    f = lambda x, t: {"a": x * t["k"], "b": (jnp.sum(x), t["m"] @ x)}  # noqa: E731
    args = jnp.asarray(X), {"k": 2.0, "m": jnp.asarray(M)}
    return [jac(f, argnums)(*args) for jac in (jax.jacfwd, jax.jacrev) for argnums in (0, 1, (0, 1))]


def _hessians(jax, jnp):
    f = lambda x, t: jnp.sum(jnp.sin(x) * t["m"]) * t["k"]  # noqa: E731
    args = jnp.asarray(X), {"k": 2.0, "m": jnp.asarray(M)}
    g = lambda p: p.x**2 * p.y  # noqa: E731
    return jax.hessian(f)(*args), jax.hessian(f, (0, 1))(*args), jax.hessian(g)(Point(2.0, 3.0))


def _jacobian_dtypes(jax, jnp):
    f = lambda x, y: (x * 2, y.astype(jnp.float16))  # noqa: E731
    args = jnp.asarray(X), jnp.asarray(X, jnp.bfloat16)
    return jax.jacfwd(f, (0, 1))(*args), jax.jacrev(f, (0, 1))(*args)


def _empty(jax, jnp):
    return jax.jacfwd(lambda x: x * 2)(jnp.zeros((0,))), jax.jacrev(lambda x: x * 2)(jnp.zeros((0,)))


def _linear_transpose(jax, jnp):
    f = lambda x, t: {"a": M @ x + t[0], "b": 2.0 * t[1]}  # noqa: E731
    x = jax.ShapeDtypeStruct((3,), jnp.float32)
    pull = jax.linear_transpose(f, x, (jnp.ones(2), 1.0))
    ct = {"a": jnp.asarray([1.0, 2.0]), "b": 3.0}
    return (
        pull(ct),
        jax.linear_transpose(lambda x: x.T, jnp.asarray(M))(jnp.ones((3, 2))),
        str(jax.make_jaxpr(pull)(ct)),
    )


def _higher(jax, jnp):
    f = lambda x: jnp.sin(x) * x**3  # noqa: E731
    g = f
    values = []
    for _ in range(4):
        g = jax.grad(g)
        values.append(g(0.7))
    return values, jax.jvp(jax.grad(f), (0.7,), (1.0,)), jax.grad(lambda x: jax.jvp(f, (x,), (1.0,))[1])(0.7)


def _perturbations(jax, jnp):
    inner = lambda x: jax.grad(lambda y: x * y)(2.0)  # noqa: E731
    return jax.grad(lambda x: x * jax.grad(lambda y: x + y)(1.0))(1.0), jax.grad(inner)(3.0)


def _weak(jax, jnp):
    return [jax.grad(lambda x: x * x)(v) for v in (2.0, np.float32(2), jnp.bfloat16(2), jnp.float16(2), np.float64(2))]


VALUES = {
    "names": _grad_names,
    "argnums": _argnums,
    "keywords": _keywords,
    "has_aux": _aux,
    "aux of concrete values": _aux_is_concrete,
    "integer arguments": _int_arguments,
    "a tree with integers": _tree_with_ints,
    "Jacobians of integers": _jacobians_of_integers,
    "Jacobians of mixed types": _jacobians_of_mixed_types,
    "holomorphic": _holomorphic,
    "Python control flow": _control_flow,
    "values as indices": _numpy_of_tracers,
    "stop_gradient and constants": _stop,
    "jvp": _jvp,
    "linearize": _linearize,
    "vjp": _vjp,
    "a pullback through jit": _vjp_is_a_tree,
    "a linearized function through jit": _linearized_is_a_tree,
    "Jacobians of trees": _jacobians,
    "Hessians of trees": _hessians,
    "Jacobians of several dtypes": _jacobian_dtypes,
    "Jacobians of empty arrays": _empty,
    "linear_transpose": _linear_transpose,
    "higher orders": _higher,
    "perturbations are not confused": _perturbations,
    "weak types": _weak,
    "the jaxpr of grad": twice(lambda jax, jnp: jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)), X),
    "the jaxpr of value_and_grad": twice(lambda jax, jnp: jax.value_and_grad(lambda x, y: x * y, (0, 1)), 2.0, 3.0),
    "the jaxpr of grad of jit": twice(lambda jax, jnp: jax.grad(jax.jit(lambda x: jnp.sin(x) * x)), 2.0),
    "the jaxpr of grad of grad": twice(lambda jax, jnp: jax.grad(jax.grad(lambda x: jnp.sin(x) * x)), 2.0),
    "the jaxpr of jacfwd": twice(lambda jax, jnp: jax.jacfwd(lambda x: x * jnp.sum(x)), X),
    "the jaxpr of jacrev": twice(lambda jax, jnp: jax.jacrev(lambda x: x * jnp.sum(x)), X),
    "the jaxpr of jacrev of a tree": twice(
        lambda jax, jnp: jax.jacrev(lambda t: {"o": t["a"] * t["b"]}), {"a": X, "b": 2.0}
    ),
    "the jaxpr of hessian": twice(lambda jax, jnp: jax.hessian(lambda x: jnp.sum(x**3)), X),
    "the jaxpr of jvp": twice(lambda jax, jnp: lambda x, t: jax.jvp(jnp.tanh, (x,), (t,)), X, X),
    "the jaxpr of vjp": twice(lambda jax, jnp: lambda x, t: jax.vjp(jnp.tanh, x)[1](t), X, X),
    "the jaxpr of linearize": twice(lambda jax, jnp: lambda x, t: jax.linearize(jnp.tanh, x)[1](t), X, X),
}


def _vjp_of(*cts):
    return lambda jax, jnp: jax.vjp(lambda x: (x * 2, x), jnp.asarray(X))[1](*cts)


ERRORS = {
    "no scalar": (
        lambda jax: jax.grad(lambda x: x)(X),
        "Gradient only defined for scalar-output functions. Output had shape: (3,).",
    ),
    "no array": (
        lambda jax: jax.grad(lambda x: [x])(1.0),
        "Gradient only defined for scalar-output functions. Output was [",
    ),
    "a reference": (
        lambda jax: jax.grad(lambda x: jax.new_ref(x))(1.0),
        "Gradient only defined for scalar-output functions. Output had abstract value Ref{float32[]}",
    ),
    "no result": (
        lambda jax: jax.grad(lambda x: None)(1.0),
        "Gradient only defined for scalar-output functions. Output was None",
    ),
    "integer input": (
        lambda jax: jax.grad(lambda x: x * 1.0)(3),
        "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got int32",
        "allow_int",
    ),
    "integer input of value_and_grad": (
        lambda jax: jax.value_and_grad(lambda x: x * 1.0)(3),
        "grad requires real- or complex",
    ),
    "boolean input": (lambda jax: jax.grad(lambda x: x * 1.0)(True), "but got bool"),
    "integer output": (lambda jax: jax.grad(lambda x: 3)(1.0), "grad requires real-valued outputs", "int32"),
    "complex output": (
        lambda jax: jax.grad(lambda x: x * 1j)(1.0),
        "grad requires real-valued outputs",
        "complex64",
        "holomorphic=True",
    ),
    "holomorphic of reals": (
        lambda jax: jax.grad(lambda x: x, holomorphic=True)(1.0),
        "grad with holomorphic=True requires inputs with complex dtype",
        "float32",
    ),
    "holomorphic to reals": (
        lambda jax, jnp: jax.grad(lambda z: jnp.real(z), holomorphic=True)(1j),
        "grad with holomorphic=True requires outputs with complex dtype",
        "float32",
    ),
    "argnums too large": (
        lambda jax: jax.grad(lambda x: x, argnums=1)(1.0),
        "differentiating with respect to argnums=1 requires at least 2 positional arguments to be "
        "passed by the caller, "
        "but got only 1 positional arguments.",
    ),
    "argnums too small": (lambda jax: jax.grad(lambda x: x, argnums=-2)(1.0), "but got value -2 for len(args) == 1"),
    "argnums of a Jacobian": (lambda jax: jax.jacfwd(lambda x: x, (0, 2))(1.0), "but got value 2 for len(args) == 1"),
    "argnums by keyword": (lambda jax: jax.grad(lambda x, y: x)(x=1.0, y=1.0), "argnums=0"),
    "argnums no ints": lambda jax: jax.grad(lambda x: x, argnums="a")(1.0),
    "no function": (lambda jax: jax.grad(3), "Expected a callable value, got 3"),
    "no function to vjp": (lambda jax: jax.vjp(3, 1.0), "Expected a callable value, got 3"),
    "no function to jvp": (lambda jax: jax.jvp(3, (1.0,), (1.0,)), "Expected a callable value, got 3"),
    "no value": (lambda jax: jax.grad(lambda x: x)("text"), "not a valid JAX type"),
    "no value to jvp": (lambda jax: jax.jvp(lambda x: x, ("text",), (1.0,)), "not a valid JAX type"),
    "aux is no pair": (
        lambda jax: jax.grad(lambda x: x, has_aux=True)(1.0),
        "expected function with aux output to return a two-element tuple, but got type",
    ),
    "aux of three": (lambda jax: jax.grad(lambda x: (x, 1, 2), has_aux=True)(1.0), "a two-element tuple"),
    "jvp of no tuples": (
        lambda jax: jax.jvp(lambda x: x, 1.0, 1.0),
        "primal and tangent arguments to jax.jvp must be tuples or lists",
    ),
    "jvp of other trees": (
        lambda jax: jax.jvp(lambda x, y: x, (1.0, 2.0), (1.0,)),
        "primal and tangent arguments to jax.jvp must have the same tree structure",
    ),
    "jvp of other dtypes": (
        lambda jax: jax.jvp(lambda x: x, (1.0,), (np.float16(1),)),
        "primal and tangent arguments to jax.jvp do not match",
        "float32",
        "float16",
    ),
    "jvp of integers": (
        lambda jax: jax.jvp(lambda x: x, (1,), (1,)),
        "primal and tangent arguments to jax.jvp do not match",
        "float0",
    ),
    "jvp of other shapes": (
        lambda jax: jax.jvp(lambda x: x, (X,), (X[:2],)),
        "jvp called with different primal and tangent shapes",
        "(3,)",
        "(2,)",
    ),
    "vjp of two cotangents": (_vjp_of(X, X), "must be called with a single argument"),
    "vjp of another tree": (_vjp_of(X), "unexpected tree structure"),
    "vjp of a list": (_vjp_of([X, X]), "unexpected tree structure"),
    "vjp of another shape": (
        _vjp_of((X[:2], X)),
        "unexpected JAX type (e.g. shape/dtype) for argument to VJP function",
        "float32[2]",
    ),
    "vjp of another dtype": (
        _vjp_of((X.astype(np.int32), X)),
        "unexpected JAX type (e.g. shape/dtype) for argument to VJP function",
        "int32[3]",
    ),
    "linearized on another tree": lambda jax, jnp: jax.linearize(jnp.sin, 1.0)[1](1.0, 2.0),
    "linearized on another shape": (
        lambda jax, jnp: jax.linearize(jnp.sin, 1.0)[1](X),
        "linearized function called on tangent values inconsistent with the original primal values",
    ),
    "linearized on another dtype": (
        lambda jax, jnp: jax.linearize(jnp.sin, 1.0)[1](1),
        "linearized function called on tangent values inconsistent with the original primal values",
    ),
    "jacfwd of integers": (lambda jax: jax.jacfwd(lambda x: x)(1), "jacfwd requires real-valued inputs", "int32"),
    "jacrev of integers": (lambda jax: jax.jacrev(lambda x: x)(1), "jacrev requires real- or complex-valued inputs"),
    "jacfwd of complex": (lambda jax: jax.jacfwd(lambda x: x)(1j), "jacfwd requires real-valued inputs", "complex64"),
    "jacrev to integers": (lambda jax: jax.jacrev(lambda x: 1)(1.0), "jacrev requires real-valued outputs"),
    "jacrev to complex": (lambda jax: jax.jacrev(lambda x: x * 1j)(1.0), "jacrev requires real-valued outputs"),
    "jacfwd holomorphic of reals": (
        lambda jax: jax.jacfwd(lambda x: x, holomorphic=True)(1.0),
        "jacfwd with holomorphic=True requires inputs with complex",
    ),
    "transpose of another tree": (
        lambda jax: jax.linear_transpose(lambda x: 2 * x, 1.0)((1.0,)),
        "cotangent tree does not match function output",
    ),
    "transpose of another type": (
        lambda jax: jax.linear_transpose(lambda x: 2 * x, 1.0)(X),
        "cotangent type does not match function output",
    ),
    "transpose of no linear function": (
        lambda jax, jnp: jax.linear_transpose(jnp.sin, 1.0)(1.0),
        "Transpose rule (for reverse-mode differentiation) for 'sin' not implemented",
    ),
    "reduce_axes": (lambda jax: jax.grad(lambda x: x, reduce_axes=("i",)), "reduce_axes"),
    "bool inside jit": (
        lambda jax: jax.jit(jax.grad(lambda x: x if x > 0 else -x))(1.0),
        "Attempted boolean conversion",
    ),
    "bool of an array": (lambda jax: jax.grad(lambda x: 1.0 if x else 2.0)(X), "more than one element is ambiguous"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_derivatives_are_those_of_jax(name):
    compare.same(VALUES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_derivatives_raise_as_in_jax(name):
    program, *phrases = entry if isinstance(entry := ERRORS[name], tuple) else (entry,)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
    )


def test_a_tracer_of_grad_may_not_escape():
    held = []
    minijax.grad(lambda x: (held.append(x), x)[1])(1.0)
    with pytest.raises(minijax.errors.UnexpectedTracerError):
        held[0] + 1


WIDE = {"jacfwd": lambda jax: jax.jacfwd(lambda x: x * x), "jacrev": lambda jax: jax.jacrev(lambda x: x * x)}


@pytest.mark.oracle
@pytest.mark.parametrize("name", WIDE)
def test_jacobians_of_wide_numbers_are_those_of_jax(name):
    with compare.wide_numbers():
        compare.same_jaxpr(WIDE[name], np.ones(3))


@pytest.mark.oracle
def test_float0_passes_through_jit():
    zeros = np.zeros(3, compare.FLOAT0)
    compare.same(lambda jax: jax.jit(lambda x, z: (x, z))(np.ones(3, np.float32), zeros))
    compare.same(lambda jax, jnp: jax.jit(lambda x: jax.jvp(lambda x: (x, jnp.argsort(x)), (x,), (x,)))(np.ones(3)))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["int32", "float32", [("float0", "V")]])
def test_cotangents_of_integers_may_have_any_dtype(dtype):
    def pulled(jax, shape):
        x = np.arange(3.0, dtype=np.float32)
        outs, pull = jax.vjp(lambda x: (x * 2, jax.numpy.argmax(x)), x)
        return pull((outs[0], np.zeros(shape, dtype)))

    compare.same(lambda jax: pulled(jax, ()))
    compare.same(lambda jax: pulled(jax, (2,)), raises="ValueError")


# Linear functions that hold a derivative: parts of their equations are known.
LINEAR = {
    "a norm": lambda jax, jnp, lax, v: lambda t: jax.jvp(lambda u: u / jnp.linalg.norm(u), (v,), (t,))[1],
    "a sort": lambda jax, jnp, lax, v: lambda t: jax.jvp(jnp.sort, (v,), (t,))[1],
    "a scan": lambda jax, jnp, lax, v: (
        lambda t: jax.jvp(lambda u: lax.scan(lambda c, a: (c * a, jnp.sin(c)), 1.0, u)[1], (v,), (t,))[1]
    ),
    "a loop": lambda jax, jnp, lax, v: (
        lambda t: jax.jvp(lambda u: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * u, u), (v,), (t,))[1]
    ),
    "a branch": lambda jax, jnp, lax, v: (
        lambda t: jax.jvp(lambda u: lax.cond(True, jnp.sin, jnp.cos, u), (v,), (t,))[1]
    ),
    "a checkpoint": lambda jax, jnp, lax, v: (
        lambda t: jax.jvp(jax.checkpoint(lambda u: jnp.sin(jnp.sin(u))), (v,), (t,))[1]
    ),
    "linearize": lambda jax, jnp, lax, v: lambda t: jax.linearize(lambda u: jnp.sum(u**3), v)[1](t),
    "a product with the Hessian": lambda jax, jnp, lax, v: (
        lambda t: jax.jvp(jax.grad(lambda u: jnp.sum(jnp.exp(u) * u)), (v,), (t,))[1]
    ),
    "a custom rule": lambda jax, jnp, lax, v: lambda t: jax.jvp(jax.nn.relu, (v,), (t,))[1],
    "a constant": lambda jax, jnp, lax, v: lambda t: t * jnp.sin(v) + jnp.roll(t, 1),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_that_hold_derivatives_are_transposed(name):
    def transposed(jax, jnp, lax, jaxpr):
        v = jnp.array([1.0, 3.0, 2.0])
        f = LINEAR[name](jax, jnp, lax, v)
        ct = jax.tree.map(lambda s: jnp.arange(s.size, dtype=s.dtype).reshape(s.shape) + 1, jax.eval_shape(f, v))
        transpose = lambda ct: jax.linear_transpose(f, v)(ct)  # noqa: E731
        return str(jax.make_jaxpr(transpose)(ct)) if jaxpr else (transpose(ct), jax.jit(transpose)(ct))

    compare.same(lambda jax, jnp, lax: transposed(jax, jnp, lax, False))
    compare.same(lambda jax, jnp, lax: compare.normal(transposed(jax, jnp, lax, True)))
