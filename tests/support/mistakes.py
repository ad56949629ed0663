"""The table in mistakes.txt: programs that jax refuses, and how each side reports the error.

    python tests/mistakes.py [NAME ...]

runs the programs as files in two processes, with jax and under `python -m minijax`, and prints a line for each; those
that are named in processes of their own, with what was shown. The tests run them in one process, and with -m full in
the two.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("mistakes.txt")
ELSEWHERE = (
    "# Python writes this message",
    "# NumPy writes this message",
    "# this message is of the program's own error",
)
PRELUDE = """\
import warnings
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax, random
from jax.experimental import checkify
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
"""


class Shown(NamedTuple):
    """The parts of an error that a user sees."""

    kind: str
    message: str
    frames: int  # of the library
    chained: tuple[str, ...]  # the classes of the errors that are shown before it
    places: tuple[Any, ...] = ()  # in the program: lines and columns


def table() -> dict[str, str]:
    """name -> program."""
    parts = re.findall(r"^\[(.*)\]\n((?:(?!\[).*\n?)*)", TABLE.read_text(), flags=re.M)
    programs = {name: source.strip("\n") + "\n" for name, source in parts}
    assert len(programs) == len(parts), "two of one name"
    return programs


def advice(source: str) -> str | None:
    """What the message of a mistake advises; None where Python, NumPy or the program itself writes the message."""
    last = source.rstrip("\n").splitlines()[-1]
    if last in ELSEWHERE:
        return None
    assert last.startswith("# advice: "), f"no advice for\n{source}"
    return last.removeprefix("# advice: ")


def differences(theirs: Shown, ours: Shown) -> Iterator[str]:
    """Descriptions of how the report of minijax differs from that of jax."""
    if theirs.kind == "nothing":
        yield "jax raises nothing"
    if theirs.kind != ours.kind:
        yield f"the class is {ours.kind}, jax's {theirs.kind}"
    if ours.frames > min(2, theirs.frames):
        yield f"{ours.frames} frames of the library, {theirs.frames} of jax"
    if ours.chained and ours.chained != theirs.chained:
        yield f"chained {ours.chained}, by jax {theirs.chained}"
    if ours.places[: len(theirs.places)] != theirs.places:  # further places are allowed
        yield f"places {ours.places}, by jax {theirs.places}"


# In this process


def raised(package: str, name: str, source: str) -> BaseException | None:
    """The error of the program, run with `package` under the name jax."""
    prelude = re.sub(r"(import|from) jax\b", rf"\1 {package}", PRELUDE)
    variables = {"__name__": name}
    exec(prelude.replace(f"import {package}\n", f"import {package} as jax\n"), variables)
    try:
        exec(compile(source, f"<{name}>", "exec", dont_inherit=True), variables)
    except Exception as error:
        return error.with_traceback(error.__traceback__.tb_next)
    return None


def shown(error: BaseException | None, package: ModuleType) -> Shown:
    """The traceback that Python would print, with the classes of minijax under the names of jax."""
    if error is None:
        return Shown("nothing", "", 0, ())
    root = os.path.dirname(package.__file__) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    places = [(f.name, f.lineno, f.colno, f.end_colno) for f in frames if f.filename.startswith("<")]
    inner = sum(frame.filename.startswith(root) for frame in frames)
    return Shown(_name(type(error)), str(error), inner, tuple(_name(type(e)) for e in chain(error)), tuple(places))


def chain(error: BaseException) -> list[BaseException]:
    """The errors that are printed before an error."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [] if before is None else [*chain(before), before]


def _name(kind: type) -> str:
    if kind.__module__ == "builtins":
        return kind.__qualname__
    module = re.sub(r"\bminijax\b", "jax", kind.__module__)
    # Of the classes that are not public the modules are jax's under the alias alone.
    return f"{module}.{kind.__qualname__}" if module in ("jax.errors", "jax.dtypes") else kind.__qualname__


# In other processes

_EACH = """
import sys, traceback, warnings
warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    print("\\f", end="", file=sys.stderr)
    with open(path) as file:
        source = file.read()
    try:
        exec(compile(source, path, "exec", dont_inherit=True), {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
"""


def shown_apart(programs: dict[str, str], apart: bool = False) -> Iterator[tuple[str, Shown, Shown, str]]:
    """The reports of jax and of minijax under the alias for each program, and the texts; `apart`: a process for each."""
    batches = [{name: source} for name, source in programs.items()] if apart else [programs]
    for batch in batches:
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, source in enumerate(batch.values()):
                paths.append(Path(folder, f"program{i}.py"))
                body = re.sub("^(?=.)", "    ", source, flags=re.M)
                paths[-1].write_text(f"{PRELUDE}\n\ndef main():\n{body}\n\nmain()\n")
            files = paths
            if not apart:
                files = [Path(folder, "each.py"), *paths]
                files[0].write_text(_EACH)
            texts = [_printed(*options, *files).split("\f")[not apart :] for options in ((), ("-m", "minijax"))]
            for name, theirs, ours in zip(batch, *texts, strict=True):
                yield name, parsed(theirs, "jax"), parsed(ours, "minijax"), f"{theirs}\n{'-' * 80}\n{ours}"


def _printed(*arguments: Any) -> str:
    """The stderr of a Python process."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("XLA_FLAGS", None)
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment).stderr


def parsed(text: str, package: str) -> Shown:
    """The report of one program in the output of a process."""
    root = os.path.dirname(importlib.util.find_spec(package).origin)
    blocks = re.split(r"^Traceback \(most recent call last\):\n", text, flags=re.M)
    # Errors of callbacks are logged as well.
    blocks = [
        b for i, b in enumerate(blocks) if i and not re.search(r"^jax\.\w+ failed\n\Z", blocks[i - 1], flags=re.M)
    ]
    if not blocks:
        return Shown("nothing", text, 0, ())
    errors = [_last(block) for block in blocks]
    stack = re.match(r"(?: .*\n)*", blocks[-1])[0]  # messages may have frames too
    frames = re.findall(r'^  File "(.*?)"(.*\n(?:    .*\n)*)', stack, flags=re.M)
    inner = sum(file.startswith(root + os.sep) for file, _ in frames)
    places = tuple(text for file, text in frames if re.search(r"program\d+\.py$", file))
    return Shown(errors[-1][0], errors[-1][1], inner, tuple(kind for kind, _ in errors[:-1]), places)


def _last(block: str) -> tuple[str, str]:
    """The class and the message at the end of a traceback."""
    lines = block.splitlines()
    first = next((i for i, line in enumerate(lines) if not line.startswith(" ")), 0)
    kind, _, message = "\n".join(lines[first:]).partition(": ")
    return kind.split("\n")[0], message


def main(names: list[str]) -> None:
    programs = {name: source for name, source in table().items() if not names or name in names}
    for name, theirs, ours, text in shown_apart(programs, apart=bool(names)):
        found = list(differences(theirs, ours))
        print("!!" if found else "  ", name, theirs.kind, ours.kind, sep="; ", end="; ")
        print(f"frames {theirs.frames} {ours.frames}; chained {len(theirs.chained)} {len(ours.chained)}", *found[:1])
        if names:
            print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
