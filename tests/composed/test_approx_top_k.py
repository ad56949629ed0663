"""Approximately the largest and smallest k, against jax: programs, texts and values."""

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, canonical, ours, run_on, same, same_error, same_lines, sweep, theirs
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

X = np.random.RandomState(0).randn(4, 5).astype(np.float32)
NAMES = ("approx_max_k", "approx_min_k")


def found(name, k=2, part=slice(None), **how):
    return lambda lax: lambda x: getattr(lax, name)(x, k, **how)[part]


CASES = [
    Case(f"{name}-{label}", found(name, part=part, **how), (x,))
    for name in NAMES
    for label, part, how, x in [
        ("last", 0, {}, X),
        ("first", 0, dict(reduction_dimension=0, recall_target=0.8), X),
        ("negative", 0, dict(reduction_dimension=-2, k=4), X),
        ("one-column", 0, dict(reduction_dimension=0), X[:, :1]),
        ("override", 0, dict(reduction_input_size_override=10), X),
    ]
]


def test_the_best_under_every_transform_equal_jax_s():
    sweep(
        [
            transformed(c, t)
            for c in CASES
            for t in ("plain", "jit", "jvp", "vjp", "vmap", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad")
        ]
    )
    places = [Case(f"{name}-places", found(name), (X,)) for name in NAMES]
    sweep([transformed(c, t) for c in places for t in ("plain", "jvp", "vmap")], tier="full")


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reduced", [0, 1, -1, -2])
def test_every_axis_is_batched_as_in_jax(axis, reduced):
    def program(jax):
        return jax.vmap(run_on(jax, found("approx_max_k", reduction_dimension=reduced)), in_axes=axis)

    sweep([Case(f"{axis}-{reduced}", program, (np.stack([X, 2 * X, -X]),))])


def test_every_dtype_equals_jax_s():
    floats = (np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn)
    sweep(
        [
            Case(f"{name}-{np.dtype(d)}", found(name), (X.astype(d),), raises=LISTED)
            for name in NAMES
            for d in (*floats, np.int32, bool, np.complex64)
        ]
    )
    sweep([Case("weak", lambda lax: lambda x: lax.approx_max_k(lax.broadcast_in_dim(x, (3,), ()), 2), (1.5,))])


def test_more_than_k_are_as_many_as_in_jax():
    wide = np.random.RandomState(0).randn(3, 5000).astype(np.float32)
    cases = [
        Case(
            f"{k}-{target}-{size}",
            found("approx_max_k", k, aggregate_to_topk=False, recall_target=target, reduction_input_size_override=size),
            (wide,),
        )
        for k in (1, 50)
        for target in (0.5, 0.95)
        for size in (-1, 9000)
    ]
    sweep(cases)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_other_platforms_have_jax_s_text(platform):
    def text(jax):
        traced = jax.jit(run_on(jax, found("approx_max_k"))).trace(X)
        lowered = canonical(traced.lower(lowering_platforms=(platform,)).as_text())
        return lowered.replace("stablehlo.return", "return")

    same_lines("StableHLO", text(ours()), text(theirs()))


def test_results_are_lists():
    same(lambda lax: lax.approx_min_k(operand=X, k=1))


@pytest.mark.parametrize("call, phrase", [
    (lambda lax: lax.approx_max_k(X, 0), "k must be positive"),
    (lambda lax: lax.approx_max_k(X, 9), "k must be smaller than the size"),
    (lambda lax: lax.approx_max_k(X, 1, 2), ""), (lambda lax: lax.approx_max_k(X, 1, -3), ""),
    (lambda lax: lax.approx_max_k(np.float32(1), 1), ">= 1 dimension"),
    (lambda lax: lax.approx_max_k(X.astype(int), 1), "must be a floating type"),
    (lambda lax: lax.approx_max_k([1.0, 2.0], 1), "")])  # fmt: skip
def test_arguments_that_do_not_fit_are_rejected(call, phrase):
    same_error(lambda: run_on(ours(), call), lambda: run_on(theirs(), call), [phrase])
