"""Every function that takes one or two arrays, called with arrays of every dtype: programs, or refusals, as jax's."""

import importlib
import inspect
import re
import warnings

import compare
import ml_dtypes
import numpy as np
import pytest

import minijax

pytestmark = pytest.mark.oracle

DTYPES = "bool int8 int4 uint8 int32 uint32 bfloat16 float16 float32 complex64 float8_e4m3fn".split()
BASE = np.arange(1, 7).reshape(2, 3)
WIDE = "int8 uint8 int32 int64 uint32 uint64 bfloat16 float16 float64 complex64 complex128".split()
ARRAYS = {d: BASE.astype(np.dtype(getattr(ml_dtypes, d, d))) for d in [*DTYPES, *WIDE]} | {
    "weak_int": 2,
    "weak_float": 1.5,
}
# Whether 64-bit types are on -> the dtypes, and of how many pairs one is compared in the default tier.
TIERS = {False: ([*DTYPES, "weak_int", "weak_float"], 8), True: ([*WIDE, "weak_int", "weak_float"], 40)}
MODULES = ("numpy", "numpy.linalg", "numpy.fft", "lax", "nn")

# These read files or print, or do not return arrays.
APART = """
    numpy.fromfile numpy.frombuffer numpy.from_dlpack numpy.load numpy.save numpy.savez numpy.printoptions
    numpy.set_printoptions numpy.get_printoptions numpy.isdtype numpy.iscomplexobj
""".split()
# Calls that are left out, by the reason: those of a function, or those with one of the dtypes.
KNOWN = {
    "jax fails inside, by mistake": """
        numpy.frexp:float8_e4m3fn numpy.ldexp:float8_e4m3fn numpy.nansum:int4 numpy.nanprod:int4 numpy.sum:int4
        numpy.prod:int4 numpy.trace:int4 numpy.pow:int4 numpy.power:int4 numpy.linalg.trace:int4
        numpy.linalg.vector_norm:int4 numpy.linalg.tensorsolve:weak_int,weak_float
    """,
    "casts of weak types stand elsewhere": """
        lax.random_gamma_grad:weak_float numpy.linalg.lstsq:uint64
    """,
    "a row of numbers is no shape for jax": "lax.shape_as_value",
}
LEFT_OUT = {
    name: dtypes.split(",") if dtypes else [*ARRAYS]
    for names in KNOWN.values()
    for name, _, dtypes in (token.partition(":") for token in names.split())
}


def _functions(module):
    """The names of the public functions of a module of minijax."""
    found = compare.module_of(f"minijax.{module}")
    names = [name for name in dir(found) if name[0] != "_" and not name.endswith("_p")]
    return [n for n in names if callable(function := getattr(found, n)) and not inspect.isclass(function)]


def _takes(function, count):
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _said(side, function, args):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = compare.normal(str(side.make_jaxpr(function)(*args)))
    except Exception:
        return "refused"
    # jax leaves some of NumPy's numbers in parameters, and breaks lines there.
    return re.sub(r"\s", "", re.sub(r"np\.int64\((-?\d+)\)", r"\1", text))


@pytest.mark.parametrize("wide", TIERS)
@pytest.mark.parametrize("module", MODULES)
def test_programs_of_arguments_of_every_dtype(module, wide, tier):
    compared = 0
    with compare.wide_numbers(wide):
        for name in _functions(module):
            calls = _calls(f"{module}.{name}", *TIERS[wide], tier)

            def programs(side):
                function = getattr(compare.module_of(f"{side.__name__}.{module}"), name)  # noqa: B023
                return "\n".join(f"{call}: {_said(side, function, [ARRAYS[a] for a in call])}" for call in calls)  # noqa: B023

            compared += len(calls)
            if calls:
                compare.same_printed("programs of every dtype", programs, module, name, calls)
    assert compared > 40


def _calls(name, dtypes, pairs, tier):
    """The dtypes of the arguments of each call of a function that is compared."""
    if name in APART:
        return []
    function = _function("minijax", name)
    calls = [(a,) for a in dtypes] if _takes(function, 1) else []
    if _takes(function, 2):
        drawn = [(a, b) for a in dtypes for b in dtypes]
        calls += [call for call in drawn if tier == "full" or compare.sampled(f"{name}:{call}", pairs)]
    return [call for call in calls if not any(a in LEFT_OUT.get(name, ()) for a in call)]


def _function(side, name):
    module, _, name = name.rpartition(".")
    return getattr(compare.module_of(f"{side}.{module}"), name)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_calls_that_are_left_out_still_differ(name):
    """At each of the dtypes; or at any, if the function is left out altogether."""
    functions = compare.theirs(), _function("minijax", name), _function("jax", name)
    differ = (_any_differs(*functions, dtype) for dtype in LEFT_OUT[name])
    assert any(differ) if LEFT_OUT[name] == [*ARRAYS] else all(differ)


def _any_differs(jax, ours, theirs, dtype):
    for wide, (dtypes, _) in TIERS.items():
        if dtype not in dtypes:
            continue
        calls = [(dtype,)] if _takes(theirs, 1) else []
        calls += [pair for other in dtypes for pair in ((dtype, other), (other, dtype)) if _takes(theirs, 2)]
        with compare.wide_numbers(wide):
            for call in calls:
                args = [ARRAYS[a] for a in call]
                if _said(minijax, ours, args) != _said(jax, theirs, args):
                    return True
    return False


ASKED = [*DTYPES, bool, int, float, complex, "float64", "int64", "V4"]
OF_LISTS = ("numpy.concatenate", "numpy.stack", "numpy.hstack", "numpy.vstack", "numpy.dstack")
RANGES = {
    "arange": lambda jnp, d: jnp.arange(9, 2, -2, dtype=d),
    "arange to": lambda jnp, d: jnp.arange(5, dtype=d),
    "linspace": lambda jnp, d: jnp.linspace(0, 5, 4, dtype=d),
    "logspace": lambda jnp, d: jnp.logspace(0, 1, 4, dtype=d),
    "geomspace": lambda jnp, d: jnp.geomspace(1, 8, 4, dtype=d),
    "indices": lambda jnp, d: jnp.indices((2, 3), dtype=d),
    "full": lambda jnp, d: jnp.full((2,), 1.5, dtype=d),
    "eye": lambda jnp, d: jnp.eye(2, dtype=d),
    "tri": lambda jnp, d: jnp.tri(2, dtype=d),
    "fromfunction": lambda jnp, d: jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=d),
    "one_hot": lambda jnp, d: (
        None
        if d == "V4"
        else importlib.import_module(f"{jnp.__name__.split('.')[0]}.nn").one_hot(jnp.arange(2), 3, dtype=d)
    ),
}


@pytest.mark.parametrize("module", MODULES)
def test_programs_of_every_requested_dtype(module):
    """`f(x, dtype=...)` of all functions of arrays that have the parameter."""
    for name in _functions(module):
        if "dtype" in _parameters(_function("minijax", f"{module}.{name}")):
            compare.same_printed(
                "programs of every requested dtype",
                lambda side, name=f"{module}.{name}": _programs_of_requested_dtypes(side, name),
                module,
                name,
            )


def _programs_of_requested_dtypes(side, name):
    function, found = _function(side.__name__, name), []
    for kind in ("bool", "int32", "uint8", "float32", "complex64"):
        x = [ARRAYS[kind]] * 2 if name in OF_LISTS else ARRAYS[kind]
        for d in ASKED:
            if (name, d) not in MISTAKEN:
                found.append(f"{kind} {d}: {_said(side, lambda x, d=d: function(x, dtype=d), [x])}")
    return "\n".join(found)


@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_every_requested_dtype(name):
    def programs(side):
        jnp = compare.module_of(f"{side.__name__}.numpy")
        return "\n".join(f"{d}: {_said(side, lambda d=d: RANGES[name](jnp, d), [])}" for d in ASKED)

    compare.same_printed("ranges of every requested dtype", programs, name)


# jax calls a function of NumPy that does not support int4.
MISTAKEN = {(f"numpy.{name}", "int4") for name in ("nanstd", "nanvar")}


def _parameters(function):
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return ()
