"""Random programs over meshes on jax and minijax: the same types of all equations, jaxprs, values and errors."""

import re

import compare
import pytest
from fuzz import meshes
from fuzz.test_fuzz import how_jaxprs_differ, structure

pytestmark = pytest.mark.oracle

# Why an error of jax's may be where ours returns, or another one.
LEFT_BY_JAX = {
    "a cotangent of another layout is refused": "returned .*Expected cotangent type",
    "the shardings of the indices that sort makes for its derivative are not those of its operands": (
        "returned .*Arguments to sort must have equal shardings"
    ),
    "the cases of a select are to lie alike, though one lies nowhere": (
        "returned .*select cases must have the same shardings"
    ),
    "products reduced by halves are transposed by a reshape": (
        r"returned .*reshape\[dimensions=\(.*This reshape is not supported"
    ),
    "reduced values are not batched where nothing is": r"returned .*Using pspec\[...\] is dangerous",
    "a spec of more entries than axes fails an assertion": r"theirs raised AssertionError\(\(\d, P\(",
    "a spec of fewer entries than axes fails in a loop": r"theirs raised ValueError\('safe_zip\(\)",
}


def check(program: meshes.Program) -> str:
    """Requires equal types of results, jaxprs and values, or equal errors; says how the jaxprs differ."""
    sides = compare.theirs(), compare.ours()
    theirs, ours = (compare.outcome(lambda side=side: texts(program, side)) for side in sides)
    if "JaxprTypeError" in type(ours.error).__name__:
        raise compare.Mismatch(f"raising: {ours.error}")
    if ours.error or theirs.error:
        compare._same_raised(ours, theirs)
        return ""
    if "custom_linear_solve" in theirs.value[0]:
        return "several jaxprs shown in one place"
    if not program.is_set:
        return "unset"
    compare.require(ours.value[1] == theirs.value[1], "results", ours.value[1], theirs.value[1])
    if program.leaves_calls:
        return "calls"
    return how_jaxprs_differ(*(without_meshes(side.value[0]) for side in (ours, theirs)))


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


def known_difference(program: meshes.Program) -> str:
    """In which of the known ways the two differ, empty if they do not."""
    try:
        return check(program)
    except compare.Mismatch as difference:
        for reason, words in LEFT_BY_JAX.items():
            if re.search(rf"(?s){words}", str(difference)):
                return reason
        raise
