"""The distribution metadata of `jax` (for `importlib.metadata`) while it is an alias of this package."""

import importlib.metadata
import os
import pathlib

from minijax.base.naming import ALIAS, PACKAGE, VERSION

_ROOT = pathlib.Path(__file__).resolve().parents[2]


class AliasDistribution(importlib.metadata.Distribution):
    """The metadata of the package `jax`: its version, and the requirements and files of this package."""

    def read_text(self, filename: str) -> str | None:
        """Returns the metadata file of that name, or None."""
        match filename:
            case "METADATA":
                lines = [f"Requires-Dist: {name}\n" for name in _requirements()]
                return f"Metadata-Version: 2.1\nName: {ALIAS}\nVersion: {VERSION}\n" + "".join(lines)
            case "RECORD":
                return "".join(f"{path.relative_to(_ROOT).as_posix()},,\n" for path in _files())
            case "top_level.txt":
                return f"{ALIAS}\n"
        return None

    def locate_file(self, path: str | os.PathLike[str]) -> os.PathLike[str]:
        """Returns the path of a file of the distribution, next to this package."""
        return _ROOT / path


def _requirements() -> list[str]:
    try:
        return [name for name in importlib.metadata.requires(PACKAGE) or [] if "extra ==" not in name]
    except importlib.metadata.PackageNotFoundError:  # it is not installed, but imported from its sources
        return []


def _files() -> list[pathlib.Path]:
    return sorted((_ROOT / PACKAGE).rglob("*.py"))
