"""Explicit axes: convolutions, window reductions and reductions by a function, plain and transformed."""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle

GIVEN = {
    "images_over_both": lambda s: s.shard(numbers(8, 16, 8), "x", "y", mesh=s.explicit_mesh),
    "images": lambda s: s.shard(numbers(8, 16, 8), "x", mesh=s.explicit_mesh),
    "batch_of_images": lambda s: s.shard(numbers(8, 2, 16, 8), "x", mesh=s.explicit_mesh),
    "kernel": lambda s: s.shard(numbers(5, 8, 10), mesh=s.explicit_mesh),
    "conv": lambda s: (
        lambda x, k, strides=(1,), padding="SAME", **more: s.lax.conv_general_dilated(
            x, k, strides, padding, dimension_numbers=("NWC", "WIO", "NWC"), **more
        )
    ),
}


def test_convolutions():
    same(
        [
            lambda s: s.types(s.conv, s.images_over_both, s.kernel),
            lambda s: s.types(lambda x, k: s.conv(x, k, (2,), "VALID"), s.images_over_both, s.kernel),
            lambda s: s.types(
                lambda x: s.conv(x, np.ones((5, 2, 8), np.float32), feature_group_count=4), s.images_over_both
            ),
            lambda s: s.types(
                lambda x: s.conv(x, np.ones((5, 8, 8), np.float32), batch_group_count=4),
                s.jax.reshard(s.images, s.P(None, "x")),
            ),
            lambda s: s.run(s.jax.grad(lambda k, x: s.conv(x, k).sum(), (0, 1)), s.kernel, s.images),
            lambda s: s.run(
                s.jax.grad(lambda k, x: s.conv(x, k, out_sharding=s.P("x", None, None)).sum(), (0, 1)),
                s.kernel,
                s.images_over_both,
            ),
            lambda s: s.run(s.jax.vmap(s.conv, in_axes=(0, None)), s.batch_of_images, s.kernel),
            lambda s: s.types(
                s.jax.vmap(lambda x, k: s.conv(x, k, out_sharding=s.P(None, "y", None)), in_axes=(0, None)),
                s.batch_of_images,
                s.kernel,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (
                lambda s: s.conv(s.jax.reshard(s.images_over_both, s.P(None, None, "x")), s.kernel),
                "specify the output sharding",
            ),
            (lambda s: s.conv(s.images, s.jax.reshard(s.kernel, s.P(None, None, "y"))), "specify the output sharding"),
            (
                lambda s: s.conv(s.images, np.ones((5, 8, 8), np.float32), batch_group_count=4),
                "out dim (2) is not divisible",
            ),
            (
                lambda s: s.jax.vmap(
                    lambda x: s.conv(x, np.ones((5, 8, 10), np.float32), out_sharding=s.P("y", None, None))
                )(s.batch_of_images),
                "",
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_windows():
    same(
        [
            lambda s: s.types(
                lambda x: s.lax.reduce_window(x, -np.inf, s.lax.max, (1, 2, 1), (1, 2, 1), "SAME"), s.images_over_both
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce_window(
                    x, 0.0, s.lax.add, (1, 3, 1), (1, 1, 1), "SAME", window_dilation=(1, 2, 1)
                ),
                s.images_over_both,
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce_window(x, 1.0, s.lax.mul, (1, 2, 1), (1, 1, 1), "SAME"), s.images_over_both
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce_window(x, -np.inf, s.lax.min, (1, 2, 1), (1, 1, 1), "VALID"), s.images
            ),
            lambda s: s.types(
                lambda x: s.jax.jvp(
                    lambda y: s.lax.reduce_window(y, -np.inf, s.lax.max, (1, 2, 1), (1, 2, 1), "SAME"), (x,), (x,)
                ),
                s.images_over_both,
            ),
            lambda s: s.types(
                s.jax.grad(lambda x: s.lax.reduce_window(x, -np.inf, s.lax.max, (1, 2, 1), (1, 2, 1), "SAME").sum()),
                s.images_over_both,
            ),
            lambda s: s.types(
                lambda x: s.lax.reduce((x, x), (1.0, 0.0), lambda a, b: (a[0] * b[0], a[1] + b[1]), (1,)),
                s.images_over_both,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    refused = "is not divisible by mesh axes (2)"
    same_errors(
        [
            (
                lambda s: s.lax.reduce_window(s.images_over_both, -np.inf, s.lax.max, (1, 2, 1), (1, 1, 1), "VALID"),
                refused,
            ),
            (
                lambda s: s.jax.grad(
                    lambda x: s.lax.reduce_window(x, 0.0, s.lax.add, (1, 2, 1), (1, 2, 1), "SAME").sum()
                )(s.images_over_both),
                refused,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
