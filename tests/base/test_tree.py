"""Pytrees: compared with jax's by tables of calls, and what only ours has to hold."""

import collections
import copy
import dataclasses
import functools
import inspect
import itertools
import operator
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

import minijax.tree
import minijax.tree_util as ours
from minijax.base import native, tree as room
from minijax.base.util import unzip2

Point = collections.namedtuple("Point", "x y")
Pair = collections.namedtuple("Pair", "x y")


class Box:
    def __init__(self, *items, tag="tag"):
        self.items, self.tag = items, tag

    def __repr__(self):
        return f"Box({self.items}, {self.tag})"


class Keyed(Box):
    def tree_flatten_with_keys(self):
        return [(key_classes.GetAttrKey(f"f{i}"), x) for i, x in enumerate(self.items)], self.tag

    @classmethod
    def tree_unflatten(cls, tag, items):
        return cls(*items, tag=tag)


class Plain(Keyed):
    def tree_flatten(self):
        return self.items, self.tag


class KeyedAndPlain(Plain):
    pass


class Name(str):
    pass


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object = 0
    kind: str = minijax.tree.static(default="dense")


@dataclasses.dataclass
class Chosen:
    x: object
    y: object = 0
    z: object = 1
    cached: object = dataclasses.field(default=5, init=False)


class Bad:
    """A node type whose flatten function returns no pair."""


class List(list):
    pass


key_classes = ours


def register(tree_util):
    tree_util.register_pytree_node(Box, lambda b: (b.items, b.tag), lambda tag, xs: Box(*xs, tag=tag))
    tree_util.register_pytree_with_keys_class(Keyed)
    tree_util.register_pytree_node_class(Plain)
    tree_util.register_pytree_with_keys_class(KeyedAndPlain)
    tree_util.register_static(Name)
    tree_util.register_dataclass(Layer)
    tree_util.register_dataclass(Chosen, ["x", "z"], ["y"], drop_fields=["unknown"])
    tree_util.register_pytree_node(Bad, lambda bad: 5, lambda _, __: Bad())


register(ours)


@pytest.fixture(scope="module")
def theirs():
    tree_util = pytest.importorskip("jax.tree_util")
    register(tree_util)
    return tree_util


def outcome(call, tree_util):
    try:
        return repr(call(tree_util)).replace("minijax", "jax")
    except Exception as error:
        return type(error)


def trees(t):
    """One of each kind of node, nested; `t` makes the nodes that each library has as its own class."""
    return [
        1,
        None,
        (),
        [],
        {},
        [1, (2, None), [[]]],
        {"b": [1, 2], "a": ({"z": 3}, None)},
        {2: "x", 1: {(1, 2): 0}},
        Point(1, [2, 3]),
        collections.OrderedDict([("b", 1), ("a", (2, None))]),
        collections.defaultdict(list, {"b": 1, "a": [2]}),
        List([1, 2]),
        Box(1, [2, None]),
        Keyed(1, Box(2), tag=3),
        Plain((1,), 2),
        KeyedAndPlain(1, {"a": 2}),
        [Name("static"), 1],
        Layer(1, [2, 3], "conv"),
        Chosen(1, "meta", (2, 3)),
        t.Partial(operator.add, 1, b=[2]),
        t.Partial(functools.partial(operator.add, 1), 2),
        t.Partial(t.Partial(operator.add, 1)),
        np.arange(3),
        "text",
    ]


NODES = range(len(trees(ours)))

PREDICATES = [
    None,
    lambda x: x is None,
    lambda x: isinstance(x, list),
    lambda x: isinstance(x, tuple) and len(x) == 2,
    lambda x: True,
]


def count(p, x=None):
    return len(p) == 1


PER_TREE = {
    "flatten": lambda t, x, p: t.tree_flatten(x, p),
    "leaves": lambda t, x, p: t.tree_leaves(x, is_leaf=p),
    "structure": lambda t, x, p: t.tree_structure(x, is_leaf=p),
    "num": lambda t, x, p: (t.tree_structure(x, p).num_leaves, t.tree_structure(x, p).num_nodes),
    "node_data": lambda t, x, p: t.tree_structure(x, p).node_data(),
    "children": lambda t, x, p: t.treedef_children(t.tree_structure(x, p)),
    "treedef_is_leaf": lambda t, x, p: t.treedef_is_leaf(t.tree_structure(x, p)),
    "treedef_tuple": lambda t, x, p: t.treedef_tuple(iter([t.tree_structure(x, p)] * 2)),
    "round trip": lambda t, x, p: t.tree_unflatten(*t.tree_flatten(x, p)[::-1]),
    "map": lambda t, x, p: t.tree_map(lambda leaf: (leaf,), x, is_leaf=p),
    "map2": lambda t, x, p: t.tree_map(lambda *leaves: leaves, x, x, x, is_leaf=p),
    "with path": lambda t, x, p: t.tree_flatten_with_path(x, p),
    "leaves with path": lambda t, x, p: t.tree_leaves_with_path(x, is_leaf=p),
    "map with path": lambda t, x, p: t.tree_map_with_path(lambda *a: (t.keystr(a[0]), a), x, x, is_leaf=p),
    "path predicate": lambda t, x, p: t.tree_leaves_with_path(x, count, is_leaf_takes_path=True),
    "map, path predicate": lambda t, x, p: t.tree_map_with_path(
        lambda *a: a, x, is_leaf=count, is_leaf_takes_path=True
    ),
    "all": lambda t, x, p: t.tree_all(x, is_leaf=p) if not isinstance(x, np.ndarray) else None,
    "reduce": lambda t, x, p: t.tree_reduce(lambda a, b: (a, b), x, is_leaf=p),
    "reduce from": lambda t, x, p: t.tree_reduce(lambda a, b: (a, b), x, None, p),
    "associative": lambda t, x, p: t.tree_reduce_associative(lambda a, b: (a, b), x, is_leaf=p),
    "identity": lambda t, x, p: t.tree_reduce_associative(lambda a, b: (a, b), x, identity=0, is_leaf=p),
    "all leaves": lambda t, x, p: (t.all_leaves([x, 1], p), t.all_leaves(iter([x]), is_leaf=p)),
    "broadcast": lambda t, x, p: t.tree_broadcast(7, x, is_leaf=p),
    "broadcast self": lambda t, x, p: t.tree_broadcast(x, x, is_leaf=p),
    "one level": lambda t, x, p: [list(t.flatten_one_level(x)[0]), t.flatten_one_level(x)[1]],
    "with keys": lambda t, x, p: [list(t.flatten_one_level_with_keys(x)[0])],
    "is node": lambda t, x, p: t.is_tree_node(type(x)),
    "transpose": lambda t, x, p: t.tree_transpose(t.tree_structure([0, 0]), t.tree_structure(x), [x, x]),
    "transpose inferred": lambda t, x, p: t.tree_transpose(t.tree_structure((0, 0)), None, (x, x)),
    "compose": lambda t, x, p: t.tree_structure(x, p).compose(t.tree_structure([0, x])),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", PER_TREE)
def test_each_function_gives_the_results_of_jax_for_every_kind_of_node(name, theirs, monkeypatch):
    def run(t):
        monkeypatch.setattr(sys.modules[__name__], "key_classes", t)
        return [
            outcome(lambda t, i=i, p=p: PER_TREE[name](t, trees(t)[i], p), t)
            for i, p in itertools.product(NODES, PREDICATES)
        ]

    for case, got, want in zip(itertools.product(NODES, PREDICATES), run(ours), run(theirs), strict=True):
        assert got == want, case


@pytest.mark.parametrize("given", [None, 1, [None]])
def test_treedef_tuple_refuses_what_would_end_the_process(given):
    with pytest.raises(RuntimeError, match="treedef_tuple: expected structures"):
        minijax.tree_util.treedef_tuple([minijax.tree_util.tree_structure(1), given])


CALLS = {
    "too few leaves": lambda t: t.tree_unflatten(t.tree_structure((1, 2)), [1]),
    "too many leaves": lambda t: t.tree_unflatten(t.tree_structure((1, 2)), [1, 2, 3]),
    "leaves from an iterator": lambda t: t.tree_unflatten(t.tree_structure((1, 2)), iter("ab")),
    "unflatten without treedef": lambda t: t.tree_unflatten(3, [1]),
    "leaves that do not iterate": lambda t: t.tree_unflatten(t.tree_structure(1), 5),
    "mixed keys": lambda t: t.tree_flatten({1: 2, "a": 3}),
    "mixed keys of a defaultdict": lambda t: t.tree_flatten(collections.defaultdict(list, {1: 2, "a": 3})),
    "treedef_tuple of no treedefs": lambda t: t.treedef_tuple([1]),
    "no tree": lambda t: t.tree_map(len),
    "StopIteration": lambda t: t.tree_map(lambda x: next(iter(())), [1, 2]),
    "StopIteration, two trees": lambda t: t.tree_map(lambda x, y: next(iter(())), [1, 2], [1, 2]),
    "StopIteration, path": lambda t: t.tree_map_with_path(lambda p, x: next(iter(())), [1, 2]),
    "error of the function": lambda t: t.tree_map(lambda x, y: int("a"), [1], [2]),
    "iterator as second tree": lambda t: t.tree_map(lambda *a: a, [1, 2], iter([3, 4])),
    "bad node type": lambda t: t.tree_flatten(Bad()),
    "bad node type, path": lambda t: t.tree_flatten_with_path(Bad()),
    "all_leaves of a number": lambda t: t.all_leaves(3),
    "transpose, missing row": lambda t: t.tree_transpose(
        t.tree_structure([0, 0, 0]), t.tree_structure((0, 0)), [(1, 2), (3, 4)]
    ),
    "transpose, odd row": lambda t: t.tree_transpose(t.tree_structure([0, 0]), None, [(1, 2), (3,)]),
    "transpose, other outer": lambda t: t.tree_transpose(t.tree_structure([0, 0]), None, {"a": 1}),
    "transpose, short outer": lambda t: t.tree_transpose(t.tree_structure([0, 0]), None, [1]),
    "transpose, empty inner": lambda t: t.tree_transpose(t.tree_structure([0]), t.tree_structure(()), [()]),
    "transpose nothing": lambda t: t.tree_transpose(t.tree_structure([]), None, []),
    "transpose, partials": lambda t: t.tree_transpose(
        t.tree_structure([0, 0]), t.tree_structure(t.Partial(max, 0, 1)), [t.Partial(max, 1, 2), t.Partial(max, 3, 4)]
    ),
    "transpose, partials of two functions": lambda t: t.tree_transpose(
        t.tree_structure([0, 0]), t.tree_structure(t.Partial(max, 0, 1)), [t.Partial(max, 1, 2), t.Partial(min, 3, 4)]
    ),
    "transpose, partials inferred": lambda t: t.tree_transpose(
        t.tree_structure([0, 0]), None, [t.Partial(max, 1, x=2), t.Partial(min, 3, x=4)]
    ),
    "transpose, too few in a partial": lambda t: t.tree_transpose(
        t.tree_structure([0]), t.tree_structure(t.Partial(max, 0)), [t.Partial(max, 1, 2)]
    ),
    "transpose out of a partial": lambda t: t.tree_transpose(
        t.tree_structure(t.Partial(max, 0, x=0)), t.tree_structure([0, 0]), t.Partial(max, [1, 2], x=[3, 4])
    ),
    "transpose, other structure": lambda t: t.tree_transpose(t.tree_structure([0, 0]), t.tree_structure([0]), [1, 2]),
    "transpose by lists": lambda t: t.tree_transpose([0, 0], [0], [1, 2]),
    "reduce nothing": lambda t: t.tree_reduce(operator.add, []),
    "reduce from None": lambda t: t.tree_reduce(lambda a, b: (a, b), [1, 2], None),
    "initializer by name": lambda t: t.tree_reduce(operator.add, {"a": 1, "b": (2, 3)}, initializer=10),
    "none is a leaf of rest": lambda t: t.tree_map(lambda *a: a, [1, None], [2, 3], is_leaf=lambda x: x is None),
    "subtrees of rest": lambda t: t.tree_map(lambda *a: a, [1, 2], [[3, 4], None]),
    "keys by several trees": lambda t: t.tree_map_with_path(lambda p, *x: (t.keystr(p), x), {"a": 1}, {"a": [2]}),
    "path predicate and rest": lambda t: t.tree_map_with_path(
        lambda p, *x: x, [1, [2]], [3, [4, 5]], is_leaf=lambda p, x: len(p) == 1, is_leaf_takes_path=True
    ),
    "partial without function": lambda t: t.Partial(),
    "partial of a number": lambda t: t.Partial(3),
    "partial mapped": lambda t: t.tree_map(lambda x: x + 1, t.Partial(operator.add, 1))(5),
    "partials of one function": lambda t: t.tree_map(lambda *a: a, t.Partial(max, 1), t.Partial(max, 2)),
    "partials of two functions": lambda t: t.tree_map(lambda *a: a, t.Partial(max, 1), t.Partial(min, 2)),
    "equal structures": lambda t: t.tree_structure([1, (2,)]) == t.tree_structure(["a", (None,)], lambda x: x is None),
    **{
        f"associative {n}": lambda t, n=n: t.tree_reduce_associative(lambda a, b: f"({a}{b})", list(range(n)))
        for n in range(12)
    },
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
def test_single_calls_end_as_they_do_in_jax(name, theirs):
    assert outcome(CALLS[name], ours) == outcome(CALLS[name], theirs)


MISMATCHES = [
    ((1, 2), [1, 2]),
    ((1, 2), (1, 2, 3)),
    ([1, [2, (3,)]], [1, [2, 3]]),
    ({"a": 1}, {"b": 1}),
    ({"a": 1, "c": {"x": 1}}, {"a": 1, "c": {"x": 1, "y": 2}}),
    ({"a": (1, 2), "b": [1]}, {"a": [1, 2], "b": (1,)}),
    ({}, {"a": 1}),
    ({"a": 1}, collections.OrderedDict(a=1)),
    (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=1, a=2)),
    (collections.defaultdict(list, a=1), collections.defaultdict(int, a=1)),
    (Point(1, 2), Pair(1, 2)),
    (Point(1, 2), (1, 2)),
    (Point([1], 2), Point((1,), 2)),
    (Box(1, 2), Box(1)),
    (Box(1, tag=1), Box(1, tag=2)),
    (Box([1, {"a": 2}]), Box([1, {"b": 2}])),
    (Layer([1]), Layer((1,))),
    (Layer(1, kind="a"), Layer(1, kind="b")),
    ([Box(1)], [Keyed(1)]),
    (Box(1), 5),
    ([1, None], [1, 2]),
    (None, 1),
    ((), 1),
    ((), (1,)),
    ([1], None),
    (1, (1, 2)),
    (1, None),
    ([1, 2], [1, 2]),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case", range(len(MISMATCHES)))
def test_mismatches_raise_as_in_jax_and_name_the_same_place(case, theirs):
    prefix, full = MISMATCHES[case]
    for call in (
        lambda t: t.tree_map(lambda *a: a, prefix, full),
        lambda t: t.tree_map_with_path(lambda *a: a, prefix, full),
        lambda t: t.tree_broadcast(prefix, full),
    ):
        assert outcome(call, ours) == outcome(call, theirs)
        got, want = (message(call, t).splitlines()[:2] for t in (ours, theirs))
        # jax names each field of a namedtuple after its first one.
        assert got == want or isinstance(prefix, Point)


def message(call, tree_util):
    try:
        call(tree_util)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", range(len(MISMATCHES)))
def test_differences_of_trees_are_those_of_their_structures_and_contain_those_of_the_prefix(case):
    one, two = MISMATCHES[case]
    structures = ours.tree_structure(one), ours.tree_structure(two)
    found = list(room.equality_errors(one, two))
    assert bool(found) == (structures[0] != structures[1])
    of_structures = list(room.equality_errors_pytreedef(*structures))
    assert [(path, reason) for path, _, _, reason in found] == [(path, reason) for path, _, _, reason in of_structures]
    paths = {ours.keystr(path) for path, *_ in found}
    for make_error in room.prefix_errors(one, two):
        assert str(make_error("")).splitlines()[1].strip() in paths


def test_a_difference_shows_what_was_found_and_why_it_does_not_fit():
    cases = [
        ((1,), [1], "<class 'tuple'>", "<class 'list'>", "their Python types differ"),
        ((1, 2), (1,), "tuple of length 2", "tuple of length 1", "the lengths do not match"),
        ({"a": 1}, {"a": 1, "b": 2}, "<class 'dict'> with 1 child", "<class 'dict'> with 2 children", "{b}"),
        ({"a": 1}, {"b": 2}, "metadata ('a',)", "metadata ('b',)", "the pytree node metadata does not match"),
        ([1], [1, 2], "list of length 1", "list of length 2", "the lengths do not match"),
    ]
    for one, two, *texts in cases:
        ((path, *got),) = room.equality_errors([0, {"k": one}], [0, {"k": two}])
        assert ours.keystr(path) == "[1]['k']"
        assert all(part in text for part, text in zip(texts, got, strict=True))
    ((_, first, _, _),) = room.equality_errors_pytreedef(ours.tree_structure(1), ours.tree_structure([1]))
    assert first == "pytree leaf"


KEYS = [
    lambda t: t.DictKey("a"),
    lambda t: t.DictKey(1),
    lambda t: t.DictKey((1, "a")),
    lambda t: t.SequenceKey(3),
    lambda t: t.GetAttrKey("name"),
    lambda t: t.FlattenedIndexKey(2),
    lambda t: "any object",
    lambda t: types.SimpleNamespace(key="not looked at"),
]


@pytest.mark.oracle
@pytest.mark.parametrize("make", KEYS)
def test_keystr_writes_keys_as_jax_does(make, theirs):
    for kwargs in ({}, {"simple": True}, {"separator": "/"}, {"simple": True, "separator": "."}):
        texts = [(repr(t.keystr((make(t), t.DictKey(0)), **kwargs)), t.keystr([], **kwargs)) for t in (ours, theirs)]
        assert texts[0] == texts[1]


def dataclass_types():
    @dataclasses.dataclass
    class Data:
        x: int
        y: int = 0
        z: int = dataclasses.field(default=1, metadata={"static": True})
        w: int = dataclasses.field(default=5, init=False)

    @dataclasses.dataclass
    class Simple:
        x: int
        y: int = 0

    class Other:
        def __init__(self, x, y):
            self.x, self.y = x, y

    return {"Data": Data, "Simple": Simple, "Other": Other}


DATACLASSES = [
    ("Data", ()),
    ("Data", (["x"], None)),
    ("Data", (None, ["x"])),
    ("Data", (["x"], ["y"])),
    ("Data", (["x"], ["y", "q"])),
    ("Data", (["x", "y"], ["y", "z"])),
    ("Data", (["x", "y"], ["z"])),
    ("Data", (["x", "y"], ["z"], ["w"])),
    ("Data", (["x"], ["z"], ["y"])),
    ("Data", (["x", "y"], ["z", "w"])),
    ("Simple", ()),
    ("Simple", (None, None, ["y"])),
    ("Simple", (("x",), ())),
    ("Simple", (("x",), (), ("y",))),
    ("Simple", ((), ("x", "y"))),
    ("Other", ()),
    ("Other", (["x"], None)),
    ("Other", (["x"], ["y"])),
    ("Other", (["x"], ["x"])),
    ("Other", ("xy", "")),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case", range(len(DATACLASSES)))
def test_register_dataclass_accepts_and_refuses_the_classes_of_jax(case, theirs):
    name, args = DATACLASSES[case]

    def call(t):
        cls = dataclass_types()[name]
        assert t.register_dataclass(cls, *args) is cls
        leaves, treedef = t.tree_flatten_with_path(cls(1, y=[2]))
        return leaves, treedef, vars(t.tree_map(lambda x: -x, cls(1, y=[2])))

    assert outcome(call, ours) == outcome(call, theirs)


REFUSED = {
    "node twice": lambda t: t.register_pytree_node(Box, lambda b: ((), None), lambda _, __: None),
    "node with keys twice": lambda t: t.register_pytree_with_keys(Box, lambda b: ((), None), lambda _, __: None),
    "static twice": lambda t: t.register_static(Name),
    "dataclass twice": lambda t: t.register_dataclass(Layer),
    "list": lambda t: t.register_pytree_node(list, lambda b: ((), None), lambda _, __: None),
    "class without methods": lambda t: t.register_pytree_node_class(type("Empty", (), {})),
    "class without methods, keys": lambda t: t.register_pytree_with_keys_class(type("Empty", (), {})),
    "field of the wrong name": lambda t: minijax.tree.static(other=1),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", REFUSED)
def test_bad_registrations_are_refused_as_in_jax(name, theirs):
    got, want = outcome(REFUSED[name], ours), outcome(REFUSED[name], theirs)
    assert isinstance(got, type) and got == want


@pytest.mark.oracle
def test_the_public_names_and_signatures_are_those_of_jax(theirs):
    jax_tree = pytest.importorskip("jax.tree")
    for mine, other in ((minijax.tree, jax_tree), (ours, theirs)):
        names = {name for name in dir(other) if not name.startswith("_")}
        assert names == {name for name in dir(mine) if not name.startswith("_")}
        for name in names:
            if inspect.isfunction(getattr(other, name)):
                got, want = (inspect.signature(getattr(m, name)).parameters for m in (mine, other))
                assert [(p.name, p.kind) for p in got.values()] == [(p.name, p.kind) for p in want.values()]
                assert [p.default is p.empty for p in got.values()] == [p.default is p.empty for p in want.values()]


@pytest.mark.oracle
def test_types_registered_here_are_leaves_for_jax_and_the_other_way_round(theirs):
    here, there = type("Here", (), {}), type("There", (), {})
    ours.register_static(here)
    theirs.register_static(there)
    assert ours.is_tree_node(here) and not theirs.is_tree_node(here)
    assert theirs.is_tree_node(there) and not ours.is_tree_node(there)
    assert not theirs.is_tree_node(ours.Partial) and not ours.is_tree_node(theirs.Partial)


@pytest.mark.parametrize("case", NODES)
def test_every_kind_of_node_survives_a_round_trip(case):
    tree = trees(ours)[case]
    leaves, treedef = ours.tree_flatten(tree)
    rebuilt = ours.tree_unflatten(treedef, leaves)
    assert type(rebuilt) is type(tree) and ours.tree_structure(rebuilt) == treedef
    assert [leaf for _, leaf in ours.tree_leaves_with_path(tree)] == leaves or isinstance(tree, np.ndarray)
    assert len(leaves) == treedef.num_leaves


@pytest.mark.parametrize("case", NODES)
def test_treedefs_are_pickled_and_copied(case):
    treedef = ours.tree_structure(trees(ours)[case])
    for other in (pickle.loads(pickle.dumps(treedef)), copy.copy(treedef), copy.deepcopy(treedef)):
        assert str(other) == str(treedef) and other.num_leaves == treedef.num_leaves
        # Two partials are equal only if they are one object, as functools has it.
        assert other == treedef and hash(other) == hash(treedef) or "_HashableCallableShim" in str(treedef)


def test_a_pickled_treedef_is_read_by_another_process_that_has_the_package():
    data = pickle.dumps(ours.tree_structure({"a": [1, (2, None)], "b": collections.OrderedDict(x=3)}))
    program = (
        "import pickle, sys, minijax.tree_util\n"
        "treedef = pickle.load(sys.stdin.buffer)\n"
        "print(treedef, treedef.unflatten([1, 2, 3])['b']['x'])"
    )
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True)
    want = "PyTreeDef({'a': [*, (*, None)], 'b': CustomNode(OrderedDict[('x',)], [*])}) 3"
    assert done.stdout.decode().strip() == want


def test_jax_is_not_imported():
    program = "import sys, minijax.tree_util, minijax.tree; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_our_registry_is_separate_from_that_of_jax():
    assert ours.default_registry is native.registry is not native.PyTreeDef
    from_jaxlib = type(ours.default_registry)()
    assert not from_jaxlib.is_node(collections.OrderedDict)


def test_a_mismatch_names_the_key_path_and_holds_the_phrases_of_jaxlib():
    cases = [
        ([1, {"a": [2]}], [1, {"a": (2,)}], [r"tree_map tree[1]['a']", "Expected list, got", "prefix pytree"]),
        ([Box(1, tag="p")], [Box(1, tag="q")], ["tree_map tree[0]", "Mismatch custom node data", "p", "q"]),
        ({"a": 1}, {"b": 1}, ["tree_map tree\n", "Dict key mismatch", "('a',)", "('b',)"]),
        ([1, None], [1, 2], ["tree_map tree[1]", "Expected None, got 2"]),
    ]
    for prefix, full, phrases in cases:
        with pytest.raises(ValueError, match="pytree structure error") as caught:
            ours.tree_map(lambda *a: a, prefix, full)
        for phrase in phrases:
            assert phrase in str(caught.value)


def test_the_second_of_several_trees_is_the_one_blamed():
    with pytest.raises(ValueError, match=r"different lengths of list at key path\n +tree_map tree\['a'\]"):
        ours.tree_map(lambda *a: a, {"a": [1]}, {"a": [2]}, {"a": [3, 4]})


def test_a_subtree_where_the_predicate_stopped_is_a_leaf_in_the_error_too():
    with pytest.raises(ValueError, match=r"tree_map_with_path tree\[1\]\n"):
        ours.tree_map_with_path(
            lambda *a: a,
            [[1, 2], (3,)],
            [5, [6]],
            is_leaf=lambda p, x: p == (ours.SequenceKey(0),),
            is_leaf_takes_path=True,
        )


def test_the_second_field_of_a_namedtuple_is_named_by_its_own_name():
    errors = room.prefix_errors(Point(1, [2]), Point(1, (2,)))
    assert [str(make("arg")).splitlines()[1].strip() for make in errors] == ["arg.y"]


def test_a_node_type_may_have_its_own_class_for_metadata():
    cls = type("Own", (), {})
    ours.register_pytree_node(cls, lambda node: ((node.item,), cls), lambda _, items: cls())
    one, two = cls(), cls()
    one.item, two.item = [1], (1,)
    (make_error,) = room.prefix_errors(one, two)
    assert "arg[<flat index 0>]\n" in str(make_error("arg"))


def test_axes_are_spread_over_the_leaves_and_none_is_an_axis():
    treedef = ours.tree_structure(({"a": 1, "b": [2, 3]}, 4, None))
    cases = [
        (0, [0] * 4),
        (None, [None] * 4),
        ((0, None, 1), [0, 0, 0, None]),
        (({"a": None, "b": 1}, 2, 3), [None, 1, 1, 2]),
        (({"a": 0, "b": [None, 1]}, 2, None), [0, None, 1, 2]),
    ]
    for axes, want in cases:
        assert room.flatten_axes("vmap in_axes", treedef, axes) == want
    for axes, place in [((0, 1), "in_axes\n"), (({"a": 0}, 1, 2), r"in_axes\[0\]\n"), ((0, [1], 2), r"\[1\]\n")]:
        with pytest.raises(ValueError, match=r"must be a tree prefix of the corresponding value(.|\n)*" + place):
            room.flatten_axes("vmap in_axes", treedef, axes)


def test_leaves_are_spread_by_structures_as_by_trees():
    for prefix, full in MISMATCHES:
        leaves, treedef = ours.tree_flatten(prefix)
        try:
            want = room.broadcast_prefix(prefix, full)
        except ValueError:
            with pytest.raises(ValueError, match="not a tree prefix"):
                room.broadcast_leaves(leaves, treedef, ours.tree_structure(full))
        else:
            assert room.broadcast_leaves(leaves, treedef, ours.tree_structure(full)) == want


def test_strict_leaves_are_distinguished_from_empty_nodes():
    assert [room.treedef_is_strict_leaf(ours.tree_structure(x)) for x in (1, None, (), [1])] == [
        True,
        False,
        False,
        False,
    ]


def test_transposing_an_empty_outer_tree_gives_empty_trees():
    treedefs = ours.tree_structure([]), ours.tree_structure((0, 0))
    assert ours.tree_transpose(*treedefs, []) == ([], [])


def test_a_partial_calls_its_function_and_does_not_flatten_inner_partials():
    inner = functools.partial(operator.sub, 10)
    outer = ours.Partial(inner, 3)
    assert outer() == 7 and ours.tree_leaves(outer) == [3]
    assert ours.tree_structure(outer) == ours.tree_structure(ours.Partial(inner, 4))
    assert hash(ours.tree_structure(outer)) == hash(ours.tree_structure(ours.Partial(inner, 4)))
    assert outer.func == inner and pickle.loads(pickle.dumps(outer))() == 7


def test_static_makes_a_field_and_keeps_other_metadata():
    field = minijax.tree.static(default=3, metadata={"unit": "m"})
    assert field.default == 3 and dict(field.metadata) == {"static": True, "unit": "m"}
    assert not minijax.tree.static(metadata={"static": False}).metadata["static"]


def test_pairs_come_apart():
    assert unzip2([]) == ((), ()) and unzip2(iter([(1, 2), (3, 4)])) == ((1, 3), (2, 4))
