"""Making arrays, against jax: dtypes, weak types, jaxprs, values and errors."""

import ml_dtypes
import numpy as np
import pytest
from compare import check_eager, expression_case, same, same_jaxpr, same_misuse, same_refusal, sweep

import minijax.numpy as jnp

pytestmark = pytest.mark.oracle

VALUES = {
    "x": np.arange(12, dtype=np.float32).reshape(3, 4),
    "v": np.arange(5, dtype=np.float32),
    "n": np.arange(4, dtype=np.int32),
    "s": np.float32(1.5),
}


TRACED = """
jnp.array(x)| jnp.asarray(x)| jnp.array(x, ndmin=4)| jnp.array(1.)| jnp.asarray(s)| jnp.array(x, dtype=int)|
jnp.array([1, 2., 3])| jnp.array([s, 1])| jnp.array([[s, 1], [2, s]])| jnp.array([x, x])| jnp.array([x, x], dtype=int)|
jnp.array([x, np.ones((3, 4))])| jnp.array([1, s], dtype=int)| jnp.array([])| jnp.array([[s, 1.], v[:2]])| jnp.copy(x)|
jnp.asarray([1, True])| jnp.zeros((2, 3))| jnp.zeros(3, int)| jnp.zeros(())| jnp.ones((2, 3))| jnp.empty((2, 3))|
jnp.full((2, 3), s)| jnp.full((2, 3), 1)| jnp.full((2,), v[:2])| jnp.full((2, 3), 1, dtype='bfloat16')| jnp.tri(3)|
jnp.zeros_like(x)| jnp.ones_like(x, dtype=int)| jnp.full_like(x, 2)| jnp.full_like(x, s)| jnp.full_like(s, 2)|
jnp.full_like(x, 2, shape=(7,))| jnp.empty_like(x)| jnp.arange(5)| jnp.arange(5.)| jnp.arange(1, 5)| jnp.arange(1, 10, 2)|
jnp.arange(1, 10, 3, dtype=float)| jnp.arange(0., 1., .1)| jnp.arange(np.int8(1), 5)| jnp.linspace(0, 1, 5)|
jnp.linspace(v, v + 1, 5, axis=-1)| jnp.linspace(0, 1, 5, endpoint=False)| jnp.linspace(0, 10, 5, dtype=int)|
jnp.linspace(0, 1, 1)| jnp.linspace(0, 1, 0)| jnp.linspace(0, 1, 5, retstep=True)| jnp.logspace(0, 1, 5)|
jnp.geomspace(1, 10, 5)| jnp.eye(3)| jnp.eye(3, 4, k=1, dtype=int)| jnp.identity(3)| jnp.triu(x)| jnp.tril(x, 1)|
jnp.meshgrid(v, v)| jnp.meshgrid(v, n, indexing='ij')| jnp.meshgrid(v, v, sparse=True)| jnp.indices((2, 3))|
jnp.indices((2, 3), sparse=True)| jnp.astype(x, int)| jnp.float32(x)| jnp.float32(1)| jnp.int32(s)| jnp.bool_(x)|
jnp.bfloat16(x)| jnp.fromfunction(lambda a, b: a + b, (2, 3))| jnp.vander(v)| jnp.vander(v, 3, increasing=True)| jnp.eye(4, 3, k=n[1])| jnp.eye(3, k=np.int8(1))| jnp.eye(3, k=2**40)|
jnp.eye(3, k=-2**90)| jnp.tri(4, 3, n[2])| jnp.take_along_axis(v, np.array([1, 2], 'int8'), 0, 'clip', wrap_negative_indices=False)|
jnp.take_along_axis(v, np.array([1, 2], 'uint8'), 0, 'promise_in_bounds')
"""
EAGER = """
jnp.array(1.)| jnp.asarray(jnp.asarray(1.))| jnp.array([jnp.asarray(1.), 2])| jnp.array(1, dtype=float)| jnp.array(True)|
jnp.array(2**40, dtype=float)| jnp.array(range(3))| jnp.array(memoryview(b'abc'))| jnp.array(1+1j)| jnp.array([1.5], dtype=int)|
jnp.float32('nan')| jnp.array(['1', '2'], dtype=int)| jnp.asarray(np.array([1, None], object), dtype=float)|
jnp.array([1, np.float16(2)])| jnp.array([np.int8(1), np.float16(2)])| jnp.full((2,), 1.)| jnp.zeros(jnp.int32(3))|
jnp.full_like(1, 2.5)| jnp.zeros_like(1.)| jnp.arange(2.5)| jnp.arange(-3)| jnp.arange(5, 1, -2)| jnp.arange(5, dtype='bfloat16')|
jnp.linspace(jnp.float16(0), 1, 3)| jnp.linspace(0, 1j, 3)| jnp.identity(3, dtype='bfloat16')| jnp.float32([1, 2])|
jnp.int32(1.5)| jnp.int4(3)| jnp.uint8(7)| jnp.frombuffer(b'abcdefgh', dtype='float32')| jnp.shape(x)| jnp.ndim(1.)|
jnp.size(x, axis=1)| jnp.iscomplexobj(1j)| jnp.iscomplexobj([1, 1j])| jnp.iscomplexobj(None)| jnp.isrealobj(x)| jnp.isscalar(jnp.float32(1))| jnp.isscalar(np.ones(2))|
jnp.can_cast('int32', 'float32')| jnp.result_type(x, 1)| jnp.promote_types('int32', 'float16')| jnp.dtype('bfloat16')|
jnp.issubdtype(jnp.bfloat16, jnp.floating)| jnp.finfo(jnp.bfloat16).bits| jnp.iinfo(jnp.int4).max| jnp.newaxis| jnp.pi
"""


def table(text):
    return [expression_case(VALUES, part.strip()) for part in text.replace("\n", " ").split("|")]


def test_jaxprs_texts_and_values_are_those_of_jax():
    sweep(table(TRACED))


@pytest.mark.parametrize("each", table(EAGER), ids=lambda c: c.name)
def test_values_and_weak_types_outside_jit_are_those_of_jax(each):
    check_eager(each)


MISUSES = {
    "jnp.array(None)": "None is not a valid value for jnp.array",
    "jnp.array('abc')": "is not a valid JAX array type",
    "jnp.array(object())": "is not a valid JAX array type",
    "jnp.array([[1, 2], [3]])": "setting an array element with a sequence",
    "jnp.array(2**40)": "too large to convert",
    "jnp.array(1, order='F')": "Only implemented for order='K'",
    "jnp.array(1+1j, dtype=float)": "float() argument must be a string or a real number",
    "jnp.zeros(3.)": "Shapes must be 1D sequences of concrete values of integer type",
    "jnp.zeros((2, -1))": "must have every element be nonnegative",
    "jnp.full((2,), [1, 2])": "full requires ndarray or scalar arguments, got <class 'list'> at position 0.",
    "jnp.zeros_like([1.])": "zeros_like requires ndarray or scalar arguments",
    "jnp.arange(0, 1, 0)": "division by zero",
    "jnp.arange(x)": "arguments must be scalars; got stop=",
    "jnp.arange(1j)": "complex start/stop/step",
    "jax.jit(jnp.arange)(3)": "It arose in the jnp.arange argument 'stop'",
    "jnp.linspace(0, 1, num=-1)": "Number of samples, -1, must be non-negative.",
    "jnp.eye(-1)": "negative dimensions are not allowed",
    "jnp.tril(v)": "Argument to jax.numpy.tril must be at least 2D",
    "jnp.meshgrid(x)": "must be 1D, got shapes [(3, 4)]",
    "jnp.meshgrid(v, indexing='foo')": "Valid values for indexing are 'xy' and 'ij'",
    "jnp.diag(np.ones((1, 1, 1)))": "diag input must be 1d or 2d",
    "jnp.uint8(-1)": "out of bounds for uint8",
}


@pytest.mark.parametrize("text", MISUSES)
def test_misuse_raises_the_error_of_jax(text):
    same_misuse(text, VALUES, MISUSES[text])


def test_scalar_types_are_accepted_as_dtypes():
    assert np.dtype(jnp.float32) == np.float32 == jnp.float32
    assert np.dtype(jnp.bfloat16) == ml_dtypes.bfloat16 and jnp.bfloat16 == ml_dtypes.bfloat16
    assert jnp.float32 != jnp.float16 and len({jnp.float32, np.float32}) == 1
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(jnp.ones(2), jnp.float32)
    assert jnp.zeros(2, jnp.int8).dtype == jnp.int8
    same(lambda jnp: repr(jnp.float32))


def test_shapes_of_lists_are_returned_with_a_warning():
    with pytest.warns(DeprecationWarning, match="shape requires ndarray or scalar arguments"):
        assert jnp.shape([1, 2]) == (2,)


def test_arrays_never_share_memory_with_numpy_values():
    mine = np.ones(1000, np.float32)
    array = jnp.asarray(mine)
    mine[:] = 0
    assert float(array.sum()) == 1000


def test_an_object_with_jax_array_is_an_array():
    class Wrapped:
        def __init__(self, x):
            self.x = x

        def __jax_array__(self):
            return self.x

    same(lambda jnp: jnp.asarray(Wrapped(jnp.arange(3))))
    same(lambda jnp: jnp.array([Wrapped(jnp.float32(1)), 2]))


@pytest.mark.parametrize("fill", [np.arange(3), np.ones(3), np.ones((1,), int)])
@pytest.mark.parametrize("options", [{}, {"dtype": int}, {"shape": (4, 3)}])
def test_a_fill_value_of_numpy_is_converted_by_numpy(fill, options):
    same_jaxpr(lambda jnp: lambda x: jnp.full_like(x, fill, **options), np.ones((2, 3), np.float32))


@pytest.mark.parametrize("x", [1.5, 2, np.float32(1), 1j])
def test_functions_of_piecewise_return_the_type_of_the_argument(x):
    same_jaxpr(lambda jnp: lambda x: jnp.piecewise(x, [x == 1], [lambda t: t * 2, lambda t: -t]), x)
    same_refusal(lambda jnp: lambda: jnp.piecewise(x, [x == 1], [lambda t: t, lambda t: 1]))


def test_unique_of_weakly_typed_values_has_the_jaxpr_of_jax():
    same_jaxpr(lambda jnp: lambda x: jnp.unique(x, size=3), -0.25)
