"""Windows, against jax."""

import numpy as np
import pytest
from compare import both, same_error

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID", "same"])
def test_kinds_of_padding_give_jax_s_pairs(padding):
    for shape, window, strides in [((7, 5), (3, 2), (1, 1)), ((7, 5), (3, 2), (2, 3)), ((0, 5), (3, 2), (2, 3)),
                                   ((), (), ()), (np.array([7]), np.array([9]), np.array([4]))]:  # fmt: skip
        ours, theirs = both(lambda lax: lax.padtype_to_pads)
        assert ours(shape, window, strides, padding) == theirs(shape, window, strides, padding)


@pytest.mark.parametrize("padding, phrase", [("foo", "Unrecognized padding type"), (3, "Unknown padding type"),
                                             (None, "Unknown padding type"), (((0, 1),), "Unknown padding")])  # fmt: skip
def test_other_paddings_are_rejected(padding, phrase):
    same_error(*both(lambda lax: lambda: lax.padtype_to_pads((7,), (3,), (1,), padding)), phrases=[phrase])
