"""Dtypes: promotion of every pair in every mode, names and kinds, all against jax."""

import contextlib
import itertools
import random
import warnings

import numpy as np
import pytest

from minijax.base import config, dtypes

ALL = list(dtypes.BY_NAME.values())
SCALARS = [True, 1, 1.5, 1j, bool, int, float, complex, np.int8(1), np.float64(1), np.bool_(True)]
MODES = list(itertools.product((False, True), ("standard", "strict")))


@contextlib.contextmanager
def mode(jax, x64, promotion):
    with jax.enable_x64(x64), jax.numpy_dtype_promotion(promotion):
        with config.enable_x64(x64), config.numpy_dtype_promotion(promotion), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return type(error).__name__


def different(ours, theirs, cases):
    """The cases in which the two functions differ; jax fails with a KeyError on weak narrow integers."""
    rows = [(case, outcome(ours, *case), outcome(theirs, *case)) for case in cases]
    return [row for row in rows if row[1] != row[2] and row[2] != "KeyError"]


@pytest.fixture(scope="module")
def traced():
    """Traced arrays of all dtypes, strong and weak."""
    jax = pytest.importorskip("jax")
    values = []
    with jax.enable_x64(True):
        types = [jax.ShapeDtypeStruct((), dtype, weak_type=weak) for dtype in ALL for weak in (False, True)]
        jax.eval_shape(lambda *xs: values.extend(xs), *types)
    return values


@pytest.mark.oracle
@pytest.mark.parametrize("x64, promotion", MODES)
def test_result_types_of_all_pairs_are_jaxs(traced, x64, promotion):
    import jax

    def ours(*args):
        return dtypes.result_type(*args, return_weak_type_flag=True)

    def theirs(*args):
        return jax.dtypes.result_type(*args, return_weak_type_flag=True)

    values = [*traced, *SCALARS, *ALL, jax.ShapeDtypeStruct((), np.int32, weak_type=True)]
    draw = random.Random(0)
    triples = [tuple(draw.choices(values, k=draw.choice((3, 4)))) for _ in range(2000)]
    with mode(jax, x64, promotion):
        assert not different(ours, theirs, [(v,) for v in values])
        assert not different(ours, theirs, itertools.product(values, repeat=2))
        assert not different(ours, theirs, triples)


@pytest.mark.oracle
@pytest.mark.parametrize("x64, promotion", MODES)
def test_promote_types_of_all_pairs_are_jaxs(x64, promotion):
    import jax

    kinds = [*ALL, bool, int, float, complex, None, "float16", np.int8, object, dtypes.float0, "foo", 1, "U3"]
    with mode(jax, x64, promotion):
        assert not different(dtypes.promote_types, jax.numpy.promote_types, itertools.product(kinds, repeat=2))


ODD = [
    None, str, object, "foo", "i4", "long", "bfloat16", np.dtype("S3"), np.dtype(">f4"), np.integer,
    np.generic, dtypes.float0, np.float32(3), np.zeros(2), "c8", [1, 2], np.dtype([("a", "f4")]), type,
]  # fmt: skip
# Values are not dtypes, and for abstract ones the error depends on the version of NumPy.
NOT_ASKED = (np.ndarray, np.bool_, type(np.integer))


@pytest.mark.oracle
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    "name", ["canonicalize_dtype", "scalar_type_of", "itemsize_bits", "result_type", "finfo", "iinfo"]
)
def test_questions_about_a_dtype_get_jaxs_answers(name, x64):
    import jax

    asks_values = not name.endswith(("info", "bits"))
    cases = [(x,) for x in [*ALL, *SCALARS, *ODD] if asks_values or not isinstance(x, NOT_ASKED)]
    ours, theirs = getattr(dtypes, name), getattr(jax.dtypes, name)
    ours, theirs = (ours, theirs) if not name.endswith("info") else (_texts(ours), _texts(theirs))
    with mode(jax, x64, "standard"):
        assert not different(ours, theirs, cases)


def _texts(function):
    return lambda x: repr(function(x))


@pytest.mark.oracle
def test_kinds_contain_each_other_as_in_jax():
    import jax

    kinds = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
             np.complexfloating, np.bool_, np.void, np.character, int, float, complex, bool, None, "foo",
             "float16", dtypes.float0]  # fmt: skip
    scalars = [dtype.type for dtype in ALL]
    ours, theirs = ([d.extended, d.prng_key] for d in (dtypes, jax.dtypes))
    known = [*kinds, *ALL, *scalars]
    for a, b in itertools.product([*known, *zip(ours, theirs, strict=True)], repeat=2):
        mine, other = ([x[i] if isinstance(x, tuple) else x for x in (a, b)] for i in (0, 1))
        assert outcome(dtypes.issubdtype, *mine) == outcome(jax.dtypes.issubdtype, *other), (a, b)


@pytest.mark.oracle
def test_infinities_exist_for_the_dtypes_of_jax():
    theirs = pytest.importorskip("jax._src.dtypes").supports_inf
    assert [d.name for d in ALL if dtypes.supports_inf(d)] == [d.name for d in ALL if theirs(d)]


@pytest.mark.oracle
def test_short_names_are_those_in_jaxprs():
    import jax

    def show(dtype):
        return str(jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((), dtype)))

    with jax.enable_x64(True):
        for dtype in [*ALL, dtypes.float0]:
            assert f"a:{dtypes.short_name(dtype)}[]" in show(dtype)


class Toy(dtypes.ExtendedDType):
    """An extended dtype that is not a key."""

    type, name, itemsize = dtypes.prng_key, "key<toy>", 8

    def __repr__(self):
        return self.name


class Value:
    def __init__(self, dtype):
        self.dtype = dtype


def test_extended_dtypes_have_kinds_and_names_and_promote_to_themselves_only():
    toy, other = Toy(), Toy()
    assert dtypes.issubdtype(toy, dtypes.prng_key) and dtypes.issubdtype(toy, dtypes.extended)
    assert dtypes.issubdtype(toy, toy) and not dtypes.issubdtype(toy, other)
    assert dtypes.issubdtype(toy, np.generic) and not dtypes.issubdtype(toy, np.number)
    assert dtypes.short_name(toy) == "key<toy>" and dtypes.canonical(toy) is toy
    assert dtypes.canonicalize_dtype(toy, allow_extended_dtype=True) is toy
    assert dtypes.result_type(Value(toy), Value(toy)) is toy
    with pytest.raises(ValueError, match="extended dtype"):
        dtypes.canonicalize_dtype(toy)
    for wrong in (1, Value(other), Value(np.dtype("f4"))):
        with pytest.raises(ValueError, match="is not a valid dtype for JAX type promotion"):
            dtypes.result_type(Value(toy), wrong)
    with pytest.raises(ValueError):
        dtypes.itemsize_bits(toy)


def test_every_spelling_of_a_dtype_is_one_object():
    for dtype in ALL:
        for spelling in (dtype, dtype.type, dtype.name, np.dtype(dtype.type)):
            assert dtypes.canonical(spelling) is dtype
    assert dtypes.canonical(np.dtype([("float0", np.void, 0)])) is dtypes.float0


def test_promotion_errors_name_the_dtypes_and_the_way_out():
    for pair, phrase in [
        (("float8_e4m3fn", "float32"), "8-bit floats do not support implicit promotion"),
        (("int4", "int8"), "1-bit, 2-bit and 4-bit integers do not support implicit promotion"),
    ]:
        with pytest.raises(dtypes.TypePromotionError, match="no available implicit dtype promotion path") as found:
            dtypes.promote_types(*pair)
        assert phrase in str(found.value) and all(name in str(found.value) for name in pair)
    with config.numpy_dtype_promotion("strict"):
        with pytest.raises(dtypes.TypePromotionError, match="jax_numpy_dtype_promotion=strict"):
            dtypes.result_type(np.int32(1), 1.0)
        assert dtypes.result_type(np.float32(1), 1) == np.float32


def test_requests_for_64_bits_warn_raise_or_are_granted():
    ask = dtypes.check_and_canonicalize_user_dtype
    with pytest.warns(UserWarning, match="Explicitly requested dtype int64 requested in zeros is not available") as w:
        assert ask("int64", "zeros") == np.int32
    assert w[0].filename == __file__
    with config.explicit_x64_dtypes("error"), pytest.raises(ValueError, match="Explicitly requested dtype float64"):
        ask(np.float64, "ones")
    with config.explicit_x64_dtypes("allow"):
        assert ask("float64") == np.float64
    with config.enable_x64(True):
        assert ask(np.complex128) == np.complex128 and ask(int) == np.int64
    assert ask(int) == np.int32 and ask(float) == np.float32 and ask("f4") is dtypes.float32
    for wrong in (object, "U3", np.longdouble):
        with pytest.raises(TypeError, match="JAX only supports number, bool, and string dtypes, got dtype"):
            dtypes.check_and_canonicalize_user_dtype(wrong, "zeros")


@pytest.mark.parametrize("x64", [False, True])
def test_default_dtypes_follow_the_switch(x64):
    with config.enable_x64(x64):
        found = [getattr(dtypes, f"default_{kind}_dtype")() for kind in ("int", "uint", "float")]
        found += map(dtypes.scalar_dtype, (int, float, complex, bool))
    wide = ["int64", "uint64", "float64", "int64", "float64", "complex128", "bool"]
    narrow = ["int32", "uint32", "float32", "int32", "float32", "complex64", "bool"]
    assert [dtype.name for dtype in found] == (wide if x64 else narrow)


@pytest.mark.parametrize(
    "name, inexact, complex_, numeric, floating",
    [
        ("bool", "float32", "complex64", "int32", "float32"),
        ("int8", "float32", "complex64", "int8", "float32"),
        ("uint32", "float32", "complex64", "uint32", "float32"),
        ("int64", "float64", "complex128", "int64", "float64"),
        ("uint64", "float64", "complex128", "uint64", "float64"),
        ("int4", "float32", "complex64", "int4", "float32"),
        ("bfloat16", "bfloat16", "complex64", "bfloat16", "bfloat16"),
        ("float64", "float64", "complex128", "float64", "float64"),
        ("complex64", "complex64", "complex64", "complex64", "float32"),
        ("complex128", "complex128", "complex128", "complex128", "float64"),
        ("float8_e4m3fn", "float8_e4m3fn", "complex64", "float8_e4m3fn", "float8_e4m3fn"),
    ],
)
def test_neighbours_of_a_dtype(name, inexact, complex_, numeric, floating):
    dtype = dtypes.BY_NAME[name]
    found = [
        f(dtype)
        for f in (dtypes.to_inexact_dtype, dtypes.to_complex_dtype, dtypes.to_numeric_dtype, dtypes.to_floating_dtype)
    ]
    assert [d.name for d in found] == [inexact, complex_, numeric, floating]
