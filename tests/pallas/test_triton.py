"""Kernels lowered for GPUs: modules equal to jax's, calls, and errors."""

import pytest
import triton_kernels
from compare import same_printed
from triton_kernels import Kernel, f32, i32

TABLES = {name.lower(): t for name, t in vars(triton_kernels).items() if name.isupper() and isinstance(t, dict)}
ROWS = [pytest.param(k, id=f"{table}-{name}") for table, rows in TABLES.items() for name, k in rows.items()]


@pytest.mark.parametrize("kernel", ROWS)
def test_a_kernel_has_the_module_that_jax_makes(kernel):
    same_printed("Triton", lambda side: kernel.module(side.__name__), kernel)


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
