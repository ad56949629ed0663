"""jax.experimental.rnn against jax's: weights, the loop, and the operations of GPUs, which are traced and lowered here."""

import itertools

import numpy as np
import pytest
from compare import Case, canonical, ours, run_on, same, same_jaxpr, same_printed, same_refusal, sweep

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import rnn

RANDOM = np.random.default_rng(0)
FIRST = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def each_test_draws_the_same_numbers():
    RANDOM.bit_generator.state = FIRST


def sized(layers=1, bidirectional=False, batch=2, steps=5, inputs=3, hidden=4):
    """The operands and the options of an LSTM."""
    options = dict(input_size=inputs, hidden_size=hidden, num_layers=layers, bidirectional=bidirectional)
    states = layers * (1 + bidirectional), batch, hidden
    shapes = (batch, steps, inputs), states, states, (rnn.get_num_params_in_lstm(**options),)
    operands = (RANDOM.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)
    return (*operands, RANDOM.integers(0, steps + 1, batch).astype(np.int32)), dict(options, dropout=0.0)


def by_loop(rnn, options):
    """The function of `lstm`'s operands that `lstm_ref` computes."""
    sizes = {name: value for name, value in options.items() if name != "dropout"}

    def run(x, h_0, c_0, weights, seq_lengths):
        return rnn.lstm_ref(x, h_0, c_0, *rnn.unpack_lstm_weights(weights, **sizes), seq_lengths, **options)

    return run


def squares(function):
    return lambda *operands: sum((out**2).sum() for out in function(*operands))


SIZES = [sized(), sized(2), sized(1, True), sized(2, True), sized(batch=0), sized(steps=1, inputs=0), sized(hidden=1)]


@pytest.mark.oracle
def test_the_loop_is_jax_s(tier):
    sweep(
        [
            Case(f"sizes {i}", lambda rnn, options=options: by_loop(rnn, options), operands)
            for i, (operands, options) in enumerate(SIZES)
        ],
        tier,
    )


@pytest.mark.oracle
def test_the_loop_is_jax_s_under_transformations(tier):
    operands, options = sized(1, True)
    lengths = np.stack([operands[4], operands[4][::-1]])

    def gradient(jax, rnn):
        return jax.grad(squares(by_loop(rnn, options)), argnums=(0, 1, 2, 3))

    def pushed(jax, rnn):
        def function(x, h_0, c_0, weights, seq_lengths):
            return jax.jvp(lambda x, w: by_loop(rnn, options)(x, h_0, c_0, w, seq_lengths), (x, weights), (x, weights))

        return function

    def mapped(jax, rnn):
        return jax.vmap(by_loop(rnn, options), in_axes=(None, None, None, None, 0))

    rounding = {"rtol": 1e-5, "atol": 1e-5, "why": "XLA fuses sums in another way"}
    cases = [Case("gradient", gradient, operands, tolerance=rounding), Case("pushed", pushed, operands)]
    sweep([*cases, Case("mapped", mapped, (*operands[:4], lengths))], tier)


def test_the_loop_broadcasts_no_ranks():
    operands, options = sized(2, True)
    with jax.numpy_rank_promotion("raise"):
        jax.make_jaxpr(jax.grad(squares(by_loop(rnn, options))))(*operands)


def test_the_loop_stops_at_each_length():
    operands, options = sized(2, True, steps=4)
    x, *rest, _ = operands
    lengths = np.int32([1, 3])
    y, h_n, c_n = by_loop(rnn, options)(x, *rest, lengths)
    for row, length in enumerate(lengths):
        assert not np.asarray(y[row, length:]).any() and np.asarray(y[row, :length]).all()
        alone = x[row : row + 1, :length], *(s[:, row : row + 1] for s in rest[:2]), rest[2], lengths[row : row + 1]
        expected = by_loop(rnn, options)(*alone)
        for part, other in zip(
            (y[row : row + 1, :length], h_n[:, row : row + 1], c_n[:, row : row + 1]), expected, strict=True
        ):
            np.testing.assert_allclose(part, other, rtol=1e-5, atol=1e-6)


@pytest.mark.oracle
def test_weights_are_jax_s(tier):
    for layers, bidirectional in itertools.product((1, 3), (False, True)):
        sizes = dict(input_size=3, hidden_size=4, num_layers=layers, bidirectional=bidirectional)
        weights = np.arange(rnn.get_num_params_in_lstm(**sizes), dtype=np.float32)
        name = f"{layers} {bidirectional}"
        sweep(
            [
                Case(f"packed {name}", lambda rnn, s=sizes: lambda w: rnn.unpack_lstm_weights(w, **s), (weights,)),
                Case(f"swapped {name}", lambda rnn, s=sizes: lambda w: rnn.swap_lstm_gates(w, **s), (weights,)),
                Case(
                    f"drawn {name}",
                    lambda jax, rnn, s=sizes: lambda seed: rnn.init_lstm_weight(jax.random.key(seed), **s),
                    (np.uint32(7),),
                ),
            ],
            tier,
        )
    same(
        lambda rnn: [
            rnn.get_num_params_in_lstm(*sizes) for sizes in ((3, 4, 2, True), (3, 4, 0, False), (0, 1, 1, True))
        ]
    )
    same(lambda rnn: rnn.unpack_lstm_weights(np.arange(144.0), 3, 4, 1, False))


def test_exchanged_gates_are_exchanged_back():
    weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 2, True)
    swapped = rnn.swap_lstm_gates(weights, 3, 4, 2, True)
    assert (swapped != weights).any() and (rnn.swap_lstm_gates(swapped, 3, 4, 2, True) == weights).all()
    assert weights.dtype == jnp.float32 and abs(weights).max() <= 0.5


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("misuse", "phrase"),
    [
        (lambda run, x, h, c, w, n: run(x, h, c, w, n * 1.0), "`seq_lengths` can only be int32"),
        (lambda run, x, h, c, w, n: run(x, h, c, w, n, dropout=0.5), "ropout"),
        (lambda run, x, h, c, w, n: run(x, h, c, w, n, num_layers=2), "1"),
        (lambda run, x, h, c, w, n: run(x, h, c, w, n, num_layers=0), ""),
        (lambda run, x, h, c, w, n: run(x, h, c, w[:100], n), "reshape"),
        (lambda run, x, h, c, w, n: run(x[0], h, c, w, n), ""),
        (lambda run, x, h, c, w, n: run(x[:, :0], h, c, w, n), ""),
        (lambda run, x, h, c, w, n: run(x, h[0], c, w, n), "carry"),
        (lambda run, x, h, c, w, n: run(x[:, :, :2], h, c, w, n), "dot_general"),
    ],
)
def test_misuse_of_the_loop_raises_as_in_jax(misuse, phrase):
    operands, options = sized()

    def program(rnn):
        def run(x, h, c, w, n, **others):
            packed = rnn.unpack_lstm_weights(w, 3, 4, 1, False)
            return rnn.lstm_ref(x, h, c, *packed, n, **(options | others))

        return lambda: misuse(run, *operands)

    same_refusal(program, phrases=[phrase])


# ---- on GPUs -----------------------------------------------------------------------------------------


class Plugin:
    """Stands for the part of a GPU's plugin that describes recurrent networks."""

    @staticmethod
    def build_rnn_descriptor(*sizes):
        return np.asarray(sizes, np.float32).tobytes()


@pytest.fixture
def gpu(monkeypatch):
    """jaxlib's functions for a plugin that is not installed here; both sides lower with them."""
    module = pytest.importorskip("jaxlib.gpu_rnn")
    monkeypatch.setattr(module, "compute_rnn_workspace_reserve_space_sizes", lambda *sizes: (1000, 2000), raising=False)
    lowerings = [
        getattr(module, f"{library}_rnn{which}_lowering") for library in ("cudnn", "miopen") for which in ("", "_bwd")
    ]
    states = [rule.__reduce__()[2] for rule in lowerings]
    for rule, (function, (_, library), keywords, attributes) in zip(lowerings, states, strict=True):
        rule.__setstate__((function, (Plugin, library), keywords, attributes))
    yield
    for rule, state in zip(lowerings, states, strict=True):
        rule.__setstate__(state)


def on_gpu(rnn, options):
    return lambda *operands, **others: rnn.lstm(*operands, **options, **others)


def gradient(jax, rnn, options):
    return jax.value_and_grad(squares(on_gpu(rnn, options)), argnums=(0, 1, 2, 3))


@pytest.mark.oracle
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_the_operation_of_gpus_is_lowered_as_in_jax(gpu, platform):
    operands, options = sized(2, True)
    options["dropout"] = 0.25
    for program in (lambda rnn: on_gpu(rnn, options), lambda jax, rnn: gradient(jax, rnn, options)):

        def text(side, program=program):
            traced = side.jit(run_on(side, program)).trace(*operands)
            return canonical(traced.lower(lowering_platforms=(platform,)).as_text())

        assert "dnn_rnn_ffi" in text(ours())
        same_printed("StableHLO", text, program, operands, platform)
        same_jaxpr(program, *operands)


@pytest.mark.oracle
def test_the_precision_determines_whether_cudnn_may_round(gpu):
    operands, options = sized()

    def program(jax, rnn):
        kinds, preset = jax.lax.Precision, jax.lax.DotAlgorithmPreset

        def rounds(precision):
            made = jax.make_jaxpr(lambda *o: rnn.lstm_fwd(*o, *list(options.values())[:3], 0.0, False, precision))(
                *operands
            )
            return made.eqns[0].params["cudnn_allow_tf32"]

        names = None, "highest", "high", "float32", "tensorfloat32", ("high", "default"), "F32_F32_F32"
        allowed = [
            rounds(p) for p in (*names, kinds.HIGHEST, kinds.HIGH, (kinds.HIGHEST, kinds.HIGH), preset.BF16_BF16_F32)
        ]
        with jax.default_matmul_precision("float32"):
            return [*allowed, rounds(None)]

    same(program)
    for precision in ("default", "bfloat16", ("default", "highest")):
        same_refusal(
            lambda jax, rnn, p=precision: (
                lambda: jax.eval_shape(lambda *o: on_gpu(rnn, options)(*o, precision=p), *operands)
            ),
            phrases=["bfloat16 support"],
        )


@pytest.mark.oracle
def test_the_operation_of_gpus_refuses_the_calls_that_jax_refuses(gpu):
    operands, options = sized()
    x, *rest = operands

    def refused(text, call):
        same_refusal(lambda jax, rnn: lambda: call(jax, rnn), phrases=[text])

    refused("rnn_fwd' not found for platform cpu", lambda jax, rnn: on_gpu(rnn, options)(*operands))
    refused("rnn_fwd' not found for platform cpu", lambda jax, rnn: jax.jit(gradient(jax, rnn, options))(*operands))
    refused("Batching rule for 'rnn_fwd'", lambda jax, rnn: jax.vmap(lambda x: on_gpu(rnn, options)(x, *rest))(x[None]))
    refused("can only be int32", lambda jax, rnn: on_gpu(rnn, options)(*operands[:4], rest[-1] * 1.0))
    refused("", lambda jax, rnn: jax.jit(rnn.lstm)(*operands, 3, 4, 1, 0.0, False))
    refused("input_size", lambda jax, rnn: rnn.lstm(*operands))

    def twice(jax, rnn):
        inner = jax.grad(lambda x: squares(on_gpu(rnn, options))(x, *rest))
        return jax.make_jaxpr(jax.grad(lambda x: inner(x).sum()))(x)

    refused("Differentiation rule for 'rnn_fwd'", twice)


@pytest.mark.oracle
def test_without_a_plugin_the_operation_of_gpus_raises_as_in_jax():
    operands, options = sized()
    jax.clear_caches()  # a test with a plugin may have traced it
    same_refusal(lambda rnn: lambda: on_gpu(rnn, options)(*operands))
