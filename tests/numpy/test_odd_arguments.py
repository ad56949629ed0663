"""Odd arguments of single functions, against jax: values, or the class and the phrase of the error."""

import re

import compare
import numpy as np
import pytest

import minijax as mini

jax = compare.theirs()

pytestmark = pytest.mark.oracle
BOTH = (mini, jax)
SQUARE, TANGENT = np.array([[1 - 2j]], np.complex64), np.array([[0.3 + 0.7j]], np.complex64)


def agree(function):
    ours, theirs = (j.tree_util.tree_map(np.asarray, function(j)) for j in BOTH)
    for x, y in zip(mini.tree_util.tree_leaves(ours), jax.tree_util.tree_leaves(theirs), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5)


def refuse(function, error, phrase):
    for j in BOTH:
        with pytest.raises(error, match=re.escape(phrase)):
            function(j)


@pytest.mark.parametrize(
    "x", [(SQUARE, TANGENT), (np.eye(3, dtype="f") + SQUARE, np.arange(9).reshape(3, 3) * TANGENT)]
)
def test_pinv_of_a_hermitian_part_has_its_derivative(x):
    x = [a.astype(np.complex64) for a in x]
    agree(lambda j: j.jvp(lambda a: j.numpy.linalg.pinv(a, hermitian=True), x[:1], x[1:]))


@pytest.mark.parametrize(
    "shape, dx, axis",
    [((3, 4, 5), (4, 5), 0), ((3, 4, 5), (3, 5), 1), ((3, 4, 5), (5,), 1), ((2, 3, 4, 5), (2, 1, 3, 5), 2),
     ((3, 4, 5), (2, 4, 5), 0), ((5,), (4,), 0), ((5,), (1,), 0), ((3, 4), (1,), -1)],
)  # fmt: skip
def test_trapezoid_takes_an_array_as_dx(shape, dx, axis):
    y, d = (np.arange(1, 1 + np.prod(s), dtype=np.float32).reshape(s) for s in (shape, dx))
    agree(lambda j: j.numpy.trapezoid(y, dx=d, axis=axis))


@pytest.mark.parametrize("options", [{}, {"full": True}, {"cov": True}, {"w": np.ones(5)}])
def test_polyfit_promotes_no_rank(options):
    y = np.float32([[1, 2], [3, 5], [2, 2], [7, 1], [0, 4]])

    def fit(j):
        with j.numpy_rank_promotion("raise"):
            return j.numpy.polyfit(np.arange(5, dtype="f"), y, 2, **options)

    agree(fit)


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("fill", [None, 9])
def test_setxor1d_of_nothing_is_filled(unique, fill):
    none = np.zeros(0, np.float32)
    agree(lambda j: j.numpy.setxor1d(none, none, assume_unique=unique, size=2, fill_value=fill))


@pytest.mark.parametrize("item", ["abc", None])
def test_arrays_contain_no_other_types(item):
    refuse(lambda j: item in j.numpy.arange(2), TypeError, "Array.__contains__: unsupported operand type")


def test_arrays_contain_scalars_only():
    message = "Array.__contains__: query value must be a scalar"
    refuse(lambda j: j.numpy.arange(2) in j.numpy.arange(2), ValueError, message)
    agree(lambda j: [1 in j.numpy.arange(2), 5 in j.numpy.arange(2)])


def test_split_takes_a_float_as_number():
    agree(lambda j: j.numpy.split(np.zeros((12, 2), "f"), 2.0))
    agree(lambda j: j.numpy.array_split(np.zeros((12, 2), "f"), 5.0))


@pytest.mark.parametrize("name", ["fftn", "irfftn", "fft2"])
def test_ffts_refuse_repeated_axes(name):
    message = f"jax.numpy.fft.{name} does not support repeated axes. Got axes [1, 1]"
    refuse(lambda j: getattr(j.numpy.fft, name)(np.ones((2, 3)), axes=[1, 1]), ValueError, message)


def test_sizes_that_int32_does_not_hold():
    def top(j):
        j.eval_shape(lambda x: j.lax.top_k(x, 9), j.ShapeDtypeStruct((2**31 + 1,), np.float32))

    refuse(top, ValueError, "top_k returns int32 indices, which will overflow")
    for j in BOTH:
        a, v = j.ShapeDtypeStruct((2**31 - 1,), np.float32), j.ShapeDtypeStruct((), np.float32)
        assert j.eval_shape(j.numpy.searchsorted, a, v).dtype == np.int32


def test_interp_names_its_parameters():
    a = np.arange(3.0)
    refuse(lambda j: j.numpy.interp(0, a[1:], a), ValueError, "xp and fp must be one-dimensional arrays of equal size")
    refuse(lambda j: j.numpy.interp(0, a, a, left="x"), ValueError, "the only valid string value of `left`")


def test_random_bounds_and_counts_of_every_shape_and_dtype():
    agree(lambda j: j.random.randint(j.random.key(0), (3, 2), np.int32([0, 1]), np.int32([5, 9])))
    for dtype in ("float16", "bfloat16", "float32"):
        n, p = np.asarray(10, dtype), np.full(3, 1 / 3, np.float32).astype(dtype)
        agree(lambda j, n=n, p=p: j.random.multinomial(j.random.key(0), n, p))


@pytest.mark.parametrize("args", [(False,), (True,), (None,), (True, "K"), (True, None, 2), (False, "K", 3)])
def test_positional_arguments_of_array_warn(args):
    def program(j):
        x = j.numpy.ones(3)
        with pytest.warns(DeprecationWarning, match="copy, order, and ndmin arguments to jnp.array positionally"):
            copied = j.numpy.array(x, None, *args)
        return copied is x, copied

    agree(program)


@pytest.mark.parametrize(
    "args, options, error, phrase",
    [((True, "F"), {}, NotImplementedError, "Only implemented for order='K'"),
     ((True, "K", 2, 3), {}, TypeError, "array() takes at most 5 positional arguments"),
     ((True,), {"copy": False}, TypeError, "array() got multiple values for argument 'copy'")],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Passing the copy")
def test_positional_arguments_of_array_are_heeded(args, options, error, phrase):
    refuse(lambda j: j.numpy.array([1], None, *args, **options), error, phrase)


@pytest.mark.parametrize("name", ["mgrid", "ogrid"])
@pytest.mark.parametrize("key", [np.s_[0:3, 0:2.5], np.s_[0:1:3j, 0:2], np.s_[0 : np.float16(3), 0:2], np.s_[0:3]])
def test_grids_promote_their_ranges_where_promotion_is_strict(name, key):
    def program(j):
        with j.numpy_dtype_promotion("strict"):
            return getattr(j.numpy, name)[key]

    agree(program)
