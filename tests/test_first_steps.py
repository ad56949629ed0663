"""The commands of docs/howto/first-steps.md, run as a newcomer runs them, print what the page shows."""

import os
import re
import shutil
import subprocess

import pytest

from tests.test_distribution import ROOT, Environment

PAGE = ROOT / "docs" / "howto" / "first-steps.md"
COMMANDS = re.compile(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
# What a machine without a network cannot do: this environment's packages stand in for those that pip would get.
OFFLINE = {
    "python3 -m venv .venv &&": "",
    "pip wheel": "pip wheel -q --no-build-isolation",
    "pip install": "pip install -q --no-deps --no-index --ignore-installed --no-compile",
}
# Of Jupyter and pip, only those modules need be there.
SCRIPTS = {
    "pip": "import sys; from pip._internal.cli.main import main; sys.exit(main())",
    "jupyter-execute": "from nbclient.cli import main; main()",
}


@pytest.mark.slow
def test_the_commands_for_newcomers_print_what_the_page_shows(tmp_path):
    pytest.importorskip("setuptools", minversion="77")  # before pip, which loads Python's own distutils
    for needed in ("pip", "nbclient", "ipykernel"):
        pytest.importorskip(needed)
    folder = tmp_path / "minijax"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "notebooks")
    shutil.copytree(ROOT, folder, ignore=ignored)
    made = Environment(folder / ".venv")
    made.add_packages_around()
    for script, code in SCRIPTS.items():
        (made.scripts / script).write_text(f'#!/bin/sh\nexec "{made.python}" -c "{code}" "$@"\n')
        (made.scripts / script).chmod(0o755)

    blocks = COMMANDS.findall(PAGE.read_text())
    assert len(blocks) == 4
    for online, offline in OFFLINE.items():
        assert online in blocks[0][0]
        blocks[0] = (blocks[0][0].replace(online, offline), blocks[0][1])
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MINIJAX_AS", "XLA_FLAGS"))}
    for commands, shown in blocks:
        # In one shell after another, each of which has the environment activated.
        command = ["bash", "-ec", f". .venv/bin/activate\n{commands}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, env=environment)
        assert done.returncode == 0, (commands, done.stdout, done.stderr)
        pattern = ".*".join(map(re.escape, shown.strip().split("...")))
        assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), (commands, shown, done.stdout)
    assert not list(made.packages.glob("*as_jax.pth"))
