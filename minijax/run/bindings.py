"""jaxlib's MLIR bindings, for rules that build operations and for parsing; imported when first used."""

import threading
from typing import Any

from minijax.base.cache import cache
from minijax.base.lazy import defer

ir = defer("jaxlib.mlir.ir")
passmanager = defer("jaxlib.mlir.passmanager")
extension = defer("jaxlib.mlir._mlir_libs._jax_mlir_ext")
_dialects = [defer(f"jaxlib.mlir._mlir_libs.{name}") for name in ("_stablehlo", "_chlo", "_sdy")]

# The modules that build the operations of a dialect, by its name.
for _name in "arith builtin chlo func math memref mpmd scf sdy sparse_tensor stablehlo vector".split():
    globals()[_name] = defer(f"jaxlib.mlir.dialects.{_name}")


def make_context() -> Any:
    """A new MLIR context that knows the dialects of programs."""
    context = _context()
    context.load_all_available_dialects()
    return context


def _context():
    context = ir.Context()
    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    context.append_dialect_registry(registry)
    for dialect in _dialects:
        dialect.register_dialect(context)
    return context


@cache
def context() -> Any:
    """The context that all rules build in: making one takes milliseconds."""
    return make_context()


# ---- parsing ----------------------------------------------------------------------------------------

_PROGRAMS_PER_CONTEXT = 64  # a context keeps the constants of all that it parsed


class _Parser(threading.local):
    context: Any = None
    left = 0


_parser = _Parser()


def parsed(text: str) -> Any:
    """A program as a module, so that XLA need not make a context for it; the text if it does not parse."""
    if not _parser.left:
        _parser.context, _parser.left = _context(), _PROGRAMS_PER_CONTEXT
        _parser.context.enable_multithreading(False)
    _parser.left -= 1
    try:
        return ir.Module.parse(text, _parser.context)
    except ir.MLIRError:
        return text
