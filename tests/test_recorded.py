"""A record spares jax only while everything that it depends on is as it was."""

import functools
import importlib.metadata
import itertools
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from pathlib import Path

import compare
import numpy as np
import pytest
import recorded
from compare import Case, Mismatch

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.oracle

ONES = np.ones(3, np.float32)
TEST = "from helper import program\nTABLE = 'table.txt'\n"
FILES = {"test_it.py": TEST, "helper.py": "import numpy", "table.txt": "1", "conftest.py": ""}


class Suite:
    """A folder of tests with one module, a helper and a table, whose comparisons are counted."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        self.module = folder / "test_it.py"
        for name, text in FILES.items():
            (folder / name).write_text(text)
        monkeypatch.setattr(recorded, "TESTS", folder)
        monkeypatch.setattr(recorded, "FOLDER", folder / "confirmed")
        recorded.forget()

    def asked(self, *comparisons, mode=recorded.USUAL, drawn=lambda name: False, test="test_a", environment=None):
        """Runs a test of these comparisons, and returns which of them asked jax."""
        asked = []
        with self.monkeypatch.context() as patch:
            patch.setattr(recorded, "session", recorded.Session(mode, environment or dict(os.environ)))
            patch.setattr(recorded, "drawn", drawn)
            recorded.forget()
            recorded.session.running = recorded.test_of(self.module, f"test_it.py::{test}")
            for at, comparison in enumerate(comparisons):
                patch.setattr(compare, "theirs", lambda at=at: asked.append(at) or jax())
                comparison()
            self.undecided = recorded.session.running.undecided
            recorded.end()
            recorded.merge(recorded.session.made)
        return sorted(set(asked))

    def file(self):
        return self.folder / "confirmed" / "test_it.txt"


def jax():
    return pytest.importorskip("jax")


@pytest.fixture
def suite(tmp_path, monkeypatch):
    yield Suite(tmp_path, monkeypatch)
    recorded.forget()


def case(name, operation, *args):
    return Case(name, operation, args or (ONES,))


def sine():
    compare.check(case("sine", lambda jnp: jnp.sin))


def unlike(name):
    """A case whose values are equal, but not its modules."""

    def program(jax):
        return (lambda x: x + x) if jax.__name__ == "jax" else (lambda x: x * 2)

    return case(name, program)


def sweep_of(*names):
    return lambda: compare.sweep([unlike(name) for name in names], jaxpr=False)


COMPARISONS = {
    "check": sine,
    "sweep": lambda: compare.sweep([case("cosine", lambda jnp: jnp.cos)]),
    "values": sweep_of("one", "two", "three"),
    "jaxpr": lambda: compare.same_jaxpr(lambda jnp: jnp.tan, ONES),
    "text": lambda: compare.same_text(lambda jnp: jnp.tan, ONES),
    "eager": lambda: compare.check_eager(case("power", lambda jnp: lambda x: x**2)),
    "same": lambda: compare.same(lambda jnp: [jnp.arange(3), "text"]),
    "refused": lambda: compare.same(lambda jnp: jnp.ones(-1, 2, 3, 4), raises=True),
    "error": lambda: compare.same_error(
        lambda: compare.ours().numpy.ones(3).reshape(2), lambda: compare.theirs().numpy.ones(3).reshape(2), ["reshape"]
    ),
}
EVERY = list(range(len(COMPARISONS)))


def test_what_is_recorded_is_not_asked(suite):
    assert suite.asked(*COMPARISONS.values()) == EVERY
    assert suite.asked(*COMPARISONS.values(), mode=recorded.RECORD) == EVERY
    text = suite.file().read_text()
    assert suite.asked(*COMPARISONS.values()) == []
    assert suite.asked(*COMPARISONS.values(), mode=recorded.RECORD) == []
    assert suite.asked(*COMPARISONS.values(), mode=recorded.EVERYTHING) == EVERY
    assert suite.asked(*COMPARISONS.values(), drawn=lambda name: name == "test_a#2") == [1]
    assert suite.asked(*COMPARISONS.values(), test="test_b") == EVERY
    assert suite.file().read_text() == text


def edit(name, text):
    return lambda suite: (suite.folder / name).write_text(text)


def another_version(name):
    def change(suite):
        real = importlib.metadata.version
        suite.monkeypatch.setattr(importlib.metadata, "version", lambda asked: "9" if asked == name else real(asked))

    return change


def in_each_token(change):
    """Changes the tokens of a file."""

    def damage(suite):
        lines = suite.file().read_text().splitlines()
        changed = ["  " + " ".join(map(change, x.split())) if x.startswith("  ") else x for x in lines]
        suite.file().write_text("\n".join(changed))

    return damage


def wrong(token):
    return token[: recorded.QUESTION] + "A" * recorded.ANSWER


STALE = {
    "the test is edited": edit("test_it.py", TEST + "# another line\n"),
    "a helper is edited": edit("helper.py", "import numpy, math"),
    "a table is edited": edit("table.txt", "2"),
    "the set-up is edited": edit("conftest.py", "1"),
    "a file is missing": lambda suite: suite.file().unlink(),
    "a file is empty": lambda suite: suite.file().write_text(""),
    "answers are wrong": in_each_token(wrong),
    "questions are wrong": in_each_token(lambda token: "A" * recorded.QUESTION + token[recorded.QUESTION :]),
    "another jax": lambda suite: suite.monkeypatch.setattr(recorded, "ORACLE", "0.10.3"),
    "another jaxlib": another_version("jaxlib"),
    "another NumPy": another_version("numpy"),
}


@pytest.mark.parametrize("change", STALE)
def test_what_is_stale_is_asked(suite, change):
    suite.asked(*COMPARISONS.values(), mode=recorded.RECORD)
    STALE[change](suite)
    assert suite.asked(*COMPARISONS.values()) == EVERY


@pytest.mark.parametrize("setting", [{"JAX_ENABLE_X64": "1"}, {"XLA_FLAGS": "--xla_dump_to="}, {"PATH": "/"}])
def test_options_are_part_of_the_head(suite, setting):
    suite.asked(sine, mode=recorded.RECORD)
    assert suite.asked(sine, environment={**os.environ, **setting}) == ([] if "PATH" in setting else [0])


def test_wrong_values_are_asked(suite):
    suite.asked(COMPARISONS["values"], mode=recorded.RECORD)
    places = itertools.count()
    # The texts of the three cases are recorded before their values.
    in_each_token(lambda token: token if next(places) < 3 else wrong(token))(suite)
    assert suite.asked(COMPARISONS["values"]) == [0]
    with pytest.raises(Mismatch, match=r"comparison \(values 'one'\): recorded with an answer that is not jax's"):
        suite.asked(COMPARISONS["values"], mode=recorded.EVERYTHING)


@pytest.mark.parametrize("seed", ["0", "1", "20260131"])
def test_records_hold_with_any_seed(suite, seed):
    everything = [*COMPARISONS.values(), sweep_of(*map(str, range(50)))]
    suite.asked(*everything, mode=recorded.RECORD)
    suite.monkeypatch.setenv("MINIJAX_TEST_SEED", seed)
    real = recorded.drawn
    suite.asked(*everything, mode=recorded.EVERYTHING, drawn=real)
    suite.asked(*everything, drawn=real)
    assert suite.asked(*everything) == []


def test_values_are_found_in_any_group(suite):
    names = [f"case{i}" for i in range(7)]
    suite.asked(lambda: compare.sweep(list(map(unlike, names)), jaxpr=False, group=7), mode=recorded.RECORD)
    for group in (1, 2, 5):
        sweep = lambda group=group: compare.sweep(list(map(unlike, names)), jaxpr=False, group=group)  # noqa: E731
        assert suite.asked(sweep) == []
        assert suite.asked(sweep, mode=recorded.EVERYTHING) == [0]


def test_only_a_comparison_that_is_inserted_is_asked(suite):
    first, *others = COMPARISONS.values()
    suite.asked(*others, mode=recorded.RECORD)
    assert suite.asked(first, *others) == EVERY[:1]
    assert suite.asked(*others, first) == EVERY[-1:]


def test_answers_to_a_repeated_question_are_told_by_their_order(suite):
    def setting(value):
        suite.monkeypatch.setenv("SETTING", value)
        compare.same(lambda: os.environ["SETTING"])

    a, b = functools.partial(setting, "a"), functools.partial(setting, "b")
    suite.asked(a, b, mode=recorded.RECORD)
    assert suite.asked(a, b) == suite.asked(a) == []
    assert suite.asked(b, a) == [0, 1]


def test_another_program_of_the_same_name_is_asked(suite):
    programs = [lambda jnp: lambda x: jnp.sin(x) * 1, lambda jnp: lambda x: 1 * jnp.sin(x)]
    suite.asked(lambda: compare.check(case("sine", programs[0])), mode=recorded.RECORD)
    assert suite.asked(lambda: compare.check(case("sine", programs[1]))) == [0]


def test_a_wrong_answer_is_an_error_with_the_oracle_that_names_it(suite):
    suite.asked(sine, mode=recorded.RECORD)
    STALE["answers are wrong"](suite)
    with pytest.raises(recorded.Unconfirmed, match=r"test_a, comparison \(texts 'sine'\)"):
        suite.asked(sine, mode=recorded.EVERYTHING)


MODES = [recorded.USUAL, recorded.RECORD, recorded.EVERYTHING]


@pytest.mark.parametrize("mode", MODES)
def test_a_difference_is_found_and_not_recorded(suite, mode):
    suite.asked(sine, mode=recorded.RECORD)
    before = suite.file().read_text()
    suite.monkeypatch.setattr(compare.ours().numpy, "sin", compare.ours().numpy.cos)
    with pytest.raises(Mismatch):
        suite.asked(sine, mode=mode)
    assert suite.file().read_text() == before


def test_without_jax_known_answers_pass_and_unknown_ones_are_undecided(suite):
    suite.asked(*COMPARISONS.values(), mode=recorded.RECORD)
    another_version("jaxlib")(suite)
    assert suite.asked(*COMPARISONS.values(), mode=recorded.ALONE, drawn=lambda name: True) == []
    assert suite.undecided == 0
    assert suite.asked(sine, sine, mode=recorded.ALONE, test="test_a") == []
    assert suite.undecided == 1
    edit("table.txt", "2")(suite)
    assert suite.asked(*COMPARISONS.values(), mode=recorded.ALONE) == []
    assert suite.undecided > len(COMPARISONS)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "arange"])
def test_without_jax_a_different_answer_fails(suite, name):
    suite.asked(*COMPARISONS.values(), mode=recorded.RECORD)
    numpy = compare.ours().numpy
    suite.monkeypatch.setattr(numpy, name, lambda x: numpy.ones(x if isinstance(x, int) else x.shape, "float16"))
    with pytest.raises(AssertionError, match="jax's recorded answer is not minijax's"):
        suite.asked(*COMPARISONS.values(), mode=recorded.ALONE)


def test_without_jax_floats_of_another_jaxlib_are_undecided(suite):
    suite.asked(COMPARISONS["eager"], COMPARISONS["same"], mode=recorded.RECORD)
    in_each_token(wrong)(suite)
    another_version("jaxlib")(suite)
    assert suite.asked(COMPARISONS["eager"], mode=recorded.ALONE) == []
    assert suite.undecided == 1
    with pytest.raises(recorded.Unconfirmed):
        suite.asked(COMPARISONS["same"], mode=recorded.ALONE)


def test_last_bits_of_floats_are_not_recorded_but_signs_are():
    def floats(*numbers):
        return recorded.rounded(np.array(numbers, np.float32))

    for near in (1.1, 1.0, -2.0):
        assert floats(near) == floats(np.nextafter(np.float32(near), np.float32(0)))
    different = [floats(x) for x in (1.1, 1.11, -1.1, 0.0, -0.0, np.inf, -np.inf, np.nan)]
    assert max(Counter(different).values()) == 1


LAMBDAS = [lambda x: x + 1, lambda x: x - 1, lambda x, y=1: x, lambda x, y=2: x]  # fmt: skip


def test_programs_are_told_by_place_defaults_and_captured_values():
    def capturing(value):
        return lambda: value

    programs = [*LAMBDAS, *map(capturing, [1, 2, np.float32(1), [1, 2], {1: 2}, ONES, 2 * ONES, np.sin, "a", None])]
    programs += [capturing(program) for program in programs]
    programs += [eval("lambda x: x.sin()"), eval("lambda x: x.cos()"), eval("lambda x: x + 'a'")]
    assert max(Counter(map(recorded.told, programs)).values()) == 1
    assert recorded.told(capturing({"a", "b", "c"})) == recorded.told(capturing({"c", "b", "a"}))


def test_each_file_that_a_test_module_imports_is_among_its_sources():
    helpers = {
        Path(module.__file__): name
        for name, module in list(sys.modules.items())
        if str(getattr(module, "__file__", "") or "").startswith(str(ROOT / "tests"))
    }
    for path in [path for path in helpers if path.name.startswith("test_")]:
        module = sys.modules[helpers[path]]
        used = {sys.modules.get(getattr(value, "__module__", None) or "") for value in vars(module).values()}
        used |= {value for value in vars(module).values() if isinstance(value, type(sys))}
        files = {Path(m.__file__) for m in used if getattr(m, "__file__", None)} & helpers.keys()
        assert files <= recorded.sources(path), path


PROGRAM = """
import sys
import compare, numpy as np
def test_a():
    compare.same_jaxpr(lambda jnp: jnp.sin, np.ones(3, np.float32))
def test_b():
    compare.same_jaxpr(lambda jnp: jnp.cos, np.ones(3, np.float32))
def test_z():
    print("jax was imported:", "jax" in sys.modules)
"""
ANOTHER_COSINE = """
def pytest_collection_finish():
    import minijax.numpy
    minijax.numpy.cos = minijax.numpy.sin
"""


def python_without_jax(folder):
    """The Python of an environment that has the packages of this one but for jax, and jaxtyping, which imports it."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.match(r"jax(typing)?(-|$)", path.name):
            (packages / path.name).symlink_to(path)
    return folder / "bin/python"


@pytest.mark.slow
def test_workers_record_together_and_jax_is_not_imported(tmp_path):
    (tmp_path / "tests/support").mkdir(parents=True)
    for name in ("minijax", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    for path in [ROOT / "tests/conftest.py", *(ROOT / "tests/support").glob("*.*")]:
        (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    program, alone = tmp_path / "tests/test_it.py", python_without_jax(tmp_path / "environment")
    program.write_text(PROGRAM)

    def run(*options, python=sys.executable):
        command = [python, "-m", "pytest", "-q", "-rPs", "-p", "no:cacheprovider", *options, "tests"]
        environment = {**os.environ, "MINIJAX_TEST_SEED": "1", "PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout

    assert "jax was imported: True" in run()
    assert "3 passed" in run("--record", "-n", "2")
    said = run()
    assert "jax was imported: False" in said and "2 known to jax" in said
    assert "jax was imported: True" in run("--oracle")
    said = run(python=alone)
    assert "3 passed" in said and "2 known to jax" in said and "jax was imported: False" in said
    (tmp_path / "another.py").write_text(ANOTHER_COSINE)
    said = run("-p", "another", python=alone)
    assert "1 failed, 2 passed" in said and "test_b, comparison" in said and "recorded answer is not minijax's" in said
    program.write_text(PROGRAM + "# edited")
    said = run(python=alone)
    assert "1 passed, 2 skipped" in said and "2 not recorded" in said and "1 comparisons are not recorded" in said
