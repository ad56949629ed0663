"""Kernels for SparseCores are lowered to the modules and calls of jax."""

import importlib

import compare
import pytest
from pallas import mosaic_calls
from pallas.subcore_kernels import KERNELS, Modules
from pallas.test_subcores import BODIES, FETCHES, INDICES, chosen, kernel, on_v6e, vector_mesh, x_type

F = "float32"
X = ((128,), F)


def lowered(side, make):
    """What is lowered for a TPU v6e: `make(jax, jnp, lax, pl, pltpu, plsc)` gives a function and its arguments' types."""
    names = ("experimental.pallas", "experimental.pallas.tpu", "experimental.pallas.tpu_sc")
    pallas = [importlib.import_module(f"{side.__name__}.{name}") for name in names]
    with on_v6e(side):
        f, *types = make(side, importlib.import_module(f"{side.__name__}.numpy"), side.lax, *pallas)
        return mosaic_calls.lowered(side, f, types)


def same_calls(make, *question):
    """Requires equal calls and modules on both sides."""
    compare.same_printed("Mosaic for subcores", lambda side: mosaic_calls.described(lowered(side, make)), *question)


@pytest.mark.oracle
@pytest.mark.parametrize("name", KERNELS)
def test_modules_of_kernels(name):
    same_calls(lambda *modules: KERNELS[name](Modules(*modules)), name)


# These read scalars from vector memory, or store a row by a mask, which jax refuses to lower.
UNLIKE = {"parallel_loop", "parallel_loop_with_a_carry", "store_compressed_in_a_row"}


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in BODIES if name not in UNLIKE])
def test_modules_of_operations(name):
    body, *types = BODIES[name]
    same_calls(lambda jax, jnp, lax, pl, pltpu, plsc: (kernel(jnp, pl, pltpu, plsc, body, *types), X), name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", FETCHES)
def test_modules_of_sums_on_other_subcores(name):
    shape, body = FETCHES[name]

    def make(jax, jnp, lax, pl, pltpu, plsc):
        def run(x, o, a):
            body(plsc, lax, a)

        scratch = [pltpu.SMEM(shape, jnp.int32)]
        return pl.kernel(run, x_type(jax), mesh=vector_mesh(plsc), scratch_types=scratch), X

    same_calls(make, name)


STREAMS = [
    "gather", "gather_by_a_reference", "gather_by_an_array", "gather_of_some", "scatter", "scatter_add", "a_view",
    "of_a_view", "beside_a_slice", "beside_an_ellipsis",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", STREAMS)
def test_modules_of_copies_at_indices(name):
    rows, indices = ((64, 16), F), ((40,), "int32")
    same_calls(
        lambda jax, jnp, lax, pl, pltpu, plsc: (chosen(jax, jnp, pl, pltpu, plsc, INDICES[name]), rows, indices), name
    )
