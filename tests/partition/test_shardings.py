"""Partition specs, meshes and shardings: text, equality, errors and index maps, against jax."""

import copy
import pickle

import compare
import numpy as np
import pytest
from given import given

from minijax.ir.types import ShapedArray
from minijax.partition import meshes, shardings

NAMES = ("P", "Mesh", "AbstractMesh", "AxisType", "NamedSharding", "SingleDeviceSharding")

# Called on both sides, with `d` four devices, `m` a 2x2 mesh and `a` an abstract 2x4 mesh.
CASES = [
    lambda P: P(),
    lambda P: P(None),
    lambda P: P("x", None),
    lambda P: P(("x", "y")),
    lambda P: P(("x",)) == P("x"),
    lambda P: P(["x", "y"]),
    lambda P: P(()),
    lambda P: P(1),
    lambda P: P() + P("x"),
    lambda P: P("x") + ("y",),
    lambda P: ("a",) + P("x"),
    lambda P: P("x") + ["y"],
    lambda P: P("x") == ("x",),
    lambda P: P("x", None) == P("x"),
    lambda P: hash(P("x")) == hash(P(("x",))),
    lambda P: P("x")[0],
    lambda P: P("x", "y")[0:1],
    lambda P: len(P("x", None)),
    lambda P: list(P("x")),
    lambda P: P.UNCONSTRAINED,
    lambda P: P(P.UNCONSTRAINED, "x"),
    lambda P: P("x", unreduced={"y"}),
    lambda P: P("x", reduced={"y"}),
    lambda P: P(unreduced={"y"}, reduced={"z"}),
    lambda P: P("x", unreduced={"x"}),
    lambda P: P("x", unreduced={"y"}, reduced={"y"}),
    lambda P: P("x", unreduced="y"),
    lambda P: P("x", unreduced={None}),
    lambda P: P(("x", ("y",))),
    lambda P: P("x").count("x"),
    lambda P: P("x", "y").index("y"),
    lambda P: P("x").index("z"),
    lambda P: P("x").update(partitions=("y",)),
    lambda P: P("x", unreduced={"y"}) + P("z"),
    lambda P: P("x").update(unreduced={"y"}),
    lambda P: P("x", "x"),
    lambda P: P("x").partitions,
    lambda P: pickle.loads(pickle.dumps(P("x", P.UNCONSTRAINED, unreduced={"y"}))),
    lambda P: copy.deepcopy(P("x")) == P("x"),
    lambda m: m,
    lambda m: str(m),
    lambda m: m.shape,
    lambda m: m.shape_tuple,
    lambda m: m.axis_names,
    lambda m: m.axis_sizes,
    lambda m: m.axis_types,
    lambda m: m.size,
    lambda m: m.empty,
    lambda m: m.devices,
    lambda m: m.device_ids,
    lambda m: m.local_devices,
    lambda m: m.abstract_mesh,
    lambda m: m.is_multi_process,
    lambda m: m.local_mesh is m,
    lambda m: m.auto_axes,
    lambda m: m.manual_axes,
    lambda m: m.explicit_axes,
    lambda m: m.are_all_axes_auto,
    lambda m: m.is_scalar,
    lambda Mesh, m: m is Mesh(m.devices, ("x", "y")),
    lambda m, a: m == a,
    lambda m: m.update(axis_names=("p", "q")),
    lambda AxisType, m: m.update(axis_types=(AxisType.Explicit,) * 2),
    lambda m: m.devices.flags.writeable,
    lambda Mesh, d: Mesh(d, "x"),
    lambda Mesh, d: Mesh(d, ("x", "y")),
    lambda Mesh, d: Mesh(d, (None,)),
    lambda Mesh, AxisType, d: Mesh(d, ("x",), (AxisType.Auto,) * 2),
    lambda Mesh, d: Mesh(d, "x", ("a",)),
    lambda Mesh, AxisType, d: Mesh(d, "x", AxisType.Explicit),
    lambda Mesh, d: Mesh(np.array(d[0]), ()),
    lambda Mesh: Mesh(np.empty((), dtype=object), ()),
    lambda AxisType: list(AxisType),
    lambda Mesh: Mesh(np.empty((), dtype=object), ()).empty,
    lambda m: copy.deepcopy(m) is m,
    lambda d, m: m.update(devices=np.array(d)),
    lambda AxisType: AxisType.Auto.value,
    lambda a: a,
    lambda a: str(a),
    lambda a: a.shape,
    lambda a: a.size,
    lambda a: a.empty,
    lambda a: a.axis_types,
    lambda a: a.devices,
    lambda a: a.device_ids,
    lambda a: a.local_devices,
    lambda a: a.abstract_mesh,
    lambda a: a.update(axis_sizes=(3, 4)),
    lambda AxisType, a: a.update_axis_types({"x": AxisType.Manual}),
    lambda a: a.abstract_device,
    lambda a: a == a.update(),
    lambda AbstractMesh: AbstractMesh((), ()),
    lambda AbstractMesh: AbstractMesh((), ()).empty,
    lambda AbstractMesh, AxisType: AbstractMesh((2,), "x", AxisType.Explicit),
    lambda AbstractMesh: AbstractMesh((1,), ("x", "y")),
    lambda AbstractMesh, AxisType: AbstractMesh((1,), "x", (AxisType.Auto,) * 2),
    lambda a: pickle.loads(pickle.dumps(a)) == a,
    lambda a: hash(a) == hash(a.update()),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")),
    lambda P, NamedSharding, m: str(NamedSharding(m, P("x"))),
    lambda P, NamedSharding, m: NamedSharding(m, P("x"), memory_kind="pinned_host"),
    lambda P, NamedSharding, m: NamedSharding(m, P("z")),
    lambda P, NamedSharding, m: NamedSharding(m, P("x", "x")),
    lambda P, NamedSharding, m: NamedSharding(m, P(("x", "x"))),
    lambda NamedSharding, m: NamedSharding(m, "x"),
    lambda P, NamedSharding, m: NamedSharding(m, P("x", unreduced={"z"})),
    lambda P, NamedSharding, m: NamedSharding(m, P(), memory_kind="x"),
    lambda P, NamedSharding, a: NamedSharding(a, P("x")),
    lambda P, NamedSharding, m: NamedSharding(m, P("x", None)) == NamedSharding(m, P("x")),
    lambda P, NamedSharding, m: NamedSharding(m, P()) == NamedSharding(m, P(), memory_kind="device"),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).is_equivalent_to(NamedSharding(m, P("x", None)), 2),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).is_equivalent_to(NamedSharding(m, P("y")), 2),
    lambda P, NamedSharding, SingleDeviceSharding, d, m: SingleDeviceSharding(d[0]).is_equivalent_to(
        NamedSharding(m, P()), 1
    ),
    lambda P, Mesh, NamedSharding, SingleDeviceSharding, d: SingleDeviceSharding(d[0]).is_equivalent_to(
        NamedSharding(Mesh(d[:1], "x"), P("x")), 1
    ),
    lambda P, Mesh, NamedSharding, SingleDeviceSharding, d: (
        SingleDeviceSharding(d[0]) == NamedSharding(Mesh(d[:1], "x"), P("x"))
    ),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).devices_indices_map((4, 2)),
    lambda P, NamedSharding, m: NamedSharding(m, P(("y", "x"))).devices_indices_map((4,)),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).addressable_devices_indices_map((4, 2)),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).devices_indices_map((3, 2)),
    lambda P, NamedSharding, m: NamedSharding(m, P("x", "y")).shard_shape((4, 2)),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).shard_shape((3, 2)),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).is_fully_replicated,
    lambda P, NamedSharding, m: NamedSharding(m, P()).is_fully_replicated,
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).spec,
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).replicated_axes,
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).memory_kind,
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).num_devices,
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).is_fully_addressable,
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).has_addressable_devices,
    lambda P, NamedSharding, d, m: NamedSharding(m, P("x")).device_set == set(d),
    lambda P, NamedSharding, d, m: NamedSharding(m, P("x")).addressable_devices == set(d),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).with_memory_kind("pinned_host"),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).update(spec=P("y")),
    lambda P, NamedSharding, m: NamedSharding(m, P("x")).check_compatible_aval((3,)),
    lambda P, NamedSharding, m: NamedSharding(m, P("x", None)).check_compatible_aval((3,)),
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).device_set,
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).memory_kind,
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).shard_shape((2,)),
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).is_fully_addressable,
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).num_devices,
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).addressable_devices,
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).devices_indices_map((2,)),
    lambda P, NamedSharding, a: NamedSharding(a, P("x"), memory_kind="foo"),
    lambda P, NamedSharding, a: NamedSharding(a, P("x")).is_equivalent_to(NamedSharding(a, P("x", None)), 2),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0], memory_kind="pinned_host"),
    lambda SingleDeviceSharding: SingleDeviceSharding(3),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]) == SingleDeviceSharding(d[0], memory_kind="device"),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]).device_set,
    lambda SingleDeviceSharding, d: (
        hash(SingleDeviceSharding(d[0])) == hash(SingleDeviceSharding(d[0], memory_kind="device"))
    ),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]).devices_indices_map((2, 3)),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]).shard_shape((2, 3)),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]).with_memory_kind("x"),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]).is_fully_replicated,
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]) == SingleDeviceSharding(d[1]),
    lambda SingleDeviceSharding, d: SingleDeviceSharding(d[0]).num_devices,
]


def scope(module, devices):
    names = {name: getattr(module, "PartitionSpec" if name == "P" else name) for name in NAMES}
    mesh = names["Mesh"](np.array(devices).reshape(2, 2), ("x", "y"))
    abstract = names["AbstractMesh"]((2, 4), ("x", "y"))
    return {**names, "d": devices, "m": mesh, "a": abstract}


def outcome(expression, names):
    try:
        return repr(given(expression, names))
    except Exception as error:
        return type(error).__name__


@pytest.fixture(scope="module")
def scopes():
    import jax

    if jax.device_count() < 4:
        pytest.skip("needs four devices")
    return scope(shardings, jax.devices()[:4]), scope(jax.sharding, jax.devices()[:4])


@pytest.mark.oracle
@pytest.mark.parametrize("expression", CASES)
def test_expressions_give_the_results_of_jax(expression, scopes):
    ours, theirs = scopes
    assert outcome(expression, ours) == outcome(expression, theirs)


def test_types_without_a_mesh_report_the_empty_one():
    sharding = ShapedArray((2, 3), np.float32).sharding
    assert repr(sharding) == "NamedSharding(mesh=AbstractMesh((), axis_types=()), spec=P(None, None))"
    assert sharding is ShapedArray((5, 5), np.int32).sharding
    assert not sharding.mesh.shape and sharding.mesh.empty


@pytest.mark.oracle
def test_meshes_are_entered_and_left(scopes):
    mesh = scopes[0]["m"]
    assert meshes.legacy_context_mesh() is None
    with pytest.warns(DeprecationWarning, match="has been deprecated"), mesh as entered:
        assert entered is mesh and meshes.legacy_context_mesh() is mesh
    assert meshes.legacy_context_mesh() is None


@pytest.mark.oracle
def test_one_axis_may_be_named_by_a_text():
    assert (
        compare.same(lambda jax: [str(jax.make_mesh((1,), name)) for name in ("data", ["data"], ("data",))])
        == ["Mesh('data': 1, axis_types=(Explicit,))"] * 3
    )
