"""The stages of a jitted function, and functions seen without running them."""

import collections
import importlib.util

import compare
import numpy as np
import pytest

import minijax
from minijax.run.programs.compile import compile_count

Point = collections.namedtuple("Point", "x y")


def lowered(jax, jnp):
    f = jax.jit(lambda t, n, unused: {"a": t["w"] @ t["w"] * n}, static_argnums=1, donate_argnums=0)
    return f.trace({"w": np.ones((2, 2), np.float32)}, 2, 3.0)


def _stages(jax, jnp):
    traced = lowered(jax, jnp)
    stages = traced, traced.lower(), traced.lower().compile()
    return [[str(s.args_info), str(s.in_avals), str(s.in_tree), str(s.out_tree), s.donate_argnums] for s in stages]


def _arg_info(jax, jnp):
    info = lowered(jax, jnp).args_info[0][0]["w"]
    leaves = jax.tree.map(lambda leaf: leaf.shape, lowered(jax, jnp).args_info)
    same = jax.stages.ArgInfo(jnp.ones(2).aval, True) == jax.stages.ArgInfo(jnp.ones(2).aval, True)
    return info.shape, info.dtype.name, info.donated, str(info), str(leaves), same


def _kwargs(jax, jnp):
    f = jax.jit(lambda x, *ys, k=1, **kw: (x, ys, k, kw))
    traced = f.trace(1, 2, z=3, k=4.0)
    return (
        str(traced.args_info),
        str(traced.in_tree),
        str(traced.out_info),
        traced.lower().compile()(1, 2, z=5, k=6.0),
    )


def _structs(jax, jnp):
    x = jax.ShapeDtypeStruct((2, 3), jnp.bfloat16)
    f = jax.jit(lambda x, y: x.T + y)
    out = f.lower(x, 2.0)
    return out.as_text(), str(out.out_info), out.compile()(jnp.ones((2, 3), jnp.bfloat16), 3.0)


def _struct(jax, jnp):
    s = jax.ShapeDtypeStruct((2, 3), np.int8)
    weak = jax.ShapeDtypeStruct([], jnp.float32, weak_type=True)
    return (
        repr(s),
        repr(weak),
        s.size,
        s.ndim,
        len(s),
        s == jax.ShapeDtypeStruct((2, 3), "int8"),
        s == weak,
        s.update(shape=(4,)).shape,
        hash(s) == hash(jax.ShapeDtypeStruct((2, 3), "int8")),
        str(s.dtype),
        s.sharding,
        s.weak_type,
        jax.ShapeDtypeStruct((1,), float).dtype.name,
        [
            str(jax.typeof(x))
            for x in (s, weak, jax.ShapeDtypeStruct((1,), float), jax.ShapeDtypeStruct((2,), jax.random.key(0).dtype))
        ],
    )


def _eval_shape(jax, jnp):
    a = jax.ShapeDtypeStruct((2,), jnp.float32)
    return (
        str(jax.eval_shape(lambda x, y: {"s": x + y, "n": None, "t": (x.sum(), 1, 2.0)}, a, np.ones(2))),
        str(jax.eval_shape(lambda *, k: k @ k.T, k=np.ones((2, 3), np.float16))),
        str(jax.eval_shape(jax.jit(lambda x: x > 0), a)),
        str(jax.eval_shape(lambda p: Point(p.y, p.x), Point(1, a))),
        str(jax.eval_shape(lambda x: jax.eval_shape(jnp.sum, x).dtype.name == "float32" and x, a)),
    )


def _make_jaxpr(jax, jnp):
    made = jax.make_jaxpr(lambda x, n, y: [x] * n + [y], static_argnums=1)(1.0, 2, 3)
    pair = jax.make_jaxpr(lambda x: {"a": x, "b": (jnp.sum(x), 2)}, return_shape=True)(np.ones(2))
    return (
        str(made),
        str(pair),
        str(jax.make_jaxpr(lambda x, n: x * n, static_argnums=(-1,))(1.0, 2)),
        str(jax.make_jaxpr(lambda x: jax.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)),
        str(jax.make_jaxpr(lambda x, *, k=2: x + k)(1.0, k=np.ones(2))),
        str(jax.make_jaxpr(lambda x: x + np.arange(3))(1)),
        str(jax.make_jaxpr(lambda: 3)()),
        str(jax.make_jaxpr(jnp.sin)(jax.ShapeDtypeStruct((2,), "float32"))),
        jax.make_jaxpr(jnp.sin).__name__,
        str(jax.make_jaxpr(lambda x: (x, x, 1, True, None))(2)),
    )


def _jaxpr_views(jax, jnp):
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) + np.arange(3.0))(np.ones(3))
    return (
        str(closed.jaxpr),
        [str(a) for a in closed.in_avals],
        [str(a) for a in closed.out_avals],
        closed.consts,
        [e.primitive.name for e in closed.eqns],
        closed.effects == set(),
        str(closed.eqns[0]),
    )


def _costs(jax, jnp):
    low = jax.jit(lambda x: x @ x).lower(np.ones((4, 4), np.float32))
    compiled = low.compile()
    memory = compiled.memory_analysis()
    return (
        low.cost_analysis(),
        compiled.cost_analysis(),
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes,
        memory.temp_size_in_bytes,
    )


def _texts(jax, jnp):
    low = jax.jit(lambda x: jnp.sin(x) * 2).lower(np.ones(2, np.float32))
    return (
        low.as_text(),
        low.as_text("hlo"),
        "metadata=" in low.as_text("hlo", debug_info=True),
        low.compile().as_text().split(",")[0],
        "loc(" in low.as_text(debug_info=True),
        str(low.compiler_ir()) == low.as_text(),
        low.as_text("stablehlo") == low.as_text(),
    )


def _positions(jax, jnp):
    def lowered(limit):
        def inner(x):
            with jax.named_scope("inside"):
                return jax.lax.mul(jnp.sin(x), np.float32(2))

        def outer(x):
            return -inner(x)

        jax.config.update("jax_traceback_in_locations_limit", limit)
        return jax.jit(outer).lower(np.float32(2))

    before = jax.config.jax_traceback_in_locations_limit
    try:
        # The frames around are the runner's.
        return [lowered(limit).as_text("hlo", debug_info=True) for limit in (0, 1, 3)]
    finally:
        jax.config.update("jax_traceback_in_locations_limit", before)


def _irs(jax, jnp):
    low = jax.jit(lambda x, unused: jax.lax.scan(lambda c, y: (jnp.sin(c) + y, c), x, x)).lower(np.ones(2), 3)
    module, hlo = low.compiler_ir(), low.compiler_ir(dialect="hlo")
    functions = [op.attributes["sym_name"].value for op in module.body.operations]
    return (
        type(module).__name__,
        compare.canonical(str(module)),
        low.compiler_ir("stablehlo") is module,
        functions[0],
        type(hlo).__name__,
        hlo.name(),
        hlo.as_hlo_text().splitlines()[0],
        'loc("x")' in module.operation.get_asm(enable_debug_info=True),
    )


def _shardings(jax, jnp):
    compiled = jax.jit(lambda x, y: {"a": x}).lower(1.0, 2.0).compile()
    return str(compiled.input_shardings), str(compiled.output_shardings), str(compiled.out_info)


def _traced_attributes(jax, jnp):
    traced = jax.jit(lambda x: (x, {"b": x + 1})).trace(1)
    return traced.fun_name, str(traced.jaxpr), str(traced.out_avals), str(traced.out_info)


def _compiled_calls(jax, jnp):
    compiled = jax.jit(lambda x, *, y: (x + y, None)).lower(1.0, y=np.ones(2, np.float32)).compile()
    return (
        compiled(2.0, y=jnp.ones(2)),
        compiled(3.0, y=np.zeros(2, np.float32)),
        compiled(jnp.float32(2), y=np.ones(2, np.float32)),
        compiled(np.float32(2), y=np.ones(2, np.float32)),
    )


def _compiled_donation(jax, jnp):
    x = jnp.ones(3)
    compiled = jax.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()
    return compiled(x), x.is_deleted()


def _large_constant(jax, jnp):
    held = np.arange(100.0, dtype=np.float32)
    low = jax.jit(lambda x: x + held).lower(1.0)
    return str(low.args_info), low.compile()(2.0)


def _options(jax, jnp):
    low = jax.jit(lambda x: jnp.exp(x)).lower(1.0)
    return low.compile(compiler_options={"xla_cpu_enable_fast_math": False})(0.0)


def _platforms(jax, jnp):
    return jax.jit(lambda x: x + 1).trace(1.0).lower(lowering_platforms=("tpu",)).as_text()


def _under_vmap(jax, jnp):
    compiled = jax.jit(jnp.sin).lower(np.ones(2, np.float32)).compile()
    return jax.vmap(compiled)(np.ones((3, 2), np.float32))


VALUES = {
    "infos at each stage": _stages,
    "an ArgInfo": _arg_info,
    "keywords": _kwargs,
    "ShapeDtypeStruct arguments": _structs,
    "a ShapeDtypeStruct": _struct,
    "eval_shape": _eval_shape,
    "make_jaxpr": _make_jaxpr,
    "views of a jaxpr": _jaxpr_views,
    "costs and memory": _costs,
    "texts": _texts,
    "modules": _irs,
    "source positions": _positions,
    "shardings": _shardings,
    "a Traced": _traced_attributes,
    "calling a Compiled": _compiled_calls,
    "a Compiled that takes donations": _compiled_donation,
    "large constants are no arguments": _large_constant,
    "compiler options": _options,
    "another platform": _platforms,
}


def _compiled(jax):
    return jax.jit(lambda x, y: x + y).lower(np.ones(2, np.float32), 1.0).compile()


ERRORS = {
    "another shape": (
        lambda jax: _compiled(jax)(np.ones(3, np.float32), 1.0),
        "Argument types differ from the types for which this computation was compiled",
        "float32[2]",
        "float32[3]",
    ),
    "another dtype": (
        lambda jax: _compiled(jax)(np.ones(2, np.int32), 1.0),
        "Argument types differ from the types for which this computation was compiled",
        "int32[2]",
    ),
    "another tree": (
        lambda jax: _compiled(jax)([np.ones(2, np.float32)], 1.0),
        "Function compiled with input pytree does not match the input pytree it was called with",
    ),
    "too few": (
        lambda jax: _compiled(jax)(np.ones(2, np.float32)),
        "Function compiled with input pytree does not match the input pytree it was called with",
    ),
    "a keyword": (
        lambda jax: _compiled(jax)(np.ones(2, np.float32), y=1.0),
        "Function compiled with input pytree does not match the input pytree it was called with",
    ),
    "no value": (lambda jax: _compiled(jax)(np.ones(2, np.float32), "text"), "str"),
    "a static given again": (
        lambda jax: jax.jit(lambda x, n: x * n, static_argnums=1).lower(1.0, 2).compile()(1.0, 2),
        "pytree",
    ),
    "under vmap": (
        lambda jax, jnp: _under_vmap(jax, jnp),
        "Cannot apply JAX transformations to a function lowered and compiled",
    ),
    "under grad": (
        lambda jax, jnp: jax.grad(jax.jit(jnp.sin).lower(1.0).compile())(1.0),
        "Cannot apply JAX transformations to a function lowered and compiled",
    ),
    "under jit": (
        lambda jax, jnp: jax.jit(jax.jit(jnp.sin).lower(1.0).compile())(1.0),
        "Cannot apply JAX transformations to a function lowered and compiled",
    ),
    "unknown dialect": (lambda jax: jax.jit(lambda x: x).lower(1).as_text("no such"), "unknown dialect: no such"),
    "a module of an unknown dialect": (
        lambda jax: jax.jit(lambda x: x).lower(1).compiler_ir("mhlo"),
        "unknown dialect",
    ),
    "unknown option": (
        lambda jax: jax.jit(lambda x: x).lower(1).compile(compiler_options={"no_such_option": 1}),
        "no_such_option",
    ),
    "wrong option": (
        lambda jax: jax.jit(lambda x: x).lower(1).compile(compiler_options={"xla_cpu_enable_fast_math": "no"}),
        "xla_cpu_enable_fast_math",
    ),
    "no dtype": (lambda jax: jax.ShapeDtypeStruct((1,), None), "dtype must be specified"),
    "no shape": lambda jax: jax.ShapeDtypeStruct(None, np.float32),
    "make_jaxpr of no function": (lambda jax: jax.make_jaxpr(3), "the first argument must be callable"),
    "make_jaxpr of no value": (
        lambda jax: jax.make_jaxpr(lambda x: x)("text"),
        "Error interpreting argument to",
        "at path x",
    ),
    "make_jaxpr of no result": (lambda jax: jax.make_jaxpr(lambda x: "text")(1), "not a valid JAX type"),
    "eval_shape of no value": (
        lambda jax: jax.eval_shape(lambda x: x, "text"),
        "Error interpreting argument to",
        "at path x",
    ),
    "eval_shape looks at values": (lambda jax: jax.eval_shape(lambda x: int(x), 1), "traced array with shape int32[]"),
    "len of a scalar struct": (lambda jax: len(jax.ShapeDtypeStruct((), np.int8)), "len() of unsized object"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_a_stage_shows_the_same_as_in_jax(name):
    if name == "source positions" and importlib.util.find_spec("jax") is None:
        pytest.skip("columns are those of one version of Python")
    compare.same(VALUES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_a_stage_raises_as_in_jax(name):
    program, *phrases = entry if isinstance(entry := ERRORS[name], tuple) else (entry,)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
    )


def test_stages_share_the_traces_and_programs_of_calls():
    seen = []
    f = minijax.jit(lambda x: (seen.append(1), x * x * x / 8.0)[1])
    f(1.0)
    before = compile_count()
    assert float(f.trace(2.0).lower().compile()(2.0)) == 1.0
    f.eval_shape(3.0)
    assert len(seen) == 1
    assert compile_count() == before


@pytest.mark.oracle
@pytest.mark.parametrize("x", [2, 2.5, np.float32(1), np.ones((2, 3), np.int8)], ids=str)
def test_results_of_each_stage_are_described(x):
    def stages(jax):
        traced = jax.jit(lambda x: {"a": x * 2, "b": (x, 1.5)}).trace(x)
        return [str(traced.out_info), str(traced.lower().out_info), str(jax.eval_shape(lambda x: x, x))]

    compare.same(stages)
