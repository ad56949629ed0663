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


def _functions():
    for module in MODULES:
        ours, theirs = (importlib.import_module(f"{side}.{module}") for side in ("minijax", "jax"))
        for name in dir(theirs):
            function = getattr(theirs, name)
            if name[0] != "_" and callable(function) and not inspect.isclass(function) and hasattr(ours, name):
                yield f"{module}.{name}", getattr(ours, name), function


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
    jax = compare.theirs()
    with compare.wide_numbers(wide):
        different, compared = _differing(jax, module, *TIERS[wide], tier)
    assert not different, "\n".join(map(str, different[:40]))
    assert compared > 20


def _differing(jax, module, dtypes, pairs, tier):
    different, compared = [], 0
    for name, ours, theirs in _functions():
        if name.rpartition(".")[0] != module or name in APART:
            continue
        calls = [(a,) for a in dtypes] if _takes(theirs, 1) else []
        calls += [(a, b) for a in dtypes for b in dtypes] if _takes(theirs, 2) else []
        for call in calls:
            if len(call) == 2 and tier != "full" and not compare.sampled(f"{name}:{call}", pairs):
                continue
            if any(a in LEFT_OUT.get(name, ()) for a in call):
                continue
            args = [ARRAYS[a] for a in call]
            said = _said(minijax, ours, args), _said(jax, theirs, args)
            compared += said[0] != "refused"
            if said[0] != said[1]:
                different.append((name, call, *(s if len(s) < 60 else "a program" for s in said)))
    return different, compared


@pytest.mark.parametrize("name", LEFT_OUT)
def test_calls_that_are_left_out_still_differ(name):
    """At each of the dtypes; or at any, if the function is left out altogether."""
    jax = compare.theirs()
    found = {n: (ours, theirs) for n, ours, theirs in _functions()}
    assert name in found
    differ = (_any_differs(jax, *found[name], dtype) for dtype in LEFT_OUT[name])
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


def test_programs_of_every_requested_dtype(tier):
    """`f(x, dtype=...)` of all functions of arrays that have the parameter."""
    jax = compare.theirs()
    jnp = importlib.import_module("jax.numpy")
    different, compared = [], 0

    def check(name, how, asked, ours, theirs, args):
        nonlocal compared
        said = _said(minijax, ours, args), _said(jax, theirs, args)
        compared += said[0] != "refused"
        if said[0] != said[1]:
            different.append((name, how, asked, *(s if len(s) < 60 else "a program" for s in said)))

    for name, ours, theirs in _functions():
        if "dtype" not in _parameters(theirs):
            continue
        for kind in ("bool", "int32", "uint8", "float32", "complex64"):
            x = [ARRAYS[kind]] * 2 if name in OF_LISTS else ARRAYS[kind]
            for d in ASKED:
                if (name, d) not in MISTAKEN:
                    check(
                        name, kind, d, lambda x, d=d, f=ours: f(x, dtype=d), lambda x, d=d, f=theirs: f(x, dtype=d), [x]
                    )
    for name, make in RANGES.items():
        for d in ASKED:
            check(name, "", d, lambda d=d, make=make: make(minijax.numpy, d), lambda d=d, make=make: make(jnp, d), [])
    assert not different, "\n".join(map(str, different[:40]))
    assert compared > 500


# jax calls a function of NumPy that does not support int4.
MISTAKEN = {(f"numpy.{name}", "int4") for name in ("nanstd", "nanvar")}


def _parameters(function):
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return ()
