"""The table in mistakes.txt: programs that jax refuses, and what each side shows of the error.

    python tests/mistakes.py [NAME ...]

runs each program as a file in a process of its own, with jax and under `python -m minijax`, and prints a line for each;
with names also what was shown. The tests run them in one process, and with -m full in processes of their own too.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("mistakes.txt")
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
    """What a user sees of an error."""

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


def differences(theirs: Shown, ours: Shown) -> Iterator[str]:
    """What minijax does not show as it should."""
    if theirs.kind == "nothing":
        yield "jax raises nothing"
    if theirs.kind != ours.kind:
        yield f"the class is {ours.kind}, jax's {theirs.kind}"
    if ours.frames > min(2, theirs.frames):
        yield f"{ours.frames} frames of the library, {theirs.frames} of jax"
    if ours.chained and ours.chained != theirs.chained:
        yield f"chained {ours.chained}, by jax {theirs.chained}"
    if ours.places[: len(theirs.places)] != theirs.places:  # more of them do no harm
        yield f"places {ours.places}, by jax {theirs.places}"


# In this process


def raised(package: str, name: str, source: str) -> BaseException | None:
    """What the program raises, run with `package` under the name jax."""
    prelude = re.sub(r"(import|from) jax\b", rf"\1 {package}", PRELUDE)
    variables = {"__name__": name}
    exec(prelude.replace(f"import {package}\n", f"import {package} as jax\n"), variables)
    try:
        exec(compile(source, f"<{name}>", "exec", dont_inherit=True), variables)
    except Exception as error:
        return error.with_traceback(error.__traceback__.tb_next)
    return None


def shown(error: BaseException | None, package: ModuleType) -> Shown:
    """What Python would print of an error, with the classes of minijax under jax's names."""
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


# In processes of their own


def printed(name: str, source: str, *options: str, cwd: str) -> str:
    """What a process writes to stderr that runs the program as a file."""
    path = Path(cwd, "program.py")
    path.write_text(f"{PRELUDE}\n\ndef main():\n{re.sub('^(?=.)', '    ', source, flags=re.M)}\n\nmain()\n")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("XLA_FLAGS", None)
    run = subprocess.run([sys.executable, *options, str(path)], capture_output=True, text=True, env=environment)
    return run.stderr


def parsed(text: str, package: str) -> Shown:
    """What a process has shown."""
    root = os.path.dirname(importlib.util.find_spec(package).origin)
    blocks = re.split(r"^Traceback \(most recent call last\):\n", text, flags=re.M)
    errors = [_last(block) for block in blocks[1:]]
    if not errors:
        return Shown("nothing", text, 0, ())
    kinds = [kind.split("\n")[0] for kind, _, _ in errors]
    frames = re.findall(r'^  File "(.*?)"(.*\n(?:    .*\n)*)', blocks[-1], flags=re.M)
    inner = sum(file.startswith(root + os.sep) for file, _ in frames)
    places = tuple(text for file, text in frames if file.endswith("program.py"))
    return Shown(kinds[-1], errors[-1][2], inner, tuple(kinds[:-1]), places)


def _last(block: str) -> tuple[str, str, str]:
    """The class and the message at the end of a traceback."""
    lines = block.splitlines()
    first = next((i for i, line in enumerate(lines) if not line.startswith(" ")), 0)
    return "\n".join(lines[first:]).partition(": ")


def measured(name: str, source: str) -> tuple[Shown, Shown, str]:
    """What a process of jax and one of minijax have shown, and the texts."""
    with tempfile.TemporaryDirectory() as folder:
        texts = printed(name, source, cwd=folder), printed(name, source, "-m", "minijax", cwd=folder)
    return parsed(texts[0], "jax"), parsed(texts[1], "minijax"), f"\n{'-' * 80}\n".join(texts)


def main(names: list[str]) -> None:
    programs = {name: source for name, source in table().items() if not names or name in names}
    with ThreadPoolExecutor(2) as pool:
        for name, (theirs, ours, text) in zip(programs, pool.map(measured, programs, programs.values()), strict=True):
            print("!!" if list(differences(theirs, ours)) else "  ", name, theirs.kind, ours.kind, sep="; ", end="; ")
            print(
                f"frames {theirs.frames} {ours.frames}; chained {len(theirs.chained)} {len(ours.chained)}", flush=True
            )
            if names:
                print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
