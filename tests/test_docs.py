"""The programs of the documents run, and print what the documents show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from package import texts, trees

from tests.test_layers import code_lines

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "tests/README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]
# A program, and what it prints if that follows.
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
END = "---- end of a program"


def program_of(name):
    """The document as a parameter of a test; one whose programs compare with jax is marked."""
    marks = pytest.mark.oracle if "from compare import" in (ROOT / name).read_text() else ()
    return pytest.param(name, marks=marks)


def prints(shown: str, printed: str) -> bool:
    """Returns whether a text block shows what was printed; its lines `...` represent any lines."""
    parts = [re.escape(part.strip()) for part in re.split(r"^ *\.\.\.$", shown, flags=re.MULTILINE)]
    return re.fullmatch(r"\s*" + r"(?:\s.*)?".join(parts) + r"\s*", printed, re.DOTALL) is not None


@pytest.mark.parametrize("name", [program_of(name) for name in DOCUMENTS])
def test_the_programs_of_a_document_run_in_order(name):
    # In a process of its own: what is compiled depends on what was compiled before.
    programs = PROGRAM.findall((ROOT / name).read_text())
    assert programs
    code = "".join(f"{program}\nprint({END!r}, flush=True)\n" for program, _ in programs)
    paths = os.pathsep.join(str(ROOT / folder) for folder in (".", "tests", "tests/support"))
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    for (_, shown), printed in zip(programs, done.stdout.split(END), strict=False):
        assert not shown or prints(shown, printed), f"{name} shows\n{shown}\nand prints\n{printed}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_files_that_a_document_names_exist(name):
    """Links, and paths in backticks such as `ir/trace.py` or `tests/support/`."""
    text = (ROOT / name).read_text()
    links = re.findall(r"\]\(([^)#:]+)", text)
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []
    paths = re.findall(r"`([\w./-]+/|[\w./-]*/[\w-]+\.py|(?:docs|tests|benchmarks|notebooks|\.ci)/[\w./-]+)`", text)
    assert [
        path
        for path in paths
        if not any((folder / path).exists() for folder in (ROOT, ROOT / "minijax", ROOT / "tests"))
    ] == []


def test_a_text_block_is_compared_with_what_was_printed():
    assert prints("a\nb\n", "a\nb\n") and prints("a\n...\nc", "a\nb\nb\nc\n") and prints("a\n...\nc", "a\nc")
    assert not prints("a\n", "a\nb\n") and not prints("a.c", "abc") and not prints("...\nc", "a\nd")


def test_the_readme_counts_the_lines_of_code():
    (stated,) = re.findall(r"([\d,]+) lines of code", (ROOT / "README.md").read_text())
    counted = sum([code_lines(text, trees()[name]) for name, text in texts().items()])
    assert abs(int(stated.replace(",", "")) - counted) < 0.05 * counted


def test_the_site_is_built_without_a_broken_link():
    for needed in ("mkdocs", "mkdocs_jupyter"):
        pytest.importorskip(needed)
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "build.py")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (ROOT / "build" / "site" / "api" / "minijax.lax.html").read_text()
    assert "jax.lax.scan" in page and "jax.lax.psum" in page
