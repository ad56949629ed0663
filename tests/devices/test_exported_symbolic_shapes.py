"""Exported programs of symbolic shapes over meshes: ours run here and in jax, and jax's run here, at two sizes.

jax runs few of its own: XLA does not refine shapes in a region, and does not see that a constrained size is constant.
"""

from collections.abc import Callable

import compare
import numpy as np
import pytest
from mesh_language import expression, side

pytestmark = pytest.mark.oracle

SIZES = [dict(a=1, b=3, c=2), dict(a=2, b=5, c=4)]


class Program:
    """A function of arrays over a mesh, and how it is exported.

    `arguments` are shapes and the mesh axes of their dimensions, "-" for none: "8*a, b: x; b, 2*c: - y".
    Given specs of results, the function is one of shards, under `shard_map` with the options.
    """

    def __init__(self, arguments: str, function: Callable, out_specs: Callable | None = None, **options):
        self.arguments, self.function, self.out_specs, self.options = arguments, function, out_specs, options


# Under `shard_map`, over a mesh of Auto axes.
SHARD_MAP = [
    Program("8*a: x", lambda s: lambda x: s.lax.psum(x.sum(), "x"), lambda s: s.P()),
    Program("8*a, b: x", lambda s: lambda x: s.jnp.sin(x) * x.shape[0] + 1, lambda s: s.P("x")),
    Program("4*a, 2*b: x y", lambda s: lambda x: x * x.shape[1] + s.lax.axis_index("x"), lambda s: s.P("x", "y")),
    Program("4*a, 2*b: x y; 2*b, c: y", lambda s: lambda x, y: s.lax.psum(x @ y, "y") * y.shape[1], lambda s: s.P("x")),
    Program(
        "4*a, 2: x", lambda s: lambda x: s.lax.all_gather(x + 1, "x", tiled=True), lambda s: s.P(), check_vma=False
    ),
    Program("16*a, 2: x", lambda s: lambda x: s.lax.psum_scatter(x * 2, "x", tiled=True), lambda s: s.P("x")),
    Program(
        "4*a, 4*b: x", lambda s: lambda x: s.lax.all_to_all(x + 1, "x", 1, 0, tiled=True), lambda s: s.P(None, "x")
    ),
    Program(
        "4*a: x",
        lambda s: lambda x: s.lax.ppermute(x * 2, "x", [(i, (i + 1) % 4) for i in range(4)]),
        lambda s: s.P("x"),
    ),
    Program(
        "4*a, b: x",
        lambda s: lambda x: s.lax.psum(x, "x") + s.lax.axis_index("x") + s.jnp.sort(x, 1),
        lambda s: s.P("x"),
        axis_names={"x"},
        check_vma=False,
    ),
    Program(
        "4*a, b: x",
        lambda s: lambda x: s.lax.scan(lambda c, r: (c + r, c.sum()), x[0] * 0, x)[0],
        lambda s: s.P("x"),
        check_vma=False,
    ),
    Program("4*a: x", lambda s: lambda x: x + s.jax.random.normal(s.jax.random.key(0), x.shape), lambda s: s.P("x")),
    Program(
        "4*a, b: x",
        lambda s: lambda x: ((x * 2, s.lax.psum(x.sum(), "x"), s.jnp.float32(3))),
        lambda s: (s.P("x"), s.P(), s.P()),
        check_vma=False,
    ),
    Program(
        "4*a, 2*b: x",
        lambda s: (
            lambda x: (
                s.jax.shard_map(
                    lambda y: s.lax.psum(s.jnp.sin(y) * y.shape[1], "y"),
                    in_specs=s.P(None, "y"),
                    out_specs=s.P(),
                    axis_names={"y"},
                )(x)
                + x.shape[0]
            )
        ),
        lambda s: s.P("x"),
        axis_names={"x"},
    ),
]
# Functions of global arrays, over a mesh of Explicit axes.
EXPLICIT = [
    Program("8*a, b: x", lambda s: lambda x: s.jnp.sin(x) * x.shape[0] + x),
    Program("8*a, b: x; b, 2*c: - y", lambda s: lambda x, y: x @ y),
    Program("8*a, 2*b: x y; 2*b, c: y", lambda s: lambda x, y: s.jnp.einsum("ij,jk->ik", x, y, out_sharding=s.P("x"))),
    Program(
        "8*a, 2*b: x y",
        lambda s: lambda x: (s.jax.sharding.reshard(x, s.P("x")).sum(1), x.mean(0), x - x.sum(1, keepdims=True)),
    ),
    Program("8*a, 2*b: x y", lambda s: lambda x: s.jax.grad(lambda x: (s.jnp.sin(x) ** 2).sum())(x)),
    Program("8*a, 2*b: x", lambda s: lambda x: (x[:, 1:], x[:, ::2], x.T, x.reshape(x.shape[0], 2, -1))),
    Program("b, 8*a: - x", lambda s: lambda x: s.lax.scan(lambda c, r: (c + r, c * r), s.jnp.zeros_like(x[0]), x)),
    Program("8*a, 2*b: x", lambda s: lambda x: s.jax.vmap(s.jnp.cumsum)(x)),
    Program("8*a, b: x", lambda s: lambda x: s.jax.shard_map(lambda x: x * x.shape[0], out_specs=s.P("x"))(x) + 1),
]
# Functions of global arrays, over a mesh of Auto axes.
AUTO = [
    Program("8*a, b: x", lambda s: lambda x: s.jnp.cumsum(x, 0) * x.shape[0]),
    Program(
        "8*a, 2*b: x",
        lambda s: lambda x: s.lax.with_sharding_constraint(s.jnp.sin(x), s.NamedSharding(s.mesh, s.P("x", "y"))).sum(0),
    ),
    Program(
        "4*a, b: x",
        lambda s: (
            lambda x: s.jax.grad(
                lambda x: s.jax.shard_map(
                    lambda x: s.lax.psum((x**3).sum(), "x"), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P()
                )(x)
            )(x)
        ),
    ),
    Program(
        "4*a, b: x; 8: x",
        lambda s: (
            lambda x, y: (
                s.jax.shard_map(lambda y: y * x.shape[0], mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"))(y)
                + x.sum()
            )
        ),
    ),
    Program(
        "4*a, b: x",
        lambda s: (
            lambda x: s.lax.fori_loop(
                0,
                3,
                lambda i, x: s.jax.shard_map(
                    lambda x: x * 2 + x.shape[0], mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
                )(x),
                x,
            )
        ),
    ),
]
CASES = SHARD_MAP + EXPLICIT + AUTO


class Exporter:
    """A package, a mesh of its devices, and a program as a jitted function of arguments that are sharded over it."""

    def __init__(self, package, program):
        s = side(package.__name__)
        self.jax, self.is_explicit = s.jax, program in EXPLICIT
        self.export = __import__(f"{package.__name__}.export", fromlist=["export"])
        self.mesh = s.explicit_mesh if self.is_explicit else s.mesh
        rows = [row.split(":") for row in program.arguments.split("; ")]
        self.shapes = [shape.strip() for shape, _ in rows]
        specs = [s.P(*(None if axis == "-" else axis for axis in axes.split())) for _, axes in rows]
        self.shardings = [s.NamedSharding(self.mesh, spec) for spec in specs]
        function = program.function(s)
        if program.out_specs:
            how = dict(mesh=self.mesh, in_specs=tuple(specs), out_specs=program.out_specs(s), **program.options)
            function = s.jax.shard_map(function, **how)
        self.function = s.jax.jit(function)

    def on_mesh(self, run):
        if not self.is_explicit:
            return run()
        with self.jax.set_mesh(self.mesh):
            return run()

    def exported(self):
        scope = self.export.SymbolicScope()
        specs = [
            self.jax.ShapeDtypeStruct(self.export.symbolic_shape(shape, scope=scope), np.float32, sharding=sharding)
            for shape, sharding in zip(self.shapes, self.shardings, strict=True)
        ]
        return self.on_mesh(lambda: self.export.export(self.function)(*specs))

    def results(self, function, sizes):
        shapes = [eval(f"({shape},)", dict(sizes)) for shape in self.shapes]
        arrays = [(np.arange(np.prod(s)) % 17 * 0.25).reshape(s).astype(np.float32) for s in shapes]
        args = [self.jax.device_put(x, s) for x, s in zip(arrays, self.shardings, strict=True)]
        return [np.asarray(x) for x in self.jax.tree.leaves(self.on_mesh(lambda: self.jax.jit(function)(*args)))]


@pytest.mark.parametrize("case", CASES, ids=[expression(case.function)[:60] for case in CASES])
def test_programs_over_meshes(case):
    ours, theirs = (Exporter(package, case) for package in (compare.ours(), compare.theirs()))
    written, by_jax = ours.exported(), theirs.exported()
    assert list(map(str, written.out_avals)) == list(map(str, by_jax.out_avals))
    blob = written.serialize()
    for sizes in SIZES:
        want = theirs.results(theirs.function, sizes)
        for reader, program in (
            (ours, written),
            (theirs, theirs.export.deserialize(blob)),
            (ours, ours.export.deserialize(by_jax.serialize())),
        ):
            for got, value in zip(reader.results(program.call, sizes), want, strict=True):
                np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5)


def test_sizes_that_the_mesh_does_not_divide_are_refused():
    exporter = Exporter(compare.ours(), SHARD_MAP[1])
    with pytest.raises(ValueError, match=r"Division had remainder 4 when computing the value of 'a'"):
        exporter.exported().call(exporter.jax.device_put(np.ones((12, 3), np.float32), exporter.shardings[0]))


def test_derivatives_and_calls_over_another_mesh():
    """A region names its mesh by its axes: a program that calls another has other names of meshes."""
    case = Program(
        "4*a, b: x", lambda s: lambda x: s.jnp.sin(x) * x.shape[0] + s.lax.psum(x.sum(), "x"), lambda s: s.P("x")
    )
    ours, theirs = (Exporter(package, case) for package in (compare.ours(), compare.theirs()))
    sizes = SIZES[1]
    of_both = [ours.exported(), ours.export.deserialize(theirs.exported().serialize(vjp_order=1))]
    for program in of_both:
        read = theirs.export.deserialize(of_both[0].serialize(vjp_order=1))
        derivatives = [s.jax.grad(lambda x, p=p: (p.call(x) ** 2).sum()) for s, p in ((ours, program), (theirs, read))]
        want = theirs.results(theirs.jax.grad(lambda x: (theirs.function(x) ** 2).sum()), sizes)
        for exporter, derivative in zip((ours, theirs), derivatives, strict=True):
            np.testing.assert_allclose(exporter.results(derivative, sizes), want, rtol=1e-5)

        mesh = ours.jax.make_mesh((2, 4), ("u", "v"), axis_types=(ours.jax.sharding.AxisType.Auto,) * 2)
        sharding = ours.jax.sharding.NamedSharding(mesh, ours.jax.P("v"))
        outer = ours.jax.jit(
            lambda x, p=program: p.call(x) * 2 + x.shape[0], in_shardings=sharding, out_shardings=sharding
        )
        described = ours.jax.ShapeDtypeStruct(ours.export.symbolic_shape("8*a, b"), np.float32)
        blob = ours.export.export(outer)(described).serialize()
        want = [2 * x + 8 for x in theirs.results(theirs.function, sizes)]
        for exporter in (ours, theirs):
            got = exporter.results(exporter.export.deserialize(blob).call, sizes)
            np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("shape", ["8, 3", "4*a, 3"])
def test_platform_dependent_inside_shard_map(shape):
    case = Program(
        f"{shape}: x",
        lambda s: lambda x: s.lax.platform_dependent(x, cpu=lambda x: x * 2, default=lambda x: x * 3),
        lambda s: s.P("x"),
    )
    exporter, other = (Exporter(package, case) for package in (compare.ours(), compare.theirs()))
    described = exporter.jax.ShapeDtypeStruct(
        exporter.export.symbolic_shape(shape), np.float32, sharding=exporter.shardings[0]
    )
    program = exporter.export.export(exporter.function, platforms=("tpu", "cpu"))(described)
    for reader, read in ((exporter, program), (other, other.export.deserialize(program.serialize()))):
        x = reader.jax.device_put(np.ones((8, 3), np.float32), reader.shardings[0])
        np.testing.assert_array_equal(read.call(x), np.full((8, 3), 2.0))
