"""The comparer: the same program on minijax and on jax, whose values, types, jaxprs and texts must be equal.

A *program* is a function of the module, `lambda jax, jnp: jnp.sin` or `lambda jax: jax.numpy.ones(3)`: its
parameters are named after what they get (`jax`, `jnp`, `lax`, `random`, `nn`, `scipy`).
"""

import contextlib
import dataclasses
import difflib
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import raising
import recorded

SHORT_NAMES = {"jnp": "numpy", "ode": "experimental.ode", "rnn": "experimental.rnn", "sparse": "experimental.sparse"}
SHORT_NAMES |= {"optimize": "scipy.optimize", "transform": "scipy.spatial.transform"}
FLOAT0 = np.dtype([("float0", np.void, 0)])


class Mismatch(AssertionError):
    """minijax and jax differ."""


def require(condition: bool, where: str, ours: object, theirs: object) -> None:
    if not condition:
        raise Mismatch(f"{where}: ours {ours}, theirs {theirs}")


# Programs on both sides


def ours() -> ModuleType:
    return importlib.import_module("minijax")


class _Late(ModuleType):
    """A module of jax that is imported when something of it is read."""

    def __getattr__(self, name: str) -> Any:
        if name == "_mock_name":  # read by pytest of each object of a test module
            raise AttributeError(name)
        return getattr(module_of(self.__name__), name)


def theirs(module: str = "jax") -> ModuleType:
    return sys.modules.get(module) or _Late(module)


def module_of(name: str) -> ModuleType:
    """Imports a module; jax under the environment of the session, since that of a test may set what jax reads."""
    if "jax" not in sys.modules and _read_by_jax(os.environ) != _read_by_jax(recorded.session.environment):
        # Only then: threads of XLA read the environment, and the process may end if it changes meanwhile.
        with mock.patch.dict(os.environ, recorded.session.environment or os.environ, clear=True):
            return importlib.import_module(name)
    return importlib.import_module(name)


def _read_by_jax(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(("JAX_", "XLA_"))}


def run_on(namespace: ModuleType, program: Callable) -> Any:
    """Calls the program. Its parameters without defaults are modules of `namespace`, by name."""
    given = {}
    for name, parameter in inspect.signature(program).parameters.items():
        if parameter.default is not parameter.empty:
            continue
        submodule = SHORT_NAMES.get(name, name)
        given[name] = namespace if name == "jax" else module_of(f"{namespace.__name__}.{submodule}")
    return program(**given)


def both(program: Callable) -> tuple[Any, Any]:
    """The results of the program on minijax and on jax."""
    return run_on(ours(), program), run_on(theirs(), program)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a call ended."""

    value: Any = None
    error: BaseException | None = None


def outcome(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(value=call())
    except Exception as error:
        return Outcome(error=error)


def ended(call: Callable[[], Any], phrases: Sequence[str] = ()) -> str:
    """In words, whether a call returns, or the class of its error and which of the phrases its message has."""
    error = outcome(call).error
    found = [phrase for phrase in phrases if phrase in str(error)]
    return "returned" if error is None else f"raised {type(error).__name__} {found}"


@contextlib.contextmanager
def on_both(context: Callable[[ModuleType], contextlib.AbstractContextManager]) -> Iterator[None]:
    """Enters a context of both sides, `lambda jax: jax.enable_x64(True)`; without jax, that of minijax."""
    with context(ours()), contextlib.nullcontext() if recorded.session.mode == recorded.ALONE else context(theirs()):
        yield


def wide_numbers(on: bool = True) -> contextlib.AbstractContextManager:
    """Numbers of 64 bits on both sides."""
    return on_both(lambda jax: jax.enable_x64(on))


def placed(namespace: ModuleType, args: Any) -> Any:
    """The arguments, with NumPy arrays converted to arrays of the namespace; Python scalars stay."""
    asarray = module_of(f"{namespace.__name__}.numpy").asarray

    def place(leaf: Any) -> Any:
        is_numbers = isinstance(leaf, np.ndarray | np.generic) and leaf.dtype != FLOAT0
        return asarray(leaf) if is_numbers else leaf

    return module_of(f"{namespace.__name__}.tree_util").tree_map(place, args)


# Values


def same_value(
    ours: Any, theirs: Any, *, rtol: float = 0, atol: float = 0, any_nan: bool = False, why: str = ""
) -> None:
    """Requires equal trees of equal leaves: bits, dtype, weak type, shape, sharding.

    A tolerance, or NaNs of any payload, need a reason in `why`.
    """
    if (rtol or atol or any_nan) and not why.strip():
        raise ValueError("same_value: a tolerance needs a reason, why='...'")
    our_leaves, our_tree = _tree_util("minijax").tree_flatten(ours)
    their_leaves, their_tree = _tree_util("jax").tree_flatten(theirs)
    require(normal(str(our_tree)) == normal(str(their_tree)), "tree", our_tree, their_tree)
    paths = [_tree_util("jax").keystr(path) for path, _ in _tree_util("jax").tree_leaves_with_path(theirs)]
    for path, our_leaf, their_leaf in zip(paths, our_leaves, their_leaves, strict=True):
        _same_leaf(f"value{path}", our_leaf, their_leaf, rtol, atol, any_nan)


def _tree_util(package: str) -> ModuleType:
    # Planted differences have jax on both sides, and need no minijax.
    found = package == "jax" or importlib.util.find_spec("minijax.tree_util")
    return module_of(f"{package if found else 'jax'}.tree_util")


def _same_leaf(where: str, ours: Any, theirs: Any, rtol: float, atol: float, any_nan: bool) -> None:
    require(_kind(ours) == _kind(theirs), f"{where} kind", _kind(ours), _kind(theirs))
    if not (hasattr(theirs, "shape") and hasattr(theirs, "dtype")):
        if theirs is not ours:
            require(normal(repr(ours)) == normal(repr(theirs)), where, repr(ours), repr(theirs))
        return
    require(tuple(ours.shape) == tuple(theirs.shape), f"{where} shape", ours.shape, theirs.shape)
    require(str(ours.dtype) == str(theirs.dtype), f"{where} dtype", ours.dtype, theirs.dtype)
    if _kind(theirs) not in ("numpy array", "numpy scalar"):
        weak = getattr(ours, "weak_type", None), getattr(theirs, "weak_type", None)
        require(weak[0] == weak[1], f"{where} weak type", *weak)
    our_sharding, their_sharding = _sharding(ours), _sharding(theirs)
    for part in our_sharding.keys() & their_sharding.keys():
        require(
            our_sharding[part] == their_sharding[part],
            f"{where} sharding's {part}",
            our_sharding[part],
            their_sharding[part],
        )
    if _kind(theirs) in ("array", "numpy array", "numpy scalar"):
        _same_numbers(where, _numbers(ours), _numbers(theirs), rtol, atol, any_nan)


def _kind(leaf: Any) -> str:
    if isinstance(leaf, np.generic):
        return "numpy scalar"
    # jax gives float0 zeros as a private class around a numpy array.
    if isinstance(leaf, np.ndarray) or type(leaf).__name__ == "TypedNdArray":
        return "numpy array"
    if hasattr(leaf, "shape") and hasattr(leaf, "addressable_shards"):
        return "array"
    if isinstance(leaf, type) or callable(leaf):
        return "callable"
    return type(leaf).__name__


def _sharding(leaf: Any) -> dict[str, Any]:
    sharding = getattr(leaf, "sharding", None)
    if sharding is None:
        return {}
    mesh = getattr(sharding, "mesh", None)
    devices = getattr(mesh, "devices", None)
    parts = {
        "type": type(sharding).__name__,
        "spec": str(sharding.spec) if hasattr(sharding, "spec") else None,
        "memory kind": getattr(sharding, "memory_kind", None),
        "axes": mesh and dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True)),
        "devices": [d.id for d in devices.flat] if isinstance(devices, np.ndarray) else None,
    }
    return {name: part for name, part in parts.items() if part is not None}


def _numbers(leaf: Any) -> np.ndarray:
    if str(leaf.dtype).startswith("key<"):
        package = "minijax" if type(leaf).__module__.startswith("minijax") else "jax"
        leaf = importlib.import_module(f"{package}.random").key_data(leaf)
    values = np.asarray(leaf)
    if values.dtype == FLOAT0:
        return np.zeros(values.shape, bool)
    # The unused bits of a byte that holds a small number mean nothing; float32 holds each exactly.
    return values.astype(np.float32) if values.dtype in _SUB_BYTE else values


_SUB_BYTE = {
    np.dtype(getattr(ml_dtypes, name))
    for name in ("int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
    if hasattr(ml_dtypes, name)
}


def _same_numbers(where: str, ours: np.ndarray, theirs: np.ndarray, rtol: float, atol: float, any_nan: bool) -> None:
    if ours.dtype == object or theirs.dtype == object:
        require(ours.tolist() == theirs.tolist(), where, ours, theirs)
        return
    width = ours.dtype.itemsize
    # Bytes rather than numbers: 0.0 and -0.0 differ, and so do two NaNs.
    our_bytes = np.frombuffer(ours.tobytes(), np.uint8).reshape(-1, width)
    their_bytes = np.frombuffer(theirs.tobytes(), np.uint8).reshape(-1, width)
    wrong = (our_bytes != their_bytes).any(axis=1).reshape(ours.shape)
    if wrong.any() and any_nan:
        wrong &= ~((ours != ours) & (theirs != theirs))
    if wrong.any() and (rtol or atol):
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64
        wrong &= ~np.isclose(ours.astype(wide), theirs.astype(wide), rtol, atol, equal_nan=any_nan)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        require(False, f"{where} at {at}, {wrong.sum()} of {wrong.size} differ", repr(ours[at]), repr(theirs[at]))


# Errors


def same_error(f_ours: Callable[[], Any], f_theirs: Callable[[], Any], phrases: Sequence[str] = ()) -> None:
    """Requires that both raise: classes and bases of equal names, and messages that contain the phrases."""
    mine = outcome(f_ours)
    has_phrases = all(phrase in str(mine.error) for phrase in phrases)
    entry = entry_of("error", recorded.told(f_ours), *phrases, says=(mine.error and _bases(mine.error), has_phrases))
    if entry.asks:
        _same_raised(mine, outcome(f_theirs), phrases)
        entry.confirm()


def same_refusal(program: Callable, phrases: Sequence[str] = ()) -> None:
    """Requires that what the program returns raises when it is called, as `same_error`."""
    same_error(run_on(ours(), program), lambda: run_on(theirs(), program)(), phrases)


def _same_raised(ours: Outcome, theirs: Outcome, phrases: Sequence[str] = ()) -> None:
    require(ours.error is not None and theirs.error is not None, "raising", _ended(ours), _ended(theirs))
    require(_bases(ours.error) == _bases(theirs.error), "exception", _ended(ours), _ended(theirs))
    for phrase in phrases:
        require(phrase in str(theirs.error), f"the phrase {phrase!r}", ours.error, theirs.error)
        require(phrase in str(ours.error), f"the phrase {phrase!r}", ours.error, theirs.error)


def _bases(error: BaseException) -> list[str]:
    # Private base classes are left out: no program can catch them by name.
    kinds = [kind for kind in type(error).__mro__ if not kind.__name__.startswith("_")]
    return [f"builtins.{kind.__name__}" if kind.__module__ == "builtins" else kind.__name__ for kind in kinds]


def _ended(result: Outcome) -> str:
    return f"returned {result.value!r}" if result.error is None else f"raised {result.error!r}"


# Jaxprs and StableHLO


def normal(text: str) -> str:
    """The text without addresses, with `jax` for `minijax`, and with plain integers for NumPy's."""
    text = re.sub(r" at 0x[0-9a-f]+", " at 0x", text)
    text = re.sub(r"\bminijax\b", "jax", text)
    # In jax, some parameters are NumPy scalars, depending on how they were computed.
    return re.sub(r"\bnp\.u?int\d+\((-?\d+)\)", r"\1", text)


def _unwrapped(text: str) -> str:
    """The text without line breaks inside brackets: where parameters are NumPy scalars, jax's lines are longer."""
    return re.sub(r"(?<=[\[({])\s+|\s+(?=[\])}])", "", re.sub(r"\s+", " ", text))


_SEED = re.compile(r"(?<!\w)([a-z]+):\w+\[\] = reshard (-?\d\S*:\w+\[\])\n?")
_ON_MANUAL = re.compile(
    r"harding=NamedSharding\(mesh=AbstractMesh\([^()]*\([^()]*Manual[^()]*\)[^()]*\), spec=P\([^()]*\)\)"
)


def _without_meshes(text: str) -> str:
    """The text of a jaxpr without the `reshard` of a gradient's seed, and without the shardings of reductions and
    reshapes inside `shard_map`; variables are renamed, since their letters depend on these equations."""
    while seed := _SEED.search(text):
        after = re.sub(rf"(?<![\w']){seed[1]}(?![\w':=])", seed[2], text[seed.end() :])
        text = text[: seed.start()] + after
    text = _ON_MANUAL.sub("harding=None", _unwrapped(text))
    text = re.sub(r"\{V:[^}]*\}", lambda m: m[0].upper(), text)  # names of mesh axes are not variables
    scopes: list[dict[str, str]] = [{}]

    def anew(found: re.Match) -> str:
        if found[0][0] == "{":
            scopes.append({} if len(found[0]) > 1 else scopes[-1])
        elif found[0] == "}":
            scopes.pop()
        else:
            return scopes[-1].setdefault(found[0], f"v{len(scopes[-1])}")
        return found[0]

    text = re.sub(r"\{lambda|[{}]|(?<![\w'.])[a-z]{1,2}(?![\w'=(])", anew, text)
    return re.sub(r" (?=(v\d+:\S+ )+=)", "\n", text)


def same_lines(where: str, ours: str, theirs: str) -> None:
    if where == "jaxpr" and (_SEED.search(theirs) or _ON_MANUAL.search(_unwrapped(theirs))):
        ours, theirs = _without_meshes(ours), _without_meshes(theirs)
    if ours != theirs and (where != "jaxpr" or _unwrapped(ours) != _unwrapped(theirs)):
        lines = difflib.unified_diff(theirs.splitlines(), ours.splitlines(), "theirs", "ours", lineterm="", n=2)
        raise Mismatch(f"{where}:\n" + "\n".join(lines))


def same_jaxpr(program: Callable, *args: Any) -> None:
    """Requires equal texts of the jaxprs of the function that the program returns."""
    _same_made("jaxpr", jaxpr_text, program, args)


def jaxpr_text(namespace: ModuleType, function: Callable, args: Any) -> str:
    closed = namespace.make_jaxpr(function)(*placed(namespace, args))
    if namespace.__name__ == "minijax":
        check_jaxpr(closed)
    return normal(str(closed))


def check_jaxpr(closed: Any) -> None:
    """Requires that a jaxpr of minijax is well formed and typed."""
    importlib.import_module("minijax.ir.check").check_jaxpr(closed.jaxpr)


def same_text(program: Callable, *args: Any) -> None:
    """Requires equal canonical StableHLO of the function that the program returns."""
    _same_made("StableHLO", lowered_text, program, args)


def _same_made(what: str, make: Callable, program: Callable, args: Any) -> None:
    same_printed(what, lambda side: make(side, run_on(side, program), args), program, args)


def same_printed(what: str, text_on: Callable[[ModuleType], str], *question: Any) -> None:
    """Requires equal texts of both sides; the question holds what they depend on."""
    text = text_on(ours())
    entry = entry_of(what, *map(recorded.told, question), says=text)
    if entry.asks:
        same_lines(what, text, text_on(theirs()))
        entry.confirm()


def lowered_text(namespace: ModuleType, function: Callable, args: Any) -> str:
    return canonical(namespace.jit(function).lower(*placed(namespace, args)).as_text())


# Attributes that only describe arguments and results; attributes that change the program are compared.
_NAMING = ("jax.token", "jax.result_info", "jax.arg_info", "jax.global_constant", "jax.uses_shape_polymorphism")
_ONE_PART = ("mhlo.num_partitions = 1 : i32", "mhlo.num_replicas = 1 : i32")


@functools.cache
def _mlir() -> tuple[ModuleType, ModuleType, Any]:
    ir = importlib.import_module("jaxlib.mlir.ir")
    passes = importlib.import_module("jaxlib.mlir.passmanager")
    extension = importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    context, registry = ir.Context(), ir.DialectRegistry()
    extension.register_dialects(registry)
    context.append_dialect_registry(registry)
    for dialect in ("stablehlo", "sdy", "chlo"):
        importlib.import_module(f"jaxlib.mlir.dialects.{dialect}").register_dialect(context)
    importlib.import_module("jaxlib.mlir.dialects.mhlo").register_mhlo_dialect(context)
    context.load_all_available_dialects()
    context.enable_multithreading(False)
    return ir, passes, context


def canonical(text: str) -> str:
    """StableHLO text simplified by MLIR's own passes, without locations, names and unreached functions."""
    ir, passes, context = _mlir()
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        _drop_idle(ir, module)
        passes.PassManager.parse("builtin.module(symbol-dce,canonicalize,cse)").run(module.operation)
        head = sorted(f"{name} = {value}" for name, value in module.operation.attributes.items())
        symbols = {}
        for operation in module.body.operations:
            for attributes in ("arg_attrs", "res_attrs"):
                _drop_naming(ir, operation, attributes)
            asm = operation.operation.get_asm(enable_debug_info=False, use_local_scope=True)
            symbols[ir.StringAttr(operation.attributes["sym_name"]).value] = asm
    kept = [line for line in head if not line.startswith(("sym_name", *_NAMING)) and line not in _ONE_PART]
    return "\n".join([*kept, *_reached(symbols)])


def _drop_idle(ir: ModuleType, module: Any) -> None:
    """Removes operations that do nothing: constraints over an empty mesh (jax emits them around random keys),
    conversions between equal types (jax's of weak types), and shardings of custom calls on one partition."""
    found = []
    is_whole = ir.IntegerAttr(module.operation.attributes["mhlo.num_partitions"]).value == 1

    def look(operation: Any) -> Any:
        on_no_mesh = operation.name == "sdy.sharding_constraint" and "@empty_mesh" in str(operation)
        if on_no_mesh or (
            operation.name == "stablehlo.convert" and operation.operands[0].type == operation.results[0].type
        ):
            found.append(operation)
        sharding = str(operation.attributes["sdy.sharding"]) if "sdy.sharding" in operation.attributes else ""
        if operation.name == "stablehlo.custom_call" and sharding and (is_whole or "@empty_mesh" in sharding):
            del operation.attributes["sdy.sharding"]
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for operation in found:
        operation.results[0].replace_all_uses_with(operation.operands[0])
        operation.erase()


def _drop_naming(ir: ModuleType, operation: Any, attributes: str) -> None:
    if attributes not in operation.attributes:
        return
    kept = [
        ir.DictAttr.get({item.name: item.attr for item in ir.DictAttr(entry) if item.name not in _NAMING})
        for entry in ir.ArrayAttr(operation.attributes[attributes])
    ]
    if any(len(entry) for entry in kept):
        operation.attributes[attributes] = ir.ArrayAttr.get(kept)
    else:
        del operation.attributes[attributes]


_SYMBOL = re.compile(r'@("[^"]*"|[\w.$-]+)')


def _reached(symbols: dict[str, str]) -> list[str]:
    """The functions in the order in which main reaches them, numbered, equal ones as one."""
    contents: dict[str, str] = {}

    def content(name: str) -> str:
        """A hash of the function's operations and of the functions that it calls."""
        if name not in contents:
            text = _SYMBOL.sub(lambda m: renamed(m, name, content), symbols[name])
            contents[name] = hashlib.sha256(text.encode()).hexdigest()
        return contents[name]

    def renamed(found: re.Match, owner: str, rename: Callable[[str], str]) -> str:
        name = found[1].strip('"')
        if name == owner:
            return "@this"
        return f"@{rename(name)}" if name in symbols else found[0]

    numbers: dict[str, str] = {}
    waiting = sorted(symbols, key=lambda name: name != "main")[:1]
    printed = []

    def number(name: str) -> str:
        if content(name) not in numbers:
            numbers[content(name)] = f"f{len(numbers)}"
            waiting.append(name)
        return numbers[content(name)]

    while waiting:
        name = waiting.pop(0)
        printed.append(_SYMBOL.sub(lambda m, name=name: renamed(m, name, number), symbols[name]))
    return printed


# Tiers


LISTED, EITHER = "listed", "either"


@dataclasses.dataclass(frozen=True)
class Case:
    """A program that returns a function, its arguments, and the tolerance with its reason.

    `raises` gives whether both sides raise, since a misspelt program raises on both: never (False), always (True), if
    raising.txt lists the case (LISTED), or unknown (EITHER), for random programs and for calls that are refused at
    other dtypes.
    """

    name: str
    program: Callable
    args: tuple = ()
    raises: bool | str = dataclasses.field(default=False, kw_only=True)
    tolerance: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if " at 0x" in self.name:
            raise ValueError(f"the name of a case holds an address, which is another in each run: {self.name}")


def sampled(name: str, one_in: int = 10, of: str = "") -> bool:
    """Returns whether `name` is in a share of a table: one in `one_in`, the same in each run; all in the full tier.

    Shares with different `of` are independent.
    """
    cells = os.environ.get("MINIJAX_TEST_CELLS", "0")
    return os.environ.get("MINIJAX_TEST_TIER") == "full" or recorded.share(cells, of + name, one_in)


def check(case: Case, tier: str = "text", jaxpr: bool = True) -> None:
    """Compares types, jaxprs and StableHLO; and values if the texts differ, in this run's tenth, or in tier "full"."""
    if failures := _values_that_differ(_compared_texts(case, tier, jaxpr)):
        raise Mismatch(failures[0].removeprefix(f"{case.name}: "))


def same(program: Callable, raises: bool | str = False, **tolerance: Any) -> Any:
    """Compares the results of a program itself, or its errors; raising.txt lists it by its test.

    Returns what minijax returns.
    """
    case = Case(raising.place()[1], program, raises=raises, tolerance=tolerance)
    return _same_ends(lambda side: run_on(side, program), case)


def check_eager(case: Case) -> None:
    """Compares the values, or the errors, of a case called outside jit."""

    def call(side: ModuleType) -> Any:
        return run_on(side, case.program)(*placed(side, case.args))

    _same_ends(call, case)


def _same_ends(call: Callable[[ModuleType], Any], case: Case) -> Any:
    mine = outcome(lambda: call(ours()))
    entry = entry_of("ends", *_question(case), says=_words(mine, case))
    if entry.asks:
        _same_results(mine, outcome(lambda: call(theirs())), case)
        entry.confirm()
    return mine.value


def expression_case(values: dict[str, Any], text: str) -> Case:
    """A case whose program is an expression; its arguments are the names in `values` that the expression contains."""
    names = [name for name in values if re.search(rf"(?<![\w.']){name}(?![\w'(=])", text)]

    def program(jax: ModuleType, jnp: ModuleType) -> Callable:
        return eval(f"lambda {', '.join(names)}: {text}", {"jax": jax, "jnp": jnp, "np": np})

    return Case(text, program, tuple(values[name] for name in names))


def same_misuse(text: str, values: dict[str, Any], phrase: str) -> None:
    """Requires that the expression raises the same class on both sides, with the phrase."""

    def run(jax: ModuleType, jnp: ModuleType) -> Callable[[], Any]:
        placed = {name: jnp.asarray(value) for name, value in values.items()}
        return lambda: eval(text, {"jax": jax, "jnp": jnp, "np": np, **placed})

    same_refusal(run, phrases=[phrase])


def sweep(cases: Sequence[Case], tier: str = "text", jaxpr: bool = True, group: int = 30) -> None:
    """Compares a table of cases, and names all that differ. Values are compared by groups, each in one program."""
    failures, left = [], []
    for case in cases:
        with _noting(failures, case):
            left += _compared_texts(case, tier, jaxpr)
    # In tier "full" each case is compiled by itself.
    size = 1 if tier == "full" else group
    for asks in (True, False):
        chosen = [each for each in left if each.texts.asks == asks]
        for start in range(0, len(chosen), size):
            failures += _values_that_differ(chosen[start : start + size])
    if failures:
        raise Mismatch(f"{len(failures)} of {len(cases)} cases differ\n" + "\n".join(failures))


@contextlib.contextmanager
def _noting(failures: list[str], case: Case) -> Iterator[None]:
    try:
        yield
    except (Mismatch, recorded.Unconfirmed) as difference:
        failures.append(f"{case.name}: {difference}")


@dataclasses.dataclass(frozen=True)
class _Left:
    """A case whose values are to be compared after its texts: since these differ, or by the draw, unrecorded."""

    case: Case
    texts: recorded.Entry
    differs: bool

    def entry(self, end: Outcome) -> recorded.Entry:
        if not self.differs:
            return recorded.Entry()
        made = entry_of("values", *_question_of_values(self.case, self.texts), says=_words(end, self.case))
        made.asks |= self.texts.asks
        return made

    def same(self, ours: Outcome, theirs: Outcome) -> None:
        # XLA may refuse a module that both sides give it.
        refused = not self.differs and ours.error and theirs.error
        (_same_raised if refused else functools.partial(_same_results, case=self.case))(ours, theirs)


def _values_that_differ(group: Sequence[_Left]) -> list[str]:
    """Compares the values of cases in one program, unless each is recorded; returns the cases that differ."""
    failures, waiting = [], []
    for each, mine in zip(group, _ends(ours(), group), strict=True):
        with _noting(failures, each.case):
            waiting.append((each, mine, each.entry(mine)))
    if not any(entry.asks for *_, entry in waiting):
        return failures
    yours = _ends(theirs(), [each for each, *_ in waiting])
    for (each, mine, entry), its in zip(waiting, yours, strict=True):
        with _noting(failures, each.case):
            try:
                each.same(mine, its)
            except Mismatch:
                # Beside others, XLA may compute last bits in another way.
                each.same(*(_ends(side, [each])[0] for side in (ours(), theirs())))
            entry.confirm()
    return failures


def _ends(side: ModuleType, group: Sequence[_Left]) -> list[Outcome]:
    """The results of cases in one program; if that raises, how each ends by itself."""
    if not group:
        return []
    together = outcome(lambda: _run_jitted(side, [each.case for each in group]))
    if not together.error:
        return [Outcome(value) for value in together.value]
    return [together] if len(group) == 1 else [end for each in group for end in _ends(side, [each])]


def _run_jitted(namespace: ModuleType, cases: Sequence[Case]) -> list:
    functions = [run_on(namespace, case.program) for case in cases]

    def together(*groups: Any) -> list:
        return [function(*args) for function, args in zip(functions, groups, strict=True)]

    return namespace.jit(together)(*(placed(namespace, case.args) for case in cases))


def _compared_texts(case: Case, tier: str, jaxpr: bool) -> list[_Left]:
    """Requires equal types, jaxprs and texts, or equal errors. Returns the case if values are to be compared too."""
    mine = list(_steps(ours(), case, jaxpr))
    says = [_words(end, case) for end in mine[1:] or mine]
    entry = entry_of("texts", *_question(case), jaxpr, tier, says=says)
    differs = recorded.knows("values", _question_of_values(case, entry))
    if entry.asks:
        yours = list(_steps(theirs(), case, jaxpr))
        for at, ends in enumerate(zip(mine, yours, strict=False)):
            if any(end.error for end in ends):
                _same_case_raised(*ends, case)
            elif at == 1:
                same_value(*(end.value for end in ends))
            elif at == 2 and jaxpr:
                same_lines("jaxpr", *(end.value for end in ends))
        # A case that is expected to raise may do so when it is compiled.
        differs = mine[-1].value != yours[-1].value or tier == "full" or _is_to_raise(case)
        entry.confirm()
    is_left = (differs or (entry.asks and entry.drawn)) and not mine[-1].error
    return [_Left(case, entry, differs)] if is_left else []


def _steps(side: ModuleType, case: Case, jaxpr: bool) -> Iterator[Outcome]:
    """The function, its types, its jaxpr and its text, up to the first that raises."""
    end = function = outcome(lambda: run_on(side, case.program))
    yield function
    for step in (_types, jaxpr_text, lowered_text) if jaxpr else (_types, lowered_text):
        if not end.error:
            end = outcome(lambda step=step: step(side, function.value, case.args))
            yield end


# Records


def entry_of(what: str, *question: Any, says: Any) -> recorded.Entry:
    """The next comparison of the running test, with minijax's answer; planted differences are not recorded."""
    if ours().__name__ != "minijax":
        return recorded.Entry(drawn=recorded.drawn(str(question[0])))
    return recorded.entry(what, question, str(says))


def _question(case: Case) -> tuple[str, ...]:
    return case.name, recorded.told(case.program), recorded.told(case.args), str(case.raises), str(case.tolerance)


def _question_of_values(case: Case, texts: recorded.Entry) -> tuple[str, str]:
    return case.name, texts.question


def _words(end: Outcome, case: Case) -> str:
    """How a case ended: its results, or its error with what raising.txt says of it."""
    if not end.error:
        return described(end.value)
    cells = raising.table().get(raising.place()[0], {}) if case.raises == LISTED else {}
    return f"raised {_bases(end.error)} {cells.get(case.name) or cells.get(raising.ANY)}"


def described(value: Any) -> str:
    """A tree and its leaves in words: what `same_value` compares, but floats only to a few digits."""
    if isinstance(value, str):
        return recorded.without_last_digits(normal(value))
    leaves, tree = _tree_util("minijax").tree_flatten(value)
    return f"{normal(str(tree))}\n" + "\n".join(map(_described_leaf, leaves))


def _described_leaf(leaf: Any) -> str:
    kind = _kind(leaf)
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return f"{kind} {recorded.without_last_digits(normal(repr(leaf)))}"
    numbers = recorded.rounded(_numbers(leaf)) if kind in ("array", "numpy array", "numpy scalar") else ""
    return f"{kind} {leaf.dtype}{leaf.shape} {getattr(leaf, 'weak_type', None)} {_sharding(leaf)} {numbers}"


def _types(namespace: ModuleType, function: Callable, args: Any) -> Any:
    return namespace.eval_shape(function, *placed(namespace, args))


def _same_case_raised(ours: Outcome, theirs: Outcome, case: Case) -> None:
    is_slip = isinstance(theirs.error, AttributeError | NameError | ImportError | SyntaxError)
    is_slip &= "unbound axis name" not in str(theirs.error)
    if theirs.error and (is_slip or not case.raises):
        raise theirs.error
    _same_raised(ours, theirs)
    if case.raises == LISTED:
        what = f"{raising.place()[0]}: raising.txt does not list that {case.name!r} raises"
        require(raising.allowed(case.name, theirs.error), what, repr(ours.error), repr(theirs.error))


def _is_to_raise(case: Case) -> bool:
    return raising.listed(case.name) if case.raises == LISTED else case.raises is True


def _same_returned(ours: Any, theirs: Any, case: Case) -> None:
    require(not _is_to_raise(case), f"{raising.place()[0]}: {case.name!r} is to raise", ours, theirs)
    same_value(ours, theirs, **case.tolerance)


def _same_results(ours: Outcome, theirs: Outcome, case: Case) -> None:
    if ours.error or theirs.error:
        _same_case_raised(ours, theirs, case)
    else:
        _same_returned(ours.value, theirs.value, case)
