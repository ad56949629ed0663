"""Modules of kernels, Triton's and Mosaic's: from text to the bytecode that XLA takes, and back."""

import io
import re
import threading
from collections.abc import Callable
from typing import Any

from minijax.base.lazy import defer
from minijax.run.programs import bindings

_triton = defer("jaxlib.mlir._mlir_libs._triton_ext")
_tpu = defer("jaxlib.mlir._mlir_libs._tpu_ext")

# The version of Mosaic's operations that every libtpu of the last months reads.
MOSAIC_VERSION = 11

# One thread at a time: without threads of its own, a context is not for several.
_lock = threading.Lock()
_contexts: dict[str, Any] = {}


def _context(kind: str) -> Any:
    context = _contexts.get(kind)
    if context is None:
        dialect = _tpu if kind == "mosaic" else _triton
        context = bindings.ir.Context()
        registry = bindings.ir.DialectRegistry()
        bindings.extension.register_dialects(registry)
        context.append_dialect_registry(registry)
        dialect.register_dialect(context)
        context.load_all_available_dialects()
        context.enable_multithreading(False)
        # Serialized operations of Mosaic belong to a dialect that nobody registers.
        context.allow_unregistered_dialects = kind == "mosaic"
        _contexts[kind] = context
    return context


def triton_bytecode(text: str) -> bytes:
    """The bytecode of a module of Triton. Raises ValueError for a module that is not valid."""
    return _with_module("triton", text, lambda module: _bytecode(module, "strip-debuginfo"))


def mosaic_bytecode(text: str, version: int = MOSAIC_VERSION) -> bytes:
    """The bytecode of a module of Mosaic for TPUs, in a version of its operations. Raises ValueError as above."""
    passes = f"strip-debuginfo,mosaic-serde{{serialize=true target-version={version}}}"
    return _with_module("mosaic", text, lambda module: _bytecode(module, passes, desired_version=0))


def triton_text(module: str | bytes) -> str:
    """A module of Triton, as text or bytecode, as MLIR prints it without locations."""
    return _with_module("triton", module, lambda m: m.operation.get_asm())


def mosaic_text(module: str | bytes, passes: str = "") -> str:
    """A module of Mosaic, as text or serialized bytecode, as MLIR prints it without locations after these passes."""
    if isinstance(module, bytes):
        passes = f"mosaic-serde{{serialize=false}}{passes and ',' + passes}"
    return _with_module("mosaic", module, lambda m: _passed(m, passes).operation.get_asm())


def mosaic_has_communication(text: str) -> tuple[bool, bool]:
    """Whether a module of Mosaic communicates with other devices, and whether it uses the barrier semaphore."""
    return _with_module("mosaic", text, lambda module: tuple(_tpu.private_has_communication(module.operation)))


def _passed(module: Any, passes: str) -> Any:
    bindings.passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
    return module


def _bytecode(module: Any, passes: str, **options: int) -> bytes:
    module.operation.verify()
    buffer = io.BytesIO()
    _passed(module, passes).operation.write_bytecode(buffer, **options)
    return buffer.getvalue()


def _with_module(kind: str, module: str | bytes, use: Callable[[Any], Any]) -> Any:
    ir = bindings.ir
    with _lock, _context(kind), ir.Location.unknown():
        try:
            return use(ir.Module.parse(module))
        except ir.MLIRError as error:
            message = _message(module, error)
    raise ValueError(message)


_NAME = re.compile(r"module @(\"[^\"]*\"|\S+)|func\.func @(\"[^\"]*\"|[^\s(]+)")
_PLACE = re.compile(r":(\d+):\d+")


def _message(module: str | bytes, error: Any) -> str:
    """Names the kernel, says what MLIR says of it, and shows the line."""
    if isinstance(module, bytes):
        return f"the bytecode of a kernel cannot be read: {error}"
    found = _NAME.search(module)
    name = (found[1] or found[2]).strip('"') if found else "?"
    told, lines = [], module.splitlines()
    for diagnostic in error.error_diagnostics:
        place = _PLACE.search(str(diagnostic.location))
        line = int(place[1]) if place else 0
        shown = f"\n  line {line}: {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
        told.append(f"{diagnostic.message}{shown}")
    return f"the module of kernel {name} is not valid: " + ("\n".join(told) or str(error))
