"""Pictures of shardings: in colour with the package rich, else as plain text."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base.lazy import defer
from minijax.composed.callbacks.debugging import inspect_array_sharding
from minijax.partition.shardings import Sharding

_rich_console, _rich_padding, _rich_table, _rich_box = map(
    defer, ("rich.console", "rich.padding", "rich.table", "rich.box")
)
_matplotlib: Any = defer("matplotlib")

_HEIGHT_TO_WIDTH = 2.5  # of a character
_BASE = 10  # the height of a picture, in lines
_BRIGHT = 186  # the brightness from which on the letters on a colour are black

Colors = Callable[[float], Sequence[float]]


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints the sharding of an array of rank 1 or 2; the options are those of `visualize_sharding`.

    Example:
        >>> jax.debug.visualize_array_sharding(jnp.ones(4), use_color=False)
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """

    def _visualize(sharding: Any) -> None:
        visualize_sharding(arr.shape, sharding, **kwargs)

    inspect_array_sharding(arr, callback=_visualize)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Colors | None = None,
) -> None:
    """Prints which devices hold which shard of an array of this shape.

    If the terminal or notebook has colours, each shard gets one: `color_map` maps a number in [0, 1] to a tuple of
    such numbers; the default is a map of matplotlib, if it is installed. Raises ValueError unless the rank is 1 or 2.

    Example:
        >>> jax.debug.visualize_sharding((4,), jnp.ones(4).sharding, use_color=False)
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    if len(shape) not in (1, 2):
        raise ValueError(f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, got {shape}.")
    console = _rich_console.Console(width=max_width) if _is_installed("rich") else None
    colors = color_map or _default_colors()
    if not use_color or console is None or console.color_system is None:
        colors = None
    holders = _holders(shape, sharding)
    rows, columns = (sorted({spans[axis] for spans in holders}) for axis in (0, 1))
    heights, widths = _cell_sizes(shape, rows, columns, scale)
    widths = [min(max(width, min_width), max_width) for width in widths]
    borders = 0 if colors else 2
    cells = [
        [
            _cell(holders[row, column], height - borders, width - borders)
            for column, width in zip(columns, widths, strict=True)
        ]
        for row, height in zip(rows, heights, strict=True)
    ]
    if console is None:
        print(_drawn(cells))
    else:
        console.print(_table(cells, _styles(colors, holders) if colors else {}))


def _cell_sizes(shape: Sequence[int], rows: Sequence, columns: Sequence, scale: float) -> tuple[list[int], list[int]]:
    """Returns the heights and widths of cells, proportional to the shards; arrays of rank 1 are a row of one line."""
    height = int(_BASE * scale)
    width = int(height * (shape[1] if len(shape) == 2 else 1) / max(shape[0], 1))
    heights = [int(_fraction(span, shape[0]) * height) for span in rows] if len(shape) == 2 else [1]
    return heights, [int(_fraction(span, shape[-1]) * width * _HEIGHT_TO_WIDTH) for span in columns]


class _Cell(NamedTuple):
    device: Any  # the first of those that hold the shard
    text: str
    above_below: tuple[int, int]
    left_right: tuple[int, int]


def _cell(devices: Sequence[Any], height: int, width: int) -> _Cell:
    text = f"{devices[0].platform.upper()} {','.join(str(d.id) for d in devices)}"
    return _Cell(devices[0], text, _padding(height), _padding(width - len(text)))


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _default_colors() -> Colors | None:
    return _matplotlib.colormaps["tab20b"] if _is_installed("matplotlib") else None


def _holders(shape: Sequence[int], sharding: Sharding) -> dict[tuple, list]:
    """Maps each shard, given by its spans along the two axes, to the devices that hold it."""
    holders: dict[tuple, list] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        spans = [part.indices(n)[:2] for part, n in zip(index, shape, strict=True)]
        holders.setdefault(tuple(spans if len(shape) == 2 else [(0, 1), *spans]), []).append(device)
    return holders


def _fraction(span: tuple[int, int], size: int) -> float:
    return (span[1] - span[0]) / max(size, 1)


def _padding(room: int) -> tuple[int, int]:
    """Splits the free space around centred text: (before, after)."""
    before, odd = divmod(room, 2)
    return max(before, 0), max(before + odd, 0)


# ---- with rich --------------------------------------------------------------------------------------


def _styles(colors: Colors, holders: dict[tuple, list]) -> dict[Any, str]:
    """Maps the first device of each shard to a text style; the colours of neighbours are far apart."""
    count = len(holders)
    step = count // 2 + (count + 1) % 2
    return {
        holders[place][0]: _style(colors(k * step % count / max(count - 1, 1)))
        for k, place in enumerate(sorted(holders))
    }


def _style(color: Sequence[float]) -> str:
    red, green, blue = (int(255 * part) for part in color[:3])
    letters = "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > _BRIGHT else "#ffffff"
    return f"{letters} on #{red:02x}{green:02x}{blue:02x}"


def _table(cells: Sequence[Sequence[_Cell]], styles: dict[Any, str]) -> Any:
    table = _rich_table.Table(
        show_header=False,
        show_lines=not styles,
        padding=0,
        highlight=not styles,
        pad_edge=False,
        box=None if styles else _rich_box.SQUARE,
    )
    for row in cells:
        table.add_row(*[_padded(cell, styles.get(cell.device, "none")) for cell in row])
    return table


def _padded(cell: _Cell, style: str) -> Any:
    (above, below), (left, right) = cell.above_below, cell.left_right
    return _rich_padding.Padding(cell.text, (above, right, below, left), style=style)


# ---- without rich -----------------------------------------------------------------------------------


def _drawn(cells: Sequence[Sequence[_Cell]]) -> str:
    widths = [max(len(row[k].text) + sum(row[k].left_right) for row in cells) for k in range(len(cells[0]))]

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * w for w in widths) + right

    def line(texts: Sequence[str]) -> str:
        return "│" + "│".join(_centered(t, w) for t, w in zip(texts, widths, strict=True)) + "│"

    blank = line([""] * len(widths))
    drawn = [rule("┌", "┬", "┐")]
    for k, row in enumerate(cells):
        above, below = row[0].above_below
        drawn += [rule("├", "┼", "┤")] * (k > 0)
        drawn += [blank] * above + [line([cell.text for cell in row])] + [blank] * below
    return "\n".join([*drawn, rule("└", "┴", "┘")])


def _centered(text: str, width: int) -> str:
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)
