"""jaxlib's MLIR bindings, for lowering rules that build operations and for parsing; imported at first use."""

from typing import Any

from minijax.base.cache import cache
from minijax.base.lazy import defer

ir = defer("jaxlib.mlir.ir")
passmanager = defer("jaxlib.mlir.passmanager")
extension = defer("jaxlib.mlir._mlir_libs._jax_mlir_ext")
gpu_rnn = defer("jaxlib.gpu_rnn")
_dialects = [defer(f"jaxlib.mlir._mlir_libs.{name}") for name in ("_stablehlo", "_chlo", "_sdy")]

# The modules with a dialect's operations, by the dialect's name.
for _name in "arith builtin chlo func math memref mpmd scf sdy sparse_tensor stablehlo vector".split():
    globals()[_name] = defer(f"jaxlib.mlir.dialects.{_name}")


def make_context() -> Any:
    """A new MLIR context with the dialects that programs use."""
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
    """The context shared by all lowering rules, since making one takes milliseconds."""
    return make_context()


# ---- parsing ----------------------------------------------------------------------------------------

_PROGRAMS_PER_CONTEXT = 64  # a context keeps the constants of all programs it has parsed


# Contexts not in use. They are not thread-local: XLA's threads, in which host callbacks run, end without holding
# the interpreter, which is needed to free such an object.
_contexts: list[tuple[Any, int]] = []


class parsed:
    """Parses a program, so that XLA need not make a context for it; gives the text itself if it does not parse."""

    __slots__ = ("_text", "_context", "_left")

    def __init__(self, text: str):
        self._text = text

    def __enter__(self) -> Any:
        try:
            self._context, self._left = _contexts.pop()
        except IndexError:
            self._context, self._left = _context(), _PROGRAMS_PER_CONTEXT
            self._context.enable_multithreading(False)
        try:
            return ir.Module.parse(self._text, self._context)
        except ir.MLIRError:
            return self._text

    def __exit__(self, *exception: object) -> None:
        if self._left > 1:
            _contexts.append((self._context, self._left - 1))
