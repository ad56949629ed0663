"""The table in raising.txt: the cells of the matrices at which jax raises, which error, and in what words.

A cell that raises on both sides and is not listed is red, since it may be a misspelt program; so is a listed one that
does not raise. Under a heading, a test, stand the errors it meets, as a class and a part of jax's message; under them,
indented, the names of the cells. `«a b»` in a name stands for each of the words between, and `*` for any cell of a
test whose cells are too many to be listed: of them a share is run, and the message is all that is known.
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
    """The test that runs, and which of its parameters."""
    running = os.environ.get("PYTEST_CURRENT_TEST", "")
    test, parameters = re.fullmatch(r"(?:.*?tests/)?([^\[]*?)(?:\[(.*)\])?(?: \(\w+\))?", running, re.S).groups()
    return test, parameters or ""


def listed(cell: str) -> bool:
    """Whether the test that runs has the cell among those that raise."""
    return cell in table().get(place()[0], {})


def allowed(cell: str, error: BaseException) -> bool:
    """Whether the cell, or any of the test that runs, may raise the error; no words stand for no message."""
    errors = table().get(place()[0], {})
    known = errors.get(cell) or errors.get(ANY, [])
    return any(
        kind == type(error).__name__ and (words in str(error) if words else not str(error)) for kind, words in known
    )
