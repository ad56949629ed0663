"""Programs that walk and build jaxprs, interpret them, and trace by themselves; and the names they use."""

import importlib.util
import inspect
import operator
import subprocess
import sys
import warnings

import compare
import numpy as np
import pytest
import transform_matrix

X = np.array([0.5, -1.5, 2.0], np.float32)


def same(program):
    ours, theirs = compare.both(program)
    assert ours == theirs


# ---- interpreters, as in the guide to writing them ---------------------------------------------------


def evaluated(core, jaxpr, consts, *args):
    env = {}

    def read(v):
        return v.val if type(v) is core.Literal else env[v]

    env.update(zip(jaxpr.invars, args, strict=True))
    env.update(zip(jaxpr.constvars, consts, strict=True))
    for eqn in jaxpr.eqns:
        results = eqn.primitive.bind(*map(read, eqn.invars), **eqn.primitive.get_bind_params(eqn.params))
        env.update(zip(eqn.outvars, results if eqn.primitive.multiple_results else [results], strict=True))
    return list(map(read, jaxpr.outvars))


def interpreted(make):
    def program(jax, jnp, extend):
        f = make(jax, jnp)

        def run(*args):
            closed = jax.make_jaxpr(f)(*args)
            return evaluated(extend.core, closed.jaxpr, closed.literals, *args)

        return run

    return program


def rules(jax, jnp):
    f = jax.custom_jvp(lambda x: jnp.sin(x) * 2)
    f.defjvps(lambda t, ans, x: t * 7)
    g = jax.custom_vjp(lambda x: jnp.cos(x))
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * x,))
    return lambda x: f(x) + g(x)


FUNCTIONS = {
    "chain": lambda jax, jnp: lambda x: jnp.exp(jnp.tanh(x)) * 2 + np.arange(3, dtype=np.float32),
    "jit": lambda jax, jnp: lambda x: jax.jit(lambda x: jnp.sin(x) + 1)(x),
    "cond": lambda jax, jnp: lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "scan": lambda jax, jnp: lambda x: jax.lax.scan(lambda c, y: (c * y, c), x[0], x),
    "while": lambda jax, jnp: lambda x: jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x), x),
    "loop": lambda jax, jnp: lambda x: jax.lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, x),
    "checkpoint": lambda jax, jnp: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))),
    "rules": rules,
    "sort": lambda jax, jnp: lambda x: jnp.sort(x)[::-1].reshape(3, 1),
}
INTERPRETED = [compare.Case(name, interpreted(make), (X,)) for name, make in FUNCTIONS.items()]
WAYS = ["plain", "jit", "grad", "vmap", "vmap_of_grad", "grad_of_vmap", "jvp", "linearize"]


@pytest.mark.parametrize("case", transform_matrix.matrix(INTERPRETED, WAYS))
def test_an_interpreter_of_jaxprs(case, tier):
    compare.check(case, tier)


def inverse(jax, jnp, extend):
    registry = {jax.lax.exp_p: jnp.log, jax.lax.tanh_p: jnp.arctanh}

    def inverted(fun):
        def wrapped(*args):
            closed = jax.make_jaxpr(fun)(*args)
            env = dict(zip(closed.jaxpr.outvars, args, strict=True))
            for eqn in closed.jaxpr.eqns[::-1]:
                if eqn.primitive not in registry:
                    raise NotImplementedError(f"{eqn.primitive} does not have registered inverse.")
                (y,) = (v.val if isinstance(v, extend.core.Literal) else env[v] for v in eqn.outvars)
                env[eqn.invars[0]] = registry[eqn.primitive](y)
            return [env[v] for v in closed.jaxpr.invars][0]

        return wrapped

    return jax.jit(jax.vmap(jax.grad(inverted(lambda x: jnp.exp(jnp.tanh(x))))))


def test_the_inverse_interpreter_under_transformations():
    compare.check(compare.Case("inverse", inverse, (np.array([1.2, 1.5], np.float32),)))


# ---- walking -----------------------------------------------------------------------------------------


# Elementwise primitives of jax have these, always None; minijax does not have these parameters.
IMPLIED = {"accuracy", "out_dtype"}


def described(extend, jaxpr):
    """The findings of a walk over a jaxpr and its inner jaxprs."""
    core, found = extend.core, []
    for eqn in jaxpr.eqns:
        kinds = {n: type(v).__name__ for n, v in eqn.params.items() if isinstance(v, (core.Jaxpr, core.ClosedJaxpr))}
        atoms = [
            (isinstance(a, core.Var), str(a.aval), np.asarray(a.val).item() if isinstance(a, core.Literal) else None)
            for a in eqn.invars
        ]
        found.append((eqn.primitive.name, sorted(set(eqn.params) - IMPLIED), kinds, atoms, [str(v.aval) for v in eqn.outvars],
                      eqn.effects == frozenset(), str(eqn)))  # fmt: skip
        for inner in core.jaxprs_in_params(eqn.params):
            found += described(extend, inner)
    return found


@pytest.mark.parametrize("name", ["chain", "jit", "cond", "scan", "while", "loop", "checkpoint", "sort"])
def test_a_walk_finds_the_same(name):
    def program(jax, jnp, extend):
        return described(extend, jax.make_jaxpr(FUNCTIONS[name](jax, jnp))(X).jaxpr)

    def without_addresses(found):
        return [(*entry[:-1], compare._unwrapped(compare.normal(entry[-1]))) for entry in found]

    ours, theirs = map(without_addresses, compare.both(program))
    assert ours == theirs


def test_equations_are_copied_with_changes():
    def program(jax, jnp, extend):
        closed = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(X)
        jaxpr = closed.jaxpr
        eqns = [eqn.replace(primitive=jax.lax.cos_p) if eqn.primitive is jax.lax.sin_p else eqn for eqn in jaxpr.eqns]
        changed = extend.core.ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts)
        swapped = jaxpr.replace(outvars=list(jaxpr.invars))
        return (str(changed), extend.core.jaxpr_as_fun(changed)(X), str(swapped), str(closed.replace(jaxpr=swapped)))

    compare.same(program)


@pytest.mark.filterwarnings("ignore:core.Jaxpr is missing")
def test_a_jaxpr_can_be_built_by_hand():
    def program(jax, extend):
        core = extend.core
        new, aval = core.gensym(), jax.typeof(X)
        a, b, c = new(aval), new(aval), new(aval)
        two = core.Literal(np.float32(2), jax.core.ShapedArray((), np.float32))
        eqns = [
            core.new_jaxpr_eqn([a], [b], jax.lax.neg_p, {}, set()),
            core.new_jaxpr_eqn([b, two], [c], jax.lax.max_p, {}, core.no_effects),
        ]
        jaxpr = core.Jaxpr([], [a], [c, two], eqns)
        core.check_jaxpr(jaxpr)
        closed = core.ClosedJaxpr(jaxpr, [])
        f = core.jaxpr_as_fun(closed)
        return (
            str(closed),
            f(X),
            jax.core.eval_jaxpr(jaxpr, [], X),
            jax.jit(f)(X),
            jax.grad(lambda x: f(x)[0].sum())(X),
            jax.vmap(f, out_axes=0)(X[:, None])[0],
        )

    compare.same(program)


@pytest.mark.filterwarnings("ignore:core.Jaxpr is missing")
def test_a_wrong_jaxpr_is_found():
    def program(jax, extend):
        core = extend.core
        a, b = core.Var(jax.typeof(X)), core.Var(jax.typeof(np.float32(1)))
        eqns = [core.new_jaxpr_eqn([a], [b], jax.lax.neg_p, {}, set())]
        return lambda: core.check_jaxpr(core.Jaxpr([], [a], [b], eqns))

    compare.same_refusal(program)


def test_calls_are_bound_with_functions_or_jaxprs():
    def program(jax, jnp, extend):
        primitives = importlib.import_module(f"{jax.__name__}.extend.core.primitives")
        lu = importlib.import_module(f"{jax.__name__}.extend.linear_util")
        info = None
        if jax.__name__ == "jax":
            info = jax.api_util.debug_info("call", jnp.sin, (X,), {})
        f = lu.wrap_init(lambda x: [jnp.sin(x)], debug_info=info)
        closed = jax.make_jaxpr(jnp.cos)(X)
        params = primitives.closed_call_p.get_bind_params({"call_jaxpr": closed})
        return (
            primitives.call_p.bind(X, subfuns=(f,)),
            str(primitives.call_p),
            primitives.closed_call_p.bind(X, **params),
            primitives.call_p.call_primitive,
        )

    compare.same(program)


@pytest.mark.oracle
def test_a_recorded_call_is_an_operation_with_a_jaxpr():
    def program(jax, jnp, extend):
        primitives = importlib.import_module(f"{jax.__name__}.extend.core.primitives")
        lu = importlib.import_module(f"{jax.__name__}.extend.linear_util")

        def f(x):
            y = jnp.cos(x)
            info = jax.api_util.debug_info("call", jnp.sin, (X,), {}) if jax.__name__ == "jax" else None
            sub = lu.wrap_init(lambda x: [x + 1, y * x], debug_info=info)
            return primitives.call_p.bind(x, subfuns=(sub,))[1]

        xs = jnp.arange(3.0)
        return (
            str(jax.make_jaxpr(f)(2.0)),
            f(2.0),
            [jax.grad(g)(2.0) for g in (f, jax.jit(f))],
            [jax.vmap(g)(xs) for g in (f, jax.jit(f), jax.jit(jax.grad(f)))],
            compare.canonical(jax.jit(f).lower(2.0).as_text()),
        )

    compare.same(program)


# ---- types, values, the state of tracing -------------------------------------------------------------


def asked(jax, jnp, extend):
    core, aval = extend.core, jax.typeof(np.ones((3, 4), np.float32))
    values = [1, 1.0, True, 1j, X, jnp.ones(2), None, [1], "a", np.float32(1), object(), np.bool_(True)]
    dtypes = [np.dtype(t) for t in ("int32", "bool", "float16", "complex64")]
    token = core.AbstractToken()
    return [
        [core.valid_jaxtype(v) for v in values],
        [str(core.mapped_aval(size, axis, aval)) for size, axis in ((3, 0), (4, 1), (3, None))],
        [str(core.unmapped_aval(5, axis, aval)) for axis in (0, 1, 2, None)],
        core.mapped_aval(3, 0, token) is token,
        [str(core.primal_dtype_to_tangent_dtype(d)) for d in dtypes],
        core.concrete_or_error(int, 3.7, "here"), core.concrete_or_error(None, 3.7),
        [core.nonempty_axis_env_DO_NOT_USE(), core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
         core.unsafe_am_i_under_a_vmap_DO_NOT_USE(), core.unsafe_get_axis_names_DO_NOT_USE()],
        [t in core.array_types for t in (np.ndarray, np.float32, np.int8, float, type(jnp.ones(2)))],
        jax.core.max_dim(1, 3), jax.core.min_dim(1, 3), core.no_effects,
        core.get_opaque_trace_state() == core.get_opaque_trace_state(),
        type(core.find_top_trace([1])).__name__,
        str(aval.update(shape=(2,))), aval.strip_weak_type() == aval, aval.str_short(True), aval.ndim, aval.size,
        str(jax.typeof(1.0)), repr(jax.typeof(1.0)), str(jax.typeof(1).to_tangent_aval().dtype),
        core.TraceTag() == core.TraceTag(), str(token), repr(core.DropVar(aval)),
        core.Literal(1.0, jax.typeof(1.0)).hash == hash(1.0),
    ]  # fmt: skip


def test_questions_about_types_and_values():
    same(asked)


def test_questions_while_functions_are_transformed():
    def program(jax, jnp, extend):
        core, seen = extend.core, []
        outside = core.get_opaque_trace_state()

        def f(x):
            seen.append([core.unsafe_am_i_under_a_jit_DO_NOT_USE(), core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                         core.unsafe_get_axis_names_DO_NOT_USE(), core.nonempty_axis_env_DO_NOT_USE(),
                         outside == core.get_opaque_trace_state(), core.valid_jaxtype(x),
                         isinstance(x, jax.core.Tracer), x is x.full_lower()])  # fmt: skip
            return x * 2

        jax.jit(f)(1.0)
        jax.vmap(f, axis_name="i")(X)
        jax.jit(jax.vmap(jax.grad(f)))(X)
        jax.grad(jax.jit(f))(1.0)
        with jax.ensure_compile_time_eval():
            seen.append(core.unsafe_am_i_under_a_jit_DO_NOT_USE())
        return seen

    same(program)


def test_tracers_have_the_equation_that_made_them():
    def program(jax, jnp):
        seen = []

        def f(x, n):
            y = jnp.sin(x) + n
            pair = jax.lax.cond(n > 0, lambda x: (x, x + 1), lambda x: (x * 2, x), x)
            added = y.parent
            seen.append(
                [x.parent, n.parent, str(added.primitive), dict(added.params), list(map(str, added.in_tracers))]
            )
            seen.append(
                [added.outvars[0] is y.val, added.in_tracers[0].parent.primitive.name, added.in_tracers[1].val is n.val]
            )
            seen.append([p.parent.primitive.name for p in pair] + [str(v.aval) for v in pair[1].parent.outvars])
            seen.append(
                [
                    (x + 1.5).parent.in_tracers[1].val.val,
                    (x + np.ones(3)).parent.in_tracers[1].parent,
                    len(added.effects),
                ]
            )
            return y

        jax.jit(f)(X, 1.0)
        return seen

    same(program)


def test_tracers_have_the_names_of_their_arguments():
    def program(jax):
        seen = []

        def f(x):
            behind = x.get_referent()
            seen.append([behind is x, type(behind).__name__ == "DynamicJaxprTracer", jax.typeof(behind).shape])
            return x * 2

        for transform in (jax.vmap, jax.jit, lambda f: jax.vmap(jax.vmap(f, 0, 0)), lambda f: jax.vmap(jax.jit(f))):
            seen.append(transform(f)(np.ones((3, 2), "f")).shape)
        jax.vmap(jax.grad(f))(X), jax.jvp(f, (1.0,), (1.0,)), jax.jit(jax.vmap(f))(X), jax.jit(jax.grad(f))(1.0)
        return seen

    same(program)


@pytest.mark.parametrize("force", [int, None, operator.index])
def test_a_traced_value_is_not_concrete(force):
    def program(jax, extend):
        return lambda: jax.jit(lambda x: extend.core.concrete_or_error(force, x, "my context"))(1)

    compare.same_refusal(program, phrases=["my context"])


def test_concrete_values_are_found_under_derivatives():
    def program(jax, extend):
        return jax.grad(lambda x: x * extend.core.concrete_or_error(int, x))(3.0)

    compare.same(program)


# ---- traces of one's own -----------------------------------------------------------------------------


def holding(jax):
    """A class of tracers that hold a value."""

    class Holding(jax.core.Tracer):
        __slots__ = ("value",)

        def __init__(self, trace, value):
            self._trace = trace
            self.value = value

        @property
        def aval(self):
            return jax.typeof(self.value)

        def full_lower(self):
            return self

    return Holding


def counting(jax, extend, counted):
    """A trace that counts the operations on its values, in the manner of quax."""
    core, Counted = extend.core, holding(jax)

    class CountingTrace(jax.core.Trace):
        def __init__(self, parent_trace):
            super().__init__()
            self.parent_trace = parent_trace

        def lower(self, x):
            return x.value if isinstance(x, Counted) and x._trace is self else x

        def process_primitive(self, primitive, tracers, params):
            counted.append(primitive.name)
            with core.set_current_trace(self.parent_trace):
                out = primitive.bind(*map(self.lower, tracers), **params)
            return [Counted(self, x) for x in out] if primitive.multiple_results else Counted(self, out)

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            counted.append(str(primitive))
            with core.set_current_trace(self):
                return fun.call_wrapped(*tracers)

        def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, *, out_trees, symbolic_zeros):
            counted.append(str(primitive))
            with core.set_current_trace(self):
                return fun.call_wrapped(*tracers)

    def count(f):
        def run(*args):
            with core.take_current_trace() as parent:
                trace = CountingTrace(parent)
                with core.set_current_trace(trace):
                    out = f(*(Counted(trace, x) for x in args))
                return jax.tree_util.tree_map(trace.lower, out)

        return run

    return count


@pytest.mark.parametrize("way", ["plain", "jit", "grad", "vmap", "vmap_of_grad", "jit_of_grad"])
@pytest.mark.parametrize("name", ["chain", "rules", "cond", "scan"])
def test_a_trace_of_ones_own_sees_every_operation(name, way):
    def counted(jax, jnp, extend):
        seen = []
        count = counting(jax, extend, seen)
        case = compare.Case(name, lambda jax, jnp: count(FUNCTIONS[name](jax, jnp)), (X,))
        cell = transform_matrix.transformed(case, way)
        return compare.run_on(jax, cell.program)(*cell.args), seen

    compare.same(counted)


def test_a_derivative_inside_a_trace_of_ones_own():
    def program(jax, jnp, extend):
        seen = []
        return counting(jax, extend, seen)(lambda x: jax.jvp(lambda x: jnp.sin(x) * x, (x,), (x,)))(np.float32(2)), seen

    compare.same(program)


def test_a_trace_without_rules_raises():
    def program(jax, extend):
        class Empty(jax.core.Trace):
            pass

        def run():
            with extend.core.set_current_trace(Empty()):
                jax.lax.sin_p.bind(1.0, accuracy=None)

        return run

    compare.same_refusal(program)


# ---- partial evaluation ------------------------------------------------------------------------------


def traced(jax, jnp, interpreters, extend):
    pe, lu, aval = interpreters.partial_eval, extend.linear_util, jax.typeof(np.float32(1))
    info = None
    if jax.__name__ == "jax":
        info = jax.api_util.debug_info("jit", lambda x, y: x, (1.0, 2.0), {})
    f = lu.wrap_init(lambda x, y: [jax.lax.mul(y, y), jax.lax.add(x, jax.lax.mul(y, y)), 3.0], debug_info=info)
    known, unknown = pe.PartialVal.known(np.float32(2)), pe.PartialVal.unknown(aval)
    late, values, consts = pe.trace_to_jaxpr_nounits(f, [unknown, known])
    whole, avals, none = pe.trace_to_jaxpr_dynamic(f, [aval, aval])
    closed = jax.make_jaxpr(lambda x: (x * 2, jnp.sin(x) + np.arange(3, dtype=np.float32)))(np.float32(1))
    return [
        str(late).replace("add b a", "add a b"), [v.is_known() for v in values], len(consts), str(whole),
        list(map(str, avals)), none, unknown.is_known(), str(unknown.get_aval()), known.get_known(),
        str(pe.dce_jaxpr(closed.jaxpr, [True, False])), str(pe.dce_jaxpr(closed.jaxpr, [False, False], True)),
        str(pe.dce_jaxpr(closed.jaxpr, True)), str(pe.dce_jaxpr_consts(closed.jaxpr, [True, False])),
    ]  # fmt: skip


def test_partial_evaluation_and_pruning():
    def program(jax, jnp, interpreters, extend):
        return traced(jax, jnp, interpreters, extend)[1:8] + traced(jax, jnp, interpreters, extend)[9:]

    same(program)


# ---- sources -----------------------------------------------------------------------------------------


def test_where_operations_come_from():
    def program(jax, jnp, extend):
        s = importlib.import_module(f"{jax.__name__}.extend.source_info_util")
        with s.extend_name_stack("outer") as names, s.extend_name_stack("inner"):
            here = str(names), str(s.current_name_stack())
            with s.reset_name_stack():
                none = str(s.current_name_stack())
            with s.set_name_stack(s.new_name_stack("other")):
                other = str(s.current_name_stack())

        def f(x):
            with jax.named_scope("scope"):
                return jax.lax.sin(x)

        info = jax.make_jaxpr(f)(1.0).eqns[0].source_info
        with s.user_context(info.traceback, name_stack=s.new_name_stack("a") + info.name_stack):
            joined = str(s.current_name_stack())
        return (
            here,
            none,
            other,
            joined,
            s.summarize(info).split(":")[0] == __file__,
            s.summarize(s.new_source_info()),
            s.current().traceback is not None,
        )

    same(program)


def test_parameters_that_jax_has_may_be_given():
    def program(jax):
        return lambda x: (jax.lax.sin_p.bind(x, accuracy=None), jax.lax.mul_p.bind(x, x, out_dtype=None))

    cases = [
        transform_matrix.transformed(compare.Case("bound", program, (X,)), way) for way in ("plain", "grad", "vmap")
    ]
    compare.sweep(cases)


def test_a_generator_of_ones_own():
    def program(jax, jnp, extend):
        random = importlib.import_module(f"{jax.__name__}.extend.random")
        impl = random.define_prng_impl(
            key_shape=(1,),
            seed=lambda seed: jnp.asarray(seed, np.uint32).reshape(1),
            split=lambda key, shape: jnp.arange(np.prod(shape), dtype=np.uint32).reshape(*shape, 1) + key,
            random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
            fold_in=lambda key, data: key + data.astype(np.uint32),
            name="counter",
            tag="cnt",
        )
        key = jax.random.key(7, impl=impl)
        raw = random.threefry_2x32((np.uint32(1), np.uint32(2)), np.arange(3, dtype=np.uint32))
        seeded = random.seed_with_impl(random.threefry_prng_impl, 3)
        return (
            jax.random.bits(key, (3,)),
            jax.random.key_data(jax.random.split(key)),
            str(key.dtype),
            raw,
            jax.random.key_data(seeded),
            jax.random.key_data(jax.random.fold_in(key, 2)),
        )

    compare.same(program)


def test_the_clients_of_platforms():
    def program(jax, extend):
        b = importlib.import_module(f"{jax.__name__}.extend.backend")
        return (
            sorted(b.backends()),
            b.get_backend().platform,
            b.get_backend("cpu").platform,
            str(b.get_default_device()),
        )

    same(program)


# ---- names -------------------------------------------------------------------------------------------

FACES = ["core", "extend.core", "extend.linear_util", "extend.source_info_util", "extend.backend", "extend.random",
         "interpreters.ad", "interpreters.batching", "interpreters.mlir", "interpreters.partial_eval",
         "interpreters.xla"]  # fmt: skip
# Internal classes, whose constructors users do not call.
OWN = {"WrappedFun", "Trace", "Primitive", "CallPrimitive", "Var", "Jaxpr", "ClosedJaxpr", "DebugInfo", "JVPTrace",
       "JVPTracer", "ModuleContext", "JaxprTracer", "DynamicJaxprTracer", "PartialVal", "TokenSet"}  # fmt: skip


@pytest.mark.parametrize("face", FACES)
def test_functions_have_jaxs_signatures(face):
    ours, theirs = (importlib.import_module(f"{side}.{face}") for side in ("minijax", "jax"))

    def parameters(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    different = []
    for name in set(dir(ours)) - OWN:
        theirs_has = getattr(theirs, name, None)
        if name.startswith("_") or not inspect.isfunction(theirs_has):
            continue
        if parameters(getattr(ours, name)) != parameters(theirs_has):
            different.append(name)
    assert different == []


@pytest.mark.parametrize("face", [*FACES, "interpreters.pxla", "extend.core.primitives", "extend.mlir", "extend"])
def test_faces_have_no_names_that_jax_has_not(face):
    ours, theirs = (importlib.import_module(f"{side}.{face}") for side in ("minijax", "jax"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        unknown = [n for n in dir(ours) if not n.startswith("_") and not hasattr(theirs, n)]
        # Another test may have imported a submodule.
        unknown = [
            n for n in unknown if not (hasattr(theirs, "__path__") and importlib.util.find_spec(f"jax.{face}.{n}"))
        ]
        assert unknown == [] or face == "extend.mlir"
        assert [n for n in dir(ours) if not hasattr(ours, n)] == []


WARNS = {
    "core": """CallPrimitive DebugInfo DropVar Effect Effects InconclusiveDimensionOperation JaxprTypeError OutputType
        abstract_token call check_jaxpr concrete_or_error concretization_function_error find_top_trace gensym
        get_opaque_trace_state is_concrete is_constant_dim is_constant_shape jaxprs_in_params literalable_types
        new_jaxpr_eqn no_axis_name no_effects nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype
        pytype_aval_mappings trace_ctx unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE
        unsafe_get_axis_names_DO_NOT_USE valid_jaxtype""",
    "interpreters.pxla": "ArrayMapping Index MeshAxisName thread_resources",
    "scipy.special": "lpmn lpmn_values",
}
GONE = {
    "core": """AbstractToken TraceTag call_impl get_aval mapped_aval set_current_trace subjaxprs take_current_trace
        traverse_jaxpr_params unmapped_aval Jaxpr nonsense""",
    "interpreters.ad": "reducing_transposes",
    "interpreters.batching": "NotMapped",
    "interpreters.pxla": "Chunked MapTracer ShardingSpec spec_to_indices parallel_callable",
}


ASKING = """
import importlib, sys, warnings
for face, names in {names!r}.items():
    module = importlib.import_module("{side}." + face)
    for name in names.split() * 2:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            getattr(module, name)
        print(name, [(w.category.__name__, str(w.message), w.filename) for w in caught])
"""


def test_old_names_warn_at_their_first_use():
    said = [
        subprocess.run(
            [sys.executable, "-c", ASKING.format(side=side, names=WARNS)], check=True, capture_output=True, text=True
        ).stdout
        for side in ("minijax", "jax")
    ]
    assert said[0] == said[1]
    assert said[0].count("DeprecationWarning") == sum(len(names.split()) for names in WARNS.values())


@pytest.mark.parametrize(("face", "names"), GONE.items())
def test_removed_names_raise_an_error_that_names_the_replacement(face, names):
    for name in names.split():
        said = []
        for side in ("minijax", "jax"):
            with pytest.raises(AttributeError) as raised:
                getattr(importlib.import_module(f"{side}.{face}"), name)
            said.append(str(raised.value).replace("minijax", "jax"))
        advice = f". dir(jax.{face}) lists its names."  # where jax names no replacement
        assert said[0].removesuffix(advice) == said[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_helpers_of_core():
    def program(jax, jnp):
        core = jax.core
        return [
            [core.is_constant_dim(d) for d in (1, np.int32(3), 2.0, "a")],
            core.is_constant_shape((1, 2)),
            [core.is_concrete(x) for x in (1.0, jnp.ones(2), None)],
            [t in core.literalable_types for t in (int, bool, np.float32, list)],
            core.trace_ctx.is_top_level(),
            type(core.trace_ctx.trace).__name__,
        ]

    same(program)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_type_of_values_can_be_registered():
    def program(jax, jnp, interpreters):
        class Boxed:
            def __init__(self, x):
                self.x = x

        jax.core.pytype_aval_mappings[Boxed] = lambda b: jax.core.ShapedArray(b.x.shape, b.x.dtype)
        table = interpreters.xla.canonicalize_dtype_handlers
        table[Boxed] = lambda b: b.x
        # Written back, jax's handler of NumPy's arrays would call itself without end.
        tables = table, jax.core.pytype_aval_mappings
        return str(jax.typeof(Boxed(X))), [callable(t[np.ndarray]) for t in tables]

    same(program)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", [int, float, bool, complex])
def test_the_error_of_a_conversion(kind):
    def program(jax):
        return lambda: jax.jit(lambda x: jax.core.concretization_function_error(kind)(None, x))(1.0)

    compare.same_refusal(program)


@pytest.mark.oracle
@pytest.mark.parametrize("wide", [False, True])
def test_ints_that_their_type_cannot_hold_are_refused_wherever_they_enter(wide):
    uses = {
        "typeof": lambda jax, n: jax.typeof(n),
        "eval_shape": lambda jax, n: jax.eval_shape(lambda x: x, [n]),
        "make_jaxpr": lambda jax, n: jax.make_jaxpr(lambda x: 1)(n),
        "lower": lambda jax, n: jax.jit(lambda x: x).lower(n).out_info,
        "jit": lambda jax, n: jax.jit(lambda x: 1)(n),
        "linearize": lambda jax, n: jax.linearize(lambda x: x, n)[0],
        "grad": lambda jax, n: jax.grad(lambda x: 1.0, allow_int=True)(n),
        "vjp": lambda jax, n: jax.vjp(lambda x: 1.0, n)[0],
        "jvp": lambda jax, n: jax.jvp(lambda x: 1.0, (n,), (n,)),
        "checkpoint": lambda jax, n: int(jax.checkpoint(lambda x: x)([n])[0]),
        "result": lambda jax, n: jax.eval_shape(lambda: n),
    }
    mine, oracle = compare.ours(), compare.theirs()
    with mine.enable_x64(wide), oracle.enable_x64(wide):
        for n in (2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 2**70):
            for name, use in uses.items():
                calls = [lambda jax=jax, n=n, use=use: use(jax, n) for jax in (mine, oracle)]
                if compare.outcome(calls[1]).error or name == "jvp":
                    compare.same_error(*calls)
                else:
                    assert str(calls[0]()) == str(calls[1]()), (name, n)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128", "float16", float, int, np.float64])
def test_described_shapes_have_the_dtypes_of_arrays(dtype):
    compare.same(lambda jax: str(jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((2,), dtype))))
    compare.same(lambda jax: str(jax.eval_shape(lambda x: x, jax.ShapeDtypeStruct((2,), dtype))))
    compare.same(lambda jax: str(jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((2,), dtype)).out_info))
    compare.same(lambda jax: str(jax.ShapeDtypeStruct((2,), dtype)))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype, narrow", [("float64", "float32"), ("float32", "float32"), ("complex128", "complex64")])
def test_transposes_of_described_shapes_have_the_dtypes_of_arrays(dtype, narrow):
    def transposed(jax):
        transpose = jax.linear_transpose(lambda x: x * 2, jax.ShapeDtypeStruct((2,), dtype))
        return transpose(jax.numpy.ones(2, narrow))

    compare.same(transposed)


def test_types_with_the_sharding_of_another_are_equal():
    def program(jax, jnp):
        plain, P = jax.core.ShapedArray((4, 2), jnp.float32), jax.sharding.PartitionSpec
        mesh = jax.sharding.AbstractMesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
        shardings = [plain.sharding.update(spec=p) for p in (P(), P(None), P(None, None))]
        shardings += [jax.sharding.NamedSharding(mesh, p) for p in (P("x"), P("x", None), P(None, "x"))]
        types = [plain, *(jax.core.ShapedArray((4, 2), jnp.float32, sharding=s) for s in shardings)]
        return [[one == other for one in types] for other in types], [str(t.sharding.spec) for t in types]

    same(program)


def test_literals_print_their_values():
    def program(jax, jnp):
        jaxpr = jax.make_jaxpr(lambda x: (1, 2.5, True, 1j, np.float16(3), np.array(4), x + 1, x * 2j, x * 2.5))(1)
        atoms = [*jaxpr.jaxpr.outvars, *[v for e in jaxpr.eqns for v in e.invars]]
        with jax.enable_x64(True):
            atoms += jax.make_jaxpr(lambda: (1, 2j))().jaxpr.outvars
        return [repr(v) for v in atoms if hasattr(v, "val")]

    same(program)


def passing(jax, extend, through):
    """A trace that passes operations on to its parent; `through` binds a custom rule there."""
    core, Passed = extend.core, holding(jax)

    class PassingTrace(jax.core.Trace):
        def __init__(self, parent_trace):
            super().__init__()
            self.parent_trace = parent_trace

        def values(self, tracers):
            return [x.value if isinstance(x, Passed) and x._trace is self else x for x in tracers]

        def process_primitive(self, primitive, tracers, params):
            with core.set_current_trace(self.parent_trace):
                out = primitive.bind(*self.values(tracers), **params)
            return [Passed(self, x) for x in out] if primitive.multiple_results else Passed(self, out)

        def process_custom_jvp_call(self, primitive, *functions_and_tracers, **params):
            *functions, tracers = functions_and_tracers
            out = through(self.parent_trace, primitive, functions, self.values(tracers), params)
            return [Passed(self, x) for x in out]

        process_custom_vjp_call = process_custom_jvp_call

    def run(f):
        def passed(*args):
            with core.take_current_trace() as parent:
                trace = PassingTrace(parent)
                with core.set_current_trace(trace):
                    out = f(*(Passed(trace, x) for x in args))
            return out.value

        return passed

    return run


def with_rules(jax, jnp, seen, symbolic_zeros):
    """Functions with each kind of custom rule, which notes the tangents and values that it gets."""
    is_zero = lambda t: isinstance(t, jax.custom_derivatives.SymbolicZero)  # noqa: E731
    pushed, pulled = (kind(lambda x, y: jnp.sin(x) * y) for kind in (jax.custom_jvp, jax.custom_vjp))

    def jvp(primals, tangents):
        seen.append(list(map(is_zero, tangents)))
        return pushed(*primals), tangents[0] if is_zero(tangents[0]) else tangents[0] * 2

    def fwd(x, y):
        seen.append([getattr(v, "perturbed", None) for v in (x, y)])
        values = [getattr(v, "value", v) for v in (x, y)]
        return pulled(*values), values

    def bwd(values, ct):
        return (None, None) if is_zero(ct) else (ct * 3, None)

    pushed.defjvp(jvp, symbolic_zeros=symbolic_zeros)
    pulled.defvjp(fwd, bwd, symbolic_zeros=symbolic_zeros)
    return pushed, pulled


def bound(parent, primitive, functions, values, params):
    params = dict(params, subfuns=tuple(functions))
    return primitive.bind_with_trace(parent, tuple(values), (), params)


@pytest.mark.parametrize("symbolic_zeros", [False, True])
def test_a_trace_binds_custom_rules_in_its_parent(symbolic_zeros):
    def program(jax, jnp, extend):
        seen = []
        passed = passing(jax, extend, bound)
        two, three = np.float32(2), np.float32(3)
        ways = [
            lambda f: passed(f)(two, three),
            lambda f: jax.jit(passed(f))(two, three),
            lambda f: jax.grad(lambda x: passed(f)(x, three))(two),
            lambda f: jax.grad(lambda y: passed(f)(two, y))(three),
            lambda f: jax.grad(jax.jit(lambda x: passed(f)(x, three)))(two),
            lambda f: jax.vmap(jax.grad(lambda x: passed(f)(x, three)))(jnp.arange(2.0)),
        ]
        return [way(f) for f in with_rules(jax, jnp, seen, symbolic_zeros) for way in ways], seen

    values, seen = compare.same(program)
    assert float(values[2]) == 2 and float(values[8]) == 3 and (not symbolic_zeros or [False, True] in seen)


@pytest.mark.parametrize("symbolic_zeros", [False, True])
def test_a_trace_calls_rules_as_jax_calls_them(symbolic_zeros):
    def program(jax, jnp, extend):
        seen, kinds = [], []
        zero = jax.custom_derivatives.SymbolicZero.from_primal_value

        def through(parent, primitive, functions, values, params):
            with extend.core.set_current_trace(parent):
                if len(functions) == 2:
                    tangents = [zero(x) if symbolic_zeros else x * 0 for x in values]
                    out = functions[1].call_wrapped(*values, *tangents)
                    kinds.append(isinstance(out[1], type(zero(1.0))))
                    return out[:1]
                out = functions[1].call_wrapped(values[0], True, values[1], False)
                kinds.append(type(functions[2]).__name__)
                return out[-1:]

        passed = passing(jax, extend, through)
        pushed, pulled = with_rules(jax, jnp, seen, symbolic_zeros)
        return passed(pushed)(2.0, 3.0), jax.jit(passed(pulled))(2.0, 3.0), kinds, seen

    assert compare.same(program)[2] == [symbolic_zeros, "WrappedFun"]
