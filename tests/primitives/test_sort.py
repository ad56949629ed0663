"""Sorting and the largest k, against jax: programs, texts and values."""

import ml_dtypes
import numpy as np
import pytest
from compare import Case, same_error, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

DTYPES = (bool, np.int8, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32, np.complex64)
TRANSFORMS = ("plain", "jvp", "vjp", "vmap", "vmap_of_grad", "grad_of_vmap")


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).randn(*sizes) * 3
    return np.asarray(values > 0 if dtype is bool else values).astype(dtype)


X = array(3, 4)
N = array(3, 4, dtype=np.int32)
SORTS = [
    Case("last", lambda lax: lambda x: lax.sort(x), (X,)),
    Case("first", lambda lax: lambda x: lax.sort(x, dimension=0, is_stable=False), (X,)),
    Case("pair", lambda lax: lambda x, y: lax.sort((x, y), num_keys=2), (X, X)),
    Case("three", lambda lax: lambda x, y: lax.sort((x, N, y), 0, False, 2), (X, X)),
    Case("carried", lambda lax: lambda x, y: lax.sort((x, y)), (X, X)),
    Case("key-val", lambda lax: lambda x, y: lax.sort_key_val(x, y, dimension=0), (X, X)),
    Case("one-of-many", lambda lax: lambda x: lax.sort((x,)), (X,)),
    Case("top", lambda lax: lambda x: lax.top_k(x, 2)[0], (X,)),
    Case("top-first", lambda lax: lambda x: lax.top_k(x, 2, axis=0)[0], (X,)),
    Case("top-none", lambda lax: lambda x: lax.top_k(x, 0)[0], (X,)),
]


def test_sorts_under_every_transform_equal_jax_s():
    sweep([transformed(c, t) for c in SORTS for t in TRANSFORMS])
    sweep([transformed(c, t) for c in SORTS[:5] for t in ("jvp_of_grad", "hessian")])


def test_results_are_as_weak_as_in_jax():
    def program(lax):
        def f(x):
            x = lax.broadcast_in_dim(x, (3,), ())
            return lax.sort((x, N[:, 0]), num_keys=np.int64(1)), lax.top_k(x, np.int64(2))

        return f

    sweep([Case("weak", program, (1.5,))])


def test_sorts_of_nothing_equal_jax_s():
    cases = [Case(f"{shape}", lambda lax: lambda x: lax.sort(x), (array(*shape),)) for shape in ((0, 3), (3, 0))]
    sweep([transformed(c, t) for c in cases for t in ("plain", "vmap")])


def test_sorts_of_every_dtype_equal_jax_s():
    numbers = array(3, 4, dtype=np.int32)
    sweep([Case(f"sort-{np.dtype(d)}", lambda lax: lambda x: lax.sort(x), (array(3, 4, dtype=d),)) for d in DTYPES])
    sweep([Case(f"two-{np.dtype(d)}", lambda lax: lambda n, x: lax.sort((n, x), num_keys=2),
                (numbers, array(3, 4, dtype=d))) for d in DTYPES])  # fmt: skip
    sweep(
        [
            Case(
                f"top-{np.dtype(d)}",
                lambda lax: lambda x: lax.top_k(x, 2),
                (array(3, 4, dtype=d),),
                raises=d is np.complex64,
            )
            for d in DTYPES
        ]
    )


def test_nan_is_last_and_both_zeros_are_equal():
    special = np.array([[1, -0.0, np.nan, 0.0, -np.inf], [-np.nan, 2, 0, -0.0, 3]], np.float32)
    order = np.arange(10, dtype=np.int32).reshape(2, 5)
    sweep(
        [
            Case("sort", lambda lax: lambda x, y: lax.sort((x, y)), (special, order)),
            Case("top", lambda lax: lambda x: lax.top_k(x, 3), (special,)),
        ],
        tier="full",
    )


@pytest.mark.parametrize("axes", [(0, 1), (1, None), (None, 1), (1, 0)])
def test_operands_batched_in_different_places_are_brought_together_as_in_jax(axes):
    def program(jax):
        return jax.vmap(lambda x, y: jax.lax.sort((x, y)), in_axes=axes)

    sweep([Case(str(axes), program, tuple(array(3) if a is None else array(3, 3) for a in axes))])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_top_k_is_batched_as_in_jax(axis):
    def program(jax):
        return jax.vmap(lambda x: jax.lax.top_k(x, 1, axis=0), in_axes=axis)

    sweep([Case(str(axis), program, (array(2, 3, 4),))])


@pytest.mark.parametrize("call", [
    lambda lax: lax.sort(()), lambda lax: lax.sort(X, dimension=2), lambda lax: lax.sort(X, num_keys=2),
    lambda lax: lax.sort((X, X), num_keys=0), lambda lax: lax.sort_key_val(X, X[0]),
    lambda lax: lax.top_k(X, 9), lambda lax: lax.top_k(X, -1), lambda lax: lax.top_k(X, 1, axis=5),
    lambda lax: lax.top_k(X, 1.5), lambda lax: lax.sort(X, dimension=1.0), lambda lax: lax.sort(X[0, 0]),
    lambda lax: lax.top_k(X[0, 0], 0), lambda lax: lax.top_k(X, None), lambda lax: lax.sort((X, X), num_keys=3),
    lambda lax: lax.sort(X, dimension=None), lambda lax: lax.top_k(X, 1, axis=None)])  # fmt: skip
def test_operands_and_arguments_that_do_not_fit_are_rejected(call):
    same_error(*(lambda m=m: call(m.lax) for m in (minijax, pytest.importorskip("jax"))))
