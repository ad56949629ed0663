"""Dumps of programs, written to the directory `jax_dump_ir_to` in the forms `jax_dump_ir_modes`."""

import itertools
import os
import re

from minijax.base import config, monitoring
from minijax.dispatch.lowering import LoweredProgram
from minijax.ir.pprof import equation_profile

_lowerings, _compilations = itertools.count(), itertools.count()


def dump_jaxpr(lowered: LoweredProgram) -> None:
    """Writes the jaxpr that has been lowered, in the modes "jaxpr" and "eqn_count_pprof"."""
    contents = {
        "jaxpr": (".jaxpr.txt", lambda: str(lowered.closed).encode()),
        "eqn_count_pprof": (".eqn_count_pprof", lambda: equation_profile(lowered.closed)),
    }
    chosen = [content for mode, content in contents.items() if _wants(mode)]
    if chosen:
        monitoring.log_jaxpr_dump(lowered.name, str(config.dump_ir_to.value))
        number = next(_lowerings)
        for ending, content in chosen:
            _write(f"jax_{number:06d}_{lowered.name}", ending, content())


def dump_program(lowered: LoweredProgram) -> bool:
    """Writes the module that is being compiled, in the mode "stablehlo"; returns whether dumps are enabled."""
    if _wants("stablehlo"):
        text = lowered.module.located().text if config.include_debug_info_in_dumps.value else lowered.module.text
        file = _write(f"jax_ir{next(_compilations):04d}_{lowered.module.name}", "_compile.mlir", text.encode())
        monitoring.log_program_dump(file)
    return bool(config.dump_ir_to.value)


def _wants(mode: str) -> bool:
    return bool(config.dump_ir_to.value) and mode in config.dump_ir_modes.value.split(",")


_LONGEST_NAME = 200


def _write(name: str, ending: str, content: bytes) -> str:
    """Writes a file and returns its name: the given name, without characters that file names cannot have."""
    folder = config.dump_ir_to.value
    if folder == "sponge":
        folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
        if folder is None:
            raise ValueError("JAX_DUMP_IR_TO is 'sponge' but TEST_UNDECLARED_OUTPUTS_DIR is not defined.")
    os.makedirs(folder, exist_ok=True)
    file = re.sub(r"[/\\\0]", "_", name)[:_LONGEST_NAME] + ending
    with open(os.path.join(folder, file), "wb") as stream:
        stream.write(content)
    return file
