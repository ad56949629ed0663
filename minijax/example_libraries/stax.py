"""Neural networks as pairs of functions (init, apply).

`init(key, input_shape)` gives (output_shape, params); `apply(params, inputs, **kwargs)` the outputs.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import random
from minijax.base.documentation import filled
from minijax.base.faces import listing
from minijax.base.util import named
from minijax.higher.reduction import reduce_window
from minijax.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax as log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize as standardize,
)
from minijax.nn.initializers import glorot_normal, normal, ones as ones, zeros as zeros
from minijax.primitives import conv, elementwise as ops
from minijax.primitives.window import padtype_to_pads, reduce_window_shape_tuple

__all__, __dir__ = listing(
    __name__,
    """
    AvgPool BatchNorm Conv Conv1DTranspose ConvTranspose Dense Dropout Elu Exp FanInConcat FanInSum FanOut
    Flatten Gelu GeneralConv GeneralConvTranspose Identity LeakyRelu LogSoftmax MaxPool Relu Selu Sigmoid
    Softmax Softplus SumPool Tanh elementwise glorot logsoftmax parallel randn serial shape_dependent
""",
)

glorot, randn = glorot_normal, normal
logsoftmax = log_softmax
Layer = tuple[Callable, Callable]
_weights, _bias, _small = glorot_normal(), normal(), normal(1e-6)


def Dense(out_dim: int, W_init: Callable = _weights, b_init: Callable = _bias) -> Layer:
    """Makes a fully connected layer.

    Example:
        >>> init, apply = jax.example_libraries.stax.Dense(3)
        >>> shape, params = init(jax.random.key(0), (-1, 2))
        >>> shape, apply(params, jnp.ones((5, 2))).shape
        ((-1, 3), (5, 3))
    """

    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        weights = W_init(k1, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(k2, (out_dim,)))

    def apply_fun(params, inputs, **kwargs):
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return init_fun, apply_fun


def _convolution(name: str, kind: str, size: int, shape_of: Callable, convolve: Callable) -> Callable:
    def layer(
        dimension_numbers: Sequence[str],
        out_chan: int,
        filter_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        W_init: Callable | None = None,
        b_init: Callable = _small,
    ) -> Layer:
        """Makes a {kind} over axes in the order that `dimension_numbers` gives, and a bias.

        Example:
            >>> init, apply = jax.example_libraries.stax.{name}(("NHWC", "HWIO", "NHWC"), 4, (3, 3))
            >>> shape, (weights, bias) = init(jax.random.key(0), (1, 8, 8, 2))
            >>> shape, weights.shape
            ((1, {size}, {size}, 4), (3, 3, 2, 4))
        """
        strides = strides or (1,) * len(filter_shape)
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        make_weights = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

        def init_fun(rng, input_shape):
            sizes = iter(filter_shape)
            features = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
            kernel_shape = tuple(features[c] if c in features else next(sizes) for c in rhs_spec)
            k1, k2 = random.split(rng)
            weights = make_weights(k1, kernel_shape)
            bias = b_init(k2, tuple(out_chan if c == "C" else 1 for c in out_spec))
            shape = shape_of(input_shape, kernel_shape, strides, padding, dimension_numbers)
            return shape, (weights, bias)

        def apply_fun(params, inputs, **kwargs):
            weights, bias = params
            return convolve(inputs, weights, strides, padding, dimension_numbers=dimension_numbers) + bias

        return init_fun, apply_fun

    return named(layer, name, filled(layer, dict(name=name, kind=kind, size=size)))


GeneralConv = _convolution("GeneralConv", "convolution", 6, conv.conv_general_shape_tuple, conv.conv_general_dilated)
GeneralConvTranspose = _convolution(
    "GeneralConvTranspose", "transposed convolution", 10, conv.conv_transpose_shape_tuple, conv.conv_transpose
)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable = zeros,
    gamma_init: Callable = ones,
) -> Layer:
    """Makes a layer that standardizes over axes, then scales and shifts by parameters of the other axes' shape.

    `center` and `scale` select whether there is a shift and a scale (Ioffe & Szegedy, 2015).

    Example:
        >>> init, apply = jax.example_libraries.stax.BatchNorm(axis=0)
        >>> _, params = init(jax.random.key(0), (2, 1))
        >>> apply(params, jnp.array([[1.0], [3.0]])).round(3)
        Array([[-1.],
               [ 1.]], dtype=float32)
    """
    axes = (axis,) if jnp.isscalar(axis) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params, x, **kwargs):
        index = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        shift, factor = params
        z = standardize(x, axes, epsilon=epsilon)
        z = factor[index] * z if scale else z
        return z + shift[index] if center else z

    return init_fun, apply_fun


def _pooling(name: str, does: str, result: list, pool: Callable, rescale: bool = False) -> Callable:
    def layer(
        window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: Any = None
    ) -> Layer:
        """{does} over windows; `spec` gives the positions of batches (N) and channels (C).

        Example:
            >>> _, apply = jax.example_libraries.stax.{name}((2,))
            >>> apply((), jnp.array([[[1.0], [5.0], [2.0]]])).ravel().tolist()
            {result}
        """
        strides = strides or (1,) * len(window_shape)
        at = [0, len(window_shape) + 1] if spec is None else sorted(spec.index(c) for c in "NC")
        sizes, steps = list(window_shape), list(strides)
        for i in at:
            sizes.insert(i, 1)
            steps.insert(i, 1)

        def init_fun(rng, input_shape):
            pads = padtype_to_pads(input_shape, sizes, steps, padding)
            return reduce_window_shape_tuple(input_shape, sizes, steps, pads), ()

        def apply_fun(params, inputs, **kwargs):
            out = pool(inputs, sizes, steps, padding)
            if not rescale:
                return out
            inner = tuple(n for i, n in enumerate(inputs.shape) if i not in at)
            counts = pool(jnp.ones(inner, inputs.dtype), tuple(window_shape), tuple(strides), padding)
            for i in at:
                counts = jnp.expand_dims(counts, i)
            return out / counts

        return init_fun, apply_fun

    return named(layer, name, filled(layer, dict(name=name, does=does, result=result)))


def _window(start: float, combine: Callable) -> Callable:
    return lambda x, sizes, steps, padding: reduce_window(x, start, combine, sizes, steps, padding)


MaxPool = _pooling("MaxPool", "Computes the maximum", [5.0, 5.0], _window(-math.inf, ops.max))
SumPool = _pooling("SumPool", "Computes the sum", [6.0, 7.0], _window(0.0, ops.add))
AvgPool = _pooling("AvgPool", "Computes the mean, without padding,", [3.0, 3.5], _window(0.0, ops.add), rescale=True)


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """Makes a layer that applies a function to each element.

    Example:
        >>> init, apply = jax.example_libraries.stax.elementwise(jnp.square)
        >>> apply((), jnp.array([1.0, 2.0]))
        Array([1., 4.], dtype=float32)
    """
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)
Identity: Layer = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """Makes a layer that repeats its input `num` times.

    Example:
        >>> init, apply = jax.example_libraries.stax.FanOut(2)
        >>> apply((), 1.0)
        [1.0, 1.0]
    """
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Makes a layer that joins its inputs along an axis.

    Example:
        >>> init, apply = jax.example_libraries.stax.FanInConcat()
        >>> apply((), [jnp.array([1.0]), jnp.array([2.0])])
        Array([1., 2.], dtype=float32)
    """

    def init_fun(rng, input_shape):
        at = axis % len(input_shape[0])
        size = sum(shape[at] for shape in input_shape)
        return (*input_shape[0][:at], size, *input_shape[0][at + 1 :]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Makes a layer that, in mode "train", keeps each element with probability `rate` and scales it up.

    Its apply function needs the keyword `rng`.

    Example:
        >>> init, apply = jax.example_libraries.stax.Dropout(0.5, mode="test")
        >>> apply((), jnp.ones(2), rng=jax.random.key(0))
        Array([1., 1.], dtype=float32)
    """

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: apply_fun(params, inputs, rng)"
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


def serial(*layers: Layer) -> Layer:
    """Composes layers one after the other.

    Example:
        >>> stax = jax.example_libraries.stax
        >>> init, apply = stax.serial(stax.Dense(3), stax.Relu, stax.Dense(1))
        >>> shape, params = init(jax.random.key(0), (-1, 2))
        >>> apply(params, jnp.ones((5, 2))).shape
        (5, 1)
    """
    init_funs, apply_funs = zip(*layers, strict=True)

    def init_fun(rng, input_shape):
        params = []
        for init in init_funs:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        for fun, param, rng in zip(apply_funs, params, _keys(kwargs, len(layers)), strict=True):
            inputs = fun(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Composes layers side by side, each on its own input.

    Example:
        >>> stax = jax.example_libraries.stax
        >>> init, apply = stax.parallel(stax.Identity, stax.Exp)
        >>> apply([(), ()], [jnp.array(1.0), jnp.array(0.0)])
        [Array(1., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True)]
    """
    init_funs, apply_funs = zip(*layers, strict=True)

    def init_fun(rng, input_shape):
        pairs = [
            init(key, shape)
            for init, key, shape in zip(init_funs, random.split(rng, len(layers)), input_shape, strict=True)
        ]
        shapes, params = zip(*pairs, strict=True)
        return shapes, params

    def apply_fun(params, inputs, **kwargs):
        keys = _keys(kwargs, len(layers))
        return [f(p, x, rng=r, **kwargs) for f, p, x, r in zip(apply_funs, params, inputs, keys, strict=True)]

    return init_fun, apply_fun


def _keys(kwargs: dict, count: int) -> Sequence:
    rng = kwargs.pop("rng", None)
    return random.split(rng, count) if rng is not None else (None,) * count


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Makes a layer that each call creates by `make_layer(input_shape)`.

    Example:
        >>> stax = jax.example_libraries.stax
        >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))
        >>> init(jax.random.key(0), (-1, 2))[0]
        (-1, 2)
    """

    def apply_fun(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape), apply_fun
