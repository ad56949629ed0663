"""Windows that slide over arrays."""

from collections.abc import Sequence

import numpy as np


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The numbers of elements that a kind of padding, VALID, SAME or SAME_LOWER, puts before and after axes.

    Raises TypeError if `padding` is no string, and RuntimeError if it is another one.
    """
    if not isinstance(padding, str):
        raise TypeError(f"padtype_to_pads: Unknown padding type: {padding!r}.")
    kind = padding.upper()
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"padtype_to_pads: Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got "
            f"{padding}."
        )
    sizes, windows, strides = (np.asarray(s, np.int64) for s in (in_shape, window_shape, window_strides))
    if kind == "VALID":
        return [(0, 0)] * len(sizes)
    steps = -(-sizes // np.where(strides, strides, 1)) * (strides != 0)
    total = np.maximum((steps - 1) * strides + windows - sizes, 0).tolist()
    halves = [(n // 2, n - n // 2) for n in total]
    return [(high, low) for low, high in halves] if kind == "SAME_LOWER" else halves
