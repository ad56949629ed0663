"""Shardings in types, shown: the entries (mesh axes of each array axis) that operations derive from each other."""

import numpy as np
import pytest

from minijax.base.errors import ShardingTypeError
from minijax.ir.types import ShapedArray
from minijax.partition import explicit
from minijax.partition.meshes import AbstractMesh, AxisType, PartitionSpec as P
from minijax.partition.shardings import NamedSharding

MESH = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2)
HALF_EXPLICIT = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
AUTO = AbstractMesh((2,), ("x",), (AxisType.Auto,))


def aval(shape, *entries):
    return ShapedArray(shape, np.float32).sharded_over(MESH, entries)


def test_a_type_has_the_explicit_axes_of_a_sharding():
    def spec_in_type(mesh, spec, ndim):
        found = explicit.sharding_in_type(NamedSharding(mesh, spec), ndim)
        return found and found.spec

    assert spec_in_type(MESH, P("x", ("y",)), 3) == P("x", "y", None)
    assert spec_in_type(HALF_EXPLICIT, P("x", "y"), 2) == P("x", None)
    assert spec_in_type(AUTO, P("x"), 1) is None


def test_an_axis_that_is_a_product_of_others_is_sharded_over_the_mesh_axes_of_all():
    assert explicit.joined_entry("x", None, ("y",)) == ("x", "y")
    assert explicit.joined_entry(None, None) is None
    assert explicit.count_of(MESH, ("x", "y")) == 8


RESHAPES = {
    "axes merged, the outer one sharded": ((8, 6), ("x", None), (48,), ("x",)),
    "axes merged, the inner one sharded": ((8, 6), (None, "x"), (48,), None),
    "axes merged, both sharded": ((8, 4), ("x", "y"), (32,), (("x", "y"),)),
    "an axis split, its outer part divisible by all": ((32,), (("x", "y"),), (8, 4), (("x", "y"), None)),
    "an axis split, each part divisible by one": ((32,), (("x", "y"),), (2, 16), ("x", "y")),
    "an axis split, its outer part too small": ((8,), ("y",), (2, 4), None),
    "axes of size one": ((8,), ("x",), (1, 8, 1), (None, "x", None)),
    "other axes stay": ((2, 3, 4), ("x", None, "y"), (6, 4), ("x", "y")),
    "neither merged nor split": ((8, 4), ("x", "y"), (4, 8), None),
    "two axes changed": ((6, 4), ("x", "y"), (2, 3, 2, 2), None),
    "not sharded": ((8, 4), (None, None), (4, 8), (None, None)),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_a_reshape_keeps_a_sharding_if_it_merges_or_splits_one_axis(name):
    shape, entries, sizes, expected = RESHAPES[name]
    assert explicit.reshaped_entries(MESH, shape, entries, sizes) == expected


def test_other_sizes_keep_the_sharding_if_the_mesh_axes_divide_them():
    assert explicit.check_divides("slice", MESH, aval((8, 8), "x", "y"), (4, 8)) == ("x", "y")
    with pytest.raises(ShardingTypeError, match=r"slicing on sharded dims .* out dim \(6\) is not divisible"):
        explicit.check_divides("slice", MESH, aval((8, 8), "x", "y"), (4, 6))


def test_operands_that_must_have_one_sharding():
    plain, rows = ShapedArray((8, 8), np.float32), aval((8, 8), "x", None)
    assert explicit.common_sharding([plain, rows]) is rows
    with pytest.raises(ShardingTypeError, match="All operands should have the same sharding"):
        explicit.common_sharding([rows, aval((8, 8), "x", "y")])


def test_a_mesh_axis_shards_one_array_axis():
    assert explicit.repeats_an_axis(("x", ("y", "x"))) and not explicit.repeats_an_axis(("x", "y"))


def test_a_sharding_must_fit_the_shape_and_the_rank():
    with pytest.raises(ValueError, match="does not evenly divide the dimension size 6"):
        explicit.check_even((6,), NamedSharding(MESH, P("y")))
    with pytest.raises(ValueError, match="only valid for values of rank at least 2"):
        explicit.check_rank(NamedSharding(MESH, P("x", "y")), 1)
