"""The source of the package, read and parsed once, when a test asks for it."""

import ast
import functools
import gc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def files() -> dict[str, str]:
    """The paths of the package's modules, by dotted name."""
    paths = sorted(path.relative_to(ROOT / "minijax") for path in (ROOT / "minijax").rglob("*.py"))
    return {".".join(("minijax", *path.with_suffix("").parts)).removesuffix(".__init__"): str(path) for path in paths}


@functools.cache
def texts() -> dict[str, str]:
    return {name: (ROOT / "minijax" / path).read_text() for name, path in files().items()}


@functools.cache
def trees() -> dict[str, ast.Module]:
    # The garbage collector would visit the trees again and again while they grow: parsing would take four times as long.
    gc.disable()
    try:
        return {name: ast.parse(text) for name, text in texts().items()}
    finally:
        gc.enable()
        gc.freeze()
