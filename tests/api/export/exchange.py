"""A hundred small programs, which each side exports, and the other reads, runs and differentiates."""

import zlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import compare
import mesh_language
import numpy as np

X, Y = mesh_language.numbers(2, 3), mesh_language.numbers(3, 2)
V, W = np.float32([0.25, 0.5, 0.75]), np.float32([1.5, -2, 0.5])
S = np.float32([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]])
N, U, B = np.int32([3, 1, 2]), np.uint8([1, 200, 7]), np.bool_([True, False, True])
Z = np.complex64([1 + 2j, -0.5j, 3])
VALUES = dict(X=X, Y=Y, V=V, W=W, S=S, N=N, U=U, B=B, Z=Z)

# Results are float arrays, or have some: those have gradients.
SMOOTH = """
jnp.sin(V) + jnp.cos(W)
jnp.exp(V) * W
X @ Y
jnp.dot(V, W)
jnp.tanh(X).sum(0)
jnp.log1p(V).mean()
X.T * 2
X[::2, 1:]
jnp.where(X > 0, X, 0.1 * X)
jnp.concatenate([V, W])
jnp.stack([V, W], 1)
jnp.pad(X, ((1, 0), (0, 2)))
jax.nn.softmax(X)
jax.nn.relu(X) + 1
jax.nn.logsumexp(X, 1)
jnp.cumsum(V)
jnp.cumprod(W)
jnp.sort(W)
jnp.max(X, 1)
jnp.prod(V)
jnp.linalg.cholesky(S)
jnp.linalg.solve(S, V)
jnp.linalg.inv(S)
jnp.linalg.det(S)
jnp.linalg.qr(S)[1] ** 2
jnp.linalg.norm(X)
jax.scipy.linalg.solve_triangular(S, V)
lax.fori_loop(0, 3, lambda i, c: c * V + i, W)
lax.scan(lambda c, x: (c + x, c * x), 0.5, V)
lax.cond(V[0] > 0, jnp.sin, jnp.cos, W)
lax.switch(1, [jnp.sin, jnp.cos, jnp.tan], V)
lax.map(jnp.sin, X)
jax.vmap(jnp.dot, (0, None))(X, V)
jax.grad(lambda v: (v**3).sum())(V)
jax.jvp(jnp.sin, (V,), (W,))
jax.jacfwd(lambda v: v * v)(V)
jax.checkpoint(jnp.sin)(V) * W
jax.jit(lambda v: jax.jit(jnp.sin)(v) + 1)(V)
jax.nn.gelu(V)
jax.scipy.special.erf(V)
jax.scipy.special.erfinv(V)
jax.scipy.special.gammaln(V)
jax.scipy.special.betainc(1.0, 2.0, V)
jnp.arctan2(V, W)
jnp.power(V, W)
jnp.einsum("ij,jk->ik", X, Y)
jnp.tensordot(X, Y, 1)
jnp.outer(V, W)
lax.dot_general(X, Y, (((1,), (0,)), ((), ())))
lax.conv(X[None, None], S[None, None, :2, :2], (1, 1), "SAME")
lax.reduce_window(V, 0.0, lax.add, (2,), (1,), "VALID")
lax.rev(X, (1,))
lax.dynamic_slice(X, (1, 0), (1, 2))
lax.dynamic_update_slice(X, Y[:1], (0, 1))
X.at[0, 1].add(2.0)
X.at[N[:1]].set(0.5)
X[:, N - 1]
jnp.take(V, N - 1)
jnp.roll(X, 1, 1)
jnp.fft.fft(V).real
jnp.abs(Z * V)
{"a": V, "b": [W, (X,)]}
(V, None, {"k": W * 2})
V.astype(jnp.bfloat16) * 2
V.astype(jnp.float16) + W.astype(jnp.float16)
lax.custom_linear_solve(lambda v: S @ v, V, lambda _, b: jnp.linalg.solve(S, b), symmetric=True)
jnp.interp(V, V, W)
jnp.convolve(V, W)
jnp.trace(S) * V
jnp.tril(S) @ V
""".strip().splitlines()

OTHERS = """
jnp.argsort(N)
N + 1
N // 2 * U
N % 2
jnp.bitwise_xor(N, 5)
U.astype(jnp.int8) << 1
B & ~B
B.sum()
Z * 2j
jnp.conj(Z)
jnp.argmax(X)
X > 0
jnp.isfinite(X)
jax.random.uniform(jax.random.key(0), (3,)) + V
jax.random.split(jax.random.key(1))
jax.random.key_data(jax.random.key(2))
jax.random.bits(jax.random.key(0, impl="rbg"), (2,))
jax.random.wrap_key_data(U[:2].astype("uint32"))
lax.while_loop(lambda c: c[0] < 20, lambda c: c * 2, N)
lax.top_k(V, 2)
jnp.unique(N, size=3)
jnp.searchsorted(V, W)
lax.population_count(N)
lax.platform_dependent(V, cpu=jnp.sin, default=jnp.cos)
jnp.zeros((0, 3)) + V
jnp.linalg.eigvals(S)
jnp.linalg.svd(S, compute_uv=False)
lax.bitcast_convert_type(V, np.int32)
V.astype(jnp.int4)
V.astype(jnp.float8_e4m3fn)
1.5
""".strip().splitlines()


def exported(side: SimpleNamespace, line: str, values: dict[str, Any], platforms: Sequence[str] | None = None) -> Any:
    """Exports an expression on one side."""
    source = f"lambda {', '.join(values)}: {line}"
    return side.export.export(side.jax.jit(eval(source, vars(side))), platforms=platforms)(*values.values())


def side_of(package: Any) -> SimpleNamespace:
    """The names of a side, with its `export`."""
    side = mesh_language.side(package.__name__)
    side.export = __import__(f"{package.__name__}.export", fromlist=["export"])
    return side


def values_of(line: str) -> dict[str, Any]:
    """The arguments of an expression."""
    return {name: value for name, value in VALUES.items() if any(name == part for part in _words(line))}


def _words(line):
    return "".join(c if c.isalnum() or c == "_" else " " for c in line).split()


def exchanged(line: str, order: int, platforms: Sequence[str] | None = None) -> None:
    """Require that each side runs what the other wrote, with gradients if `order`, and has the same types and trees."""
    values = values_of(line)
    ours, theirs = (side_of(package) for package in (compare.ours(), compare.theirs()))
    our_blob, their_blob = [exported(s, line, values, platforms).serialize(vjp_order=order) for s in (ours, theirs)]
    results = []
    for reader, blob in ((ours, our_blob), (ours, their_blob), (theirs, our_blob), (theirs, their_blob)):
        program = reader.export.deserialize(blob)
        results.append([_facts(program), _leaves(reader, program.call(*values.values()))])
        if order:
            results[-1].append(_gradients(reader, program.call, values, order))
    for other in results[:-1]:
        compare.same_value(other, results[-1], rtol=2e-5, atol=2e-6, why="compiled apart")


def _facts(program):
    names = "fun_name in_avals out_avals platforms nr_devices calling_convention_version module_kept_var_idx in_tree out_tree"
    return [compare.normal(str(getattr(program, name))) for name in names.split()]


def _leaves(side, tree):
    return [np.asarray(_plain(side, x)) for x in side.jax.tree.leaves(tree)]


def _plain(side, x):
    if side.jax.dtypes.issubdtype(x.dtype, side.jax.dtypes.prng_key):
        return side.jax.random.key_data(x)
    return x


def _gradients(side, call: Callable, values: dict[str, Any], order: int) -> list:
    at = [i for i, x in enumerate(values.values()) if x.dtype == np.float32]

    def total(*args):
        leaves = side.jax.tree.leaves(call(*args))
        return sum((x.astype("float32") ** 2).sum() for x in leaves if side.jnp.issubdtype(x.dtype, np.floating))

    derivative = side.jax.grad(total, at)
    if order > 1:
        first = derivative
        derivative = side.jax.grad(lambda *args: sum(g.sum() for g in first(*args)), at)
    return list(map(np.asarray, derivative(*values.values())))


def order_of(line: str) -> int:
    """How many derivatives of a smooth program are serialized: of some two."""
    return 2 if zlib.crc32(line.encode()) % 8 == 0 else 1
