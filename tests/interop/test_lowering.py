"""Users' lowering rules: what they build becomes part of the program, as in jax's text."""

import importlib
import sys

import compare
import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, func, stablehlo as hlo

X = np.array([0.5, -1.5, 2.0], np.float32)
Y = np.arange(6, dtype=np.float32).reshape(2, 3)


def primitive(extend, infer=lambda *avals, **params: avals[0], multiple_results=False):
    p = extend.core.Primitive("mine")
    p.multiple_results = multiple_results
    p.def_abstract_eval(infer)
    return p


def by_rule(rule, infer=lambda *avals, **params: avals[0], multiple_results=False, calls=1, **how):
    """A program with a primitive lowered by `rule(mlir, ctx, *operands, **params)`."""

    def program(extend, interpreters):
        p = primitive(extend, infer, multiple_results)
        mlir = interpreters.mlir
        mlir.register_lowering(p, lambda ctx, *xs, **params: rule(mlir, ctx, *xs, **params), **how)

        def function(*xs):
            out = p.bind(*xs)
            for _ in range(calls - 1):
                out = p.bind(out)
            return out

        return function

    return program


def while_rule(mlir, ctx, x):
    """Builds regions: doubles the operand three times."""
    scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    types = [scalar, x.type]
    loop = hlo.WhileOp(types, [mlir.ir_constant(np.int32(0)), x])
    condition = loop.regions[0].blocks.append(*types)
    with ir.InsertionPoint(condition):
        less = hlo.ComparisonDirectionAttr.get("LT")
        hlo.return_([hlo.compare(condition.arguments[0], mlir.ir_constant(np.int32(3)), less)])
    body = loop.regions[1].blocks.append(*types)
    with ir.InsertionPoint(body):
        i, y = body.arguments
        hlo.return_([hlo.add(i, mlir.ir_constant(np.int32(1))), hlo.add(y, y)])
    return [loop.results[1]]


def helper_rule(mlir, ctx, x):
    """Adds a function to the module, and calls it."""
    with ir.InsertionPoint.at_block_begin(ctx.module_context.module.body):
        helper = func.FuncOp("helper", ([x.type], [x.type]))
        helper.attributes["sym_visibility"] = ir.StringAttr.get("private")
    with ir.InsertionPoint(helper.add_entry_block()):
        func.ReturnOp([hlo.negate(helper.arguments[0])])
    return func.CallOp(helper, [x]).results


def nested_rule(mlir, ctx, x):
    doubled = mlir.lower_fun(lambda x: [x * 2, x + 1], multiple_results=True)(ctx, x)
    return [hlo.add(*doubled)]


def typed_rule(mlir, ctx, x):
    made = mlir.aval_to_ir_type(ctx.module_context, ctx.avals_out[0])
    assert mlir.aval_to_ir_types(ctx.module_context, ctx.avals_in[0]) == (x.type,)
    assert mlir.dtype_to_ir_type(np.dtype(np.float32)) == x.type.element_type
    return [hlo.broadcast_in_dim(made, x, mlir.dense_int_array([1]))]


def doubled_aval(jax):
    return lambda x: jax.core.ShapedArray((2, *x.shape), x.dtype)


def jaxpr_of(mlir):
    """The jaxpr of a function with a constant, of the package that `mlir` belongs to."""
    jax = sys.modules[mlir.__name__.partition(".")[0]]
    return jax.make_jaxpr(lambda x: jax.numpy.sin(x) + np.arange(3, dtype=np.float32))(X)


def function_rule(mlir, ctx, x):
    """Calls a function that holds a jaxpr, twice."""
    closed, made = jaxpr_of(mlir), ctx.module_context
    f = mlir.lower_jaxpr_to_fun(made, "helper", closed, [], num_const_args=0, in_avals=closed.in_avals)
    assert str(f.type) == "(tensor<3xf32>) -> tensor<3xf32>"
    for _ in range(2):
        (x,) = func.CallOp(f.type.results, ir.FlatSymbolRefAttr.get(f.name.value), [x]).results
    return [x]


def operations_rule(mlir, ctx, x):
    """Builds the operations of a jaxpr."""
    closed = jaxpr_of(mlir)
    outs, tokens = mlir.jaxpr_subcomp(
        ctx.module_context,
        closed.jaxpr,
        ctx.name_stack,
        ctx.tokens_in,
        list(map(mlir.ir_constant, closed.consts)),
        x,
        dim_var_values=ctx.dim_var_values,
        const_lowering=ctx.const_lowering,
        outer_traceback=None,
    )
    assert type(outs) is tuple and type(tokens) is mlir.TokenSet and len(tokens) == 0
    return outs


def call_rule(mlir, ctx, x):
    return mlir.core_call_lowering(ctx, x, name="called", backend=None, call_jaxpr=jaxpr_of(mlir))


class Held:
    """A value of a user-defined type."""

    def __init__(self, x):
        self.x, self.shape, self.dtype, self.nbytes = x, x.shape, x.dtype, x.nbytes


def held_rule(mlir, ctx, x):
    mlir.register_constant_handler(Held, lambda value, aval: mlir.ir_constant(value.x))
    return [hlo.add(x, mlir.ir_constant(Held(ONES))), *mlir.ir_constants(Held(ONES))]


ONES = np.ones(3, np.float32)
CASES = [
    compare.Case("one op", by_rule(lambda m, c, x: [hlo.sine(x)]), (X,)),
    compare.Case("an operation", by_rule(lambda m, c, x: hlo.AddOp(x, x)), (X,)),
    compare.Case("its results", by_rule(lambda m, c, x: hlo.AddOp(x, x).results), (X,)),
    compare.Case("called thrice", by_rule(lambda m, c, x: [hlo.exponential(x)], calls=3), (X,)),
    compare.Case("not inline", by_rule(lambda m, c, x: [hlo.exponential(x)], calls=3, inline=False), (X,)),
    compare.Case("on cpu", by_rule(lambda m, c, x: [hlo.sine(x)], platform="cpu"), (X,)),
    compare.Case("constants", by_rule(lambda m, c, x: [
        hlo.add(x, m.ir_constant(ONES)), *m.ir_constants(np.arange(3, dtype=np.float32))],
        lambda x: [x, x], True), (X,)),
    compare.Case("two results", by_rule(lambda m, c, x, y: [y, hlo.add(x, y)], lambda x, y: [x, y], True),
                 (X, X)),
    compare.Case("no results", by_rule(lambda m, c, x: [], lambda x: [], True), (X,)),
    compare.Case("its own operand", by_rule(lambda m, c, x: [x]), (X,)),
    compare.Case("a loop", by_rule(while_rule), (X,)),
    compare.Case("a function", by_rule(helper_rule, calls=2), (X,)),
    compare.Case("chlo", by_rule(lambda m, c, x: [chlo.tan(x)]), (X,)),
    compare.Case("a string", by_rule(lambda m, c, x: [hlo.CustomCallOp(
        [x.type], [x], call_target_name=ir.StringAttr.get("Sharding"), backend_config=ir.StringAttr.get("%0 @a"),
        api_version=m.i32_attr(1)).result]), (X,)),
    compare.Case("nested", by_rule(nested_rule), (X,)),
    compare.Case("a jaxpr's function", by_rule(function_rule), (X,)),
    compare.Case("a jaxpr's operations", by_rule(operations_rule, calls=2), (X,)),
    compare.Case("a jaxpr's call", by_rule(call_rule, calls=2), (X,)),
    compare.Case("constants of a user's type", by_rule(held_rule, lambda x: [x, x], True), (X,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operations_that_a_rule_builds_are_in_the_module(case, tier):
    compare.check(case, tier)


def test_a_loop_that_a_rule_builds_runs():
    (case,) = [case for case in CASES if case.name == "a loop"]
    result = compare.ours().jit(compare.run_on(compare.ours(), case.program))(*case.args)
    np.testing.assert_array_equal(result, 8 * case.args[0])


def test_rules_are_called_in_branches_and_bodies():
    def program(jax, jnp, extend, interpreters):
        f = by_rule(helper_rule)(extend, interpreters)
        step = lambda c, x: (f(c) + x, f(x))  # noqa: E731
        return lambda x: (jax.lax.scan(step, x, jnp.stack([x, x])), jax.lax.cond(x[0] > 0, f, lambda x: x, x))

    compare.check(compare.Case("nested", program, (X,)))


def test_types_are_those_of_the_program():
    def program(jax, extend, interpreters):
        return by_rule(typed_rule, doubled_aval(jax))(extend, interpreters)

    compare.check(compare.Case("types", program, (X,)))


def with_params(jax, jnp, extend, interpreters):
    p = primitive(extend)
    fun = lambda x, *, times, by: jnp.sin(x) * times + by  # noqa: E731
    interpreters.mlir.register_lowering(p, interpreters.mlir.lower_fun(fun, multiple_results=False))
    constants = np.arange(3, dtype=np.float32)
    q = primitive(extend)
    mlir = interpreters.mlir
    mlir.register_lowering(q, mlir.lower_fun(lambda x: (jnp.cumsum(x + constants),)))
    return lambda x: q.bind(p.bind(x, times=2, by=0.5))


def test_a_function_is_traced_with_the_parameters():
    compare.check(compare.Case("lower_fun", with_params, (X,)))


def test_a_traced_function_may_use_references():
    def program(jax, jnp, extend, interpreters):
        def doubled(x):
            total = jax.new_ref(jnp.zeros_like(x))
            jax.lax.fori_loop(0, 2, lambda i, _: total.__setitem__(..., total[...] + x), None)
            return jax.freeze(total)

        p = primitive(extend)
        interpreters.mlir.register_lowering(p, interpreters.mlir.lower_fun(doubled, multiple_results=False))
        return lambda x: p.bind(jnp.sin(x))

    compare.check(compare.Case("references", program, (X,)))


def test_each_platform_may_have_its_rule():
    def program(extend, interpreters):
        p, register = primitive(extend), interpreters.mlir.register_lowering
        register(p, lambda ctx, x: [hlo.sine(x)])
        register(p, lambda ctx, x: [hlo.cosine(x)], platform="cpu")
        register(p, lambda ctx, x: [hlo.tan(x)], platform="tpu")
        return p.bind

    compare.check(compare.Case("platforms", program, (X,)))


def test_the_rule_of_a_built_in_primitive_can_be_replaced():
    changed = []

    def program(jax, interpreters, rule=hlo.popcnt):
        changed.append((jax, interpreters))
        interpreters.mlir.register_lowering(jax.lax.clz_p, lambda ctx, x: [rule(x)], platform="cpu")
        return jax.lax.clz

    try:
        compare.check(compare.Case("clz", program, (np.arange(3, dtype=np.int32),)))
    finally:
        for side in list(changed):
            program(*side, rule=hlo.count_leading_zeros)


def test_a_rule_for_another_platform_does_not_count():
    def program(jax, extend, interpreters):
        p = primitive(extend)
        interpreters.mlir.register_lowering(p, lambda ctx, x: [x], platform="tpu")
        return lambda: jax.jit(p.bind)(1.0)

    compare.same_refusal(program, phrases=["not found for platform cpu"])


@pytest.mark.parametrize(
    "rule",
    [lambda m, c, x: [x, x], lambda m, c, x: [],
     lambda m, c, x: [hlo.compare(x, x, hlo.ComparisonDirectionAttr.get("EQ"))]],
)  # fmt: skip
def test_a_rule_that_returns_something_else_is_an_error(rule):
    def program(jax, extend, interpreters):
        f = by_rule(rule)(extend, interpreters)
        return lambda: jax.jit(lambda x: f(x) * 2)(X)

    compare.same_refusal(program)


def test_a_rule_receives_types_primitive_and_platform():
    def program(jax, extend, interpreters):
        told = []

        def rule(mlir, ctx, x):
            changed = ctx.replace(avals_out=None, primitive=None)
            told.append((type(ctx) is mlir.LoweringRuleContext, list(map(str, ctx.avals_in)), str(ctx.primitive),
                         list(map(str, ctx.avals_out)), tuple(ctx.module_context.platforms),
                         changed.avals_out, len(ctx.tokens_in), ctx.tokens_out, ctx.dim_var_values == [],
                         ctx.module_context.get_backend().platform))  # fmt: skip
            return [x]

        jax.jit(by_rule(rule)(extend, interpreters)).lower(X)
        return told

    compare.same(program)


def test_attributes_and_types():
    def program(jax, interpreters):
        mlir = interpreters.mlir
        types = ["bool", "int4", "uint8", "int32", "bfloat16", "float8_e4m3fn", "float32", "complex64"]
        with mlir.make_ir_context(), ir.Location.unknown():
            made = [mlir.dtype_to_ir_type(jax.numpy.dtype(t)) for t in types]
            made += [mlir.ir_attribute(v) for v in (1, True, "a", 1.5, [1, 2], {"a": 1, "b": "c"}, np.int32(3))]
            made += [mlir.i32_attr(3), mlir.i64_attr(3), mlir.dense_int_array([1, 2]), mlir.token_type()]
            made += [mlir.dense_int_elements([1, 2])]
            return list(map(str, made))

    compare.same(program)


def test_tokens_are_threaded_through_a_rule():
    def program(jax, extend, interpreters):
        mlir = interpreters.mlir
        internal = "minijax.ir.effects" if jax.__name__ == "minijax" else "jax._src.effects"
        effects = __import__(internal, fromlist=["effects"])

        class Turn(extend.core.Effect):
            __hash__ = object.__hash__

            def __str__(self):
                return "Turn"

        effects.ordered_effects.add_type(Turn)
        effects.lowerable_effects.add_type(Turn)
        turn, p = Turn(), primitive(extend)
        p.def_effectful_abstract_eval(lambda x: (x, {turn}))

        def rule(ctx, x):
            token = hlo.after_all([ctx.tokens_in.get(turn)])
            ctx.set_tokens_out(mlir.TokenSet({turn: token}))
            return [hlo.negate(x)]

        mlir.register_lowering(p, rule)
        return lambda x: p.bind(p.bind(x))

    compare.same_text(program, X)


def test_functions_of_a_text_join_another_module():
    def program(interpreters):
        mlir = interpreters.mlir
        part = """
            func.func public @main(%x: tensor<f32>) -> tensor<f32> {
              %0 = func.call @part(%x) : (tensor<f32>) -> tensor<f32>
              return %0 : tensor<f32>
            }
            func.func private @part(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
        """
        with mlir.make_ir_context(), ir.Location.unknown():
            whole = ir.Module.parse("func.func private @part() { return }")
            name = mlir.merge_mlir_modules(whole, "joined", ir.Module.parse(part))
            text = mlir.module_to_string(whole, enable_debug_info=False)
            size = len(mlir.module_to_bytecode(whole)) > 0
            return name, sorted(line.strip() for line in text.splitlines()), size

    compare.same(program)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_values_and_types_are_flattened_and_grouped():
    def program(interpreters):
        mlir = interpreters.mlir
        with mlir.make_ir_context(), ir.Location.unknown():
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                x, y = mlir.ir_constant(np.float32(1)), mlir.ir_constant(np.int32(2))
            types = [x.type, (y.type, x.type)]
            flat = mlir.flatten_ir_values([x, (y, x)])
            leaves, tree = mlir.ir_tree_registry.flatten((x, (y, [x])))
            grouped = mlir.unflatten_ir_values_like_types(flat, types)
            return (
                len(flat),
                [type(g) is tuple for g in grouped],
                len(leaves),
                str(tree),
                list(map(str, mlir.flatten_ir_types(types))),
            )

    compare.same(program)


def test_dialects_are_those_of_jaxlib():
    def program(extend):
        built = extend.mlir.dialects.stablehlo
        return built.AddOp is hlo.AddOp, extend.mlir.ir.Value is ir.Value

    def load(namespace):
        __import__(f"{namespace.__name__}.extend.mlir.dialects.stablehlo")
        __import__(f"{namespace.__name__}.extend.mlir.ir")
        return compare.run_on(namespace, program)

    assert load(compare.ours()) == load(compare.theirs()) == (True, True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_values_of_a_users_type_are_captured():
    def program(jax, interpreters):
        mlir = interpreters.mlir
        jax.core.pytype_aval_mappings[Held] = lambda v: jax.core.ShapedArray(v.shape, v.dtype)
        interpreters.xla.canonicalize_dtype_handlers[Held] = lambda v: v
        mlir.register_constant_handler(Held, lambda value, aval: mlir.ir_constant(value.x))
        held = Held(X)
        return lambda x: jax.lax.add(jax.lax.mul(x, held), held)

    compare.check(compare.Case("captured", program, (X,)), "full")


def test_modules_of_jaxprs():
    def program(jax, jnp, interpreters):
        mlir = interpreters.mlir

        def module(closed, donated=(False,), **options):
            found = mlir.lower_jaxpr_to_module(
                "made",
                closed,
                num_const_args=0,
                in_avals=closed.in_avals,
                ordered_effects=[],
                platforms=["cpu"],
                backend=None,
                axis_context=mlir.ShardingContext(1),
                donated_args=donated,
                lowering_parameters=mlir.LoweringParameters(),
                **options,
            )
            state = found.shape_poly_state
            rest = found.keepalive, found.host_callbacks, state.uses_dim_vars, state.dim_vars
            return compare.canonical(str(found.module)), *rest

        double = jax.make_jaxpr(lambda x: x * 2)(X)
        return [module(jaxpr_of(mlir)), module(double, (True,)), module(double, arg_names=["x"], result_names=["y"])]

    compare.same(program)


@pytest.mark.parametrize(
    "options",
    [dict(result_memory_kinds=["device"]), dict(input_output_aliases=[0]), dict(arg_layouts=["row"])], ids=str
)  # fmt: skip
def test_unsupported_arguments_of_jaxpr_functions_are_named(options):
    mlir = importlib.import_module("minijax.interpreters.mlir")
    with pytest.raises(NotImplementedError, match=next(iter(options))):
        mlir.lower_jaxpr_to_fun(None, "f", jaxpr_of(mlir), [], num_const_args=0, in_avals=[], **options)


def test_contexts_and_their_constants():
    def program(jax, jnp, extend, interpreters):
        mlir = interpreters.mlir
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
        contexts = mlir.SPMDAxisContext(mesh), mlir.ShardingContext(2, None)
        states = [
            vars(mlir.ShapePolyLoweringState(*a))
            for a in ((("a",), ("cpu", "cuda")), (("a", "b"), None), ((), ("cpu",)))
        ]
        told = []

        def rule(mlir, ctx, x):
            axes = ctx.module_context.axis_context
            told.append(str(axes) if isinstance(axes, mlir.ShardingContext) else (str(axes.mesh), axes.manual_axes))
            told.append((ctx.module_context.lowering_parameters, ctx.module_context.shape_poly_state.dim_vars))
            return [x]

        f = by_rule(rule)(extend, interpreters)
        spec = jax.sharding.PartitionSpec("i")
        jax.jit(f).lower(X)
        jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)).lower(X)
        return [
            list(map(str, contexts)),
            hash(contexts[0]) == hash(mlir.SPMDAxisContext(mesh)),
            states,
            str(told),
            [isinstance(c, mlir.AxisContext) for c in contexts],
            str(mlir.MeshAxisName),
            mlir.DEVICE_TO_DEVICE_TYPE,
            mlir.SEND_TO_HOST_TYPE,
            mlir.RECV_FROM_HOST_TYPE,
            mlir.LoweringResult._fields,
        ]

    compare.same(program)
