"""The table of expressions in lines.txt: its rows, their operands at a dtype, and the names they speak of."""

import dataclasses
import functools
import importlib
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
from compare import LISTED, Case

import minijax

HERE = Path(__file__).parent
DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name, None) or name)
    for name in """
    bool int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 float8_e4m3fn
    complex64 complex128
""".split()
}
DOUBLES = ("int64", "uint64", "float64", "complex128")

SHAPES = dict(X=(2, 3), Y=(2, 3), Z=(2, 3), W=(2, 3), V=(3,), S=(), C=(2, 3, 4), E=(0, 3), M=(3, 3), H=(3, 3),
              Q=(4, 3), A=(2, 2, 5, 4), K=(2, 2, 2, 2))  # fmt: skip
FIXED = dict(
    I=np.array([[1], [0]], np.int32),
    J=np.int32(1),
    G=np.array([2, 0, 1], np.int32),
    B=np.array([[True, False, True], [False, False, True]]),
    N=np.array([3, 4], np.uint32),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table."""

    primitives: tuple[str, ...]
    expression: str
    home: str

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(DTYPES) if self.home not in ("none", "spread") else (HOMES[self.home],)


def rows() -> Iterator[Row]:
    for line in (HERE / "lines.txt").read_text().splitlines():
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            home = heading[1]
        elif line and line[0] != "#":
            names, expression = re.split(r"  +", line, maxsplit=1)
            yield Row(tuple(names.split()), expression, home)


@functools.cache
def operand(name: str, dtype: str) -> np.ndarray:
    """Distinct numbers between 0 and 1, from 1 to 2 in W; H is positive definite, M and Q of full rank."""
    if name in FIXED:
        return FIXED[name]
    shape, kind = SHAPES[name], DTYPES[dtype].kind
    random = np.random.RandomState(zlib.crc32(name.encode()))
    x = random.uniform(0.1, 0.9, shape) + (name == "W")
    if kind == "c":
        x = x + 1j * random.uniform(0.1, 0.9, shape)
    if name in "MHQ":
        x = x + 2 * np.eye(*shape)
        x = (x + np.conj(x.T)) / 2 if name == "H" else x
    if kind == "b" or dtype == "bool":
        x = x > 0.5
    elif dtype.startswith(("int", "uint")):
        x = x * 7
    return np.asarray(x).astype(DTYPES[dtype])


def names_of(jax: ModuleType, jnp: ModuleType) -> dict[str, Any]:
    """The names that an expression may use besides its operands."""

    primitives = importlib.import_module(f"{jax.__name__}.extend.core.primitives")

    def scalars(f: Callable, x: Any) -> Any:
        return jax.make_jaxpr(f)(np.zeros((), x.dtype), np.zeros((), x.dtype)).jaxpr

    def written(x: Any, row: Any) -> Any:
        ref = jax.new_ref(x)
        ref[0] = row * ref[1]
        return ref[...]

    def spread(f: Callable, **how: Any) -> Callable:
        mesh, over = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",)), jax.sharding.PartitionSpec("i")
        return jax.shard_map(f, mesh=mesh, in_specs=over, out_specs=over, **how)

    @jax.custom_jvp
    def squared_jvp(x: Any) -> Any:
        return x * x

    @jax.custom_vjp
    def squared_vjp(x: Any) -> Any:
        return x * x

    squared_jvp.defjvp(lambda primals, tangents: (squared_jvp(*primals), 2 * primals[0] * tangents[0]))
    squared_vjp.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
    given = {f.__name__: f for f in (scalars, written, spread, squared_jvp, squared_vjp, low, high)}
    tools = importlib.import_module(f"{jax.__name__}.ad_checkpoint")
    return dict(
        given, jax=jax, jnp=jnp, lax=jax.lax, np=np, primitives=primitives, checkpoint_name=tools.checkpoint_name
    )


def low(x: Any) -> np.generic:
    """The start of a maximum."""
    return _end(np.dtype(x.dtype), "min", -np.inf)


def high(x: Any) -> np.generic:
    """The start of a minimum."""
    return _end(np.dtype(x.dtype), "max", np.inf)


def _end(dtype: np.dtype, name: str, infinity: float) -> np.generic:
    if dtype.kind == "b":
        return np.bool_(name == "max")
    if minijax.dtypes.issubdtype(dtype, np.integer):
        return dtype.type(getattr(ml_dtypes.iinfo(dtype), name))
    return dtype.type(getattr(ml_dtypes.finfo(dtype), name) if "e4m3" in dtype.name else infinity)


HOMES = {"any": "float32", "none": "float32", "spread": "float32"}


def home(row: Row) -> str:
    return HOMES.get(row.home, row.home)


def case(row: Row, dtype: str = "") -> Case:
    """The expression as a function of its operands; its home dtype must be accepted."""
    dtype = dtype or home(row)
    used = [name for name in (*SHAPES, *FIXED) if re.search(rf"\b(?<![.'=]){name}\b(?!['(=])", row.expression)]

    def program(jax: ModuleType, jnp: ModuleType) -> Callable:
        return eval(f"lambda {', '.join(used)}: {row.expression}", names_of(jax, jnp))

    args = tuple(operand(name, dtype) for name in used)
    name = f"{row.primitives[0]}: {row.expression} [{dtype}]"
    return Case(name, program, args, raises=dtype != home(row) and LISTED)
