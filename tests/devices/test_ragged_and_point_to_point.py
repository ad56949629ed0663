"""`ragged_all_to_all`, `psend` and `precv`: jaxprs and modules, against jax; XLA runs none of them on CPUs."""

import compare
import numpy as np
import pytest
from mesh_language import side

pytestmark = pytest.mark.oracle

I32 = np.int32


def ragged(*trail, rows=(8, 12), dtype=np.float32, index=I32, mapped=()):
    """Operand, output, offsets and sizes, equal on each of the four devices."""
    shapes = [(rows[0], *trail), (rows[1], *trail)]
    arrays = [np.arange(np.prod(s), dtype=np.float32).reshape(s).astype(dtype) for s in shapes]
    arrays += [np.array(x, index) for x in ([0, 1, 3, 4], [1, 2, 1, 1], [0, 1, 2, 3], [1, 1, 2, 1])]
    return tuple(np.stack([np.concatenate([x] * 4)] * 2) if mapped else np.concatenate([x] * 4) for x in arrays)


def over(body, check_vma=True, mapped=()):
    """`body(n, exchange, *operands)` under `shard_map` over four devices."""

    def program(jax):
        n = side(jax.__name__)
        spec = n.P(*mapped, "x")
        options = dict(mesh=n.mesh, in_specs=spec, out_specs=spec, check_vma=check_vma)
        exchange = lambda *xs, **how: n.lax.ragged_all_to_all(*xs, axis_name="x", **how)  # noqa: E731
        return jax.shard_map(lambda *xs: body(n, exchange, *xs), **options)

    return program


def pulled(n, f, x, out, *rest):
    return n.jax.vjp(lambda x, out: f(x, out, *rest), x, out)[1](out + 1)


def pushed(n, f, x, out, *rest):
    return n.jax.jvp(lambda x, out: f(x, out, *rest), (x, out), (x, out))[1]


PLAIN = lambda n, f, *xs: f(*xs)  # noqa: E731
RAGGED = {
    "plain": (PLAIN, ragged()),
    "rows": (PLAIN, ragged(3, 2)),
    "integers": (PLAIN, ragged(dtype=I32)),
    "uint32 offsets": (PLAIN, ragged(index=np.uint32)),
    "groups": (lambda n, f, *xs: f(*xs, axis_index_groups=[[0, 1], [2, 3]]), ragged()),
    "jvp": (pushed, ragged()),
    "jvp of the operand": (lambda n, f, x, *xs: n.jax.jvp(lambda x: f(x, *xs), (x,), (x,))[1], ragged()),
    "jvp of the output": (lambda n, f, x, out, *xs: n.jax.jvp(lambda out: f(x, out, *xs), (out,), (out,))[1], ragged()),
    "no derivative": (
        lambda n, f, *xs: n.jax.jvp(
            lambda i: f(*xs[:2], i, *xs[3:]), xs[2:3], (np.zeros(xs[2].shape, n.jax.dtypes.float0),)
        )[0],
        ragged(),
    ),
    "vjp": (pulled, ragged()),
    "vjp of rows": (pulled, ragged(3, 2, index=np.int16)),
    "grad of the operand": (lambda n, f, x, *xs: n.jax.grad(lambda x: (f(x, *xs) ** 2).sum())(x), ragged()),
    "vmap": (lambda n, f, *xs: n.jax.vmap(f)(*xs), ragged(mapped=(None,))),
    "vmap of rows": (lambda n, f, *xs: n.jax.vmap(f)(*xs), ragged(3, index=np.int16, mapped=(None,))),
    "vmap along others": (
        lambda n, f, *xs: n.jax.vmap(f, (1, 0, 1, 0, 1, 0), 1)(*(x.T if i % 2 == 0 else x for i, x in enumerate(xs))),
        ragged(mapped=(None,)),
    ),
    "vmap of vjp": (lambda n, f, *xs: n.jax.vmap(lambda *xs: pulled(n, f, *xs))(*xs), ragged(mapped=(None,))),
    "vmap of offsets": (
        lambda n, f, x, out, *xs: n.jax.vmap(f, (None, None, 0, 0, 0, 0))(x[0], out[0], *xs),
        ragged(mapped=(None,)),
    ),
}


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", RAGGED)
def test_ragged_exchanges_equal_jax_s(name, check_vma):
    body, args = RAGGED[name]
    program = over(body, check_vma, (None,) if args[0].shape[0] == 2 else ())
    compare.same_jaxpr(program, *args)
    compare.same_text(program, *args)


def misuse(**changes):
    """The exchange with other operands, numbered."""
    return lambda n, f, *xs: f(*(changes.get(f"_{i}", x) for i, x in enumerate(xs)))


PARTLY = dict(in_axes=(0, 0, None, None, None, None))
ERRORS = {
    **{
        f"{kind} {i}": misuse(**{f"_{i}": value})
        for i in range(2, 6)
        for kind, value in dict(
            rank=np.zeros((4, 1), I32), empty=np.zeros(0, I32), floats=np.zeros(4, np.float32)
        ).items()
    },
    "partly mapped": lambda n, f, x, out, *xs: n.jax.vmap(f, **PARTLY)(n.jnp.stack([x]), n.jnp.stack([out]), *xs),
}
OUTSIDE = {
    "eager": lambda n, f, *xs: f(*xs),
    "traced": lambda n, f, *xs: n.jax.jit(f)(*xs),
    "under vmap": lambda n, f, *xs: n.jax.vmap(f, axis_name="x")(*(x.reshape(4, -1) for x in xs)),
}


@pytest.mark.parametrize("name", [*ERRORS, *OUTSIDE])
def test_misuse_of_ragged_exchanges_raises_what_jax_raises(name):
    def program(jax):
        if name in ERRORS:
            return lambda: jax.make_jaxpr(over(ERRORS[name])(jax))(*ragged())
        n = side(jax.__name__)
        exchange = lambda *xs: n.lax.ragged_all_to_all(*xs, axis_name="x")  # noqa: E731
        return lambda: OUTSIDE[name](n, exchange, *ragged())

    compare.same_refusal(program)


PAIRS = [(0, 1), (1, 2)]


def sent(n, f, x, pairs=PAIRS):
    return n.lax.precv(n.lax.psend(x, "x", pairs), n.jax.ShapeDtypeStruct(x.shape, x.dtype), "x", pairs)


def ordered(n, f, x):
    tokens = [*n.lax.psend([x, x + 1], "x", PAIRS), n.lax.create_token()]
    return n.lax.precv(n.lax.after_all(*tokens), n.jax.ShapeDtypeStruct((2,), np.int8), ("x",), [[2, 3]])


X = np.arange(8, dtype=np.float32)
POINTS = {
    "both": sent,
    "ordered": ordered,
    "of a constant": lambda n, f, x: sent(n, f, np.ones(2, np.float32)),
    "received": lambda n, f, x: n.lax.precv(n.lax.create_token(), n.jax.ShapeDtypeStruct((3,), "bool"), "x", PAIRS),
}


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", POINTS)
def test_point_to_point_programs_equal_jax_s(name, check_vma):
    program = over(POINTS[name], check_vma)
    compare.same_jaxpr(program, X)

    def text(jax):
        lowered = jax.jit(program(jax)).trace(X).lower(lowering_platforms=("cuda",))
        return compare.canonical(lowered.as_text())

    compare.same(text)


@pytest.mark.parametrize(
    "body",
    [sent, lambda n, f, x: n.jax.grad(lambda x: sent(n, f, x).sum())(x),
     lambda n, f, x: n.lax.precv(n.lax.create_token(), (2,), "x", PAIRS)],
)  # fmt: skip
def test_unsupported_sends_raise_what_jax_raises(body):
    compare.same_refusal(lambda jax: lambda: jax.jit(over(body)(jax)).lower(X))


@pytest.mark.parametrize("pairs", [[(0, 1), (0, 2)], [(0, 1), (2, 1)], [(0, 9)]])
def test_pairs_that_do_not_fit_raise_what_jax_raises(pairs):
    def program(jax):
        traced = jax.jit(over(lambda n, f, x: sent(n, f, x, pairs))(jax)).trace(X)
        return lambda: traced.lower(lowering_platforms=("cuda",))

    compare.same_refusal(program)


@pytest.mark.parametrize(
    "call",
    [
        lambda jax, lax: lax.psend(X, "x", PAIRS),
        lambda jax, lax: lax.precv(lax.create_token(), jax.typeof(X), "x", PAIRS),
    ],
    ids=["psend", "precv"],
)
def test_sends_outside_of_a_mapped_axis_raise_what_jax_raises(call):
    def program(jax, lax):
        return lambda: call(jax, lax)

    compare.same_refusal(program)
