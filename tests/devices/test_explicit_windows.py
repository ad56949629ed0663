"""Shardings in types of convolutions, windows and reductions by a function: as in jax, plain and transformed."""

import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle

GIVEN = {
    "i": lambda s: s.put(numbers(8, 16, 8), "x", "y", mesh=s.explicit),
    "n": lambda s: s.put(numbers(8, 16, 8), "x", mesh=s.explicit),
    "t": lambda s: s.put(numbers(8, 2, 16, 8), "x", mesh=s.explicit),
    "k": lambda s: s.put(numbers(5, 8, 10), mesh=s.explicit),
    "conv": lambda s: lambda x, k, strides=(1,), padding="SAME", **more: s.lax.conv_general_dilated(
        x, k, strides, padding, dimension_numbers=("NWC", "WIO", "NWC"), **more),
}  # fmt: skip


def test_convolutions():
    same(
        """
        types(conv, i, k)
        types(lambda x, k: conv(x, k, (2,), 'VALID'), i, k)
        types(lambda x: conv(x, np.ones((5, 2, 8), np.float32), feature_group_count=4), i)
        types(lambda x: conv(x, np.ones((5, 8, 8), np.float32), batch_group_count=4), jax.reshard(n, P(None, 'x')))
        run(jax.grad(lambda k, x: conv(x, k).sum(), (0, 1)), k, n)
        run(jax.grad(lambda k, x: conv(x, k, out_sharding=P('x', None, None)).sum(), (0, 1)), k, i)
        run(jax.vmap(conv, in_axes=(0, None)), t, k)
        types(jax.vmap(lambda x, k: conv(x, k, out_sharding=P(None, 'y', None)), in_axes=(0, None)), t, k)
        """,
        setting="explicit",
        **GIVEN,
    )
    same_errors(
        [
            ("conv(jax.reshard(i, P(None, None, 'x')), k)", "specify the output sharding"),
            ("conv(n, jax.reshard(k, P(None, None, 'y')))", "specify the output sharding"),
            ("conv(n, np.ones((5, 8, 8), np.float32), batch_group_count=4)", "out dim (2) is not divisible"),
            ("jax.vmap(lambda x: conv(x, np.ones((5, 8, 10), np.float32), out_sharding=P('y', None, None)))(t)", ""),
        ],
        setting="explicit",
        **GIVEN,
    )


def test_windows():
    same(
        """
        types(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 1), (1, 2, 1), 'SAME'), i)
        types(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 1), (1, 1, 1), 'SAME', window_dilation=(1, 2, 1)), i)
        types(lambda x: lax.reduce_window(x, 1.0, lax.mul, (1, 2, 1), (1, 1, 1), 'SAME'), i)
        types(lambda x: lax.reduce_window(x, -np.inf, lax.min, (1, 2, 1), (1, 1, 1), 'VALID'), n)
        types(lambda x: jax.jvp(lambda y: lax.reduce_window(y, -np.inf, lax.max, (1, 2, 1), (1, 2, 1), 'SAME'), (x,), (x,)), i)
        types(jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 1), (1, 2, 1), 'SAME').sum()), i)
        types(lambda x: lax.reduce((x, x), (1.0, 0.0), lambda a, b: (a[0] * b[0], a[1] + b[1]), (1,)), i)
        """,
        setting="explicit",
        **GIVEN,
    )
    refused = "is not divisible by mesh axes (2)"
    same_errors(
        [
            ("lax.reduce_window(i, -np.inf, lax.max, (1, 2, 1), (1, 1, 1), 'VALID')", refused),
            ("jax.grad(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 1), (1, 2, 1), 'SAME').sum())(i)", refused),
        ],
        setting="explicit",
        **GIVEN,
    )
