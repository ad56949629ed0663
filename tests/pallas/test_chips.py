"""Facts about the chips of TPUs are jax's."""

import dataclasses
import importlib
import itertools

import compare
import pytest

import minijax as jax
from minijax.experimental.pallas import tpu as pltpu

DTYPES = """
float32 bfloat16 int8 uint8 int4 uint4 int2 float8_e5m2 float8_e4m3fn float8_e4m3b11fnuz int32 int16 bool float16
""".split()
KINDS = (
    "TPU v2,TPU v3,TPU v4,TPU v4 lite,TPU v5,TPU v5 lite,TPU v5e,TPU v5p,TPU v6 lite,TPU v6e,TPU7,TPU7x,TPU8i".split(
        ","
    )
)


def _facts(side, version):
    """All that is known of a version, as text."""
    tpu = importlib.import_module(f"{side.__name__}.experimental.pallas.tpu")
    chip, lines = tpu.ChipVersion(version), []
    for cores in (1, 2):
        try:
            info = tpu.get_tpu_info_for_chip(chip, cores)
        except ValueError as error:
            lines.append(str(error))
            continue
        sparse = info.sparse_core and dataclasses.astuple(info.sparse_core)
        lines.append(str([(f.name, getattr(info, f.name)) for f in dataclasses.fields(info)[1:-1]]))
        lines.append(f"{sparse} {info.is_lite} {info.is_megacore} {info.is_split_chip} {chip.supports_megacore}")
        lines += [f"{a} {b}" for a, b in itertools.product(DTYPES, DTYPES) if info.is_matmul_supported(a, b)]
        if info.generation < 8:
            lines.append(str([info.get_sublane_tiling(side.numpy.dtype(d)) for d in DTYPES]))
    return "\n".join(lines)


@pytest.mark.oracle
@pytest.mark.parametrize("version", [v.value for v in pltpu.ChipVersion])
def test_facts_are_those_of_jax(version):
    compare.same_printed("chip", lambda side: _facts(side, version), version)


@pytest.mark.oracle
def test_devices_are_the_chips_of_jax():
    def chips(side):
        tpu, lines = importlib.import_module(f"{side.__name__}.experimental.pallas.tpu"), []
        for kind in KINDS:
            device = side.sharding.AbstractDevice(kind, 1, "tpu")
            with side.sharding.use_abstract_mesh(side.sharding.AbstractMesh((), (), abstract_device=device)):
                lines.append(f"{kind}: {tpu.get_tpu_info().chip_version.value} {tpu.is_tpu_device()}")
        return "\n".join(lines)

    compare.same_printed("chip", chips, *KINDS)


def test_a_cpu_is_no_tpu():
    assert not pltpu.is_tpu_device()
    with pytest.raises(ValueError, match="Unsupported TPU device kind: cpu"):
        pltpu.get_tpu_info()


def test_tilings_of_unknown_chips_are_refused():
    with pytest.raises(NotImplementedError, match="TPU generation is not supported"):
        pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_8I, 1).get_sublane_tiling(jax.numpy.int8)
