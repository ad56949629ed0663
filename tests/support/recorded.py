"""The comparisons that jax has confirmed, as digests, so that a run asks jax only about what is new.

A comparison describes its question and minijax's answer. Once jax has given the same answer, a digest of the two is
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
FOLDER = TESTS / "confirmed"
ORACLE = "0.10.2"
NOTHING = "-" * 12  # the token of a comparison that is not recorded
MORE = "+"  # between the digest of a comparison and that of its values
QUESTION = 4  # letters of a digest that tell the question; the others tell the answer

# Records spare jax; jax is asked for what is not recorded, which is then written; for everything; jax is not installed.
USUAL, RECORD, EVERYTHING, ALONE = "usual", "record", "everything", "alone"


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
            waiting += _imported(path)
            found |= _tables(path)
    return frozenset(found)


_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?import\s+(\([^)]*\)|[^\n]*)", re.M)
# compare.py makes what it says of a cell part of the answer.
_READ_BY_CELL = {"raising.txt"}


@functools.cache
def _imported(file: Path) -> list[Path]:
    names, text = set(), file.read_text()
    for base, listed in _IMPORT.findall(text):
        names |= {base, *(f"{base}.{name}".strip(".") for name in re.findall(r"[\w.]+", listed))}
    names |= set(re.findall(r'"([a-z_.]+)"', text))  # import_module("name")
    roots = (TESTS, TESTS / "support")
    paths = [root / f"{name.replace('.', '/')}.py" for name in sorted(names) for root in roots]
    return [path for path in paths if path.exists()]


@functools.cache
def _tables(file: Path) -> frozenset[Path]:
    names = set(re.findall(r"[\w*]+\.(?:txt|json|npz|npy|csv|toml|bin)\b", file.read_text())) - _READ_BY_CELL
    near = {path for name in names if "*" in name for path in file.parent.rglob(name)}
    return frozenset(near | {path for name in names for path in _data().get(name, ())})


@functools.cache
def _data() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in TESTS.rglob("*.*"):
        if path.suffix != ".py" and FOLDER not in path.parents and "__pycache__" not in path.parts:
            found.setdefault(path.name, []).append(path)
    return found


@functools.cache
def head(module: Path) -> tuple[str, str]:
    """Digests of what the answers depend on everywhere, and of the versions of one environment."""
    read = sorted(sources(module) | {TESTS / "conftest.py"})
    texts = [f"{path.relative_to(TESTS)} {_file_digest(path)}" for path in read]
    environment = session.environment or dict(os.environ)
    jax, xla = (sorted(f"{k}={v}" for k, v in environment.items() if k.startswith(p)) for p in ("JAX_", "XLA_"))
    versions = [f"{name} {_version(name)}" for name in ("jaxlib", "numpy", "ml_dtypes")]
    versions += [platform.python_implementation(), *platform.python_version_tuple()[:2], sys.platform]
    return _digest(*texts, ORACLE, *jax), _digest(*versions, *xla)


@functools.cache
def _file_digest(path: Path) -> str:
    return _digest(path.read_bytes())


@functools.cache
def _version(name: str) -> str:
    return importlib.metadata.version(name)


def _digest(*parts: str | bytes) -> str:
    """Twelve letters."""
    coded = [part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts]
    return base64.urlsafe_b64encode(hashlib.blake2b(b"\0".join(coded), digest_size=9).digest()).decode()


# Files: the head, then each test with a token for each of its comparisons, eight in a line


def file_of(module: Path) -> Path:
    return (FOLDER / module.relative_to(TESTS)).with_suffix(".txt")


@functools.cache
def load(module: Path) -> dict[str, list[str]]:
    """The tokens of each test of the module; none if its texts, or where jax is installed the versions, are others."""
    path = file_of(module)
    first, *lines = (path.read_text() if path.exists() else "").splitlines() or [""]
    parts = 1 if session.mode == ALONE else 2
    if tuple(first.split()[:parts]) != head(module)[:parts]:
        return {}
    tokens: dict[str, list[str]] = {}
    test: list[str] = []
    for line in lines:
        if line.startswith("  "):
            test += line.split()
        else:
            test = tokens[line] = []
    return tokens


def _save(module: Path, tokens: dict[str, list[str]]) -> None:
    lines = [" ".join(head(module))]
    for test, each in sorted(tokens.items()):
        if set(each) - {NOTHING}:
            lines += [test, *(f"  {' '.join(each[i : i + 8])}" for i in range(0, len(each), 8))]
    path = file_of(module)
    if len(lines) > 1:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    else:
        path.unlink(missing_ok=True)


def merge(made: dict[str, dict[str, list[str]]]) -> None:
    """Writes what a process recorded; tests that did not run keep their tokens while the head holds."""
    forget()
    for module, tokens in made.items():
        _save(Path(module), load(Path(module)) | tokens)


def forget() -> None:
    """Drops what was read of files."""
    for cached in (sources, _imported, _tables, _data, head, _file_digest, _version, load):
        cached.cache_clear()


# The running test and its comparisons


@dataclasses.dataclass
class Running:
    """The running test: the recorded tokens, those of this run, and how many comparisons only jax could decide."""

    module: Path
    name: str
    known: list[str]
    made: list[str] = dataclasses.field(default_factory=list)
    passed: bool = True
    undecided: int = 0


@dataclasses.dataclass
class Session:
    """The mode of the run, the environment that it started with, and what it recorded and counted."""

    mode: str = USUAL
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    running: Running | None = None
    made: dict[str, dict[str, list[str]]] = dataclasses.field(default_factory=dict)
    counts: Counter = dataclasses.field(default_factory=Counter)


session = Session()


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """Restores the environment of the session: what jax reads when it is imported must not be that of a test."""
    changed = dict(os.environ)
    os.environ.clear()
    os.environ.update(session.environment or changed)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(changed)


def begin(module: Path, nodeid: str) -> None:
    name = nodeid.partition("::")[2].encode("unicode_escape").decode()
    session.running = Running(module, name, load(module).get(name, []))


def end() -> None:
    running, session.running = session.running, None
    if running and running.passed and session.mode == RECORD:
        session.made.setdefault(str(running.module), {})[running.name] = running.made


def share(seed: str, name: str, one_in: int) -> bool:
    """Returns whether the seed draws the name, as it does one in `one_in`."""
    return zlib.crc32(f"{seed}:{name}".encode()) % one_in == 0


def drawn(name: str) -> bool:
    """Returns whether jax is asked for the name whatever is recorded: a tenth, by the day; all in the full tier."""
    return os.environ.get("MINIJAX_TEST_TIER") == "full" or share(
        os.environ.get("MINIJAX_TEST_SEED", "0"), f"asked {name}", 10
    )


@dataclasses.dataclass
class Entry:
    """One comparison, in its place in the running test."""

    running: Running | None = None
    at: int = 0
    name: str = ""
    known: str = NOTHING  # the recorded token
    token: str = ""  # that of minijax's answer
    drawn: bool = False
    has_values: bool = False  # whether values are compared too, and recorded
    asks: bool = True  # whether jax is to be asked

    def confirm(self, has_values: bool = False) -> None:
        """Tells that jax gives the same answer. With `has_values`, values are to be compared before it counts."""
        self.has_values = has_values
        if not has_values:
            self._keep(self.token)

    def asks_values(self, answer: str) -> bool:
        """Returns whether jax is to be asked for the values that minijax gives."""
        if self.running is None or not self.has_values:
            return True
        self.token = f"{self.token[:12]}{MORE}{_digest(_plain(answer))[:8]}"
        self.asks |= self._is_to_ask(self.token, answer)
        return self.asks

    def confirm_values(self) -> None:
        """Tells that jax gives the same values."""
        if self.has_values:
            self._keep(self.token)

    def _is_to_ask(self, token: str, answer: str) -> bool:
        """Returns whether jax is to be asked for an answer, and counts why."""
        assert self.running is not None
        recorded = self.known.startswith(token)
        if session.mode == ALONE:
            if not recorded and self.known[:QUESTION] == token[:QUESTION]:
                raise Unconfirmed(f"{self._place()}: jax's recorded answer is not minijax's:\n{answer[:5000]}")
            self.running.undecided += not recorded
            session.counts["known to jax" if recorded else "without a record"] += 1
            return False
        by_plan = session.mode == EVERYTHING or (session.mode == USUAL and self.drawn)
        session.counts["asked by plan" if by_plan else "known to jax" if recorded else "not recorded"] += 1
        return by_plan or not recorded

    def _keep(self, token: str) -> None:
        if self.running is None:
            return
        is_other = self.known != token and self.known[:QUESTION] == token[:QUESTION]
        if session.mode == EVERYTHING and is_other:
            raise Unconfirmed(f"{self._place()}: recorded with an answer that is not jax's")
        self.running.made[self.at] = token

    def _place(self) -> str:
        return f"{self.running and self.running.name}, comparison {self.at} ({self.name})"


def entry(name: str, question: Sequence[object], answer: str) -> Entry:
    """The next comparison of the running test; without one, jax is asked."""
    running = session.running
    if running is None:
        return Entry()
    at = len(running.made)
    known = running.known[at] if at < len(running.known) else NOTHING
    asked = _digest(*(_plain(str(word)) for word in (name, *question)))[:QUESTION]
    token = asked + _digest(_plain(answer))[QUESTION:]
    running.made.append(known if known.startswith(token) else NOTHING)
    made = Entry(
        running,
        at,
        f"{name} {str(question[0])[:80]!r}",
        known,
        token,
        session.mode != ALONE and drawn(f"{running.name}#{at}"),
    )
    made.asks = made._is_to_ask(token, answer)
    made.has_values = not made.asks and MORE in running.made[at]
    return made


def _plain(text: str) -> str:
    """The text without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", " at 0x", text)


# Programs and values in words


def told(thing: Any, depth: int = 6) -> str:
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
        return [part for item in thing.items() for part in item]
    if isinstance(thing, functools.partial):
        return [thing.func, thing.args, thing.keywords]
    if isinstance(thing, types.MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, types.FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell)]
        return [thing.__code__, *cells, *(thing.__defaults__ or ()), thing.__kwdefaults__]
    if isinstance(thing, types.CodeType):
        return _parts_of_code(thing)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return [getattr(thing, field.name, None) for field in dataclasses.fields(thing)]
    return [getattr(thing, "shape", None), str(getattr(thing, "dtype", None))]


def _parts_of_code(code: types.CodeType) -> list:
    """Its place, which its file's text makes sufficient; code made of a string has names and constants instead.

    Bytecode is that of one version of Python, and a record serves others.
    """
    path = Path(code.co_filename)
    if TESTS in path.parents and path.exists():
        columns = [at[2] for at in code.co_positions() if None not in at and at[2:] != (0, 0)]
        # Several lambdas may begin on one line.
        column = min(columns, default=0) if code.co_name == "<lambda>" else 0
        return [str(path.relative_to(TESTS)), _file_digest(path), code.co_firstlineno, column]
    if path.exists():
        return [path.name]
    return [*code.co_names, *code.co_varnames, *(const for const in code.co_consts if const is not None)]


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


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
    return _digest(np.where(np.isnan(coarse), np.nan, coarse).tobytes())


def without_last_digits(text: str) -> str:
    return re.sub(r"\d+\.\d*(e[+-]?\d+)?", lambda found: f"{float(found[0]):.3g}", text)
