"""The names that the cases over meshes read, on each side, and the comparison of tables of such cases.

A case is a function of a `Side`: `lambda s: s.run(s.jax.grad(lambda x: s.jnp.sin(x).sum()), s.sharded_rows)`. A table
is a list of cases, or of pairs of a case and a phrase of the error that it raises. A file passes the attributes that its
own cases read by keyword, as functions of a `Side`: `same(TABLE, weights=lambda s: s.shard(numbers(4, 8), "y"))`.
"""

import ast
import copy
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import recorded
from compare import (
    Mismatch,
    _unwrapped as unwrapped,
    canonical,
    entry_of,
    module_of,
    normal,
    ours,
    outcome,
    require,
    same_lines,
    theirs,
)

COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")


def numbers(*sizes: int, dtype: Any = np.float32) -> np.ndarray:
    """The same few numbers each time, none of them near another's."""
    return (np.random.RandomState(0).permutation(int(np.prod(sizes))).reshape(sizes) * 0.375 - 3).astype(dtype)


class MissingName(AttributeError):
    """A case is misspelt: not an error that two sides may have in common."""


class Side:
    """One of the two packages, with meshes of its eight devices, arrays over them, and ways to describe a function."""

    def __init__(self, package: str) -> None:
        self.jax: Any = module_of(package)
        self.jnp: Any = module_of(f"{package}.numpy")
        self.np = np
        self.lax, self.random = self.jax.lax, self.jax.random
        sharding = self.jax.sharding
        self.P, self.Mesh, self.AxisType = sharding.PartitionSpec, sharding.Mesh, sharding.AxisType
        self.NamedSharding, self.SingleDeviceSharding = sharding.NamedSharding, sharding.SingleDeviceSharding
        self.ShapeDtypeStruct, self.devices = self.jax.ShapeDtypeStruct, self.jax.devices()
        self.numbers = numbers

        # Meshes of Auto axes, but for the explicit one.
        self.mesh = self.auto_mesh((4, 2), ("x", "y"))
        self.mesh_of_8 = self.auto_mesh((8,), ("i",))
        self.mesh_of_4 = self.auto_mesh((2, 2), ("x", "y"))
        self.reversed_mesh = self.auto_mesh((4, 2), ("x", "y"), self.devices[::-1])
        self.explicit_mesh = self.jax.make_mesh((4, 2), ("x", "y"), devices=self.devices)

        # Over Auto axes.
        self.auto_matrix = self.shard(numbers(8, 8), "x", "y")
        self.auto_vector = self.shard(numbers(8), "x")
        # Over Explicit axes, of shape (8, 4).
        self.sharded_both = self.shard(numbers(8, 4), "x", "y", mesh=self.explicit_mesh)
        self.sharded_rows = self.shard(numbers(8, 4), "x", mesh=self.explicit_mesh)
        self.sharded_columns = self.shard(numbers(8, 4), None, "y", mesh=self.explicit_mesh)
        self.replicated = self.shard(numbers(8, 4), mesh=self.explicit_mesh)

        self.with_custom_jvp, self.with_custom_vjp = _custom(self.jax, self.jnp)

    def __getattr__(self, name: str) -> Any:
        """Called for what is neither an attribute of a side nor given by a keyword of the table."""
        raise MissingName(f"no side has, and no keyword of the table gives, {name!r}")

    def auto_mesh(self, sizes: Sequence[int], names: Sequence[str], devices: Sequence | None = None) -> Any:
        """A mesh of Auto axes over the first devices."""
        first = (self.devices if devices is None else devices)[: int(np.prod(sizes))]
        return self.Mesh(np.array(first).reshape(sizes), names)

    def sharding(self, *spec: Any, mesh: Any = None) -> Any:
        """The `NamedSharding` of a spec, over the mesh of 4 by 2 Auto axes unless another is given."""
        return self.NamedSharding(self.mesh if mesh is None else mesh, self.P(*spec))

    def shard(self, x: Any, *spec: Any, mesh: Any = None) -> Any:
        """An array that is sharded by a spec, over the mesh of 4 by 2 Auto axes unless another is given."""
        return self.jax.device_put(self.jnp.asarray(x), self.sharding(*spec, mesh=mesh))

    def jaxpr(self, f: Callable, *args: Any) -> str:
        return str(self.jax.make_jaxpr(f)(*args))

    def unwrapped_jaxpr(self, f: Callable, *args: Any) -> str:
        """The jaxpr of a function, each equation on one line."""
        return unwrapped(self.jaxpr(f, *args))

    def text(self, f: Callable, *args: Any) -> str:
        """The canonical StableHLO of a function."""
        return canonical((f if hasattr(f, "lower") else self.jax.jit(f)).lower(*args).as_text())

    def types(self, f: Callable, *args: Any) -> list:
        """The types and the values of the results of an eager call."""
        return [self.jax.tree.map(lambda x: str(self.jax.typeof(x)), f(*args)), f(*args)]

    def run(self, f: Callable, *args: Any) -> list:
        """The types and the values of an eager call, the values of a compiled one, and the jaxpr."""
        return [*self.types(f, *args), self.jax.jit(f)(*args), self.unwrapped_jaxpr(f, *args)]

    def collectives(self, f: Callable, *args: Any) -> dict[str, int]:
        return collectives(self.jax.jit(f).lower(*args).compile().as_text())


# Tables that are strings, which other folders still have, evaluate a line in `vars` of a side, under these names.
STRING_NAMES = {
    "m": "mesh",
    "m8": "mesh_of_8",
    "m4": "mesh_of_4",
    "back": "reversed_mesh",
    "explicit": "explicit_mesh",
    "grid": "auto_mesh",
    "on": "sharding",
    "put": "shard",
    "a": "auto_matrix",
    "v": "auto_vector",
    "d": "devices",
    "NS": "NamedSharding",
    "One": "SingleDeviceSharding",
    "SDS": "ShapeDtypeStruct",
    "custom": "with_custom_jvp",
    "bent": "with_custom_vjp",
}
STRING_METHODS = ("auto_mesh", "sharding", "shard", "jaxpr", "text", "types", "run", "collectives")

Case = Callable[[Side], Any]


@functools.cache
def side(package: str) -> Side:
    s = Side(package)
    vars(s).update({name: getattr(s, name) for name in STRING_METHODS})
    vars(s).update({name: getattr(s, STRING_NAMES[name]) for name in STRING_NAMES})
    return s


def _custom(jax: Any, jnp: Any) -> tuple[Callable, Callable]:
    """Functions with custom derivatives: forward, and backward."""

    @jax.custom_jvp
    def with_custom_jvp(x):
        return jnp.sin(x)

    @jax.custom_vjp
    def with_custom_vjp(x):
        return jnp.exp(x)

    with_custom_jvp.defjvp(lambda primals, tangents: (with_custom_jvp(*primals), tangents[0] * primals[0]))
    with_custom_vjp.defvjp(lambda x: (with_custom_vjp(x), x), lambda x, ct: (ct * jnp.cos(x),))
    return with_custom_jvp, with_custom_vjp


def collectives(hlo: str) -> dict[str, int]:
    """How many of each collective an optimized program holds."""
    found = Counter(re.findall(rf" ({'|'.join(COLLECTIVES)})(?:-start)?\(", hlo))
    return {name: found[name] for name in COLLECTIVES if found[name]}


def described(x: Any) -> Any:
    """A value as text: of arrays the bits, the type, the sharding and whether they are committed to it."""
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


def same(cases: str | Iterable[Case], set_mesh: str = "", **given: Case) -> None:
    """Requires that each case has equal values on both sides, with the mesh of the attribute `set_mesh` set.

    `given` defines more attributes. A table may also be text, whose lines are expressions of the attributes.
    """
    failures = []
    for where, case in _named(cases):
        mine = outcome(lambda case=case: _worth(_side(ours()), case, given, set_mesh))
        entry = _entry("worth", case, given, set_mesh, type(mine.error).__name__ if mine.error else mine.value)
        if not entry.asks:
            continue
        values = [mine, outcome(lambda case=case: _worth(_side(theirs()), case, given, set_mesh))]
        if values[1].error:
            raise AssertionError(f"jax raises for {where}") from values[1].error
        try:
            require(values[0].error is None, where, repr(values[0].error), values[1].value)
            texts = [v.value if isinstance(v.value, str) else str(v.value) for v in values]
            same_lines(where, *texts)
            entry.confirm()
        except Mismatch as difference:
            failures.append(str(difference))
    if failures:
        raise Mismatch(f"{len(failures)} differ\n" + "\n".join(failures))


def same_errors(cases: Iterable[tuple[str | Case, str]], set_mesh: str = "", **given: Case) -> None:
    """Requires that each case raises the same class on both sides, with the phrase beside it."""
    failures = []
    for case, phrase in cases:
        our = outcome(lambda case=case: _worth(_side(ours()), case, given, set_mesh))
        has_phrase = our.error is not None and not isinstance(our.error, MissingName) and phrase in str(our.error)
        entry = _entry(phrase, case, given, set_mesh, (type(our.error).__name__, has_phrase))
        if not entry.asks:
            continue
        their = outcome(lambda case=case: _worth(_side(theirs()), case, given, set_mesh))
        kinds = [type(r.error).__name__ for r in (our, their)]
        is_slip = our.error is None or isinstance(our.error, MissingName)
        if is_slip or kinds[0] != kinds[1] or any(phrase not in str(r.error) for r in (our, their)):
            failures.append(f"{source(case)}: ours {our.error or our.value!r}, theirs {their.error or their.value!r}")
        else:
            entry.confirm()
    if failures:
        raise Mismatch(f"{len(failures)} differ\n" + "\n".join(failures))


def _side(package: ModuleType) -> Side:
    return side(package.__name__)


def _entry(what: str, case: str | Case, given: dict[str, Case], set_mesh: str, says: object) -> recorded.Entry:
    words = recorded.told(case), recorded.told(given), set_mesh
    return entry_of("mesh", what, *words, says=recorded.without_last_digits(str(says)))


def _named(cases: str | Iterable[Case]) -> Iterator[tuple[str, str | Case]]:
    if isinstance(cases, str):
        return ((line, line) for line in filter(None, map(str.strip, cases.splitlines())))
    return ((source(case), case) for case in cases)


def _worth(s: Side, case: str | Case, given: dict[str, Case], set_mesh: str = "") -> Any:
    if set_mesh:
        with s.jax.set_mesh(getattr(s, set_mesh)):
            return _worth(s, case, given)
    # Made before the case runs: an array that is made while a function is traced is part of its jaxpr.
    if isinstance(case, str):
        more = {name: make(s) for name, make in given.items() if re.search(rf"\b{name}\b", case)}
        return described(eval(case, {**vars(s), **more}))
    read = set(_names(case, set()))
    scope = copy.copy(s)
    vars(scope).update({name: make(s) for name, make in given.items() if name in read})
    return described(case(scope))


def _names(function: Any, seen: set) -> Iterator[str]:
    """The attributes that a function and the functions that it refers to read, also by names that are arguments."""
    if isinstance(function, functools.partial):
        for part in (function.func, *function.args):
            yield from [part] if isinstance(part, str) else _names(part, seen)
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    names = list(_names_of_code(function.__code__))
    yield from names
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    used = [function.__globals__[name] for name in names if name in function.__globals__]
    yield from (cell for cell in cells if isinstance(cell, str))
    for other in (*cells, *used, *(function.__defaults__ or ())):
        if getattr(other, "__module__", "") == function.__module__:
            yield from _names(other, seen)


def _names_of_code(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_of_code(constant)


# ---- the source of a case ---------------------------------------------------------------------------


def source(case: Any) -> str:
    """File, line and text of a case; of a `partial`, those of the function that it holds, and its other arguments."""
    if isinstance(case, functools.partial):
        first, *others = case.args
        return f"{source(first)} with {case.func.__name__}, {list(map(source, others))}"
    if not isinstance(case, FunctionType):
        return str(case)
    code = case.__code__
    values = [value for value in case.__defaults__ or () if not callable(value)]
    place = f"{Path(code.co_filename).name}:{code.co_firstlineno}: {expression(case)}"
    return f"{place} with {values}" if values else place


def expression(function: Callable) -> str:
    """What a lambda returns, as text on one line; the name of another function."""
    code = function.__code__
    return next((ast.unparse(node.body) for node in _lambdas(code.co_filename) if _is_of(node, code)), code.co_name)


@functools.cache
def _lambdas(filename: str) -> list[ast.Lambda]:
    tree = ast.parse(Path(filename).read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]


def _is_of(node: ast.Lambda, code: CodeType) -> bool:
    """Returns whether the code is that of a lambda: several may start on one line."""
    if node.lineno != code.co_firstlineno:
        return False
    places = [place for place in code.co_positions() if None not in place and place[2:] != (0, 0)]
    start, end = min((p[0], p[2]) for p in places), max((p[1], p[3]) for p in places)
    body = node.body
    return (body.lineno, body.col_offset) <= start and end <= (body.end_lineno, body.end_col_offset)
