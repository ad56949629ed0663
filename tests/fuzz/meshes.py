"""Random programs over meshes: the statements of `generator`, and those that reshard values.

The arguments are sharded over a mesh of one to three axes, most of them Explicit, by specs drawn from a seed. What the
oracle rejects ends some of the programs, for shardings are refused often.
"""

import contextlib
import dataclasses
import functools
import math
import random
import textwrap
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import compare
import ml_dtypes
import numpy as np
import transform_matrix
from fuzz import generator

jax = compare.theirs()

MESHES = ((2,), (4,), (8,), (2, 2), (4, 2), (2, 4), (1, 4), (2, 2, 2), (2, 2, 2), (2, 1, 2))
# In capitals, so that no variable of a jaxpr has the name of an axis.
AXES = "XYZ"
SIZES = (8, 4, 8, 4, 2, 2, 6, 1, 3)
TRANSFORMS = {
    name: transform_matrix.TRANSFORMS[name] for name in ("jit", "grad", "value_and_grad", "jvp", "vjp", "checkpoint")
}
CHOICES = [(), (), ("jit",), ("grad",), ("grad",), ("vmap",), ("vmap",), ("grad", "vmap"), ("vmap", "grad")]
CHOICES += [("jvp",), ("vjp",), ("value_and_grad",), ("checkpoint", "grad"), ("jit", "grad"), ("vmap", "jit")]
LAYING = """
jax.reshard({x}, {spec})
jax.reshard({x}, {spec})
jax.reshard({x}, P())
lax.with_sharding_constraint({x}, <{spec} {own}>)
jnp.reshape({v}, {other}, out_sharding={laid})
lax.reshape({v}, {other})
jnp.reshape({v}, {other})
jnp.<ravel transpose>({v})
jnp.einsum("<ij,jk->ik ij,kj->ik ij,ij->ij ij,jk->ki>", {v}, {w}, out_sharding={two})
jnp.einsum("<bij,bjk->bik bij,bkj->bki>", {v}, {w}, out_sharding={three})
jnp.<matmul dot>({m}, {w}, out_sharding={two})
lax.dot_general({m}, {same}, ((({positive},), ({positive},)), ((), ())))
lax.dot_general({m}, {same}, (((1,), (1,)), ((0,), (0,))))
jnp.einsum("<ij,jk->ik ij,kj->ik ij,ij->i bij,bkj->bik ij->ji ii->i>", {m}, {w})
jnp.<zeros ones empty>({shape}, out_sharding={laid})
jnp.<zeros_like ones_like>({x}, out_sharding={spec})
jnp.full({shape}, 2, out_sharding={laid})
jnp.arange(8, out_sharding={one})
jax.sharding.auto_axes(lambda x: x * 2, out_sharding={spec})({x})
jax.sharding.auto_axes(lambda x: jnp.sort(x)[..., ::-1], out_sharding={spec})({v})
{v}.at[jnp.array([0, 1])].get(out_sharding={spec})
{v}.at[{j}].<set add>({s}, out_sharding={spec})
{v}.at[0].<set add multiply>({s}, out_sharding={spec})
{v}[0]
{v}[..., 0]
{v}[<:2 :4 -2: 1: ::2>]
lax.slice_in_dim({v}, 0, <2 4 None>, axis={axis})
lax.dynamic_slice_in_dim({v}, {start}, <2 4>, axis={positive})
lax.pad({v}, jnp.zeros((), {v}.dtype), [(<0 2 4>, <0 2>, 0)] * {v}.ndim)
random.<normal uniform>({key}, {shape}, out_sharding={laid})
jnp.broadcast_to({x}, {stacked}, out_sharding={laid})
lax.broadcast_in_dim({x}, {stacked}, tuple(range(1, {x}.ndim + 1)), out_sharding={laid})
lax.broadcasted_iota({dtype}, {shape}, 0, out_sharding={laid})
lax.reduce_sum({m}, axes=(1,), out_sharding={one})
jnp.repeat({v}, 2, axis={axis}, out_sharding={spec})
jnp.<stack concatenate>([{v}, {v0}], axis={axis})
jnp.<split array_split>({v}, 2, axis={axis})
jnp.linalg.<cholesky qr svd det inv slogdet>({m})
jax.scipy.linalg.<cho_factor lu expm>({m})
jnp.linalg.solve({m}, {same})
lax.linalg.triangular_solve({m}, {same}, left_side=True)
jnp.fft.<fft rfft fft2>({m})
lax.reduce_window({f}, 0.0, lax.add, (1,) * {f}.ndim, (1,) * {f}.ndim, "SAME")
lax.map(lambda x: x * 2, {v})
jax.vmap(lambda x: jnp.sum(x) * x, in_axes={axis})({v})
jax.vmap(lambda x, y: x + y)({v}, {same})
jax.vmap(lambda x, y: x * y, in_axes=({axis}, None))({v}, {s})
jax.shard_map(lambda x: lax.psum(x, "X"), in_specs=P("X"), out_specs=P())({v})
jax.shard_map(lambda x: x * 2, out_specs={own})({x})
jax.shard_map(lambda x: lax.all_gather(x, "X", tiled=True), in_specs=P("X"), out_specs=P("X"))({v})
"""
SUMS = """
jax.reshard({v}, P(*{own}, reduced={{"X"}}))
jax.reshard({v}, P(*{own}, unreduced={{"X"}}))
jnp.einsum("ij,jk->ik", {v}, {w}, out_sharding=P(None, None, unreduced={{"X"}}))
lax.reduce_sum({v}, axes=(0,), out_sharding=P(*[None] * ({v}.ndim - 1), unreduced={{"X"}}))
"""


class Body(generator.Body):
    """Statements of values that are sharded over a mesh."""

    most = 1024

    def expression(self) -> str:
        drawn = self.rng.random()
        if drawn < 0.4:
            return self.filled(self.rng.choice(_rows(LAYING)))
        if drawn < 0.43:
            return self.filled(self.rng.choice(_rows(SUMS)))
        if self.depth and drawn < 0.8:
            return self.filled(self.rng.choice(self.rng.choices([rows for _, rows in generator.TABLES], [5, 5, 1])[0]))
        return super().expression()

    def filled(self, template: str) -> str:
        # If all axes are Auto, jax keeps reshards that have no effect.
        if "jax.reshard(" in template and not self.scope["mesh"].explicit_axes:
            raise generator.NotFound
        return super().filled(template).replace("{{", "{").replace("}}", "}")

    def alike(self, types: Any) -> str:
        if isinstance(types, tuple):
            return f"({', '.join([self.alike(t) for t in types])},)"
        text, spec = self.like(types.shape, types.dtype), spec_text(types)
        if spec_text_of_value(self, text) == spec:
            return text
        return f"jax.reshard({text}, {spec})"

    def hole_shape(self) -> tuple:
        self.shape = tuple(self.rng.choice(SIZES) for _ in range(self.rng.randrange(4)))
        return self.shape

    def hole_stacked(self) -> tuple:
        self.shape = (self.rng.choice([2, 4, 8]), *self.subject.shape)
        return self.shape

    def hole_spec(self) -> str:
        return drawn_spec(self.rng, self.subject.shape, self.scope["mesh"])

    def hole_laid(self) -> str:
        """A spec for the shape that was drawn last."""
        return drawn_spec(self.rng, self.shape, self.scope["mesh"])

    def hole_one(self) -> str:
        return drawn_spec(self.rng, [8], self.scope["mesh"])

    def hole_two(self) -> str:
        return drawn_spec(self.rng, [8] * 2, self.scope["mesh"])

    def hole_three(self) -> str:
        return drawn_spec(self.rng, [8] * 3, self.scope["mesh"])

    def hole_own(self) -> str:
        return spec_text(self.subject.aval)

    def hole_other(self) -> tuple:
        """Another shape of as many elements: axes merged, or one divided."""
        shape = list(self.subject.shape)
        if 0 in shape:
            raise generator.NotFound
        i = self.rng.randrange(len(shape))
        if i + 1 < len(shape) and self.rng.random() < 0.5:
            shape[i : i + 2] = [shape[i] * shape[i + 1]]
        else:
            part = self.rng.choice([n for n in (1, 2, 4, 8) if shape[i] % n == 0])
            shape[i : i + 1] = self.rng.choice([[part, shape[i] // part], [shape[i] // part, part]])
        self.shape = tuple(shape)
        return self.shape


def _rows(table: str) -> list[str]:
    return table.strip().splitlines()


def spec_text(t: Any) -> str:
    """The spec of a value of that type, as source text."""
    spec = [] if t.sharding is None else list(t.sharding.spec)
    return f"P({', '.join(map(repr, spec))})" if any(spec) else "P()"


def spec_text_of_value(body: Body, text: str) -> str:
    try:
        return spec_text(jax.typeof(eval(text, body.scope)))
    except Exception as error:
        raise generator.NotFound from error


def drawn_spec(rng: random.Random, shape: Any, mesh: Any, wrong: float = 0.03) -> str:
    """A spec over axes that divide the shape; seldom over one that does not."""
    free, entries = list(mesh.axis_names), []
    for size in shape:
        axes = rng.sample(free, min(len(free), rng.choices([0, 1, 2], [4, 5, 1])[0]))
        if size % math.prod(mesh.shape[a] for a in axes) and rng.random() >= wrong:
            axes = []
        free = [a for a in free if a not in axes]
        entries.append(repr(None if not axes else axes[0] if len(axes) == 1 else tuple(axes)))
    return f"P({', '.join(entries)})"


@dataclasses.dataclass(frozen=True)
class Program(generator.Program):
    """A program, and the mesh of its arguments: sizes and types of its axes, and a spec for each argument."""

    sizes: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    specs: tuple[str | None, ...] = ()
    mapped: tuple[int | None, ...] = ()
    is_set: bool = True

    def __str__(self) -> str:
        mesh = dict(zip(AXES, zip(self.sizes, self.kinds, strict=True), strict=False))
        laid = [
            (a.shape, a.dtype.name, s) if hasattr(a, "shape") else a for a, s in zip(self.args, self.specs, strict=True)
        ]
        path = " of ".join([*reversed(self.transforms), "program"])
        unset = "" if self.is_set else ", which is not set"
        return f"# seed {self.seed}: {path} over {mesh}{unset}\n# {laid} mapped {self.mapped}\n{self.source}"

    def on(self, package: ModuleType) -> tuple[Callable, list]:
        """The function under its transforms, and its sharded arguments."""
        mesh = mesh_of(package, self.sizes, self.kinds)
        scope = scope_of(package, mesh)
        exec(self.source, scope)
        function = scope["program"]
        for name in self.transforms:
            if name == "vmap":
                function = package.vmap(function, self.mapped)
            else:
                function = TRANSFORMS[name].function(package, function, self.args)
        args = self.args
        for name in self.transforms:
            if name != "vmap":
                args = TRANSFORMS[name].arguments(args)
        return function, self.laid(package, mesh, args)

    def laid(self, package: ModuleType, mesh: Any, args: tuple) -> Any:
        """The arguments, tangents with their primals, as arrays sharded by the specs."""

        def place(x: Any, spec: str | None) -> Any:
            if isinstance(x, tuple | list):
                return tuple(place(part, s) for part, s in zip(x, self.specs_of(x), strict=True))
            if spec is None or x.dtype == compare.FLOAT0:
                return x
            sharding = package.sharding
            return package.device_put(
                package.numpy.asarray(x), sharding.NamedSharding(mesh, eval(spec, {"P": sharding.PartitionSpec}))
            )

        return tuple(place(x, s) for x, s in zip(args, self.specs_of(args), strict=True))

    def specs_of(self, args: Any) -> tuple:
        if len(args) == len(self.specs):
            return self.specs
        chosen = transform_matrix.inexact_argnums(self.args)
        return tuple(self.specs[i] for i in chosen) if len(args) == len(chosen) else (None,) * len(args)


@functools.cache
def mesh_of(package: ModuleType, sizes: tuple[int, ...], kinds: tuple[str, ...]) -> Any:
    types = tuple(getattr(package.sharding.AxisType, kind) for kind in kinds)
    devices = package.devices()[: math.prod(sizes)]
    return package.make_mesh(sizes, tuple(AXES[: len(sizes)]), types, devices=devices)


def scope_of(package: ModuleType, mesh: Any) -> dict[str, Any]:
    names = {"jnp": package.numpy, "lax": package.lax, "nn": package.nn, "random": package.random, "np": np}
    return {"jax": package, "mesh": mesh, "P": package.sharding.PartitionSpec, "x64": False, **names}


def _argument(rng: random.Random, numbers: np.random.Generator, mesh: Any) -> tuple[Any, str | None]:
    shape = [rng.choice(SIZES) for _ in range(rng.choices([0, 1, 2, 3], [1, 4, 8, 3])[0])]
    while math.prod(shape) > 256:
        shape.pop()
    dtype = rng.choice(("float32",) * 14 + generator.DTYPES)
    values = numbers.uniform(0.2, 2.5, shape) * rng.choice([1, 1, -1])
    value = np.asarray(values > 1 if dtype == "bool" else np.abs(values) if dtype[0] == "u" else values)
    return value.astype(getattr(ml_dtypes, dtype, dtype)), drawn_spec(rng, shape, mesh, 0)


def _batched(rng: random.Random, args: list, mesh: Any, size: int = 8) -> tuple[list, list, tuple]:
    """The arguments with an axis more in front, or some of them: the values, their specs, and which."""
    entry = rng.choice([None, None, *mesh.axis_names])
    mapped = tuple(0 if i == 0 or rng.random() < 0.7 else None for i in range(len(args)))
    values, specs = [], []
    for (value, spec), axis in zip(args, mapped, strict=True):
        entries = list(eval(spec, {"P": jax.P}))
        if axis is not None:
            value = np.stack([value] * size)
            taken = [e is not None and entry in (e if isinstance(e, tuple) else (e,)) for e in entries]
            entries = [entry, *[None if t else e for t, e in zip(taken, entries, strict=True)]]
        values.append(value)
        specs.append(f"P({', '.join(map(repr, entries))})")
    return values, specs, mapped


def generate(seed: int) -> Program | None:
    """The program of that seed; None where the oracle does not let its arguments be mapped."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    sizes = rng.choice(MESHES)
    kinds = tuple(rng.choices(["Explicit", "Auto"], [6, 1])[0] for _ in sizes)
    is_set = rng.random() < 0.9
    mesh = mesh_of(jax, sizes, kinds)
    pairs = [_argument(rng, numbers, mesh) for _ in range(rng.randrange(1, 4))]
    transforms = rng.choice(CHOICES)
    values, specs, mapped = [v for v, _ in pairs], [s for _, s in pairs], (None,) * len(pairs)
    if "vmap" in transforms:
        values, specs, mapped = _batched(rng, pairs, mesh)
    params, lines = [f"a{i}" for i in range(len(values))], []
    draft = Program(seed, "", tuple(values), transforms, False, sizes, kinds, tuple(specs), mapped, is_set)

    def trace(*tracers: Any) -> Any:
        given = dict(zip(params, tracers, strict=True))
        scope = scope_of(jax, mesh)
        scope["differentiated"] = any("grad" in name or name in ("jvp", "vjp") for name in transforms)
        body = Body(rng, {**scope, **given}, given, 0)
        returned = "None"
        try:
            body.grow(rng.randrange(2, 8), errors=rng.random() < 0.25)
            returned = body.some(4)
        except generator.Rejected:
            pass
        lines.extend([*body.lines, f"return {returned}"])
        return eval(returned, body.scope)

    with under(jax, mesh, is_set), warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = jax.vmap(trace, mapped) if "vmap" in transforms else trace
        try:
            jax.eval_shape(traced, *draft.laid(jax, mesh, draft.args))
        except Exception:
            if not lines:
                return None
    text = [f"def program({', '.join(params)}):", *textwrap.indent("\n".join(lines), "    ").splitlines()]
    text = text if rng.random() < 0.1 else generator.without_unused(text)
    return dataclasses.replace(draft, source="\n".join(text) + "\n")


def under(package: ModuleType, mesh: Any, is_set: bool = True) -> Any:
    """A context in which the mesh is set, or none."""
    return package.set_mesh(mesh) if is_set else contextlib.nullcontext()
