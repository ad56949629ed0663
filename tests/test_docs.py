"""The programs of the documents run, and print what the documents show."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from test_layers import TEXTS, code_lines

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "ARCHITECTURE.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
# A program, and what it prints if that follows.
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def prints(shown: str, printed: str) -> bool:
    """Returns whether a text block shows what was printed; its lines `...` represent any lines."""
    parts = [re.escape(part.strip()) for part in re.split(r"^ *\.\.\.$", shown, flags=re.MULTILINE)]
    return re.fullmatch(r"\s*" + r"(?:\s.*)?".join(parts) + r"\s*", printed, re.DOTALL) is not None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_programs_of_a_document_run_in_order(name):
    text = (ROOT / name).read_text()
    namespace: dict = {"__name__": name}
    programs = list(PROGRAM.finditer(text))
    assert programs
    for program in programs:
        code, shown = program.groups()
        line = text.count("\n", 0, program.start()) + 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, name, "exec"), namespace)
        assert shown is None or prints(shown, printed.getvalue()), f"{name}:{line} prints\n{printed.getvalue()}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_files_that_a_document_names_exist(name):
    """Links, and paths in backticks such as `ir/trace.py` or `tests/support/`."""
    text = (ROOT / name).read_text()
    links = re.findall(r"\]\(([^)#:]+)", text)
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []
    paths = re.findall(r"`([\w./-]+/|[\w./-]*/[\w-]+\.py|(?:docs|tests|benchmarks|notebooks|\.ci)/[\w./-]+)`", text)
    missing = [path for path in paths if not any((folder / path).exists() for folder in (ROOT, ROOT / "minijax"))]
    assert [path for path in missing if not path.startswith("~")] == []


def test_a_text_block_is_compared_with_what_was_printed():
    assert prints("a\nb\n", "a\nb\n") and prints("a\n...\nc", "a\nb\nb\nc\n") and prints("a\n...\nc", "a\nc")
    assert not prints("a\n", "a\nb\n") and not prints("a.c", "abc") and not prints("...\nc", "a\nd")


def test_the_readme_counts_the_lines_of_code():
    (stated,) = re.findall(r"([\d,]+) lines of code", (ROOT / "README.md").read_text())
    counted = sum(map(code_lines, TEXTS.values()))
    assert abs(int(stated.replace(",", "")) - counted) < 0.05 * counted
