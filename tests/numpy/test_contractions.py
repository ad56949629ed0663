"""Contractions, against jax: types, jaxprs and texts for all, values for a part."""

import dataclasses
import random
import re

import numpy as np
import pytest
from compare import LISTED, Case, check_eager, same, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

EQUATIONS = """
    ij,jk->ik 23 34 | ij,jk 23 34 | ij,jk->ki 23 34 | ij,jk,kl->il 23 34 45 | ij-> 23 | ij->ji 23 | ij->i 23
    ij->ij 23 | ii->i 33 | ii 33 | ii-> 33 | ij,ij-> 23 23 | ij,ij->ij 23 23 | ij,ij->i 23 23 | i,j->ij 3 3
    i,j->ji 3 3 | bij,bjk->ikb 523 534
    bij,bjk->ik 523 534 | bij,cjk->ik 523 534 | ...ij,...jk->...ik 523 534
    ...ij,jk->...ik 523 34 | ...ij,...jk 523 534 | ii,ij->j 33 33 | iij->j 332 | iji->ij 323 | ij,jk-> 23 34
    ,ij->ij - 23 | i,i,i->i 3 3 3 | i,i,i-> 3 3 3 | bi,bj,bk->bijk 33 33 33 | i...->... 23 | ij,ij->ij 13 23
    ij,kj->i 13 23 | bij,bjk->bik 123 534 | iii->i 333 | iijj->ij 3322 | ib,jb,kb->ijk 27 37 47
    aibj,jbia->ab 2345 5432 | abij,jiba->ba 2345 5432 | ijab,abji->ia 2345 4532 | ijab,bakji->kab 2345 54632
    ijij->ji 2323 | ii,ii->i 33 33 | iik,kjj->ij 334 422 | ij,jk->ik 21 34 | ij,jk->ik 21 14
    ...i,...i->... 513 143 | ...i,i...->i... 43 354 | ij,ij,ij-> 23 23 23 | a,b,c->cab 2 3 4 | a,a-> 1 3
    ab,ab-> 13 21 | ij,jh,hk,km->im 23 34 45 56 | iikj->jk 2243 | -> - | ij->j 03 | ij,jk->ik 20 04 | ii->i 13
    ij,jk,kl,lm,mn->in 29 93 38 84 47 | i$->i 23 | ba 23 | b...,b...->b... 234 24
"""
WRONG = "ii->ii 33 | ij,jk->iz 23 34 | ij,jk 23 | ijk 23 | ij,jk->ik 23 44 | i.j->i 23 | ij-ji 23 | ii->i 23"


def array(*shape, dtype="float32"):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3 % 7 - (0 if dtype in ("bool", "uint8") else 2)
    return (numbers * (1 + 0.5j) if dtype.startswith("c") else numbers).astype(np.dtype(dtype))


def sum_of(row, dtype="float32", **options):
    equation, *shapes = row.split()
    args = tuple(array(*map(int, s.strip("-")), dtype=dtype) for s in shapes)
    return Case(f"{row}-{dtype}-{options}", lambda jnp: lambda *a: jnp.einsum(equation, *a, **options), args)


def rows(text):
    return [row.strip() for line in text.strip().splitlines() for row in line.split("|")]


def call(name, *args, raises=False, **options):
    return Case(
        f"{name}-{[np.shape(a) for a in args]}-{options}",
        lambda jnp: lambda *a: getattr(jnp, name)(*a, **options),
        args,
        raises=raises,
    )


def wrong(program):
    same(program, raises=True)


def test_equations_give_the_same_sums_and_products(tier):
    sweep([sum_of(row) for row in rows(EQUATIONS)], tier)


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "complex64"])
def test_einsum_keeps_the_dtype(dtype, tier):
    sweep([sum_of(row, dtype) for row in ("ij,jk->ik 23 34", "ij->i 23", "ii->i 33")], tier)


def test_einsum_takes_options():
    some = [dict(optimize=o) for o in (False, True, "greedy", [(1, 2), (0, 1)], [(0,), (0, 1), (0, 1)])]
    some += [dict(precision="highest"), dict(preferred_element_type=np.float16)]
    cases = [sum_of("ij,jk,kl->il 23 34 45", **options) for options in some]
    sweep([*cases, *(sum_of(row, preferred_element_type=np.float16) for row in ("ij->i 23", "ij->ij 23"))])


def _einsum_of(equation):
    return lambda jnp: lambda *a: jnp.einsum(equation, *a)


def test_einsum_promotes_and_keeps_weak_types():
    pairs = [
        ("i,->i", (array(3), 2.0)),
        ("i,->i", (array(3, dtype="int32"), 2.0)),
        (",", (2, 2.0)),
        ("->", (2,)),
        ("ij,jk", (array(2, 3), array(3, 4, dtype="int32"))),
    ]
    sweep([Case(f"{e}-{i}", _einsum_of(e), args) for i, (e, args) in enumerate(pairs)])


def test_einsum_takes_operands_between_lists_of_labels():
    forms = [
        lambda jnp: lambda a, b: jnp.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        lambda jnp: lambda a, b: jnp.einsum(a, [0, 1], b, [1, 2]),
        lambda jnp: lambda a, b: jnp.einsum(a, [..., 60, 1], b, [1, ...], [...]),
    ]
    sweep([Case(f"lists-{i}", form, (array(2, 3), array(3, 4))) for i, form in enumerate(forms[:2])])
    sweep([Case("lists-2", forms[2], (array(4, 2, 3), array(3, 4)))])


def test_orders_of_up_to_four_operands_are_as_jax_has_them():
    draw = random.Random(0)
    cases = []
    for count in [3] * 12 + [4] * 8:
        terms = ["".join(draw.sample("abcdef", draw.randint(1, 3))) for _ in range(count)]
        sizes = {c: draw.randint(2, 5) for c in "abcdef"}
        letters = sorted(set("".join(terms)))
        out = "".join(draw.sample(letters, draw.randint(0, min(3, len(letters)))))
        shapes = " ".join("".join(str(sizes[c]) for c in t) for t in terms)
        cases.append(sum_of(f"{','.join(terms)}->{out} {shapes}"))
    sweep(cases)


@pytest.mark.parametrize("row", rows(WRONG))
def test_wrong_equations_raise_the_same(row):
    case = sum_of(row)
    wrong(lambda jnp: jnp.einsum(row.split()[0], *case.args))


def test_wrong_options_of_einsum_raise_the_same():
    a, b, c = array(2, 3), array(3, 4), array(4, 5)
    wrong(lambda jnp: jnp.einsum("ij->", a, out=a))
    wrong(lambda jnp: jnp.einsum("ij,jk,kl", a, b, c, optimize="other"))
    wrong(lambda jnp: jnp.einsum("ij,jk,kl", a, b, c, optimize=[(0, 1, 2)]))
    wrong(lambda jnp: jnp.einsum("i", [1.0]))


PATHS = """
ij,jk->ik 23 34
ij,jk,kl->il 23 34 45
ij,jk,kl,lm 35 57 72 27
ij-> 23
ii->i 33
ij,ij->ij 23 23
ij,ij 23 23
ij,ji 23 32
ij,kj->ik 23 43
ki,kj->ij 32 34
ij,j 23 3
a,b->ab 2 3
bij,jk,kl->bl 235 57 72
abc,cbd->ad 234 435
ij,jk->ik 21 34
...i,ij 723 34
"""


def printed(value):
    """The text of a field of PathInfo, with the letters of each set in order: the order of a set is the process's."""
    return re.sub(r"(?<=\{)'[^{}:]*'(?=\})", lambda found: ", ".join(sorted(found[0].split(", "))), str(value))


@pytest.mark.parametrize("optimize", ["auto", "greedy", False, True])
@pytest.mark.parametrize("row", PATHS.strip().splitlines())
def test_einsum_path_is_jaxs(row, optimize):
    equation, *shapes = row.split()

    def program(jnp):
        args = (jnp.ones([int(n) for n in shape]) for shape in shapes)
        path, info = jnp.einsum_path(equation, *args, optimize=optimize)
        return (
            path,
            str(info),
            type(info).__name__,
            {name: printed(value) for name, value in vars(info).items() if name != "indices"},
        )

    same(program)


@pytest.mark.parametrize("transform", ["grad", "vmap", "vmap_of_grad", "jvp"])
def test_contractions_transform(transform, tier):
    cases = [
        sum_of("bij,bjk->ikb 223 234"),
        sum_of("ii,ij->j 33 33"),
        call("trace", array(3, 3)),
        call("kron", array(2, 3), array(3)),
        call("vecdot", array(2, 3), array(3)),
        call("outer", array(2), array(3)),
        call("tensordot", array(2, 3), array(3, 2), axes=1),
    ]
    sweep([transformed(case, transform) for case in cases], tier)


A, N, Z = array(2, 3), array(3, 4, dtype="int32"), array(2, 3, dtype="complex64")
T, V = array(5, 2, 3), array(3)
HOW = dict(precision="high", preferred_element_type=np.float16)
PRODUCTS = [
    *(call("tensordot", A, array(3, 4), axes=x) for x in (0, 1, -1, ([1], [0]), (1, 0))),
    call("tensordot", A, array(3, 2), axes=((-1, 0), (0, -1))), call("tensordot", T, array(2, 3, 7)),
    call("tensordot", A, N, axes=1), call("tensordot", A, array(3, 4), axes=1, **HOW),
    call("inner", A, array(4, 3)), call("inner", A, np.float32(3)), call("inner", A, 2.0),
    call("inner", A, A, **HOW),
    call("inner", A, np.float32(2), preferred_element_type=np.float16),
    call("outer", A, V), call("outer", N, V), call("outer", 2, V), call("outer", A, N),
    call("vdot", Z, Z), call("vdot", A, A, **HOW), call("vdot", A, Z), call("vdot", 2, 3.0),
    call("vecdot", Z, Z), call("vecdot", T, A), call("vecdot", T, T, axis=0), call("vecdot", V, V, **HOW),
    call("vecdot", array(1, 2, 3), array(4, 1, 3)),
    call("matvec", A, V), call("matvec", T, V), call("vecmat", V, array(5, 3, 4)),
    call("vecmat", Z, array(2, 3, 4)),
    call("kron", A, array(3, 4)), call("kron", V, N), call("kron", np.float32(2), N), call("kron", 2, 3.0),
    call("kron", T, V), call("trace", A), call("trace", A, offset=1),
    call("trace", A, offset=-1, dtype=np.float16),
    call("trace", T, axis1=-1, axis2=0), call("trace", Z, offset=7),
    *(call("trace", array(3, 3, dtype=d)) for d in ("bool", "int8", "uint16", "int32", "float16")),
]  # fmt: skip


def test_products_agree(tier):
    sweep(PRODUCTS, tier)


def test_products_run_eagerly():
    for case in (sum_of("ij,jk->ki 23 34"), call("kron", A, V), call("trace", A), call("vecdot", T, A)):
        check_eager(case)


def test_wrong_operands_raise_the_same():
    for axes in (5, (1, 1, 1), ([0], [0, 1]), ([5], [0]), ([0, 0], [0, 1]), "x", ([1], 0), 1.5, (0, 0)):
        wrong(_calling("tensordot", A, array(3, 4), axes=axes))
    for name in ("inner", "vdot", "vecdot", "outer", "kron", "tensordot"):
        wrong(_calling(name, [1], 2))
    for options in (dict(axis1=0, axis2=0), dict(axis1=5), dict(out=A), dict(offset=1.0)):
        wrong(_calling("trace", A, **options))
    for name, *args in (("trace", V), ("inner", A, array(3, 4)), ("vecdot", A, array(3, 4)), ("matvec", V, V)):
        wrong(_calling(name, *args))
    for excluded in ({-1}, {1.5}):
        wrong(_calling("vectorize", abs, excluded=excluded))


def _calling(name, *args, **options):
    return lambda jnp: getattr(jnp, name)(*args, **options)


def vectorized(function, signature, *args, **options):
    return Case(
        f"{signature}-{[np.shape(a) for a in args]}-{options}",
        lambda jax, jnp: jnp.vectorize(lambda *a: function(jnp, *a), signature=signature, **options),
        args,
        raises=LISTED,
    )


def test_vectorize_broadcasts_over_leading_axes(tier):
    sweep(
        [
            vectorized(lambda jnp, x: jnp.sin(x), None, A),
            vectorized(lambda jnp, x, y: jnp.sin(x) * y, None, A, V),
            vectorized(lambda jnp, x, y: jnp.sin(x) * y, None, array(2, 1), array(1, 3)),
            vectorized(lambda jnp, x, y: x + y, None, array(1, 3), array(1, 3)),
            vectorized(lambda jnp, x, y: (x + y, x.sum()), "(n),(n)->(n),()", A, V),
            vectorized(lambda jnp, x, y: x @ y, "(n,m),(m,k)->(n,k)", T, array(4, 1, 3, 2)),
            vectorized(lambda jnp, x, y: (x * y).sum(), "(n)->()", A, 2.0, excluded={1}),
            vectorized(lambda jnp, x: x[:2], "(n)->(m)", A),
            vectorized(lambda jnp, x: jnp.arange(3) + x, "()->(n)", V),
            vectorized(lambda jnp, x: {"a": x}, None, array(0, 3)),
            *(
                dataclasses.replace(vectorized(lambda jnp, *a: a[0], s, A, V), raises=True)
                for s in ("(n),(m)->()", "n->", "(n)->(n)", "(n),(n)->(n),()")
            ),
            vectorized(lambda jnp, x: (x, x), "(n)->(n)", A),
            vectorized(lambda jnp, x: x, "(n)->(n,n)", A),
            vectorized(lambda jnp, x, y: x, "(n),(n)->()", array(2), V),
            vectorized(lambda jnp, x, y: x, "(n,m),(m)->(n)", V, V),
        ],
        tier,
    )


def test_vectorize_passes_none_on():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    add = lambda a, b: a if b is None else a + b  # noqa: E731
    dot = lambda a, b, c: a @ c  # noqa: E731
    same(lambda jax: jax.numpy.vectorize(add)(x, None))
    same(lambda jax: jax.jit(jax.numpy.vectorize(add))(x, None))
    same(lambda jax: jax.numpy.vectorize(dot, signature="(n),(),(n)->()")(x, None, x))
    same(lambda jax: jax.numpy.vectorize(dot, signature="(n),(n),(n)->()")(x, None, x), raises="ValueError")


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "options"),
    [
        (lambda a, b, c=1: a * b + c, (np.arange(3.0),), dict(b=np.arange(3.0)), {}),
        (lambda a, b, c=1: a * b + c, (np.arange(3.0),), dict(c=2, b=np.arange(3.0)), dict(excluded={"c"})),
        (lambda a, b, c=1: a * b + c, (), dict(b=np.arange(3.0), a=np.ones((2, 1))), {}),
        (lambda a, b: a @ b, (np.ones((2, 3)),), dict(b=np.arange(3.0)), dict(signature="(n),(n)->()")),
    ],
)
def test_vectorize_maps_keyword_arguments_as_numpy(function, args, kwargs, options):
    """jax does not pass them on."""
    ours = minijax.numpy.vectorize(function, **options)(*args, **kwargs)
    np.testing.assert_array_equal(ours, np.vectorize(function, **options)(*args, **kwargs))


DTYPES = "bool int8 uint32 int32 float16 bfloat16 float32 complex64".split()


@pytest.fixture
def at_once():
    """Calls compile their programs, so that both sides raise there for conversions that XLA refuses."""
    before = minijax.config.minijax_compile_ahead
    minijax.config.update("minijax_compile_ahead", False)
    yield
    minijax.config.update("minijax_compile_ahead", before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("equation", ["i,j->i", "i,j->", "ij,ik->", "ij,j->j", "ii,i->i", "ij->i", "ij->"])
def test_sums_of_einsum_have_the_preferred_type(equation, at_once):
    shapes = [(3, 3)[: len(names)] for names in equation.split("->")[0].split(",")]
    cases = [
        Case(
            f"{equation}-{left}-{right}-{preferred}",
            lambda jnp, preferred=preferred: lambda *a: jnp.einsum(equation, *a, preferred_element_type=preferred),
            tuple(array(*shape, dtype=dtype) for shape, dtype in zip(shapes, (left, right), strict=False)),
        )
        for left in DTYPES
        for right in (DTYPES if len(shapes) > 1 else DTYPES[:1])
        for preferred in (None, "float32")
    ]
    sweep(cases)
