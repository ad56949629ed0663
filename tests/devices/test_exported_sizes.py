"""Exported programs of symbolic sizes over meshes: each side's run here, and ours in jax, at two sizes.

jax runs few of its own: XLA does not refine shapes in a region, and takes a size that is constrained for no constant.
"""

from types import SimpleNamespace

import compare
import numpy as np
import pytest
from mesh_language import names_of

pytestmark = pytest.mark.oracle

SIZES = [dict(a=1, b=3, c=2), dict(a=2, b=5, c=4)]
# Shapes of arguments and how they lie; then, over a mesh of axes that are Auto, functions under `shard_map`, with what
# they are told; over Explicit axes, functions of whole arrays.
SHARD_MAP = """
8*a: x                 | lax.psum(x.sum(), "x") | P()
8*a, b: x              | jnp.sin(x) * x.shape[0] + 1 | P("x")
4*a, 2*b: x y          | x * x.shape[1] + lax.axis_index("x") | P("x", "y")
4*a, 2*b: x y; 2*b, c: y | lax.psum(x @ y, "y") * y.shape[1] | P("x")
4*a, 2: x              | lax.all_gather(x + 1, "x", tiled=True) | P() | check_vma=False
16*a, 2: x             | lax.psum_scatter(x * 2, "x", tiled=True) | P("x")
4*a, 4*b: x            | lax.all_to_all(x + 1, "x", 1, 0, tiled=True) | P(None, "x")
4*a: x                 | lax.ppermute(x * 2, "x", [(i, (i + 1) % 4) for i in range(4)]) | P("x")
4*a, b: x              | lax.psum(x, "x") + lax.axis_index("x") + jnp.sort(x, 1) | P("x") | axis_names={"x"}, check_vma=False
4*a, b: x              | lax.scan(lambda c, r: (c + r, c.sum()), x[0] * 0, x)[0] | P("x") | check_vma=False
4*a: x                 | x + jax.random.normal(jax.random.key(0), x.shape) | P("x")
4*a, b: x              | (x * 2, lax.psum(x.sum(), "x"), jnp.float32(3)) | (P("x"), P(), P()) | check_vma=False
4*a, 2*b: x            | jax.shard_map(lambda y: lax.psum(jnp.sin(y) * y.shape[1], "y"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(x) + x.shape[0] | P("x") | axis_names={"x"}
""".strip().splitlines()  # noqa: E501
EXPLICIT = """
8*a, b: x                | jnp.sin(x) * x.shape[0] + x
8*a, b: x; b, 2*c: - y   | x @ y
8*a, 2*b: x y; 2*b, c: y | jnp.einsum("ij,jk->ik", x, y, out_sharding=P("x"))
8*a, 2*b: x y            | jax.sharding.reshard(x, P("x")).sum(1), x.mean(0), x - x.sum(1, keepdims=True)
8*a, 2*b: x y            | jax.grad(lambda x: (jnp.sin(x) ** 2).sum())(x)
8*a, 2*b: x              | x[:, 1:], x[:, ::2], x.T, x.reshape(x.shape[0], 2, -1)
b, 8*a: - x              | lax.scan(lambda c, r: (c + r, c * r), jnp.zeros_like(x[0]), x)
8*a, 2*b: x              | jax.vmap(jnp.cumsum)(x)
8*a, b: x                | jax.shard_map(lambda x: x * x.shape[0], out_specs=P("x"))(x) + 1
""".strip().splitlines()
AUTO = """
8*a, b: x                | jnp.cumsum(x, 0) * x.shape[0]
8*a, 2*b: x              | lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P("x", "y"))).sum(0)
4*a, b: x                | jax.grad(lambda x: jax.shard_map(lambda x: lax.psum((x**3).sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x))(x)
4*a, b: x; 8: x          | jax.shard_map(lambda y: y * x.shape[0], mesh=mesh, in_specs=P("x"), out_specs=P("x"))(y) + x.sum()
4*a, b: x                | lax.fori_loop(0, 3, lambda i, x: jax.shard_map(lambda x: x * 2 + x.shape[0], mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x), x)
""".strip().splitlines()  # noqa: E501
CASES = [("shard_map", s) for s in SHARD_MAP] + [("explicit", s) for s in EXPLICIT] + [("auto", s) for s in AUTO]


class Side:
    """A package, a mesh of its devices, and a case as a jitted function of arguments that lie on it."""

    def __init__(self, package, kind, line):
        n = SimpleNamespace(**names_of(package))
        self.jax = jax = n.jax
        self.export = __import__(f"{jax.__name__}.export", fromlist=["export"])
        P, axis_type = jax.sharding.PartitionSpec, jax.sharding.AxisType
        kinds = (axis_type.Explicit if kind == "explicit" else axis_type.Auto,) * 2
        self.mesh = mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
        args, body, *rest = [part.strip() for part in line.split(" | ")]
        rows = [row.split(":") for row in args.split("; ")]
        self.shapes = [shape.strip() for shape, _ in rows]
        specs = [P(*(None if axis == "-" else axis for axis in axes.split())) for _, axes in rows]
        self.shardings = [jax.sharding.NamedSharding(mesh, spec) for spec in specs]
        names = {**vars(n), "P": P, "NamedSharding": jax.sharding.NamedSharding, "mesh": mesh}
        function = eval(f"lambda {', '.join('xy'[: len(rows)])}: ({body})", names)
        if kind == "shard_map":
            out, *how = [eval(f"dict({part})" if "=" in part else part, names) for part in rest]
            function = jax.shard_map(function, mesh=mesh, in_specs=tuple(specs), out_specs=out, **dict(*how))
        self.function, self.is_explicit = jax.jit(function), kind == "explicit"

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


@pytest.mark.parametrize(("kind", "line"), CASES, ids=[line.split(" | ")[1][:60] for _, line in CASES])
def test_programs_over_meshes(kind, line):
    ours, theirs = (Side(package, kind, line) for package in (compare.ours(), compare.theirs()))
    written, by_jax = ours.exported(), theirs.exported()
    assert list(map(str, written.out_avals)) == list(map(str, by_jax.out_avals))
    blob = written.serialize()
    for sizes in SIZES:
        want = theirs.results(theirs.function, sizes)
        for side, program in (
            (ours, written), (theirs, theirs.export.deserialize(blob)), (ours, ours.export.deserialize(by_jax.serialize()))
        ):  # fmt: skip
            for got, value in zip(side.results(program.call, sizes), want, strict=True):
                np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5)


def test_other_sizes_of_axes_are_refused():
    """Sizes that the mesh does not divide are none that the program was exported for."""
    side = Side(compare.ours(), "shard_map", SHARD_MAP[1])
    with pytest.raises(ValueError, match=r"Division had remainder 4 when computing the value of 'a'"):
        side.exported().call(side.jax.device_put(np.ones((12, 3), np.float32), side.shardings[0]))


def test_derivatives_and_programs_that_call_them_over_another_mesh():
    """A region says its mesh by its axes: the meshes of a program have other names where another calls it."""
    line = '4*a, b: x | jnp.sin(x) * x.shape[0] + lax.psum(x.sum(), "x") | P("x")'
    ours, theirs = (Side(package, "shard_map", line) for package in (compare.ours(), compare.theirs()))
    sizes = SIZES[1]
    of_both = [ours.exported(), ours.export.deserialize(theirs.exported().serialize(vjp_order=1))]
    for program in of_both:
        read = theirs.export.deserialize(of_both[0].serialize(vjp_order=1))
        derivatives = [s.jax.grad(lambda x, p=p: (p.call(x) ** 2).sum()) for s, p in ((ours, program), (theirs, read))]
        want = theirs.results(theirs.jax.grad(lambda x: (theirs.function(x) ** 2).sum()), sizes)
        for side, derivative in zip((ours, theirs), derivatives, strict=True):
            np.testing.assert_allclose(side.results(derivative, sizes), want, rtol=1e-5)

        mesh = ours.jax.make_mesh((2, 4), ("u", "v"), axis_types=(ours.jax.sharding.AxisType.Auto,) * 2)
        lies = ours.jax.sharding.NamedSharding(mesh, ours.jax.P("v"))
        outer = ours.jax.jit(lambda x, p=program: p.call(x) * 2 + x.shape[0], in_shardings=lies, out_shardings=lies)
        described = ours.jax.ShapeDtypeStruct(ours.export.symbolic_shape("8*a, b"), np.float32)
        blob = ours.export.export(outer)(described).serialize()
        want = [2 * x + 8 for x in theirs.results(theirs.function, sizes)]
        for side in (ours, theirs):
            got = side.results(side.export.deserialize(blob).call, sizes)
            np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("shape", ["8, 3", "4*a, 3"])
def test_which_platform_it_is_is_known_inside(shape):
    line = f'{shape}: x | lax.platform_dependent(x, cpu=lambda x: x * 2, default=lambda x: x * 3) | P("x")'
    side, other = (Side(package, "shard_map", line) for package in (compare.ours(), compare.theirs()))
    described = side.jax.ShapeDtypeStruct(side.export.symbolic_shape(shape), np.float32, sharding=side.shardings[0])
    program = side.export.export(side.function, platforms=("tpu", "cpu"))(described)
    for reader, read in ((side, program), (other, other.export.deserialize(program.serialize()))):
        x = reader.jax.device_put(np.ones((8, 3), np.float32), reader.shardings[0])
        np.testing.assert_array_equal(read.call(x), np.full((8, 3), 2.0))
