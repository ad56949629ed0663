"""The comparer accepts what is equal and rejects planted differences. Both sides are the real jax here."""

import re

import compare
import ml_dtypes
import numpy as np
import pytest
import raising
import recorded
import transform_matrix
from compare import LISTED, Case, Mismatch, same_error, same_value

jax, jnp = compare.theirs(), compare.theirs("jax.numpy")
pytestmark = pytest.mark.oracle

ONES = np.ones(3, np.float32)


def planted_nan(payload):
    return np.array([0x7FC00000 + payload], np.uint32).view(np.float32)


def sharded(*names):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    return jax.device_put(jnp.ones((2, 2)), jax.sharding.NamedSharding(mesh, jax.P(*names)))


DIFFERENT_VALUES = {
    "one ulp": lambda: (jnp.ones(3), jnp.array([1, 1, np.nextafter(np.float32(1), np.float32(2))])),
    "the sign of zero": lambda: (jnp.array([0.0]), jnp.array([-0.0])),
    "a nan's payload": lambda: (planted_nan(0), planted_nan(1)),
    "one ulp of bfloat16": lambda: (
        jnp.array(np.array([1], np.uint16).view(ml_dtypes.bfloat16)),
        jnp.array(np.array([2], np.uint16).view(ml_dtypes.bfloat16)),
    ),
    "one ulp of float8": lambda: (
        jnp.array(np.array([1], np.uint8).view(ml_dtypes.float8_e4m3fn)),
        jnp.array(np.array([2], np.uint8).view(ml_dtypes.float8_e4m3fn)),
    ),
    "int4": lambda: (jnp.array([1, -2], "int4"), jnp.array([1, 6], "int4")),
    "dtype": lambda: (jnp.ones(3, "int32"), jnp.ones(3, "uint32")),
    "dtype of an empty array": lambda: (jnp.ones(0, "float16"), jnp.ones(0, "bfloat16")),
    "weak type": lambda: (jnp.asarray(1.0), jnp.asarray(1.0, "float32")),
    "shape": lambda: (jnp.ones((1, 3)), jnp.ones((3, 1))),
    "rank": lambda: (jnp.ones(()), jnp.ones((1,))),
    "shape of float0": lambda: (np.zeros(2, jax.dtypes.float0), np.zeros(3, jax.dtypes.float0)),
    "key": lambda: (jax.random.key(0), jax.random.key(1)),
    "key implementation": lambda: (jax.random.key(0), jax.random.key(0, impl="rbg")),
    "sharding type": lambda: (sharded(), jnp.ones((2, 2))),
    "sharding spec": lambda: (sharded("x"), sharded(None, "x")),
    "array or numpy": lambda: (jnp.ones(3), np.ones(3, np.float32)),
    "numpy array or scalar": lambda: (np.ones((), np.float32), np.float32(1)),
    "python scalars": lambda: (1, 1.0),
    "python scalar or array": lambda: (1.0, jnp.asarray(1.0)),
    "a bool": lambda: (True, 1),
    "swapped results": lambda: ((jnp.ones(3), jnp.zeros(3)), (jnp.zeros(3), jnp.ones(3))),
    "list for tuple": lambda: ([jnp.ones(3)], (jnp.ones(3),)),
    "key of a dict": lambda: ({"a": 1}, {"b": 1}),
    "one leaf more": lambda: ((1,), (1, 1)),
    "none for a leaf": lambda: ((None,), (1,)),
    "abstract dtype": lambda: (jax.ShapeDtypeStruct((3,), "int8"), jax.ShapeDtypeStruct((3,), "int16")),
    "abstract weak type": lambda: (
        jax.ShapeDtypeStruct((), "float32", weak_type=True),
        jax.ShapeDtypeStruct((), "float32"),
    ),
    "strings": lambda: ("a", "b"),
    "dtypes": lambda: (np.dtype("int8"), np.dtype("int16")),
}


@pytest.mark.parametrize("name", DIFFERENT_VALUES)
def test_a_planted_difference_of_values_is_rejected(name):
    ours, theirs = DIFFERENT_VALUES[name]()
    same_value(ours, ours)
    same_value(theirs, theirs)
    with pytest.raises(Mismatch):
        same_value(ours, theirs)
    with pytest.raises(Mismatch):
        same_value(theirs, ours)


def test_a_difference_is_named_by_its_place():
    with pytest.raises(Mismatch, match=re.escape("value['a'][1] at (2,), 1 of 3 differ")):
        same_value({"a": [1, jnp.ones(3)]}, {"a": [1, jnp.ones(3).at[2].set(2)]})


def test_float0_as_jax_gives_it_equals_numpys():
    zeros = jax.grad(lambda x: 1.0 * x, allow_int=True)(3)
    same_value(np.zeros((), jax.dtypes.float0), zeros)


def test_a_tolerance_needs_a_reason():
    near = ONES * np.float32(1 + 1e-6)
    with pytest.raises(ValueError, match="why"):
        same_value(ONES, near, rtol=1e-5)
    with pytest.raises(ValueError, match="why"):
        same_value(ONES, near, rtol=1e-5, why=" ")
    same_value(ONES, near, rtol=1e-5, why="two orders of one sum")
    with pytest.raises(Mismatch):
        same_value(ONES, near, rtol=1e-7, why="two orders of one sum")


def test_nans_are_equal_whatever_their_payload_only_where_argued():
    same_value(planted_nan(0), planted_nan(1), any_nan=True, why="XLA leaves the payload open")
    with pytest.raises(Mismatch):
        same_value(planted_nan(0), ONES[:1], any_nan=True, why="XLA leaves the payload open")
    with pytest.raises(Mismatch):
        same_value(planted_nan(0), planted_nan(1), rtol=1e-3, why="two orders of one sum")


def raiser(error):
    def call():
        raise error

    return call


def test_errors_are_equal_by_the_names_of_their_classes_and_bases():
    same_error(raiser(TypeError("a")), raiser(TypeError("b")))
    same_error(raiser(type("JaxprTypeError", (TypeError,), {})("a")), raiser(jax.errors.JaxprTypeError("b")))
    for other in (lambda: 1, raiser(ValueError("a")), raiser(type("TypeError", (Exception,), {})("a"))):
        with pytest.raises(Mismatch):
            same_error(other, raiser(TypeError("a")))
        with pytest.raises(Mismatch):
            same_error(raiser(TypeError("a")), other)


def test_phrases_must_occur_in_both_messages():
    same_error(raiser(TypeError("f: bad shape")), raiser(TypeError("a bad shape")), phrases=["bad shape"])
    with pytest.raises(Mismatch, match="phrase"):
        same_error(raiser(TypeError("f: shape")), raiser(TypeError("a bad shape")), phrases=["bad shape"])


# Texts. The two sides differ in which of two programs runs.


def two(ours, theirs, case=None):
    """A case whose program is `ours` in the first call of each pair and `theirs` in the second."""
    return Case("planted", lambda jax: ours if jax is compare.ours() else theirs, case or (ONES,))


class Twin:
    """Stands for minijax: jax under another identity."""

    __name__ = "jax"

    def __getattr__(self, name):
        return getattr(jax, name)


@pytest.fixture(autouse=True)
def twin(monkeypatch):
    twin = Twin()
    monkeypatch.setattr(compare, "ours", lambda: twin)
    monkeypatch.setenv("MINIJAX_TEST_SEED", "0")


def axes(x, axis):
    return jnp.sum(x, axis=axis)


DIFFERENT_JAXPRS = {
    "a renamed primitive": (lambda x: jnp.sin(x), lambda x: jnp.cos(x)),
    "swapped results": (lambda x: (x + 1, x * 2), lambda x: (x * 2, x + 1)),
    "swapped operands": (lambda x: x - 2 * x, lambda x: 2 * x - x),
    "a changed param": (lambda x: axes(x[None], 0), lambda x: axes(x[None], 1)),
    "a constant": (lambda x: x * 2, lambda x: x * 3),
    "an equation more": (lambda x: x, lambda x: x + 0),
    "a dtype": (lambda x: x.astype("int8"), lambda x: x.astype("int16")),
}


@pytest.mark.parametrize("name", DIFFERENT_JAXPRS)
def test_a_planted_difference_of_programs_is_rejected(name):
    case = two(*DIFFERENT_JAXPRS[name])
    for compared in (compare.check, lambda case: compare.sweep([case])):
        with pytest.raises(Mismatch):
            compared(case)
    with pytest.raises(Mismatch):
        compare.same_jaxpr(case.program, *case.args)
    if name != "an equation more":
        with pytest.raises(Mismatch):
            compare.same_text(case.program, *case.args)


def test_values_are_compared_where_the_texts_differ():
    case = two(lambda x: x * 2, lambda x: x + x)
    compare.check(case, jaxpr=False)
    wrong = two(lambda x: x * 2, lambda x: x * 3)
    for compared in (compare.check, lambda case, jaxpr: compare.sweep([case], jaxpr=jaxpr)):
        with pytest.raises(Mismatch, match="differ"):
            compared(wrong, jaxpr=False)


def test_a_sweep_names_the_case_that_differs_and_no_other():
    good = [Case(f"good{i}", lambda: lambda x: x + 1, (ONES,)) for i in range(4)]
    with pytest.raises(Mismatch, match="1 of 5 cases differ\nplanted: value"):
        compare.sweep([*good, two(lambda x: x * 2, lambda x: x * 3)], jaxpr=False)


def test_result_types_are_compared_though_the_texts_agree():
    with pytest.raises(Mismatch, match="weak type"):
        compare.check(two(lambda x: jnp.asarray(1.0), lambda x: jnp.float32(1.0)), jaxpr=False)
    with pytest.raises(Mismatch, match="tree"):
        compare.check(two(lambda x: [x], lambda x: (x,)), jaxpr=False)


def test_a_side_that_raises_alone_is_rejected():
    for case in (two(lambda x: x + "a", lambda x: x), two(lambda x: x, lambda x: x + "a")):
        with pytest.raises((Mismatch, TypeError)):
            compare.check(case)
        with pytest.raises((Mismatch, TypeError)):
            compare.check_eager(case)


def test_programs_are_compared_by_the_value_they_give():
    compare.same(lambda jax, jnp: {"x": jnp.ones(3), "f": jax.nn.relu(-1.0)})
    with pytest.raises(Mismatch):
        compare.same(lambda jax: 1 if jax is compare.ours() else 2)
    compare.same(
        lambda jax: np.float32(1 if jax is compare.ours() else 1 + 1e-6), rtol=1e-5, why="two orders of one sum"
    )
    compare.same(lambda lax: lax.add(1, 1.0), raises=True)
    with pytest.raises(TypeError):
        compare.same(lambda lax: lax.add(1, 1.0))


def test_both_sides_may_raise_only_if_the_case_allows_it():
    with pytest.raises(TypeError):
        compare.check(Case("raises", lambda: lambda x: x + "a", (ONES,)))
    compare.check(Case("raises", lambda: lambda x: x + "a", (ONES,), raises=True))
    with pytest.raises(AttributeError):
        compare.check(Case("misspelt", lambda jnp: jnp.sinn, (ONES,), raises=True))


def test_the_table_of_cells_that_raise_is_held_both_ways(monkeypatch):
    test = "test_compare.py::test_the_table_of_cells_that_raise_is_held_both_ways"
    table = {test: {"others": [("TypeError", "other words")]}}
    monkeypatch.setattr(raising, "table", lambda: table)

    def case(name, raises):
        return Case(name, lambda jax: lambda x: jax.lax.sin("a") if raises else x, (ONES,), raises=LISTED)

    error = compare.outcome(lambda: jax.lax.sin("a")).error
    table[test]["listed"] = [("TypeError", str(error)[:20])]
    compare.check(case("listed", True))
    compare.sweep([case("listed", True), case("returns", False)])
    for name, raises in (("listed", False), ("unlisted", True), ("others", True)):
        with pytest.raises(Mismatch):
            compare.check(case(name, raises))
        with pytest.raises(Mismatch):
            compare.sweep([case(name, raises)])
    table[test][raising.ANY] = [("TypeError", str(error)[:20])]
    compare.check(case("unlisted", True))
    compare.check(case("unlisted", False))


def test_the_table_of_cells_that_raise_names_existing_tests():
    for test in raising.table():
        file, _, function = test.partition("::")
        assert f"def {function}(" in (raising.TABLE.parents[1] / file).read_text(), test
    assert list(raising.spelt_out("a-«b c»-«d e»")) == ["a-b-d", "a-b-e", "a-c-d", "a-c-e"]


def test_jaxprs_are_equal_but_for_numpy_integers_addresses_and_module_names():
    ours = "split[sizes=(2, 2) f=<function f at 0x7f> c=minijax.numpy.sin]"
    theirs = "split[sizes=(np.int64(2), np.uint8(2)) f=<function f at 0x81> c=jax.numpy.sin]"
    assert compare.normal(ours) == compare.normal(theirs)
    assert compare.normal("x=np.float32(2.0)") != compare.normal("x=2.0")


MODULE = """
module @{module} attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%{x}: tensor<4xf32> {{{attribute}}}) ->
      (tensor<4xf32> {{jax.result_info = "{info}"}}) {{
    %0 = call @{f}(%{x}) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @{g}(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }}
{functions}
}}
"""
FUNCTION = """  func.func private @{f}(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = stablehlo.{op} %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32> loc("here")
  }}"""
PARTS = dict(module="jit_f", partitions=1, x="arg0", attribute="", info="result", f="f", g="g")


def module(ops=("sine", "cosine"), backwards=False, **parts):
    parts = {**PARTS, **parts}
    functions = [FUNCTION.format(f=parts[name], op=op) for name, op in zip("fg", ops, strict=True)]
    if parts["f"] == parts["g"]:
        functions.pop()
    return MODULE.format(functions="\n".join(functions[::-1] if backwards else functions), **parts)


def test_canonical_texts_forget_names_and_order():
    same = [
        dict(module="jit_g"),
        dict(x="x"),
        dict(info="result[0]"),
        dict(attribute='jax.arg_info = "x"'),
        dict(f="sin_0", g="cos"),
        dict(f="g", g="f"),
        dict(backwards=True),
    ]
    assert {compare.canonical(module(**parts)) for parts in same} == {compare.canonical(module())}
    assert compare.canonical(module(("sine", "sine"))) == compare.canonical(module(("sine", "sine"), g="f"))


def test_canonical_texts_keep_what_changes_the_program():
    different = [
        dict(ops=("cosine", "sine")),
        dict(ops=("sine", "sine")),
        dict(partitions=2),
        dict(attribute="tf.aliasing_output = 0 : i32"),
        dict(attribute="jax.buffer_donor = true"),
        dict(attribute='mhlo.sharding = "{replicated}"'),
    ]
    texts = {compare.canonical(module(**parts)) for parts in [{}, *different]}
    assert len(texts) == 1 + len(different)


# What the comparer leaves out of jaxprs and modules, and planted differences beside it


def jaxpr_with_seed(equation="c:f32[4@x] = mul b a", out="c", seed="b:f32[] = reshard 1.0:f32[]\n    "):
    return f"{{ lambda ; a:f32[4@x]. let\n    {seed}{equation}\n  in ({out},) }}"


def test_the_seed_of_a_gradient_may_be_resharded_or_a_literal():
    compare.same_lines("jaxpr", jaxpr_with_seed("b:f32[4@x] = mul 1.0:f32[] a", "b", seed=""), jaxpr_with_seed())


BESIDE_A_SEED = {
    "a primitive": ("b:f32[4@x] = add 1.0:f32[] a", "b"),
    "the seed": ("b:f32[4@x] = mul 2.0:f32[] a", "b"),
    "the dtype of the seed": ("b:f32[4@x] = mul 1.0:f16[] a", "b"),
    "the operands": ("b:f32[4@x] = mul a 1.0:f32[]", "b"),
    "the result": ("b:f32[4@x] = mul 1.0:f32[] a", "a"),
    "a type": ("b:f32[4] = mul 1.0:f32[] a", "b"),
    "an equation more": ("b:f32[4@x] = mul 1.0:f32[] a\n    c:f32[4@x] = sin b", "b"),
}


@pytest.mark.parametrize("name", BESIDE_A_SEED)
def test_a_planted_difference_beside_a_resharded_seed_is_rejected(name):
    with pytest.raises(Mismatch):
        compare.same_lines("jaxpr", jaxpr_with_seed(*BESIDE_A_SEED[name], seed=""), jaxpr_with_seed())


def test_a_reshard_of_an_operand_is_compared():
    theirs = "{ lambda ; a:f32[4@x]. let\n    b:f32[4] = reshard a\n  in (b,) }"
    for ours in (theirs.replace("f32[4] =", "f32[4@y] ="), "{ lambda ; a:f32[4@x]. let  in (a,) }"):
        with pytest.raises(Mismatch):
            compare.same_lines("jaxpr", ours, theirs)


MANUAL_SHARDING = (
    "NamedSharding(mesh=AbstractMesh('x': 2, axis_types=(Manual,), device_kind=cpu, num_cores=None), spec=P(None,))"
)


def in_shard_map(sharding, out_type="f32[1]{V:x}", sizes="(1,)"):
    return (
        "{ lambda ; a:f32[]{V:x}. let\n"
        f"    b:{out_type} = reshape[\n      dimensions=None\n      new_sizes={sizes}\n      sharding={sharding}\n    ] a\n"
        "  in (b,) }"
    )


def test_shardings_over_manual_axes_may_be_left_out_and_nothing_beside_them():
    theirs = in_shard_map(MANUAL_SHARDING)
    compare.same_lines("jaxpr", in_shard_map(None), theirs)
    others = dict(type="f32[1]{V:y}", plain="f32[1]", dtype="f16[1]{V:x}")
    planted = [in_shard_map(None, out_type=t) for t in others.values()]
    planted += [in_shard_map(None, sizes="(1, 1)"), in_shard_map(MANUAL_SHARDING.replace("Manual", "Explicit"))]
    for ours in planted:
        with pytest.raises(Mismatch):
            compare.same_lines("jaxpr", ours, theirs)


IDLE_MODULE = """
module @f attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2]>
  sdy.mesh @empty_mesh = <[]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4x{result}> {{
    %0 = sdy.sharding_constraint %arg0 <@{mesh}, [{{{axis}}}]> : tensor<4xf32>
    %1 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4x{result}>
    %2 = stablehlo.custom_call @f(%1) {{sdy.sharding = #sdy.sharding_per_value<[<@{call_mesh}, [{{{call_axis}}}]>]>}} : (tensor<4x{result}>) -> tensor<4x{result}>
    return %2 : tensor<4x{result}>
  }}
}}
"""
IDLE_PARTS = dict(partitions=1, mesh="empty_mesh", axis="?", result="f32", call_mesh="empty_mesh", call_axis="")


def idle_module(**parts):
    return compare.canonical(IDLE_MODULE.format(**{**IDLE_PARTS, **parts}))


def test_canonical_texts_leave_out_operations_that_do_nothing():
    text = idle_module()
    assert "sharding" not in text.partition("func.func")[2] and "convert" not in text
    # On one partition a call of the host has no sharding.
    assert "sdy.sharding" not in idle_module(call_mesh="mesh", call_axis='"x"')


def test_canonical_texts_keep_what_resembles_operations_that_do_nothing():
    different = [
        dict(mesh="mesh", axis='"x"'),
        dict(mesh="mesh", axis=""),
        dict(result="f16"),
        dict(result="bf16"),
        dict(partitions=2),
        dict(partitions=2, call_mesh="mesh", call_axis='"x"'),
        dict(partitions=2, call_mesh="mesh", call_axis=""),
    ]
    texts = {idle_module(**parts) for parts in [{}, *different]}
    assert len(texts) == 1 + len(different)


NORMAL = {
    "a number": ("x=np.int64(2)", "x=3"),
    "a sign": ("x=np.int64(-2)", "x=2"),
    "a float": ("x=np.float32(2.0)", "x=2.0"),
    "a bool": ("x=np.bool_(True)", "x=True"),
    "a name": ("<function f at 0x7f>", "<function g at 0x7f>"),
    "a hexadecimal number": ("x=0x7f", "x=0x80"),
    "a module": ("f=minijax.numpy.sin", "f=jax.lax.sin"),
    "part of a name": ("name=minijaxed", "name=jaxed"),
}


@pytest.mark.parametrize("name", NORMAL)
def test_a_planted_difference_of_texts_is_kept(name):
    ours, theirs = NORMAL[name]
    assert compare.normal(ours) != compare.normal(theirs)


# The matrix

PROGRAMS = [
    Case("tanh", lambda jnp: lambda x: jnp.tanh(x) * x, (ONES,)),
    Case("tree", lambda lax: lambda d, i: {"a": lax.sin(d["x"]) * d["y"], "i": i + 1}, ({"x": ONES, "y": 2.0}, 3)),
    Case("integers", lambda: lambda i: i + 1, (np.int32(3),)),
    Case("complex", lambda jnp: lambda z: jnp.exp(z), (np.complex64(1 + 2j),)),
]


@pytest.mark.parametrize("case", transform_matrix.matrix(PROGRAMS))
def test_a_cell_of_the_matrix_equals_itself(case):
    compare.check(case)


@pytest.mark.parametrize("transform", transform_matrix.MATRIX)
def test_every_transform_shows_another_program(transform):
    case = transform_matrix.transformed(two(lambda x: jnp.sin(x), lambda x: jnp.cos(x)), transform)
    with pytest.raises(Mismatch):
        compare.check(case)


def test_batches_hold_the_values_of_the_argument():
    (batch,) = transform_matrix.transformed(Case("f", lambda: lambda x: x, (np.arange(3),)), "vmap").args
    assert batch.tolist() == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


@pytest.mark.parametrize(
    ("draw", "turned_by"), [(compare.sampled, "MINIJAX_TEST_CELLS"), (recorded.drawn, "MINIJAX_TEST_SEED")]
)
def test_a_tenth_is_drawn_and_only_its_own_seed_turns_it(monkeypatch, draw, turned_by):
    names = [f"case{i}" for i in range(1000)]
    first = {name for name in names if draw(name)}
    assert 70 < len(first) < 130
    for seed in ("MINIJAX_TEST_SEED", "MINIJAX_TEST_CELLS"):
        with monkeypatch.context() as patch:
            patch.setenv(seed, "1")
            assert (first != {name for name in names if draw(name)}) == (seed == turned_by)


def test_parameters_of_programs_name_their_values():
    given = compare.run_on(jax, lambda jax, jnp, lax, random: (jax, jnp, lax, random))
    assert given == (jax, jax.numpy, jax.lax, jax.random)
    assert compare.run_on(jax, lambda: 1) == 1
