"""Lowers the kernels of `mosaic_kernels.py` for TPUs on one side, and describes the calls in what comes out."""

import base64
import contextlib
import importlib
import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pallas.mosaic_kernels import SHARDED, Modules
from pallas.mosaic_pipelines import KERNELS

from minijax.run.programs.kernel_modules import mosaic_text

_CALL = re.compile(r"stablehlo\.custom_call @tpu_custom_call\(([^)]*)\) \{(.*)\} : (.*)$", re.M)
_CONFIG = re.compile(r'backend_config = "((?:[^"\\]|\\.)*)", ')
_ESCAPE = re.compile(r"\\([0-9A-F]{2}|.)")


def modules_of(side: ModuleType) -> Modules:
    """The modules that kernels are written with."""
    pallas = importlib.import_module(f"{side.__name__}.experimental.pallas")
    tpu = importlib.import_module(f"{side.__name__}.experimental.pallas.tpu")
    return Modules(side, importlib.import_module(f"{side.__name__}.numpy"), side.lax, pallas, tpu)


def program_of(side: ModuleType, name: str, mesh: Any = None) -> tuple[Callable, list]:
    """The function that calls a kernel, and its arguments' types."""
    m = modules_of(side)
    if name in SHARDED:
        f, *types = SHARDED[name](m, mesh or side.sharding.AbstractMesh((2, 4), ("x", "y")))
    else:
        f, *types = KERNELS[name](m)
    return f, types


def lowered(side: ModuleType, function: Callable, types: list) -> str:
    """The StableHLO of a function for TPUs."""
    avals = [side.ShapeDtypeStruct(*t) for t in types]
    return side.jit(function).trace(*avals).lower(lowering_platforms=("tpu",)).as_text()


def calls_of(side: ModuleType, name: str) -> str:
    """The calls in the program of a kernel: their modules as MLIR prints them, and all else."""
    try:
        return described(lowered(side, *program_of(side, name)))
    except ValueError as error:
        if "device kind" not in str(error):
            raise
    # What jax cannot lower without knowing a device is lowered for a TPU v5e.
    with on_v5e(side):
        return described(lowered(side, *program_of(side, name)))


def on_v5e(side: ModuleType) -> contextlib.AbstractContextManager:
    """Context manager: says that programs are for a TPU v5e."""
    device = side.sharding.AbstractDevice("TPU v5e", 1, "tpu")
    return side.sharding.use_abstract_mesh(side.sharding.AbstractMesh((), (), abstract_device=device))


def described(text: str) -> str:
    """The calls of kernels in a StableHLO text, without the names of values."""
    parts = []
    for operands, attributes, types in _CALL.findall(text):
        config, module = configuration(attributes)
        rest = _CONFIG.sub("", attributes)
        parts += [mosaic_text(module), config, rest, f"{operands.count('%')} operands", types]
    assert parts, "no kernel is called"
    return "\n".join(parts)


def configuration(attributes: str) -> tuple[str, bytes]:
    """The configuration of a call without the module, and the module."""
    found = _CONFIG.search(attributes)
    assert found
    config = json.loads(_ESCAPE.sub(lambda e: chr(int(e[1], 16)) if len(e[1]) == 2 else e[1], found[1]))
    module = base64.b64decode(config["custom_call_config"].pop("body"))
    return json.dumps(config), module
