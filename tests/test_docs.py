"""The documents' Python snippets run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "README.md"])
def test_the_snippets_of_a_document_run_in_order(name, capsys):
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)
    namespace: dict = {"__name__": name}
    for snippet in snippets:
        exec(compile(snippet, name, "exec"), namespace)
    assert snippets or name == "README.md"
    assert not snippets or capsys.readouterr().out
