"""From jaxprs to modules: equations, private functions, hidden arguments, tokens, locations."""

import importlib
import re
from itertools import zip_longest

import numpy as np
import pytest
from compare import canonical

from minijax.base import dtypes
from minijax.base.source import Position
from minijax.hlo.emitter import MAX_CALL_DEPTH
from minijax.hlo.module import lower_jaxpr, match_donated
from minijax.hlo.program import Port, plain_program
from minijax.ir.context import EMPTY, path
from minijax.ir.effects import Effect, ordered_effects
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray, token_type
from minijax.partition.meshes import AbstractMesh, PartitionSpec
from minijax.partition.shardings import NamedSharding

F = ShapedArray((4,), dtypes.float32)
S = ShapedArray((), dtypes.float32)
I = ShapedArray((), dtypes.int32)  # noqa: E741


class Elementwise(Primitive):
    def __init__(self, name, hlo):
        self.name, self.hlo = name, hlo

    def lower(self, e, ins, outs, *operands):
        operands = [
            x if a.shape == outs[0].shape else e.broadcast_in_dim(x, a, outs[0], ())
            for x, a in zip(operands, ins, strict=True)
        ]
        verb = e.unary if len(operands) == 1 else e.binary
        return [verb(self.hlo, *operands, outs[0])]


class Call(Primitive):
    name, multiple_results = "jit", True

    def label(self, stack, params):
        return path((*stack, f"jit({params['name']})"))

    def lower(self, e, ins, outs, *operands, jaxpr, name):
        return e.call_jaxpr(jaxpr, name, operands)


class Tick(Effect):
    __str__ = lambda self: "tick"  # noqa: E731


class Print(Primitive):
    name, multiple_results = "print", True

    def lower(self, e, ins, outs, *operands):
        token = e.tokens[TICK]
        e.callbacks.append(print)
        config = {"index": np.uint64(len(e.callbacks) - 1)}
        types = [token_type, *ins]
        (e.tokens[TICK],) = e.custom_call(
            "cb", [token, *operands], types, [token_type], backend_config=config, has_side_effect=True
        )
        return []


TICK = Tick()
ordered_effects.add_type(Tick)
sin, mul, add, sub = (
    Elementwise(*n) for n in (("sin", "sine"), ("mul", "multiply"), ("add", "add"), ("sub", "subtract"))
)
jit, show = Call(), Print()


class Program:
    """Writes a jaxpr: `p(primitive, out aval, *operands)` adds an equation."""

    def __init__(self, *avals, consts=()):
        self.invars = [Var(a) for a in avals]
        self.constvars = [Var(ShapedArray(c.shape, c.dtype)) for c in consts]
        self.consts, self.eqns, self.effects = list(consts), [], frozenset()

    def __call__(self, primitive, outs, *operands, scope=(), effects=frozenset(), **params):
        invars = [x if isinstance(x, Var) else Literal(x, S) for x in operands]
        outvars = [Var(a) for a in outs]
        context = EMPTY._replace(name_stack=scope) if scope else EMPTY
        self.eqns.append(JaxprEqn(invars, outvars, primitive, params, effects, "info", context))
        self.effects |= effects
        return outvars[0] if len(outvars) == 1 else outvars

    def close(self, *results):
        jaxpr = Jaxpr(self.constvars, self.invars, results, self.eqns, self.effects)
        return ClosedJaxpr(jaxpr, self.consts)


def inner(name_of_op=sin):
    p = Program(F)
    return p.close(p(name_of_op, [F], p.invars[0]))


def text_of(closed, locate=None, result_names=None, arg_names=None, donated=(), memory_kinds=(), **fields):
    names = result_names or ["result"] * len(closed.outvars)
    program = plain_program("jit_f", closed, arg_names=arg_names, result_names=names)
    rows = zip_longest(program.ins, donated, memory_kinds)
    ins = [port._replace(donated=bool(d), memory_kind=kind) for port, d, kind in rows]
    module = lower_jaxpr(program._replace(ins=tuple(ins), **fields))
    return module.text if locate is None else module.located(locate).text


def test_a_program_without_branches_is_emitted_as_by_jax():
    p = Program(F, F)
    y = p(mul, [F], p.invars[0], 2.0)
    closed = p.close(p(add, [F], y, p.invars[1]), Literal(1.0, S))
    assert (
        text_of(closed, result_names=["result[0]", "result[1]"])
        == """\
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32> \
{jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<4xf32>
    %2 = stablehlo.add %1, %arg1 : tensor<4xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    return %2, %cst_0 : tensor<4xf32>, tensor<f32>
  }
}
"""
    )


def nested():
    h, g = Program(F), inner()
    y = h(jit, [F], h.invars[0], jaxpr=g, name="g")
    h = h.close(h(add, [F], y, 1.0))
    p = Program(F)
    a = p(jit, [F], p.invars[0], jaxpr=h, name="h")
    b = p(jit, [F], a, jaxpr=g, name="g")
    c = p(jit, [F], b, jaxpr=inner(mul_by_two), name="g")
    d = p(jit, [F], c, jaxpr=inner(), name="h")
    return p.close(d)


class Double(Elementwise):
    def lower(self, e, ins, outs, x):
        return super().lower(e, [ins[0], S], outs, x, e.constant(2.0, S))


mul_by_two = Double("mul", "multiply")


def test_private_functions_are_written_once_in_order_of_their_first_call_under_unique_names():
    lines = [line.split("(")[0].strip() for line in text_of(nested()).splitlines() if "func.func" in line]
    private = "func.func private @"
    assert lines == ["func.func public @main", *(private + n for n in ("h", "g", "g_0", "h_1"))]


@pytest.mark.oracle
def test_small_programs_equal_jax_text_after_canonicalisation():
    jax = importlib.import_module("jax")
    g = jax.jit(jax.lax.sin)
    g.__name__ = "g"

    def h(x):
        return g(x) + 1.0

    def program(x):
        return jax.jit(lambda x: jax.lax.sin(x))(jax.jit(lambda x: x * 2.0)(g(jax.jit(h)(x))))

    theirs = jax.jit(program).lower(np.ones(4, np.float32)).as_text()
    assert canonical(text_of(nested())) == canonical(theirs)

    def donating(x, y):
        return y - x * 2.0, x + y

    p = Program(F, F)
    first = p(sub, [F], p.invars[1], p(mul, [F], p.invars[0], 2.0))
    closed = p.close(first, p(add, [F], *p.invars))
    x = np.ones(4, np.float32)
    theirs = jax.jit(donating, donate_argnums=(1,)).lower(x, x).as_text()
    assert canonical(text_of(closed, donated=(False, True))) == canonical(theirs)


def deep(levels):
    closed = inner()
    for _ in range(levels - 1):
        p = Program(F)
        closed = p.close(p(jit, [F], p.invars[0], jaxpr=closed, name="f"))
    p = Program(F)
    return p.close(p(jit, [F], p.invars[0], jaxpr=closed, name="f")), closed


def test_calls_nested_deeper_than_the_limit_are_written_in_place():
    text = text_of(deep(200)[0])
    assert text.count("func.func private") == MAX_CALL_DEPTH
    assert text.count("stablehlo.sine") == 1


def test_a_function_known_already_counts_with_the_calls_below_it():
    chain = deep(50)[1]
    closed = chain
    p = Program(F)
    shallow = p(jit, [F], p.invars[0], jaxpr=chain, name="f")
    for _ in range(40):
        q = Program(F)
        closed = q.close(q(jit, [F], q.invars[0], jaxpr=closed, name="w"))
    text = text_of(p.close(p(jit, [F], shallow, jaxpr=closed, name="w")))
    called = {}
    for line in text.splitlines():
        if "func.func" in line:
            current = line.split("@")[1].split("(")[0]
            called[current] = []
        elif " call @" in line:
            called[current].append(line.split("@")[1].split("(")[0])

    def height(name):
        return 1 + max(map(height, called[name]), default=0)

    assert height("main") <= MAX_CALL_DEPTH + 1


def test_constants_are_written_or_become_hidden_arguments():
    small, large = np.array([1, 2, 3, 4], np.float32), np.arange(100, dtype=np.float32)
    p = Program(F, consts=(small, large))
    closed = p.close(p(add, [F], p.invars[0], p.constvars[0]), p.constvars[1])
    text = text_of(closed, constants={v: Port(v.aval) for v in p.constvars[1:]})
    assert "@main(%arg0: tensor<4xf32>, %arg1: tensor<100xf32>) ->" in text
    assert "dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>" in text
    assert "return %0, %arg1 :" in text
    assert 'dense<"0x' in text_of(closed)
    q = Program(F)
    called = q.close(*q(jit, [F, p.constvars[1].aval], q.invars[0], jaxpr=closed, name="g"))
    assert text_of(called).index("private @g") < text_of(called).index("dense<[1.0")
    canonical(text_of(called))


def test_donated_arguments_give_their_buffers_to_results_of_their_type():
    assert match_donated([True, False, True, True], [F, F, S, F], [S, F, F, F]) == {2: 0, 0: 1, 3: 2}
    p = Program(S, F)
    closed = p.close(p(add, [F], p.invars[1], 1.0))
    text = text_of(closed, donated=(True, True), memory_kinds=["device", None])
    assert '%arg0: tensor<f32> {mhlo.memory_kind = "device"}' in text
    assert "%arg1: tensor<4xf32> {tf.aliasing_output = 0 : i32}" in text


def test_ordered_effects_thread_tokens_through_calls():
    effects = frozenset([TICK])
    g = Program(F)
    g(show, [], g.invars[0], effects=effects)
    p = Program(F)
    y = p(jit, [F], p.invars[0], jaxpr=g.close(g.invars[0]), name="g", effects=effects)
    p(show, [], y, effects=effects)
    module = lower_jaxpr(plain_program("jit_f", p.close(y)))
    assert module.ordered == [TICK] and len(module.callbacks) == 2
    assert "%0:2 = call @g(%arg0, %arg1) : (!stablehlo.token, tensor<4xf32>) -> (!sta" in module.text
    assert "custom_call @cb(%0#0, %0#1)" in module.text
    assert "return %1, %0#1 : !stablehlo.token, tensor<4xf32>" in module.text
    assert "-> (!stablehlo.token {jax.token = true}, tensor<4xf32>)" in module.text
    canonical(module.text)


INNER = [Position("g", "a.py", 7, 2, 7, 5)]


def test_locations_name_equations_only_on_request():
    p = Program(F)
    y = p(sin, [F], p.invars[0], scope=("outer", "inner"))
    closed = p.close(p(jit, [F], y, jaxpr=inner(), name="g"))
    assert "loc(" not in text_of(closed)
    text = text_of(closed, locate=lambda *tracebacks: INNER, scope="jit(f)", arg_names=["x"])
    assert '%arg0: tensor<4xf32> loc("x")' in text
    assert '#loc1 = loc("g"("a.py":7:2 to :5))' in text
    assert '#loc2 = loc("jit(f)/outer/inner/sin"(#loc1))' in text
    assert 'loc("jit(f)/jit(g)"(#loc1))' in text
    stack = [*INNER, Position("f.<locals>.h", "b.py", 3, 0, 4, 1), Position("m", "c.py", 9, 0, 0, 0)]
    deep = text_of(closed, locate=lambda *tracebacks: stack)
    rows = ['"g"("a.py":7:2 to :5)', '"f.<locals>.h"("b.py":3:0 to 4:1)', '"m"("c.py":9:0)']
    rows += ["callsite(#loc2 at #loc3)", "callsite(#loc1 at #loc4)", '"outer/inner/sin"(#loc5)']
    assert all(f"#loc{i} = loc({row})\n" in deep for i, row in enumerate(rows, 1))
    assert 'loc("sin")' in text_of(closed, locate=lambda *tracebacks: ())
    assert canonical(text) == canonical(deep)
    assert canonical(text) == canonical(text_of(closed))


class Loop(Primitive):
    """Everything that can carry attributes, in one operation."""

    name = "loop"

    def lower(self, e, ins, outs, x):
        def body(k, v):
            (w,) = e.sort([v], [F], 0, lambda a, b: [e.compare("LT", a, b, S)])
            (w,) = e.custom_call("Identity", [w], [F], [F], api_version=1)
            (w,) = e.call_jaxpr(inner(), "g", [w])
            return [e.binary("add", k, e.constant(1, I), I), e.unary("negate", w, F)]

        def cond(k, v):
            return [e.compare("LT", k, e.constant(3, I), I)]

        state = e.while_([e.constant(0, I), x], [I, F], cond, body)
        return e.case_(state[0], [lambda: [x], lambda: [state[1]]], [F])


def test_metadata_and_compute_type_become_frontend_attributes():
    p = Program(F)
    y = p(Loop(), [F], p.invars[0])
    z = p(sin, [F], y)
    p.eqns[0].ctx = EMPTY._replace(xla_metadata={"a": 1, "b": "s"}, compute_type="device_host")
    text = text_of(p.close(z))
    canonical(text)
    marked = lambda attr: [  # noqa: E731
        re.sub(r".* = (?=stable|func|call)|[( ].*", "", line.strip()) for line in text.splitlines() if attr in line
    ]
    tail = ["stablehlo.custom_call", "func.call", "stablehlo.add", "stablehlo.negate", "})"]
    everywhere = ["stablehlo.while", "stablehlo.compare", "stablehlo.compare", "})", *tail]
    assert marked('_xla_compute_type = "host"') == everywhere
    assert marked('{_xla_compute_type = "host", a = "1", b = "s"}') == ["})"]  # what gives the result
    plain = text_of(p.close(z), locate=lambda *tracebacks: ())
    canonical(plain)


def test_partitions_and_meshes_go_into_the_header():
    program = plain_program("jit_f", inner())
    mesh = AbstractMesh((4,), ("i",))
    (port,) = program.ins
    spread = port._replace(sharding=NamedSharding(mesh, PartitionSpec("i")))
    text = lower_jaxpr(program._replace(ins=(spread,), num_partitions=4)).text
    assert text.startswith(
        "module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
        '  sdy.mesh @mesh = <["i"=4]>'
    )
    assert '@main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"i"}]>})' in text
    canonical(text)


class Nothing(Primitive):
    name, multiple_results = "nothing", True

    def lower(self, e, ins, outs, index):
        e.while_([], [], lambda: e.constant(False, ShapedArray((), dtypes.bool_)), lambda: [])
        e.custom_call("sink", [], [], [], has_side_effect=True)
        assert e.optimization_barrier([], []) == []
        return e.case_(index, [list, list], [])


def test_programs_functions_and_operations_may_have_no_results():
    g = Program()
    p = Program(I)
    p(jit, [], jaxpr=g.close(), name="g")
    p(Nothing(), [], p.invars[0])
    canonical(text_of(p.close()))
    assert "-> () {" in text_of(p.close())


def test_key_constants_are_written_as_their_physical_values():
    class Keys:
        _base_array = np.arange(4, dtype=np.uint32).reshape(2, 2)

    class Key(dtypes.ExtendedDType):
        type, name, itemsize = dtypes.prng_key, "key<test>", 8
        physical_dtype, physical_suffix = np.dtype("uint32"), (2,)

    v = Var(ShapedArray((2,), Key()))
    text = text_of(ClosedJaxpr(Jaxpr([v], [], [v], []), [Keys()]))
    assert "stablehlo.constant dense<[[0, 1], [2, 3]]> : tensor<2x2xui32>" in text
