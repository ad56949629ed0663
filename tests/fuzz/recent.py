"""Random programs of what `people` does not write: paths and dtypes of sums, masks of a size, keys in loops, policies.

The statements are those of `people`, and more often those below.
"""

import random
from typing import Any

import numpy as np
import transform_matrix
from fuzz import generator, people

ROWS = """
jnp.<sum prod mean cumsum cumprod var std nansum trace_>({v}, dtype=<jnp.float32 jnp.bfloat16 int float jnp.int8 complex>)
jnp.<sum max min prod>({v}, axis={axis}, where={v} > 0, initial=<0 1 2.0>)
{v}.<sum mean prod cumsum>(dtype=<jnp.float16 float int jnp.uint8>)
jnp.<linspace arange>(0, 3, dtype=<jnp.int32 jnp.bfloat16 int>)
jnp.<ones_like full_like_>({x}, dtype=<jnp.float8_e4m3fn jnp.float8_e5m2 jnp.int4_ jnp.uint16>)
jnp.einsum("ij,jk,kl->il", jnp.resize({f}, (3, 3)), TABLE, TABLE, optimize=<True False "greedy" "optimal">)
jnp.einsum("ij,kj,k->i", jnp.resize({f}, (3, 3)), TABLE, WEIGHTS, optimize=<True "dp">)
jnp.einsum("ij,<jk ij ji>", TABLE, jnp.resize({f}, (3, 3)), preferred_element_type=<jnp.float32 None>)
jnp.linalg.multi_dot([TABLE, jnp.resize({f}, (3, 3)), WEIGHTS])
lax.dot_general(jnp.resize({f}, (2, 3)), TABLE, (((1,), (<0 1>,)), ((), ())), preferred_element_type=<jnp.float32 jnp.float64_ None>)
lax.dot_general(jnp.resize({f}, (2, 3, 4)), jnp.resize({f}, (2, 4)), (((2,), (1,)), ((0,), (0,))))
lax.dot(jnp.resize({f}, (3,)).astype(jnp.bfloat16), jnp.ones(3, jnp.bfloat16), preferred_element_type=jnp.float32)
lax.ragged_dot(jnp.resize({f}, (4, 3)), jnp.resize({f}, (2, 3, 2)), jnp.array([1, 3]))
jnp.nonzero({v} > 0, size=<2 3>, fill_value=<None 0>)
jnp.argwhere({v} > 0, size=2)
jnp.where({v} > 0, size=2)[0]
jnp.flatnonzero({v}, size=2)
jnp.unique({v}, size=3, return_counts=True, fill_value=<None 0>)
jnp.unique({v}, size=3, return_inverse=True)
jnp.union1d({v}, WEIGHTS, size=4)
jnp.setdiff1d({f}, WEIGHTS, size=2)
jnp.extract({v} > 0, {v}, size=2)
jnp.compress(np.array([True, False, True]), WEIGHTS, size=2)
{v}.at[{v} > 0].<set add multiply min max>({s})
{v}.at[0].<mul divide power min max subtract>({s})
{v}.at[{j}].<mul min max add>({s}, indices_are_sorted=<True False>)
{v}.at[{j}].get(mode=<"fill" "clip" "wrap_">, fill_value=<0 1>)
{v}.at[..., 0].apply(lambda t: t * 2)
{v}.at[jnp.argmax({f})].set({s}, mode="drop")
lax.sort(({v}, {same}, {same}), num_keys=<1 2 3>, is_stable=<True False>)
lax.sort(({f}, lax.broadcasted_iota(jnp.int32, {f}.shape, 0)), dimension=0) if {f}.ndim else {f}
jnp.lexsort(({v}, {same}), axis={axis})
jnp.partition({v}, 0, axis={axis})
jnp.argpartition({v}, 0)
lax.complex({f}, {f}) * <1j 2 (1+2j)>
jnp.<abs angle real imag conj exp sqrt log square sin>(lax.complex({f}, {f}))
jnp.vdot(lax.complex({f}, {f}).ravel(), lax.complex({f}, {f}).ravel())
jnp.where({x} > 0, lax.complex(jnp.float32(1), jnp.float32(2)), {s})
jnp.abs(jnp.fft.fft({v})) ** 2
jnp.piecewise({f}, [0 > {f}, {f} > 1], [lambda t: -t, lambda t: t ** 2, <0.0 1 lambda_t>])
jnp.select([0 > {f}, {f} > 1], [{f}, {f} * 2], default=<0 1.5 WEAK>)
jnp.choose(jnp.clip({i}, 0, 1), [{i}, {i} * 2], mode=<"clip" "wrap">)
jnp.take_along_axis({v}, jnp.argsort({v}, axis={axis}), axis={axis})
jnp.put_along_axis({v}, jnp.argmax({v}, axis={axis}, keepdims=True), 1, axis={axis}, inplace=False)
jnp.fill_diagonal(TABLE * jnp.sum({f}), {s}, inplace=False)
jnp.<insert>({v}, 0, {s}, axis=<None 0>)
jnp.delete({v}, 0, axis=<None 0>)
jnp.append({v}, {same})
jnp.block([[TABLE, TABLE], [TABLE * jnp.sum({f}), TABLE]])
jnp.<gradient trapezoid ediff1d>({f} * jnp.ones((3,)))
jnp.<frexp modf>({f})
jnp.ldexp({f}, 2)
jnp.<nancumsum nanprod nanmin nanargmax nanstd>({f} * jnp.ones((2,)))
jnp.histogram({f}, bins=<2 np.array([0.0,1.0,2.0])>, density=<True False>)
jnp.digitize({f}, WEIGHTS.sort())
jnp.searchsorted(WEIGHTS.sort(), {f}, side=<"left" "right">, method=<"scan" "sort" "compare_all">)
jnp.cov(jnp.resize({f}, (2, 3)))
jnp.corrcoef(jnp.resize({f}, (2, 3)))
jnp.apply_along_axis(arr={v}, axis={axis}, func1d=lambda r: r * 2)
jnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(jnp.resize({f}, (2, 3)), WEIGHTS)
jnp.vectorize(lambda a, b: a + b, excluded=[1])({x}, {s})
jnp.polyfit(WEIGHTS, jnp.resize({f}, (3,)), 1)
jnp.roots(WEIGHTS, strip_zeros=False)
jnp.unwrap({f} * jnp.ones((3,)))
jnp.packbits({v} > 0)
jnp.bitwise_count({i})
jnp.array_equal({x}, {y})
jnp.isin({x}, WEIGHTS)
jnp.tril_indices(3)
jnp.rollaxis({m}, 1)
({f}).astype(jnp.<float8_e4m3fn float8_e5m2>).astype(jnp.float32)
({f}).astype(jnp.float8_e4m3fn) + jnp.asarray(1, jnp.float8_e4m3fn)
lax.reduce(({f}, {f}), (jnp.zeros((), {f}.dtype), jnp.ones((), {f}.dtype)), lambda a, b: (a[0] + b[0], a[1] * b[1]), tuple(range({f}.ndim)))
lax.reduce({f}, jnp.zeros((), {f}.dtype), lambda a, b: jnp.<maximum logaddexp add multiply>(a, b), tuple(range({f}.ndim)))
lax.reduce({i}, jnp.zeros((), {i}.dtype), lax.<bitwise_or bitwise_xor max>, tuple(range({i}.ndim)))
lax.reduce_window({f}, -jnp.inf, lax.max, (1,) * {f}.ndim, (1,) * {f}.ndim, "VALID")
lax.conv(jnp.resize({f}, (1, 1, 3, 3)), jnp.resize({f}, (1, 1, 2, 2)), (1, 1), <"SAME" "VALID">)
lax.conv_general_dilated(jnp.resize({f}, (1, 2, 4)), jnp.resize({f}, (2, 1, 2)), (1,), [(1, 0)], feature_group_count=2)
lax.associative_scan(jnp.<add maximum multiply>, {v}, reverse=<True False>, axis={axis})
lax.associative_scan(lambda a, b: {{"m": a["m"] * b["m"], "s": a["s"] * b["m"] + b["s"]}}, {{"m": {v}, "s": {same}}}, reverse=<True False>)
lax.map(lambda r: jnp.sum(r) * r, {v}, batch_size=<1 2 None>)
lax.map(lambda r: (r["a"], r["a"] * 2), {{"a": {v}, "n": None}})
lax.custom_linear_solve(lambda t: 2 * t, {f}, lambda mv, b: b / 2, lambda mv, b: b / 2)
lax.custom_root(lambda t: t * 2 - {f}, {f}, lambda f, t: t, lambda g, y: y / 2)
jax.custom_derivatives.linear_call(lambda r, t: t * r, lambda r, ct: ct * r, {f}, {f})
jax.hessian(lambda p: jnp.sum(p["a"] ** 2 * p["b"]))({{"a": jnp.resize({f}, (2,)), "b": 2.0}})
jax.<jacfwd jacrev>(lambda p: {{"r": p["a"] * p["b"], "n": None}})({{"a": jnp.resize({f}, (2,)), "b": 2.0}})
jax.<jacfwd jacrev>(lambda a, b: (a * b, jnp.sum(a)), argnums=(0, 1))(jnp.resize({f}, (2,)), 1.5)
jax.jacfwd(jax.jacrev(lambda t: jnp.sum(jnp.sin(t) ** 2)))(jnp.resize({f}, (2,)))
(lambda o: (o[1](WEIGHTS), o[1](2 * WEIGHTS)))(jax.linearize(lambda t: jnp.sin(t) * jnp.resize({f}, (3,)), WEIGHTS))
(lambda o: [o[1](jnp.ones(3)), o[1](WEIGHTS)])(jax.vjp(lambda t: jnp.tanh(t) * jnp.resize({f}, (3,)), WEIGHTS))
jax.vmap(jax.linearize(lambda t: t ** 3, {f})[1])(jnp.stack([{f}, {f}]))
jax.vmap(lambda r: lax.while_loop(lambda s: jnp.sum(s[1]) < jnp.sum(r), lambda s: (s[0] + 1, s[1] + 1), (0, 0.0)))(jnp.resize({f}, (3,)))
jax.vmap(lambda r: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * r), (0, r)))(jnp.resize({f}, (3,)))
jax.vmap(lambda r: lax.fori_loop(0, jnp.int32(jnp.sum(r)) % 3, lambda i, c: c + r, r))(jnp.resize({f}, (3,)))
jax.vmap(lambda r, p: lax.cond(p, lambda t: t * 2, lambda t: -t, r))(jnp.resize({f}, (3,)), WEIGHTS > 0)
jax.vmap(lambda r, n: lax.switch(n, [jnp.sin, jnp.cos, lambda t: t], r))(jnp.resize({f}, (3,)), ORDER)
jax.vmap(jax.vmap(lambda a, b: a * b, (None, 0)), (0, None))(jnp.resize({f}, (2,)), WEIGHTS)
lax.scan(lambda k, _: (random.split(k)[0], random.normal(k, (2,))), {key}, None, length=2)
lax.scan(lambda c, k: (c + random.uniform(k), None), 0.0, random.split({key}, 3))
lax.fori_loop(0, 2, lambda i, c: (random.fold_in(c[0], i), c[1] + random.normal(c[0])), ({key}, 0.0))
lax.while_loop(lambda c: c[1] < 2, lambda c: (random.split(c[0], 1)[0], c[1] + 1), ({key}, 0))
lax.cond({b}.all(), lambda k: random.normal(k, (2,)), lambda k: random.uniform(k, (2,)), {key})
jax.vmap(lambda k, r: r + random.normal(k))(random.split({key}, 3), WEIGHTS)
jax.tree.map(lambda k: random.uniform(k), tuple(random.split({key}, 2)))
random.key_data(random.clone({key}))
random.<normal uniform>({key}, {shape}, dtype=<jnp.float16 jnp.bfloat16 float>)
random.<laplace logistic cauchy maxwell rayleigh weibull_>({key}, {shape})
random.multivariate_normal({key}, WEIGHTS, jnp.eye(3))
random.truncated_normal({key}, -1.0, jnp.abs({f}).sum() + 1.0, (2,))
random.orthogonal({key}, 2)
random.ball({key}, 2)
jax.image.resize(jnp.resize({f}, (2, 2)), (3, 3), <"linear" "nearest" "cubic">)
nn.dot_product_attention(*[jnp.resize({f}, (1, 2, 1, 3))] * 3, is_causal=<True False>)
nn.<logsumexp standardize softmax>({v}, axis={axis}, where={v} > 0)
nn.one_hot({i}, 3, axis=<0 -1>)
jax.ops.segment_<max min prod sum>({v}, jnp.zeros({v}.shape[0], int), 2, indices_are_sorted=True)
jax.scipy.stats.norm.<logpdf cdf pdf>({f}, 0.5, <1 2.0>)
jax.scipy.special.<digamma betaln gammaincc zeta i0e>({f}, <{f} 2.0>)
jax.scipy.linalg.<lu_factor cho_factor expm>(jnp.eye(3) * (1 + jnp.sum({f}) ** 2))
jnp.linalg.<eigh qr svd>(jnp.eye(3) + TABLE * jnp.sum({f}))[0]
jnp.linalg.<lstsq>(TABLE + jnp.eye(3), jnp.resize({f}, (3,)))[0]
jnp.linalg.<vector_norm>({f} * jnp.ones((3,)), ord=<1 2 3 jnp.inf>)
jnp.convolve(jnp.resize({f}, (4,)), WEIGHTS, mode="same", precision=<None "highest">)
jnp.array([[{f}.sum(), 1], [2, 3.0]])
"""
POLICIES = (
    "everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable",
    'save_only_these_names("a", "b")', 'save_any_names_but_these("a")', 'save_anything_except_these_names("b")',
    'save_from_both_policies(jax.checkpoint_policies.dots_saveable, jax.checkpoint_policies.save_only_these_names("a"))',
)  # fmt: skip


class Body(people.Body):
    """Statements that are newer, or rarer, than those of `people`."""

    def expression(self) -> str:
        drawn = self.rng.random()
        if drawn < 0.6:
            return self.filled(self.rng.choice(TABLE))
        if drawn < 0.75 and self.depth < 2:
            return self.rng.choice(FORMS)(self)
        return super().expression()


TABLE = people.rows_of(ROWS)


# Forms: each defines what it needs and gives the text of a call.


def policies(body: Body) -> str:
    """A layer whose values have names, under a policy of `checkpoint`, and perhaps in a loop."""
    text = body.variable(transform_matrix.is_inexact)
    layer = body.fresh("f")
    body.run(
        f"def {layer}(t):\n    a = checkpoint_name(jnp.sin(t), 'a')\n"
        "    return checkpoint_name(jnp.cos(a) * jnp.sum(a), 'b') * t"
    )
    policy = f"policy=jax.checkpoint_policies.{body.rng.choice(POLICIES)}"
    return body.rng.choice(
        [
            f"jax.grad(lambda t: jnp.sum(jnp.real(jax.checkpoint({layer}, {policy})(t))))({text})",
            f"jax.linearize(jax.checkpoint({layer}, {policy}), {text})[1]({text})",
            f"jax.vjp(jax.checkpoint(lambda t: lax.scan(lambda c, _: ({layer}(c), None), t, length=2)[0], {policy}), {text})[1]({text})",
            f"lax.scan(jax.checkpoint(lambda c, _: ({layer}(c), c), {policy}), {text}, length=2)",
            f"jax.checkpoint(jax.jit({layer}), {policy})({text})",
        ]
    )


def keyed(body: Body) -> str:
    """Keys in a tree that a loop carries."""
    state = body.fresh("c")
    body.run(f"{state} = {{'key': random.key({body.rng.randrange(9)}), 'x': {body.variable()}, 'n': 0}}")
    step = "{'key': random.split(c['key'])[1], 'x': c['x'], 'n': c['n'] + 1}"
    return body.rng.choice(
        [
            f"lax.scan(lambda c, _: ({step}, random.normal(c['key'])), {state}, length=2)[1]",
            f"lax.fori_loop(0, 2, lambda i, c: {step}, {state})['n']",
            f"lax.while_loop(lambda c: c['n'] < 2, lambda c: {step}, {state})['x']",
            f"jax.jit(lambda c: {step})({state})['x']",
            f"lax.cond({state}['n'] > 1, lambda c: {step}, lambda c: c, {state})['n']",
        ]
    )


def linear(body: Body) -> str:
    """A linear function that is transposed, called twice, or mapped."""
    text = body.variable(lambda v: generator.dtype_of(v) == "float32")
    name, _ = body.function(
        [body.values[text].aval], lambda inner: inner.like((), np.dtype(np.float32)), differentiated=True
    )
    out = body.fresh("o")
    body.run(f"{out} = jax.{body.rng.choice(['linearize', 'vjp'])}({name}, {text})")
    given = text if body.lines[-1].find("linearize") > 0 else "1.0"
    return body.rng.choice(
        [
            f"({out}[1]({given}), {out}[1]({given}))",
            f"jax.jit({out}[1])({given})",
            f"jax.vmap({out}[1])(jnp.stack([{given}, {given}]))",
            f"jax.make_jaxpr({out}[1])({given}) and {out}[0]",
        ]
    )


def shared(body: Body) -> str:
    """One jitted function that several loops, branches and derivatives call."""
    text = body.variable(lambda v: generator.dtype_of(v) == "float32")
    name = body.fresh("f")
    body.run(f"@jax.jit\ndef {name}(t, n=2):\n    return jnp.sin(t) * WEIGHTS[0] + n * SCALE")
    return body.rng.choice(
        [
            f"lax.scan(lambda c, _: ({name}(c), {name}(c, 3)), {text}, length=2)",
            f"lax.cond(jnp.sum({text}) > 0, {name}, lambda t: {name}({name}(t)), {text})",
            f"jax.vmap({name})(jnp.stack([{text}] * 2)) + {name}({text})",
            f"jax.grad(lambda t: jnp.sum({name}({name}(t))))({text})",
            f"jax.jvp({name}, ({text},), ({text},))",
            f"jax.grad(lambda t: lax.fori_loop(0, 2, lambda i, c: {name}(c), jnp.sum(t)))({text})",
        ]
    )


FORMS = [policies, policies, keyed, keyed, linear, shared]


def generate(seed: int) -> Any:
    """The program of that seed."""
    return people.generate(seed, Body, random.Random(f"recent:{seed}"))
