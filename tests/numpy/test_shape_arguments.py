"""Arguments that are accepted as shapes: NumPy's sequences, and any iterable where jax accepts it."""

import collections

import numpy as np
import pytest
from compare import ours, theirs

pytestmark = pytest.mark.oracle


class Sized:
    """A sequence in all but name, as TensorShape of TensorFlow is."""

    def __init__(self, sizes):
        self.sizes = list(sizes)

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        return self.sizes[i]


class Iterated:
    """Can be iterated over, and nothing else."""

    def __init__(self, sizes):
        self.sizes = list(sizes)

    def __iter__(self):
        return iter(self.sizes)


SHAPES = {
    "sized": Sized, "iterated": Iterated, "set": set, "generator": iter, "keys": lambda n: dict.fromkeys(n).keys(),
    "array": np.array, "deque": collections.deque, "bytes": bytes, "text": lambda n: "ab", "floats": lambda n: np.ones(1),
    "none": lambda n: None,
}  # fmt: skip
CALLS = {
    "zeros": lambda jax, shape: jax.numpy.zeros(shape),
    "full": lambda jax, shape: jax.numpy.full(shape, 2.0),
    "broadcast_to": lambda jax, shape: jax.numpy.broadcast_to(jax.numpy.ones(()), shape),
    "reshape": lambda jax, shape: jax.numpy.ones(3).reshape(shape),
    "zeros_like": lambda jax, shape: jax.numpy.zeros_like(jax.numpy.ones(2), shape=shape),
    "lax.full": lambda jax, shape: jax.lax.full(shape, 1.0),
    "uniform": lambda jax, shape: jax.random.uniform(jax.random.key(0), shape),
}


def shape_or_error(jax, call, kind, sizes):
    try:
        return CALLS[call](jax, SHAPES[kind](sizes)).shape
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", SHAPES)
def test_the_same_objects_are_shapes(call, kind):
    for sizes in ([], [3]):
        assert shape_or_error(ours(), call, kind, sizes) == shape_or_error(theirs(), call, kind, sizes)
