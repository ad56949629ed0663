"""Modules of the Emitter are parsed, compiled and run by XLA, and their results compared with NumPy's."""

import os
import re

import ml_dtypes
import numpy as np
import pytest
from jaxlib import _jax, xla_client as xc

from minijax.base import dtypes
from minijax.hlo import spell
from minijax.hlo.emitter import Emitter
from minijax.ir.types import ShapedArray, token_type
from minijax.run import jaxlib_versions

F, INT, B = np.dtype("float32"), np.dtype("int32"), np.dtype("bool")


def aval(*shape, dtype=F):
    return ShapedArray(shape, np.dtype(dtype))


def of(x):
    return ShapedArray(x.shape, x.dtype)


class Key(dtypes.ExtendedDType):
    """A dtype whose elements are pairs of uint32."""

    type, name, itemsize = dtypes.prng_key, "key<test>", 8
    physical_dtype, physical_suffix = np.dtype("uint32"), (2,)


KEY = Key()


def module(build, avals):
    """The text of a program; `build(e, *names)` returns (name, aval) of each result."""
    e, outs = Emitter(), []

    def head(args):
        typed = ", ".join(f"{a}: {spell.type_of(t)}" for a, t in zip(args, avals, strict=True))
        return f"  func.func public @main({typed}) -> (@RESULTS) {{"

    def body(args):
        pairs = build(e, *args)
        outs.extend(a for _, a in pairs)
        return [name for name, _ in pairs]

    e.function(head, len(avals), body, outs)
    return e.written("jit_f", {}).text().replace("@RESULTS", ", ".join(map(spell.type_of, outs)), 1), outs


class Aval:
    def __init__(self, x):
        self.shape, self.dtype, self.weak_type, self.ndim = x.shape, x.dtype, False, x.ndim


@pytest.fixture(scope="module")
def run():
    client = xc.make_cpu_client()
    device = client.local_devices()[0]
    sharding = _jax.GSPMDSharding(_jax.DeviceList((device,)), xc.HloSharding.replicate(), memory_kind=None)

    def execute(build, *arrays, avals=None):
        text, outs = module(build, avals or [of(x) for x in arrays])
        options = xc.CompileOptions()
        # The older emitters, which the flags of the default tier choose, lack some dtypes.
        if "xla_cpu_use_fusion_emitters" in os.environ["XLA_FLAGS"]:
            options.env_option_overrides = [("xla_cpu_use_fusion_emitters", True)]
        program = client.compile_and_load(text, [device], options)
        put = [
            _jax.batched_device_put(Aval(x), sharding, [x], [device], enable_x64=True) for x in map(np.asarray, arrays)
        ]
        real = [spell.physical(a) for a in outs]
        handlers = [jaxlib_versions.result_handler(a, sharding, committed=False) for a in real]
        results = program.execute_sharded(put).consume_with_handlers(handlers)
        return [np.asarray(r) for r in results]

    return execute


def check(run, cases, *arrays, avals=None):
    """Cases by name: (what writes it, its type, its value)."""
    names = list(cases)

    def build(e, *args):
        return [(cases[n][0](e, *args), cases[n][1]) for n in names]

    for name, got in zip(names, run(build, *arrays, avals=avals), strict=True):
        # XLA's functions and numpy's differ in their last bits.
        np.testing.assert_allclose(got, cases[name][2], rtol=1e-5, err_msg=name, strict=True)


x = np.arange(12, dtype=F).reshape(3, 4) / 4
y = (x[::-1] + 1).copy()
X, SCALAR = aval(3, 4), aval()


def test_elementwise_operations_equal_numpys(run):
    z = x + 1j * y
    Z = of(z.astype("complex64"))
    flag = aval(3, 4, dtype=bool)
    cases = {
        "unary": (lambda e, x, y: e.unary("exponential", x, X), X, np.exp(x)),
        "attrs": (
            lambda e, x, y: e.unary(
                "tanh",
                x,
                X,
                " {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>}",
            ),
            X,
            np.tanh(x),
        ),
        "binary": (lambda e, x, y: e.binary("subtract", x, y, X), X, x - y),
        "map_to": (lambda e, x, y: e.map_to("is_finite", x, X, flag), flag, np.isfinite(x)),
        "chlo": (lambda e, x, y: e.chlo("asin", [e.unary("tanh", x, X)], [X], X), X, np.arcsin(np.tanh(x))),
        "complex": (lambda e, x, y: e.binary("complex", x, y, Z), Z, z.astype("complex64")),
        "compare": (lambda e, x, y: e.compare("LT", x, y, X), flag, x < y),
        "total": (lambda e, x, y: e.compare("GE", x, y, X, "TOTALORDER"), flag, x >= y),
        "select": (lambda e, x, y: e.select(e.compare("GT", x, y, X), x, y, flag, X), X, np.maximum(x, y)),
        "clamp": (lambda e, x, y: e.clamp(e.full(0.5, X), x, e.full(2, X), X), X, x.clip(0.5, 2)),
        "convert": (
            lambda e, x, y: e.convert(x, X, aval(3, 4, dtype="int8")),
            aval(3, 4, dtype="int8"),
            x.astype("int8"),
        ),
        "bitcast": (lambda e, x, y: e.bitcast_convert(x, X, aval(3, 4, dtype=INT)), aval(3, 4, dtype=INT), x.view(INT)),
        "reduce_precision": (lambda e, x, y: e.reduce_precision(x, X, 8, 7), X, x.astype(ml_dtypes.bfloat16).astype(F)),
        "iota": (lambda e, x, y: e.iota(1, X), X, np.broadcast_to(np.arange(4, dtype=F), (3, 4))),
        "zeros": (lambda e, x, y: e.zeros(X), X, np.zeros_like(x)),
        "full": (lambda e, x, y: e.full(True, flag), flag, np.ones((3, 4), bool)),
        "barrier": (lambda e, x, y: e.optimization_barrier([x, y], [X, X])[1], X, y),
    }
    check(run, cases, x, y)


def test_shape_operations_equal_numpys(run):
    wide = aval(2, 3, 5, 4)
    padded = np.zeros((5, 8), F) - 1
    padded[1:4, :7:2] = x
    cases = {
        "broadcast": (lambda e, x: e.broadcast_in_dim(x, X, wide, (1, 3)), wide,
                      np.broadcast_to(x[None, :, None, :], wide.shape)),
        "broadcast_to": (
            lambda e, x: e.broadcast_to(e.slice(x, X, aval(3, 1), (0, 1), (3, 2)), aval(3, 1), (2, 3, 4)),
            aval(2, 3, 4), np.broadcast_to(x[:, 1:2], (2, 3, 4))),
        "reshape": (lambda e, x: e.reshape(x, X, aval(2, 6)), aval(2, 6), x.reshape(2, 6)),
        "transpose": (lambda e, x: e.transpose(x, X, aval(4, 3), (1, 0)), aval(4, 3), x.T),
        "slice": (lambda e, x: e.slice(x, X, aval(2, 2), (1, 0), (3, 4), (1, 2)), aval(2, 2), x[1:3, 0:4:2]),
        "plain slice": (lambda e, x: e.slice(x, X, aval(1, 4), (2, 0), (3, 4)), aval(1, 4), x[2:3]),
        "pad": (lambda e, x: e.pad(x, e.constant(-1.0, SCALAR), X, aval(5, 8), (1, 0), (1, 1), (0, 1)),
                aval(5, 8), padded),
        "concatenate": (lambda e, x: e.concatenate([x, x], [X, X], aval(3, 8), 1), aval(3, 8),
                        np.concatenate([x, x], 1)),
        "reverse": (lambda e, x: e.reverse(x, X, (0, 1)), X, x[::-1, ::-1]),
    }  # fmt: skip
    check(run, cases, x)


def test_indexing_verbs(run):
    at = np.array([[2], [0]], INT)
    i, A = aval(dtype=INT), of(at)
    rows = aval(2, 4)
    updated = x.copy()
    updated[1:3, 1:3] = x[:2, :2]
    scattered, replaced = x.copy(), x.copy()
    np.add.at(scattered, at[:, 0], x[:2])
    replaced[at[:, 0]] = x[:2]

    def first(e, x):
        return e.slice(x, X, rows, (0, 0), (2, 4))

    def corner(e, x):
        return e.slice(x, X, aval(2, 2), (0, 0), (2, 2))

    def one(e):
        return e.constant(1, i)

    window = dict(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    cases = {
        "dynamic_slice": (lambda e, x, at: e.dynamic_slice(x, [one(e), one(e)], X, [i, i], aval(2, 2)),
                          aval(2, 2), x[1:3, 1:3]),
        "dynamic_update_slice": (
            lambda e, x, at: e.dynamic_update_slice(x, corner(e, x), [one(e), one(e)], X, aval(2, 2), [i, i]),
            X, updated),
        "gather": (
            lambda e, x, at: e.gather(x, at, X, A, rows, offset_dims=(1,), collapsed_slice_dims=(0,),
                                      start_index_map=(0,), slice_sizes=(1, 4)), rows, x[at[:, 0]]),
        "gather batched": (
            lambda e, x, at: e.gather(
                first(e, x), at, rows, A, aval(2), offset_dims=(), collapsed_slice_dims=(1,),
                operand_batching_dims=(0,), start_indices_batching_dims=(0,), start_index_map=(1,),
                slice_sizes=(1, 1), indices_are_sorted=False), aval(2), x[[0, 1], at[:, 0]]),
        "scatter": (
            lambda e, x, at: e.scatter([x], at, [first(e, x)], [X], A, [rows], "add", **window)[0],
            X, scattered),
        "scatter without a reducer": (
            lambda e, x, at: e.scatter([x], at, [first(e, x)], [X], A, [rows], None, unique_indices=True,
                                       **window)[0], X, replaced),
        "scatter with a callback": (
            lambda e, x, at: e.scatter([x], at, [first(e, x)], [X], A, [rows],
                                       lambda a, b: [e.binary("add", a, b, SCALAR)], **window)[0],
            X, scattered),
    }  # fmt: skip
    check(run, cases, x, at)


def test_reductions_windows_and_sorts(run):
    ints = np.arange(12, dtype=INT).reshape(3, 4)
    N, n, flag = of(ints), aval(dtype=INT), aval(dtype=bool)
    v = np.array([3, 1, 2, 0], F)
    V = of(v)

    def zero(e):
        return e.constant(0.0, SCALAR)

    def largest(e, x, k):
        def step(a, i, b, j):
            first = e.compare("GT", a, b, SCALAR)
            return [e.select(first, a, b, flag, SCALAR), e.select(first, i, j, flag, n)]

        inits = [e.constant(-np.inf, SCALAR), e.constant(-1, n)]
        return e.reduce([x, k], inits, [X, N], [aval(4), aval(4, dtype=INT)], (0,), step)

    def windowed(e, x, reducer):
        return e.reduce_window(
            [x], [zero(e)], [X], [X], reducer, window_dimensions=(1, 4), window_strides=(1, 1),
            padding=((0, 0), (3, 0)), base_dilation=(1, 1), window_dilation=(1, 1))[0]  # fmt: skip

    def pooled(e, x):
        pairs = aval(3, 2)
        return e.select_and_scatter(
            x, e.full(1.0, pairs), zero(e), X, pairs, lambda a, b: [e.compare("GE", a, b, SCALAR)], "add",
            window_dimensions=(1, 2), window_strides=(1, 2), padding=((0, 0), (0, 0)))  # fmt: skip

    def sorted_pair(e, v):
        k = e.iota(0, aval(4, dtype=INT))
        avals = [V, aval(4, dtype=INT)]
        return e.sort([v, k], avals, 0, lambda a, b, i, j: [e.compare("LT", a, b, SCALAR, "TOTALORDER")])

    cases = {
        "reduce": (lambda e, x, k, v: e.reduce([x], [zero(e)], [X], [aval(3)], (1,), "add")[0], aval(3), x.sum(1)),
        "reduce all": (
            lambda e, x, k, v: e.reduce([x], [zero(e)], [X], [SCALAR], (0, 1), "maximum")[0],
            SCALAR,
            np.float32(x.max()),
        ),
        "argmax": (lambda e, x, k, v: largest(e, x, k)[1], aval(4, dtype=INT), ints[2]),
        "cumsum": (lambda e, x, k, v: windowed(e, x, "add"), X, x.cumsum(1)),
        "cumsum by a callback": (
            lambda e, x, k, v: windowed(e, x, lambda a, b: e.binary("add", a, b, SCALAR)),
            X,
            x.cumsum(1),
        ),
        "select_and_scatter": (lambda e, x, k, v: pooled(e, x), X, np.tile(np.array([0, 1], F), (3, 2))),
        "sort": (lambda e, x, k, v: sorted_pair(e, v)[0], V, np.sort(v)),
        "sort's follower": (lambda e, x, k, v: sorted_pair(e, v)[1], aval(4, dtype=INT), np.argsort(v).astype(INT)),
        "top_k": (lambda e, x, k, v: e.top_k(v, V, [aval(2), aval(2, dtype=INT)], 2)[0], aval(2), np.array([3, 2], F)),
    }
    check(run, cases, x, ints, v)


def test_contractions_transforms_and_solvers(run):
    a = np.array([[2, 0], [1, 3]], F)
    spd = a @ a.T
    A, b16 = of(a), np.dtype(ml_dtypes.bfloat16)
    image, kernel = np.arange(16, dtype=F).reshape(1, 4, 4, 1), np.ones((2, 2, 1, 1), F)
    image_out = sum(image[:, i : i + 3, j : j + 3] for i in (0, 1) for j in (0, 1))
    c = aval(3, 4, dtype="complex64")
    batched = aval(3)
    algorithm = (b16, b16, F, 1, 1, 3, False)
    conv = dict(
        lhs_spec=(0, 3, 1, 2),
        rhs_spec=(3, 2, 0, 1),
        out_spec=(0, 3, 1, 2),
        strides=(1, 1),
        padding=((0, 0), (0, 0)),
        lhs_dilation=(1, 1),
        rhs_dilation=(1, 1),
    )
    cases = {
        "dot": (lambda e, x, y, *_: e.dot_general(x, y, X, X, aval(3, 3), ((1,), (1,))), aval(3, 3), x @ y.T),
        "dot batched": (
            lambda e, x, y, *_: e.dot_general(x, y, X, X, batched, ((1,), (1,)), ((0,), (0,)),
                                              ("HIGHEST", "HIGHEST")), batched, (x * y).sum(1)),
        "dot outer": (
            lambda e, x, y, *_: e.dot_general(x, y, X, X, aval(3, 4, 3, 4), ((), ()), precision=None),
            aval(3, 4, 3, 4), np.multiply.outer(x, y)),
        "dot algorithm": (
            lambda e, x, y, *_: e.dot_general(x, y, X, X, aval(3, 3), ((1,), (1,)), algorithm=algorithm),
            aval(3, 3), x @ y.T),
        "convolution": (
            lambda e, x, y, a, s, im, k: e.convolution(im, k, of(image), of(kernel), of(image_out), **conv),
            of(image_out), image_out),
        "fft": (lambda e, x, y, *_: e.fft(e.convert(x, X, c), c, c, "FFT", (4,)), c,
                np.fft.fft(x).astype("complex64")),
        "rfft": (lambda e, x, y, *_: e.fft(x, X, aval(3, 3, dtype="complex64"), "RFFT", [4]),
                 aval(3, 3, dtype="complex64"), np.fft.rfft(x).astype("complex64")),
        "cholesky": (lambda e, x, y, a, s, *_: e.cholesky(s, A), A, np.linalg.cholesky(spd)),
        "triangular_solve": (
            lambda e, x, y, a, s, *_: e.triangular_solve(a, s, A, A, left_side=True, lower=True), A, a.T),
        "adjoint": (
            lambda e, x, y, a, s, *_: e.triangular_solve(a, s, A, A, left_side=True, lower=True,
                                                         transpose="ADJOINT", unit_diagonal=False),
            A, np.linalg.solve(a.T, spd)),
    }  # fmt: skip
    check(run, cases, x, y, a, spd, image, kernel)


def test_control_flow_calls_and_composites(run):
    i, flag = aval(dtype=INT), aval(dtype=bool)

    def doubled(e, x, count):
        def cond(k, v):
            return [e.compare("LT", k, e.constant(count, i), i)]

        def body(k, v):
            inner = e.while_([k, v], [i, X], lambda k, v: e.constant(False, flag), lambda k, v: [k, v])
            return [e.binary("add", k, e.constant(1, i), i), e.binary("add", inner[1], v, X)]

        return e.while_([e.constant(0, i), x], [i, X], cond, body)

    def chosen(e, x, index):
        branches = [
            lambda: [x, x],
            lambda: [e.unary("negate", x, X), doubled(e, x, 1)[1]],
            lambda: e.case_(e.constant(0, i), [lambda: [x, x]], [X, X]),
        ]
        return e.case_(e.constant(index, i), branches, [X, X])

    def helper(e, name):
        symbol = e.unique_symbol(name)

        def head(args):
            return f"  func.func private {symbol}({args[0]}: tensor<3x4xf32>) -> tensor<3x4xf32> {{"

        e.function(head, 1, lambda args: [e.unary("sine", args[0], X)], [X])
        return symbol

    cases = {
        "while": (lambda e, x: doubled(e, x, 3)[1], X, x * 8),
        "case": (lambda e, x: chosen(e, x, 1)[0], X, -x),
        "case in case": (lambda e, x: chosen(e, x, 1)[1], X, x * 2),
        "call": (lambda e, x: e.call(helper(e, "f"), [x], [X], [X])[0], X, np.sin(x)),
        "call of an odd name": (lambda e, x: e.call(helper(e, "<lambda>"), [x], [X], [X])[0], X, np.sin(x)),
        "call in a region": (
            lambda e, x: e.case_(e.constant(0, i), [lambda: e.call(helper(e, "f"), [x], [X], [X])], [X])[0],
            X,
            np.sin(x),
        ),
        "composite": (
            lambda e, x: e.composite("my.sin", helper(e, "my.sin"), [x], [X], [X], {"k": 2, "s": "t"}, 1)[0],
            X,
            np.sin(x),
        ),
    }
    check(run, cases, x)


def test_custom_calls_random_bits_and_single_device_collectives(run):
    square = np.array([[[4, 2], [2, 3]]], F)
    S, state, info = of(square), aval(2, dtype="uint64"), aval(1, dtype=INT)
    alone = [[0]]

    def qr(e, s):
        return e.custom_call("Qr", [s], [S], [S, aval(1, 2)], api_version=1)

    def bits(e, s):
        return e.rng_bit_generator(e.full(7, state), state, aval(3, dtype="uint32"), "THREE_FRY")

    def spelled(e, s):
        e.custom_call("potrf", [s], [S], [S, info], backend_config={"uplo": np.uint8(76)},
                      operand_layouts=[(1, 2, 0)], result_layouts=[(1, 2, 0), (0,)], aliases={0: 0},
                      has_side_effect=True, frontend={"a": "b"})  # fmt: skip
        return e.lines.pop()

    lines = []

    def first(e, s):
        lines.append(spelled(e, s))
        return s

    cases = {
        "custom_call": (lambda e, s: qr(e, s)[1], aval(1, 2), np.array([[1.894427, 0]], F)),
        "spelling": (first, S, square),
        "rng": (lambda e, s: bits(e, s)[0], state, np.array([7, 9], np.uint64)),
        "all_reduce": (lambda e, s: e.all_reduce(s, S, alone, "add"), S, square),
        "all_gather": (lambda e, s: e.all_gather(s, S, S, 0, alone), S, square),
        "reduce_scatter": (lambda e, s: e.reduce_scatter(s, S, S, 1, alone, "maximum"), S, square),
        "all_to_all": (lambda e, s: e.all_to_all(s, S, S, 1, 1, 1, alone), S, square),
        "permute": (lambda e, s: e.collective_permute(s, S, [(0, 0)]), S, square),
        "partition": (lambda e, s: e.partition_id(), aval(dtype="uint32"), np.uint32(0)),
    }
    check(run, cases, square)
    assert lines[0].split(" = ", 1)[1] == (
        'stablehlo.custom_call @potrf(%arg0) {backend_config = "", has_side_effect = true, '
        'mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {a = "b"}, '
        "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = "
        "[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, "
        "operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, "
        "dense<0> : tensor<1xindex>]} : (tensor<1x2x2xf32>) -> (tensor<1x2x2xf32>, tensor<1xi32>)"
    )


def test_structural_verbs_append_the_suffix_of_extended_dtypes(run):
    keys = np.arange(6, dtype=np.uint32).reshape(3, 2)
    K, k, i, flag = aval_of_keys(3), aval_of_keys(), aval(dtype=INT), aval(dtype=bool)
    at = np.array([[2], [0]], INT)

    def one(e):
        return e.constant(1, i)

    def single(e, ks):
        return e.reshape(e.slice(ks, K, aval_of_keys(1), (1,), (2,)), aval_of_keys(1), k)

    padded = np.array([[2, 3], [0, 1], [2, 3], [2, 3], [2, 3], [4, 5]], np.uint32)
    put = keys.copy()
    put[[2, 0]] = keys[:2]
    cases = {
        "broadcast": (lambda e, ks, at: e.broadcast_in_dim(ks, K, aval_of_keys(2, 3), (1,)),
                      aval_of_keys(2, 3), np.broadcast_to(keys, (2, 3, 2))),
        "transpose": (
            lambda e, ks, at: e.transpose(e.reshape(ks, K, aval_of_keys(1, 3)), aval_of_keys(1, 3),
                                          aval_of_keys(3, 1), (1, 0)), aval_of_keys(3, 1), keys[:, None]),
        "slice": (lambda e, ks, at: single(e, ks), k, keys[1]),
        "concatenate": (lambda e, ks, at: e.concatenate([ks, ks], [K, K], aval_of_keys(6), 0),
                        aval_of_keys(6), np.concatenate([keys, keys])),
        "reverse": (lambda e, ks, at: e.reverse(ks, K, (0,)), K, keys[::-1]),
        "pad": (lambda e, ks, at: e.pad(ks, single(e, ks), K, aval_of_keys(6), (1,), (0,), (1,)),
                aval_of_keys(6), padded),
        "select": (
            lambda e, ks, at: e.select(e.constant(np.array([True, False, True]), aval(3, dtype=bool)), ks,
                                       e.reverse(ks, K, (0,)), aval(3, dtype=bool), K),
            K, np.stack([keys[0], keys[1], keys[2]])),
        "select by a scalar": (
            lambda e, ks, at: e.select(e.constant(False, flag), ks, e.reverse(ks, K, (0,)), flag, K),
            K, keys[::-1]),
        "equal": (lambda e, ks, at: e.compare("EQ", ks, e.reverse(ks, K, (0,)), K), aval(3, dtype=bool),
                  np.array([False, True, False])),
        "unequal": (lambda e, ks, at: e.compare("NE", ks, e.reverse(ks, K, (0,)), K), aval(3, dtype=bool),
                    np.array([True, False, True])),
        "dynamic_slice": (lambda e, ks, at: e.dynamic_slice(ks, [one(e)], K, [i], aval_of_keys(2)),
                          aval_of_keys(2), keys[1:]),
        "dynamic_update_slice": (
            lambda e, ks, at: e.dynamic_update_slice(
                ks, e.reshape(single(e, ks), k, aval_of_keys(1)), [e.constant(2, i)], K, aval_of_keys(1),
                [i]),
            K, keys[[0, 1, 1]]),
        "gather": (
            lambda e, ks, at: e.gather(ks, at, K, of(np.zeros((2, 1), INT)), aval_of_keys(2), offset_dims=(),
                                       collapsed_slice_dims=(0,), start_index_map=(0,), slice_sizes=(1,)),
            aval_of_keys(2), keys[[2, 0]]),
        "scatter": (
            lambda e, ks, at: e.scatter(
                [ks], at, [e.slice(ks, K, aval_of_keys(2), (0,), (2,))], [K], aval(2, 1, dtype=INT),
                [aval_of_keys(2)], None, update_window_dims=(), inserted_window_dims=(0,),
                scatter_dims_to_operand_dims=(0,))[0], K, put),
        "while": (
            lambda e, ks, at: e.while_([ks], [K], lambda s: e.constant(False, flag), lambda s: [s])[0],
            K, keys),
        "constant": (lambda e, ks, at: e.constant(keys, K), K, keys),
    }  # fmt: skip
    check(run, cases, keys, at, avals=[K, aval(2, 1, dtype=INT)])


def aval_of_keys(*shape):
    return ShapedArray(shape, KEY)


VALUES = [0, 1, -1, 0.5, 1 / 3, 1.1, 1e-30, 1e10, 123456789.0, 1e-7, 2.0**-149, 3.4e38, np.nan, np.inf,
          -np.inf, -0.0, 5e-324, 1.7e308, 1234567.25]  # fmt: skip


def samples(dtype):
    """Arrays that are printed plainly, as splats and as blobs, and scalars."""
    info = None if dtype.kind == "b" else dtype.name
    if info is None:
        values = np.array([True, False, True])
    elif "int" in info:
        limits = ml_dtypes.iinfo(dtype)
        values = np.array([limits.min, limits.max, 0, 1], object).astype(dtype)
    elif dtype.kind == "c":
        with np.errstate(all="ignore"):
            part = np.array(VALUES).astype(dtype.char.lower())
        values = np.array([complex(a, b) for a, b in zip(part, part[::-1], strict=True)], dtype)
    else:
        with np.errstate(all="ignore"):
            values = np.array(VALUES, "f8").astype(dtype)
        if "e8m0" in info:
            values = values[np.array(VALUES) > 0]
    big = np.resize(values, (7, 41))
    singles = [values[i : i + 1].reshape(()) for i in range(values.size)]
    return [*singles, values[:2], values[1:3].reshape(2, 1), np.full((3, 2), values[1]), values[:0], big]


NARROW = ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn")
WIDER = {"int2": "int8", "uint2": "int8", "int4": "int8", "uint4": "int8", "float4_e2m1fn": "float32"}
ALL = [d for name, d in dtypes.BY_NAME.items() if name not in NARROW]


def readable(e, name, a):
    """Types that arrays do not bring out as numpy has them go out as others do."""
    kind = a.dtype.name
    if kind.startswith(("float8", "bfloat")):
        out = ShapedArray(a.shape, np.dtype(f"uint{8 * a.dtype.itemsize}"))
        return e.bitcast_convert(name, a, out), out
    if kind in WIDER:
        out = ShapedArray(a.shape, np.dtype(WIDER[kind]))
        return e.convert(name, a, out), out
    return name, a


def test_literals_of_every_dtype_keep_their_bits(run):
    arrays = [(d, s) for d in ALL for s in samples(d)]

    def build(e):
        return [readable(e, e.constant(s, of(s)), of(s)) for _, s in arrays]

    for (dtype, sample), got in zip(arrays, run(build), strict=True):
        expected = sample.astype(WIDER.get(dtype.name, dtype))
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes(), (dtype, sample, got)


@pytest.mark.parametrize(
    "value, dtype, text",
    [
        (1.5, F, "dense<1.500000e+00> : tensor<f32>"),
        (1 / 3, F, "dense<0.333333343> : tensor<f32>"),
        (123456789.0, F, "dense<0x4CEB79A3> : tensor<f32>"),
        (0.00012345678, np.float64, "dense<1.2345678000000001E-4> : tensor<f64>"),
        (1.1, ml_dtypes.bfloat16, "dense<1.101560e+00> : tensor<bf16>"),
        (float("nan"), F, "dense<0x7FC00000> : tensor<f32>"),
        (-0.0, F, "dense<-0.000000e+00> : tensor<f32>"),
        (0.0, F, "dense<0.000000e+00> : tensor<f32>"),
        (complex(-0.0, 1), np.complex64, "dense<(-0.000000e+00,1.000000e+00)> : tensor<complex<f32>>"),
        (True, B, "dense<true> : tensor<i1>"),
        (np.int8(-3), np.int8, "dense<-3> : tensor<i8>"),
        (np.array([1, -5]), ml_dtypes.int4, "dense<[1, -5]> : tensor<2xi4>"),
        (np.zeros((2, 3)), F, "dense<0.000000e+00> : tensor<2x3xf32>"),
        (np.zeros((0, 3)), F, "dense<> : tensor<0x3xf32>"),
        (np.zeros((2,), dtypes.float0), dtypes.float0, "dense<false> : tensor<2xi1>"),
        (np.arange(9), np.uint8, "dense<[0, 1, 2, 3, 4, 5, 6, 7, 8]> : tensor<9xui8>"),
        (np.arange(16), np.int16, None),
        (np.arange(17), np.int16, "0x0000010002"),
    ],
)
def test_literals_are_emitted_as_mlir_prints_them(value, dtype, text):
    got = spell.constant(value, ShapedArray(np.shape(value), np.dtype(dtype)))[1]
    if text is None:
        assert got.startswith("dense<[0, 1")
    else:
        assert got == text or text.startswith("0x") and f'"{text}' in got


@pytest.mark.parametrize(
    "value, text",
    [
        (1, "1 : i64"), (True, "true"), (2.0, "2.000000e+00 : f64"), (np.float32(3), "3.000000e+00 : f32"),
        ('a"b\n', '"a\\22b\\0A"'), (np.array([1, 2]), "dense<[1, 2]> : tensor<2xi64>"),
        ({"b": np.int8(3), "a": "s", "odd name": True}, '{a = "s", b = 3 : i8, "odd name" = true}'),
        ((1.0, 2.0), "[1.000000e+00 : f64, 2.000000e+00 : f64]"),
    ],
)  # fmt: skip
def test_attributes(value, text):
    assert spell.attribute(value) == text


def test_attributes_reject_values_that_have_no_text():
    with pytest.raises(TypeError, match="cannot make a StableHLO attribute"):
        spell.attribute(object())
    with pytest.raises(TypeError, match="cannot be lowered"):
        spell.type_of(object())


def test_types_are_printed_once_per_aval():
    assert spell.type_of(aval_of_keys(3)) == "tensor<3x2xui32>"
    assert spell.type_of(token_type) == "!stablehlo.token"
    assert spell.type_of(aval(2, dtype=ml_dtypes.float8_e4m3fn)) == "tensor<2xf8E4M3FN>"
    assert spell.type_of(X) is spell.type_of(X) == "tensor<3x4xf32>"


@pytest.mark.parametrize(
    "name, text", [("jit_f", "jit_f"), ("jit_<lambda>", "jit__lambda"), ("jit_f_", "jit_f"), ("jit_a b", "jit_a_b")]
)
def test_module_names(name, text):
    assert spell.module_name(name) == text


def test_symbols_are_unique_and_names_are_numbered_as_mlir_does():
    e = Emitter()
    assert [e.unique_symbol(n) for n in ("f", "g", "f", "g", "<f>")] == ["@f", "@g", "@f_0", "@g_1", '@"<f>"']
    text, _ = module(lambda e, x: [(e.binary("add", x, e.full(1.0, X), X), X)], [X])
    assert re.findall(r"(%\w+) =", text) == ["%cst", "%0", "%1"]
