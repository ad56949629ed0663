"""scan, map and associative_scan, against jax; derivatives also against finite differences."""

import numpy as np
import pytest
from compare import Case, check_eager, outcome, same, same_jaxpr, same_refusal, same_text

import minijax
from minijax import lax as our_lax

ONE, ROW = np.float32(1.5), np.arange(4, dtype=np.float32) + 0.5
VECTOR, ROWS = np.arange(3, dtype=np.float32) + 1, np.arange(12, dtype=np.float32).reshape(4, 3)


def total(lax, x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def cell(lax, w):
    return lambda c, x: (lax.mul(lax.sin(lax.mul(c, w)), x), lax.mul(lax.cos(w), c))


def simple(jax, lax):
    return lambda w, c, a: lax.scan(cell(lax, w), c, a)


def dead_code(jax, lax):
    def body(w, c, x):
        lax.add(lax.cos(c), lax.sin(w))
        return lax.mul(lax.mul(c, w), x), lax.mul(c, w)

    return lambda w, c, a: lax.scan(lambda c, x: body(w, c, x), c, a)


def result_saved(jax, lax):
    def body(c, x):
        s = lax.sin(c)
        return lax.mul(s, x), s

    return lambda w, c, a: lax.scan(body, c, a)


def growing_carry(jax, lax):
    def f(w, c, a):
        def body(c, x):
            new = (lax.mul(c[1], x), lax.mul(c[2], x), lax.mul(c[2], w), lax.mul(c[3], x))
            return new, (c[3], lax.sin(c[0]))

        carry, (one, two) = lax.scan(body, (c, c, c, c), a)
        return carry[0], lax.add(one, two)

    return f


def integer_carry(jax, lax):
    def f(w, c, a):
        def body(c, x):
            i, v = c
            return (lax.add(i, np.int32(1)), lax.mul(lax.mul(v, w), x)), lax.mul(
                v, lax.convert_element_type(i, np.float32)
            )

        carry, ys = lax.scan(body, (np.int32(0), c), a)
        return carry[1], ys

    return f


def nested(jax, lax):
    def f(w, c, a):
        def inner(c):
            return lax.scan(lambda d, y: (lax.mul(lax.mul(d, w), lax.sin(y)), d), c, a)[0]

        return lax.scan(lambda c, x: (lax.mul(inner(c), x), lax.mul(c, w)), c, a)

    return f


def nested_over_carry(jax, lax):
    def f(w, c, a):
        def inner(c):
            step = lambda d, y: (lax.mul(lax.mul(d, lax.sin(w)), lax.sin(y)), d)  # noqa: E731
            return lax.scan(step, c, lax.mul(a, c))[0]

        return lax.scan(lambda c, x: (lax.mul(inner(c), x), lax.mul(c, x)), c, a)

    return f


def nested_known_carry(jax, lax):
    def f(w, c, a):
        def inner(c):
            step = lambda d, y: ((lax.mul(d[0], y), lax.mul(d[1], y)), d[0])  # noqa: E731
            return total(lax, lax.scan(step, (w, c), a)[1])

        return lax.scan(lambda c, x: (lax.mul(inner(c), x), lax.mul(c, x)), c, a)

    return f


def jit_inside(jax, lax):
    def f(w, c, a):
        def body(c, x):
            new = jax.jit(lambda c: lax.mul(lax.mul(c, lax.sin(w)), lax.sin(x)))(c)
            return new, lax.mul(c, w)

        return lax.scan(body, c, a)

    return f


def invariants(jax, lax):
    def f(w, c, a):
        def body(c, x):
            s = lax.sin(w)
            return lax.mul(c, x), (s, lax.mul(s, s), w, lax.mul(x, c))

        carry, ys = lax.scan(body, c, a)
        return carry, lax.add(ys[1], ys[3])

    return f


def unrolled_backwards(jax, lax):
    body = lambda c, x: (lax.add(lax.tanh(c), x), lax.exp(c))  # noqa: E731
    return lambda w, c, a: lax.scan(body, c, a, reverse=True, unroll=3)


def captured_array(jax, lax):
    k = np.arange(3, dtype=np.float32)
    body = lambda c, x: (lax.mul(c, x), lax.add(lax.mul(k, c), k))  # noqa: E731
    return lambda w, c, a: lax.scan(body, c, a, unroll=2)


def library_functions(jax, lax):
    limit = 1
    body = lambda c, x: (jax.nn.softplus(c) * x, jax.numpy.where(x > limit, c, jax.nn.relu(c)))  # noqa: E731
    return lambda w, c, a: lax.scan(body, c * w, a)


def cond_inside(jax, lax):
    def f(w, c, a):
        one, other = (lambda c: c * w), (lambda c: jax.numpy.sin(c) * jax.numpy.cos(w))
        return lax.scan(lambda c, x: (lax.cond(x > 1, one, other, c), c), c, a)

    return f


def loop_with_a_known_counter(jax, lax):
    def body(c, x):
        count, last = lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1]), (np.float32(0), c))
        return lax.mul(lax.sin(last), x), count

    return lambda w, c, a: lax.scan(body, c, a)


def handed_on(jax, lax):
    def f(w, c, a):
        body = lambda c, x: ((c[0], lax.mul(lax.mul(c[1], w), c[0])), (c[0], x[0], lax.mul(x[1], w)))  # noqa: E731
        carry, ys = lax.scan(body, (c, c), (a, a))
        return carry[1], ys[2]

    return f


def no_slices(jax, lax):
    def f(w, c, a):
        carry, _ = lax.scan(lambda c, _: (lax.mul(c, w), None), c, None, length=3)
        return carry, carry

    return f


def no_carry(jax, lax):
    return lambda w, c, a: (c, lax.scan(lambda c, x: ((), lax.mul(lax.sin(x), w)), (), a)[1])


def spread(jax, lax, f, axes):
    """`f` under vmap, of the arguments that are mapped."""

    def batch(x, axis):
        return x if axis is None else lax.broadcast(x, (2,))

    return lambda *args: jax.vmap(f, axes)(*(batch(x, a) for x, a in zip(args, axes, strict=True)))


def loss_of(lax, f):
    def loss(*args):
        carry, ys = f(*args)
        return lax.add(total(lax, carry), total(lax, ys))

    return loss


TRANSFORMS = {
    "plain": lambda jax, lax, f: f,
    "jvp": lambda jax, lax, f: lambda *a: jax.jvp(f, a, a),
    "grad": lambda jax, lax, f: jax.grad(loss_of(lax, f), (0, 1, 2)),
    "grad of a constant": lambda jax, lax, f: jax.grad(loss_of(lax, f), 0),
    "grad of the carry": lambda jax, lax, f: jax.grad(loss_of(lax, f), 1),
    "grad of the slices": lambda jax, lax, f: jax.grad(loss_of(lax, f), 2),
    "linearize": lambda jax, lax, f: lambda *a: jax.linearize(f, *a)[1](*a),
    "vmap": lambda jax, lax, f: spread(jax, lax, f, (0, 0, 0)),
    "vmap of a constant": lambda jax, lax, f: spread(jax, lax, f, (0, None, None)),
    "vmap of the slices": lambda jax, lax, f: spread(jax, lax, f, (None, None, 0)),
    "vmap of grad": lambda jax, lax, f: spread(jax, lax, jax.grad(loss_of(lax, f), (0, 1, 2)), (0, None, 0)),
    "grad of vmap": lambda jax, lax, f: jax.grad(
        lambda *a: total(lax, spread(jax, lax, loss_of(lax, f), (0, 0, None))(*a)), (0, 1, 2)
    ),
    "vmap of jvp": lambda jax, lax, f: spread(jax, lax, lambda *a: jax.jvp(f, a, a), (None, 0, None)),
    "jvp of grad": lambda jax, lax, f: lambda *a: jax.jvp(jax.grad(loss_of(lax, f), (0, 1, 2)), a, a),
    "grad of grad": lambda jax, lax, f: jax.grad(lambda *a: total(lax, jax.grad(loss_of(lax, f), 1)(*a)), (0, 1, 2)),
}
SCALARS, ARRAYS = (ONE, ONE, ROW), (VECTOR, VECTOR, ROWS)
PROGRAMS = {
    f.__name__: (f, SCALARS)
    for f in (simple, dead_code, result_saved, growing_carry, integer_carry, nested, nested_over_carry,
              nested_known_carry, jit_inside, invariants, unrolled_backwards, captured_array, handed_on,
              library_functions, cond_inside, no_slices, no_carry, loop_with_a_known_counter)
}  # fmt: skip
PROGRAMS["simple on arrays"] = simple, ARRAYS
ALWAYS = ("plain", "jvp", "grad", "vmap", "vmap of grad", "jvp of grad")
IN_FULL = ("simple", "simple on arrays", "growing_carry", "nested")
CELLS = [
    pytest.param(name, transform, marks=() if transform in ALWAYS or name in IN_FULL else pytest.mark.full)
    for name in PROGRAMS
    for transform in TRANSFORMS
]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "transform"), CELLS)
def test_jaxpr_and_stablehlo_are_those_of_jax(name, transform):
    program, args = PROGRAMS[name]
    made = lambda jax, lax: TRANSFORMS[transform](jax, lax, program(jax, lax))  # noqa: E731
    same_jaxpr(made, *args)
    same_text(made, *args)


@pytest.mark.oracle
@pytest.mark.parametrize("transform", ["plain", "grad", "vmap of grad"])
@pytest.mark.parametrize("name", ["simple on arrays", "growing_carry", "nested", "jit_inside", "handed_on"])
def test_eager_values_are_those_of_jax(name, transform):
    program, args = PROGRAMS[name]
    check_eager(Case(name, lambda jax, lax: TRANSFORMS[transform](jax, lax, program(jax, lax)), args))


POLICIES = ["nothing_saveable", "dots_saveable", "everything_saveable"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["simple", "growing_carry", "nested", "invariants", "unrolled_backwards"])
def test_checkpoint_of_a_loop_does_not_change_its_derivatives(name, policy):
    loss = loss_of(our_lax, PROGRAMS[name][0](minijax, our_lax))
    policy = getattr(minijax.checkpoint_policies, policy)
    wanted = minijax.jit(minijax.grad(loss, (0, 1, 2)))(*SCALARS)
    found = minijax.jit(minijax.grad(minijax.checkpoint(loss, policy=policy), (0, 1, 2)))(*SCALARS)
    for x, y in zip(found, wanted, strict=True):
        # XLA fuses what is computed again otherwise than what is saved, and rounds elsewhere.
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-6)


@pytest.mark.parametrize("name", ["simple", "growing_carry", "nested", "unrolled_backwards", "handed_on"])
def test_grad_agrees_with_finite_differences(name):
    with minijax.enable_x64():
        loss = loss_of(our_lax, PROGRAMS[name][0](minijax, our_lax))
        args = [np.float64(0.9), np.float64(0.7), np.array([0.5, 1.1, 0.8])]
        found = minijax.grad(loss, (0, 1, 2))(*args)
        for i, grad in enumerate(found):
            for at in np.ndindex(np.shape(args[i])):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = [np.array(a) for a in args]
                    moved[i][at] += step
                    ends.append(float(np.asarray(loss(*moved))))
                slope = (ends[0] - ends[1]) / 2e-5
                assert abs(slope - np.asarray(grad)[at]) <= 1e-6 * max(1, abs(slope)), (name, i, at)


def step(lax):
    return lambda c, x: (lax.add(c, x), lax.mul(c, x))


def scanned(length=4, **options):
    return lambda lax, x: lax.scan(step(lax), ONE, lax.slice(x, (0,), (length,)), **options)


def mapped(batch_size):
    return lambda lax, x: lax.map(lax.sin, x, batch_size=batch_size)


def prefixes(size):
    return lambda lax, x: lax.associative_scan(lax.add, lax.slice(x, (0,), (size,)))


def both_prefixes(lax):
    return lambda x, y: {"a": lax.mul(x["a"], y["a"]), "b": lax.add(x["b"], y["b"])}


CALLS = {
    **{
        f"unroll={u}, reverse={r}": (scanned(unroll=u, reverse=r), ROW)
        for u in (0, 1, 2, 3, 4, 9, True, False)
        for r in (False, True)
    },
    "length zero": (scanned(0), ROW),
    "length zero, unrolled": (scanned(0, unroll=2), ROW),
    "a weak carry stays weak": (lambda lax, x: lax.scan(lambda c, x: (lax.mul(c, 2.0), c), 1.0, x), ROW),
    "a weak carry is promoted": (lambda lax, x: lax.scan(lambda c, x: (lax.mul(x, x), c), 1, x), ROW),
    "a weak carry is promoted to half": (
        lambda lax, x: lax.scan(lambda c, x: (lax.mul(x, x), c), 1.0, x),
        ROW.astype(np.float16),
    ),
    "a weak result": (lambda lax, x: lax.scan(lambda c, x: (1.0, c), ONE, x), ROW),
    "a list for a pair": (lambda lax, x: lax.scan(lambda c, x: [c, x], 1.0, x), ROW),
    "trees": (
        lambda lax, x: lax.scan(lambda c, x: ({"b": c["a"], "a": c["b"]}, (x, c)), {"a": 1.0, "b": 2.0}, {"z": x}),
        ROW,
    ),
    "integers and bools": (
        lambda lax, x: lax.scan(
            lambda c, x: ((c[1], lax.add(c[0], x)), lax.gt(x, c[0])), (np.int32(0), np.int32(1)), x
        ),
        np.arange(4, dtype=np.int32),
    ),
    **{f"map in batches of {b}": (mapped(b), ROW) for b in (None, 0, 1, 2, 3, 4, 9)},
    "map of trees": (
        lambda lax, x: lax.map(lambda x: (lax.sin(x[0]), lax.reduce_sum(x[1], (0,)), 1.0), (x, x), batch_size=3),
        ROWS,
    ),
    "map of nothing": (lambda lax, x: lax.map(lax.sin, x, batch_size=2), ROW[:0]),
    **{f"associative_scan of {n}": (prefixes(n), np.arange(8, dtype=np.float32)) for n in (0, 1, 2, 3, 5, 8)},
    "associative_scan backwards": (lambda lax, x: lax.associative_scan(lax.mul, x, reverse=True, axis=1), ROWS),
    "associative_scan of trees": (
        lambda lax, x: lax.associative_scan(both_prefixes(lax), {"a": x, "b": x}, axis=-1),
        ROWS,
    ),
    "associative_scan of bools": (
        lambda lax, x: lax.associative_scan(lax.bitwise_and, x),
        np.array([True, False, True]),
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
def test_calls_give_the_results_of_jax(name):
    call, x = CALLS[name]
    same(lambda lax: call(lax, x))
    same_jaxpr(lambda lax: lambda x: call(lax, x), x)


@pytest.mark.oracle
@pytest.mark.parametrize("reverse", [False, True])
def test_without_jit_the_loop_is_pythons(reverse):
    def program(jax, lax):
        with jax.disable_jit():
            seen = []
            out = lax.scan(lambda c, x: (seen.append(float(c)) or lax.add(c, x), {"y": c}), ONE, ROW, reverse=reverse)
        return seen, out

    same(program)


ERRORS = {
    "carry of another dtype": (
        lambda lax: lax.scan(lambda c, x: (lax.convert_element_type(c, np.int32), x), ONE, ROW),
        [
            "scan body function carry input and carry output must have equal types, but they differ:",
            "The input carry c has type float32[]",
            "has type int32[]",
            "the dtypes do not match",
        ],
    ),
    "carry of another shape": (
        lambda lax: lax.scan(lambda c, x: ({"a": lax.broadcast(c["a"], (2,))}, x), {"a": ROW}, ROW),
        ["The input carry component c['a'] has type float32[4]", "the shapes do not match"],
    ),
    "carry of another structure": (
        lambda lax: lax.scan(lambda c, x: ((c, c), x), ONE, ROW),
        ["carry input and carry output must have the same pytree structure, but they differ:"],
    ),
    "no pair": (lambda lax: lax.scan(lambda c, x: c, ONE, ROW), ["scan body output must be a pair"]),
    "different lengths": (
        lambda lax: lax.scan(lambda c, x: (c, x), ONE, (ROW, ROW[:2])),
        ["scan got values with different leading axis sizes: 4, 2"],
    ),
    "another length": (
        lambda lax: lax.scan(lambda c, x: (c, x), ONE, ROW, length=3),
        ["scan got `length` argument of 3 which disagrees with leading axis sizes [4]"],
    ),
    "no length": (
        lambda lax: lax.scan(lambda c, x: (c, x), ONE),
        ["scan got no values to scan over and `length` not provided"],
    ),
    "a scalar to scan": (lambda lax: lax.scan(lambda c, x: (c, x), ONE, 2.0), ["no leading axis to scan over"]),
    "a numpy scalar to scan": (lambda lax: lax.scan(lambda c, x: (c, x), ONE, ONE), []),
    "negative unroll": (lambda lax: lax.scan(step(lax), ONE, ROW, unroll=-1), ["non-negative `int`"]),
    "no function": (lambda lax: lax.scan(3, ONE, ROW), ["lax.scan: f argument should be a callable"]),
    "a string result": (lambda lax: lax.scan(lambda c, x: (c, "a"), ONE, ROW), ["not a valid JAX type"]),
    "a string carry": (lambda lax: lax.scan(lambda c, x: (c, x), "a", ROW), ["not a valid JAX type"]),
    "map without slices": (lambda lax: lax.map(lambda x: x, None), []),
    "map with negative batches": (lambda lax: lax.map(lambda x: x, ROW, batch_size=-1), []),
    "map of different lengths": (lambda lax: lax.map(lambda x: x, (ROW, ROW[:2]), batch_size=2), []),
    "associative_scan out of bounds": (lambda lax: lax.associative_scan(lax.add, ROW, axis=2), ["out of bounds"]),
    "associative_scan of different sizes": (
        lambda lax: lax.associative_scan(lambda a, b: (a[0], b[1]), (ROW, ROW[:2])),
        ["must have the same first dimension"],
    ),
    "associative_scan without function": (lambda lax: lax.associative_scan(3, ROW), ["should be callable"]),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    program, phrases = ERRORS[name]
    same_refusal(lambda lax: lambda: program(lax), phrases)


@pytest.mark.oracle
def test_a_traced_length_is_refused_as_by_jax():
    def program(jax, lax):
        steps = lambda n: lax.scan(lambda c, _: (c, c), ONE, None, length=n)  # noqa: E731
        return lambda: jax.jit(steps)(3)

    same_refusal(program, ["The `length` argument to `scan` expects a concrete `int` value"])


@pytest.mark.oracle
def test_without_jit_a_loop_of_no_steps_is_refused_as_by_jax():
    def program(jax, lax):
        def call():
            with jax.disable_jit():
                lax.scan(lambda c, x: (c, x), ONE, ROW[:0])

        return call

    same_refusal(program, ["zero-length scan is not supported in disable_jit() mode"])


def test_the_same_body_is_traced_once():
    traces = []

    def body(c, x):
        traces.append(1)
        return our_lax.add(c, x), c

    minijax.make_jaxpr(lambda c, x: (our_lax.scan(body, c, x), our_lax.scan(body, c, x)))(ONE, ROW)
    assert len(traces) == 1


def test_a_body_that_captures_a_tracer_is_traced_anew_when_that_is_dead():
    def run(scale):
        body.scale = scale
        return our_lax.scan(body, ONE, ROW)[0]

    def body(c, x):
        return our_lax.mul(c, body.scale), None

    first = minijax.jit(run)(np.float32(2))
    second = minijax.jit(lambda s: run(s))(np.float32(3))
    assert float(np.asarray(first)) == 1.5 * 2**4 and float(np.asarray(second)) == 1.5 * 3**4


def test_an_integer_length_is_read_from_an_array():
    assert outcome(lambda: our_lax.scan(lambda c, _: (c, c), ONE, None, length=np.int64(2))).error is None


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [17, 40, 64])
def test_many_unrolled_steps_keep_their_order(unroll, reverse):
    """Their results are put together sixteen at a time, as jax does: TPUs are slow with more."""

    def program(jax, jnp, lax):
        step = jax.jit(lambda x: lax.scan(lambda c, a: (c + a, (c, 2 * a)), 0.0, x, reverse=reverse, unroll=unroll))
        joined = [line for line in step.lower(jnp.arange(40.0)).as_text().splitlines() if "concatenate" in line]
        most = max(line.split(", dim")[0].count("%") - 1 for line in joined)
        return most, step(jnp.arange(40.0))

    same(program)


@pytest.mark.oracle
@pytest.mark.parametrize("carried", ["converted", "strong", "product", "part", "itself"])
def test_gradients_by_weak_carries_have_the_weak_types_of_jax(carried):
    def weak_types(jax, jnp, lax):
        steps = {
            "converted": lambda c: (jnp.real(lax.complex(c, c)) * 1).astype(jnp.float32),
            "strong": lambda c: jnp.float32(2),
            "product": lambda c: jnp.float32(2) * c,
            "part": lambda c: jnp.real(lax.complex(c, c)),
            "itself": lambda c: c * 2,
        }

        def weak(row):
            f = lambda a: jnp.real(lax.scan(lambda c, _: (steps[carried](c), row(c)), a, None, length=2)[1]).sum()  # noqa: E731
            return [jax.make_jaxpr(g)(1.5).out_avals[0].weak_type for g in (jax.grad(f), jax.jit(jax.grad(f)))]

        return [weak(lambda c: lax.complex(c, c)), weak(lambda c: c * 2), weak(lambda c: c * np.float32(2))]

    same(weak_types)
