"""Modules as portable artifacts: bytes that other versions of XLA can read."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxlib import _jax

from minijax.base.lazy import defer
from minijax.hlo.regions import make_refinable
from minijax.run.programs import bindings

_versions = defer("jaxlib.mlir._mlir_libs._stablehlo")
_MAGIC = b"ML\xefR"


def serialized(text: str, newest: bool = False) -> bytes:
    """Serializes a module for the XLA of four weeks ago, or, if `newest`, for the current version only."""
    weeks = _versions.StablehloCompatibilityRequirement.WEEK_4
    old = _versions.get_version_from_compatibility_requirement(weeks)
    # True: Shardy's operations are kept; otherwise they would become attributes of the old partitioner.
    return _jax.mlir.serialize_portable_artifact(text, _versions.get_current_version() if newest else old, True)


def module_of(artifact: bytes) -> Any:
    """The MLIR module of an artifact, in a new context. Raises ValueError for bytes that are not a module."""
    if not artifact.startswith(_MAGIC):
        raise ValueError("the exported module is not MLIR bytecode")
    context = bindings.make_context()
    context.enable_multithreading(False)
    try:
        return _jax.mlir.deserialize_portable_artifact(artifact, context)
    except (RuntimeError, bindings.ir.MLIRError) as error:
        raise ValueError(f"the exported module cannot be read: {error}") from error


def text_of(artifact: bytes) -> str:
    """The module as text, with locations."""
    return module_of(artifact).operation.get_asm(enable_debug_info=True)


class Parts(NamedTuple):
    """The contents of a module as text: its meshes by symbol, the lines of its functions, and the symbol of `main`."""

    meshes: dict[str, str]
    functions: list[list[str]]
    main: str


def parts_of(artifact: bytes, rename: Callable[[str], str], is_polymorphic: bool = False) -> Parts:
    """The contents of a module as text, with functions and meshes renamed by `rename`.

    Functions are private. If `is_polymorphic`, the shapes of the module can be refined by XLA.
    """
    ir, module = bindings.ir, module_of(artifact)
    operations = list(module.body.operations)
    taken = {_name(op) for op in operations}
    meshes, functions, main = {}, [], ""
    for op in operations:
        old = _name(op)
        new = rename(old)
        while new != old and new in taken:
            new = rename(old)
        main = new if old == "main" else main
        if new != old:
            ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
            ir.SymbolTable.set_symbol_name(op, new)
    if is_polymorphic:
        make_refinable(bindings, module, rename)
    for op in module.body.operations:
        is_function = isinstance(op, bindings.func.FuncOp)
        if is_function:
            op.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)
        text = op.operation.get_asm(enable_debug_info=False, use_local_scope=True)
        if is_function:
            functions.append([f"  {line}" for line in text.splitlines()])
        else:
            meshes[_name(op)] = text
    return Parts(meshes, functions, main)


def _name(op):
    return bindings.ir.StringAttr(op.attributes["sym_name"]).value
