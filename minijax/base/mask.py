"""Masks: a flag for each item of a list."""

from collections.abc import Iterable, Sequence
from typing import Any


class Mask(tuple[bool, ...]):
    """A flag for each item of a list; it partitions such lists and merges the two parts again.

    As everywhere, unmarked items come first: (known, unknown), (zero, nonzero).
    """

    __slots__ = ()

    def marked(self, items: Iterable[Any]) -> list:
        """The items whose flag is set."""
        return [x for x, flag in zip(items, self, strict=True) if flag]

    def unmarked(self, items: Iterable[Any]) -> list:
        """The items whose flag is not set."""
        return [x for x, flag in zip(items, self, strict=True) if not flag]

    def partition(self, items: Sequence[Any]) -> tuple[list, list]:
        """The items whose flag is not set, and the items whose flag is set."""
        return self.unmarked(items), self.marked(items)

    def merge(self, unmarked: Iterable[Any], marked: Iterable[Any]) -> list:
        """The inverse of `partition`."""
        unmarked, marked = iter(unmarked), iter(marked)
        return [next(marked) if flag else next(unmarked) for flag in self]

    def order(self) -> list[int]:
        """The permutation that partitions: the unmarked positions, then the marked ones."""
        return [*self.unmarked(range(len(self))), *self.marked(range(len(self)))]

    def __invert__(self) -> "Mask":
        return Mask([not flag for flag in self])

    def __or__(self, other: Iterable[bool]) -> "Mask":
        return Mask([a or b for a, b in zip(self, other, strict=True)])
