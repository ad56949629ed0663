"""What devices can do, and how much of it a run reached: a table and a picture.

The limits are those that the makers publish, without sparsity: operations per second by dtype, bytes per second of the
memory.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Limits(NamedTuple):
    """Operations per second of products in 32, 16 and 8 bits, and bytes per second of the device's memory."""

    float32: float
    bfloat16: float
    float8: float | None
    memory: float


# By the beginning of `device_kind`. Products of float32 are in bfloat16 on TPUs, and in TF32 on GPUs, as by default.
LIMITS = {
    "TPU v4": Limits(275e12, 275e12, None, 1.2e12),
    "TPU v5 lite": Limits(197e12, 197e12, None, 0.82e12),
    "TPU v5": Limits(459e12, 459e12, None, 2.77e12),
    "TPU v6": Limits(918e12, 918e12, None, 1.64e12),
    "NVIDIA A100": Limits(156e12, 312e12, None, 2.04e12),
    "NVIDIA H100": Limits(495e12, 989e12, 1979e12, 3.35e12),
    "NVIDIA H200": Limits(495e12, 989e12, 1979e12, 4.8e12),
    "NVIDIA B200": Limits(1125e12, 2250e12, 4500e12, 8.0e12),
    "NVIDIA L4": Limits(60e12, 121e12, 242e12, 0.3e12),
}


class Reached(NamedTuple):
    """What one side reached in a row: operations or bytes per second, and their share of the limit if that is known."""

    name: str
    unit: str
    rate: float
    share: float | None


def reached(rows: dict[str, dict], kind: str) -> list[Reached]:
    """The rates of the rows that have operations or bytes."""
    limits = next((found for name, found in LIMITS.items() if kind.startswith(name)), None)
    out = []
    for name, row in rows.items():
        if "error" in row or row.get("unit") != "us":
            continue
        seconds = row["best"] / 1e6
        if row.get("flops"):
            dtype = row.get("dtype", "bfloat16").partition("_")[0]
            limit = getattr(limits, "float8" if dtype == "float8" else dtype, None)
            rate = row["flops"] / seconds
            out.append(Reached(name, "FLOP/s", rate, rate / limit if limit else None))
        elif row.get("bytes") or row.get("sent"):
            rate = (row.get("bytes") or row["sent"]) / seconds
            copied = "host" in name or "sent" in row  # over another wire than the memory's
            out.append(Reached(name, "bytes/s", rate, rate / limits.memory if limits and not copied else None))
    return out


def lines_of(a: Sequence[Reached], b: Sequence[Reached]) -> list[tuple[str, ...]]:
    """The lines of a table with both sides beside each other."""
    theirs = {row.name: row for row in a}
    lines = [("row", "unit", "a", "b", "share a", "share b")]
    for row in b:
        other = theirs.get(row.name)
        cells = [
            (f"{r.rate:.3g}", "" if r.share is None else f"{r.share:.1%}") if r else ("absent", "")
            for r in (other, row)
        ]
        (rate_a, share_a), (rate_b, share_b) = cells
        lines.append((row.name, row.unit, rate_a, rate_b, share_a, share_b))
    return lines


def draw(ratios: dict[str, float], sides: tuple[str, str], title: str, path: Path) -> None:
    """A picture with a bar for each ratio: how many times as fast B is as A. It needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names, values = [*ratios][::-1], [*ratios.values()][::-1]
    figure, axes = pyplot.subplots(figsize=(8, 0.3 * len(names) + 1.2), layout="constrained")
    bars = axes.barh(names, values, color="#4878a8")
    axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=8, bbox=dict(color="white", pad=0.5))
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel(f"{sides[1]} against {sides[0]}: above 1, {sides[1]} is faster")
    axes.set_title(title, fontsize=10)
    axes.margins(x=0.12)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
