"""Exported modules: checks their custom calls, and merges one module into another."""

import re
from collections.abc import Callable, Iterable, Sequence

from minijax.hlo.emitter import Emitter

_CUSTOM_CALL = re.compile(r'stablehlo\.custom_call @(?:"([^"]*)"|([\w$.\-]+))|call_target_name = "([^"]*)"')

# Targets that are guaranteed to remain in later versions of XLA and jaxlib.
_LAPACK = "gees geev gehrd geqrf gesdd getrf gtsv potrf trsm"
_OF_REAL, _OF_COMPLEX = "orgqr syevd sytrd", "heevd hetrd ungqr"
_ON_GPU = "geqrf gesvd gesvdj getrf orgqr potrf syevd sytrd"
_GUARANTEED = frozenset(
    [f"lapack_{kind}{name}_ffi" for kind in "sd" for name in f"{_LAPACK} {_OF_REAL}".split()]
    + [f"lapack_{kind}{name}_ffi" for kind in "cz" for name in f"{_LAPACK} {_OF_COMPLEX}".split()]
    + [f"{maker}solver_{name}_ffi" for maker in ("cu", "hip") for name in _ON_GPU.split()]
    + [f"{maker}_{name}" for maker in ("cu", "hip") for name in ("lu_pivots_to_permutation", "threefry2x32_ffi")]
    + [f"stablehlo.dynamic_{name}" for name in ("approx_top_k", "reduce_window", "rng_bit_generator", "top_k")]
    + """AllocateBuffer ApproxTopK CreateBuffer Eigh LuDecomposition Pin ProductOfElementaryHouseholderReflectors Qr
        SPMDFullToShardShape SPMDShardToFullShape Sharding Unpin annotate_device_placement cusparse_gtsv2_ffi
        mosaic_gpu_v2 shape_assertion tf.call_tf_function tpu_custom_call xla.sdy.GlobalToLocalShape
        xla.sdy.LocalToGlobalShape""".split()
)


def unstable_custom_calls(text: str, allowed: Iterable[str]) -> list[str]:
    """The lines with custom calls whose targets are neither guaranteed nor `allowed`."""
    targets = _GUARANTEED.union(allowed)
    lines = [(match, text.count("\n", 0, match.start())) for match in _CUSTOM_CALL.finditer(text)]
    split = text.splitlines() if lines else []
    return [split[n].strip() for match, n in lines if next(filter(None, match.groups())) not in targets]


def merged(e: Emitter, meshes: Iterable[str], functions: Sequence[list[str]]) -> None:
    """Adds the meshes and functions of another module, whose symbols must not clash with those of this one."""
    e.preamble += meshes
    e.functions += functions


def unused_symbols(e: Emitter, main: str) -> Callable[[str], str]:
    """A function that maps the symbols of another module to unused ones of this; its `main` is renamed to `main`."""
    return lambda name: e.unique_symbol(main if name == "main" else name)[1:].strip('"')
