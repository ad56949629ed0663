"""Conformance of jax.numpy: the calls in `calls/*.txt`, against jax and against NumPy.

A line of a table is a function's name, the operands' dtypes in brackets where not all will do, and the arguments
of its calls: `median [real]: x; x, axis=0`. A line `= a; b` holds expressions. Single letters name operands; a
function in an argument calls its own parameter `u`. A call that ends with `!` is refused by both sides.
A word after the dtypes excludes a comparison: `eager` (no jit), `alone` (NumPy's result is another),
`forward` (no gradient).
"""

import ast
import dataclasses
import functools
import inspect
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from compare import EITHER, LISTED, Case, check_eager, outcome, placed, run_on, sampled, sweep, wide_numbers
from listed_differences import idle_entries
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

TABLES = sorted((Path(__file__).parent / "calls").glob("*.txt"))
BOOLS = ("bool",)
INTS = ("int8", "uint8", "int32", "uint32", "int4")
FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3fn")
COMPLEX = ("complex64",)
WIDE = ("float64", "int64", "complex128")
NARROW = ("int4", "float8_e4m3fn")
KINDS = {
    "any": FLOATS + INTS + BOOLS + COMPLEX + WIDE,
    "number": FLOATS + INTS + COMPLEX + WIDE,
    "real": FLOATS + INTS + BOOLS + WIDE[:2],
    "inexact": FLOATS + COMPLEX + WIDE[::2],
    "float": FLOATS + WIDE[:1],
    "int": ("int32", *INTS, "int64"),
    "exact": ("int32", *INTS, *BOOLS, "int64"),
    "once": ("float32",),
}
SHAPES = {"x": (2, 3), "y": (2, 3), "r": (3,), "v": (7,), "w": (7,), "m": (3, 3), "t": (2, 3, 4), "s": (),
          "e": (0, 3), "o": (1, 3)}  # fmt: skip
FIXED = {
    "i": np.array([2, 0, 1, 2], np.int32),
    "j": np.array([0, 1, 1, 0], np.int32),
    "k": np.array([[2, 0, 1], [1, 1, 0]], np.int32),
    "b": np.array([[True, False, True], [False, True, True]]),
    "q": np.array([0.25, 0.7], np.float32),
    "f": np.array([-1.5, -0.5, 0, 0.25, 1, 2, 3.5], np.float32),
    "g": np.array([3, -1, 0.5, 2, 2, -4, 1], np.float32),
}
# Calls with other results in NumPy, by the reason; more of them are in rows marked `alone`.
OTHER_IN_NUMPY = {
    "full(2, 2**40 + 5)": "it has 64 bits",
    "issubdtype('bfloat16', np.floating)": "it does not know the dtype",
    "issubdtype('int4', np.integer)": "it does not know the dtype",
    "finfo('bfloat16').eps": "it does not know the dtype",
    "iinfo('int4').max": "it does not know the dtype",
    'array_equiv(k.astype("int8"), k.astype("int4"))': "it promotes the two, which are not promoted here",
    "divmod(x, 0)": "it warns of division by zero",
    "floor_divide(x, 0)": "it warns of division by zero",
    "mod(x, 0)": "it warns of division by zero",
    "histogram(v, q, weights=w, density=True)": "it warns of division by zero",
    "fft.rfftn(x[:0])": "it refuses transforms of nothing",
    "pad(v, 1, 'empty')": "the padding is uninitialized",
    "take(x, 9)": "it refuses indices out of bounds",
    "take_along_axis(arr=x, indices=k[:1], axis=0)": "it refuses indices out of bounds",
    "add.accumulate(x, axis=None)": "it wants an axis",
    "frompyfunc(lambda u, v: u - 2 * v, 2, 1, identity=0).reduce(x, axis=1)": "it starts with the first element",
}
# Cells whose jaxprs differ, by the start of their names, with the difference.
OTHER_JAXPRS = {
    "select([1j * x], [x]) bool": "weak conditions are not made strong before they are compared with zero",
    "select([1j * x], [x]) uint": "weak conditions are not made strong before they are compared with zero",
    "select([1j * x], [x]) int": "weak conditions are not made strong before they are compared with zero",
    "select([1j * x], [x]) float32-": "of the conditions' tangents, which nobody reads, fewer operations are left",
}
TRANSFORMS = ("vmap", "grad", "jvp", "vmap_of_grad", "jit_of_vmap_of_jvp")


@dataclasses.dataclass(frozen=True)
class Call:
    """One expression of a table."""

    text: str
    kind: str
    words: frozenset
    refused: bool


def calls(path):
    for line in path.read_text().splitlines():
        found = re.match(r"(?P<name>[\w.]+|=)(?: \[(?P<tags>[\w ,]+)\])?(?::| )(?P<rest>.*)", line)
        if not line or line.startswith("#"):
            continue
        assert found, f"{path.name}: {line}"
        kind, *words = re.split(r"[ ,]+", found["tags"] or "any")
        for part in found["rest"].split(";"):
            part = part.strip()
            refused, part = part.endswith("!"), part.removesuffix("!").strip()
            text = part if found["name"] == "=" else f"{found['name']}({part})"
            yield Call(text, kind, frozenset(words), refused)


def operand(name, dtype):
    """Numbers of both signs, some of them equal, without zeros."""
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    numbers = (np.arange(np.prod(SHAPES[name], dtype=int)) * 5 + ord(name)) % 13
    numbers = numbers if dtype.kind in "ub" else numbers - 6
    numbers = np.where(numbers == 0, 5, numbers).reshape(SHAPES[name])
    if dtype.kind in "biu" or dtype.name == "int4":
        return numbers.astype(dtype) if dtype.kind != "b" else numbers % 2 == 1
    return (numbers * (0.5 + 0.25j if dtype.kind == "c" else 0.5)).astype(dtype)


def names_of(text):
    tree = ast.parse(text, mode="eval")
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def function(module, text, namespace=None):
    """The expression as a function of the operands that it names."""
    names = list(dict.fromkeys(names_of(text)))
    operands = [name for name in names if name in SHAPES or name in FIXED]
    given = {name: getattr(module, name) for name in names if name not in operands and hasattr(module, name)}
    return eval(f"lambda {', '.join(operands)}: {text}", {**(namespace or {}), "np": np, "jnp": module, **given})


def beside(jax):
    """Names that an expression may use besides jax.numpy: `auto` is a sharding over a mesh with an Auto axis."""
    sharding = jax.sharding
    mesh = jax.make_mesh((2,), ("x",), axis_types=(sharding.AxisType.Auto,), devices=jax.devices()[:2])
    return {"jax": jax, "auto": lambda *spec: sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec))}


def case(call, dtype):
    operands = [name for name in dict.fromkeys(names_of(call.text)) if name in SHAPES or name in FIXED]
    args = tuple(FIXED[name] if name in FIXED else operand(name, dtype) for name in operands)

    def program(jax, jnp):
        return function(jnp, call.text, beside(jax))

    # A call that is refused at its first dtype may be accepted, or refused for other reasons, at other dtypes.
    raises = call.refused if dtype == KINDS[call.kind][0] else EITHER if call.refused else LISTED
    return Case(f"{call.text} {dtype}", program, args, raises=raises)


def varies(call):
    return any(name in SHAPES for name in names_of(call.text))


def agree(calls_and_cases, tier):
    for c, k in calls_and_cases:
        if "eager" in c.words:
            check_eager(k)
    swept([k for c, k in calls_and_cases if "eager" not in c.words], tier)


def swept(cases, tier):
    known = tuple(OTHER_JAXPRS)
    sweep([c for c in cases if not c.name.startswith(known)], tier)
    sweep([c for c in cases if c.name.startswith(known)], tier, jaxpr=False)


def tables():
    return pytest.mark.parametrize("path", TABLES, ids=lambda p: p.stem)


@tables()
def test_calls_agree_at_home(path, tier):
    agree([(c, case(c, KINDS[c.kind][0])) for c in calls(path)], tier)


def chosen(name, tier):
    return tier == "full" or sampled(name, of="calls ")


def known_to_jax(k):
    """Returns whether jax accepts the dtype: many of its functions call NumPy, which does not have all dtypes."""
    jax = pytest.importorskip("jax")
    return not outcome(lambda: jax.eval_shape(run_on(jax, k.program), *placed(jax, k.args))).error


@tables()
def test_calls_agree_on_other_dtypes(path, tier):
    for wide in (False, True):
        found = [
            (c, case(c, dtype))
            for c in calls(path)
            if varies(c)
            for dtype in KINDS[c.kind][1:]
            if (dtype in WIDE) == wide
        ]
        found = [(c, k) for c, k in found if chosen(k.name, tier)]
        found = [(c, k) for c, k in found if not k.name.endswith(NARROW) or known_to_jax(k)]
        with wide_numbers(wide):
            agree(found, tier)


@tables()
def test_calls_agree_under_transforms(path, tier):
    cases = [
        transformed(case(c, KINDS[c.kind][0]), name)
        for c in calls(path)
        if varies(c) and not c.refused and not c.words & {"eager"}
        for name in TRANSFORMS
        if name == "vmap" or KINDS[c.kind][0] == "float32"
        if "grad" not in name or "forward" not in c.words
    ]
    swept([c for c in cases if chosen(c.name, tier)], tier)


def test_listed_jaxprs_still_differ():
    listed = tuple({entry.partition(") ")[0] for entry in OTHER_JAXPRS})
    found = [c for path in TABLES for c in calls(path) if c.text.startswith(listed)]
    cases = [case(c, dtype) for c in found for dtype in KINDS[c.kind]]
    cases += [transformed(case(c, KINDS[c.kind][0]), name) for c in found for name in TRANSFORMS]
    assert idle_entries(OTHER_JAXPRS, cases) == []


def test_listed_answers_still_differ_from_numpys():
    found = {c.text: c for path in TABLES for c in calls(path)}
    assert [
        text
        for text in OTHER_IN_NUMPY
        if text not in found or alike(*sides_of_numpy(found[text], case(found[text], KINDS[found[text].kind][0])))
    ] == []


def sides_of_numpy(c, k):
    """The outcomes of a call on minijax and on NumPy."""
    theirs = outcome(lambda: function(np, c.text)(*k.args))
    return outcome(lambda: function(minijax.numpy, c.text, beside(minijax))(*k.args)), theirs


@tables()
def test_calls_agree_with_numpy(path, tier):
    """Where NumPy has the function and its arguments: equal shapes, and close numbers."""
    differing, compared = [], 0
    for c in calls(path):
        k = case(c, KINDS[c.kind][0])
        if c.refused or c.words & {"alone"} or c.text in OTHER_IN_NUMPY or not chosen(k.name, tier):
            continue
        ours, theirs = sides_of_numpy(c, k)
        if isinstance(theirs.error, AttributeError | NameError | TypeError):
            continue
        compared += 1
        if not alike(ours, theirs):
            differing.append(f"{c.text}: ours {ours}, NumPy's {theirs}")
    assert not differing, "\n".join(differing)
    assert compared or tier != "full"


def alike(ours, theirs):
    if ours.error or theirs.error:
        return bool(ours.error) and bool(theirs.error)
    found = [minijax.tree.leaves(side.value) for side in (ours, theirs)]
    if len(found[0]) != len(found[1]):
        return False
    for a, b in zip(*found, strict=True):
        if not hasattr(a, "dtype"):
            if not hasattr(b, "dtype") and a != b:
                return False
            continue
        a, b = np.asarray(a), np.asarray(b)
        b = b.astype(a.dtype) if b.dtype == object else b
        # NumPy computes in double precision what is single here.
        if a.shape != b.shape or not np.allclose(a, b, rtol=2e-4, atol=2e-4, equal_nan=True):
            return False
    return True


# Coverage

PUBLIC = ("", "linalg.", "fft.")


def public_functions():
    jax = pytest.importorskip("jax")
    for prefix in PUBLIC:
        module = getattr(jax.numpy, prefix[:-1]) if prefix else jax.numpy
        for name in dir(module):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value) and not isinstance(value, type):
                yield prefix + name, value


# Parameters whose other values jax refuses, and functions without results that a table could compare.
REFUSED = """
    out order kind overwrite_input edge_order subset_by_index meshgrid.copy fill_diagonal.wrap
""".split()
ELSEWHERE = (
    "fromfile fromiter from_dlpack load save savez printoptions set_printoptions".split()
)  # test_io, test_transfer


def may_be_given(name, signature):
    named = [p.name for p in signature.parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    takes_order = name in ("ravel", "reshape")
    return {p for p in named if (p not in REFUSED or p == "order" and takes_order) and f"{name}.{p}" not in REFUSED}


def given_parameters(signature, node):
    """The parameters that a call gives, apart from those that it gives their default."""
    arguments = [a for a in node.args if not isinstance(a, ast.Starred)]
    bound = signature.bind_partial(*arguments, **{k.arg: k.value for k in node.keywords if k.arg}).arguments
    for name, value in bound.items():
        if isinstance(value, ast.AST):
            text, default = ast.unparse(value), signature.parameters[name].default
            if text == repr(default):
                continue
        yield name


def uncovered():
    """`name.parameter` for each parameter that no call sets; `name` for a function that is not called.

    `out`, and `where` of universal functions, only take None.
    """
    functions, signatures = dict(public_functions()), {}
    ufunc = type(functions["add"])
    for name, value in functions.items():
        try:
            signatures[name] = inspect.signature(value)
        except (TypeError, ValueError):
            signatures[name] = None
    left = {
        n: may_be_given(n, s) if s and not isinstance(functions[n], ufunc) else set() for n, s in signatures.items()
    }
    reached = set()
    for path in TABLES:
        for call in calls(path):
            if call.refused:
                continue
            for node in ast.walk(ast.parse(call.text, mode="eval")):
                if isinstance(node, ast.Attribute):
                    reached.add(ast.unparse(node).removeprefix("jnp."))
                if isinstance(node, ast.Name):
                    reached.add(node.id)
                if not isinstance(node, ast.Call):
                    continue
                name = ast.unparse(node.func).removeprefix("jnp.")
                if signatures.get(name):
                    left[name] -= set(given_parameters(signatures[name], node))
    return sorted(
        [n for n in functions if n not in reached and n not in ELSEWHERE]
        + [f"{n}.{p}" for n, parameters in left.items() if n in reached for p in parameters]
    )


def test_functions_have_the_signatures_of_jax():
    def parameters(f):
        # A default that is a function of the package's own has another name there.
        return [
            (p.name, p.kind, None if callable(p.default) else p.default)
            for p in inspect.signature(f).parameters.values()
        ]

    different = []
    for name, theirs in public_functions():
        ours = functools.reduce(getattr, name.split("."), minijax.numpy)
        if not isinstance(ours, type) and parameters(ours) != parameters(theirs):
            different.append(name)
    assert different == []


def test_every_parameter_of_every_function_has_a_case():
    assert sorted(uncovered()) == []


if __name__ == "__main__":
    print("\n".join(uncovered()))
