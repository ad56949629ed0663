"""Exported programs, their attributes and calls, and the programs that are refused, compared with jax."""

import collections
import dataclasses

import compare
import mesh_language
import numpy as np
import pytest

X = np.arange(4, dtype=np.float32)
T = collections.namedtuple("T", "a b")

# Facts about a program, on both mesh_language.
FACTS = """
named(export.export(jax.jit(lambda x: x * 2))(X))
named(export.export(jax.jit(lambda x, *, y: (x, {"r": y}), keep_unused=True))(X, y=1))
named(export.export(jax.jit(lambda x, y: jnp.sin(x)))(X, X))
named(export.export(jax.jit(lambda x, c: x * c, static_argnums=1))(X, 3))
named(export.export(jnp.sin)(1.0))
named(export.export(jax.jit(lambda x: x, donate_argnums=0))(jax.ShapeDtypeStruct((2, 0), np.int8)))
named(export.export(jax.jit(jnp.sin), platforms=("tpu", "cuda"))(X))
named(export.export(jax.jit(jnp.sin), platforms=("cpu", "nowhere"), disabled_checks=[D.platform(), D.custom_call("f")])(X))
named(export.export(jax.jit(lambda k: jax.random.split(k)))(jax.random.key(1)))
named(export.export(jax.jit(lambda x: x, in_shardings=on("x", "y"), out_shardings=on(None)))(a))
named(export.export(jax.jit(lambda x: x * 2))(a))
named(export.export(jax.jit(lambda x: x * 2))(jax.device_put(X, d[1])))
named(export.export(jax.jit(lambda x: x.T))(put(np.ones((4, 2), np.float32), "x", mesh=explicit)))
named(export.export(jax.jit(lambda x: x, in_shardings=NS(m, P(("x", "y")))))(np.ones(8)).vjp())
named(export.export(jax.jit(lambda xi, xf: (2 * xi, xf * xf)))(np.int32([1]), X).vjp())
named(export.export(jax.jit(jnp.sin))(X).vjp().vjp())
str(export.export(jax.jit(jnp.sin))(X)), export.default_export_platform()
jaxpr(export.export(jax.jit(lambda x: (x, x)))(X).call, X)
jaxpr(jax.grad(lambda x: export.export(jax.jit(jnp.sin))(X).call(x).sum()), X)
export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version
export.export(jax.jit(jnp.sin))(X).has_vjp(), export.deserialize(export.export(jax.jit(jnp.sin))(X).serialize()).has_vjp()
jax.eval_shape(export.export(jax.jit(jnp.sin))(1.0).call, 1.0)
jax.typeof(export.export(jax.jit(jnp.sin))(1.0).call(np.float32(1)))
export.export(jax.jit(jnp.sin))(1.0).call(2.0)
jax.jit(export.export(jax.jit(jnp.sin))(X).call)(X)
lax.scan(lambda c, _: (export.export(jax.jit(jnp.sin))(1.0).call(c), None), 1.0, length=3)[0]
lax.cond(True, export.export(jax.jit(jnp.sin))(1.0).call, jnp.cos, 1.0)
jax.grad(jax.checkpoint(export.export(jax.jit(jnp.sin))(1.0).call))(1.0)
jax.pmap(export.export(jax.jit(lambda x: x * 2))(X).call)(jnp.ones((8, 4)))
export.export(jax.jit(lambda x: export.export(jax.jit(jnp.sin))(X).call(x) + 1))(X).call(X)
export.export(jax.jit(jnp.cos), platforms=("tpu",), disabled_checks=[D.platform()])(X).call(X)
export.export(jax.jit(pick), platforms=("tpu", "cpu"))(X).call(X)
export.export(jax.jit(export.export(jax.jit(pick), platforms=("tpu", "cuda", "cpu"))(X).call), platforms=("cpu", "tpu"))(X).call(X)
jax.grad(lambda x: export.export(jax.jit(pick), platforms=("tpu", "cpu"))(X).call(x).sum())(X)
export.export(jax.jit(lambda x: lax.scan(lambda c, y: (pick(c) + jax.jit(pick)(y), y), x, jnp.ones(3))), platforms=("cuda", "cpu"))(X).call(X)
export.export(jax.jit(jnp.linalg.eigh), platforms=("tpu", "cuda", "cpu"))(np.eye(2, dtype=np.float32)).call(np.eye(2, dtype=np.float32))[0]
export.export(jax.jit(lambda x: jax.random.normal(jax.random.key(0), x.shape) + x), platforms=("tpu", "cpu"))(X).call(X)
D.platform(), D.custom_call("a"), D.platform() == D.platform(), D.platform() == D.custom_call("a"), D.custom_call("a").is_custom_call(), D.platform().is_custom_call(), hash(D("p")) == hash(D("p"))
export.export(jax.jit(lambda x: x * 2, in_shardings=on("x"), out_shardings=on("y")))(np.ones(8, np.float32)).call(v)
export.export(jax.jit(lambda x: x * 2, in_shardings=on("x")))(np.ones(8, np.float32)).call(put(np.ones(8, np.float32), mesh=back))
export.export(jax.jit(lambda x: x * 2, in_shardings=on("x")))(np.ones(8, np.float32)).in_shardings_jax(back)
export.export(jax.jit(lambda x: x.sum()))(X).call(put(X, "x"))
jax.jit(export.export(jax.jit(lambda x: x * 2, in_shardings=on("x")))(np.ones(8, np.float32)).call)(v)
export.deserialize(export.export(jax.jit(lambda x: x * 2))(put(X, "x", mesh=explicit)).serialize(1)).in_avals
export.deserialize(export.export(jax.jit(lambda x: x * 2))(put(X, "x", mesh=explicit)).serialize()).call(put(X, "x", mesh=explicit))
export.export(jax.jit(jax.shard_map(lambda x: lax.psum(x, "x"), mesh=m, in_specs=P("x"), out_specs=P())))(v).call(v)
export.deserialize(export.export(jax.jit(lambda x: x))(jax.device_put(X, One(d[0], memory_kind="pinned_host"))).serialize()).in_avals
named(export.deserialize(export.export(jax.jit(lambda x, y: (x, y), in_shardings=(on("x"), on("y")), out_shardings=(on(None), on("x"))))(np.ones(8), np.ones(8)).serialize(1)))
len({(e := export.export(jax.jit(jnp.sin))(1.0)), e}), e == export.export(jax.jit(jnp.sin))(1.0)
export.deserialize(export.export(jax.jit(lambda x: x))(registered(1.0, collections.OrderedDict(b=2, a=(None, [3])))).serialize()).in_tree
""".strip().splitlines()

ERRORS = [
    ("export.export(lambda x: x)", "must be the result of `jit`"),
    ("program.call(X, X)", "must have the same pytree structure"),
    ("program.call(X, y=X)", "symmetric difference of key sets"),
    ("program.call(X[:2])", "Shape mismatch for args[0].shape[0] (expected same constant): expected (4,) and called with (2,)"),
    ("program.call(X[None])", "Rank mismatch for args[0]"),
    ("program.call(X.astype(np.int32))", "Dtype mismatch for args[0]: expected float32 and called with int32"),
    ("program.call('a')", "not a valid JAX type"),
    ("export.export(jax.jit(lambda *, b: b))(b=X).call(b=X[1:])", "Shape mismatch for kwargs['b'].shape[0]"),
    ("export.export(jax.jit(jnp.sin), platforms=('tpu',))(X).call(X)", "was exported for platforms"),
    ("jax.vmap(program.call)(X[None])", "Batching rule for 'call_exported' not implemented"),
    ("jax.jvp(program.call, (X,), (X,))", "can't apply forward-mode autodiff (jvp) to a custom_vjp function"),
    ("export.deserialize(program.serialize()).vjp()", "No VJP is available"),
    ("jax.grad(lambda x: export.deserialize(program.serialize()).call(x).sum())(X)", "No VJP is available"),
    ("export.deserialize(program.serialize(1)).serialize(2)", "does not have vjps of high-enough order"),
    ("export.export(jax.jit(lambda t: t))(Unknown(1, 2)).serialize()", "unregistered type"),
    ("export.export(jax.jit(lambda t: t))({1: X}).serialize()", "only for dictionaries with string keys"),
    ("export.export(jax.jit(lambda t: t))(collections.defaultdict(int, a=X)).serialize()", "unregistered type"),
    ("export.register_namedtuple_serialization(int, serialized_name='i')", "register_pytree_node_serialization"),
    ("export.register_pytree_node_serialization(Unknown, serialized_name='u', serialize_auxdata=str, deserialize_auxdata=str)", "must call first"),
    ("registered and export.register_namedtuple_serialization(registered, serialized_name='other')", "Duplicate serialization registration for type"),
    ("registered and export.register_namedtuple_serialization(Unknown, serialized_name='tests.T')", "Duplicate serialization registration for serialized_name"),
    ("export.export(jax.jit(lambda x: jax.pure_callback(lambda x: x, x, x)))(X)", "host_callbacks"),
    ("export.export(jax.jit(jnp.sin, donate_argnums=0), platforms=('cpu', 'nowhere'))(X)", "either all or no lowering platforms"),
    ("sharded.call(X)", "was exported for 8 devices and is called in a context with 1 devices"),
    ("sharded.call(put(X, mesh=m4))", "was exported for 8 devices and is called in a context with 4 devices"),
    ("sharded.in_shardings_jax(m4)", "does not match the mesh used for export"),
    ("setattr(program, 'fun_name', 'f')", "fun_name"),
    ("versioned(8)", "is outside the range of supported versions [9..10]"),
    ("versioned(11)", "is outside the range of supported versions [9..10]"),
]  # fmt: skip


def named(program):
    """The facts that users may look at."""
    fields = [f.name for f in dataclasses.fields(program)]
    left_out = "mlir_module_serialized", "_get_vjp"
    return [f"{name}: {getattr(program, name)}" for name in fields if name not in left_out]


def _registered(s):
    kind = collections.namedtuple("T", "a b")
    try:
        return s.export.register_namedtuple_serialization(kind, serialized_name="tests.T")
    except ValueError:
        return s.kind if hasattr(s, "kind") else None


def _once(make):
    made = {}
    return lambda s: made[id(s)] if id(s) in made else made.setdefault(id(s), make(s))


def _versioned(s):
    def versioned(version):
        s.jax.config.update("jax_export_calling_convention_version", version)
        try:
            return s.export.export(s.jax.jit(s.jnp.sin))(X)
        finally:
            s.jax.config.update("jax_export_calling_convention_version", 10)

    return versioned


GIVEN = dict(
    export=lambda s: s.export,
    D=lambda s: s.export.DisabledSafetyCheck,
    named=lambda s: named,
    X=lambda s: X,
    collections=lambda s: collections,
    pick=lambda s: lambda x: s.lax.platform_dependent(x, cpu=s.jnp.sin, tpu=s.jnp.cos, cuda=s.jnp.tan),
    program=lambda s: s.export.export(s.jax.jit(s.jnp.sin))(X),
    sharded=lambda s: s.export.export(s.jax.jit(lambda x: x * 2, in_shardings=s.on()))(X),
    Unknown=lambda s: T,
    registered=_once(_registered),
    versioned=_versioned,
)


@pytest.fixture(autouse=True, scope="module")
def exports():
    for package in (compare.ours(), compare.theirs()):
        mesh_language.side(package.__name__).export = __import__(f"{package.__name__}.export", fromlist=["export"])


@pytest.mark.oracle
@pytest.mark.parametrize("line", FACTS)
def test_both_sides_print_the_same(line):
    mesh_language.same(line, **GIVEN)


@pytest.mark.oracle
def test_both_sides_refuse_the_same():
    mesh_language.same_errors(ERRORS, **GIVEN)


SHAPES = {
    "(2*a, b + a)": ((2, 1), (3, 4), (4, 2), (2, 6)),
    "(3, a, b + a)": ((3, 4, 4), (3, 4, 2), (3, 4)),
    "(2, a, a)": ((2, 3, 4),),
}


@pytest.mark.oracle
@pytest.mark.parametrize("spec", SHAPES)
def test_shapes_that_the_specification_excludes_are_explained_in_jax_s_words(spec):
    def program(jax, jnp, export):
        said = []
        for shape in SHAPES[spec]:
            described = jax.ShapeDtypeStruct(export.symbolic_shape(spec), jnp.float32)
            exported = export.export(jax.jit(lambda x: x * 2))(described)
            try:
                said.append(str(exported.call(jnp.ones(shape)).shape))
            except ValueError as error:
                # The text of another number of axes is minijax's own.
                said.append(str(error) if len(shape) == len(described.shape) else "ValueError")
        return said

    compare.same(program)


def test_dtypes_that_the_format_lacks_are_refused():
    import ml_dtypes

    from minijax import export, jit

    program = export.export(jit(lambda x: x))(np.ones(2, ml_dtypes.int2))
    with pytest.raises(NotImplementedError, match="dtype int2"):
        program.serialize()
