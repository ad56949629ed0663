"""Types of results, shown: shardings, reduction state, varying axes and memory that follow from the operands' types."""

import numpy as np
import pytest

from minijax.base.errors import ShardingTypeError
from minijax.ir.result_types import result_types
from minijax.ir.types import ManualAxisType, ShapedArray
from minijax.partition.memory import Host
from minijax.partition.meshes import AbstractMesh, AxisType
from minijax.primitives.elementwise import add_p, mul_p, sin_p

MESH = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2)
OTHER_MESH = AbstractMesh((2,), ("z",), (AxisType.Explicit,))
PLAIN = ShapedArray((4,), np.float32)
SCALAR = ShapedArray((), np.float32)
ON_HOST = PLAIN.in_space(Host)


def sharded(*entries, mesh=MESH, unreduced=(), reduced=()):
    """The type of an array whose axes have 8 elements each, sharded as `entries` give."""
    aval = ShapedArray((8,) * len(entries), np.float32)
    return aval.sharded_over(mesh, entries, frozenset(unreduced), frozenset(reduced))


def varying(*axes):
    return PLAIN.update(manual_axis_type=ManualAxisType(varying=frozenset(axes)))


def type_of(primitive, *avals, **params):
    (aval,), effects = result_types(primitive, avals, params)
    assert not effects
    return str(aval)


def test_an_elementwise_result_is_sharded_as_its_operands():
    assert type_of(sin_p, sharded("x", "y"), accuracy=None) == "float32[8@x,8@y]"
    assert type_of(mul_p, sharded("x", None), sharded(None, "y")) == "float32[8@x,8@y]"


def test_operands_cannot_be_sharded_differently():
    with pytest.raises(ShardingTypeError, match="mul got incompatible shardings for broadcasting"):
        type_of(mul_p, sharded("x", None), sharded("y", None))
    with pytest.raises(ShardingTypeError, match="with a mesh axis twice"):
        type_of(mul_p, sharded("x", None), sharded(None, "x"))
    with pytest.raises(ValueError, match="mul: Mesh for all inputs should be equal"):
        type_of(mul_p, sharded("x"), sharded("z", mesh=OTHER_MESH))


def test_partial_sums_add_up_and_are_multiplied_by_replicated_factors():
    partial = sharded(None, unreduced="x")
    assert type_of(add_p, partial, partial) == "float32[8]{U:x}"
    assert type_of(mul_p, partial, sharded(None, reduced="x")) == "float32[8]{U:x}"
    with pytest.raises(ShardingTypeError, match="a sum over devices would be implied"):
        type_of(add_p, partial, sharded(None))
    with pytest.raises(ShardingTypeError, match="cannot be unreduced both"):
        type_of(mul_p, partial, partial)
    # The sine of a sum is not the sum of the sines.
    with pytest.raises(NotImplementedError, match="unreduced rule for sin is not implemented"):
        type_of(sin_p, partial, accuracy=None)


def test_results_vary_over_the_manual_axes_over_which_an_operand_varies():
    assert type_of(mul_p, varying("x"), PLAIN) == "float32[4]{V:x}"
    assert type_of(mul_p, varying("x"), varying("y")) == "float32[4]{V:(x,y)}"


def test_results_are_in_the_memory_of_the_operands():
    assert type_of(mul_p, ON_HOST, ON_HOST) == "float32<host>[4]"
    assert type_of(mul_p, ON_HOST, SCALAR) == "float32<host>[4]"
    with pytest.raises(ValueError, match="memory_space of all inputs passed to `mul` must be the same"):
        type_of(mul_p, ON_HOST, PLAIN)
