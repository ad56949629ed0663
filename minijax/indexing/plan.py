"""Plans an index as one gather or scatter."""

from typing import Any, NamedTuple

from minijax.base import cache
from minijax.indexing.language import Index, Slot, Span, Window, keeps_axis
from minijax.primitives.gather_dims import GatherDimensionNumbers
from minijax.primitives.structural import broadcast_shapes


class Part(NamedTuple):
    """One column of the index vectors: the axis that it indexes, the entry with its values, and their dimensions."""

    axis: int
    entry: Any
    dims: tuple[int, ...]


class Plan(NamedTuple):
    """The parameters of the gather for an index; `group` has the entries that are broadcast together."""

    group: tuple[tuple[int, Any], ...]
    group_shape: tuple[int, ...]
    parts: tuple[Part, ...]
    index_shape: tuple[int, ...]
    slice_sizes: tuple[int, ...]
    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    gathered: tuple[int, ...]
    reversed_axes: tuple[int, ...]
    new_axes: tuple[int, ...]

    @property
    def members(self) -> tuple[tuple[int, Any], ...]:
        """The entries that are ints or operands, with their axes."""
        return self.group or tuple((p.axis, p.entry) for p in self.parts if not keeps_axis(p.entry))

    @property
    def numbers(self) -> GatherDimensionNumbers:
        return GatherDimensionNumbers(self.offset_dims, self.collapsed, tuple(p.axis for p in self.parts))

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the selected elements, including the axes added by None."""
        sizes = iter(self.gathered)
        return tuple(1 if i in self.new_axes else next(sizes) for i in range(len(self.gathered) + len(self.new_axes)))


class _PlanBuilder:
    """A plan under construction; `out` has the kind and size of each axis of the result, in order."""

    def __init__(self, shape: tuple[int, ...], group: tuple):
        self.shape, self.group = shape, group
        self.group_shape = broadcast_shapes(*(e.shape for _, e in group if type(e) is Slot)) if group else ()
        self.parts: list[Part] = []
        self.out: list[tuple[str, int]] = []
        self.windows: dict[int, int] = {}
        self.reversed_axes: list[int] = []

    def index_axes(self) -> int:
        return sum(kind == "index" for kind, _ in self.out)

    def add_group(self) -> None:
        """Appends the axes that the group is broadcast to."""
        first = self.index_axes()
        dims = tuple(range(first, first + len(self.group_shape)))
        self.parts += [Part(axis, e, dims) for axis, e in self.group]
        self.out += [("index", n) for n in self.group_shape]

    def add_span(self, axis: int, e: Span | Window) -> None:
        if e.step == 1:
            if not e.is_whole(self.shape[axis]):
                self.parts.append(Part(axis, e, ()))
            self.windows[axis] = e.size
            self.out.append(("window", e.size))
            return
        if e.step < 0:
            self.reversed_axes.append(sum(kind != "new" for kind, _ in self.out))
        self.parts.append(Part(axis, e, (self.index_axes(),)))
        self.out.append(("index", e.size))

    def build(self) -> Plan:
        gathered = [(kind, n) for kind, n in self.out if kind != "new"]
        axes = range(len(self.shape))
        return Plan(
            self.group,
            self.group_shape,
            tuple(self.parts),
            index_shape=tuple(n for kind, n in gathered if kind == "index"),
            slice_sizes=tuple(self.windows.get(a, 1) for a in axes),
            offset_dims=tuple(i for i, (kind, _) in enumerate(gathered) if kind == "window"),
            collapsed=tuple(a for a in axes if a not in self.windows),
            gathered=tuple(n for _, n in gathered),
            reversed_axes=tuple(self.reversed_axes),
            new_axes=tuple(i for i, (kind, _) in enumerate(self.out) if kind == "new"),
        )


@cache.cache
def plan(index: Index) -> Plan:
    """The gather for an index; index arrays, and ints next to them, are broadcast together.

    As in NumPy, their axes come first in the result if slices or new axes separate them.
    """
    places = index.places()
    members = [i for i, (_, e) in enumerate(places) if type(e) in (int, Slot)]
    builder = _PlanBuilder(index.shape, tuple(places[i] for i in members) if index.has_arrays() else ())
    in_front = builder.group and members[-1] - members[0] != len(members) - 1
    if in_front:
        builder.add_group()
    for i, (axis, e) in enumerate(places):
        if e is None:
            builder.out.append(("new", 1))
        elif keeps_axis(e):
            builder.add_span(axis, e)
        elif i in members and not builder.group:
            builder.parts.append(Part(axis, e, ()))
        elif builder.group and not in_front and i == members[0]:
            builder.add_group()
    return builder.build()
