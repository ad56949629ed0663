"""What is refused in kernels and specs: jax's exceptions and phrases, and checks that jax does not make."""

import compare
import numpy as np
import pallas_kernels
import pytest

import minijax as jax
import minijax.experimental.pallas as pl
import minijax.experimental.pallas.triton as plt
import minijax.numpy as jnp
from minijax.experimental.pallas import tpu as pltpu

X = np.ones((8, 128), np.float32)
Modules = pallas_kernels.Modules


def copy(x, o):
    o[...] = x[...]


def refused(body=None, operand=X, *, out=None, **options):
    """A program that makes and calls a kernel; options that are functions get the modules."""

    def program(jax, jnp, lax, pl, pltpu, plt):
        m = Modules(jax, jnp, lax, pl, pltpu, plt)

        def run():
            given = {key: value(m) if callable(value) else value for key, value in options.items()}
            result = jax.ShapeDtypeStruct((8, 128), "float32") if out is None else out(m)
            kernel = copy if body is None else body(m)
            return pl.pallas_call(kernel, result, **{"interpret": True, **given})(operand)

        return run

    return program


ROW = lambda index: dict(grid=(2,), in_specs=lambda m: [m.block((8, 128), index(m))])  # noqa: E731
REFUSED = {
    "a result": (refused(lambda m: lambda x, o: x[...]), ["should return None. It returns a PyTree: PyTreeDef(*)"]),
    "a captured array": (
        refused(lambda m: (lambda c: lambda x, o: o.__setitem__(..., c))(m.jnp.ones((8, 128)) + 1)),
        ["captures constants [f32[8,128]]. You should pass them as inputs."],
    ),
    "too few references": (refused(lambda m: lambda x: None), ["takes 1 positional argument but 2 were given"]),
    "out_shape": (refused(out=lambda m: 3), ["Invalid out_shape type: <class 'int'>"]),
    "too many in_specs": (
        refused(in_specs=lambda m: [m.block(), m.block()]),
        ["Pytree for `in_specs` and `inputs` do not match. There are 1 mismatches, including:"],
    ),
    "in_specs no sequence": (refused(in_specs=lambda m: m.block()), ["`in_specs` must be a tuple or a list. Found: "]),
    "out_specs": (refused(out_specs=lambda m: [m.block(), m.block()]), ["Pytree for `out_specs` and `out_shape` do not match."]),
    "rank": (
        refused(in_specs=lambda m: [m.block((8,), lambda: (0,))]),
        ["Block shape for args[0] (= (Blocked(block_size=8),)) must have the same number of dimensions as the array shape"],
    ),
    "index map with one value": (refused(**ROW(lambda m: lambda i: (0,))), ["must return 2 values to match", "Currently returning 1 values"]),
    "index map with a float": (refused(**ROW(lambda m: lambda i: (0.0, 0))), ["must return integer scalars. Output[0] has type"]),
    "index map with an array": (refused(**ROW(lambda m: lambda i: (m.jnp.arange(2), 0))), ["must return integer scalars. Output[0] has type int32[2]"]),
    "index map that captures": (
        refused(**ROW(lambda m: (lambda c: lambda i: (c[0], 0))(m.jnp.arange(3)))), ["must not capture constants"]
    ),
    "block dimension": (refused(in_specs=lambda m: [m.block(("a", 128), lambda: (0, 0))]), ["Unsupported block dimension type: <class 'str'>"]),
    "grid of floats": (refused(grid=(1.5,)), ["Grid must be a tuple of integers or jax.Array, got (1.5,)"]),
    "grid as text": (refused(grid="a"), ["Grid must be a tuple of integers or jax.Array, got a"]),
    "grid and grid_spec": (
        refused(grid_spec=lambda m: m.pl.GridSpec(grid=2), grid=(1,)), ["If `grid_spec` is specified, then `grid` must be `()`"]
    ),
    "scratch and grid_spec": (
        refused(grid_spec=lambda m: m.pl.GridSpec(grid=2), scratch_shapes=lambda m: [m.pltpu.SMEM((1,), "int32")]),
        ["If `grid_spec` is specified, then `scratch_shapes` must be `()`"],
    ),
    "program_id": (refused(lambda m: lambda x, o: m.pl.program_id(1) and None, grid=1), ["Axis 1 is out of bounds for grid (1,)"]),
    "num_programs": (refused(lambda m: lambda x, o: m.pl.num_programs(1) and None, grid=1), ["Axis 1 is out of bounds for grid (1,)"]),
    "shape of a write": (refused(lambda m: lambda x, o: o.__setitem__(..., x[0])), ["Invalid shape for `swap`. Ref shape: (8, 128)."]),
    "dtype of a write": (
        refused(lambda m: lambda x, o: o.__setitem__(..., x[...].astype("int32"))), ["Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32."]
    ),
    "too many indices": (refused(lambda m: lambda x, o: x[0, 0, 0]), ["`indices` must not be longer than `shape`"]),
    "a reference as a value": (refused(lambda m: lambda x, o: m.jnp.sin(x)), ["sin requires ndarray or scalar arguments"]),
    "a reference in a reference": (refused(lambda m: lambda x, o: o.__setitem__(..., x)), ["Cannot store a Ref into another Ref"]),
    "alias of no operand": (refused(input_output_aliases={1: 0}), ["the mapping '1:0' with input index 1 outside the range [0, 1)"]),
    "alias of no result": (refused(input_output_aliases={0: 1}), ["the mapping '0:1' with output index 1 outside the range [0, 1)"]),
    "mask": (refused(lambda m: lambda x, o: m.plt.load(x, mask=m.jnp.ones(3, bool))), ["Cannot broadcast mask shape (3,) to load shape (8, 128)"]),
    "atomic of halves": (refused(lambda m: lambda x, o: m.plt.atomic_max(x, (0, 0), x[0, 0]), X.astype("float16")), ["`atomic_max` does not support f16."]),
    "atomic of bytes": (refused(lambda m: lambda x, o: m.plt.atomic_add(x, (0, 0), x[0, 0]), X.astype("int8")), ["`atomic_add` does not support int8."]),
    "signal of a block": (refused(lambda m: lambda x, o: m.pl.semaphore_signal(x)), ["Cannot signal on a non-()-shaped semaphore: (8, 128)"]),
    "wait for a copy": (
        refused(lambda m: lambda x, o, s: m.pltpu.make_async_copy(x, o, s).wait(), scratch_shapes=lambda m: [m.pltpu.SemaphoreType.REGULAR]),
        ["dma_wait requires a DMA semaphore, but got a regular semaphore. Use pl.semaphore_wait() instead."],
    ),
    "cost": (refused(cost_estimate=lambda m: m.pl.CostEstimate(1.5, 1, 1)), ["All fields in CostEstimate must be ints. flops is not an int"]),
    "bounded slice": (
        refused(grid=2, in_specs=lambda m: [m.block((m.pl.BoundedSlice(8), 128), lambda i: (i, 0))]),
        ["index_map returned a value of type", "with block dimension BoundedSlice(8) when it should be pl.Slice"],
    ),
    "bits of a vector": (
        refused(lambda m: lambda x, o: x.at[0, 0].bitcast(m.jnp.int16)[...]), ["Bitcast 1D ref with bitwidth change is not supported."]
    ),
    "shape of a view": (refused(lambda m: lambda x, o: x.reshape(3, 5)[...]), ["cannot reshape shape (8, 128) into shape (3, 5)"]),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(("program", "phrases"), REFUSED.values(), ids=REFUSED)
def test_refused_as_by_jax(program, phrases):
    compare.same_refusal(program, phrases)


def call(kernel, operand=X, shape=(8, 128), **options):
    return pl.pallas_call(kernel, jax.ShapeDtypeStruct(shape, operand.dtype), interpret=True, **options)(operand)


MADE = {
    "a reference as an operand": (
        lambda: call(lambda x, o: o.__setitem__(..., jnp.sin(x))), TypeError, "did you forget to unpack ([...]) the ref?"
    ),
    "outside of a kernel": (lambda: pl.program_id(0), AssertionError, "program_id is called outside of a kernel"),
    "a block without elements": (
        lambda: call(copy, in_specs=[pl.BlockSpec((0, 128), lambda: (0, 0))]), ValueError, "has the size 0. Sizes are at least 1"
    ),
    "a negative block": (
        lambda: call(copy, in_specs=[pl.BlockSpec((8, -1), lambda: (0, 0))]), ValueError, "has the size -1. Sizes are at least 1"
    ),
    "an alias of another type": (
        lambda: call(copy, shape=(4, 128), input_output_aliases={0: 0}), ValueError, "with a different abstract value float32[4,128]"
    ),
    "a copy of another shape": (
        lambda: call(lambda x, o: pltpu.sync_copy(x.at[0], o)), TypeError, "source and destination must have the same dtypes and shapes"
    ),
    "an index beyond the axis": (lambda: call(lambda x, o: o.__setitem__(0, x[8])), ValueError, "Out of bound indexer: idx=8, dim=8"),
    "a permutation": (lambda: call(lambda x, o: x.transpose((0, 0))[...]), ValueError, "must name each of its axes once"),
    "an operation of TPUs": (lambda: call(lambda x, o: pltpu.prng_seed(1)), NotImplementedError, "prng_seed"),
    "another device": (
        lambda: call(lambda x, o, s: pl.semaphore_signal(s, 1, device_id=1), scratch_shapes=[pltpu.SemaphoreType.REGULAR]),
        NotImplementedError, "cannot be interpreted as one program",
    ),
    "strides under a mask": (
        lambda: call(lambda x, o: plt.store(o.at[pl.ds(jnp.int32(0), 4, 2)], x[0:4])), NotImplementedError, "Unimplemented stride support."
    ),
    "a kernel of Mosaic": (lambda: pl.mosaic_gpu.kernel(), NotImplementedError, "Use pallas_call with pl.triton.CompilerParams()"),
}  # fmt: skip


@pytest.mark.parametrize(("run", "error", "phrase"), MADE.values(), ids=MADE)
def test_refused(run, error, phrase):
    with pytest.raises(error) as found:
        run()
    assert phrase in str(found.value)


def test_a_kernel_runs_on_a_cpu_with_a_warning():
    f = pl.pallas_call(copy, jax.ShapeDtypeStruct((8, 128), jnp.float32))
    with pytest.warns(UserWarning, match="there is no compiler of kernels for CPUs"):
        assert (np.asarray(f(X)) == X).all()
