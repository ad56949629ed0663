"""Every public primitive at every dtype under every transform, against jax: the table in lines.txt."""

import contextlib
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import raising
from compare import Case, ours, outcome, placed, run_on, same_refusal, sampled, sweep, theirs, wide_numbers
from conformance.differences import same_as_differences
from conformance.table import DOUBLES, DTYPES, FIXED, SHAPES, Row, case, home, names_of, operand, rows
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

ROWS = list(rows())
TRANSFORMS = ("jvp", "vjp", "vmap", "vmap_along_1", "vmap_along_2", "vmap_of_jvp", "vmap_of_vjp")
SHARE = 50  # one in so many of all combinations is compared

NOT_REACHED = {
    "call_p": "the operations of a call take its place",
    "closed_call_p": "the operations of a call take its place",
    "custom_lin_p": "is there only while a custom_vjp is differentiated",
    "empty2_p": "jax fills in branches with it, minijax needs none",
    "ragged_all_to_all_p": "XLA has none for CPUs",
    "random_gamma_p": "minijax has none",
}

# Dtypes and transforms of a line where jax is wrong, or minijax by design another: a pattern of its primitive, dtype
# and transform, a part of its expression, and the reason.
ODD = [
    ("^clamp_p .* .*(jvp|vjp)", "(S,", "jax fails for derivatives by bounds that are scalars"),
    ("^select_and_gather_add_p (bool|u?int|complex)", "", "jax gathers others than the winners'"),
    ("^linear_solve_p .* vmap_of_vjp", "", "which equal jaxprs are one, and printed once, differs"),
    ("^cumlogsumexp_p float8_e4m3fn", "", "this dtype has no infinity, and jax gives NaN for it"),
    ("^eq_to_p complex", "", "jax refuses it too, but only when it is lowered or compiled"),
    ("^rng_bit_generator_p .* vmap", "", "jax writes the new key by way of more operations"),
    (r"^get_p \w+ (?!plain)", "", "reads and writes are done at once under transforms; jax fails for some"),
]


def test_every_public_primitive_is_reached():
    lines = (Path(__file__).parents[1] / "support" / "primitives.txt").read_text().splitlines()
    public = [line.split()[0] for line in lines if line[0] != "-"]
    primitives = importlib.import_module("jax.extend.core.primitives")
    for row in ROWS:
        held = names_in(theirs().make_jaxpr(run_on(theirs(), case(row).program))(*case(row).args).jaxpr)
        for name in row.primitives:
            assert getattr(getattr(primitives, name, None), "name", name) in held, row
    named = {name for row in ROWS for name in row.primitives}
    assert sorted(set(public) - named) == sorted(NOT_REACHED)


def names_in(jaxpr: Any) -> set[str]:
    """The primitives of a jaxpr and of those inside it."""
    found = {eqn.primitive.name for eqn in jaxpr.eqns}
    inner = [x for eqn in jaxpr.eqns for p in eqn.params.values() for x in (p if type(p) in (tuple, list) else [p])]
    return found.union(*(names_in(getattr(j, "jaxpr", j)) for j in inner if hasattr(j, "eqns")))


def test_every_line_at_home(tier):
    sweep([case(row) for row in ROWS], tier)


def cells(row: Row, dtype: str, tier: str) -> list[Case]:
    """The sampled cases of a line at a dtype under each transform; the line itself if jax refuses the dtype."""
    c = case(row, dtype)
    one = [f"vmap_{i}_along_{k}" for i, x in enumerate(c.args) for k in range(np.ndim(x) + 1) if len(c.args) > 1]
    found = [transformed(c, t) for t in ("plain", *TRANSFORMS, *one) if not odd(row, dtype, t)]
    found = [t for t in found if chosen(t.name, tier)]
    if found and outcome(lambda: theirs().eval_shape(run_on(theirs(), c.program), *c.args)).error:
        return [transformed(c, "plain")]
    return found


def odd(row: Row, dtype: str, transform: str) -> bool:
    return any(
        re.search(what, f"{row.primitives[0]} {dtype} {transform}") and text in row.expression for what, text, _ in ODD
    )


def chosen(name: str, tier: str, share: int = SHARE) -> bool:
    return tier == "full" or sampled(name, share, of="conformance ")


@contextlib.contextmanager
def width(dtype: str) -> Iterator[None]:
    with wide_numbers(dtype in DOUBLES):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_line_at_every_dtype_under_every_transform(dtype, tier):
    with width(dtype):
        sweep([c for row in ROWS if dtype in row.dtypes for c in cells(row, dtype, tier)])


@pytest.mark.parametrize("transform", ["plain", *(pytest.param(t, marks=pytest.mark.full) for t in TRANSFORMS)])
def test_no_line_is_lowered_to_more_operations_than_jax_s(transform):
    more = []
    for row in ROWS:
        c = transformed(case(row), transform)
        if odd(row, home(row), transform):
            continue
        counts = [outcome(lambda side=side, c=c: operations(side, c)) for side in (ours(), theirs())]
        errors = [count.error for count in counts]
        if any(errors):
            refused = type(errors[0]).__name__ == type(errors[1]).__name__ and raising.allowed(c.name, errors[1])
            more += [] if refused else [f"{c.name}: ours {counts[0]}, theirs {counts[1]}"]
        elif counts[0].value > counts[1].value:
            more.append(f"{c.name}: ours {counts[0].value}, theirs {counts[1].value}")
    assert not more, "\n".join(more)


def operations(side: ModuleType, c: Case) -> int:
    """How many operations the text of a program holds, functions and their ends aside."""
    text = side.jit(run_on(side, c.program)).lower(*placed(side, c.args)).as_text()
    return len(
        re.findall(r"^ +(?!.*\breturn\b)(?:%.* = )?\"?(?:stablehlo|chlo|mhlo|sdy|call|func\.call)\b", text, re.M)
    )


# Starts of lines that are not compared with differences.
NO_DERIVATIVE = """
    lax.igamma_grad_a lax.nextafter lax.betainc lax.zeta lax.reduce( lax.reduce_window(X,S lax.select_and_scatter_p
    lax.linalg.householder_product lax.linalg.ormqr lax.linalg.eig(M,compute_left_eigenvectors=False)
    lax.linalg.hessenberg lax.linalg.schur lax.linalg.symmetric_product lax.linalg.tridiagonal(
    lax.linalg.lu_pivots lax.while_loop spread(lambdaa:lax.pm squared_vjp
""".split()  # Neither in jax, or not in both modes.
ROUNDED = """
    lax.dot_general(X,M,(((1,),(0,)),((),())),preferred lax.convert_element_type(X,jnp.bfloat16)
    lax.convert_element_type(X,np.complex64) lax.reduce_precision
""".split()
OF_OTHER_FUNCTIONS = ["lax.stop_gradient", "lax.linalg.cholesky(H,symmetrize_input=False)"]
UNEQUAL = tuple(NO_DERIVATIVE + ROUNDED + OF_OTHER_FUNCTIONS)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_are_differences(dtype, tier):
    single = {"float64": "float32", "complex128": "complex64"}[dtype]
    wrong = []
    with width(dtype):
        for row in ROWS:
            if row.home == "none" or home(row) != single or row.expression.replace(" ", "").startswith(UNEQUAL):
                continue
            c = case(row, dtype)
            if chosen(c.name, tier, 6):
                found = outcome(lambda c=c: same_as_differences(ours(), run_on(ours(), c.program), c.args))
                wrong += [f"{c.name}: {found.error}"] if found.error else []
    assert not wrong, "\n".join(wrong)


UNABLE = """
    ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike
    broadcast_to_rank composite conv_shape_tuple create_token index_take precv psend ragged_all_to_all
""".split()  # Types, functions of any arguments, functions that fail in jax, and those of other platforms.


def test_every_function_is_misused():
    lines = (Path(__file__).parent / "misuses.txt").read_text()
    for module in (theirs().lax, theirs().lax.linalg):
        prefix = module.__name__.removeprefix("jax.")
        names = {n for n in dir(module) if n[0] != "_" and not n.endswith("_p") and callable(getattr(module, n))}
        names -= {n for n in names if isinstance(getattr(module, n), type)}
        unused = {n for n in names if f"{prefix}.{n}(" not in lines}
        assert unused == set(UNABLE if module is theirs().lax else ())


@pytest.mark.filterwarnings("ignore")
def test_misuses_are_refused_as_by_jax():
    wrong = []
    for line in (Path(__file__).parent / "misuses.txt").read_text().splitlines():
        if line and line[0] != "#":
            found = outcome(lambda line=line: same_refusal(lambda jax, jnp: lambda: misuse(line, jax, jnp)))
            wrong += [f"{line}: {found.error}"] if found.error else []
    assert not wrong, "\n".join(wrong)


def misuse(line: str, jax: ModuleType, jnp: ModuleType) -> Any:
    given = {name: jnp.asarray(operand(name, "float32")) for name in (*SHAPES, *FIXED)}
    return eval(line, names_of(jax, jnp) | given | {"CX": given["X"].astype(np.complex64)})
