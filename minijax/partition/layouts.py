"""Layouts: the order of the axes of an array in the memory of its devices."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from minijax.base.naming import known_as
from minijax.partition.shardings import NamedSharding, Sharding


class AutoLayout:
    """Requests the layout that XLA chooses."""

    def __repr__(self):
        return "AUTO"


@known_as("jax._src.layout.Layout")
@dataclasses.dataclass(unsafe_hash=True, slots=True)
class Layout:
    """The order of axes in memory, and how they are tiled."""

    AUTO: ClassVar[AutoLayout] = AutoLayout()

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self):
        self.major_to_minor = tuple(self.major_to_minor)
        self.tiling = None if self.tiling is None else tuple(map(tuple, self.tiling))

    def __reduce__(self):
        return Layout, (self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits)

    def __setstate__(self, state: dict[str, Any]) -> None:  # of pickles of jax
        for name, value in state.items():
            setattr(self, name, value)

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raises ValueError if an array of this shape cannot have this layout."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match, but the shape "
                f"{tuple(aval_shape)} does not have the axes {self.major_to_minor}"
            )


@known_as("jax._src.layout.Format")
class Format:
    """A layout and a sharding. Raises TypeError for other objects, ValueError for a layout without a sharding."""

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Any = None, sharding: Any = None):
        self.layout, self.sharding = layout, sharding
        if not isinstance(self.layout, Layout | AutoLayout | None):
            raise TypeError(
                f"Format: layout is a Layout, Layout.AUTO or None, got {self.layout!r} of type {type(self.layout)}"
            )
        if not isinstance(self.sharding, Sharding | None):
            raise TypeError(
                f"Format: sharding is a Sharding or None, got {self.sharding!r} of type {type(self.sharding)}"
            )
        is_concrete = isinstance(self.sharding, Sharding) and (
            not isinstance(self.sharding, NamedSharding) or self.sharding._is_concrete
        )
        if isinstance(self.layout, Layout) and not is_concrete:
            raise ValueError(
                f"Format: Sharding has to be concrete when layout is of type {type(self.layout)}: the devices must be "
                f"known, got {self.sharding}"
            )

    def __eq__(self, other):
        return type(other) is Format and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self):
        return hash((self.layout, self.sharding))

    def __repr__(self):
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def check_layout(layout: Any, aval: Any, what: str) -> None:
    """Raises ValueError if a value of this type cannot have the layout; `what` describes the values in the error."""
    if not isinstance(layout, Layout):
        return
    try:
        layout.check_compatible_aval(aval.shape)
    except ValueError as error:
        raise ValueError(f"One of {what} cannot have the layout {layout}: {error}") from None


def check_not_auto(form: Any, what: str) -> None:
    """Raises TypeError for `Layout.AUTO` in a call that runs no program, in which XLA could choose."""
    if isinstance(form, Format) and form.layout is Layout.AUTO:
        raise TypeError(f"`Layout.AUTO` cannot be used in place of a device-local layout in {what}: no program runs")


def stored(layout: Any, ndim: int) -> Layout | None:
    """A layout as arrays store it: None for the default, row-major order."""
    if layout is None or layout.major_to_minor == tuple(range(ndim)):
        return None
    return Layout(layout.major_to_minor, ())


def shown(layout: Any, ndim: int) -> Layout:
    """The layout that users see, for one as `stored`."""
    return layout or Layout(tuple(range(ndim)), ())


def settled(layouts: Sequence, chosen: Sequence) -> list[Layout | None]:
    """Layouts as stored; AUTO is replaced by the layout that XLA has chosen (a jaxlib object)."""
    return [
        _stored(of_native(native)) if layout is Layout.AUTO else layout
        for layout, native in zip(layouts, chosen, strict=False)
    ]


def _stored(layout: Layout) -> Layout | None:
    return stored(layout, len(layout.major_to_minor))


def of_native(native: Any) -> Layout:
    """The layout that XLA has chosen (a jaxlib object), with its tiling."""
    chosen = native._xla_layout()
    return Layout(tuple(reversed(chosen.minor_to_major())), chosen.tiling(), chosen.element_size_in_bits())
