"""Collectives under vmap and in jaxprs, against jax: programs, texts and values."""

import re

import numpy as np
import pytest
from compare import LISTED, Case, check, normal, same, same_error, same_jaxpr, same_printed, same_refusal, sweep

import minijax

pytestmark = pytest.mark.oracle


def array(*sizes, dtype=np.float32):
    return np.asarray(np.random.RandomState(0).randn(*sizes) * 3).astype(dtype)


X, Y = array(4, 3), array(4, 5, 3)
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
GROUPS = [[0, 1], [2, 3]]


def over(body, **axes):
    """`body(lax)` mapped over an axis named i."""
    return lambda jax: jax.vmap(body(jax.lax), axis_name="i", **axes)


def over_two(body, outer, inner):
    """`body(lax)` mapped over two axes, of the names and places given."""

    def program(jax):
        mapped = jax.vmap(body(jax.lax), axis_name=inner[0], in_axes=inner[1])
        return jax.vmap(mapped, axis_name=outer[0], in_axes=outer[1])

    return program


def by_name(name, *args, **options):
    return lambda lax: lambda x: getattr(lax, name)(x, *args, **options)


REDUCING = ("psum", "pmean", "pmax", "pmin", "all_gather")


def test_reductions_over_a_mapped_axis_equal_jax_s():
    cases = []
    for name in REDUCING:
        cases += [
            Case(f"{name}-front", over(by_name(name, "i")), (X,)),
            Case(f"{name}-back", over(by_name(name, "i"), in_axes=1), (array(3, 4),)),
            Case(f"{name}-int", over(by_name(name, "i")), (array(4, dtype=np.int32),)),
            Case(f"{name}-tree", over(lambda lax, n=name: lambda x: getattr(lax, n)({"a": x, "b": 1.0}, "i")), (X,)),
            Case(f"{name}-constant", over(lambda lax, n=name: lambda x: getattr(lax, n)(X[0], "i")), (X,)),
            Case(f"{name}-groups", over(by_name(name, "i", axis_index_groups=GROUPS)), (X,), raises=LISTED),
            Case(f"{name}-outer", over_two(by_name(name, "i"), ("i", 0), ("j", 1)), (Y,)),
            Case(f"{name}-inner", over_two(by_name(name, "i"), (None, 2), ("i", 1)), (Y,)),
        ]
    sweep(cases)


def test_reductions_over_two_mapped_axes_equal_jax_s():
    sweep(
        [
            Case(f"{name}-{names}", over_two(by_name(name, names), ("i", 0), ("j", 0)), (Y,))
            for name in ("psum", "pmean", "pmax")
            for names in (("i", "j"), ("j", "i"), "i", "j")
        ]
    )


def test_constants_are_multiplied_as_in_jax():
    values = [1, 2.5, (1, 2.0)]
    sweep([Case(f"{v}", over(lambda lax, v=v: lambda x: lax.psum(v, "i")), (X,)) for v in values])
    sweep(
        [
            Case("groups", over(lambda lax: lambda x: lax.psum(1, "i", axis_index_groups=GROUPS)), (X,)),
            Case("no-axes", over(by_name("psum", ())), (X,)),
            Case("booleans", over(lambda lax: lambda x: lax.psum(lax.gt(x, x), "i")), (X,)),
        ]
    )


def test_exchanges_over_a_mapped_axis_equal_jax_s():
    scatter = [(0, False, (4, 4, 2), 0), (1, False, (4, 2, 4), 0), (0, True, (4, 8, 2), 0), (1, True, (2, 8, 4), 2)]
    swap = [(0, 0, False, (4, 4, 2), 0), (0, 1, False, (4, 4, 2), 0), (1, 0, False, (4, 2, 4), 0),
            (0, 1, True, (4, 8, 2), 0), (1, 0, True, (4, 2, 8), 0), (0, 0, False, (4, 2, 4), 2),
            (0, 1, True, (4, 4, 2), 1), (1, 0, True, (2, 4, 4), 2), (1, 1, True, (2, 8, 4), 2),
            (0, 2, False, (4, 4, 2, 3), 0), (2, 0, False, (4, 3, 2, 4), 0),
            (0, 0, False, (4, 3, 2), 0), (0, 0, True, (4, 3, 2), 0)]  # fmt: skip
    cases = [
        Case(
            f"scatter-{at}-{shape}",
            over(by_name("psum_scatter", "i", scatter_dimension=at, tiled=tiled), in_axes=d),
            (array(*shape),),
        )
        for at, tiled, shape, d in scatter
    ]
    cases += [
        Case(
            f"swap-{a}-{b}-{shape}",
            over(by_name("all_to_all", "i", a, b, tiled=tiled), in_axes=d),
            (array(*shape),),
            raises=LISTED,
        )
        for a, b, tiled, shape, d in swap
    ]
    cases += [
        Case(f"gather-{options}", over(by_name("all_gather", "i", **options)), (Y,))
        for options in ({"axis": 1}, {"tiled": True}, {"axis": -1}, {"axis": 1, "tiled": True})
    ]
    cases.append(Case("swapaxes", over(by_name("pswapaxes", "i", 0)), (array(4, 4, 2),)))
    swap_tiled = by_name("all_to_all", "i", 0, 1, tiled=True)
    cases.append(Case("bystander", over_two(swap_tiled, ("i", 0), (None, 1)), (array(4, 4, 5, 2),)))
    sweep(cases)


def test_permutations_over_a_mapped_axis_give_jax_s_values():
    def pulled(jax):
        return jax.vmap(lambda x: jax.vjp(lambda x: jax.lax.ppermute(x, "i", RING), x)[1](x), axis_name="i")

    def values(m):
        programs = [over(by_name("ppermute", "i", RING)), over(by_name("pshuffle", "i", [1, 0, 3, 2])), pulled]
        return [np.asarray(leaf) for p in programs for leaf in m.tree_util.tree_leaves(p(m)(X))]

    for ours, theirs in zip(values(minijax), values(pytest.importorskip("jax")), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_broadcasts_from_a_member_reach_all():
    found = over(by_name("pbroadcast", "i", 2))(minijax)(X)
    np.testing.assert_array_equal(np.asarray(found), np.broadcast_to(X[2], X.shape))


def test_derivatives_of_collectives_equal_jax_s():
    def pulled(body):
        def program(jax):
            f = body(jax.lax)
            return jax.vmap(lambda x: jax.vjp(f, x)[1](f(x)), axis_name="i")

        return program

    def pulled_outside(body):
        def program(jax):
            f = jax.vmap(body(jax.lax), axis_name="i")
            return lambda x: jax.vjp(f, x)[1](f(x))

        return program

    bodies = [
        ("psum", by_name("psum", "i"), X),
        ("pmean", by_name("pmean", "i"), X),
        ("gather", by_name("all_gather", "i", axis=1, tiled=True), Y),
        ("scatter", by_name("psum_scatter", "i"), array(4, 4, 2)),
        ("swap", by_name("all_to_all", "i", 0, 1, tiled=True), array(4, 8, 2)),
    ]
    sweep(
        [Case(f"{n}-inside", pulled(b), (x,)) for n, b, x in bodies]
        + [Case(f"{n}-outside", pulled_outside(b), (x,)) for n, b, x in bodies]
    )


def test_places_in_an_axis_equal_jax_s():
    cases = [
        Case(f"{name}", over(lambda lax, n=name: lambda x: getattr(lax, n)("i")), (X,))
        for name in ("axis_index", "axis_size")
    ]
    for name in ("axis_index", "axis_size"):
        body = lambda lax, n=name: lambda x: getattr(lax, n)(("i", "j"))  # noqa: E731
        cases.append(Case(f"{name}-two", over_two(body, ("i", 0), ("j", 0)), (Y,)))
    sweep(cases)


IN_JAXPRS = [
    lambda lax: lambda x: lax.psum(x, "i"),
    lambda lax: lambda x: lax.psum(x, ("i", "k")),
    lambda lax: lambda x: lax.psum(x, ("i", 0)),
    lambda lax: lambda x: lax.pmean(x, "i"),
    lambda lax: lambda x: lax.pmax(x, "i", axis_index_groups=GROUPS),
    lambda lax: lambda x: lax.all_gather(x, "i", axis=1),
    lambda lax: lambda x: lax.all_gather(x, ("i", "k")),
    lambda lax: lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
    lambda lax: lambda x: lax.psum_scatter(x, "i"),
    lambda lax: lambda x: lax.psum_scatter(x, "i", tiled=True),
    lambda lax: lambda x: lax.all_to_all(x, "i", 0, 1),
    lambda lax: lambda x: lax.ppermute(x, "i", [(0, 1)]),
    lambda lax: lambda x: lax.pshuffle(x, "i", [1, 0, 3, 2]),
    lambda lax: lambda x: lax.pbroadcast(x, "i", 1),
    lambda lax: lambda x: lax.axis_index(("i", "k")),
]


def test_jaxprs_name_the_axes_as_jax_s_do():
    sides = minijax, pytest.importorskip("jax")
    for body in IN_JAXPRS:
        ours, theirs = (m.make_jaxpr(body(m.lax), axis_env=[("i", 4), ("k", 2)])(X) for m in sides)
        assert re.sub(r"\s+", " ", str(ours)) == re.sub(r"\s+", " ", str(theirs))


@pytest.mark.parametrize("call", [
    lambda lax: lax.psum(X, "i"), lambda lax: lax.pmax(X, "i"), lambda lax: lax.axis_index("i"),
    lambda lax: lax.axis_size("i"), lambda lax: lax.all_gather(X, "i"),
    lambda lax: lax.pmean(X, ("i", "j"))])  # fmt: skip
def test_names_that_are_not_bound_are_reported(call):
    sides = minijax, pytest.importorskip("jax")
    same_error(*(lambda m=m: call(m.lax) for m in sides), phrases=["unbound axis name: i"])


def test_extrema_have_no_derivative():
    def push(x):
        return minijax.jvp(lambda x: minijax.lax.pmax(x, "i"), (x,), (x,))

    with pytest.raises(NotImplementedError, match="Differentiation rule for 'pmax' not implemented"):
        minijax.vmap(push, axis_name="i")(X)


def test_a_collective_without_a_mesh_raises():
    send = minijax.jit(lambda x: minijax.lax.ppermute_p.bind(x, axis_name=("i",), perm=((0, 1),)))
    with pytest.raises(NameError, match="unbound axis name: i"):
        send(X)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["pmax", "pmin", "psum", "psum_scatter"])
def test_collectives_of_booleans_have_the_dtype_of_jax(name):
    def program(jax, lax):
        return jax.vmap(
            lambda x, y: getattr(lax, name)(y if name == "psum_scatter" else x, "i"), (0, None), axis_name="i"
        )

    cases = [Case(name, program, (np.arange(3) > 1, np.arange(3) > 0))]
    if name == "psum":
        cases.append(Case("psum over no axis", lambda jax, lax: lambda x: lax.psum(x, ()), (np.arange(3) > 1,)))
    if name == "psum_scatter":
        differing = lambda jax, lax: jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")  # noqa: E731
        cases.append(Case("psum_scatter of rows", differing, (np.eye(3) > 0,), raises=True))
    sweep(cases)


@pytest.mark.oracle
@pytest.mark.parametrize("names", [("j", "i"), ("i", "j", "k"), ("k", "i", "j")])
def test_exchanges_over_several_mapped_axes_give_jax_s_values(names):
    sizes = {"i": 3, "j": 2, "k": 2}
    n = int(np.prod([sizes[name] for name in names]))
    x = np.arange(12.0 * n * n * 2).reshape(3, 2, 2, n, n, 2)
    dim, x = 2, np.moveaxis(x, 2, 4)

    def program(jax, lax):
        exchange = lambda split, concat, tiled: jax.vmap(jax.vmap(jax.vmap(  # noqa: E731
            lambda x: lax.all_to_all(x, names, split, concat, tiled=tiled), dim, axis_name="k"),
            axis_name="j"), axis_name="i")(x)  # fmt: skip
        return [exchange(a, b, tiled) for a, b, tiled in ((0, 1, True), (1, 0, False), (1, 1, True))]

    same(program)


VALUES_BY_KIND = {
    "constants": lambda jnp, lax: [
        *(1.5, 2, True, 1j, np.float32(2), np.int8(3), np.zeros(2, bool), np.arange(2)),
        *(jnp.asarray(1.5), jnp.asarray(True)),
    ],
    "weak": lambda jnp, lax: [
        *(lax.full((3,), 1.0), lax.full((3,), 2), lax.full((3,), 1j), jnp.zeros(3, bool)),
        jnp.asarray(2) * jnp.asarray(3),
    ],
}


@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "pmin", "psum_scatter", "all_gather"])
@pytest.mark.parametrize("kind", VALUES_BY_KIND)
def test_values_that_do_not_vary_keep_jax_s_types(name, kind):
    def program(jax, jnp, lax):
        found = []
        for c in VALUES_BY_KIND[kind](jnp, lax):
            if np.ndim(c) == 0 and name in ("psum_scatter", "all_gather"):
                continue
            for g in (lambda c: getattr(lax, name)(c, "n"), lambda c: getattr(lax, name)(c * 1, "n")):
                f = jax.vmap(lambda v: g(c), axis_name="n")  # noqa: B023
                try:
                    found.append(jax.typeof(f(np.ones(np.shape(c) or 3))).str_short())
                except (TypeError, ValueError) as error:
                    found.append(type(error).__name__)
        return found

    same(program)


def test_extrema_of_complex_numbers_over_a_mapped_axis_are_compared_by_parts():
    x = np.array([1 + 2j, 1 - 3j, 0.5], np.complex64)
    for name in ("pmin", "pmax"):

        def program(jax, jnp, lax):
            return lambda x: jax.vmap(lambda v: getattr(lax, name)(v, "n"), axis_name="n")(x)  # noqa: B023

        check(Case(name, program, (x,)))


KEYS = {
    "keys": lambda jax: jax.random.split(jax.random.key(0), 3),
    "float0": lambda jax: np.zeros(3, jax.dtypes.float0),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("name", ["pmax", "pmin", "psum"])
def test_what_is_no_number_is_reduced_over_a_named_axis_until_it_is_computed(name, kind):
    def mapped(jax):
        return jax.vmap(lambda x: getattr(jax.lax, name)(x, "i"), axis_name="i")

    same_printed("jaxpr", lambda jax: normal(str(jax.make_jaxpr(mapped(jax))(KEYS[kind](jax)))), name, kind)
    same_refusal(lambda jax: lambda: jax.jit(mapped(jax))(KEYS[kind](jax)))
    same_refusal(lambda jax: lambda: jax.vmap(lambda x: jax.lax.pmean(x, "i"), axis_name="i")(KEYS[kind](jax)))


@pytest.mark.parametrize("inner", [0, 1])
@pytest.mark.parametrize("outer", [0, 1, 2])
@pytest.mark.parametrize("name", ["pmax", "psum", "pmean"])
def test_an_outer_axis_goes_first_where_a_mapped_axis_was_reduced(name, outer, inner):
    def program(jax):
        mapped = jax.vmap(lambda x: getattr(jax.lax, name)(x, "i"), inner, axis_name="i")
        return jax.vmap(jax.vmap(mapped, outer), 1)

    same_jaxpr(program, np.ones((2, 3, 4, 5), np.float32))


@pytest.mark.parametrize("name", ["psum", "all_gather", "axis_index"])
def test_an_axis_that_is_bound_no_more_is_refused_where_it_is_lowered(name):
    def program(jax):
        body = (lambda x: x * jax.lax.axis_index("i")) if name == "axis_index" else by_name(name, "i")(jax.lax)
        closed = jax.make_jaxpr(body, axis_env=[("i", 3)])(X)
        return lambda: jax.jit(lambda x: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x))(X)

    same_refusal(program, ["unbound axis name: i"])


def test_a_broadcast_is_refused_on_platforms_without_it():
    def program(jax):
        mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        spec = jax.P("i")
        sent = jax.shard_map(lambda x: jax.lax.pbroadcast(x, "i", 0), mesh=mesh, in_specs=spec, out_specs=spec)
        return lambda: jax.jit(sent).lower(X)

    same_refusal(program, ["MLIR translation rule for primitive 'pbroadcast' not found for platform cpu"])
