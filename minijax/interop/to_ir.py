"""Exports functions as HLO, for programs without Python."""

import argparse
import ast
import functools
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.api.jit import jit
from minijax.base import dtypes
from minijax.ir.types import ShapedArray
from minijax.numpy import asarray

_WIDTHS = {"u": (1, 2, 4, 8, 16, 32, 64), "s": (1, 2, 4, 8, 16, 32, 64), "f": (16, 32, 64), "c": (64, 128)}
_NAMES = {"u": "uint", "s": "int", "f": "float", "c": "complex"}
_DTYPES = {f"{kind}{n}": f"{_NAMES[kind]}{n}" for kind, widths in _WIDTHS.items() for n in widths}
_DTYPES |= {"pred": "bool", "bf16": "bfloat16"}
_SHAPE = re.compile(r"(\w+)\[\s*(\d[\d,\s]*)?\]")

Shapes = Sequence[tuple[str, ShapedArray]]


def parse_shape_str(s: str) -> ShapedArray:
    """Parses a type such as `f32[1,2,3]`, with XLA's names of dtypes. Raises ValueError for anything else."""
    match = _SHAPE.fullmatch(s)
    if not match or match[1] not in _DTYPES:
        raise ValueError(f'Invalid shape {s}. Valid example: "f32[1,2,3]". The dtype must be one of {list(_DTYPES)}')
    sizes = tuple(map(int, match[2].split(","))) if match[2] else ()
    return ShapedArray(sizes, dtypes.BY_NAME.get(_DTYPES[match[1]]) or np.dtype(_DTYPES[match[1]]))


def jax_to_ir(
    fn: Callable, input_shapes: Shapes, *, constants: Mapping[str, Any] | None = None, format: str
) -> tuple[bytes, str]:
    """Lowers a function to a serialized HLO module and its text; arguments are passed by name, in this order.

    Raises ValueError for an argument that is also a constant, and for formats other than HLO.
    """
    constants, names = constants or {}, [name for name, _ in input_shapes]
    if both := sorted(set(names) & set(constants)):
        raise ValueError(f"Arguments appear in both `input_shapes` and `constants`: {', '.join(both)}")
    if format == "TF":
        raise ValueError("Conversion to TF graph requires TensorFlow, which is not supported.")
    if format != "HLO":
        raise ValueError(f"jax_to_ir: format must be 'HLO', got {format!r}")

    def ordered_wrapper(*args):
        return fn(**dict(zip(names, args, strict=True)), **constants)

    lowered = jit(ordered_wrapper).lower(*[aval for _, aval in input_shapes])
    computation = lowered.compiler_ir("hlo")
    return computation.as_serialized_hlo_module_proto(), computation.as_hlo_text()


jax_to_hlo = functools.partial(jax_to_ir, format="HLO")
jax_to_tf = functools.partial(jax_to_ir, format="TF")

# ---- the script -------------------------------------------------------------------------------------

parser = argparse.ArgumentParser(description="Writes a function as HLO.")
parser.add_argument("--fn", required=True, help="the function, as `module.name`")
parser.add_argument("--input_shapes", required=True, help='its arguments, as `[("x", "f32[128,32]")]`')
parser.add_argument("--constants", default="{}", help="arguments that are constants, as a dict; lists become arrays")
parser.add_argument("--evaled_constants", default="{}", help="as --constants; strings in it are Python's literals")
parser.add_argument("--ir_format", default="HLO", choices=["HLO", "TF"], help="the format")
parser.add_argument("--ir_dest", help="the file of the module")
parser.add_argument("--ir_human_dest", help="the file of its text")


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the files that the command line specifies."""
    options = parser.parse_args(argv)
    constants = ast.literal_eval(options.constants)
    for key, value in ast.literal_eval(options.evaled_constants).items():
        constants[key] = ast.literal_eval(value) if isinstance(value, str) else value
    constants = {k: asarray(v) if isinstance(v, list) else v for k, v in constants.items()}
    shapes = [(k, parse_shape_str(s)) for k, s in ast.literal_eval(options.input_shapes)]
    proto, text = jax_to_ir(pkgutil.resolve_name(options.fn), shapes, constants=constants, format=options.ir_format)
    for path, content in ((options.ir_dest, proto), (options.ir_human_dest, text.encode())):
        if path is not None:
            with open(path, "wb") as file:
                file.write(content)
