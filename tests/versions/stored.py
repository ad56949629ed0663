"""Results of jax 0.10.2 for a small table of programs, stored in `stored.json`: the oracle where jax 0.10.2 is not installed.

`python tests/versions/stored.py` writes the file anew, in an environment that has jax 0.10.2.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("stored.json")

# By name: an expression over the names of `side`. Together they use each room that asks something of jaxlib.
TABLE = {
    "grad of a sum": "jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(v)",
    "vmap of grad of jit": "jax.vmap(jax.grad(jax.jit(lambda x: jnp.tanh(x) * x)))(v)",
    "hessian": "jax.hessian(lambda x: jnp.prod(jnp.cos(x)))(v)",
    "jvp of scan": "jax.jvp(lambda x: lax.scan(lambda c, y: (c * y, c + y), x, v), (2.0,), (1.0,))",
    "grad of checkpoint": "jax.grad(jax.checkpoint(lambda x: jnp.exp(jnp.sin(x)).sum()))(v)",
    "while": "lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2.0), (0, v))",
    "cond of a batch": "jax.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(v)",
    "weak types": "(v * 2, jnp.int8(3) + 1, 1 + 2.0 * jnp.arange(3), jnp.asarray(1.5))",
    "elementwise": "[f(v / 4) for f in (jnp.exp, jnp.log1p, jnp.cbrt, jnp.arcsinh, lax.erf, lax.lgamma, lax.digamma)]",
    "of several dtypes": "[jnp.arange(5).astype(d) * jnp.ones(5, d) + jnp.asarray(1, d) for d in DTYPES]",
    "complex": "(jnp.exp(v + 1j * v), jnp.angle(v + 1j), jnp.sqrt(-v + 0j))",
    "products": "(m @ m, jnp.einsum('ij,kj->ik', m, m), jnp.dot(m, v), lax.dot(m.astype(jnp.bfloat16), m.astype('bfloat16')))",
    "reductions": "(m.sum(0), m.max(), jnp.argmin(m, 1), jnp.median(m), jnp.std(m), jnp.cumsum(m, 1), m.prod())",
    "sorts": "(jnp.sort(m, 0), jnp.argsort(-v), lax.top_k(m, 2), jnp.unique(jnp.array([3, 1, 3])), jnp.searchsorted(v, 0.3))",
    "indexing": "(m[1], m[:, ::-1], m[jnp.array([0, 2]), 1], m[m > 0].shape, m.at[1, 1].add(5.0), v.at[9].get(mode='fill'))",
    "shapes": "(m.T, m.reshape(-1), jnp.pad(m, 1), jnp.concatenate([v, v]), jnp.tile(v, 2), jnp.roll(m, 1, 0), v[:0])",
    "convolution": "lax.conv_general_dilated(jnp.ones((1, 2, 5, 5)), jnp.ones((3, 2, 3, 3)), (1, 1), 'SAME')",
    "windows": "lax.reduce_window(m, -jnp.inf, lax.max, (2, 2), (1, 1), 'VALID')",
    "fft": "(jnp.fft.fft(v), jnp.fft.irfft(jnp.fft.rfft(v), 4), jnp.fft.fft2(m))",
    "linear algebra": "(jnp.linalg.svd(m)[1], jnp.linalg.eigvalsh(s), jnp.linalg.cholesky(s), jnp.linalg.solve(s, v), jnp.linalg.det(s), jnp.linalg.inv(s))",
    "eigenvalues and factors": "(jnp.sort(jnp.abs(jnp.linalg.eigvals(s + m))), jnp.linalg.qr(s)[1] ** 2, jsp.linalg.lu(s)[2], jsp.linalg.schur(s)[1] ** 2)",
    "tridiagonal": "lax.linalg.tridiagonal_solve(v * 0, v + 5, v * 0, m)",
    "special functions": "(jsp.special.gammaln(v + 5), jsp.special.i0(v), jsp.special.betainc(1.0, 2.0, 0.3), jsp.special.zeta(2.0, 3.0))",
    "random": "(random.key_data(random.split(key)), random.normal(key, (3,)), random.randint(key, (4,), 0, 99), random.gamma(key, 2.0), random.permutation(key, 5), random.bits(random.key(1, impl='rbg'), (2,)))",
    "bits": "(lax.bitcast_convert_type(v, jnp.int32), lax.population_count(jnp.arange(5)), jnp.nextafter(v, 9.0), lax.reduce_precision(v, 5, 3))",
    "small dtypes": "(jnp.arange(4).astype(jnp.int4), jnp.arange(4).astype(jnp.float8_e4m3fn), jnp.arange(3).astype(jnp.int2) + 1)",
    "strings of types": "(str(jax.typeof(m)), repr(jnp.arange(3)), str(jax.eval_shape(jnp.sin, v)), f'{v[0]:.2f}')",
    "jaxpr": "str(jax.make_jaxpr(jax.grad(lambda x: lax.scan(lambda c, y: (c * jnp.sin(y), c), x, v)[0]))(2.0))",
    "callbacks": "jax.jit(lambda x: jax.pure_callback(lambda y: np.asarray(y) * 2, jax.ShapeDtypeStruct((4,), 'float32'), x))(v)",
    "custom derivatives": "jax.grad(custom)(2.0)",
    "references": "jax.jit(lambda x: refs(x))(v)",
    "donation": "donated(jnp.arange(3.0))",
    "exchange": "(np.from_dlpack(v), jnp.from_dlpack(np.arange(3.0, dtype=np.float32)), np.asarray(v).flags.writeable, pickle.loads(pickle.dumps(v)))",
    "export": "(lambda e: (e.in_avals, e.call(v)))(export(jax.jit(jnp.sin), v))",
    "numpy scalars": "(np.float32(2) * v, v * np.arange(4), np.sin(v), v.__array__().dtype.name, int(v[0]), [*map(float, v)], v.item(1))",
    "sharded": "(lambda a: (jax.jit(lambda x: (x @ x.T).sum(0))(a), str(a.sharding.spec), [s.index for s in a.addressable_shards][3]))(put(jnp.arange(64.0).reshape(8, 8), 'x', 'y'))",
    "sharded results": "(lambda a: [str(b.sharding) for b in (a, a * 2, a.T, a.sum(0))])(put(jnp.ones((8, 8)), 'x', 'y'))",
    "shard_map": "jax.shard_map(lambda x: lax.psum(x * lax.axis_index('x'), 'x'), mesh=mesh, in_specs=P('x'), out_specs=P())(jnp.arange(8.0))",
    "collectives": "jax.shard_map(lambda x: (lax.all_gather(x, 'x', tiled=True), lax.ppermute(x, 'x', [(0, 1), (1, 0)]), lax.all_to_all(lax.all_gather(x, 'x'), 'x', 0, 0)), mesh=mesh, in_specs=P('x'), out_specs=P('x'), check_vma=False)(jnp.arange(8.0))",
    "pmap": "jax.pmap(lambda x: x / lax.psum(x, 'i'), axis_name='i')(jnp.arange(8.0) + 1)",
    "explicit axes": "str(jax.typeof(jax.device_put(jnp.ones(8), jax.NamedSharding(explicit, P('x'))) * 2))",
    "memory kinds": "[str(k) for k in sorted(m.kind for m in jax.devices()[0].addressable_memories())]",
    "resharding": "put(put(jnp.arange(8.0), 'x'), 'y') + 0",
    "analyses": "(lambda c: (sorted(c.cost_analysis())[:2], c.memory_analysis().argument_size_in_bytes))(jax.jit(jnp.sin).lower(v).compile())",
    "x64": "x64(lambda: (jnp.arange(3.0).dtype.name, jnp.linalg.inv(jnp.eye(2) * 3), jnp.sin(1.0)))",
    "NaNs": "nans(lambda: jnp.log(v - 9))",
    "checks": "checkify.checkify(jnp.log, errors=checkify.float_checks)(v)[0].get()[:13]",
    "sparse": "(sparse.BCOO.fromdense(m) @ v, sparse.BCOO.fromdense(m).nse)",
    "trees": "(str(jax.tree.structure({'a': [1, None], 'b': (2,)})), jax.tree.map(lambda x: x + 1, {'a': (1, v)}), jax.tree_util.tree_flatten_with_path([1, {'k': 2}])[0].__repr__())",
    "a wrong shape": "jnp.ones(3) + jnp.ones(4)",
    "a wrong dtype": "lax.add(v, jnp.arange(4))",
    "a wrong index": "v['a']",
    "a tracer's truth": "jax.jit(lambda x: 1 if x > 0 else 2)(1.0)",
    "a deleted array": "deleted(v + 1)",
    "a wrong option": "jax.jit(jnp.sin, compiler_options={'xla_no_such_option': 1})(v)",
    "a failing callback": "jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(fails, jax.ShapeDtypeStruct((), 'float32'), x))(1.0))",
    "a singular matrix": "(jnp.linalg.inv(jnp.zeros((2, 2))), jnp.linalg.cholesky(-s))",
}  # fmt: skip


def side(jax: ModuleType) -> dict[str, Any]:
    """The names that an expression of the table may use."""

    def of(name: str) -> Any:
        return importlib.import_module(f"{jax.__name__}.{name}")

    jnp, lax, sharding = of("numpy"), of("lax"), of("sharding")
    m = jnp.asarray(np.sin(np.arange(16.0)).reshape(4, 4).astype(np.float32))
    mesh = sharding.Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))

    @jax.custom_vjp
    def custom(x):
        return x * x

    custom.defvjp(lambda x: (x * x, x), lambda x, ct: (7.0 * x * ct,))

    def refs(x):
        ref = jax.new_ref(x)
        ref[1] += 5.0
        return ref[...] * 2

    def deleted(x):
        x.delete()
        return x + 1

    def donated(x):
        jax.jit(lambda y: y + 1, donate_argnums=0)(x)
        return x.is_deleted()

    def fails(x):
        raise KeyError("a failing callback")

    def under(option: str, f: Any) -> Any:
        with getattr(jax, option)(True):
            return f()

    return {
        "jax": jax, "jnp": jnp, "lax": lax, "np": np, "jsp": SimpleNamespace(linalg=of("scipy.linalg"), special=of("scipy.special")),
        "random": jax.random, "sparse": of("experimental.sparse"), "checkify": of("experimental.checkify"),
        "pickle": importlib.import_module("pickle"), "P": sharding.PartitionSpec, "m": m, "s": m @ m.T + 3 * jnp.eye(4), "v": m[1],
        "key": jax.random.key(7), "mesh": mesh, "explicit": jax.make_mesh((4,), ("x",), devices=jax.devices()[:4]),
        "put": lambda x, *spec: jax.device_put(x, sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec))),
        "export": lambda f, *xs: of("export").export(f)(*xs), "custom": custom, "refs": refs, "deleted": deleted, "donated": donated,
        "fails": fails, "x64": lambda f: under("enable_x64", f), "nans": lambda f: under("debug_nans", f),
        "DTYPES": ("int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64", "bool"),
    }  # fmt: skip


def outcome(jax: ModuleType, names: dict[str, Any], source: str) -> Any:
    """The result of an expression, as JSON: its value with types, or the classes of its exception."""
    try:
        return _told(jax, eval(source, names))
    except Exception as error:
        return {"raises": [c.__name__ for c in type(error).__mro__[:-3]]}


def _told(jax: ModuleType, value: Any) -> Any:
    if isinstance(value, jax.Array):
        dtype, weak = str(value.dtype), bool(value.weak_type)
        wide = np.asarray(value).astype(np.complex64 if "complex" in dtype else np.float64).ravel()
        return {"type": dtype + "~" * weak, "shape": list(value.shape), "value": [_number(x) for x in wide]}
    if isinstance(value, np.ndarray | np.generic):
        return {"numpy": str(value.dtype), "value": [_number(x) for x in np.ravel(value)]}
    if isinstance(value, tuple | list):
        return [_told(jax, item) for item in value]
    if isinstance(value, dict):
        return {str(key): _told(jax, item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | str):
        return value
    return _number(value) if isinstance(value, float) else str(value)


def _number(x: Any) -> Any:
    """A number as JSON holds it, NaN and infinities too."""
    if isinstance(x, complex | np.complexfloating):
        return [_number(x.real), _number(x.imag)]
    return float(x) if np.isfinite(x) else str(float(x))


def main() -> None:
    """Write the outcomes of the installed jax."""
    os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=8")
    jax = importlib.import_module("jax")
    names = side(jax)
    outcomes = {name: outcome(jax, names, source) for name, source in TABLE.items()}
    FILE.write_text(json.dumps({"jax": jax.__version__, "outcomes": outcomes}, indent=1) + "\n")
    for name, told in outcomes.items():
        print(name, str(told)[:150], file=sys.stderr)


if __name__ == "__main__":
    main()
