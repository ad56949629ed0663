"""Bar charts as SVG, each in a light and a dark version; no other package is needed."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

WIDTH, LABEL, RIGHT, TOP = 760, 250, 70, 56
FONT = "font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""


class Theme(NamedTuple):
    """The colours of a picture."""

    text: str
    faint: str
    grid: str
    bars: tuple[str, ...]
    worse: str


_LIGHT = ("#2f6fbb", "#9aa5b1", "#6f9e57", "#b48a3c", "#8a63b5", "#4aa3a2", "#c06c84")
_DARK = ("#58a6ff", "#6e7681", "#7ee787", "#e3b341", "#bc8cff", "#56d4dd", "#ff9bb3")
THEMES = {
    "light": Theme("#1f2328", "#59636e", "#d1d9e0", _LIGHT, "#c4602c"),
    "dark": Theme("#e6edf3", "#9198a1", "#3d444d", _DARK, "#f0883e"),
}


class Scale(NamedTuple):
    """A logarithmic or linear axis of values."""

    low: float
    high: float
    log: bool

    def at(self, value: float) -> float:
        """The horizontal position of a value."""
        low, high, x = self.low, self.high, max(value, self.low)
        if self.log:
            low, high, x = math.log(low), math.log(high), math.log(x)
        return LABEL + (min(x, high) - low) / (high - low) * (WIDTH - LABEL - RIGHT)

    def ticks(self) -> list[float]:
        """Round values within the axis."""
        if not self.log:
            return [i / 2 for i in range(int(2 * self.high) + 1)]
        steps = (1, 2, 5) if self.high / self.low < 200 else (1,)
        found = [s * 10.0**p for p in range(-3, 7) for s in steps]
        return [v for v in found if self.low * 0.999 <= v <= self.high * 1.001]


def scale_of(values: Sequence[float], log: bool) -> Scale:
    """An axis that holds the values, and 1."""
    if not log:
        return Scale(0.0, max(2.0, math.ceil(max(values) * 2) / 2), False)
    return Scale(min(0.5, *values) / 1.15, max(2.0, *values) * 1.1, True)


def number(value: float) -> str:
    """Three digits at most, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _text(x: float, y: float, text: str, colour: str, anchor: str = "start", size: int = 12, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}" {more}>'
        f"{escape(text)}</text>"
    )


def _frame(theme: Theme, title: str, note: str, height: int, scale: Scale, unit: str, body: Sequence[str]) -> str:
    bottom = height - 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" {FONT}>',
        f"<title>{escape(title)}: {escape(note)}</title>",
        _text(8, 22, title, theme.text, size=16, more='font-weight="600"'),
        _text(8, 40, note, theme.faint),
    ]
    for tick in scale.ticks():
        x = scale.at(tick)
        strong = 'stroke-width="1.5"' if tick == 1 else 'stroke-width="1" stroke-dasharray="2 3"'
        colour = theme.faint if tick == 1 else theme.grid
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{bottom}" stroke="{colour}" {strong}/>')
        parts.append(_text(x, bottom + 15, f"{tick:g}{unit}", theme.faint, "middle", 11))
    return "\n".join([*parts, *body, "</svg>\n"])


def _bar(x: float, start: float, y: float, height: float, colour: str) -> str:
    left, width = min(x, start), max(abs(x - start), 1.5)
    return f'<rect x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="2.5" fill="{colour}"/>'


def ratios(title: str, note: str, rows: Mapping[str, float], theme: Theme) -> str:
    """A bar a row, from 1 to its ratio: to the right in blue where it is faster, else to the left in orange."""
    scale = scale_of([*rows.values()], True)
    step = 24 if len(rows) <= 16 else 18
    body = []
    for i, (name, value) in enumerate(rows.items()):
        y, x = TOP + i * step, scale.at(value)
        better = value >= 1
        body += [
            _text(LABEL - 10, y + step / 2 + 3, name, theme.text, "end"),
            _bar(x, scale.at(1.0), y + 3, step - 7, theme.bars[0] if better else theme.worse),
            _text(x + 5 if better else scale.at(1.0) + 5, y + step / 2 + 3, f"{number(value)}×", theme.text, size=11),
        ]
    return _frame(theme, title, note, TOP + len(rows) * step + 30, scale, "×", body)


def groups(
    title: str, note: str, rows: Mapping[str, Mapping[str, float]], theme: Theme, *, log: bool, unit: str = ""
) -> str:
    """For each row a bar for each of its series, with a legend."""
    names = list(dict.fromkeys(name for series in rows.values() for name in series))
    scale = scale_of([v for series in rows.values() for v in series.values()], log)
    body, y = [], TOP + 18
    x = 8.0
    for i, name in enumerate(names):
        colour = theme.bars[i % len(theme.bars)]
        body.append(f'<rect x="{x:.1f}" y="{TOP - 7}" width="10" height="10" rx="2" fill="{colour}"/>')
        body.append(_text(x + 15, TOP + 2, name, theme.text, size=11))
        x += 32 + 6.2 * len(name)
    for row, series in rows.items():
        body.append(_text(LABEL - 10, y + 6 * len(series) + 3, row, theme.text, "end"))
        for name, value in series.items():
            end = scale.at(value)
            body.append(_bar(end, LABEL, y, 9, theme.bars[names.index(name) % len(theme.bars)]))
            body.append(_text(end + 5, y + 8, f"{number(value)}{unit}", theme.faint, size=10))
            y += 12
        y += 9
    return _frame(theme, title, note, y + 26, scale, unit, body)


def save(folder: Path, name: str, draw, alt: str) -> str:
    """Writes both versions of a picture; returns the HTML that shows the one that suits the reader's screen."""
    folder.mkdir(exist_ok=True)
    for kind, theme in THEMES.items():
        (folder / f"{name}-{kind}.svg").write_text(draw(theme))
    at = f"{folder.name}/{name}"
    return (
        f'<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="{at}-dark.svg">\n'
        f'  <img alt="{escape(alt)}" src="{at}-light.svg">\n</picture>\n'
    )
