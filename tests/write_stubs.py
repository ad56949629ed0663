"""Writes the static faces: for each module whose names a `Face` serves, a `.pyi` beside it with the same names.

`python tests/write_stubs.py` writes them all; `tests/test_typing.py` compares them with the tables. A name that the source
defines where checkers see it is re-exported from there; of any other the stub has the signature or the type at run time.
Deprecated functions are marked; removed names are not in a stub.
"""

import ast
import builtins
import functools
import importlib
import inspect
import json
import pkgutil
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# Public modules that list no names of their own: all that they have is public.
WHOLE = {
    f"minijax.{name}"
    for name in (
        *"api_util errors example_libraries flatten_util monitoring profiler tree typing version".split(),
        *"experimental.control_deps experimental.key_reuse experimental.mesh_utils experimental.profiler".split(),
        "extend.linear_util",
    )
}
ALIAS = ROOT / "minijax" / "interop" / "as_jax" / "jax"
HEAD = "# The names of this module's table, written by tests/write_stubs.py.\n"
# Decorators whose types keep the signature.
KEEPING = (
    "source.boundary",
    "boundary",
    "fused",
    "jitted",
    "promoting",
    "ufuncs.promoting",
    "functools.cache",
    "known_as",
)
WIDTH = 118


class Binding(NamedTuple):
    """The statement that defines a name in a module; None for a name without one."""

    module: str
    name: str
    node: ast.stmt | None


class Import(NamedTuple):
    """Where a stub has a name from: `name` of `module`, or the module itself where `name` is empty."""

    module: str
    name: str


# ---- what the source says ---------------------------------------------------------------------------


def path_of(module: str) -> Path:
    base = ROOT / module.replace(".", "/")
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@functools.cache
def is_module(module: str) -> bool:
    return module.split(".")[0] == "minijax" and path_of(module).exists()


@functools.cache
def parsed(module: str) -> list[ast.stmt]:
    return ast.parse(path_of(module).read_text()).body if is_module(module) else []


@functools.cache
def statements(module: str) -> dict[str, ast.stmt | Import]:
    """The statement or the import that gives each name of a module's top level, the last one of several."""
    found: dict[str, ast.stmt | Import] = {}

    def visit(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = (p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t]))
                found.update({n.id: node for n in parts if isinstance(n, ast.Name)})
            elif isinstance(node, ast.ImportFrom):
                found.update({a.asname or a.name: Import(node.module or "", a.name) for a in node.names})
            elif isinstance(node, ast.Import):
                found.update({a.asname or a.name: Import(a.name, "") for a in node.names})
            elif isinstance(node, ast.If | ast.Try):
                visit(node.body)

    visit(parsed(module))
    return found


def binding(module: str, name: str) -> Binding | Import:
    """Where a name is made: through imports, and through assignments of one name to another."""
    found = statements(module).get(name)
    if isinstance(found, Import):
        if found.name and is_module(found.module):
            return binding(found.module, found.name)
        return found
    if isinstance(found, ast.Assign) and isinstance(found.value, ast.Name) and len(found.targets) == 1:
        return binding(module, found.value.id)
    if isinstance(found, ast.Assign) and isinstance(found.value, ast.Attribute):
        root = found.value.value
        of = statements(module).get(root.id) if isinstance(root, ast.Name) else None
        if isinstance(of, Import) and not of.name and not is_module(of.module):
            return Import(of.module, found.value.attr)
        if isinstance(of, Import) and is_module(f"{of.module}.{of.name}"):
            return binding(f"{of.module}.{of.name}", found.value.attr)
    return Binding(module, name, found)


def keeps_signature(node: ast.FunctionDef) -> bool:
    called = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return all(ast.unparse(d) in KEEPING for d in called)


def parameters_of(node: ast.FunctionDef) -> list[str]:
    a = node.args
    star = [a.vararg] if a.vararg else []
    return [x.arg for x in (*a.posonlyargs, *a.args, *star, *a.kwonlyargs, *([a.kwarg] if a.kwarg else []))]


# ---- one stub ---------------------------------------------------------------------------------------


class Stub:
    """The text of one module's stub, put together name by name."""

    def __init__(self, module: str, public: list[str], deprecated: dict[str, str]):
        self.module, self.public, self.deprecated = module, {*public, *deprecated}, deprecated
        self.exports: dict[str, Import] = {}
        self.helpers: dict[str, Import] = {}  # what annotations need
        self.lines: list[str] = []

    def export(self, name: str, module: str, inner: str) -> None:
        self.exports[name] = Import(module, inner)

    def declare(self, name: str, annotation: str) -> None:
        self.lines.append(f"{name}: {annotation}")

    def helper(self, name: str, origin: Import) -> str:
        """The name by which an annotation has something, where the module's own names may hide it."""
        free = name
        while free in self.public or self.helpers.get(free, origin) != origin:
            free = f"_{free}"
        self.helpers[free] = origin
        return free

    # -- annotations

    def annotation(self, value: Any, home: str) -> str:
        """An annotation of a function of the module `home`, in this stub's names; Any where it has none."""
        if value is inspect.Parameter.empty:
            return self.typing("Any")
        if isinstance(value, str):
            try:
                return ast.unparse(_Renamed(self, home).visit(ast.parse(value, mode="eval")).body)
            except (LookupError, SyntaxError):
                return self.typing("Any")
        return self.shown(value)

    def typing(self, name: str) -> str:
        return self.helper(name, Import("typing", name))

    def shown(self, value: Any) -> str:
        """A type as its text."""
        if value is None or value is type(None):
            return "None"
        if value is Ellipsis:
            return "..."
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self.shown, value))}]"
        origin, args = typing.get_origin(value), typing.get_args(value)
        if origin in (typing.Union, types.UnionType):
            return " | ".join(map(self.shown, args))
        if origin is typing.Literal:
            return f"{self.typing('Literal')}[{', '.join(map(repr, args))}]"
        if origin is not None and args:
            outer = self.shown(origin)
            return outer if outer == "Any" else f"{outer}[{', '.join(map(self.shown, args))}]"
        if isinstance(value, type) and value.__qualname__.isidentifier():
            return self.class_name(value)
        return self.typing("Any")

    def class_name(self, cls: type) -> str:
        name = cls.__qualname__
        if cls.__module__ == "builtins":
            return name if name not in self.public and hasattr(builtins, name) else self.builtin(name)
        if not is_module(cls.__module__):
            found = getattr(sys.modules.get(cls.__module__), name, None)
            return self.helper(name, Import(cls.__module__, name)) if found is cls else self.typing("Any")
        seen = binding(cls.__module__, name)
        if isinstance(seen, Binding) and not isinstance(seen.node, ast.ClassDef):
            return self.typing("Any")
        return self.helper(name, Import(cls.__module__, name))

    def builtin(self, name: str) -> str:
        return f"{self.helper('builtins', Import('builtins', ''))}.{name}"

    # -- declarations

    def function(self, name: str, value: Any) -> None:
        """Declares a function by its signature at run time."""
        if name in self.deprecated:
            mark = self.helper("deprecated", Import("typing_extensions", "deprecated"))
            self.lines.append(f"@{mark}({json.dumps(self.deprecated[name])})")
        inner = inspect.unwrap(value)
        home = getattr(inner, "__globals__", {}).get("__name__", "")
        home = home or getattr(inspect.unwrap(getattr(inner, "fun", inner)), "__module__", "") or ""
        signature, parts, kind = inspect.signature(value), [], None
        for p in signature.parameters.values():
            if kind is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
                parts.append("/")
            if p.kind is p.KEYWORD_ONLY and kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
                parts.append("*")
            kind = p.kind
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            default = "" if p.default is p.empty else f" = {_default(p.default)}"
            parts.append(f"{stars}{p.name}: {self.annotation(p.annotation, home)}{default}")
        if kind is inspect.Parameter.POSITIONAL_ONLY:
            parts.append("/")
        result = self.annotation(signature.return_annotation, home)
        line = f"def {name}({', '.join(parts)}) -> {result}: ..."
        if len(line) > WIDTH:
            line = f"def {name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {result}: ..."
        self.lines.append(line)

    def text(self) -> str:
        modules = [(n, o.module) for n, o in self.helpers.items() if not o.name]
        plain = sorted(f"import {module}" + ("" if n == module else f" as {n}") for n, module in modules)
        named = [(o.module, o.name, n) for n, o in self.helpers.items() if o.name]
        named += [(o.module, o.name, n) for n, o in self.exports.items()]
        rows = [
            f"from {module} import {inner}" + (f" as {name}" if name != inner or name in self.exports else "")
            for module, inner, name in sorted(named)
        ]
        listed = sorted(n for n in self.public if not n.startswith("_") and n not in self.deprecated)
        shown = ", ".join(f'"{n}"' for n in listed)
        names = ["", "__all__ = [", *textwrap.wrap(shown, WIDTH, initial_indent="    ", subsequent_indent="    "), "]"]
        return "\n".join([HEAD, *plain, *rows, *names, *([""] if self.lines else []), *self.lines]) + "\n"


class _Renamed(ast.NodeTransformer):
    """Writes the names of an annotation of the module `home` as a stub has them."""

    def __init__(self, stub: Stub, home: str):
        self.stub, self.home = stub, home

    def visit_Constant(self, node: ast.Constant) -> ast.expr:  # noqa: N802
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        if ast.unparse(node.value).endswith("Literal"):
            node.value = self.visit(node.value)
            return node
        return self.generic_visit(node)  # pyright: ignore[reportReturnType]

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        origin = statements(self.home).get(node.id)
        if origin is None and hasattr(builtins, node.id):
            text = self.stub.builtin(node.id) if node.id in self.stub.public else node.id
        elif origin is None:
            raise LookupError(node.id)
        else:
            text = self.stub.helper(node.id, origin if isinstance(origin, Import) else Import(self.home, node.id))
        return ast.parse(text, mode="eval").body


def _default(value: Any) -> str:
    is_plain = value is None or type(value) in (bool, int, str) or type(value) is float and value == value
    text = repr(value) if is_plain and value not in (float("inf"), float("-inf")) else "..."
    return text if len(text) < 40 else "..."


# ---- which names, and how ---------------------------------------------------------------------------


def is_function(value: Any) -> bool:
    kinds = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
    return isinstance(value, kinds) or type(value).__name__ in ("Jitted", "PjitFunction", "custom_jvp", "custom_vjp")


def add_name(stub: Stub, name: str, room: str, inner: str) -> None:
    value = attrgetter(inner)(importlib.import_module(room))
    if isinstance(value, types.ModuleType):
        parent, _, last = value.__name__.rpartition(".")
        stub.export(name, parent, last)
    elif name != inner and (name.startswith("_") or name in stub.deprecated) and not is_function(value):
        stub.declare(name, stub.shown(type(value)))  # an alias that `__all__` does not list is not public
    elif not room.startswith("minijax"):
        stub.export(name, room, inner)
    elif not is_seen(value, room, inner) or is_function(value) and name in stub.deprecated:
        if is_function(value) and _has_signature(value):
            stub.function(name, value)
        else:
            stub.declare(name, stub.typing("Any") if isinstance(value, type) else stub.class_name(type(value)))
    else:
        stub.export(name, room, inner)


def is_seen(value: Any, room: str, inner: str) -> bool:
    """Whether checkers see in the source what a name is."""
    if "." in inner:
        return False
    found = binding(room, inner)
    if isinstance(found, Import):
        return not is_function(value)
    node = found.node
    if isinstance(node, ast.FunctionDef):
        if found.name in overloaded(found.module):
            return True
        return keeps_signature(node) and parameters_of(node) == list(inspect.signature(value).parameters)
    if isinstance(node, ast.ClassDef) or isinstance(node, ast.AnnAssign):
        return True
    if not isinstance(node, ast.Assign) or is_function(value):
        return False
    one = isinstance(node.targets[0], ast.Name)
    if one and isinstance(node.value, ast.Call):
        made = binding(found.module, ast.unparse(node.value.func))
        return isinstance(value, type) or isinstance(made, Binding) and isinstance(made.node, ast.ClassDef)
    return one


@functools.cache
def overloaded(module: str) -> set[str]:
    """The functions of a module whose source has overloads."""
    functions = (n for n in parsed(module) if isinstance(n, ast.FunctionDef))
    return {n.name for n in functions if "overload" in map(ast.unparse, n.decorator_list)}


def _has_signature(value: Any) -> bool:
    try:
        inspect.signature(value)
    except (TypeError, ValueError):
        return False
    return True


def faces() -> Iterator[tuple[str, Any]]:
    """The public modules that a `Face` serves, with their faces."""
    for path in sorted((ROOT / "minijax").rglob("*.py")):
        if re.search(
            r"^(?:__getattr__, __dir__ = )?_FACE = Face\(|import FACE as _FACE$", path.read_text(), re.MULTILINE
        ):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield name, importlib.import_module(name)._FACE


def table(face: Any) -> dict[str, tuple[str, str]]:
    """The names of a face that are not missing, each with its room and its name there."""
    return {n: where for n, where in face._rooms.items() if face._has(n)}


def stub_of(module: str, face: Any) -> str:
    names = table(face)
    stub = Stub(module, [*names, *face._submodules, *face._missing], face._warnings)
    for name in sorted(face._submodules):
        if path_of(f"{module}.{name}").exists():
            stub.export(name, module, name)
    for name, (room, inner) in names.items():
        add_name(stub, name, room, inner)
    for name in face._missing:
        stub.declare(name, stub.typing("Any"))
    for name, node in statements(module).items():  # what the module has besides its table
        if name not in stub.public and not name.startswith("_") and isinstance(node, ast.Assign):
            stub.declare(name, stub.shown(type(getattr(importlib.import_module(module), name))))
    return stub.text()


def stubs() -> dict[Path, str]:
    """The texts of all stubs, by path."""
    ours = {path_of(module).with_suffix(".pyi"): stub_of(module, face) for module, face in faces()}
    return {**ours, **aliases(set(ours))}


def aliases(ours: set[Path]) -> dict[Path, str]:
    """The stubs of the package `jax`, which editors read where it is an alias: each re-exports a public module of ours."""
    found = {}
    for path in sorted((ROOT / "minijax").rglob("*.py")):
        inside = path.relative_to(ROOT / "minijax")
        name = ".".join(("minijax", *inside.with_suffix("").parts)).removesuffix(".__init__")
        text = path.read_text()
        if "as_jax" in inside.parts or not (name in WHOLE or "__dir__" in text or "_FACE" in text):
            continue
        module = importlib.import_module(name)
        if name not in WHOLE and "__dir__" not in vars(module):
            continue
        inner = [m.name for m in pkgutil.iter_modules(getattr(module, "__path__", ()))] if name in WHOLE else []
        names = sorted(n for n in {*dir(module), *inner} if not n.startswith("_"))
        listed = "*" if path.with_suffix(".pyi") in ours else f"({', '.join(f'{n} as {n}' for n in names)})"
        wrapped = textwrap.fill(f"from {name} import {listed}", WIDTH, subsequent_indent="    ")
        found[ALIAS / inside.with_suffix(".pyi")] = f"{HEAD}\n{wrapped}\n"
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for path, text in stubs().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
