"""The comparisons that jax has confirmed, as digests, so that a run asks jax only about what is new.

A comparison describes its question and minijax's answer. Once jax has given the same answer, digests of the two are
written to tests/confirmed, and a later run in which minijax answers so again does not ask jax. `compare.py` decides
whether two answers are equal; nothing here does. tests/README.md says how to record and what records do not see.
"""

import base64
import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import sys
import types
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
FOLDER = TESTS / "confirmed"
ORACLE = "0.10.2"
QUESTION, ANSWER = 6, 8  # letters of their digests, which are written one after the other
ROUNDED = "≈"  # in an answer that holds floats

# Records spare jax; jax is asked for what is not recorded, which is then written; for everything; jax is not installed.
USUAL, RECORD, EVERYTHING, ALONE = "usual", "record", "everything", "alone"

Answers = dict[str, str]  # the digest of each question, and that of its answer


class Unconfirmed(AssertionError):
    """A recorded answer is not jax's, or, where jax is not installed, not minijax's."""


# The head of a file: what all answers of a test module depend on


@functools.cache
def sources(file: Path) -> frozenset[Path]:
    """The file, the files under tests that it imports, and the tables that these name."""
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _named(path) if path.suffix == ".py" else ()
    return frozenset(found)


_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?import\s+(\([^)]*\)|[^\n]*)", re.M)
_TABLE = re.compile(r"[\w*]+\.(?:txt|json|npz|npy|csv|toml|bin)\b")
# compare.py makes what it says of a cell part of the answer.
_READ_BY_CELL = {"raising.txt"}


@functools.cache
def _named(file: Path) -> list[Path]:
    """The modules and tables under tests whose names are in a file of Python."""
    text = file.read_text()
    names = set(re.findall(r'"([a-z_.]+)"', text))  # import_module("name")
    for base, listed in _IMPORT.findall(text):
        names |= {base, *(f"{base}.{name}".strip(".") for name in re.findall(r"[\w.]+", listed))}
    modules = [f"{name.removeprefix('tests.').replace('.', '/')}.py" for name in names]
    tables = set(_TABLE.findall(text)) - _READ_BY_CELL
    found = [root / module for root in (TESTS, TESTS / "support") for module in modules]
    found += [path for path in _files() if path.name in tables]
    found += [path for name in tables if "*" in name for path in file.parent.rglob(name)]
    return [path for path in found if path.exists() and FOLDER not in path.parents]


@functools.cache
def _files() -> list[Path]:
    return [*TESTS.rglob("*.*")]


@functools.cache
def head(module: Path) -> tuple[str, str]:
    """Digests of what the answers depend on everywhere, and of the versions of one environment."""
    read = sorted(sources(module) | {TESTS / "conftest.py"})
    texts = [f"{path.relative_to(TESTS)} {_file_digest(path)}" for path in read]
    environment = session.environment or os.environ
    jax, xla = (sorted(f"{k}={v}" for k, v in environment.items() if k.startswith(p)) for p in ("JAX_", "XLA_"))
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("jaxlib", "numpy", "ml_dtypes")]
    versions += [platform.python_implementation(), *platform.python_version_tuple()[:2], sys.platform]
    return _digest(*texts, ORACLE, *jax), _digest(*versions, *xla)


@functools.cache
def _file_digest(path: Path) -> str:
    return _digest(path.read_bytes())


def _digest(*parts: str | bytes, letters: int = 12) -> str:
    coded = [part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts]
    return base64.urlsafe_b64encode(hashlib.blake2b(b"\0".join(coded), digest_size=9).digest()).decode()[:letters]


# Files: the head, then each test with the digests of its comparisons, eight in a line


def file_of(module: Path) -> Path:
    return (FOLDER / module.relative_to(TESTS)).with_suffix(".txt")


@functools.cache
def load(module: Path) -> tuple[bool, dict[str, Answers]]:
    """Whether the versions are the recorded ones, and the answers of each test; without jax, also those of others."""
    path = file_of(module)
    first, *lines = (path.read_text() if path.exists() else "").splitlines() or [""]
    texts, versions = head(module)
    is_same = first == f"{texts} {versions}"
    if not is_same and not (session.mode == ALONE and first.startswith(f"{texts} ")):
        return False, {}
    tests: dict[str, Answers] = {}
    answers: Answers = {}
    for line in lines:
        if line.startswith("  "):
            answers |= {pair[:QUESTION]: pair[QUESTION:] for pair in line.split()}
        else:
            answers = tests[line] = {}
    return is_same, tests


def merge(made: dict[str, dict[str, Answers]]) -> None:
    """Writes what a process recorded; tests that did not run keep their answers while the head holds."""
    forget()
    for name, tests in made.items():
        module, lines = Path(name), []
        for test, answers in sorted((load(module)[1] | tests).items()):
            pairs = ["".join(pair) for pair in answers.items()]
            lines += [test, *(f"  {' '.join(pairs[i : i + 8])}" for i in range(0, len(pairs), 8))] if pairs else []
        path = file_of(module)
        if lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join([" ".join(head(module)), *lines, ""]))
        else:
            path.unlink(missing_ok=True)


def forget() -> None:
    """Drops what was read of files."""
    for cached in (sources, _named, _files, head, _file_digest, load):
        cached.cache_clear()


# The running test and its comparisons


@dataclasses.dataclass
class Running:
    """The running test: the recorded answers, those of this run, and how many comparisons only jax could decide."""

    module: Path
    name: str
    known: Answers
    same_versions: bool = True
    made: Answers = dataclasses.field(default_factory=dict)
    repeats: Counter = dataclasses.field(default_factory=Counter)  # of each question
    passed: bool = True
    undecided: int = 0


@dataclasses.dataclass
class Session:
    """The mode of the run, the environment that it started with, and what it recorded and counted."""

    mode: str = USUAL
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    running: Running | None = None
    made: dict[str, dict[str, Answers]] = dataclasses.field(default_factory=dict)
    counts: Counter = dataclasses.field(default_factory=Counter)
    one_in: int = 10  # one comparison in so many is asked whatever is recorded


session = Session()


def test_of(module: Path, nodeid: str) -> Running:
    """The test, with what is recorded of it."""
    same_versions, tests = load(module)
    name = nodeid.partition("::")[2].encode("unicode_escape").decode()
    return Running(module, name, tests.get(name, {}), same_versions)


def end() -> None:
    running, session.running = session.running, None
    if running and running.passed and session.mode == RECORD:
        session.made.setdefault(str(running.module), {})[running.name] = running.made


def share(seed: str, name: str, one_in: int) -> bool:
    """Returns whether the seed draws the name, as it does one in `one_in`."""
    return zlib.crc32(f"{seed}:{name}".encode()) % one_in == 0


def drawn(name: str) -> bool:
    """Returns whether jax is asked for the name whatever is recorded: some, by the day; all in the full tier."""
    is_full = os.environ.get("MINIJAX_TEST_TIER") == "full"
    return is_full or share(os.environ.get("MINIJAX_TEST_SEED", "0"), f"asked {name}", session.one_in)


@dataclasses.dataclass
class Entry:
    """A comparison of the running test; without one, jax is asked and nothing is kept."""

    running: Running | None = None
    place: str = ""
    question: str = ""
    answer: str = ""
    drawn: bool = False
    asks: bool = True  # whether jax is to be asked

    def confirm(self) -> None:
        """Tells that jax gives the same answer."""
        if self.running is None:
            return
        if session.mode == EVERYTHING and self.running.known.get(self.question, self.answer) != self.answer:
            raise Unconfirmed(f"{self.place}: recorded with an answer that is not jax's")
        self.running.made[self.question] = self.answer


def entry(name: str, question: Sequence[object], answer: str) -> Entry:
    """The comparison of this question, which tells whether jax is to be asked, and counts why."""
    running = session.running
    if running is None:
        return Entry()
    first = _question(name, question, 1)
    running.repeats[first] += 1
    made = Entry(running, f"{running.name}, comparison ({name} {str(question[0])[:80]!r})")
    made.question = _question(name, question, running.repeats[first])
    made.answer = _digest(_plain(answer), letters=ANSWER)
    made.drawn = session.mode != ALONE and drawn(f"{running.name}#{running.repeats.total()}")
    recorded = running.known.get(made.question)
    is_known = recorded == made.answer
    if is_known:
        running.made[made.question] = made.answer
    elif session.mode == ALONE:
        running.undecided += 1
        # Floats of another jaxlib may differ in more than their last bits.
        if recorded and (running.same_versions or ROUNDED not in answer):
            raise Unconfirmed(f"{made.place}: jax's recorded answer is not minijax's:\n{answer[:5000]}")
    by_plan = session.mode == EVERYTHING or (session.mode == USUAL and made.drawn)
    made.asks = session.mode != ALONE and (by_plan or not is_known)
    session.counts["asked by plan" if by_plan else "known to jax" if is_known else "not recorded"] += 1
    return made


def knows(name: str, question: Sequence[object]) -> bool:
    """Returns whether an answer to this question is recorded for the running test."""
    running = session.running
    return running is not None and _question(name, question, 1) in running.known


def _question(name: str, question: Sequence[object], number: int) -> str:
    """The digest of a question that a test asks for the `number`-th time."""
    return _digest(name, *(_plain(str(word)) for word in question), str(number), letters=QUESTION)


def _plain(text: str) -> str:
    """The text without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", " at 0x", text)


# Programs and values in words


def told(thing: Any, depth: int = 8) -> str:
    """Describes a program or an argument: the place of its code, its defaults, and by value what it captures."""
    if isinstance(thing, np.ndarray | np.generic) and not thing.dtype.hasobject:
        return f"{thing.dtype}{thing.shape}{_digest(thing.tobytes())}"
    if thing is None or isinstance(thing, str | bytes | bool | int | float | complex | slice | range | np.dtype):
        return repr(thing)
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    parts = [told(part, depth - 1) for part in _parts(thing)] if depth else []
    return f"{name}({','.join(sorted(parts) if isinstance(thing, set | frozenset) else parts)})"


def _parts(thing: Any) -> list:
    """What a container, a function, its code or an instance of a dataclass consists of."""
    if isinstance(thing, set | frozenset | list | tuple):
        return [*thing]
    if isinstance(thing, dict):
        return [*thing.items()]
    if isinstance(thing, functools.partial):
        return [thing.func, thing.args, thing.keywords]
    if isinstance(thing, types.MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, types.FunctionType):
        return [thing.__code__, *(thing.__closure__ or ()), *(thing.__defaults__ or ()), thing.__kwdefaults__]
    if isinstance(thing, types.CellType):
        with contextlib.suppress(ValueError):  # of a cell that is not filled
            return [thing.cell_contents]
    if isinstance(thing, types.CodeType):
        return _parts_of_code(thing)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return [getattr(thing, field.name, None) for field in dataclasses.fields(thing)]
    return [getattr(thing, "shape", None), str(getattr(thing, "dtype", None))]


def _parts_of_code(code: types.CodeType) -> list:
    """Its place, since the text of its file is known; of code made of a string, names and constants."""
    # Not bytecode, which is that of one version of Python: a record serves others.
    path = Path(code.co_filename)
    if TESTS in path.parents and path.exists():
        # Several lambdas may begin on one line.
        columns = [at[2] for at in code.co_positions() if None not in at and at[2:] != (0, 0)]
        column = min(columns, default=0) if code.co_name == "<lambda>" else 0
        return [str(path.relative_to(TESTS)), _file_digest(path), code.co_firstlineno, column]
    if path.exists():
        return [path.name]
    return [*code.co_names, *code.co_varnames, *(const for const in code.co_consts if const is not None)]


def rounded(numbers: np.ndarray) -> str:
    """The numbers, floats only to a few digits: their last bits belong to a machine."""
    if numbers.dtype.kind in "biuOSU" or numbers.dtype.itemsize == 0 or numbers.dtype.type is np.void:
        return str(numbers.tolist()) if numbers.dtype == object else _digest(numbers.tobytes())
    if numbers.dtype.kind == "c":
        return rounded(numbers.real) + rounded(numbers.imag)
    digits = 12 if numbers.dtype.itemsize >= 4 else 5
    with np.errstate(all="ignore"):
        mantissas, exponents = np.frexp(numbers.astype(np.float64))
        coarse = np.ldexp(np.round(np.ldexp(mantissas, digits)), exponents - digits)
    return ROUNDED + _digest(np.where(np.isnan(coarse), np.nan, coarse).tobytes())


def without_last_digits(text: str) -> str:
    return re.sub(r"\d+\.\d*(e[+-]?\d+)?", lambda found: f"{float(found[0]):.3g}", text)
