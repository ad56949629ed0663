"""Builds the documentation site in build/site: `pip install '.[docs]' && python docs/build.py`.

Pages are README.md, ARCHITECTURE.md, CHANGELOG.md, those of tests/ and benchmarks/, chapters in docs/, the notebooks
with their outputs, and a page for each public module, made from signatures and docstrings. A broken link is an error.
"""

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
MODULES = """
minijax minijax.numpy minijax.numpy.linalg minijax.numpy.fft minijax.lax minijax.lax.linalg minijax.random
minijax.nn minijax.nn.initializers minijax.tree minijax.tree_util minijax.sharding minijax.debug
minijax.errors minijax.image minijax.ops minijax.ad_checkpoint minijax.custom_batching
minijax.custom_derivatives minijax.dtypes minijax.dlpack minijax.distributed minijax.export minijax.ffi
minijax.profiler minijax.ref minijax.stages minijax.scipy.fft minijax.scipy.integrate
minijax.scipy.interpolate minijax.scipy.linalg minijax.scipy.ndimage minijax.scipy.optimize
minijax.scipy.signal minijax.scipy.sparse.linalg minijax.scipy.special minijax.scipy.stats
minijax.experimental.checkify minijax.experimental.mesh_utils minijax.experimental.multihost_utils
minijax.experimental.sparse minijax.experimental.topologies
""".split()
_SECTION = re.compile(
    r"^(Args|Returns|Raises|Yields|Example|Examples|See also|Attributes|Differences[^:]*|[A-Z][\w' ]+):$"
)


def page(name: str) -> str:
    """The page of a module: its functions and classes with their signatures and docstrings."""
    module = importlib.import_module(name)
    shown = name.replace("minijax", "jax", 1)
    parts = [f"# {shown}\n", markdown(inspect.getdoc(module) or ""), ""]
    names = [n for n in getattr(module, "__all__", None) or dir(module) if not n.startswith("_")]
    for item in sorted(set(names), key=str.lower):
        value = getattr(module, item)
        if callable(value) or isinstance(value, property):
            parts += [
                f"## {shown}.{item}\n",
                f"```python\n{item}{signature(value)}\n```\n",
                markdown(own_doc(value)),
                "",
            ]
    return "\n".join(parts)


def signature(value: Any) -> str:
    """The arguments of a function, without annotations; of a class nothing if they are unknown."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=found.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def own_doc(value: Any) -> str:
    """The docstring, without NumPy's or SciPy's text after it, which their sites have."""
    doc = value.__doc__
    if not isinstance(doc, str):
        return ""
    own = inspect.cleandoc(doc[:])
    # NumPy's own objects, such as its functions for printing, have headings that would be those of the page.
    return own if getattr(value, "__module__", "").startswith("minijax") else own.partition("\n\n")[0]


def markdown(doc: str) -> str:
    """A docstring as markdown: sections get a bold name, arguments become a list, examples a block of code."""
    out: list[str] = []
    for block in re.split(r"\n\s*\n", doc):
        lines = block.splitlines()
        if lines and _SECTION.match(lines[0]):
            out.append(f"**{lines[0][:-1]}**\n")
            lines = inspect.cleandoc("\n" + "\n".join(lines[1:])).splitlines()
            if lines and re.match(r"\*?\*?[\w, *`]+( \([^)]*\))?:( |$)", lines[0]):
                lines = [re.sub(r"^(\*{0,2}[\w, *`]+?)(?: \([^)]*\))?:", r"- `\1`:", line) for line in lines]
        else:
            lines = inspect.cleandoc("\n" + block).splitlines() if block.startswith("    ") else lines
        if any(line.startswith((">>>", "...")) for line in lines):
            lines = ["```pycon", *lines, "```"]
        elif block.startswith("    ") and out and out[-1].startswith("```"):
            lines = ["```python", *lines, "```"]
        out.append("\n".join(lines) + "\n")
    return "\n".join(out)


def gather() -> dict[str, list[str]]:
    """Writes all pages, and returns what the navigation lists by folder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for folder, pattern in (
        ("", "*.md"),
        ("docs", "*.md"),
        ("docs", "*.css"),
        ("docs", "*.svg"),
        ("docs/howto", "*.md"),
        ("notebooks", "*.ipynb"),
        ("tests", "README.md"),
        ("benchmarks", "README.md"),
        ("benchmarks/pictures", "*.svg"),
    ):
        (PAGES / folder).mkdir(parents=True, exist_ok=True)
        for path in (ROOT / folder).glob(pattern):
            if path.name == "STATUS.md":
                continue
            target = PAGES / folder / ("index.md" if path.name == "README.md" and not folder else path.name)
            target.write_text(_with_links(path.read_text(), path.parent))
    (PAGES / "api").mkdir()
    for name in MODULES:
        (PAGES / "api" / f"{name}.md").write_text(page(name))
    howto = sorted(path.name for path in (PAGES / "docs/howto").glob("*.md"))
    return {"API": [f"api/{name}.md" for name in MODULES], "How to": [f"docs/howto/{name}" for name in howto]}


def _with_links(text: str, folder: Path) -> str:
    """A page whose links to files that are no pages are plain text."""

    def linked(found: re.Match) -> str:
        label, target = found.groups()
        is_page = target.startswith(("http", "#")) or target.split("#")[0].endswith((".md", ".ipynb"))
        return found[0] if is_page or not (folder / target.split("#")[0]).exists() else label

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", linked, text)


def main() -> None:
    found = gather()
    settings = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text())
    for entry in settings["nav"]:
        for title in entry.keys() & found.keys():
            entry[title] = found[title]
    settings |= dict(docs_dir=str(PAGES), site_dir=str(SITE))
    written = ROOT / "build" / "mkdocs.yml"
    written.write_text(yaml.safe_dump(settings, sort_keys=False))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(written)]
    sys.exit(subprocess.run(command, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}).returncode)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
