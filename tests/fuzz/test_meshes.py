"""Random programs over meshes on jax and minijax: the same types of all equations, jaxprs, values and errors."""

import os
import random
import re

import compare
import numpy as np
import pytest
from fuzz import meshes, shrink
from fuzz.comparison import Comparison
from fuzz.test_fuzz import how_jaxprs_differ, structure

pytestmark = pytest.mark.oracle

# Why an error of jax's may be where ours returns, or another one.
LEFT_BY_JAX = {
    "a cotangent of another layout is refused": "returned .*Expected cotangent type",
    "the shardings of the indices that sort makes for its derivative are not those of its operands": (
        "returned .*Arguments to sort must have equal shardings"
    ),
    "the cases of a select and what picks one are to lie alike, though one lies nowhere": (
        "returned .*(select cases must have the same shardings|select `which` must be scalar or have the same sharding)"
    ),
    "products reduced by halves are transposed by a reshape": (
        r"returned .*reshape\[(\s|\\n)*dimensions=\(.*This reshape is not supported"
    ),
    "many operations fail where they look at the spec of a reduced value": r"Using \*?pspec\S* is dangerous",
    "some operations have no rule for reduced values": "returned .*{R:.*unreduced/reduced rule for",
    "derivatives of parts of a sum fail an assertion": r"theirs raised AssertionError\(\)",
    "a spec of more entries than axes fails an assertion": r"theirs raised AssertionError\(\(\d, P\(",
    "a spec of fewer entries than axes fails in a loop": r"theirs raised ValueError\('safe_zip\(\)",
}


# The programs of the small run that differ: their seeds, and how. Of others one in six does: under `vmap` inner
# jaxprs are handed a constant more or less. More than SELDOM in a block would be news.
BLOCK, FULL_RUN, SELDOM = 50, 40, 20


def check(program: meshes.Program) -> str:
    """Requires equal types of results, jaxprs and a tenth of the values, or equal errors; says how the jaxprs differ."""
    sides = compare.theirs(), compare.ours()
    theirs, ours = (compare.outcome(lambda side=side: texts(program, side)) for side in sides)
    if "JaxprTypeError" in type(ours.error).__name__:
        raise compare.Mismatch(f"raising: {ours.error}")
    if ours.error or theirs.error:
        compare._same_raised(ours, theirs)
        return ""
    if program.is_set and compare.sampled(str(program.seed), of="meshes"):
        same_values(program)
    if "custom_linear_solve" in theirs.value[0]:
        return "several jaxprs shown in one place"
    if not program.is_set:
        return "values of no mesh, whose types cannot say so"
    of_no_mesh = "vmap" in str(program) and SPLIT.sub("", ours.value[1]) == SPLIT.sub("", theirs.value[1])
    if of_no_mesh and theirs.value[1].count("@") < ours.value[1].count("@"):
        return "values of no mesh, whose types cannot say so"
    compare.require(ours.value[1] == theirs.value[1], "results", ours.value[1], theirs.value[1])
    if program.leaves_calls:
        return "calls left in a backward pass"
    return how_jaxprs_differ(*(without_meshes(side.value[0]) for side in (ours, theirs)))


SPLIT = re.compile(r"@(\([^)]*\)|\w+)")


def same_values(program: meshes.Program) -> None:
    results = [compare.outcome(lambda side=side: values(program, side)) for side in (compare.ours(), compare.theirs())]
    if any(result.error for result in results):
        compare._same_raised(*results)
    else:
        reason = "each device adds its part, and XLA fuses the two programs as it likes"
        for ours, theirs in zip(*(result.value for result in results), strict=True):
            rtol = 2e-2 if ours.dtype.itemsize < 4 else 2e-3
            same = ours.dtype == theirs.dtype and np.allclose(ours, theirs, rtol, 1e-3, equal_nan=True)
            compare.require(same, f"values ({reason})", ours, theirs)


def values(program: meshes.Program, side) -> list[np.ndarray]:
    """The numbers of the results that are whole on the host, as float64 if they are small floats."""
    with meshes.under(side, meshes.mesh_of(side, program.sizes, program.kinds), program.is_set):
        function, args = program.on(side)
        results = side.tree.leaves(side.jit(function)(*args))
    return [
        np.asarray(x)
        for x in results
        if not re.match("key|float0|\\[", str(x.dtype)) and "{U" not in str(side.typeof(x))
    ]


def texts(program: meshes.Program, side) -> tuple[str, str]:
    """The jaxpr, and the tree and types of the results."""
    with meshes.under(side, meshes.mesh_of(side, program.sizes, program.kinds), program.is_set):
        function, args = program.on(side)
        closed, shapes = side.make_jaxpr(function, return_shape=True)(*args)
        if side is compare.ours():
            compare.check_jaxpr(closed)
        results = f"{side.tree.structure(shapes)} {[aval.str_short(True) for aval in closed.out_avals]}"
        return compare.normal(str(closed)), compare.normal(re.sub(r"\(\{.*?\}\)", "", results))


MOVE = re.compile(r"\b(v\d+):(\S+) = reshard (v\d+|\S+?:\w+\[\S*?\])")
NOWHERE = re.compile(
    r"(sharding=|srcs=\()NamedSharding\(mesh=AbstractMesh\([^()]*\([^()]*\)[^()]*\), spec=P\((?:None,? ?)*\)(, memory_kind=device)?\)"
)


def without_meshes(text: str) -> str:
    """A jaxpr's structure without what says on which mesh a value is that is split nowhere: our types do not know."""
    text = NOWHERE.sub(r"\1None", structure(text))
    types = {name: kind.rstrip(".;") for name, kind in re.findall(r"\b(v\d+):(\S+)", text)}
    kept = 0
    while found := MOVE.search(text, kept):
        name, kind, operand = found.groups()
        if kind != (operand.rpartition(":")[2] if ":" in operand else types.get(operand)):
            kept = found.end()
            continue
        after = re.sub(rf"\b{name}\b", operand, text[found.end() :])
        text = text[: found.start()].rstrip(" ") + after
    return text


COMPARISON = Comparison(meshes.generate, check, LEFT_BY_JAX)


@pytest.mark.parametrize("block", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(1, FULL_RUN))])
def test_programs_over_meshes_are_those_of_jax(block):
    size = BLOCK if os.environ.get("MINIJAX_TEST_TIER") == "full" else BLOCK // 2
    known = COMPARISON.run(range(BLOCK * block, BLOCK * block + size))
    assert len(known) <= SELDOM, known


def test_new_programs_over_meshes_are_those_of_jax():
    day = random.Random(f"{os.environ['MINIJAX_TEST_SEED']}:meshes")
    known = COMPARISON.run([day.randrange(10**9) for _ in range(10)])
    assert len(known) <= SELDOM, known


def test_a_planted_difference_is_found_and_shrunk(monkeypatch):
    program = next(
        p for p in map(meshes.generate, range(1000)) if p and "jax.reshard(" in p.source and not p.transforms
    )
    assert not COMPARISON.mismatch(program)
    monkeypatch.setattr(compare.ours(), "reshard", lambda x, spec: x * 1)
    small = shrink.shrunk(program, COMPARISON.mismatch)
    assert "jax.reshard(" in small.source and COMPARISON.mismatch(small)
