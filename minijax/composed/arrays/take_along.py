"""The gather of `take_along_axis`: one index for each row along an axis."""

from typing import NamedTuple

from minijax.base.symbolic.dimension import min_dim
from minijax.primitives.gather_dims import GatherDimensionNumbers


class Along(NamedTuple):
    """A gather's or scatter's numbers, its slice sizes, and the shape of the indices without broadcast axes.

    `squeezed` are the axes of size 1 that the array has to lose first: the indices broadcast it along them.
    """

    numbers: GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    index_shape: tuple[int, ...]
    squeezed: tuple[int, ...]


def along(shape: tuple, index_shape: tuple, axis: int) -> Along:
    """The gather of one index per row: axes shared by array and indices are batched."""
    offsets, batched, index_batched, index_sizes, sizes, squeezed = [], [], [], [], [], []
    for i, (n, m) in enumerate(zip(shape, index_shape, strict=True)):
        at = i - len(squeezed)
        if i == axis:
            collapsed = at
            index_sizes.append(m)
            sizes.append(1)
        elif n == 1 != m:
            squeezed.append(i)
            index_sizes.append(m)
        elif m != 1:
            if n != m:
                raise ValueError(f"take_along_axis: Incompatible shapes for broadcasting: {shape} and {index_shape}")
            batched.append(at)
            index_batched.append(len(index_sizes))
            index_sizes.append(m)
            sizes.append(min_dim(n, 1))
        else:
            offsets.append(i)
            sizes.append(n)
    numbers = GatherDimensionNumbers(tuple(offsets), (collapsed,), (collapsed,), tuple(batched), tuple(index_batched))
    return Along(numbers, tuple(sizes), tuple(index_sizes), tuple(squeezed))
