"""Kernels whose blocks have symbolic sizes are traced, refused and exported for TPUs as by jax."""

import re

import compare
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest
from jaxlib import xla_client as xc

import minijax
from tests.pallas import mosaic_calls

_MODULE = re.compile(r'mapping_module_(\d+) = "((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\([0-9A-F]{2}|.)")


def _halves(m):
    """Reads half of the rows."""

    def kernel(x, y):
        y[:] = x[: m.pl.cdiv(x.shape[0], 2)]

    (rows,) = m.jax.export.symbolic_shape("m")
    out = m.jax.ShapeDtypeStruct(((rows + 1) // 2, 128), m.jnp.float32)
    return m.pl.pallas_call(kernel, out), [((rows, 128), m.jnp.float32)]


def _product(m):
    """A product of matrices whose blocks depend on the size of an operand that the kernel does not get."""

    def product(x, y, steps):
        n = steps.shape[0]
        rows, columns = x.shape[0] // n, y.shape[1] // n

        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = x_ref[...] @ y_ref[...]

        return m.pl.pallas_call(
            kernel,
            m.jax.ShapeDtypeStruct((rows, columns), x.dtype),
            grid=(n, n),
            in_specs=[
                m.pl.BlockSpec((rows, x.shape[1]), lambda i, j: (i, 0)),
                m.pl.BlockSpec((y.shape[0], columns), lambda i, j: (0, j)),
            ],
            out_specs=m.pl.BlockSpec((rows, columns), lambda i, j: (i, j)),
        )(x, y)

    rules = ("mod(floordiv(m, n), 8) == 0", "mod(k, 128) == 0", "mod(floordiv(p, n), 128) == 0")
    rows, depth, columns, steps = m.jax.export.symbolic_shape("m, k, p, n", constraints=rules)
    return product, [(s, m.jnp.float32) for s in ((rows, depth), (depth, columns), (steps,))]


def _loop(m):
    """Sums rows in a loop, beside a block of static size."""

    def kernel(x, y, o, total):
        total[...] = m.jnp.zeros_like(total)

        @m.pl.loop(0, 4)
        def _(i):
            total[...] += x[i] * y[...]

        o[...] = total[...]

    (rows,) = m.jax.export.symbolic_shape("m")
    f = m.pl.pallas_call(
        kernel,
        m.jax.ShapeDtypeStruct((rows, 128), m.jnp.float32),
        scratch_shapes=[m.pltpu.VMEM((rows, 128), m.jnp.float32)],
    )
    return f, [((4, rows, 128), m.jnp.float32), ((1, 128), m.jnp.float32)]


SIZES = (24, 384, 3, 1152)
KERNELS = {"halves": _halves, "product": _product, "loop": _loop}


def _exported(side, name: str) -> str:
    m = mosaic_calls.modules_of(side)
    f, types = KERNELS[name](m)
    avals = [m.jax.ShapeDtypeStruct(*t) for t in types]
    return str(m.pl.lower_as_mlir(m.jax.jit(f), *avals, dynamic_shapes=True, platforms=["tpu"]))


def _mosaic(side, name: str) -> str:
    """The calls in the exported program, and the modules that compute sizes."""
    text = mosaic_calls.described(re.sub(r" loc\([^)]*\)$", "", _exported(side, name), flags=re.M))
    parts = {number: _ESCAPE.sub(_char, module) for number, module in _MODULE.findall(text)}
    assert parts, "no size is symbolic"
    sizes = [f"{number}: {_computed(module, *SIZES)}" for number, module in sorted(parts.items())]
    return "\n".join([_MODULE.sub(r"mapping_module_\1", text), *sizes])


def _computed(module: str, *sizes: int) -> int:
    """The result of a module for the first of these sizes, as many as it takes."""
    client = minijax.devices("cpu")[0].client
    device = client.local_devices()[0]
    program = client.compile_and_load(module, [device], xc.CompileOptions())
    arrays = [minijax.numpy.int32(n)._raw for n in sizes[: module.split("->")[0].count("%arg")]]
    (results,) = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return int(results[0])


def _char(escape: re.Match) -> str:
    return chr(int(escape[1], 16)) if len(escape[1]) == 2 else escape[1]


@pytest.mark.parametrize("name", KERNELS)
def test_modules_are_those_of_jax(name):
    compare.same_printed("symbolic kernels", lambda side: _mosaic(side, name), name)


@pytest.mark.parametrize("name", KERNELS)
def test_arguments_of_the_exported_program_are_those_of_jax(name):
    def head(side):
        return next(line for line in _exported(side, name).splitlines() if "public @main" in line)

    compare.same_printed("symbolic kernels' arguments", head, name)


def test_blocks_are_static_elsewhere():
    def program(jax, jnp, pl):
        (m,) = jax.export.symbolic_shape("m")

        def double(x_ref, o_ref):
            o_ref[...] = 2 * x_ref[...]

        x = jax.ShapeDtypeStruct((m, 128), jnp.float32)

        def call():
            with pl.pallas_export_experimental(dynamic_shapes=True):
                jax.eval_shape(pl.pallas_call(double, x), x)
                with pl.pallas_export_experimental(False):
                    return jax.eval_shape(pl.pallas_call(double, x), x)

        return call

    compare.same_refusal(program, ["does not support dynamically-shaped blocks", "dynamic_shapes=True"])


def test_a_grid_of_symbolic_size_is_refused_for_gpus():
    def program(jax, jnp, pl, plt):
        (m,) = jax.export.symbolic_shape("m")

        def double(x_ref, o_ref):
            o_ref[...] = 2 * x_ref[...]

        x = jax.ShapeDtypeStruct((m,), jnp.float32)
        block = pl.BlockSpec((8,), lambda i: i)
        options = dict(grid=(m // 8,), in_specs=[block], out_specs=block, compiler_params=plt.CompilerParams())
        f = jax.jit(pl.pallas_call(double, x, **options))
        return lambda: jax.export.export(f, platforms=["cuda"])(x)

    compare.same_refusal(program, ["dynamic grid bounds not supported in the Triton backend"])
