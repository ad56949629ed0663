"""Modules of kernels: text, bytecode, and back."""

import pytest

from minijax.run.programs import kernel_modules

TRITON = """module @addg_k {
  tt.func public @addg_k(%arg0: !tt.ptr<f32> {tt.divisibility = 32 : i32}) {
    %0 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    tt.return
  }
}
"""
MOSAIC = """module {
  func.func @addg_k(%arg0: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
    %c0 = arith.constant 0 : index
    %0 = vector.load %arg0[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    return
  }
}
"""


def test_a_module_of_triton_is_written_and_read_back():
    assert kernel_modules.triton_text(kernel_modules.triton_bytecode(TRITON)).strip() == TRITON.strip()


def test_a_module_of_mosaic_is_written_in_the_version_that_libtpu_reads():
    text = kernel_modules.mosaic_text(kernel_modules.mosaic_bytecode(MOSAIC))
    assert text.strip() == MOSAIC.replace("module {", "module attributes {stable_mosaic.version = 11 : i64} {").strip()
    assert kernel_modules.mosaic_text(MOSAIC).strip() == MOSAIC.strip()


def test_bytecode_has_no_locations():
    moved = TRITON.replace("    tt.return", "\n\n    tt.return")
    assert kernel_modules.triton_bytecode(moved) == kernel_modules.triton_bytecode(TRITON)


def test_a_kernel_that_signals_communicates():
    assert kernel_modules.mosaic_has_communication(MOSAIC) == (False, False)


@pytest.mark.parametrize(
    ("write", "text", "wrong", "told"),
    [
        (kernel_modules.triton_bytecode, TRITON, ("make_range", "made_range"), "custom op 'tt.made_range' is unknown"),
        (kernel_modules.triton_bytecode, TRITON, ("end = 8", "end = 6"), "must match size of range"),
        (kernel_modules.mosaic_bytecode, MOSAIC, ("vector.load", "vector.lode"), "unknown"),
    ],
)
def test_an_invalid_module_is_a_value_error_with_the_line(write, text, wrong, told):
    with pytest.raises(ValueError, match=r"kernel addg_k is not valid(.|\n)*line [34]") as raised:
        write(text.replace(*wrong))
    assert told in str(raised.value)


def test_bytes_that_are_no_module():
    with pytest.raises(ValueError, match="cannot be read"):
        kernel_modules.triton_text(b"ML\xefRnothing")
