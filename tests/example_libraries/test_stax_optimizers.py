"""stax and the optimizers: a network trains to jax's numbers."""

import importlib

import compare
import numpy as np
import pytest

OPTIMIZERS = {
    "sgd": (0.1,),
    "momentum": (0.1, 0.9),
    "nesterov": (0.1, 0.9),
    "adagrad": (0.1,),
    "rmsprop": (0.1,),
    "rmsprop_momentum": (0.1,),
    "adam": (3e-4,),
    "adamax": (0.1,),
}
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def _library(jax, name):
    return importlib.import_module(f"{jax.__name__}.example_libraries.{name}")


def _network(stax):
    branches = stax.parallel(stax.Dense(5), stax.serial(stax.Dense(5), stax.Tanh))
    return stax.serial(
        stax.Dense(6), stax.Relu, stax.FanOut(2), branches, stax.FanInSum, stax.Dense(3), stax.LogSoftmax
    )


@pytest.mark.oracle
def test_a_network_s_parameters_and_outputs_are_jax_s():
    def program(jax):
        init, apply = _network(_library(jax, "stax"))
        shape, params = init(jax.random.PRNGKey(0), (-1, 4))
        return shape, params, jax.jit(apply)(params, X)

    compare.same(program)


FIRST = ("NCHW", "IOHW", "CNHW")


@pytest.mark.oracle
@pytest.mark.parametrize("make, shape", [
    (lambda stax: stax.Conv(6, (3, 2)), (4, 7, 5, 2)),
    (lambda stax: stax.Conv(6, (3, 2), (2, 1), "SAME"), (4, 7, 5, 2)),
    (lambda stax: stax.GeneralConv(FIRST, 6, (3, 2), padding=((0, 1), (2, 0))), (4, 2, 7, 5)),
    (lambda stax: stax.ConvTranspose(6, (3, 2), (2, 1), "SAME"), (4, 7, 5, 2)),
    (lambda stax: stax.Conv1DTranspose(6, (3,), (2,)), (4, 7, 2)),
    (lambda stax: stax.GeneralConvTranspose(FIRST, 6, (3, 2), (2, 3), W_init=stax.randn()), (4, 2, 7, 5)),
])  # fmt: skip
def test_convolutional_layers_are_jax_s(make, shape):
    def program(jax):
        init, apply = make(_library(jax, "stax"))
        found, params = init(jax.random.PRNGKey(0), (-1, *shape[1:]))
        inputs = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        return [int(n) for n in found], params, jax.jit(apply)(params, inputs)

    compare.same(program)


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_three_steps_of_an_optimizer_are_jax_s(name):
    def program(jax):
        optimizers = _library(jax, "optimizers")
        init, update, params_of = getattr(optimizers, name)(*OPTIMIZERS[name])
        params = {"w": jax.numpy.asarray(X), "b": jax.numpy.ones(4)}

        def loss(p):
            return jax.numpy.sum((p["w"] @ p["b"]) ** 2)

        @jax.jit
        def step(i, state):
            return update(i, jax.grad(loss)(params_of(state)), state)

        state = init(params)
        for i in range(3):
            state = step(i, state)
        return params_of(state)

    compare.same(program)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda o: o.constant(0.1), lambda o: o.exponential_decay(0.1, 5, 0.9),
        lambda o: o.inverse_time_decay(0.1, 5, 0.9), lambda o: o.inverse_time_decay(0.1, 5, 0.9, True),
        lambda o: o.polynomial_decay(0.1, 5, 0.01, 2.0), lambda o: o.piecewise_constant([2, 5], [0.1, 0.2, 0.3]),
    ],
)  # fmt: skip
def test_schedules_are_jax_s(make):
    compare.same(lambda jax: [make(_library(jax, "optimizers"))(i) for i in (0, 3, 7)])


@pytest.mark.oracle
def test_gradients_are_clipped_to_a_norm():
    compare.same(lambda jax: _library(jax, "optimizers").clip_grads({"a": X, "b": 2 * X}, 0.5))
