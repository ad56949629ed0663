"""`vmap`: axes of arguments and results, sizes, names, and what it rejects."""

import collections

import compare
import numpy as np
import pytest

import minijax

Point = collections.namedtuple("Point", "x y")
A = np.arange(6.0, dtype=np.float32).reshape(2, 3)
B = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def mapped(f, *args, **options):
    """The value and the jaxpr of `f` under vmap; `f` is a function of jnp."""

    def program(jax, jnp):
        g = jax.vmap(f(jnp), **options)
        placed = compare.placed(jax, args)
        return g(*placed), str(jax.make_jaxpr(g)(*placed))

    return program


def _named(jax, jnp):
    def f(x):
        return jax.lax.psum(x, "i"), jax.lax.axis_index("i"), jax.lax.pmean(x, axis_name="i")

    return jax.vmap(f, axis_name="i")(A), str(jax.make_jaxpr(jax.vmap(f, axis_name="i", out_axes=(None, 0, None)))(A))


def _two_names(jax, jnp):
    def f(x):
        return jax.lax.psum(x, ("i", "j")), jax.lax.psum(x, "j"), jax.lax.axis_index(("i", "j"))

    return jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(A)


def _axis_size(jax, jnp):
    return (
        jax.vmap(lambda: jnp.ones(2), axis_size=3)(),
        jax.vmap(lambda x: x, in_axes=None, axis_size=2)(1.5),
        jax.vmap(lambda x, y: x + y, in_axes=(None, 0), axis_size=2)(1.0, A),
    )


def _keywords(jax, jnp):
    return jax.vmap(lambda x, *, y, z=1: x * y + z, in_axes=(1,))(A, y=np.arange(3), z=np.ones(3, np.float32))


def _concrete(jax, jnp):
    seen = []

    def f(x):
        seen.append(str(x.aval))
        return jnp.where(x > 1, x, 0) if x.ndim == 1 else x

    return jax.vmap(f)(A), seen


def _unmapped_stays_concrete(jax, jnp):
    return jax.vmap(lambda x, n: x * 2 if n > 1 else x, in_axes=(0, None))(A, 3)


def _names(jax, jnp):
    def f(x):
        """doc"""

    g = jax.vmap(f)
    return g.__name__, g.__wrapped__ is f


def _of_jit(jax, jnp):
    f = jax.jit(lambda x, y: {"a": x @ y, "b": y})
    g = jax.vmap(f, in_axes=(0, None), out_axes={"a": 1, "b": None})
    return g(B, np.ones(4, np.float32)), str(jax.make_jaxpr(g)(B, np.ones(4, np.float32)))


def _spmd(jax, jnp):
    return str(jax.make_jaxpr(jax.vmap(lambda x: jnp.sin(x), spmd_axis_name="data"))(A))


def _matrix_power(jax, jnp):
    return jax.vmap(jax.vmap(jnp.dot, (None, 1)), (0, None))(A, A.T)


def _list_in_axes(jax, jnp):
    return jax.vmap(lambda x, y: x + y, in_axes=[0, None])(A, np.float32(1))


def _grads(jax, jnp):
    f = lambda w, x: jnp.tanh(w @ x)  # noqa: E731
    g = jax.vmap(jax.grad(f), in_axes=(None, 0))
    h = jax.grad(lambda w: jax.vmap(f, (None, 0))(w, A).sum())
    w = np.ones(3, np.float32)
    return g(w, A), h(w), str(jax.make_jaxpr(g)(w, A)), str(jax.make_jaxpr(h)(w))


def _out_axes(jax, jnp):
    f = lambda x: {"a": (x, x.sum()), "b": jnp.stack([x, x])}  # noqa: E731
    a = jnp.asarray(A)
    return jax.vmap(f, out_axes={"a": (1, 0), "b": -1})(a), jax.vmap(f, out_axes={"a": 0, "b": 2})(a)


def _indices(jax, jnp):
    x = jnp.arange(12.0).reshape(3, 4)
    i = np.array([0, 2, 1])
    return (
        jax.vmap(lambda r, i: r[i])(x, i),
        jax.vmap(lambda r, i: r.at[i].set(9.0))(x, i),
        jax.vmap(lambda i: x[i], out_axes=1)(i),
        jax.vmap(lambda r: r[::-1], 1, 1)(x),
    )


VALUES = {
    "the default axes": mapped(lambda jnp: lambda x: jnp.sin(x), A),
    "two arguments": mapped(lambda jnp: jnp.add, A, A),
    "another axis": mapped(lambda jnp: lambda x: x.sum(), A, in_axes=1),
    "a negative axis": mapped(lambda jnp: lambda x: x.sum(0), B, in_axes=-1, out_axes=-1),
    "unmapped": mapped(lambda jnp: lambda x, y: x * y, A, np.float32(2), in_axes=(0, None)),
    "trees of axes": mapped(
        lambda jnp: lambda t, y: t["a"] + t["b"][0] * y,
        {"a": A, "b": (A.T, 3.0)},
        2,
        in_axes=({"a": 0, "b": (1, None)}, None),
    ),
    "prefixes of axes": mapped(lambda jnp: lambda t, y: t["a"] + t["b"] + y, {"a": A, "b": A}, A.T, in_axes=(0, 1)),
    "named tuples": mapped(lambda jnp: lambda p: Point(p.y, p.x), Point(A, A.T), in_axes=(Point(1, 0),)),
    "None leaves": mapped(lambda jnp: lambda x, n: (x, n, None), A, None),
    "out axes": _out_axes,
    "results that are not mapped": mapped(lambda jnp: lambda x: (x, 1.0, np.arange(2)), A),
    "results that are not mapped and stay so": mapped(lambda jnp: lambda x: (x, 1.0), A, out_axes=(0, None)),
    "empty trees": mapped(lambda jnp: lambda x, t: (x, t), A, ()),
    "an axis of size zero": mapped(lambda jnp: lambda x: x * 2, np.ones((0, 3), np.float32)),
    "scalars": mapped(lambda jnp: lambda x: x + 1, np.arange(3)),
    "nested": mapped(lambda jnp: lambda x: x.T @ x, B),
    "matrices from products of vectors": _matrix_power,
    "names": _named,
    "two names": _two_names,
    "axis_size": _axis_size,
    "keywords are mapped along axis 0": _keywords,
    "types inside": _concrete,
    "what is not mapped is concrete": _unmapped_stays_concrete,
    "its name": _names,
    "of jit": _of_jit,
    "spmd_axis_name": _spmd,
    "a list of axes": _list_in_axes,
    "of and under grad": _grads,
    "indexing": _indices,
}


ERRORS = {
    "sizes differ": (
        lambda jax, jnp: jax.vmap(jnp.add)(A, A.T),
        "vmap got inconsistent sizes for array axes to be mapped",
    ),
    "sizes differ in a tree": (
        lambda jax, jnp: jax.vmap(lambda t, y: y)({"a": A, "b": A.T}, A),
        "vmap got inconsistent sizes for array axes to be mapped",
        "t['a']",
        "t['b']",
    ),
    "axis_size differs": lambda jax: jax.vmap(lambda x: x, axis_size=5)(A),
    "rank too small": (
        lambda jax: jax.vmap(lambda x: x)(1.0),
        "vmap was requested to map its argument along axis 0, which implies that its rank should be at "
        "least 1, but is "
        "only 0 (its shape is ())",
    ),
    "rank too small for axis": (
        lambda jax: jax.vmap(lambda x: x, in_axes=2)(A),
        "vmap was requested to map its argument along axis 2, which implies that its rank should be at "
        "least 3, but is "
        "only 2 (its shape is (2, 3))",
    ),
    "rank too small for a negative axis": (
        lambda jax: jax.vmap(lambda x: x, in_axes=-3)(A),
        "vmap was requested to map its argument along axis -3",
    ),
    "no axis": (
        lambda jax: jax.vmap(lambda x: x, in_axes=None)(A),
        "vmap must have at least one non-None value in in_axes or axis_size must be specified",
    ),
    "no argument": (lambda jax: jax.vmap(lambda: 1)(), "or axis_size must be specified, got empty *args=() and **kw"),
    "empty arguments": (lambda jax: jax.vmap(lambda x: x)([]), "got empty *args=([],) and **kwargs={}"),
    "number of axes": (
        lambda jax: jax.vmap(lambda x, y: x, in_axes=(0, 0, 0))(A, A),
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments",
        "len(in_axes)=3",
        "len(args)=2",
    ),
    "in_axes is a dictionary": (
        lambda jax: jax.vmap(lambda x: x, in_axes={"x": 0}),
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments",
    ),
    "in_axes is a float": lambda jax: jax.vmap(lambda x: x, in_axes=1.0),
    "in_axes holds text": (lambda jax: jax.vmap(lambda x: x, in_axes=("a",)), "vmap in_axes must be"),
    "out_axes holds text": (lambda jax: jax.vmap(lambda x: x, out_axes="a"), "vmap out_axes must be"),
    "in_axes is no prefix": (
        lambda jax: jax.vmap(lambda x, y: x, in_axes=(0, (0, 0)))(A, A),
        "vmap in_axes specification must be a tree prefix of the corresponding value",
        "different types at key path\n    vmap in_axes[1]\n",
    ),
    "in_axes as a list is no prefix": (
        lambda jax: jax.vmap(lambda x, y: x, in_axes=[(0, 0, 0), 0])((A, A), A),
        "different lengths of tuple at key path\n    vmap in_axes[0]\n",
    ),
    "nested in_axes are no prefix": (
        lambda jax: jax.vmap(lambda x, y: x, in_axes=(0, {"a": (0, [0])}))(A, {"a": (A, (A,))}),
        "different types at key path\n    vmap in_axes[1]['a'][1]\n",
    ),
    "in_axes of other keys": (
        lambda jax: jax.vmap(lambda x: x["a"], in_axes=({"b": 0},))({"a": A}),
        "vmap in_axes specification must be a tree prefix of the corresponding value",
        "different pytree metadata at key path\n    vmap in_axes[0]\n",
    ),
    "out_axes is no prefix": (
        lambda jax: jax.vmap(lambda x: x, out_axes=(0, 0))(A),
        "vmap out_axes specification must be a tree prefix of the corresponding value",
    ),
    "a mapped result without axis": (
        lambda jax: jax.vmap(lambda x: x, out_axes=None)(A),
        "got axis spec None but output was batched on axis 0",
    ),
    "out_axes too large": (
        lambda jax: jax.vmap(lambda x: x, out_axes=2)(A),
        "axis 2 is out of bounds for array of dimension 2",
    ),
    "out_axes too small": (
        lambda jax: jax.vmap(lambda x: x, out_axes=-3)(A),
        "axis -3 is out of bounds for array of dimension 2",
    ),
    "no function": (lambda jax: jax.vmap(3), "callable"),
    "no value": (lambda jax: jax.vmap(lambda x: x)("text"), "not a valid JAX type"),
    "result no value": (lambda jax: jax.vmap(lambda x: "text")(A), "str"),
    "unbound name": (lambda jax: jax.vmap(lambda x: jax.lax.psum(x, "i"))(A), "unbound axis name: i"),
    "bool of a batch": (
        lambda jax: jax.vmap(lambda x: x if x > 0 else -x)(np.arange(3.0)),
        "Attempted boolean conversion of traced array with shape bool[]",
    ),
    "too many arguments": (lambda jax: jax.vmap(lambda x: x)(A, A), "takes 1 positional argument but 2 were given"),
    "shapes inside": (lambda jax, jnp: jax.vmap(jnp.dot)(A, np.ones((2, 4))), "(3,)", "(4,)"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_vmap_gives_the_results_of_jax(name):
    compare.same(VALUES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_vmap_raises_as_in_jax(name):
    program, *phrases = entry if isinstance(entry := ERRORS[name], tuple) else (entry,)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
    )


def test_a_tracer_of_vmap_may_not_escape():
    held = []
    minijax.vmap(lambda x: held.append(x))(A)
    with pytest.raises(minijax.errors.UnexpectedTracerError):
        held[0] + 1


class Named:
    """An array whose axes have names; no tree."""

    def __init__(self, names, data):
        self.names, self.data = names, data


class Spec:
    """An axis by its name."""

    def __init__(self, name, axis):
        self.name, self.axis = name, axis


def named_axes(function):
    """`function(jax, vmap, named)` with `Named` registered, and the calls of the rules."""

    def program(jax, jnp, interpreters):
        told = []

        def to_elt(part, index, x, spec):
            told.append(("to", tuple(x.names), spec.name, spec.axis, index().shape))
            return Named([n for n in x.names if n != spec.name], part(x.data, spec.axis))

        def from_elt(whole, size, x, spec):
            told.append(("from", size, tuple(x.names), spec.name, spec.axis))
            names = list(x.names)
            if spec.axis is not None:
                names.insert(spec.axis, spec.name)
            return Named(names, whole(size, x.data, spec.axis))

        interpreters.batching.register_vmappable(Named, Spec, int, to_elt, from_elt, lambda n: jnp.arange(n))

        def mapped(data):
            out = function(jax, Named(["i", "j"], data))
            return [(tuple(x.names), x.data) if type(x) is Named else x for x in jax.tree.leaves(out)]

        try:
            data = np.arange(12, dtype=np.float32).reshape(3, 4)
            found = mapped(jnp.asarray(data)), str(jax.make_jaxpr(lambda x: [x[1] for x in mapped(x)])(data))
            return found, told
        finally:
            interpreters.batching.unregister_vmappable(Named)

    return program


NUMBERS = np.arange(3, dtype=np.float32)
I0, I1 = Spec("i", 0), Spec("i", 1)
VMAPPABLE = {
    "both": lambda jax, x: [jax.vmap(lambda x, s: Named(x.names, s * x.data), (I0, 0), I1, axis_size=3)(x, NUMBERS)],
    "size of the others": lambda jax, x: [jax.vmap(lambda x, s: Named(x.names, s * x.data), (I0, 0), I1)(x, NUMBERS)],
    "naked": lambda jax, x: [jax.vmap(lambda x: x, I0, I1, axis_size=3)(x)],
    "negative": lambda jax, x: [jax.vmap(lambda x: x, (Spec("i", -2),), Spec("i", -1), axis_size=3)(x)],
    "unmapped": lambda jax, x: [jax.vmap(lambda x, s: x, (Spec("", None), 0), Spec("", None))(x, NUMBERS)],
    "made": lambda jax, x: [jax.vmap(lambda x, s: Named(["k"], x.data[0] * s), (Spec("", None), 0), I0)(x, NUMBERS)],
    "in trees": lambda jax, x: [jax.vmap(
        lambda d: [Named(d[0].names, d[0].data + d[1])], ((I0, 0),), I1)((x, NUMBERS))],
    "named": lambda jax, x: [jax.vmap(
        lambda x: Named(x.names, x.data + jax.lax.axis_index("n") - jax.lax.psum(x.data, "n")), I0, I1,
        axis_size=3, axis_name="n")(x)],
    "nested": lambda jax, x: [jax.vmap(jax.vmap(
        lambda x: Named(x.names, x.data * 2), Spec("j", 0), Spec("j", 0), axis_size=4), I0, I1, axis_size=3)(x)],
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", VMAPPABLE)
def test_vmap_of_registered_types(name):
    compare.same(named_axes(VMAPPABLE[name]))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "function",
    [lambda jax, x: jax.vmap(lambda x: x, I0, I1)(x), lambda jax, x: jax.vmap(lambda x: x, object())(x),
     lambda jax, x: jax.vmap(lambda x, s: x, (I0, 0), Spec("i", None))(x, NUMBERS)],
)  # fmt: skip
def test_misuse_of_registered_types(function):
    def program(jax, jnp, interpreters):
        return lambda: named_axes(function)(jax, jnp, interpreters)

    compare.same_refusal(program)


def test_unregistered_types_are_refused_as_arguments():
    named_axes(lambda jax, x: [])(minijax, minijax.numpy, __import__("minijax.interpreters").interpreters)
    with pytest.raises(TypeError, match="in_axes must be an int"):
        minijax.vmap(lambda x: x, I0, axis_size=3)(Named(["i"], A))
