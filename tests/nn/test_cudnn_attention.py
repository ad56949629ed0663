"""Attention by cuDNN: jax's jaxprs and modules for NVIDIA GPUs, and rules that agree with attention by XLA."""

import importlib
import re
from types import SimpleNamespace
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from compare import canonical, run_on, same_printed, same_value

import minijax as jax
import minijax.numpy as jnp
from minijax.composed.attention import attention_bwd_p, attention_fwd_p
from minijax.extend.core import Literal
from minijax.nn.cudnn_attention import check_compute_capability

JAXS = "jax._src.cudnn.fused_attention_stablehlo"
ROUNDED = "bfloat16, and sums in another order"


def found(side):
    """Each side finds cuDNN, on a GPU that is no Hopper."""
    if side.__name__ == "minijax":
        return mock.patch("minijax.nn.attention.check_cudnn", lambda: None)
    import jax._src.cudnn.fused_attention_stablehlo  # noqa: F401

    return mock.patch.multiple(JAXS, check_cudnn_version=lambda: 91_000, check_compute_capability=lambda _: False)


def heads(side, n=4, t=16, h=8, b=2, dtype="bfloat16"):
    return side.ShapeDtypeStruct((b, t, n, h), side.numpy.dtype(dtype))


def logits(side, *shape, dtype="bfloat16"):
    return side.ShapeDtypeStruct(shape, side.numpy.dtype(dtype))


def lengths(side):
    return side.ShapeDtypeStruct((2,), side.numpy.dtype("int32"))


# Positional arguments (query, key, value, bias, mask), the lengths, and options.
CASES = {
    "plain": lambda s: ([heads(s)] * 3, (), {}),
    "float16": lambda s: ([heads(s, dtype="float16")] * 3, (), {}),
    "causal": lambda s: ([heads(s)] * 3, (), dict(is_causal=True)),
    "scale": lambda s: ([heads(s)] * 3, (), dict(scale=0.3)),
    "shared heads": lambda s: ([heads(s, 8), heads(s), heads(s)], (), {}),
    "other length": lambda s: ([heads(s), heads(s, t=24), heads(s, t=24)], (), {}),
    "one element": lambda s: ([s.ShapeDtypeStruct((16, 4, 8), s.numpy.dtype("bfloat16"))] * 3, (), {}),
    "bias": lambda s: ([heads(s)] * 3 + [logits(s, 2, 4, 16, 16)], (), {}),
    "bias of all": lambda s: ([heads(s)] * 3 + [logits(s, 1, 1, 16, 16)], (), {}),
    "bias of rank 2": lambda s: ([heads(s)] * 3 + [logits(s, 16, 16)], (), {}),
    "float32 bias": lambda s: ([heads(s)] * 3 + [logits(s, 2, 4, 16, 16, dtype="float32")], (), {}),
    "mask": lambda s: ([heads(s)] * 3 + [None, logits(s, 1, 1, 16, 16, dtype="bool")], (), {}),
    "float16 mask": lambda s: (
        [heads(s, dtype="float16")] * 3 + [logits(s, 2, 4, 16, 16, dtype="float16"), logits(s, 16, 16, dtype="bool")],
        (),
        {},
    ),
    "bias and mask": lambda s: (
        [heads(s)] * 3 + [logits(s, 2, 4, 16, 16), logits(s, 2, 1, 16, 16, dtype="bool")],
        (),
        {},
    ),
    "lengths of queries": lambda s: ([heads(s)] * 3, (lengths(s), None), {}),
    "lengths of keys": lambda s: ([heads(s)] * 3, (None, lengths(s)), dict(is_causal=True)),
    "window": lambda s: ([heads(s)] * 3, (), dict(local_window_size=3, is_causal=True)),
    "window to the left": lambda s: ([heads(s)] * 3, (), dict(local_window_size=(3, 0))),
    "window and lengths": lambda s: ([heads(s)] * 3, (lengths(s),) * 2, dict(local_window_size=(3, 0), is_causal=True)),
    "residual": lambda s: ([heads(s)] * 3, (), dict(return_residual=True)),
    "all": lambda s: (
        [heads(s, 8), heads(s), heads(s), logits(s, 2, 8, 16, 16), logits(s, 1, 1, 16, 16, dtype="bool")],
        (lengths(s),) * 2,
        dict(is_causal=True, local_window_size=(3, 0), scale=0.3, return_residual=True),
    ),
}


def function(side, operands, its_lengths, options, implementation="cudnn"):
    """Attention as a function of the operands that are given, and these."""
    given = [x for x in (*operands, *its_lengths) if x is not None]

    def attention(*xs):
        rest = iter(xs)
        values = [None if x is None else next(rest) for x in operands]
        ends = [None if x is None else next(rest) for x in its_lengths] or (None, None)
        how = dict(query_seq_lengths=ends[0], key_value_seq_lengths=ends[1], implementation=implementation)
        return side.nn.dot_product_attention(*values, **how, **options)

    return attention, given


def gradient(side, attention, given):
    kinds = [i for i, x in enumerate(given) if side.numpy.issubdtype(x.dtype, side.numpy.floating)]
    total = lambda *xs: sum(x.astype("float32").sum() for x in side.tree.leaves(attention(*xs)))  # noqa: E731
    return side.grad(total, kinds)


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_jaxprs_and_modules_are_those_of_jax(case):
    def texts(jax):
        attention, given = function(jax, *CASES[case](jax))
        parts = []
        with found(jax):
            for f in (attention, gradient(jax, attention, given)):
                parts.append(str(jax.make_jaxpr(f)(*given)))
                parts.append(canonical(jax.jit(f).trace(*given).lower(lowering_platforms=("cuda",)).as_text()))
        return "\n".join(parts)

    same_printed("attention", lambda side: run_on(side, texts), texts, case)


@pytest.mark.oracle
@pytest.mark.parametrize("residual", [False, True])
def test_odd_lengths_have_no_derivatives_but_values(residual):
    def text(jax):
        operands = [heads(jax, t=15), heads(jax, t=9), heads(jax, t=9)]
        attention, given = function(jax, operands, (), dict(return_residual=residual))
        with found(jax):
            return canonical(jax.jit(attention).trace(*given).lower(lowering_platforms=("cuda",)).as_text())

    same_printed("attention of odd lengths", lambda side: run_on(side, text), text, residual)


@pytest.mark.oracle
@pytest.mark.parametrize("case", ["plain", "bias", "shared heads", "window to the left"])
@pytest.mark.parametrize("grad", [False, True])
def test_batched_jaxprs_are_those_of_jax(case, grad):
    def text(jax):
        attention, given = function(jax, *CASES[case](jax))
        f = gradient(jax, attention, given) if grad else attention
        stacked = [jax.ShapeDtypeStruct((3, *x.shape), x.dtype) for x in given]
        cts = jax.vmap(lambda ct, *xs: jax.vjp(attention, *xs)[1](ct)) if grad else jax.vmap(f)
        with found(jax):
            made = jax.make_jaxpr(cts)(*[stacked[0]] * grad, *stacked)
        return re.sub(r"np\.int64\((\d+)\)", r"\1", str(made)).replace(" ", "").replace("\n", "")

    same_printed("batched attention", lambda side: run_on(side, text), text, case, grad)


REFUSED = {
    "float32": lambda s: ([heads(s, dtype="float32")] * 3, (), {}),
    "features": lambda s: ([heads(s, h=136)] * 3, (), {}),
    "features not of 8": lambda s: ([heads(s, h=12)] * 3, (), {}),
    "bias of one query": lambda s: ([heads(s)] * 3 + [logits(s, 2, 4, 1, 16)], (), {}),
    "mask of keys": lambda s: ([heads(s)] * 3 + [None, logits(s, 16, dtype="bool")], (), {}),
    "window to the right": lambda s: ([heads(s)] * 3, (), dict(local_window_size=3)),
    "padded window": lambda s: ([heads(s)] * 3, (lengths(s),) * 2, dict(local_window_size=3, is_causal=True)),
    "negative window": lambda s: ([heads(s)] * 3, (), dict(local_window_size=(-1, 0))),
    "derivative of odd lengths": lambda s: ([heads(s, t=15), heads(s), heads(s)], (), {}),
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", REFUSED)
def test_what_jax_refuses_is_refused(case):
    def text(jax):
        attention, given = function(jax, *REFUSED[case](jax))
        with found(jax), pytest.raises(Exception) as caught:
            jax.make_jaxpr(gradient(jax, attention, given))(*given)
        message = str(caught.value).removeprefix("dot_product_attention: ")
        return f"{type(caught.value).__name__}: {'' if case == 'float32' else message}"

    same_printed("refusal of attention", lambda side: run_on(side, text), text, case)


def test_it_needs_a_gpu():
    x = jnp.ones((1, 4, 2, 8), jnp.bfloat16)
    attention = lambda x: jax.nn.dot_product_attention(x, x, x, implementation="cudnn")  # noqa: E731
    with found(jax), pytest.raises(NotImplementedError, match="not found for platform cpu"):
        jax.jit(attention).lower(x)
    with pytest.raises(RuntimeError, match="cuDNN is not detected"):
        attention(x)


# ---- the rules, with both operations computed by XLA -----------------------------------------------------


def by_xla(params):
    """Attention of the ten operands as XLA computes it, and the logsumexp of the logits."""
    masked = params["mask_type"].name
    left = params["sliding_window_length"]
    options = dict(is_causal="CAUSAL" in masked, scale=params["scale"], return_residual=True)

    def attention(query, key, value, bias, query_lengths, key_lengths, *_):
        ends = (query_lengths, key_lengths) if "PADDING" in masked else (None, None)
        window = None if left is None else (left - 1, 0)
        encoded, sums = jax.nn.dot_product_attention(
            query, key, value, bias if params["variadic_args"][0] else None, query_seq_lengths=ends[0],
            key_value_seq_lengths=ends[1], local_window_size=window, **options,
        )  # fmt: skip
        return encoded, jnp.transpose(sums, (0, 2, 1)).astype("float32")

    return attention


def evaluated(closed, operands):
    """Evaluates a jaxpr; cuDNN's operations by XLA."""

    def run(jaxpr, consts, args):
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
        read = lambda v: v.val if isinstance(v, Literal) else env[v]  # noqa: E731
        for eqn in jaxpr.eqns:
            xs, params = list(map(read, eqn.invars)), eqn.params
            inner = params.get("call_jaxpr", params.get("jaxpr"))
            if eqn.primitive is attention_fwd_p:
                results = by_xla(params)(*xs)
            elif eqn.primitive is attention_bwd_p:
                attention = lambda *four: by_xla(params)(*four, *xs[4:10])[0]  # noqa: B023, E731
                results = jax.vjp(attention, *xs[:4])[1](xs[12])
            elif inner is not None:
                results = run(inner.jaxpr, inner.consts, xs)
            else:
                made = eqn.primitive.bind(*xs, **params)
                results = made if eqn.primitive.multiple_results else [made]
            env.update(zip(eqn.outvars, results))  # noqa: B905
        return [read(v) for v in jaxpr.outvars]

    return run(closed.jaxpr, closed.consts, operands)


def numbers(*shape, seed=0, dtype=ml_dtypes.bfloat16):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


QUERY, KEYS = numbers(3, 2, 6, 4, 8), numbers(3, 2, 10, 2, 8, seed=1)
VALUES, COTANGENT = numbers(3, 2, 10, 2, 8, seed=2), numbers(3, 2, 6, 4, 8, seed=3)
BATCHED = {
    "all": ((0, 0, 0, None), (QUERY, KEYS, VALUES, None), {}),
    "query alone": ((0, None, None, None), (QUERY, KEYS[0], VALUES[0], None), {}),
    "key alone": ((None, 0, None, None), (QUERY[0], KEYS, VALUES[0], None), {}),
    "another axis": (
        (1, 2, 0, None),
        (QUERY.swapaxes(0, 1), np.moveaxis(KEYS, 0, 2), VALUES, None),
        dict(is_causal=True),
    ),
    "bias": ((0, 0, 0, 0), (QUERY, KEYS, VALUES, numbers(3, 2, 4, 6, 10, seed=4)), {}),
    "bias of each": ((0, 0, 0, None), (QUERY, KEYS, VALUES, numbers(2, 4, 6, 10, seed=4)), {}),
    "bias of all": ((0, 0, 0, None), (QUERY, KEYS, VALUES, numbers(1, 4, 6, 10, seed=4)), {}),
    "batched bias of all": ((0, 0, 0, 1), (QUERY, KEYS, VALUES, numbers(1, 3, 1, 6, 10, seed=4)), {}),
    "window": ((0, 0, 0, None), (QUERY, KEYS, VALUES, None), dict(is_causal=True, local_window_size=2)),
}


@pytest.mark.parametrize("case", BATCHED)
def test_vmap_and_grad_agree_with_xla(case):
    axes, operands, options = BATCHED[case]
    given = [i for i, x in enumerate(operands) if x is not None]

    def cotangents(implementation):
        def attention(*xs):
            values = dict(zip(given, xs, strict=True))
            how = dict(implementation=implementation, **options)
            return jax.nn.dot_product_attention(*[values.get(i) for i in range(4)], **how)

        in_axes = (0, *[axes[i] for i in given])
        pulled = jax.vmap(lambda ct, *xs: (attention(*xs), jax.vjp(attention, *xs)[1](ct)), in_axes)
        return jax.make_jaxpr(pulled)(COTANGENT, *[operands[i] for i in given])

    xs = [COTANGENT, *[operands[i] for i in given]]
    with found(jax):
        ours = cotangents("cudnn")
    assert "dot_product_attention_bwd_wrapper" in str(ours)
    got, want = evaluated(ours, xs), jax.core.eval_jaxpr((by := cotangents("xla")).jaxpr, by.consts, *xs)
    same_value(*([x.astype("float32") for x in side] for side in (got, want)), rtol=0.05, atol=0.1, why=ROUNDED)


def test_a_bias_for_all_elements_serves_a_batch():
    def attention(query, bias):
        return jax.nn.dot_product_attention(query, query, query, bias, implementation="cudnn")

    query, bias = numbers(3, 2, 6, 4, 8), numbers(1, 4, 6, 6)
    with found(jax):
        made = jax.make_jaxpr(jax.vmap(attention, (0, None)))(query, bias)
    (body,) = [eqn.params["call_jaxpr"] for eqn in made.eqns if "call_jaxpr" in eqn.params]
    (attend,) = [eqn for eqn in body.eqns if eqn.primitive is attention_fwd_p]
    assert [v.aval.shape for v in attend.invars[:4]] == [(6, 6, 4, 8)] * 3 + [(1, 4, 6, 6)]


# ---- over several devices ------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("axis_type", ["Auto", "Explicit"])
@pytest.mark.parametrize("case", ["shared heads", "bias", "lengths of keys", "residual"])
def test_modules_for_several_devices_are_those_of_jax(case, axis_type):
    def texts(jax):
        s = jax.sharding
        kinds = (getattr(s.AxisType, axis_type),) * 2
        mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=kinds)
        attention, given = function(jax, *CASES[case](jax))
        spec = s.PartitionSpec("data", None, "model", None)
        sharded = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s.NamedSharding(mesh, spec)) for x in given[:3]]
        parts = []
        with found(jax):
            for f in (attention, gradient(jax, attention, given)):
                traced = jax.jit(f).trace(*sharded, *given[3:])
                text = canonical(traced.lower(lowering_platforms=("cuda",)).as_text())
                parts.append(re.sub(r'backend_config = "\d+"|@\w+SPMDPartitioning', "partitioned", text))
                parts.append(str(traced.jaxpr))
        return "\n".join(parts)

    same_printed("sharded attention", lambda side: run_on(side, texts), texts, case, axis_type)


def by_shards(jax, case, specs, count):
    """The derivative by the first `count` operands in a `shard_map` over batch and heads, and the operands."""
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    attention, given = function(jax, *CASES[case](jax))
    in_specs = (jax.P("data", None, "model"),) * 3 + specs
    derivative = jax.grad(lambda *xs: attention(*xs).astype("float32").sum(), tuple(range(count)))
    return jax.shard_map(derivative, mesh=mesh, in_specs=in_specs, out_specs=in_specs[:count]), given


@pytest.mark.oracle
@pytest.mark.parametrize("case", ["plain", "shared heads", "lengths of keys"])
def test_derivatives_in_shard_map_are_those_of_jax(case):
    def texts(jax):
        with found(jax):
            f, given = by_shards(jax, case, (jax.P("data"),) * (case == "lengths of keys"), 3)
            traced = jax.jit(f).trace(*given)
            return f"{traced.jaxpr}\n{canonical(traced.lower(lowering_platforms=('cuda',)).as_text())}"

    same_printed("attention of shards", lambda side: run_on(side, texts), texts, case)


def test_the_cotangent_of_a_bias_that_shards_share_is_summed():
    with found(jax):
        f, given = by_shards(jax, "bias of all", (jax.P(),), 4)
        made = str(jax.make_jaxpr(f)(*given))
    assert re.search(r"bf16\[1,1,16,16\] = psum_invariant\[axes=\('data', 'model'\)\]", made)


# ---- what keras asks ---------------------------------------------------------------------------------


def test_keras_may_ask_whether_there_is_fused_attention():
    checks = importlib.import_module("minijax.interop.flash_attention")
    x, odd = jnp.ones((2, 4, 2, 8), jnp.bfloat16), jnp.ones((2, 3, 2, 8), jnp.bfloat16)
    layout = checks.normalize_layout("bTnh")
    checks.check_layout(x, x, x, None, layout)
    checks.check_is_flash_attention(x, odd, layout, 91_000, False, False)
    for call, kind in (
        (lambda: checks.check_layout(x.astype("float32"), x, x, None, layout), NotImplementedError),
        (lambda: checks.check_layout(x, x, x, jnp.ones((2, 2, 1, 4)), layout), ValueError),
        (lambda: checks.check_layout(x, x, x, None, checks.normalize_layout("BNTH")), NotImplementedError),
        (lambda: checks.check_is_flash_attention(x, odd, layout, 91_000, False, True), NotImplementedError),
        (lambda: checks.normalize_layout("TBNH"), ValueError),
    ):
        with pytest.raises(kind):
            call()


@pytest.mark.parametrize(("capabilities", "holds"), [(["8.0", "9.0"], True), (["8.9", "7.5"], False), (["10.0"], True)])
def test_compute_capabilities_are_compared_as_numbers(capabilities, holds, monkeypatch):
    devices = [SimpleNamespace(compute_capability=c) for c in capabilities]
    monkeypatch.setattr("minijax.nn.cudnn_attention.client.local_devices", lambda: devices)
    assert check_compute_capability("8.0") is holds
    monkeypatch.undo()
    assert not check_compute_capability("8.0")  # CPUs have none


def test_hopper_has_kernels_for_more_features(monkeypatch):
    x = jnp.ones((1, 4, 2, 192), jnp.bfloat16)
    monkeypatch.setattr("minijax.nn.cudnn_attention.check_compute_capability", lambda _: True)
    with found(jax):
        made = jax.make_jaxpr(lambda x: jax.nn.dot_product_attention(x, x, x, implementation="cudnn"))(x)
    assert "dot_product_attention_fwd_wrapper" in str(made)
