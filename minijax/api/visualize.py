"""Pictures of how arrays lie on devices."""

from collections.abc import Sequence
from typing import Any

from minijax.composed.inspect_sharding import inspect_array_sharding
from minijax.partition.shardings import Sharding

_HEIGHT_TO_WIDTH = 2.5  # of a character
_BASE = 10  # the height of a picture, in lines


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints how an array of rank 1 or 2 lies; options are those of `visualize_sharding`."""
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Prints which devices hold which part of an array of this shape; never in colour."""
    if len(shape) not in (1, 2):
        raise ValueError(f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, got {shape}.")
    holders: dict[tuple, list] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        spans = [part.indices(n)[:2] for part, n in zip(index, shape, strict=True)]
        holders.setdefault(tuple(spans if len(shape) == 2 else [(0, 1), *spans]), []).append(device)
    size = shape if len(shape) == 2 else (1, *shape)
    rows = sorted({r for r, _ in holders})
    columns = sorted({c for _, c in holders})
    texts = {
        place: f"{devices[0].platform.upper()} {','.join(str(d.id) for d in devices)}"
        for place, devices in holders.items()
    }
    height = int(_BASE * scale)
    width = int(height * (size[1] if len(shape) == 2 else 1) / max(shape[0], 1))
    widths = [_column([texts[r, c] for r in rows], _part(c, size[1]) * width, min_width, max_width) for c in columns]
    is_tall = len(shape) == 2
    lines = [_padding(int(_part(r, size[0]) * height)) if is_tall else (0, 0) for r in rows]
    print(_drawn([[texts[r, c] for c in columns] for r in rows], widths, lines))


def _part(span: tuple[int, int], size: int) -> float:
    return (span[1] - span[0]) / max(size, 1)


def _padding(room: int) -> tuple[int, int]:
    """How much goes before and after what is in the middle of `room`, without the borders."""
    before, odd = divmod(room - 2, 2)
    return max(before, 0), max(before + odd, 0)


def _column(texts: Sequence[str], width: float, min_width: int, max_width: int) -> int:
    column = min(max(int(width * _HEIGHT_TO_WIDTH), min_width), max_width)
    return max(len(t) + sum(_padding(column - len(t))) for t in texts)


def _drawn(texts: Sequence[Sequence[str]], widths: Sequence[int], lines: Sequence[tuple[int, int]]) -> str:
    def rule(left, middle, right):
        return left + middle.join("─" * w for w in widths) + right

    def line(cells):
        return "│" + "│".join(_centered(t, w) for t, w in zip(cells, widths, strict=True)) + "│"

    blank = line([""] * len(widths))
    drawn = [rule("┌", "┬", "┐")]
    for k, (cells, (above, below)) in enumerate(zip(texts, lines, strict=True)):
        drawn += [rule("├", "┼", "┤")] * (k > 0)
        drawn += [blank] * above + [line(cells)] + [blank] * below
    return "\n".join([*drawn, rule("└", "┴", "┘")])


def _centered(text: str, width: int) -> str:
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)
