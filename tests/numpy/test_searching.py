"""Sorting and searching, against jax: types, jaxprs and texts for all, values for a part."""

import numpy as np
import pytest
from compare import Case, check_eager, same, sweep
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

DTYPES = ("bool", "int8", "uint32", "bfloat16", "float32", "complex64")
METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


def array(*shape, dtype="float32"):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 5 % 7
    return (numbers * (1 + 0.5j) if dtype.startswith("c") else numbers).astype(np.dtype(dtype))


def calling(name, *args, **options):
    return lambda jnp: getattr(jnp, name)(*args, **options)


def call(name, *args, **options):
    return Case(
        f"{name}-{[np.shape(a) for a in args]}-{[getattr(a, 'dtype', a) for a in args]}-{options}",
        lambda jnp: lambda *a: getattr(jnp, name)(*a, **options),
        args,
    )


A, V = array(2, 3), np.sort(array(5))
SPECIAL = np.array([np.nan, -0.0, 1, 0.0, -np.inf, np.nan, np.inf, -1], np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_sorted(dtype, tier):
    a, v = array(2, 3, dtype=dtype), np.sort(array(4, dtype=dtype))
    cases = [call("sort", a), call("argsort", a, descending=True), call("lexsort", (a, a)), call("sort_complex", a)]
    sweep([*cases, *(call("searchsorted", v, a[0], method=m) for m in METHODS)], tier)


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sorts_take_options(name, tier):
    some = [
        dict(axis=0),
        dict(axis=None),
        dict(descending=True),
        dict(stable=False),
        dict(axis=0, stable=False, descending=True),
    ]
    some += [dict(dtype=np.int8), dict(dtype=np.float32)] if name == "argsort" else []
    sweep([*(call(name, A, **options) for options in some), call(name, 2.0, axis=None), call(name, array(0, 3))], tier)


def test_keys_come_in_a_sequence_or_an_array(tier):
    sweep(
        [
            call("lexsort", A),
            call("lexsort", (V,)),
            call("lexsort", (2.0, 3.0)),
            call("lexsort", [A, A], axis=0),
            call("lexsort", (A, array(2, 3, dtype="int32"))),
            call("lexsort", (array(0, 3),) * 2),
        ],
        tier,
    )


def test_searches_agree(tier):
    cases = [
        call("searchsorted", V, q, side=s, method=m)
        for q in (np.float32(2), A[0], V[:0])
        for m in METHODS
        for s in ("left", "right")
    ]
    cases += [
        call("searchsorted", V, 2),
        call("searchsorted", array(0), A),
        call("searchsorted", V, 2j),
        *(call("searchsorted", V, A, method=m) for m in METHODS[:3]),
        call("searchsorted", array(0), A, method="sort"),
        call("searchsorted", V, array(3, dtype="int32")),
        Case(
            "sorter",
            lambda jnp: lambda a, v, i: jnp.searchsorted(a, v, sorter=i),
            (V[::-1].copy(), A, np.arange(5)[::-1].copy()),
        ),
    ]
    sweep(cases, tier)


def test_nan_and_zeros_of_either_sign_have_their_places():
    ordered = np.sort(SPECIAL)
    for case in (
        call("sort", SPECIAL),
        call("argsort", SPECIAL),
        call("argsort", SPECIAL, descending=True),
        *(call("searchsorted", ordered, SPECIAL, method=m, side=s) for m in METHODS for s in ("left", "right")),
    ):
        check_eager(case)


@pytest.mark.parametrize("transform", ["grad", "vmap", "vmap_of_grad", "jvp"])
def test_sorts_transform(transform, tier):
    cases = [call("sort", A), call("sort", A, axis=0, descending=True)]
    if transform != "jvp":  # float0 tangents of jitted functions are constants here, broadcasts there
        cases += [call("argsort", A), call("searchsorted", V, A)]
    sweep([transformed(case, transform) for case in cases], tier)


def test_places_are_wide_where_ints_are():
    def program(jax, jnp):
        with jax.enable_x64(True):
            wide = jnp.argsort(A), jnp.lexsort((A, A)), jnp.lexsort((2.0,)), jnp.searchsorted(V, A)
            return [str(x.dtype) for x in wide]

    same(program)


def test_methods_of_arrays_sort(tier):
    sweep(
        [
            Case("sort", lambda jnp: lambda x: x.sort(axis=0), (A,)),
            Case("argsort", lambda jnp: lambda x: x.argsort(), (A,)),
            Case("searchsorted", lambda jnp: lambda x: x.searchsorted(2.0), (V,)),
            Case("trace", lambda jnp: lambda x: x.trace(), (A,)),
            Case("dot", lambda jnp: lambda x: x.dot(x), (V,)),
        ],
        tier,
    )


WRONG = [
    *((name, (A,), options) for name in ("sort", "argsort") for options in (
        dict(kind="stable"), dict(order=1), dict(axis=5), dict(axis=1.5), dict(axis=(0,)))),
    ("sort", (2,), {}), ("sort", ([1, 2],), {}), ("sort", (None,), {}),
    ("lexsort", ((),), {}), ("lexsort", (3,), {}),
    ("lexsort", ((A, V),), {}), ("lexsort", ((V, V),), dict(axis=1)), ("searchsorted", ([1, 2], 3), {}),
    ("searchsorted", (A, A), {}), ("searchsorted", (V, A), dict(side="middle")),
    ("searchsorted", (V, A), dict(method="guess")), ("searchsorted", (V, V), dict(sorter=V)),
]  # fmt: skip


@pytest.mark.parametrize("name, args, options", WRONG)
def test_wrong_arguments_raise_the_same(name, args, options):
    same(calling(name, *args, **options), raises=True)


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("dtype", ["complex64", "float32"])
def test_nans_with_different_payloads_are_distinguished_as_in_jax(dtype, equal_nan):
    nan = np.nan
    kinds = np.array([complex(nan, 1), complex(1, nan), complex(nan, nan), 1 + 1j, complex(nan, 1), 1 + 1j, 0])
    x = np.stack([kinds, -kinds]).astype(dtype if dtype[0] == "c" else "complex64")
    x = x if dtype[0] == "c" else x.real
    for options in (
        {},
        {"axis": 1},
        {"size": 4},
        {"return_index": True, "return_inverse": True, "return_counts": True},
    ):
        same(lambda jax, options=options: jax.numpy.unique(x, equal_nan=equal_nan, **options))


def test_unravelled_shapes_may_be_traced():
    same(lambda jax: jax.jit(lambda i, n: jax.numpy.unravel_index(i, (n, 3)))(7, 5))
