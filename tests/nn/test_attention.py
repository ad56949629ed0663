"""Dot-product attention: jaxprs, values, derivatives and errors, against jax, and against its formula."""

import ml_dtypes
import numpy as np
import pytest
from compare import Case, same_jaxpr, same_misuse, sweep

import minijax as jax
import minijax.numpy as jnp

Q = np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2) / 10
K = np.arange(80, dtype=np.float32).reshape(2, 5, 4, 2) / 20
V = -K
BIAS, MASK = np.linspace(-1, 1, 120, dtype=np.float32).reshape(2, 4, 3, 5), np.tril(np.ones((1, 1, 3, 5), bool))
ONE, FEW = np.int32([1, 2]), np.int32([3, 4])
CLOSE = {"rtol": 2e-6, "atol": 1e-6, "why": "XLA fuses the programs of a group in another way"}
OPTIONS = {
    "plain": {},
    "xla": {"implementation": "xla"},
    "mask": {"mask": MASK, "scale": 0.3},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (1, 2)},
    "causal window": {"local_window_size": 1, "is_causal": True},
    "lengths": {"query_seq_lengths": ONE, "key_value_seq_lengths": FEW},
    "lengths of queries": {"query_seq_lengths": ONE, "return_residual": True},
    "lengths of keys": {"key_value_seq_lengths": FEW},
    "residual": {"return_residual": True},
}


def attention(options):
    def program(jax):
        placed = {k: jax.numpy.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return lambda *operands: jax.nn.dot_product_attention(*operands, **placed)

    return program


CASES = [
    *[Case(name, attention(options), (Q, K, V), tolerance=CLOSE) for name, options in OPTIONS.items()],
    Case("bias", attention({}), (Q, K, V, BIAS), tolerance=CLOSE),
    Case("groups", attention({"is_causal": True}), (Q, K[:, :, :2], V[:, :, :2]), tolerance=CLOSE),
    Case("bias of groups", attention({"mask": MASK}), (Q, K[:, :, :2], V[:, :, :2], BIAS), tolerance=CLOSE),
    Case("one bias of groups", attention({}), (Q, K[:, :, :1], V[:, :, :1], BIAS[:, :1]), tolerance=CLOSE),
    Case("no batch", attention({}), (Q[0], K[0], V[0]), tolerance=CLOSE),
    Case("bfloat16", attention({}), tuple(x.astype("bfloat16") for x in (Q, K, V)), tolerance=CLOSE),
    Case("no queries", attention({}), (Q[:, :0], K, V), tolerance=CLOSE),
    Case(
        "vmap of grad",
        lambda jax: jax.vmap(jax.grad(lambda *operands: attention({"is_causal": True})(jax)(*operands).sum())),
        (Q, K, V),
        tolerance=CLOSE,
    ),
]


@pytest.mark.oracle
def test_attention_is_jax_s(tier):
    sweep(CASES, tier)


@pytest.mark.oracle
def test_half_precision_is_summed_in_single_precision(tier):
    """jax requests an algorithm that CPUs do not have, and fails under jit."""
    halves = tuple(x.astype(np.float16) for x in (Q, K, V))
    case = Case("float16", attention({}), halves)
    mine = np.asarray(case.program(jax)(*halves))
    theirs = np.asarray(case.program(__import__("jax"))(*halves))
    assert mine.dtype == theirs.dtype == np.float16
    np.testing.assert_allclose(mine, theirs, rtol=2e-3)


@pytest.mark.oracle
def test_types_of_residuals_and_of_masked_logits():
    def half(jax):
        return lambda q, k: jax.nn.dot_product_attention(q, k, k, return_residual=True)

    def double(jax):
        return lambda q, k, m: jax.nn.dot_product_attention(q, k, k, mask=m)

    halves = [x.astype(ml_dtypes.bfloat16) for x in (Q, K)]
    same_jaxpr(half, *halves)
    with jax.enable_x64(True), __import__("jax").enable_x64(True):
        same_jaxpr(double, Q.astype(np.float64), K.astype(np.float64), MASK)


MISUSES = {
    "A(Q[0], K, V)": "query shape should be",
    "A(Q, K, V[:, :, :2])": "value shape should be",
    "A(Q, K[:, :, :3], V[:, :, :3])": "must be a multiple of key/value heads",
    "A(Q, K, V, mask=M.astype('float32'))": "mask dtype should be",
    "A(Q, K.astype('float16'), V)": "value dtype should be",
    "A(Q.astype('float16'), K, V)": "query dtype should be",
    "A(Q, K, V, query_seq_lengths=jnp.array([1, 2, 3]))": "query_seq_lengths shape should be",
    "A(Q, K, V, key_value_seq_lengths=jnp.array([1.0, 2.0]))": "key_value_seq_lengths dtype should be",
    "A(Q, K, V, local_window_size=(1, 2, 3))": "unpack",
    "A(Q, K, V, B[:, :, :2])": "incompatible shapes for broadcasting",
    "A(Q, K, V, implementation='foo')": "Unsupported implementation option",
}


@pytest.mark.oracle
@pytest.mark.parametrize("text", MISUSES)
def test_bad_calls_are_refused(text):
    values = {"Q": Q, "K": K, "V": V, "M": MASK, "B": BIAS}
    same_misuse(text.replace("A(", "jax.nn.dot_product_attention(", 1), values, MISUSES[text])


def test_attention_follows_its_formula():
    logits = np.einsum("bthd,bshd->bhts", Q, K) / np.sqrt(2) + BIAS
    logits = np.where(MASK, logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    expected = np.einsum("bhts,bshd->bthd", weights / weights.sum(-1, keepdims=True), V)
    mine, residual = jax.nn.dot_product_attention(Q, K, V, BIAS, jnp.asarray(MASK), return_residual=True)
    np.testing.assert_allclose(mine, expected, rtol=1e-5)
    sums = np.log(np.exp(logits).sum(-1)).transpose(0, 2, 1)
    np.testing.assert_allclose(residual, sums, rtol=1e-5)
