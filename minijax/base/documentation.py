"""Docstrings that show, below their own text, the one of NumPy's or SciPy's function of the same name."""

import re
from collections.abc import Mapping
from typing import Any

from minijax.base.lazy import defer
from minijax.base.naming import PACKAGE, is_under

_inspect, _pkgutil = defer("inspect"), defer("pkgutil")

_LIBRARIES = {"numpy": "NumPy", "scipy": "SciPy"}
# Sections that send readers elsewhere, or whose examples are not about arrays of this package.
_LEFT_OUT = ("Examples", "See Also", "References")
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_EXAMPLE = re.compile(r"^ *>>> .*\n(?:.*\S.*\n)*", re.MULTILINE)
_DIRECTIVE = re.compile(r"^( *)\.\. \w+::.*\n(?:\1 +.*\n|\n(?=\1 ))*", re.MULTILINE)


class Documentation(str):
    """The docstring of a public function; displayed, it goes on with that of the object at the dotted name `source`.

    The string itself has our text alone. `help`, `print` and `inspect.getdoc` call the methods below, which look the
    other text up: nothing is imported before.
    """

    __slots__ = ("source",)
    source: str

    def __new__(cls, own: str, source: str):
        self = super().__new__(cls, own)
        self.source = source
        return self

    def __reduce__(self):
        return Documentation, (str.__str__(self), self.source)

    def __str__(self):
        own = _inspect.cleandoc(str.__str__(self))
        try:
            found = _found(self.source)
            text = str(found.__doc__ or "")
        except Exception:  # of a library that is absent, or broken: our own text is still of use
            return own
        if not text or text.startswith(own):
            return own
        if is_under(self.source, PACKAGE):
            return f"{own}\n\n{text}"
        heading = f"{_LIBRARIES[self.source.partition('.')[0]]}'s documentation of `{self.source}`:"
        return f"{own}\n\n{heading}\n\n{_indented(_relevant(text, found, _parameters(self.source)))}"

    def expandtabs(self, tabsize=8):
        return str(self).expandtabs(tabsize)

    def split(self, sep=None, maxsplit=-1):
        return str(self).split(sep, maxsplit)

    def splitlines(self, keepends=False):
        return str(self).splitlines(keepends)

    def strip(self, chars=None):
        return str(self).strip(chars)


def _found(path: str) -> Any:
    return _pkgutil.resolve_name(path)


def _parameters(source: str) -> set[str]:
    """The names of the parameters of our function."""
    try:
        return set(_inspect.signature(_found(f"{PACKAGE}.{source}")).parameters)
    except (TypeError, ValueError):
        return set()


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _relevant(text: str, found: Any, taken: set[str]) -> str:
    """A numpydoc text without signature, examples and pointers, nor optional parameters that are not `taken`."""
    text = _EXAMPLE.sub("", _DIRECTIVE.sub("", _inspect.cleandoc(text) + "\n"))
    lines = text.splitlines()
    while lines and (not lines[0] or re.match(r"\w+\(.*", lines[0]) or lines[0][0] == " "):
        del lines[0]
    start, *sections = _SECTION.split("\n".join(lines))
    shown = [start.strip()]
    # Ufuncs of NumPy share optional parameters, which ours do not take.
    taken = set() if type(found).__name__ == "ufunc" else taken - {"out"}
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title.endswith("Parameters"):
            body = _taken(body, taken)
        if title not in _LEFT_OUT and body.strip():
            shown.append(f"{title}\n{'-' * len(title)}\n{body.strip()}")
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(shown))


def _taken(body: str, names: set[str]) -> str:
    entries = re.split(r"\n(?=\S)", body)
    return "\n".join(e for e in entries if not _is_optional(e) or names & set(re.findall(r"\w+", e.partition(":")[0])))


def _is_optional(entry: str) -> bool:
    head = entry.strip().partition("\n")[0]
    return "optional" in head or head.startswith(("out ", "out:", "*", "{out"))


def filled(function: Any, texts: Mapping[str, Any]) -> str | None:
    """The docstring of one of several similar functions: that of `function`, with texts in the places of its marks."""
    return function.__doc__ and function.__doc__.format(**texts)  # `python -OO` leaves docstrings out


def document(value: Any, public: str, source: str = "") -> None:
    """Lets the docstring of the function at the dotted name `public` of this package go on with that of `source`.

    By default this is the function of NumPy or SciPy with the same name.
    """
    own = getattr(value, "__doc__", None)
    if not own or isinstance(own, Documentation) or isinstance(value, type) or not callable(value):
        return
    source = source or public.removeprefix(f"{PACKAGE}.")
    if source.partition(".")[0] in (*_LIBRARIES, PACKAGE) and is_under(str(value.__module__), PACKAGE):
        value.__doc__ = Documentation(own, source)
