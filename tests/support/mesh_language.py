"""What the tables of these tests speak of, on each side: a mesh of eight devices, shorthands, descriptions."""

import functools
import importlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from compare import Mismatch, _unwrapped as unwrapped, canonical, normal, ours, outcome, require, same_lines, theirs

COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")


def numbers(*sizes: int, dtype: Any = np.float32) -> np.ndarray:
    """The same few numbers each time, none of them near another's."""
    return (np.random.RandomState(0).permutation(int(np.prod(sizes))).reshape(sizes) * 0.375 - 3).astype(dtype)


@functools.cache
def side(package: str) -> SimpleNamespace:
    """The names that an expression may use: of the package, and made with it."""
    jax = importlib.import_module(package)
    sharding, jnp = jax.sharding, importlib.import_module(f"{package}.numpy")
    s = SimpleNamespace(jax=jax, jnp=jnp, lax=jax.lax, np=np, P=sharding.PartitionSpec, random=jax.random)
    s.Mesh, s.NS, s.SDS, s.AxisType = (sharding.Mesh, sharding.NamedSharding, jax.ShapeDtypeStruct, sharding.AxisType)
    s.One, s.d, s.numbers = sharding.SingleDeviceSharding, jax.devices(), numbers
    s.grid = lambda sizes, names, devices=s.d: s.Mesh(np.array(devices[: int(np.prod(sizes))]).reshape(sizes), names)
    s.m, s.m8, s.m4 = s.grid((4, 2), ("x", "y")), s.grid((8,), ("i",)), s.grid((2, 2), ("x", "y"))
    s.explicit = jax.make_mesh((4, 2), ("x", "y"), devices=s.d)
    s.back = s.grid((4, 2), ("x", "y"), s.d[::-1])
    s.on = lambda *spec, mesh=s.m: s.NS(mesh, s.P(*spec))
    s.put = lambda x, *spec, mesh=s.m: jax.device_put(jnp.asarray(x), s.on(*spec, mesh=mesh))
    s.a = s.put(numbers(8, 8), "x", "y")
    s.v = s.put(numbers(8), "x")
    s.custom, s.bent = _custom(jax, jnp)
    s.jaxpr = lambda f, *args: str(jax.make_jaxpr(f)(*args))
    s.text = lambda f, *args: canonical((f if hasattr(f, "lower") else jax.jit(f)).lower(*args).as_text())
    # The types and bits of what a function gives; also compiled, and its jaxpr.
    s.types = lambda f, *xs: [jax.tree.map(lambda x: str(jax.typeof(x)), f(*xs)), f(*xs)]
    s.run = lambda f, *xs: [*s.types(f, *xs), jax.jit(f)(*xs), unwrapped(s.jaxpr(f, *xs))]
    s.collectives = lambda f, *args: collectives(jax.jit(f).lower(*args).compile().as_text())
    return s


def _custom(jax: ModuleType, jnp: ModuleType) -> tuple[Callable, Callable]:
    """Functions with derivatives of their own: forward, and backward."""

    @jax.custom_jvp
    def custom(x):
        return jnp.sin(x)

    @jax.custom_vjp
    def bent(x):
        return jnp.exp(x)

    custom.defjvp(lambda primals, tangents: (custom(*primals), tangents[0] * primals[0]))
    bent.defvjp(lambda x: (bent(x), x), lambda x, ct: (ct * jnp.cos(x),))
    return custom, bent


def collectives(hlo: str) -> dict[str, int]:
    """How many of each collective an optimized program holds."""
    found = Counter(re.findall(rf" ({'|'.join(COLLECTIVES)})(?:-start)?\(", hlo))
    return {name: found[name] for name in COLLECTIVES if found[name]}


def described(x: Any) -> Any:
    """A value as text: of arrays the bits, the type, where they lie and whether they must."""
    if isinstance(x, tuple | list):
        return [described(part) for part in x]
    if isinstance(x, dict):
        return {key: described(part) for key, part in x.items()}
    if hasattr(x, "addressable_shards"):
        bits = x if str(x.dtype).startswith("key<") else np.asarray(x).tobytes()
        kind = (str(x.dtype), x.shape, getattr(x, "weak_type", None))
        return normal(str((bits, *kind, x.committed, x.sharding)))
    if isinstance(x, set | frozenset):
        return sorted(map(str, x))
    if isinstance(x, np.ndarray):
        return str((x.dtype, x.tolist()))
    return normal(str(x))


def same(expressions: str, setting: str = "", **given: Callable[[SimpleNamespace], Any]) -> None:
    """Require that each line is worth the same on both sides, with the mesh named `setting` set.

    `given` names more that the lines may use.
    """
    failures = []
    for line in filter(None, map(str.strip, expressions.splitlines())):
        values = [outcome(lambda s=s, line=line: _worth(s, line, given, setting)) for s in _sides()]
        if values[1].error:
            raise AssertionError(f"jax raises for {line}") from values[1].error
        try:
            require(values[0].error is None, line, repr(values[0].error), values[1].value)
            texts = [v.value if isinstance(v.value, str) else str(v.value) for v in values]
            same_lines(line, *texts)
        except Mismatch as difference:
            failures.append(str(difference))
    if failures:
        raise Mismatch(f"{len(failures)} differ\n" + "\n".join(failures))


def same_errors(cases: Sequence[tuple[str, str]], setting: str = "", **given: Callable[[SimpleNamespace], Any]) -> None:
    """Require that each expression raises the same class on both sides, with a phrase that is given."""
    failures = []
    for line, phrase in cases:
        our, their = [outcome(lambda s=s, line=line: _worth(s, line, given, setting)) for s in _sides()]
        kinds = [type(r.error).__name__ for r in (our, their)]
        if our.error is None or kinds[0] != kinds[1] or any(phrase not in str(r.error) for r in (our, their)):
            failures.append(f"{line}: ours {our.error or our.value!r}, theirs {their.error or their.value!r}")
    if failures:
        raise Mismatch(f"{len(failures)} differ\n" + "\n".join(failures))


def _sides() -> list[SimpleNamespace]:
    return [side(package.__name__) for package in (ours(), theirs())]


def _worth(s: SimpleNamespace, line: str, given: dict, setting: str = "") -> Any:
    if setting:
        with s.jax.set_mesh(vars(s)[setting]):
            return _worth(s, line, given)
    more = {name: make(s) for name, make in given.items() if re.search(rf"\b{name}\b", line)}
    return described(eval(line, {**vars(s), **more}))


def names_of(package: ModuleType) -> dict[str, Any]:
    """The shorthands for a program of `compare`."""
    return vars(side(package.__name__))
