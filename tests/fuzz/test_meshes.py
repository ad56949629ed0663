"""Random programs over meshes on jax and minijax: the same types of all equations, jaxprs, values and errors."""

import os
import random
import re
from collections.abc import Iterable

import compare
import pytest
from fuzz import meshes, shrink
from fuzz.test_fuzz import how_jaxprs_differ, structure

pytestmark = pytest.mark.oracle

# Why an error of jax's may be where ours returns, or another one.
LEFT_BY_JAX = {
    "a cotangent of another layout is refused": "Expected cotangent type",
}


def check(program: meshes.Program) -> str:
    """Requires equal types of results, jaxprs and values, or equal errors; says how the jaxprs differ."""
    sides = compare.theirs(), compare.ours()
    theirs, ours = (compare.outcome(lambda side=side: jaxpr_and_tree(program, side)) for side in sides)
    if "JaxprTypeError" in type(ours.error).__name__:
        raise compare.Mismatch(f"raising: {ours.error}")
    if ours.error or theirs.error:
        compare._same_raised(ours, theirs)
        return ""
    compare.require(ours.value[1] == theirs.value[1], "tree", ours.value[1], theirs.value[1])
    return how_jaxprs_differ(*(without_moves_to_meshes(side.value[0]) for side in (ours, theirs)))


def jaxpr_and_tree(program: meshes.Program, side) -> tuple[str, str]:
    with meshes.under(side, meshes.mesh_of(side, program.sizes, program.kinds), program.is_set):
        function, args = program.on(side)
        closed, types = side.make_jaxpr(function, return_shape=True)(*args)
        return compare.normal(str(closed)), compare.normal(str(side.tree.structure(types)))


MOVE = re.compile(r"\b(v\d+):(\S+) = reshard (v\d+|\S+?:\w+\[\S*?\])")


def without_moves_to_meshes(text: str) -> str:
    """A jaxpr's structure without what tells a value that is split nowhere which mesh it is on: our types know no mesh then."""
    text = structure(text)
    types = dict(re.findall(r"\b(v\d+):(\S+)", text))
    kept = 0
    while found := MOVE.search(text, kept):
        name, kind, operand = found.groups()
        if kind != (operand.rpartition(":")[2] if ":" in operand else types.get(operand)):
            kept = found.end()
            continue
        after = re.sub(rf"\b{name}\b", operand, text[found.end() :])
        text = text[: found.start()].rstrip(" ") + after
    return text
