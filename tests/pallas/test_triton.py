"""Kernels lowered for GPUs: modules equal to jax's, what they compute, calls, and errors."""

import importlib

import numpy as np
import pytest
import triton_kernels
from compare import ours, same_error, same_printed
from triton_kernels import CONTROL, KERNELS, OWN, REFERENCES, SHAPES, Kernel, f32, i4, i32, u8, value
from triton_machine import Machine

import minijax as jax
from minijax.experimental import pallas as pl
from minijax.run.programs import kernel_modules

TABLES = {
    name: rows
    for name, rows in vars(triton_kernels).items()
    if name.isupper() and isinstance(rows, dict) and rows is not OWN
}
ROWS = [pytest.param(k, id=f"{table.lower()}-{name}") for table, rows in TABLES.items() for name, k in rows.items()]


@pytest.mark.parametrize("kernel", ROWS)
def test_a_kernel_has_the_module_that_jax_makes(kernel):
    same_printed("Triton", lambda side: kernel.module(side.__name__), kernel)


# CPUs have no such product, one does not end, and the interpreter adds once where indices are equal.
NOT_INTERPRETED = ("dot-bf16", "while-consts", "histogram-int")
COMPUTED = {
    f"{table}-{name}": k
    for table, rows in dict(own=OWN, kernels=KERNELS, control=CONTROL, references=REFERENCES, shapes=SHAPES).items()
    for name, k in rows.items()
    if name not in (*NOT_INTERPRETED, "blocks") and all(a.size < 1 << 20 for a in k.ins)
}


@pytest.mark.parametrize("name", COMPUTED)
def test_a_module_computes_what_the_kernel_does(name):
    kernel = COMPUTED[name]
    arrays = kernel.arrays(np.random.default_rng(0))
    text = kernel.lowered("minijax")
    expected = kernel.interpreted(arrays)
    machine = Machine(kernel_modules.triton_text(triton_kernels.bytecode_of(text)))
    memory = machine.run([*arrays, *map(np.zeros_like, expected)], triton_kernels.sizes_of(text))
    for mine, other in zip(memory[len(arrays) :], expected, strict=True):
        mine, narrow = mine.astype(np.float64), other.dtype.itemsize < 4
        other = other.astype(np.float64)
        # Elements that no step writes are undefined.
        mine = np.where(np.isnan(other), other, mine)
        np.testing.assert_allclose(mine, other, rtol=2e-2 if narrow else 3e-3, atol=1e-2 if narrow else 2e-3)


CALLS = {
    "plain": Kernel(lambda n, x, o: None, f32(8), [f32(8)]),
    "sizes": Kernel(lambda n, x, y, o, p: None, (f32(8), f32(2, 3)), [f32(8), i32()], lambda n: dict(grid=(2, 3, 4))),
    "named": Kernel(lambda n, x, o: None, f32(8), [f32(8)], lambda n: dict(name="na me", metadata={"k": "v", "a": "b"})),
    "aliases": Kernel(
        lambda n, x, y, o, p: None, (f32(8), f32(2, 3)), [f32(8), f32(2, 3)],
        lambda n: dict(input_output_aliases={0: 0, 1: 1}),
    ),
    "alias": Kernel(lambda n, x, o: None, f32(8), [f32(8)], lambda n: dict(input_output_aliases={0: 0})),
    "rocm": Kernel(lambda n, x, o: None, f32(8), [f32(8)], platform="rocm"),
    "empty": Kernel(lambda n, x, o: None, f32(0), [f32(8)]),
    "cost": Kernel(lambda n, x, o: None, f32(8), [f32(8)], lambda n: dict(cost_estimate=n.pl.CostEstimate(1, 2, 3))),
    "warps": Kernel(
        lambda n, x, o: None, f32(8), [f32(8)],
        lambda n: dict(compiler_params=n.plt.CompilerParams(num_warps=2, num_stages=1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_a_custom_call_of_xla(name):
    text_on = lambda side: triton_kernels.without_bytecode(CALLS[name].lowered(side.__name__))  # noqa: E731
    same_printed("StableHLO", text_on, CALLS[name])


def _spec(**options):
    return lambda n: dict(in_specs=[n.pl.BlockSpec((8,), lambda: (0,), **{k: v(n) for k, v in options.items()})])


def _tpu(n):
    return importlib.import_module(f"{n.jax.__name__}.experimental.pallas.tpu")


def _scratch(n):
    return dict(scratch_shapes=[_tpu(n).VMEM((8,), np.float32)])


def _prefetch(n):
    return dict(grid_spec=_tpu(n).PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,)))


_COPY = lambda n, x, o: o.__setitem__(..., x[...])  # noqa: E731
REFUSED = {
    "power of two": (Kernel(_COPY, f32(3, 5), [f32(3, 5)]), "whose size is a power of 2. Encountered an array of shape (3, 5)"),
    "scratch": (Kernel(lambda n, x, o, s: None, f32(8), [f32(8)], _scratch), "scratch memory not implemented in the Triton"),
    "prefetch": (
        Kernel(lambda n, a, x, o: None, f32(8), [i32(1), f32(8)], _prefetch),
        "scalar prefetch not implemented in the Triton backend",
    ),
    "buffered": (
        Kernel(_COPY, f32(8), [f32(8)], _spec(pipeline_mode=lambda n: n.pl.Buffered(2))),
        "Pipeline mode is not supported in Triton lowering.",
    ),
    "padding": (
        Kernel(_COPY, f32(8), [f32(8)], lambda n: dict(
            in_specs=[n.pl.BlockSpec((n.pl.Element(8, (1, 1)),), lambda: (0,))])),
        "Unblocked indexing with padding is not supported in Triton lowering.",
    ),
    "callback": (
        value(lambda n, x: n.jax.pure_callback(lambda v: v, x, x), f32(8), f32(8)),
        "Unimplemented primitive in Pallas Triton lowering: pure_callback.",
    ),
    "top_k": (
        value(lambda n, x: n.lax.top_k(x, 2)[0], f32(2), f32(8)), "Unimplemented primitive in Pallas Triton lowering: top_k",
    ),
    "unsigned product": (
        value(lambda n, x, y: n.lax.dot(x, y, preferred_element_type=np.int32), i32(16, 16), u8(16, 16), u8(16, 16)),
        "Unsigned integer dtype uint8 is not supported for dot_general",
    ),
    "algorithm": (
        value(lambda n, x, y: n.lax.dot(x, y, precision=n.lax.DotAlgorithmPreset.F64_F64_F64), f32(16, 16),
              f32(16, 16), f32(16, 16)),
        "Unsupported dot algorithm: F64_F64_F64.",
    ),
    "scan": (
        value(lambda n, x: n.lax.scan(lambda c, y: (c + y, c), n.jnp.float32(0), x)[1], f32(8), f32(8)), "is not supported",
    ),
    "placeholders": (
        Kernel(lambda n, x, o: n.pl.debug_print("{}", x[0]), f32(8), [f32(8)]),
        "pl.debug_print() does not support placeholders when lowering to Triton",
    ),
    "parameters": (
        Kernel(_COPY, f32(8), [f32(8)], lambda n: dict(compiler_params=_tpu(n).CompilerParams())),
        "platform",  # jax's words depend on the modules that were imported
    ),
    "cache": (
        Kernel(lambda n, x, o: o.__setitem__(0, n.plt.load(x.at[0], cache_modifier=".cs")), f32(8), [f32(8)]),
        "unsupported cache modifier: .cs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_kernel_is_refused_as_jax_does(name):
    kernel, phrase = REFUSED[name]
    same_error(lambda: kernel.lowered(ours().__name__), lambda: kernel.lowered("jax"), [phrase])


OWN_ERRORS = {
    "volatile": (
        Kernel(
            lambda n, x, o: o.__setitem__(..., n.plt.load(x, eviction_policy="evict_last", volatile=True)), f32(8), [f32(8)]
        ),
        ValueError, "a volatile load",
    ),
    "odd four bits": (
        Kernel(lambda n, x, o: o.__setitem__(slice(1, 3), x[:2].astype(o.dtype)), i4(8), [i32(8)]),
        NotImplementedError, "half of a byte",
    ),
    "parts": (
        value(lambda n, x: n.lax.split(x, (2, 4, 2))[1], f32(4), f32(8)), NotImplementedError, "only parts of halves",
    ),
    "launch": (Kernel(lambda n, o: None, f32(8), [], lambda n: dict(grid=(1 << 16, 1 << 16))), ValueError, "CUDA limits"),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_ERRORS)
def test_an_error_says_what_is_wrong(name):
    kernel, kind, phrase = OWN_ERRORS[name]
    with pytest.raises(kind, match=phrase):
        kernel.lowered("minijax")


def test_an_error_names_the_operation_and_the_line():
    def function(n, x):
        return n.lax.top_k(n.jnp.sin(x), 2)[0]

    with pytest.raises(NotImplementedError) as raised:
        value(function, f32(2), f32(8)).lowered("minijax")
    (note, *_) = raised.value.__notes__
    line = function.__code__.co_firstlineno + 1
    assert "the operation top_k at" in note and f"test_triton.py:{line}" in note


def test_a_dynamic_grid_is_refused():
    def call(size, x):
        return pl.pallas_call(lambda x, o: None, jax.ShapeDtypeStruct((8,), np.float32), grid=(size,))(x)

    traced = jax.jit(call).trace(np.int32(2), np.zeros(8, np.float32))
    with pytest.raises(NotImplementedError, match="dynamic grid bounds not supported in the Triton backend"):
        traced.lower(lowering_platforms=("cuda",))


def test_debug_shows_the_module(capsys):
    Kernel(_COPY, f32(8), [f32(8)], lambda n: dict(debug=True)).lowered("minijax")
    shown = capsys.readouterr().out
    assert "The kernel jaxpr for pallas_call" in shown and "tt.func public @kernel" in shown
