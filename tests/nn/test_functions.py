"""Activation functions and initializers, as jax's."""

import compare
import numpy as np
import pytest
import transform_matrix

X = np.linspace(-3, 7, 12, dtype=np.float32).reshape(3, 4)
NAMES = """relu relu6 sigmoid softplus sparse_plus sparse_sigmoid soft_sign silu swish mish log_sigmoid elu leaky_relu
hard_tanh celu selu gelu glu softmax log_softmax standardize hard_sigmoid hard_silu hard_swish squareplus identity
tanh""".split()
TRANSFORMS = ("plain", "grad", "jvp", "vmap", "vmap_of_grad")


def _function(name, **options):
    def program(jax):
        return lambda x: getattr(jax.nn, name)(x, **options)

    return program


def _weighted(**options):
    return lambda jax: lambda x, b: jax.nn.logsumexp(x, b=b, **options)


CASES = [compare.Case(name, _function(name), (X,)) for name in NAMES] + [
    compare.Case("gelu_exact", _function("gelu", approximate=False), (X,)),
    compare.Case("softmax_axis", _function("softmax", axis=0), (X,)),
    compare.Case("softmax_axes", _function("softmax", axis=(0, 1)), (X,)),
    compare.Case("log_softmax_axis", _function("log_softmax", axis=0), (X,)),
    compare.Case("leaky_relu_slope", _function("leaky_relu", negative_slope=0.3), (X,)),
    compare.Case("elu_alpha", _function("elu", alpha=0.5), (X,)),
    compare.Case("softmax_where", lambda jax: lambda x: jax.nn.softmax(x, where=x > 0), (X,)),
    compare.Case("relu_half", lambda jax: lambda x: jax.nn.relu(x), (X.astype(np.float16),)),
    compare.Case("relu_int", lambda jax: lambda x: jax.nn.relu(x), (X.astype(np.int32),)),
    compare.Case("softplus_int", lambda jax: lambda x: jax.nn.softplus(x), (X.astype(np.int32),)),
    compare.Case("log1mexp", lambda jax: lambda x: jax.nn.log1mexp(x * x), (X,)),
    *(
        compare.Case(f"{name} {options}", _function(name, **options), (X,))
        for name in ("logmeanexp", "logsumexp")
        for options in ({}, {"axis": 0}, {"axis": (0, -1), "keepdims": True}, {"axis": 1, "where": X > 0})
    ),
    *(
        compare.Case(f"logsumexp b {options}", _weighted(**options), (X, X[0]))
        for options in ({}, {"axis": 1, "return_sign": True}, {"where": X > 0})
    ),
    compare.Case("logmeanexp_empty", _function("logmeanexp", axis=1), (X[:0],)),
    compare.Case("logsumexp_complex", _function("logsumexp", return_sign=True), (X * 1j,)),
    compare.Case("logsumexp_of_complex", _function("logsumexp"), (X * (1 + 1j),)),
    compare.Case("logsumexp_int", _function("logsumexp", axis=0), (X.astype(np.int32),)),
    compare.Case("logsumexp_half", _function("logsumexp", axis=0), (X.astype(np.float16),)),
    compare.Case("relu_scalar", lambda jax: lambda x: jax.nn.relu(x), (1.5,)),
]


@pytest.mark.oracle
@pytest.mark.parametrize("name", TRANSFORMS)
def test_activations_under_a_transform_are_jax_s(name, tier):
    compare.sweep([transform_matrix.transformed(case, name) for case in CASES], tier)


@pytest.mark.oracle
def test_one_hot_is_jax_s(tier):
    i = np.array([[0, 2], [1, 5]], np.int32)
    compare.sweep(
        [
            compare.Case("one_hot", lambda jax: lambda i: jax.nn.one_hot(i, 3), (i,)),
            compare.Case("axis0", lambda jax: lambda i: jax.nn.one_hot(i, 3, axis=0), (i,)),
            compare.Case("int", lambda jax: lambda i: jax.nn.one_hot(i, 4, dtype="int32"), (i,)),
            compare.Case("scalar", lambda jax: lambda i: jax.nn.one_hot(i, 4), (2,)),
        ],
        tier,
    )


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:.*should be integer-typed:DeprecationWarning")
def test_one_hot_of_anything():
    for x in ([0, 2], [1.0], 2.0, np.array([1j])):
        compare.same(lambda jax, x=x: jax.nn.one_hot(x, 3))
    with pytest.warns(DeprecationWarning, match="should be integer-typed; got dtype=float32"):
        compare.ours().nn.one_hot([1.0], 3)
    compare.same(lambda jax: jax.nn.one_hot(1, jax.numpy.array(3)))
    compare.same_misuse("jax.jit(jax.nn.one_hot)(1, 3)", {}, "in jax.nn.one_hot argument `num_classes`")
    compare.same_misuse("jax.nn.one_hot(1, 2.5)", {}, "cannot be interpreted as an integer")


@pytest.mark.oracle
def test_stable_standardization(tier):
    x = np.array([[1e6, 1e6 + 1, 1e6 + 2], [1, 2, 4]], np.float32)

    def case(name, **options):
        return compare.Case(name, lambda jax: lambda x: jax.nn.standardize(x, algorithm="stable", **options), (x,))

    compare.sweep([case("plain"), case("where", where=x > 1), case("axis", axis=0, mean=x[:1])], tier)
    compare.same_misuse("jax.nn.standardize(x, algorithm='slow')", {"x": x}, "Unknown algorithm 'slow'")


INITIALIZERS = """glorot_normal glorot_uniform lecun_normal lecun_uniform he_normal he_uniform normal uniform
truncated_normal""".split()


@pytest.mark.oracle
@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers_make_jax_s_numbers(name):
    compare.same(lambda jax: getattr(jax.nn.initializers, name)()(jax.random.key(3), (3, 4)))


@pytest.mark.oracle
@pytest.mark.parametrize("make", (
    lambda init, k: init.variance_scaling(1.0, 'fan_in', 'uniform', dtype='complex64')(k, (2, 3)),
    lambda init, k: init.variance_scaling(1.0, 'fan_in', 'truncated_normal')(k, (2, 3), 'complex64'),
    lambda init, k: init.orthogonal()(k, (0, 3)), lambda init, k: init.orthogonal(column_axis=0)(k, (2, 0, 3)), lambda init, k: init.delta_orthogonal()(k, (3, 0, 3)),
    lambda init, k: init.glorot_normal(in_axis=0)(k, (3,)), lambda init, k: init.variance_scaling(1.0, 'fan_in', 'normal', in_axis=(), out_axis=())(k, ()),
    lambda init, k: init.variance_scaling(1.0, 'fan_out', 'normal', in_axis=[], out_axis=[0])(k, (3,)),
))  # fmt: skip
def test_initializers_of_complex_numbers_and_of_odd_shapes(make):
    def program(jax):
        return make(jax.nn.initializers, jax.random.key(1))

    compare.same(program, rtol=1e-6, atol=1e-7, why="XLA fuses what is drawn in another way")


@pytest.mark.oracle
@pytest.mark.parametrize("text, phrase", (
    ("glorot_normal()(k, (3,))", "1-dimensional weights tensor with default in_axis"), ("lecun_normal()(k, (0, 3))", "division"),
    ("glorot_normal(in_axis=(-2,))(k, (3,))", "out of range"), ("delta_orthogonal()(k, (3, 4, 2))", "`fan_in` must be less"),
))  # fmt: skip
def test_shapes_without_fans(text, phrase):
    compare.same_misuse(f"jax.nn.initializers.{text}".replace("k, ", "jax.random.key(0), "), {}, phrase)


@pytest.mark.oracle
def test_a_vector_has_no_fans():
    def program(jax):
        return jax.nn.initializers.glorot_normal()(jax.random.key(0), (3,))

    compare.same(program, raises=True)


def test_initializers_are_recognized_by_their_call():
    def program(jax):
        kind = jax.nn.initializers.Initializer
        return [isinstance(x, kind) for x in (jax.nn.initializers.zeros, jax.nn.initializers.lecun_normal(), len, 3)]

    compare.same(program)
