"""jax.experimental.rnn: LSTMs of several layers, by cuDNN or MIOpen on GPUs, or by a scan on any device.

The weights are one vector: the input and the state weights of each layer and direction, then all biases. The rows of
each matrix are those of the gates in, keep, new and out. A layer reads both directions of the layer below.
"""

import functools
import math
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax, random
from minijax.api.custom import custom_vjp
from minijax.api.vmap import vmap
from minijax.base.faces import listing
from minijax.dispatch.jitted import jitted
from minijax.interop.lowering import register_lowering
from minijax.nn import sigmoid
from minijax.numpy import tanh
from minijax.primitives.dot import Precision, PrecisionLike, canonical_precision
from minijax.primitives.rnn import (
    rnn_abstract_eval as rnn_abstract_eval,
    rnn_bwd_abstract_eval as rnn_bwd_abstract_eval,
    rnn_bwd_p,
    rnn_fwd_p,
)
from minijax.run.arrays.array import Array
from minijax.run.programs.bindings import gpu_rnn

__all__, __dir__ = listing(
    __name__,
    """
    PRNGKeyArray get_num_params_in_lstm init_lstm_weight lstm lstm_bwd lstm_fwd lstm_ref rnn_abstract_eval
    rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p sigmoid swap_lstm_gates tanh unpack_lstm_weights
""",
)

PRNGKeyArray = Any
ByLayer = dict[int, Array]

register_lowering(rnn_fwd_p, gpu_rnn.cudnn_rnn_lowering, platform="cuda")
register_lowering(rnn_fwd_p, gpu_rnn.miopen_rnn_lowering, platform="rocm")
register_lowering(rnn_bwd_p, gpu_rnn.cudnn_rnn_bwd_lowering, platform="cuda")
register_lowering(rnn_bwd_p, gpu_rnn.miopen_rnn_bwd_lowering, platform="rocm")


# ---- weights -----------------------------------------------------------------------------------------


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[int, ...]]:
    """The shapes of weights and biases, in the order in which they are packed."""
    directions, gates = 1 + bool(bidirectional), 4 * hidden_size
    widths = [input_size if layer == 0 else directions * hidden_size for layer in range(num_layers)]
    weights = [shape for width in widths for shape in [(gates, width), (gates, hidden_size)] * directions]
    return weights + [(gates,)] * len(weights)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """Counts the weights and biases.

    Example:
        >>> jax.experimental.rnn.get_num_params_in_lstm(2, 3, num_layers=1, bidirectional=False)
        84
    """
    return sum(math.prod(shape) for shape in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(
    rng: PRNGKeyArray, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Draws uniform float32 weights and biases in [-b, b) with b = 1 / sqrt(hidden_size).

    Example:
        >>> jax.experimental.rnn.init_lstm_weight(jax.random.key(0), 2, 3, 1, False).shape
        (84,)
    """
    size = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = np.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (size,), jnp.float32, -bound, bound)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[ByLayer, ByLayer, ByLayer, ByLayer]:
    """Returns the weights of inputs and of states, and the biases of both, each by number of layer and direction.

    These are the operands of `lstm_ref`. Raises TypeError for a vector that is too short.

    Example:
        >>> from minijax.experimental import rnn
        >>> weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
        >>> input_weights, hidden_weights, _, _ = rnn.unpack_lstm_weights(weights, 3, 4, 1, False)
        >>> input_weights[0].shape, hidden_weights[0].shape  # the four gates, one below the other
        ((16, 3), (16, 4))
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    start, parts = 0, []
    for shape in shapes:
        stop = start + math.prod(shape)
        parts.append(weights[start:stop].reshape(shape))
        start = stop
    half = len(parts) // 2
    return tuple(dict(enumerate(parts[first : first + half : 2])) for first in (0, 1, half, half + 1))


def swap_lstm_gates(weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Exchanges the gates new and out in the weights, which is the order of MIOpen.

    Example:
        >>> from minijax.experimental import rnn
        >>> size = rnn.get_num_params_in_lstm(1, 1, 1, False)
        >>> rnn.swap_lstm_gates(jnp.arange(float(size)), 1, 1, 1, False)
        Array([ 0.,  1.,  3.,  2.,  4.,  5.,  7.,  6.,  8.,  9., 11., 10., 12.,
               13., 15., 14.], dtype=float32)
    """
    weights, start = jnp.asarray(weights), 0
    for shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        stop = start + math.prod(shape)
        enter, keep, new, out = jnp.split(weights[start:stop].reshape(shape), 4, axis=0)
        swapped = jnp.concatenate([enter, keep, out, new], axis=0)
        weights = weights.at[start:stop].set(swapped.flatten())
        start = stop
    return weights


# ---- by a scan ---------------------------------------------------------------------------------------


def _check_lengths(seq_lengths: Array) -> None:
    if seq_lengths.dtype != np.dtype(np.int32):
        raise NotImplementedError("lstm: `seq_lengths` can only be int32.")


def _reversed(sequence: Any, seq_lengths: Any) -> Any:
    """Reverses each sequence (step, batch, feature) up to its length."""
    shifts = len(sequence) - seq_lengths
    return vmap(functools.partial(jnp.roll, axis=0), in_axes=(1, 0), out_axes=1)(sequence, shifts)[::-1]


def _run(sequence, state, weights, seq_lengths):
    """One direction of a layer: outputs, zero after the end of each sequence, and the last hidden and cell state."""

    def step(carry, x):
        (h, c), (W_ih, W_hh, b_ih, b_hh) = carry, (jnp.split(w, 4, axis=0) for w in weights)

        def gate(i):
            return x @ W_ih[i].T + b_ih[i][None] + h @ W_hh[i].T + b_hh[i][None]

        enter, keep, new, out = sigmoid(gate(0)), sigmoid(gate(1)), tanh(gate(2)), sigmoid(gate(3))
        c = keep * c + enter * new
        h = out * tanh(c)
        return (h, c), (h, c, h)

    _, (hs, cs, outputs) = lax.scan(step, state, sequence)
    length, batch = sequence.shape[:2]
    last = [states[seq_lengths - 1, jnp.arange(batch)] for states in (hs, cs)]
    inside = seq_lengths[None] > jnp.arange(length, dtype=jnp.int32)[:, None]
    return jnp.where(inside[..., None], outputs, 0), *last


@jitted("lstm_ref", static=("input_size", "hidden_size", "num_layers", "dropout", "bidirectional"))
def lstm_ref(
    x: Array, h_0: Array, c_0: Array, W_ih: ByLayer, W_hh: ByLayer, b_ih: ByLayer, b_hh: ByLayer, seq_lengths: Array,
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Computes `lstm` by a scan over the steps, which has derivatives of any order; weights are unpacked.

    Raises NotImplementedError for a dropout other than 0, KeyError for missing weights.

    Example:
        >>> from minijax.experimental import rnn
        >>> weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
        >>> start, lengths = jnp.zeros((1, 2, 4)), jnp.array([5, 5])
        >>> parts = rnn.unpack_lstm_weights(weights, 3, 4, 1, False)
        >>> y, h, c = rnn.lstm_ref(jnp.ones((2, 5, 3)), start, start, *parts, lengths, 3, 4, 1, 0.0, False)
        >>> y.shape, jnp.allclose(y[:, -1], h[0])
        ((2, 5, 4), Array(True, dtype=bool))
    """
    _check_lengths(seq_lengths)
    if dropout != 0.0:
        raise NotImplementedError("lstm_ref: dropout is not supported, since the values that cuDNN drops are unknown.")
    sequence, last, i = jnp.transpose(x, (1, 0, 2)), [], 0
    for _ in range(num_layers):
        outputs = []
        for backward in (False, True)[: 1 + bool(bidirectional)]:
            inputs = _reversed(sequence, seq_lengths) if backward else sequence
            weights = W_ih[i], W_hh[i], b_ih[i], b_hh[i]
            y, *state = _run(inputs, (h_0[i], c_0[i]), weights, seq_lengths)
            outputs.append(_reversed(y, seq_lengths) if backward else y)
            last.append(state)
            i += 1
        sequence = jnp.concatenate(outputs, axis=-1) if bidirectional else y
    h_n, c_n = (jnp.stack([state[j] for state in last]) for j in range(2))
    return jnp.transpose(sequence, (1, 0, 2)), h_n, c_n


# ---- on GPUs -----------------------------------------------------------------------------------------


def _params(*options: Any) -> dict[str, Any]:
    """The parameters of the primitives; the last option is the precision."""
    names = "input_size", "hidden_size", "num_layers", "dropout", "bidirectional"
    return dict(zip(names, options[:-1], strict=True), cudnn_allow_tf32=_allows_tf32(options[-1]))


def _allows_tf32(precision: PrecisionLike) -> bool:
    how = canonical_precision(precision)
    if isinstance(how, tuple) and how[0] is Precision.DEFAULT:
        raise NotImplementedError("lstm: bfloat16 support, which precision 'default' requests, is not implemented.")
    return not (isinstance(how, tuple) and how[0] is Precision.HIGHEST)


@functools.partial(custom_vjp, nondiff_argnums=(5, 6, 7, 8, 9, 10))
def lstm(
    x: Array, h_0: Array, c_0: Array, weights: Array, seq_lengths: Array, input_size: int, hidden_size: int,
    num_layers: int, dropout: float, bidirectional: bool, precision: PrecisionLike = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Computes an LSTM on a GPU: outputs (batch, step, directions x hidden), and the last hidden and cell states.

    `x` is (batch, step, input), zero-padded to the longest of the int32 `seq_lengths`. All states are (layers x
    directions, batch, hidden); `dropout` is a probability. Raises NotImplementedError on devices other than GPUs,
    under `vmap`, for second derivatives and for bfloat16 precision, AttributeError without a GPU plugin.
    """
    return lstm_fwd(
        x, h_0, c_0, weights, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional, precision
    )[0]


def lstm_fwd(
    x: Array, h_0: Array, c_0: Array, w: Array, seq_lengths: Array, input_size: int, hidden_size: int, num_layers: int,
    dropout: float, bidirectional: bool, precision: PrecisionLike,
) -> tuple:  # fmt: skip
    """Returns the results of `lstm`, and the residuals for `lstm_bwd`."""
    _check_lengths(seq_lengths)
    operands = x, h_0, c_0, w, seq_lengths
    params = _params(input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    y, h_n, c_n, kept = rnn_fwd_p.bind(*operands, **params)
    return (y, h_n, c_n), (*operands, y, kept)


def lstm_bwd(
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, precision: PrecisionLike,
    residuals: tuple, gradients: tuple,
) -> tuple:  # fmt: skip
    """Returns the cotangents of the five array operands of `lstm`; the cotangent of the lengths is zero."""
    x, h_0, c_0, w, seq_lengths, y, kept = residuals
    params = _params(input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    cotangents = rnn_bwd_p.bind(*gradients, x, h_0, c_0, w, y, kept, seq_lengths, **params)
    return *cotangents, jnp.zeros_like(seq_lengths)


lstm.defvjp(lstm_fwd, lstm_bwd)
