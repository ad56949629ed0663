"""Smaller programs that still fail, found greedily."""

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator

from fuzz.generator import Program, _indent, without_unused


def shrunk(program: Program, fails: Callable[[Program], object], tries: int = 200) -> Program:
    """The program with every transform, statement and result left out that it fails without."""
    while True:
        for smaller in smaller_programs(program):
            tries -= 1
            if tries < 0:
                return program
            if fails(smaller):
                program = smaller
                break
        else:
            return program


def smaller_programs(program: Program) -> Iterator[Program]:
    for i in range(len(program.transforms)):
        yield dataclasses.replace(program, transforms=program.transforms[:i] + program.transforms[i + 1 :])
    lines = program.source.splitlines()
    for fewer in [without_unused(lines), *_fewer_lines(lines)]:
        if fewer != lines:
            yield dataclasses.replace(program, source="\n".join(fewer) + "\n")


def _fewer_lines(lines: list[str]) -> Iterator[list[str]]:
    for i, line in enumerate(lines[1:], 1):
        if line.lstrip().startswith("return "):
            for shorter in _fewer_results(line):
                yield [*lines[:i], shorter, *lines[i + 1 :]]
        assigned = re.match(r" +(v\d+) = ", line)
        if assigned:
            for name in _near(lines, i):
                # Another value in its place, wherever it is read.
                yield [re.sub(rf"\b{assigned[1]}\b", name, x) for x in [*lines[:i], *lines[i + 1 :]]]


def _near(lines: list[str], i: int) -> list[str]:
    """The parameters of the function around a line, and the value assigned last in it."""
    indent = _indent(lines[i])
    before = next(j for j in range(i - 1, -1, -1) if _indent(lines[j]) < indent)
    assigned = [m[1] for m in (re.match(r" +(v\d+) = ", x) for x in lines[before:i] if _indent(x) == indent) if m]
    return [*re.findall(r"\b[ap]\d+\b", lines[before]), *assigned[-1:]]


def _fewer_results(line: str) -> Iterator[str]:
    value = ast.parse(f"def f():\n {line.lstrip()}").body[0].body[0].value
    if isinstance(value, ast.Tuple) and len(value.elts) > 1:
        yield from (f"{_indent(line) * ' '}return {ast.unparse(result)}" for result in value.elts)
