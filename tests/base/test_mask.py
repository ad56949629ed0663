"""A mask partitions a list, and merges the parts again."""

import pytest

from minijax.base.mask import Mask

MASK = Mask((False, True, True, False))


def test_unmarked_elements_come_first():
    assert MASK.partition("abcd") == (["a", "d"], ["b", "c"])
    assert MASK.order() == [0, 3, 1, 2]


def test_merging_undoes_a_partition():
    assert MASK.merge(*MASK.partition("abcd")) == list("abcd")
    assert Mask().merge([], []) == []


def test_masks_are_inverted_and_joined():
    assert ~MASK == (True, False, False, True)
    assert MASK | (True, False, False, False) == (True, True, True, False)
    assert type(~MASK) is type(MASK | MASK) is Mask


def test_lists_of_another_length_are_refused():
    with pytest.raises(ValueError):
        MASK.marked("abc")
