"""Pieces of HTML that notebooks show: code, tables, folded parts and grids of colours."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from minijax.base.lazy import defer

_html = defer("html")  # has a large table of entities

_CELL = "padding:2px 8px;text-align:left;vertical-align:top;white-space:pre;font-family:monospace"
_COLOURS = "#cfe2f3 #fce5cd #d9ead3 #f4cccc #d9d2e9 #fff2cc #d0e0e3 #ead1dc".split()


def bundled(method: Callable[[Any], str | None]) -> Callable[..., dict[str, str]]:
    """Decorator: `_repr_mimebundle_` of a method that returns HTML, or None. Other tools than notebooks look for
    `_repr_html_` and would show it beside what they know of jax's objects."""
    return wraps(method)(
        lambda self, include=None, exclude=None: {} if (text := method(self)) is None else {"text/html": text}
    )


def code(text: str) -> str:
    """Preformatted text."""
    return f'<pre style="margin:0;max-height:40em;overflow:auto">{_html.escape(text)}</pre>'


def folded(summary: str, body: str, is_open: bool = False) -> str:
    """A part that opens at a click on its summary; `body` is HTML."""
    return f"<details{' open' * is_open}><summary>{_html.escape(summary)}</summary>{body}</details>"


def table(rows: Iterable[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """A table of texts."""
    head = "".join(f'<th style="{_CELL}">{_html.escape(text)}</th>' for text in header)
    lines = ["".join(f'<td style="{_CELL}">{_html.escape(str(cell))}</td>' for cell in row) for row in rows]
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def grid(rows: Sequence[Sequence[str]]) -> str:
    """A grid of cells; those with the same text have the same colour."""
    kinds = {text: i for i, text in enumerate(dict.fromkeys(text for row in rows for text in row))}
    lines = [
        "".join(
            f'<td style="{_CELL};color:#000;border:1px solid #fff;background:{_COLOURS[kinds[text] % len(_COLOURS)]}">'
            f"{_html.escape(text)}</td>"
            for text in row
        )
        for row in rows
    ]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def amount(count: float) -> str:
    """A number of bytes with a unit."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min((int(count).bit_length() - 1) // 10, 5) if count else 0
    return f"{count / 1024**power:.4g} {units[power]}"
