"""jaxlib's MLIR bindings, for lowering rules that build operations with them; imported when first used."""

from typing import Any

from minijax.base.cache import cache
from minijax.base.lazy import defer

ir = defer("jaxlib.mlir.ir")
passmanager = defer("jaxlib.mlir.passmanager")
extension = defer("jaxlib.mlir._mlir_libs._jax_mlir_ext")
arith = defer("jaxlib.mlir.dialects.arith")
builtin = defer("jaxlib.mlir.dialects.builtin")
chlo = defer("jaxlib.mlir.dialects.chlo")
func = defer("jaxlib.mlir.dialects.func")
math = defer("jaxlib.mlir.dialects.math")
memref = defer("jaxlib.mlir.dialects.memref")
mpmd = defer("jaxlib.mlir.dialects.mpmd")
scf = defer("jaxlib.mlir.dialects.scf")
sdy = defer("jaxlib.mlir.dialects.sdy")
sparse_tensor = defer("jaxlib.mlir.dialects.sparse_tensor")
stablehlo = defer("jaxlib.mlir.dialects.stablehlo")
vector = defer("jaxlib.mlir.dialects.vector")


def make_context() -> Any:
    """A new MLIR context that knows the dialects of programs."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context


@cache
def context() -> Any:
    """The context that all rules build in: making one takes milliseconds."""
    return make_context()
