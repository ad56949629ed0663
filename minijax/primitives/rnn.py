"""LSTMs of cuDNN and MIOpen: one operation computes all layers and steps; and its derivative."""

from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray
from minijax.run.programs.bindings import gpu_rnn


def rnn_abstract_eval(
    x_aval: ShapedArray, h_0_aval: ShapedArray, c_0_aval: ShapedArray, w_aval: ShapedArray,
    seq_lengths_aval: ShapedArray, input_size: int, hidden_size: int, num_layers: int, dropout: float,
    bidirectional: bool, cudnn_allow_tf32: bool,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    """Returns the types of the outputs, last hidden and cell states, and the reserve space for the derivative.

    Raises AttributeError if no GPU plugin is installed, RuntimeError if its cuDNN does not load.
    """
    batch, length = x_aval.shape[0], x_aval.shape[1]
    _, kept = gpu_rnn.compute_rnn_workspace_reserve_space_sizes(
        input_size, hidden_size, num_layers, batch, length, dropout, bidirectional, cudnn_allow_tf32
    )
    y_aval = ShapedArray((batch, length, hidden_size * (1 + bool(bidirectional))), x_aval.dtype)
    return y_aval, h_0_aval, c_0_aval, ShapedArray((kept,), "float32")


def rnn_bwd_abstract_eval(
    dy_aval: ShapedArray, dhn_aval: ShapedArray, dcn_aval: ShapedArray, x_aval: ShapedArray, h0_aval: ShapedArray,
    c0_aval: ShapedArray, w_aval: ShapedArray, y_aval: ShapedArray, reserve_space_aval: ShapedArray,
    seq_lengths_aval: ShapedArray, input_size: int, hidden_size: int, num_layers: int, dropout: float,
    bidirectional: bool, cudnn_allow_tf32: bool,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    """Returns the types of the cotangents of inputs, hidden states, cell states and weights.

    Example:
        >>> from minijax.experimental import rnn
        >>> ty = lambda *shape: jax.core.ShapedArray(shape, jnp.float32)
        >>> x, h, y, w = ty(2, 3, 5), ty(1, 2, 4), ty(2, 3, 4), ty(176)
        >>> types = rnn.rnn_bwd_abstract_eval(y, h, h, x, h, h, w, y, ty(0), ty(2), 5, 4, 1, 0.0, False, True)
        >>> [t.shape for t in types]
        [(2, 3, 5), (1, 2, 4), (1, 2, 4), (176,)]
    """
    return x_aval, h0_aval, c0_aval, w_aval


class RnnForward(Primitive):
    """Computes the outputs, last hidden and cell states, and the reserve space that the derivative reads."""

    name = "rnn_fwd"
    multiple_results = True

    def infer(self, *avals, **params):
        return list(rnn_abstract_eval(*avals, **params))


class RnnBackward(Primitive):
    """Computes the cotangents of inputs, hidden states, cell states and weights."""

    name = "rnn_bwd"
    multiple_results = True

    def infer(self, *avals, **params):
        return list(rnn_bwd_abstract_eval(*avals, **params))


rnn_fwd_p, rnn_bwd_p = RnnForward(), RnnBackward()
