"""The warning about large captured constants: a program keeps its own copy of them."""

import warnings

from minijax.base import config, source
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, subjaxprs
from minijax.ir.types import ShapedArray

_warn_bytes = config.option("captured_constants_warn_bytes")
_report_frames = config.option("captured_constants_report_frames")
_REPORTED = 5


def warn_of_constants(closed: ClosedJaxpr) -> None:
    """Warns if a jaxpr and its subjaxprs capture at least `jax_captured_constants_warn_bytes` bytes of constants."""
    limit = _warn_bytes.value
    jaxprs = _within(closed.jaxpr) if limit >= 0 else []
    sizes = {v: _size(v) for jaxpr in jaxprs for v in jaxpr.constvars}
    total = sum(sizes.values())
    if not sizes or total < limit:
        return
    text = (
        f"A large amount of constants were captured during lowering ({_text(total)} total). "
        "JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1 turns this warning off."
    )
    frames = _report_frames.value
    if frames:
        readers = {v: eqn for jaxpr in jaxprs for eqn in reversed(jaxpr.eqns) for v in eqn.invars if type(v) is Var}
        largest = sorted(sizes, key=lambda v: -sizes[v])[:_REPORTED]
        text += " The largest:" + "".join(_line(v, sizes[v], readers.get(v), frames) for v in largest)
    else:
        text += " JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1 shows where they are read."
    warnings.warn(text, stacklevel=2)


def _within(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The jaxpr and its nested jaxprs, each once."""
    jaxprs, seen = [jaxpr], {jaxpr}
    for outer in jaxprs:
        inner = [j for j in dict.fromkeys(subjaxprs(outer)) if j not in seen]
        seen.update(inner)
        jaxprs += inner
    return jaxprs


def _size(v: Var) -> int:
    return v.aval.size * v.aval.dtype.itemsize if isinstance(v.aval, ShapedArray) else 0


def _text(size: float) -> str:
    """A number of bytes, as `65.54KB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.2f}{unit}" if unit != "B" else f"{size:.0f}B"


def _line(v: Var, size: int, reader: JaxprEqn | None, frames: int) -> str:
    place = source.summary(reader.traceback, frames if frames > 0 else None) if reader is not None else "unknown"
    return f"\n  Constant {v.aval.str_short()}, {_text(size)}, captured at:\n    " + place.replace("\n", "\n    ")
