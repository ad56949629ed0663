"""Smaller programs that still fail, found greedily."""

import dataclasses
import re
from collections.abc import Callable, Iterator

from fuzz.generator import Program, without_unused


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program with every transform, statement and result left out that it fails without."""
    while True:
        smaller = next(filter(fails, smaller_programs(program)), None)
        if smaller is None:
            return program
        program = smaller


def smaller_programs(program: Program) -> Iterator[Program]:
    for i in range(len(program.transforms)):
        yield dataclasses.replace(program, transforms=program.transforms[:i] + program.transforms[i + 1 :])
    lines = program.source.splitlines()
    for fewer in [without_unused(lines), *_fewer_lines(lines)]:
        if fewer != lines:
            yield dataclasses.replace(program, source="\n".join(fewer) + "\n")


def _fewer_lines(lines: list[str]) -> Iterator[list[str]]:
    names: list[str] = []
    for i, line in enumerate(lines[1:], 1):
        if line.lstrip().startswith("return "):
            for shorter in _fewer_results(line):
                yield [*lines[:i], shorter, *lines[i + 1 :]]
        assigned = re.match(r" +(v\d+) = ", line)
        if assigned:
            for name in [*re.findall(r"\w+", lines[0])[2:], *names]:
                # Another value in its place, wherever it is read.
                yield [re.sub(rf"\b{assigned[1]}\b", name, x) for x in [*lines[:i], *lines[i + 1 :]]]
            names = [*names[-1:], assigned[1]]


def _fewer_results(line: str) -> Iterator[str]:
    head, listed = re.fullmatch(r"( *return )\(?(.*?),?\)?", line).groups()
    results = listed.split(", ")
    if len(results) > 1:
        yield from (f"{head}{result}" for result in results)
