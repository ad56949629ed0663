"""Files, strings, printing and kinds of dtypes, against jax; and the warnings of lost imaginary parts."""

import io
import warnings

import numpy as np
import pytest
from compare import run_on, same, same_refusal

import minijax

pytestmark = pytest.mark.oracle

DTYPES = ("float32", "float64", "bfloat16", "float16", "int8", "uint32", "bool", "complex64", "int4", "float8_e4m3fn")
KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
         "numeric", ("integral", "bool"), (), "float32", np.dtype("int8"), float, (int, "bool"))  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_saved_values_are_loaded(dtype, tmp_path):
    def program(jnp):
        jnp.save(tmp_path / "x.npy", jnp.arange(4).astype(dtype))
        return jnp.load(tmp_path / "x.npy"), np.asarray(jnp.load(str(tmp_path / "x.npy"), "r")).tobytes()

    same(lambda jnp: _quietly(lambda: program(jnp)))


def test_save_and_load_take_open_files_and_allow_no_objects_unasked(tmp_path):
    def program(jnp):
        file = io.BytesIO()
        jnp.save(file, jnp.ones((2, 3)), allow_pickle=False)
        file.seek(0)
        return jnp.load(file)

    same(program)
    np.save(tmp_path / "objects.npy", np.array([{}, 1], object))
    same(lambda jnp: jnp.load(tmp_path / "objects.npy", allow_pickle=True))
    same_refusal(lambda jnp: lambda: jnp.load(tmp_path / "objects.npy"), phrases=["allow_pickle"])


def test_savez_keeps_names(tmp_path):
    def program(jnp):
        jnp.savez(tmp_path / "x.npz", jnp.arange(3), b=jnp.ones(2, "bfloat16"))
        with jnp.load(tmp_path / "x.npz") as found:
            return {name: (found[name].dtype.str, found[name].tobytes()) for name in found}

    same(program)


STRINGS = (
    ("1 2 3", dict(sep=" ")),
    ("1,2,3", dict(dtype=int, sep=",")),
    ("1,2,3", dict(count=2, sep=",")),
    ("1,2", dict(dtype="float16", count=1, sep=",")),
)


@pytest.mark.parametrize(("text", "how"), STRINGS)
def test_fromstring(text, how):
    same(lambda jnp: jnp.fromstring(text, **how))


@pytest.mark.parametrize("call", [lambda jnp: jnp.fromstring("ab", sep=""), lambda jnp: jnp.fromfile("x"),
                                  lambda jnp: jnp.fromiter(iter([1]), int)])  # fmt: skip
def test_unreadable_values_are_refused(call):
    same_refusal(lambda jnp: lambda: call(jnp))


@pytest.mark.parametrize("dtype", [*DTYPES, float, int, bool, np.float32, np.dtype("uint8")])
def test_isdtype(dtype):
    same(lambda jnp: [jnp.isdtype(dtype, kind) for kind in KINDS])
    same(lambda jnp: [jnp.isdtype(dtype, getattr(jnp, name)) for name in ("float32", "int4", "bfloat16")])


@pytest.mark.parametrize("kind", ["foo", 1, ["bool"], (("bool",),), np.floating])
def test_isdtype_refuses_other_kinds(kind):
    same_refusal(lambda jnp: lambda: jnp.isdtype("float32", kind), phrases=["kind="])


def test_iterable():
    same(lambda jnp: [jnp.iterable(x) for x in (jnp.ones(3), jnp.ones(()), jnp.ones(0), [1], 3)])


PRINTED = (dict(), dict(precision=2), dict(max_line_width=12), dict(precision=3, suppress_small=True))


@pytest.mark.parametrize("how", PRINTED)
def test_arrays_print_as_in_jax(how):
    same(lambda jnp: jnp.array_str(jnp.arange(6.0).reshape(2, 3) / 3e4, **how))
    same(lambda jnp: jnp.array_repr(jnp.arange(6.0) / 3e4, **how))


def test_print_options_hold_for_both():
    def program(jnp):
        x, before = jnp.arange(20.0) / 3, jnp.get_printoptions()
        with jnp.printoptions(precision=2):
            inside = repr(x)
        jnp.set_printoptions(precision=3, threshold=4)
        try:
            return inside, repr(x), before, jnp.get_printoptions()
        finally:
            jnp.set_printoptions(**before)

    same(program)
    same_refusal(lambda jnp: lambda: jnp.set_printoptions(foo=2))


# ---- warnings ----------------------------------------------------------------------------------------


def _quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


CASTS = {
    "astype": lambda x, jnp, lax: x.astype("float32"),
    "jnp.astype": lambda x, jnp, lax: jnp.astype(x, "int32"),
    "astype bool": lambda x, jnp, lax: x.astype(bool),
    "convert": lambda x, jnp, lax: lax.convert_element_type(x, "float32"),
    "sum": lambda x, jnp, lax: jnp.sum(x, dtype="float32"),
    "cumprod": lambda x, jnp, lax: jnp.cumprod(x, dtype="float32"),
    "array": lambda x, jnp, lax: jnp.array(x, dtype="float32"),
    "asarray of NumPy's": lambda x, jnp, lax: jnp.asarray(np.array([1j]), dtype="float32"),
    "linspace": lambda x, jnp, lax: jnp.linspace(x[0], 1, 3, dtype="float32"),
    "full": lambda x, jnp, lax: jnp.full(2, x[0], dtype="float32"),
    "stack": lambda x, jnp, lax: jnp.stack([x], dtype="float32"),
    "insert": lambda x, jnp, lax: jnp.insert(jnp.ones(3), 0, x[0]),
    "to complex": lambda x, jnp, lax: x.astype("complex64"),
}


@pytest.mark.parametrize("name", CASTS)
def test_a_lost_imaginary_part_is_warned_of(name):
    def program(jax, jnp, lax):
        x = jnp.arange(3) + 1j
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            value = CASTS[name](x, jnp, lax)
        return value, sorted({warning.category.__name__ for warning in found})

    same(program)


def test_the_warning_is_numpys_and_names_the_users_line():
    assert minijax.numpy.ComplexWarning is np.exceptions.ComplexWarning
    with pytest.warns(minijax.numpy.ComplexWarning, match="discards the imaginary part") as found:
        run_on(minijax, lambda jnp: jnp.sum(jnp.ones(2) * 1j, dtype="float16"))
    assert found[0].filename == __file__


def test_cotangents_become_real_without_a_warning():
    same(lambda jax, jnp: jax.grad(lambda x: (x.astype("complex64") * 1j).imag.sum())(jnp.ones(3)))
