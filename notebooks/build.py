"""Makes the notebooks: each `cells/*.py` is run by Jupyter, and written with its outputs as an `.ipynb`.

    python notebooks/build.py                  # all
    python notebooks/build.py tour autodiff    # those

It needs `pip install '.[notebooks]'`. `tests/test_notebooks.py` runs them again and compares the outputs.
"""

import os
import re
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
# In the order in which a newcomer reads them. The other programs in this folder train for minutes.
NOTEBOOKS = """
tour from_pytorch autodiff control_flow sharding debugging kernels learning_radii inside
""".split()
SECONDS = 300


def executed(name: str) -> nbformat.NotebookNode:
    """The notebook with the outputs of its cells. Raises CellExecutionError for a cell that fails unexpectedly."""
    notebook = jupytext.read(FOLDER / "cells" / f"{name}.py")
    for i, cell in enumerate(notebook.cells):
        cell.id = f"{name}-{i}"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(FOLDER.parent), os.environ.get("PYTHONPATH")]))
    where = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=where, record_timing=False).execute()
    notebook.metadata = dict(
        kernelspec=dict(display_name="Python 3", language="python", name="python3"), language_info=dict(name="python")
    )
    for cell in notebook.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k == "tags"}
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list) -> list:
    """The outputs, with what was printed in one piece."""
    joined: list = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def text_of(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each code cell shows as text, without times and addresses; a picture counts as that there is one."""
    return [[_text(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        text = output.text
    elif output.output_type == "error":
        text = f"{output.ename}: {output.evalue}"
    else:
        text = "picture" if "image/png" in output.data else output.data.get("text/plain", "")
    text = re.sub(r"\x1b\[[\d;]*m", "", text)
    text = re.sub(r"[\d.,]+ ?(ms|µs|us|seconds|s|steps/s)\b", r"_ \1", text)
    return re.sub(r"0x[0-9a-f]+|/[^\s'\"]*/(?=[\w.]+\.py)|/tmp/\S+|ipykernel_\d+|\b_?\d{6,}(?=\.py)", "_", text)


def main(names: list[str]) -> None:
    for name in names or NOTEBOOKS:
        nbformat.write(executed(name), FOLDER / f"{name}.ipynb")
        print(f"{name}.ipynb", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
