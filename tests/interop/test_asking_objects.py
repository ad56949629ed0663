"""What programs ask of objects: classes, truth, length, leaves, copies, pickles, attributes, for one of each public kind."""

import collections.abc
import copy
import functools
import importlib
import pickle

import numpy as np
import pytest
from compare import ended, ours, run_on, same, theirs
from given import given

pytestmark = pytest.mark.oracle

# A line: name, and an expression for the object.
OBJECTS = {
    "array": lambda x: x,
    "key": lambda jax: jax.random.key(0),
    "legacy_key": lambda jax: jax.random.PRNGKey(0),
    "sharded": lambda jax, x, on: jax.device_put(x, on("x")),
    "shard": lambda jax, x, on: jax.device_put(x, on("x")).addressable_shards[1],
    "mesh": lambda mesh: mesh,
    "abstract_mesh": lambda mesh: mesh.abstract_mesh,
    "spec": lambda jax: jax.P(("x", "y"), None),
    "named": lambda on: on("x"),
    "single": lambda jax: jax.sharding.SingleDeviceSharding(jax.devices()[0]),
    "manual": lambda jax: jax.sharding.ManualAxisType(varying=frozenset("x")),
    "axis_type": lambda jax: jax.sharding.AxisType.Auto,
    "type": lambda jax, x: jax.typeof(x),
    "weak_type": lambda jax: jax.typeof(1.0),
    "key_type": lambda jax: jax.typeof(jax.random.key(0)),
    "description": lambda jax, jnp: jax.ShapeDtypeStruct((2,), jnp.float32),
    "jitted": lambda jitted: jitted,
    "library_function": lambda jnp: jnp.clip,
    "ufunc": lambda jnp: jnp.add,
    "traced": lambda x, jitted: jitted.trace(x),
    "lowered": lambda x, jitted: jitted.lower(x),
    "compiled": lambda x, jitted: jitted.lower(x).compile(),
    "jaxpr": lambda jax, x, f: jax.make_jaxpr(f)(x),
    "equation": lambda jax, x, f: jax.make_jaxpr(f)(x).eqns[0],
    "variable": lambda jax, x, f: jax.make_jaxpr(f)(x).jaxpr.invars[0],
    "tracer": lambda jax, under: under(jax.jit),
    "dual": lambda jax, under: under(jax.grad),
    "batched": lambda jax, under: under(jax.vmap),
    "reference": lambda jax, x: jax.new_ref(x),
    "exported": lambda jax, x, jitted: jax.export.export(jitted)(x),
    "custom_jvp": lambda jax, f: jax.custom_jvp(f),
    "custom_vjp": lambda jax, f: jax.custom_vjp(f),
    "linear": lambda jax, x, f: jax.linearize(f, x)[1],
    "pullback": lambda jax, x, f: jax.vjp(f, x)[1],
    "primitive": lambda jax: jax.lax.sin_p,
    "loop_primitive": lambda jax: jax.lax.scan_p,
    "tree": lambda jax: jax.tree.structure((1, {"a": 2})),
    "partial": lambda jax, f: jax.tree_util.Partial(f, 1),
    "dict_key": lambda jax: jax.tree_util.DictKey("a"),
    "index": lambda jax: jax.tree_util.SequenceKey(1),
    "attribute": lambda jax: jax.tree_util.GetAttrKey("a"),
    "device": lambda jax: jax.devices()[0],
    "at": lambda x: x.at,
    "at_index": lambda x: x.at[0],
    "layout": lambda x: x.format,
    "precision": lambda jax: jax.lax.Precision.HIGH,
    "mode": lambda jax: jax.lax.GatherScatterMode.CLIP,
    "rounding": lambda jax: jax.lax.RoundingMethod.TO_NEAREST_EVEN,
    "bits": lambda jax: jax.lax.RandomAlgorithm.RNG_DEFAULT,
    "gather": lambda jax: jax.lax.GatherDimensionNumbers((0,), (1,), (0,)),
    "scalar_type": lambda jnp: jnp.int32,
    "float0": lambda jax: jax.dtypes.float0,
    "key_kind": lambda jax: jax.dtypes.prng_key,
    "finfo": lambda jnp: jnp.finfo(jnp.bfloat16),
    "iinfo": lambda jnp: jnp.iinfo(jnp.int8),
    "mapped": lambda jax, f: jax.vmap(f),
    "gradient": lambda jax, f: jax.grad(f),
    "space": lambda jax: jax.memory.Space.Device,
    "decomposition": lambda jnp: jnp.linalg.slogdet(jnp.eye(2)),
    "unique": lambda jnp: jnp.unique_all(jnp.array([1, 1])),
    "top": lambda jax, jnp: jax.lax.top_k(jnp.arange(3.0), 1),
    "density": lambda jax, jnp: jax.scipy.stats.gaussian_kde(jnp.arange(5.0)),
    "interpolator": lambda jax, jnp: jax.scipy.interpolate.RegularGridInterpolator((jnp.arange(3.0),), jnp.arange(3.0)),
}

CLASSES = (
    *(tuple, list, dict, str, int, set, frozenset, type, functools.partial),
    *(collections.abc.Sequence, collections.abc.Mapping, collections.abc.Hashable, collections.abc.Callable),
    *(np.ndarray, np.generic, np.dtype),
)


def pickled(v):
    try:
        return str(pickle.loads(pickle.dumps(v)) == v)
    except (pickle.PicklingError, AttributeError, TypeError):  # for each class of objects another one
        return "not pickled"


def answer(ask, jax, v):
    try:
        return ask(jax, v)
    except Exception as error:
        return f"raised {type(error).__name__}"


ASKED = {
    "classes": lambda jax, v: [c.__name__ for c in CLASSES if isinstance(v, c)],
    "public classes": lambda jax, v: [
        isinstance(v, c)
        for c in (jax.Array, jax.core.Tracer, jax.stages.Wrapped, jax.sharding.Sharding, jax.extend.core.Jaxpr)
    ],
    "hash": lambda jax, v: hash(v) is not None,
    "equal": lambda jax, v: str(v == v),
    "equal to another": lambda jax, v: str(v == "another"),
    "length": lambda jax, v: len(v),
    "truth": lambda jax, v: bool(v),
    "leaves": lambda jax, v: len(jax.tree.leaves(v)),
    "copy": lambda jax, v: (copy.copy(v) is v, str(copy.copy(v) == v)),
    "deep copy": lambda jax, v: type(copy.deepcopy(v)).__name__,
    "pickle": lambda jax, v: pickled(v),
    "a new attribute": lambda jax, v: setattr(v, "note", 1),
    "order": lambda jax, v: str(v < v),
    "item": lambda jax, v: type(v[0]).__name__,
    "name": lambda jax, v: (v.__name__, v.__qualname__),
    "dtype as numpy": lambda jax, v: str(np.asarray(v).dtype),
    "added": lambda jax, v: str(v + 1),
}
# Objects whose attributes that completion shows are all jax's; of others, some are not.
COMPLETED = (
    "spec mesh abstract_mesh named single reference jaxpr equation type weak_type key_type custom_jvp custom_vjp array at "
    "description traced lowered shard exported partial "
    "key manual tracer dual batched pullback at_index primitive loop_primitive"
).split()

# (object, question): why ours answers otherwise.
OTHER = {
    ("single", "deep copy"): "a sharding can be copied; jax's holds a device, which cannot",
    ("layout", "deep copy"): "as single",
    ("library_function", "deep copy"): "the class is named PjitFunction where minijax is imported as jax",
    ("library_function", "pickle"): "is pickled by its name",
    ("custom_vjp", "copy"): "can be copied, as functions can",
    ("custom_vjp", "deep copy"): "can be copied, as functions can",
    ("pullback", "a new attribute"): "new attributes are not refused",
    ("primitive", "deep copy"): "each primitive has a class of its own",
    ("loop_primitive", "deep copy"): "as primitive",
    ("primitive", "classes"): "elementwise operations can be called",
    ("loop_primitive", "pickle"): "is pickled, as a class without functions is",
    ("density", "a new attribute"): "raises AttributeError, as frozen dataclasses do",
    ("reference", "a new attribute"): "has slots",
}


def asked(name, questions):
    """A program that asks an object."""

    def program(jax, jnp):
        for module in ("export", "extend.core", "scipy.interpolate", "scipy.stats"):
            importlib.import_module(f"{jax.__name__}.{module}")
        mesh = jax.make_mesh((2, 2), ("x", "y"), devices=jax.devices()[:4])
        x, f, seen = jnp.arange(4.0).reshape(2, 2), lambda x: jnp.sin(x) * 2, []

        def under(transform):
            transform(lambda a: seen.append(a) or jnp.sum(a))(x)
            return seen.pop()

        scope = dict(jax=jax, jnp=jnp, x=x, f=f, jitted=jax.jit(f), mesh=mesh, under=under)
        scope["on"] = lambda *axes: jax.sharding.NamedSharding(mesh, jax.P(*axes))
        value = given(OBJECTS[name], scope)
        return {question: answer(ask, jax, value) for question, ask in questions.items()}

    return program


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_answer_as_in_jax(name):
    same(asked(name, {k: ask for k, ask in ASKED.items() if (name, k) not in OTHER}))


@pytest.mark.parametrize("name", COMPLETED)
def test_completion_shows_no_attributes_that_jax_lacks(name):
    program = asked(name, {"shown": lambda jax, v: [a for a in dir(v) if not a.startswith("_")]})
    known, shown = (set(run_on(side, program)["shown"]) for side in (theirs(), ours()))
    assert shown
    assert not shown - known


def test_what_is_listed_as_other_is_there():
    assert {(name, question) for name, question in OTHER} <= {(n, q) for n in OBJECTS for q in ASKED}


def test_what_users_add_to_a_primitive_is_shown():
    def program(jax):
        class Mine(importlib.import_module(f"{jax.__name__}.extend.core").Primitive):
            def rule(self):
                return self

        mine = Mine("mine")
        mine.other = 2
        return [name in dir(mine) for name in ("rule", "other", "bind", "transposed")]

    same(program)


IMMUTABLE = {
    "P._partitions": lambda jax: jax.P("x"),
    "P.unreduced": lambda jax: jax.P("x"),
    "Mesh.axis_names": lambda mesh: mesh,
    "Mesh.note": lambda mesh: mesh,
    "AbstractMesh.axis_names": lambda mesh: mesh.abstract_mesh,
    "AbstractMesh.note": lambda mesh: mesh.abstract_mesh,
    "NamedSharding.spec": lambda jax, mesh: jax.NamedSharding(mesh, jax.P("x")),
    "NamedSharding.mesh": lambda jax, mesh: jax.NamedSharding(mesh, jax.P("x")),
    "ManualAxisType.varying": lambda jax: jax.sharding.ManualAxisType(varying=frozenset("x")),
    "ShapedArray.shape": lambda jax: jax.typeof(1.0),
    "ShapeDtypeStruct.sharding": lambda jax: jax.ShapeDtypeStruct((2,), "float32"),
}


@pytest.mark.parametrize("attribute", IMMUTABLE)
def test_attributes_of_what_must_not_change_are_not_set_or_deleted(attribute):
    name = attribute.split(".")[1]

    def program(jax):
        value = given(IMMUTABLE[attribute], {"jax": jax, "mesh": jax.make_mesh((1,), ("x",))})
        calls = lambda: setattr(value, name, None), lambda: delattr(value, name)
        return [ended(call) for call in calls], pickled(
            value
        ) if "Mesh" not in attribute and "NamedSharding" not in attribute else ""

    same(program)
