"""`jax.ops`: sums, products, maxima and minima of segments."""

import numpy as np
import pytest
from compare import expression_case, same, same_refusal, sweep

D = np.arange(6, dtype=np.float32)
S = np.array([0, 0, 1, 1, 2, 2])
VALUES = dict(
    d=D, s=S, i=np.arange(6), m=np.arange(6) > 2, c=(D + 1j).astype(np.complex64), u=np.arange(6).astype(np.uint8),
    b=D.astype("float16"), i8=np.arange(6).astype(np.int8), t=np.ones((6, 2), np.float32), o=np.array([-1, 0, 7, 7, 1, 1]),
)  # fmt: skip


def placed(jnp):
    return {name: jnp.asarray(value) for name, value in VALUES.items()}


NAMES = ("segment_sum", "segment_prod", "segment_max", "segment_min")


def _cases():
    for name in NAMES:
        f = f"jax.ops.{name}"
        texts = [f"{f}({x}, s, 3)" for x in ("d", "i", "c", "u", "b", "i8", "t")]
        texts += [f"{f}(d, o, 4)", f"{f}(d, s, 3, mode='clip')", f"{f}(d, s, num_segments=5)"]
        texts += [f"{f}(d, s, 3, True)", f"{f}(d, s, 3, indices_are_sorted=True, unique_indices=True)"]
        texts += [f"{f}({x}, s, 3, bucket_size={n})" for n in (2, 4, 6, 9) for x in ("d", "i8")]
        texts += [f"{f}(t, s, 3, bucket_size=2)", f"{f}(d[:0], s[:0], 2)", f"{f}(1.0, 0, 2)"]
        texts += [f"jax.vmap(lambda r: {f}(r, s, 3))(t.T)"]
        if name != "segment_prod":  # whose derivative jax has for unique indices alone
            texts += [f"jax.grad(lambda d: ({f}(d, s, 3) ** 2).sum())(d + 1)"]
        texts += [f"{f}(m, s, 3)"] * (name in NAMES[2:])
        yield from (expression_case(VALUES, text) for text in texts)


@pytest.mark.oracle
def test_reductions_of_segments(tier):
    sweep(list(_cases()), tier)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        lambda jax, d, s, **_: jax.ops.segment_sum(d, s),
        lambda jax, d, o, **_: jax.ops.segment_max(d, o),
        lambda jax, i, s, **_: jax.ops.segment_prod(i, s),
    ],
)
def test_the_number_of_segments_follows_from_the_ids(call):
    same(lambda jax, jnp: call(jax, **placed(jnp)))


MISUSES = [
    (lambda jax, d, s, **_: jax.ops.segment_sum(d, d, 3), "integer"),
    (lambda jax, d, s, **_: jax.ops.segment_sum(d, s, -1), "num_segments must be non-negative"),
    (lambda jax, d, s, **_: jax.ops.segment_sum([1, 2], s, 3), "segment_sum requires ndarray or scalar arguments"),
    (lambda jax, d, s, **_: jax.ops.segment_sum(d, s[:3], 3), "Incompatible"),
    (lambda jax, d, s, **_: jax.ops.segment_sum(d, s, 3.0), "'float' object"),
    (lambda jax, d, s, **_: jax.ops.segment_sum(d[:0], s[:0]), "zero-size array"),
    (lambda jax, m, s, **_: jax.ops.segment_sum(m, s, 3), "add does not accept"),
    (lambda jax, d, s, **_: jax.jit(jax.ops.segment_sum)(d, s), "num_segments"),
    (lambda jax, d, s, **_: jax.ops.segment_sum(d, s, 3, mode="foo"), "mode"),
    (lambda jax, d, s, **_: jax.ops.segment_max(d, s, 3, bucket_size=0), "zero"),
]


@pytest.mark.oracle
@pytest.mark.parametrize("call, phrase", MISUSES)
def test_misuses_raise_as_in_jax(call, phrase):
    same_refusal(lambda jax, jnp: lambda: call(jax, **placed(jnp)), phrases=[phrase])
