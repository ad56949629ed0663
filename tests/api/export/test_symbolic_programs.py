"""Programs of symbolic shapes: their jaxprs, their types, and their values at three sizes are those of jax.

Each is exported once; what minijax writes, jax reads and runs too.
"""

import functools
import importlib
import re

import numpy as np
import pytest
from compare import both, same

# Shapes of the arguments, and functions of x, or of x and y.
PROGRAMS = {
    "a": """
        jnp.cumsum(x); jnp.sort(x), jnp.argsort(x); jnp.argmax(x); jnp.pad(x, 1); jnp.flip(x); jnp.roll(x, 1)
        x[1:], x[:-1], x[::2], x[-1:], x[:3]; x[::-1]; x[0], x[-1]; x[:: x.shape[0]], x[0 : a : a]; x[a : None : -a]; x[jnp.array([0, -1])]; x[jnp.arange(x.shape[0])]
        x.at[0].set(7.0), x.at[1:].add(1.0); x * x.shape[0] + x.size, x.astype("int8") * x.shape[0]; jnp.arange(x.shape[0]), jnp.arange(2, 2 * x.shape[0])
        jnp.eye(x.shape[0]); jnp.outer(x, x); jnp.array([x.shape[0], 2]); jnp.linspace(0.0, 1.0, x.shape[0] + 1)
        jnp.mean(x), jnp.var(x), jnp.std(x); jnp.median(x); lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0)
        lax.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] + x), (0, x))
        lax.cond(x[0] * 2 < jnp.sum(x), jnp.sin, jnp.cos, x); jnp.concatenate([x, x[:1], jnp.zeros(x.shape[0] // 2)])
        jax.grad(lambda x: jnp.mean(jnp.sin(x) * x))(x); jax.vmap(lambda r: r * x)(x); jax.jvp(jnp.cumsum, (x,), (x,))
        jax.random.normal(jax.random.key(0), x.shape); jax.random.uniform(jax.random.key(1), (x.shape[0], 2))
        jnp.full_like(x, x.shape[0]); jnp.ones(x.shape[0] % 3 + 1); jax.jit(lambda v: v[: x.shape[0] - 1])(x)
        jnp.roll(x, x.shape[0] // 2); jnp.roll(x, (x.shape[0], -1), (0, 0)), jnp.fft.fftshift(x), jnp.fft.ifftshift(x); jnp.abs(jnp.fft.fft(x, n=3)), jnp.fft.irfft(x, n=4)
        jax.jit(lambda i: x[i] + lax.dynamic_slice(x, (i,), (1,)))(1), lax.dynamic_slice(jnp.outer(x, x), (0, jnp.argmin(x)), (1, 1)), lax.dynamic_slice(x, (-1,), (1,))
        lax.dynamic_slice(x, (1,), (x.shape[0] - 1,)), lax.dynamic_slice(x, (jnp.argmax(x),), (x.shape[0] - 1,)); lax.dynamic_update_slice(x, x[:1], (1,)); jnp.where(x > 1, x, 0)
    """,
    "a, b": """
        x @ x.T; jnp.einsum("ij,kj->ik", x, x); x.reshape(-1), x.reshape(b * a), x.T.reshape(b, a); jnp.sum(x, 0)
        jax.nn.softmax(x); jax.nn.one_hot(jnp.argmax(x, 1), x.shape[1]); jnp.tril(x), jnp.triu(x, 1); jnp.tile(x, (2, 1))
        jnp.repeat(x, 2, axis=0); jnp.stack([x, x]), x[:, None], x.T; jnp.take(x, jnp.array([0]), axis=0); x[:, :b]
        lax.scan(lambda c, row: (c + row, jnp.sum(row)), jnp.zeros(x.shape[1]), x); jnp.broadcast_to(x, (2, *x.shape))
        jax.vmap(jnp.cumsum)(x); jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))(x); jax.jit(jax.vmap(jnp.max))(x)
        lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "SAME"); lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "VALID")
        jnp.linalg.norm(x), jnp.sqrt(jnp.sum(x * x, 1)); jax.checkpoint(lambda x: jnp.sin(x) * x.shape[0])(x)
        jax.vmap(jax.grad(lambda row: jnp.sum(row**2) / row.shape[0]))(x); jax.hessian(lambda v: jnp.sum(v**3))(x[0])
        jnp.tril_indices(x.shape[0]), jnp.triu_indices(x.shape[1]), jnp.triu_indices(x.shape[0], x.shape[0] - 1); jnp.tril_indices(4, 1, 3)
        jnp.nonzero(x > 1, size=x.shape[0]), jnp.mask_indices(x.shape[0], jnp.triu, 1, size=3); jnp.pad(x, ((2 * a, a), (0, 0)), mode="wrap")
        jax.random.key_data(jax.random.split(jax.random.key(0), x.shape)); jnp.pad(x, ((a - 1, 1), (0, 0)), mode="reflect", reflect_type="odd")
    """,
    "2*a, 3": """
        jnp.split(x, 2); x.reshape(2, -1, 3); x.reshape(-1, 2, 3).sum(1); x[: x.shape[0] // 2], x[x.shape[0] // 2 :]
        lax.map(lambda row: row @ row, x); jnp.linalg.qr(x.T @ x)[1]; jnp.linalg.cholesky(x.T @ x + jnp.eye(3))
    """,
    "a, 2, c, c": """
        lax.conv_general_dilated(x, jnp.ones((3, 2, 2, 2)), (1, 1), "SAME"); jnp.linalg.inv(x + 9 * jnp.eye(x.shape[-1]))
        lax.conv_general_dilated(x, jnp.ones((3, 2, 2, 2)), (2, 2), "SAME"); jnp.linalg.det(x + 9 * jnp.eye(x.shape[-1]))
        lax.conv_general_dilated(x, jnp.ones((3, 2, 2, 2)), (2, 2), "VALID"); jnp.linalg.eigvalsh(x + x.mT); lax.linalg.triangular_solve(x + 9 * jnp.eye(x.shape[-1]), x, lower=True, left_side=True)
    """,
}
CASES = [
    (spec, e.strip()) for spec, rows in PROGRAMS.items() for row in rows.strip().splitlines() for e in row.split("; ")
]
SIZES = [{"a": 3, "b": 2, "c": 2}, {"a": 4, "b": 5, "c": 3}, {"a": 2, "b": 1, "c": 1}]
# jax copies a start, or a step, that is a dimension, reads the one column of a solution by a gather, and maps a Hessian over a
# basis that is whole, which here is split.
OTHER_JAXPRS = (
    "x[::-1]", "x[:: x.shape[0]], x[0 : a : a]", "x[a : None : -a]", "jax.hessian(lambda v: jnp.sum(v**3))(x[0])", "jnp.linalg.inv(x + 9 * jnp.eye(x.shape[-1]))",
    "jnp.linalg.det(x + 9 * jnp.eye(x.shape[-1]))",
)  # fmt: skip
# Sums of another order, and factors that are unique up to rounding.
CLOSE = dict(rtol=2e-5, atol=2e-6)
SAME_CLOSE = dict(CLOSE, why="sums of another order, and factors that are unique up to rounding")


def function_of(package, line):
    jax = importlib.import_module(package)
    names = {"jax": jax, "jnp": importlib.import_module(f"{package}.numpy"), "lax": jax.lax}

    def program(x):
        sizes = dict(zip("ab", x.shape, strict=False))
        return eval(line, {**names, **sizes, "x": x})

    return jax, program


def argument(spec, sizes):
    shape = [eval(d, dict(sizes)) for d in spec.split(", ")]
    return (np.random.RandomState(0).permutation(int(np.prod(shape))).reshape(shape) * 0.25).astype(np.float32)


@functools.lru_cache(maxsize=2)
def exported(package, spec, line):
    jax, program = function_of(package, line)
    export = importlib.import_module(f"{package}.export")
    shape = export.symbolic_shape(spec, constraints=["a >= 2"] if "a" in spec else [])
    described = jax.ShapeDtypeStruct(shape, np.float32)
    return export.export(jax.jit(program))(described), str(jax.make_jaxpr(program)(described))


@pytest.mark.oracle
@pytest.mark.parametrize("spec, line", CASES, ids=[line for _, line in CASES])
def test_programs_are_those_of_jax(spec, line):
    operations = lambda jax: operations_in(exported(jax.__name__, spec, line)[1])  # noqa: E731
    if line in OTHER_JAXPRS:
        ours, theirs = both(operations)
        assert ours != theirs
    else:
        same(operations)
    same(lambda jax: list(map(str, exported(jax.__name__, spec, line)[0].out_avals)))
    same(lambda jax: values_of(exported(jax.__name__, spec, line)[0], spec), **SAME_CLOSE)


@pytest.mark.oracle
@pytest.mark.parametrize("spec, line", CASES, ids=[line for _, line in CASES])
def test_programs_that_are_written_are_read_by_jax(spec, line):
    written, _ = exported("minijax", spec, line)
    data = written.serialize()

    def read(jax):
        return values_of(importlib.import_module(f"{jax.__name__}.export").deserialize(data), spec)

    same(read)
    for mine, want in zip(read(importlib.import_module("minijax")), values_of(written, spec), strict=True):
        np.testing.assert_array_equal(mine, want)


def values_of(program, spec):
    """The results of an exported program at each of the sizes, as a list of leaves."""
    tree = importlib.import_module("minijax.tree")
    return [leaf for sizes in SIZES for leaf in tree.leaves(program.call(argument(spec, sizes)))]


def operations_in(jaxpr):
    """The operations of a jaxpr, in any order: where dimensions become values is free."""
    return sorted(re.findall(r"\w+\[[^\]]*\] = (?!dim_as_value|convert_element_type)(\w+)", jaxpr))


# Programs that jax refuses for symbolic sizes; the results are those of jax for known sizes.
BEYOND = (
    "jnp.tril_indices(a, 0, b), jnp.tril_indices(a, a - 1), jnp.tril_indices(b, a - 2, a)",
    "jnp.triu_indices(a, -1, b), jnp.triu_indices_from(x, 1 - b), jnp.triu_indices(5, a)",
    "jnp.diag_indices(a)", "jnp.pad(x, ((0, 0), (b, b + 1)), mode='symmetric')",
    "jnp.repeat(x, a, axis=1, total_repeat_length=9)",
)  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("line", BEYOND)
def test_more_programs_than_those_of_jax(line):

    def program(jax):
        if jax.__name__ == "minijax":
            return values_of(exported("minijax", "a, b", line)[0], "a, b")
        f = function_of("jax", line)[1]
        return [leaf for sizes in SIZES for leaf in jax.tree.leaves(f(argument("a, b", sizes)))]

    same(program)


BITS = (
    "jax.random.bits(jax.random.key(0), x.shape)", "jax.random.key_data(jax.random.split(jax.random.key(0), a))",
    "jax.random.normal(jax.random.key(0), x.shape)", "jax.random.categorical(jax.random.key(0), x)",
)  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("line", BITS)
def test_bits_in_order_of_sizes_that_may_be_odd(line):
    def program(jax):
        with jax.threefry_partitionable(False):
            return values_of(exported.__wrapped__(jax.__name__, "a, b", line)[0], "a, b")

    same(program, **SAME_CLOSE)


# Shapes, and programs that are refused, with jax's class and the phrases that programs match on.
REFUSED = (
    ("a, 2, 4", "x.reshape(a, -1, 3)", "Cannot divide evenly the sizes of shapes"),
    ("2*c + 1", "x.reshape(2, -1)", "Cannot divide evenly the sizes of shapes"),
    ("2, c", "jnp.split(x, x.shape[1], 1)", "symbolic number of sections is not supported"),
    ("c", "jnp.array_split(x, x.shape[0])", "symbolic number of sections is not supported"),
    ("c", "jnp.pad(x, 1, mode='reflect')", "Shape polymorphism is supported for jnp.pad"),
    ("c", "jnp.pad(x, (x.shape[0] + 1, 0), mode='wrap')", "inconclusive"),
    ("c", "jnp.arange(0, x.shape[0], x.shape[0] - 2)", "must be resolved statically if it is > 0 or < 0"),
    ("c, d", "lax.linalg.eigh(x, symmetrize_input=False)", "Argument to symmetric eigendecomposition must have shape"),
    ("c, d", "lax.linalg.hessenberg(x)", "Argument to Hessenberg reduction must have shape"),
)


@pytest.mark.oracle
@pytest.mark.parametrize("spec, line, words", REFUSED, ids=[line for _, line, _ in REFUSED])
def test_refused_programs(spec, line, words):
    def refused(jax):
        with pytest.raises(Exception, match=words) as caught:
            exported(jax.__name__, spec, line)
        return caught.type.__name__

    same(refused)


@pytest.mark.parametrize("constraint", ["mod(a, 4) == 0", "mod(a, -4) == 0"])
def test_constraints_define_divisibility(constraint):
    """jax takes the second, as its messages have it; the first it cannot use here."""
    jax, export = importlib.import_module("minijax"), importlib.import_module("minijax.export")
    described = jax.ShapeDtypeStruct(export.symbolic_shape("a", constraints=[constraint]), np.float32)
    program = export.export(jax.jit(lambda x: x.reshape(4, -1)))(described)
    for size in (4, 12):
        assert program.call(np.arange(size, dtype=np.float32)).shape == (4, size // 4)
    with pytest.raises(ValueError, match="symbolic shape constraint"):
        program.call(np.arange(6, dtype=np.float32))
