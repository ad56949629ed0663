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


@pytest.mark.oracle
@pytest.mark.parametrize("make", [
    lambda stax: stax.MaxPool((2, 3), strides=(2, 1), padding="SAME"),
    lambda stax: stax.MaxPool((2, 2), spec="HWCN"),
    lambda stax: stax.SumPool((2, 2), strides=(2, 2)),
    lambda stax: stax.AvgPool((2, 2), padding="SAME"),
    lambda stax: stax.AvgPool((3, 3), strides=(3, 3)),
    lambda stax: stax.BatchNorm(),
    lambda stax: stax.BatchNorm(axis=(0,), center=False),
    lambda stax: stax.BatchNorm(axis=3, epsilon=1e-3, scale=False),
    lambda stax: stax.BatchNorm(center=False, scale=False),
])  # fmt: skip
def test_pooling_and_normalizing_layers_are_jax_s(make):
    inputs = np.arange(2 * 6 * 6 * 3, dtype=np.float32).reshape(2, 6, 6, 3) / 10

    def layer(jax):
        init, apply = make(_library(jax, "stax"))
        shape, params = init(jax.random.PRNGKey(0), inputs.shape)
        return shape, params, apply

    compare.same(lambda jax: layer(jax)[:2])
    compare.same_jaxpr(lambda jax: lambda x: layer(jax)[2](layer(jax)[1], x), inputs)
    compare.same(lambda jax: jax.jit(lambda x: layer(jax)[2](layer(jax)[1], x))(inputs))


@pytest.mark.oracle
def test_three_steps_of_sm3_are_jax_s():
    """Not under jit, where jax takes a shape from the state."""

    def program(jax):
        init, update, get = _library(jax, "optimizers").sm3(0.1)
        state = init({"w": jax.numpy.asarray(X), "b": jax.numpy.ones(4), "s": jax.numpy.float32(2)})
        for i in range(3):
            state = update(i, jax.tree.map(lambda p: p * 0.1 + 1, get(state)), state)
        return get(state)

    compare.same(program, rtol=1e-6, why="jax rounds the step's factors in another order")


@pytest.mark.oracle
def test_a_state_is_taken_apart_and_put_together():
    def program(jax):
        optimizers = _library(jax, "optimizers")
        init, update, _ = optimizers.sm3(0.1)
        params = {"w": jax.numpy.asarray(X), "s": jax.numpy.float32(2)}
        state = update(0, params, init(params))
        points = optimizers.unpack_optimizer_state(state)
        again = optimizers.pack_optimizer_state(points)
        return points["w"].subtree, again.packed_state, [str(d) for d in again.subtree_defs]

    compare.same(program)


@pytest.mark.oracle
def test_a_state_of_anything_else_is_refused():
    compare.same(lambda jax: _library(jax, "optimizers").pack_optimizer_state({"a": 1}), raises=True)
