"""Partition specs, meshes and shardings: text, equality, errors and index maps, against jax."""

import copy
import pickle

import compare
import numpy as np
import pytest

from minijax.ir.types import ShapedArray
from minijax.partition import meshes, shardings

NAMES = ("P", "Mesh", "AbstractMesh", "AxisType", "NamedSharding", "SingleDeviceSharding")

# Evaluated on both sides, with `d` four devices, `m` a 2x2 mesh and `a` an abstract 2x4 mesh.
EXPRESSIONS = """
P() | P(None) | P('x', None) | P(('x', 'y')) | P(('x',)) == P('x') | P(['x', 'y']) | P(()) | P(1)
P() + P('x') | P('x') + ('y',) | ('a',) + P('x') | P('x') + ['y'] | P('x') == ('x',)
P('x', None) == P('x') | hash(P('x')) == hash(P(('x',))) | P('x')[0] | P('x', 'y')[0:1] | len(P('x', None))
list(P('x')) | P.UNCONSTRAINED | P(P.UNCONSTRAINED, 'x') | P('x', unreduced={'y'}) | P('x', reduced={'y'})
P(unreduced={'y'}, reduced={'z'}) | P('x', unreduced={'x'}) | P('x', unreduced={'y'}, reduced={'y'})
P('x', unreduced='y') | P('x', unreduced={None}) | P(('x', ('y',))) | P('x').count('x')
P('x', 'y').index('y') | P('x').index('z') | P('x').update(partitions=('y',))
P('x', unreduced={'y'}) + P('z') | P('x').update(unreduced={'y'}) | P('x', 'x') | P('x').partitions
pickle.loads(pickle.dumps(P('x', P.UNCONSTRAINED, unreduced={'y'}))) | copy.deepcopy(P('x')) == P('x') | m
str(m) | m.shape | m.shape_tuple | m.axis_names | m.axis_sizes | m.axis_types | m.size | m.empty | m.devices
m.device_ids | m.local_devices | m.abstract_mesh | m.is_multi_process | m.local_mesh is m | m.auto_axes
m.manual_axes | m.explicit_axes | m.are_all_axes_auto | m.is_scalar | m is Mesh(m.devices, ('x', 'y'))
m == a | m.update(axis_names=('p', 'q')) | m.update(axis_types=(AxisType.Explicit,) * 2)
m.devices.flags.writeable | Mesh(d, 'x') | Mesh(d, ('x', 'y')) | Mesh(d, (None,))
Mesh(d, ('x',), (AxisType.Auto,) * 2) | Mesh(d, 'x', ('a',)) | Mesh(d, 'x', AxisType.Explicit)
Mesh(np.array(d[0]), ()) | Mesh(np.empty((), dtype=object), ()) | list(AxisType)
Mesh(np.empty((), dtype=object), ()).empty | copy.deepcopy(m) is m | m.update(devices=np.array(d))
AxisType.Auto.value | a | str(a) | a.shape | a.size | a.empty | a.axis_types | a.devices | a.device_ids
a.local_devices | a.abstract_mesh | a.update(axis_sizes=(3, 4))
a.update_axis_types({'x': AxisType.Manual}) | a.abstract_device | a == a.update() | AbstractMesh((), ())
AbstractMesh((), ()).empty | AbstractMesh((2,), 'x', AxisType.Explicit) | AbstractMesh((1,), ('x', 'y'))
AbstractMesh((1,), 'x', (AxisType.Auto,) * 2) | pickle.loads(pickle.dumps(a)) == a
hash(a) == hash(a.update()) | NamedSharding(m, P('x')) | str(NamedSharding(m, P('x')))
NamedSharding(m, P('x'), memory_kind='pinned_host') | NamedSharding(m, P('z'))
NamedSharding(m, P('x', 'x')) | NamedSharding(m, P(('x', 'x'))) | NamedSharding(m, 'x')
NamedSharding(m, P('x', unreduced={'z'})) | NamedSharding(m, P(), memory_kind='x')
NamedSharding(a, P('x')) | NamedSharding(m, P('x', None)) == NamedSharding(m, P('x'))
NamedSharding(m, P()) == NamedSharding(m, P(), memory_kind='device')
NamedSharding(m, P('x')).is_equivalent_to(NamedSharding(m, P('x', None)), 2)
NamedSharding(m, P('x')).is_equivalent_to(NamedSharding(m, P('y')), 2)
SingleDeviceSharding(d[0]).is_equivalent_to(NamedSharding(m, P()), 1)
SingleDeviceSharding(d[0]).is_equivalent_to(NamedSharding(Mesh(d[:1], 'x'), P('x')), 1)
SingleDeviceSharding(d[0]) == NamedSharding(Mesh(d[:1], 'x'), P('x'))
NamedSharding(m, P('x')).devices_indices_map((4, 2))
NamedSharding(m, P(('y', 'x'))).devices_indices_map((4,))
NamedSharding(m, P('x')).addressable_devices_indices_map((4, 2))
NamedSharding(m, P('x')).devices_indices_map((3, 2)) | NamedSharding(m, P('x', 'y')).shard_shape((4, 2))
NamedSharding(m, P('x')).shard_shape((3, 2)) | NamedSharding(m, P('x')).is_fully_replicated
NamedSharding(m, P()).is_fully_replicated | NamedSharding(m, P('x')).spec
NamedSharding(m, P('x')).replicated_axes | NamedSharding(m, P('x')).memory_kind
NamedSharding(m, P('x')).num_devices | NamedSharding(m, P('x')).is_fully_addressable
NamedSharding(m, P('x')).has_addressable_devices | NamedSharding(m, P('x')).device_set == set(d)
NamedSharding(m, P('x')).addressable_devices == set(d)
NamedSharding(m, P('x')).with_memory_kind('pinned_host') | NamedSharding(m, P('x')).update(spec=P('y'))
NamedSharding(m, P('x')).check_compatible_aval((3,))
NamedSharding(m, P('x', None)).check_compatible_aval((3,)) | NamedSharding(a, P('x')).device_set
NamedSharding(a, P('x')).memory_kind | NamedSharding(a, P('x')).shard_shape((2,))
NamedSharding(a, P('x')).is_fully_addressable | NamedSharding(a, P('x')).num_devices
NamedSharding(a, P('x')).addressable_devices | NamedSharding(a, P('x')).devices_indices_map((2,))
NamedSharding(a, P('x'), memory_kind='foo')
NamedSharding(a, P('x')).is_equivalent_to(NamedSharding(a, P('x', None)), 2) | SingleDeviceSharding(d[0])
SingleDeviceSharding(d[0], memory_kind='pinned_host') | SingleDeviceSharding(3)
SingleDeviceSharding(d[0]) == SingleDeviceSharding(d[0], memory_kind='device')
SingleDeviceSharding(d[0]).device_set
hash(SingleDeviceSharding(d[0])) == hash(SingleDeviceSharding(d[0], memory_kind='device'))
SingleDeviceSharding(d[0]).devices_indices_map((2, 3)) | SingleDeviceSharding(d[0]).shard_shape((2, 3))
SingleDeviceSharding(d[0]).with_memory_kind('x') | SingleDeviceSharding(d[0]).is_fully_replicated
SingleDeviceSharding(d[0]) == SingleDeviceSharding(d[1]) | SingleDeviceSharding(d[0]).num_devices
"""
CASES = [case.strip() for line in EXPRESSIONS.strip().splitlines() for case in line.split(" | ")]


def scope(module, devices):
    names = {name: getattr(module, "PartitionSpec" if name == "P" else name) for name in NAMES}
    mesh = names["Mesh"](np.array(devices).reshape(2, 2), ("x", "y"))
    abstract = names["AbstractMesh"]((2, 4), ("x", "y"))
    return {**names, "d": devices, "m": mesh, "a": abstract, "np": np, "copy": copy, "pickle": pickle}


def outcome(expression, names):
    try:
        return repr(eval(expression, names))
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
