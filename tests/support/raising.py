"""The table in raising.txt: the cells of the matrices at which jax raises, which error, and in what words.

A cell that raises on both sides and is not listed fails, since it may be a misspelt program; a listed cell that does not
raise fails too. A heading is a test. Below it are errors, as a class and a part of jax's message, and below each error,
indented, the names of its cells. `«a b»` in a name is an abbreviation for a name with each of the words; `*` matches any
cell of a test that has too many cells to be listed, of which a run takes a share.
"""

import functools
import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).with_name("raising.txt")
ANY = "*"


@functools.cache
def table() -> dict[str, dict[str, list[tuple[str, str]]]]:
    """test -> cell -> the errors it may raise, as the class and a part of the message."""
    errors: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    test, error = "", ("", "")
    for line in TABLE.read_text().splitlines():
        if heading := re.fullmatch(r"\[(.*)\]", line):
            test = heading[1]
        elif line.startswith("    "):
            for cell in spelt_out(line[4:]):
                errors[test][cell].append(error)
        elif line and line[0] != "#":
            kind, _, words = line.partition(":")
            error = kind, words.strip()
    return errors


def spelt_out(line: str) -> Iterator[str]:
    parts = re.split(r"«(.*?)»", line)
    choices = [part.split() if i % 2 else [part] for i, part in enumerate(parts)]
    return map("".join, itertools.product(*choices))


def place() -> tuple[str, str]:
    """The running test, and its parameters."""
    running = os.environ.get("PYTEST_CURRENT_TEST", "")
    test, parameters = re.fullmatch(r"(?:.*?tests/)?([^\[]*?)(?:\[(.*)\])?(?: \(\w+\))?", running, re.S).groups()
    return test, parameters or ""


def listed(cell: str) -> bool:
    """Returns whether the cell is listed for the running test."""
    return cell in table().get(place()[0], {})


def allowed(cell: str, error: BaseException) -> bool:
    """Returns whether the cell, or any cell of the running test, may raise the error. No words match an empty message."""
    errors = table().get(place()[0], {})
    known = errors.get(cell) or errors.get(ANY, [])
    return any(
        kind == type(error).__name__ and (words in str(error) if words else not str(error)) for kind, words in known
    )
