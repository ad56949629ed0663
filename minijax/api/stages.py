"""The stages of a jitted function: wrapped, traced, lowered, compiled."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
    runtime_checkable,
)

from minijax.api.shapes import ShapeDtypeStruct, abstract, described
from minijax.base import config, html, source, tree
from minijax.base.naming import known_as
from minijax.base.thread import thread
from minijax.dispatch.dumps import dump_jaxpr
from minijax.dispatch.executable import Executable, compile_lowered, compile_uncached
from minijax.dispatch.explain import CacheInfo, Explanation, why
from minijax.dispatch.jit import specified
from minijax.dispatch.jitted import Arguments, Engine, Jitted, Memory, TracedFunction
from minijax.dispatch.lowering import LoweredProgram, lower_program, lowering_logged
from minijax.dispatch.operands import argument_type, operands_of, parse
from minijax.dispatch.placement import (
    Placement,
    ProgramOptions,
    Request,
    choose_placement,
    concrete_mesh,
    on_devices,
    over_abstract_context,
)
from minijax.ir.body import argument_paths, check_aliases, leaf_types
from minijax.ir.hitypes import full_type
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.refs import AbstractRef, is_ref
from minijax.ir.trace import Tracer, jaxpr_as_fun
from minijax.ir.types import AbstractValue, ShapedArray, typeof
from minijax.partition.explicit import sharding_in_type
from minijax.partition.layouts import Format, Layout, shown, stored
from minijax.partition.meshes import AbstractMesh, PartitionSpec
from minijax.partition.shardings import NamedSharding
from minijax.primitives.sharding import concrete_sharding
from minijax.run.arrays.array import ArrayImpl, Signature, signature, single_signature
from minijax.run.clients import client
from minijax.run.programs import bindings
from minijax.run.programs.compile import Loaded, hlo_computation, hlo_text, module_cost
from minijax.run.programs.compiled_shardings import has_sharding
from minijax.run.watching import profiler
from minijax.transforms.discharge import checked_write, dereferenced, discharged
from minijax.transforms.lower_types import flat, lower_hi_jaxpr, lower_values


@known_as("jax.stages.ArgInfo")
@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """Describes one argument of a stage: its shape and dtype, and whether it is donated.

    Example:
        >>> jax.jit(jnp.sin).lower(jnp.ones(2)).args_info
        ((ArgInfo(_aval=ShapedArray(float32[2]), donated=False),), {})
    """

    _aval: Any
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class Stage:
    """The trees and types of arguments and results, which each stage takes from the one before."""

    in_tree: Any
    out_tree: Any
    _name: str
    _flat_avals: Sequence[ShapedArray]
    _arg_names: Sequence[str]
    _donated: Sequence[bool]
    _out_avals: Sequence[ShapedArray]
    _out_shardings: Sequence = ()
    _num_final_values = 0  # results before the function's own: the final lo values of mutable arguments

    def _inherit(self, stage: Stage) -> None:
        """Copies the trees and types of the stage before this one."""
        self._name, self.in_tree, self.out_tree = stage._name, stage.in_tree, stage.out_tree
        self._flat_avals, self._donated = stage._flat_avals, stage._donated
        self._out_avals, self._out_shardings = stage._out_avals, stage._out_shardings
        self._num_final_values = stage._num_final_values
        self._arg_names = stage._arg_names

    in_avals = property(lambda self: self.in_tree.unflatten(self._flat_avals))

    @property
    def args_info(self) -> Any:
        """The arguments' tree of `ArgInfo`."""
        return self.in_tree.unflatten(map(ArgInfo, self._flat_avals, self._donated))

    @property
    def out_info(self) -> Any:
        """The results' tree of shapes and dtypes, and of the requested shardings."""
        shapes = [described(a) for a in self._out_avals]
        pairs = zip(shapes, self._out_shardings or (None,) * len(shapes), strict=True)
        return self.out_tree.unflatten([x.update(sharding=s) if s else x for x, s in pairs])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The flat positions of donated arguments."""
        return tuple(i for i, d in enumerate(self._donated) if d)


@known_as("jax._src.stages.Traced")
class Traced(Stage):
    """Holds a function with its jaxpr for one kind of arguments; `jax.jit(f).trace(*args)` returns it.

    `jaxpr` is its program, `out_info` describes its results, and `lower()` is the next stage.

    Example:
        >>> traced = jax.jit(lambda x: 2 * x).trace(jnp.ones(2))
        >>> traced.jaxpr, traced.out_info
        ({ lambda ; a:f32[2]. let b:f32[2] = mul 2.0:f32[] a in (b,) }, ShapeDtypeStruct(shape=(2,), dtype=float32))
    """

    def __init__(self, engine: Engine, traced: TracedFunction, call: Arguments, signatures: Sequence[Signature]):
        self._engine, self._of, self._call = engine, traced, call
        self._signatures = signatures
        self._name, self.in_tree, self.out_tree = engine.name, call.treedef, traced.out_tree
        self._donated = engine.donated(call)
        self._flat_avals = traced.closed.in_avals[len(traced.captured) :]
        self._arg_names = (traced.closed.debug_info.arg_names or ())[len(traced.captured) :]
        self._out_avals = traced.closed.out_avals
        self._out_shardings = specified(engine.shardings(traced, call)[1])
        if layouts := engine.layouts(traced, call)[1]:
            pairs = zip(self._out_shardings or (None,) * len(layouts), layouts, strict=True)
            self._out_shardings = [Format(layout, s) if isinstance(layout, Layout) else s for s, layout in pairs]

    fun_name = property(lambda self: self._name)
    out_avals = property(lambda self: self.out_tree.unflatten(self._out_avals))
    jaxpr = property(lambda self: self._of.closed)

    @property
    def lojax(self) -> Traced:
        """The function on lo values, as it is lowered."""
        return LoTraced(self) if self.jaxpr.is_high else self

    @source.boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the traced jaxpr. Raises TypeError for arguments of another structure or of other types."""
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != self.in_tree:
            raise TypeError(
                f"{self._name}: the traced function takes arguments of the structure {self.in_tree}, got {treedef}"
            )
        return self.out_tree.unflatten(jaxpr_as_fun(self.jaxpr)(*self._of.captured, *leaves))

    def _program_options(self) -> ProgramOptions:
        return self._engine.program_options(self._of, self._call)

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """The StableHLO of the function, by default for the default platform."""
        if not all(map(is_ref, self._of.captured)):
            raise ValueError(
                f"{self._name} captures values of an outer trace, or that change, and cannot be lowered by itself"
            )
        if self.jaxpr.is_high:
            return self.lojax.lower(lowering_platforms=lowering_platforms)
        return self._lowered(tuple(lowering_platforms or ()))

    def _lowered(self, platforms: tuple[str, ...], rules: tuple | None = None) -> Lowered:
        """As `lower`; for a program to be exported, `rules` replace the lowering rules of primitives."""
        options, closed = self._program_options(), self._of.closed
        if rules is not None:
            paths = argument_paths(self.in_tree)
            rows = zip(options.of_arguments(len(paths)), paths, strict=True)
            options = options._replace(export=rules, ins=tuple([r._replace(path=path) for r, path in rows]))
        if any(are_refs := [type(a) is AbstractRef for a in closed.in_avals]):
            options, closed = _of_discharged(options, are_refs), discharged(closed)
        signatures = [*[_signature(x, x.aval) for x in self._of.captured], *self._signatures]
        placement = choose_placement(signatures, options, closed)
        if platforms:
            placement = over_abstract_context(placement)
        if not (platforms or placement.devices):
            raise ValueError(
                "lower: Passing lowering_platforms, to jit(f).trace(*args).lower, is required when only AbstractMesh "
                f"exists in a jitted computation: {placement.mesh} has no devices to tell the platform"
            )
        return Lowered(self, platforms, options, placement, closed)


class LoTraced(Traced):
    """A traced function on lo values: its trees have a list of them for each hi value."""

    def __init__(self, traced: Traced):
        self.high, self.low = traced, lower_hi_jaxpr(traced.jaxpr)
        self._engine, self._of, self._call = traced._engine, traced._of._replace(closed=self.low.closed), traced._call
        self._signatures, self._name = traced._signatures, traced._name
        ins = list(self.low.hi_indices(self.low.in_types))
        self._donated = [traced._donated[i] for i in ins]
        self._arg_names = [traced._arg_names[i] for i in ins] if traced._arg_names else ()
        self._num_final_values = len(flat([a.lo_ty() for a in self.low.last_types]))
        self._flat_avals = self.low.closed.in_avals
        self._out_avals = self.low.closed.out_avals[self._num_final_values :]
        self.in_tree = _with_lists(traced.in_tree, self.low.in_types)
        self.out_tree = _with_lists(traced.out_tree, self.low.out_types)
        shardings = traced._out_shardings
        self._out_shardings = shardings and [shardings[i] for i in self.low.hi_indices(self.low.out_types)]

    def _program_options(self):
        options, low = self.high._program_options(), self.low
        ins = [options.ins[i] for i in low.hi_indices(low.in_types)] if options.ins else ()
        outs = [options.outs[i] for i in low.hi_indices(low.out_types)] if options.outs else ()
        return options._replace(ins=tuple(ins), outs=(*(Request(),) * self._num_final_values, *outs) if outs else ())


def _with_lists(treedef: Any, types: Sequence[Any]) -> Any:
    """The tree with a list of lo values for each leaf of a hi type."""
    return tree.tree_structure(treedef.unflatten([[0] * len(a.lo_ty()) if a.is_high else 0 for a in types]))


def _of_discharged(options: ProgramOptions, are_refs: list[bool]) -> ProgramOptions:
    """The options of a function of references: it takes their values, and returns the final ones after its results."""
    ins = [
        request._replace(donated=request.donated or is_ref)
        for request, is_ref in zip(options.of_arguments(len(are_refs)), are_refs, strict=True)
    ]
    outs = (*options.outs, *(Request(),) * sum(are_refs)) if options.outs else ()
    return options._replace(ins=tuple(ins), outs=outs)


def _checked_dialect(dialect: str | None) -> str | None:
    if dialect in (None, "stablehlo", "hlo"):
        return dialect
    raise ValueError(f"unknown dialect: {dialect}. Programs are there as 'stablehlo' and as 'hlo'.")


def _with_requested_sharding(aval: Any, request: Request) -> Any:
    """The type of an argument with the sharding that is requested for it."""
    sharding = request.sharding
    if type(aval) is not ShapedArray or sharding is None:
        return aval
    return aval.update(sharding=sharding_in_type(sharding, aval.ndim))


def _cost_rows(costs: dict[str, float]) -> list[tuple[str, str]]:
    """The rows of a table; XLA gives negative numbers for what it does not know."""
    names = ("flops", "bytes accessed", "transcendentals")
    return [(name, f"{costs[name]:.4g}") for name in names if costs.get(name, 0) > 0]


@known_as("jax._src.stages.Lowered")
class Lowered(Stage):
    """Holds a function as StableHLO; `jax.jit(f).lower(*args)` returns it.

    `as_text()` returns the program, `cost_analysis()` an estimate of its costs, and `compile()` is the next stage.

    Example:
        >>> print(jax.jit(lambda x: 2 * x).lower(1.0).as_text())
        module @jit__lambda attributes ...
    """

    def __init__(
        self,
        traced: Traced,
        platforms: tuple[str, ...],
        options: ProgramOptions,
        placement: Placement,
        closed: ClosedJaxpr,
    ):
        self._traced, self._platforms, self._options, self._closed = traced, platforms, options, closed
        with lowering_logged(closed, options, placement):
            self._program = lower_program(closed, options, placement, platforms)
        dump_jaxpr(self._program)
        self._inherit(traced)
        requests = options.of_arguments(len(self._flat_avals))[-len(self._flat_avals) :]
        self._flat_avals = list(map(_with_requested_sharding, self._flat_avals, requests))

    @property
    def out_info(self) -> Any:
        """The results' tree of shapes and dtypes, and of the requested shardings."""
        return tree.tree_map(self._placed, super().out_info)

    def _placed(self, described: Any) -> Any:
        """The description of a result without a weak type, its sharding over the devices of the program."""
        sharding, devices = described.sharding, self._program.placement.devices
        if devices and isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
            kind = sharding.memory_kind or devices[0].default_memory().kind
            sharding = sharding.update(mesh=concrete_mesh(sharding.mesh, devices), memory_kind=kind)
        return described.update(weak_type=False, sharding=sharding)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text, with source positions if `debug_info`.

        `dialect`: "stablehlo", the default, or "hlo". Raises ValueError for others.
        """
        if _checked_dialect(dialect) == "hlo":
            return hlo_text(self.compiler_ir("hlo"), debug_info)
        return self._located if debug_info else self._program.module.text

    @html.bundled
    def _repr_mimebundle_(self):
        return html.table(_cost_rows(self.cost_analysis())) + html.folded("StableHLO", html.code(self.as_text()))

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program with source positions: an MLIR module in a context of its own, or for "hlo" an XlaComputation.

        Raises ValueError for other dialects than "stablehlo", the default, and "hlo".
        """
        return hlo_computation(self._located) if _checked_dialect(dialect) == "hlo" else self._ir

    @functools.cached_property
    def _ir(self) -> Any:
        return bindings.ir.Module.parse(self._located, bindings.make_context())

    @functools.cached_property
    def _located(self) -> str:
        return self._program.module.located().text

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of the costs of one run, before optimization."""
        return module_cost(self._program.module.text)

    @source.boundary
    def compile(self, compiler_options: dict[str, Any] | None = None, *, device_assignment: Any = None) -> Compiled:
        """The executable. Raises JaxRuntimeError for an unknown compiler option."""
        options = self._options
        if compiler_options:
            options = options._replace(compiler_options=tuple(sorted(compiler_options.items())))
        program = self._on_devices(device_assignment)
        again = functools.partial(compile_uncached, program, options)
        kind = HighCompiled if isinstance(self._traced, LoTraced) else Compiled
        return kind(self, compile_lowered(program, options), again)

    def _on_devices(self, devices: Sequence[Any] | None) -> LoweredProgram:
        """The program on the assigned devices, which are required for one over an abstract mesh."""
        program, placement = self._program, self._program.placement
        if placement.devices:
            if devices is not None and tuple(devices) != placement.devices:
                ids = [[d.id for d in side] for side in (devices, placement.devices)]
                raise ValueError(
                    "device_assignment passed to `.compile` must match the device_assignment calculated from array "
                    f"shardings and out_shardings. Got device ids passed to compile {ids[0]}, the shardings' {ids[1]}"
                )
            return program
        if devices is None:
            raise RuntimeError(
                f"compile: device_assignment cannot be `None` during compilation of a program over {placement.mesh}, "
                "which has no devices"
            )
        return lower_program(self._closed, self._options, on_devices(placement, tuple(devices)), self._platforms)


_COMPILED = "_name _flat_avals _donated _out_avals _out_shardings _is_placed _written".split()


@known_as("jax._src.stages.Compiled")
class Compiled(Stage):
    """Holds an executable: call it with arguments of exactly the types it was compiled for.

    `jax.jit(f).lower(*args).compile()` returns it. `memory_analysis()` and `cost_analysis()` describe it, and
    `as_text()` returns XLA's optimized program. Raises TypeError for arguments of other types.

    Example:
        >>> compiled = jax.jit(lambda x: 2 * x).lower(1.0).compile()
        >>> float(compiled(3.0))
        6.0
    """

    def __init__(self, lowered: Lowered, executable: Executable, again: Callable[[], Loaded]):
        self._executable, self._again = executable, again
        self._inherit(lowered)
        self._is_placed = lowered._options.device is None  # otherwise arguments are transferred to the device
        self._captured = lowered._traced._of.captured  # references, the leading inputs
        inputs = [*map(typeof, self._captured), *self._flat_avals]
        self._written = [i for i, a in enumerate(inputs) if type(a) is AbstractRef]
        self._flat_avals = [a.inner_aval if type(a) is AbstractRef else a for a in self._flat_avals]
        self._memory = Memory()

    def _state(self) -> dict[str, Any]:
        """The state without the trees and the loaded program, for another process."""
        return {**{name: getattr(self, name) for name in _COMPILED}, "executable": self._executable.state()}

    def _serialized(self) -> bytes:
        """The compiled program for another process; recompiled if it was loaded from a cache, which keeps no copy."""
        return self._executable.loaded.serialized() or self._again().executable.serialize()

    @classmethod
    def _restored(cls, loaded: Loaded, state: dict[str, Any], in_tree: Any, out_tree: Any) -> Compiled:
        """The executable that another process compiled, from its state and the loaded program."""
        self = cls.__new__(cls)
        for name in _COMPILED:
            setattr(self, name, state[name])
        self.in_tree, self.out_tree, self._memory, self._captured = in_tree, out_tree, Memory(), []
        self._executable, self._arg_names = Executable.restored(loaded, state["executable"]), ()
        return self

    def as_text(self) -> str:
        """The optimized HLO."""
        return self._executable.loaded.as_text()

    @html.bundled
    def _repr_mimebundle_(self):
        memory, costs = self.memory_analysis(), self.cost_analysis() or {}
        rows = [
            (name, html.amount(getattr(memory, f"{name}_size_in_bytes"))) for name in ("argument", "output", "temp")
        ]
        devices = ("devices", ", ".join(map(str, self._executable.loaded.devices)))
        return html.table([devices, *rows, *_cost_rows(costs)]) + html.folded(
            "optimized HLO", html.code(self.as_text())
        )

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimate of the costs of one run; None if the platform gives none."""
        return self._executable.loaded.cost_analysis()

    def memory_analysis(self) -> Any:
        """The sizes of arguments, results, temporaries and code."""
        return self._executable.loaded.memory_analysis()

    def runtime_executable(self) -> Any:
        """The jaxlib executable."""
        return self._executable.loaded.executable

    @property
    def out_info(self) -> Any:
        """The results' tree of shapes, dtypes, shardings and layouts."""
        rows = zip(self._out_avals, self._own_results(self._executable.formats()[1]), strict=True)
        return self.out_tree.unflatten([ShapeDtypeStruct(a.shape, a.dtype, sharding=f) for a, f in rows])

    def _own_results(self, of_outs: Sequence) -> Sequence:
        """The part of a property of the executable's results that belongs to the function's own ones."""
        return of_outs[self._num_final_values : self._num_final_values + len(self._out_avals)]

    @property
    def input_shardings(self) -> Any:
        """The shardings of the arguments, as (positional, by keyword); None for an unused one."""
        return self._of_arguments([port.sharding for port in self._executable.ins])

    @property
    def output_shardings(self) -> Any:
        return self.out_tree.unflatten([port.sharding for port in self._own_results(self._executable.outs)])

    @property
    def input_formats(self) -> Any:
        """The layouts and shardings of the arguments, as (positional, by keyword); `Format()` for an unused one."""
        return self._of_arguments(self._executable.formats()[0], Format())

    def _of_arguments(self, of_ins: Sequence, unused: Any = None) -> Any:
        """The arguments' tree of a property of the inputs, with `unused` for unused ones."""
        known = dict(zip(self._executable.used, of_ins, strict=True))
        first = len(self._captured)
        return self.in_tree.unflatten([known.get(first + i, unused) for i in range(self.in_tree.num_leaves)])

    @property
    def output_formats(self) -> Any:
        """The layouts and shardings of the results."""
        return self.out_tree.unflatten(self._own_results(self._executable.formats()[1]))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the executable. Raises TypeError for arguments of another tree or of other types."""
        return self(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        ready, hot = thread.ready, self._memory.hot
        options, since = ready
        if since is not config.epoch[0]:
            options = config.state() if thread.trace is not None else config.make_ready()
            if profiler.is_watching() and thread.trace is None and not options.disable_jit:
                return profiler.call_annotated(f"jit({self._name})", self, args, kwargs)
        elif ready is hot.ready:
            program, raws = hot.find(args, kwargs)
            if program is not None:
                return program(raws)
        try:
            key, operands = parse(options, args, kwargs)
        except Exception:
            leaves, treedef = tree.flatten((args, kwargs))
            if any(map(is_ref, leaves)):
                return self._call_on_values(leaves, treedef)
            self._check(leaves, treedef)
            raise
        run: Any = self._memory.programs.get(key)
        if run is None:
            if self._written:
                return self._call_on_values(*tree.flatten((args, kwargs)))
            self._check(*tree.flatten((args, kwargs)))
            if self._is_placed:
                self._check_shardings(operands)
            run = self._memory.programs.once(key, self._executable.tree_caller, operands, self.out_tree)
        elif hasattr(run, "program") and since is config.epoch[0]:
            self._memory.hot_for(ready).keep(run.program, args, kwargs, operands, ())
        return run(operands)

    def _call_on_values(self, leaves: Sequence, treedef: Any) -> Any:
        """Runs the executable on the values of references, and stores their final values."""
        self._check(leaves, treedef)
        leaves = [*self._captured, *leaves]
        operands, _ = operands_of(dereferenced(leaves))
        self._check_shardings(operands)
        results = self._executable(operands)
        own = len(self._out_avals)
        for i, value in zip(self._written, results[own:], strict=True):
            if is_ref(leaves[i]):
                leaves[i]._value = checked_write("swap", leaves[i], value)
        return self.out_tree.unflatten(results[:own])

    def _check(self, leaves: Sequence, treedef: Any) -> None:
        if treedef != self.in_tree:
            raise TypeError(
                f"Function compiled with input pytree does not match the input pytree it was called with: "
                f"{self._name} was compiled for {self.in_tree}, called with {treedef}. Pass the arguments for which it "
                "was compiled, or compile it for these."
            )
        known = len(self._arg_names) == len(leaves)
        names, wrong = self._arg_names if known else map(str, range(len(leaves))), []
        for x, want, name in zip(leaves, self._flat_avals, names, strict=True):
            if isinstance(x, Tracer):
                raise TypeError(
                    "Cannot apply JAX transformations to a function lowered and compiled for a particular "
                    f"signature. Detected argument '{name}' of {self._name}, a {type(x).__name__}: {x!r}. "
                    "Use the jitted function that was lowered."
                )
            have = argument_type(x)
            if have is not want and (have.shape, have.dtype) != (want.shape, want.dtype):
                types = f"compiled with {want.str_short()} and called with {have.str_short()}"
                wrong.append(f"Argument '{name}' {types}")
        if wrong:
            raise TypeError(
                f"{self._name}: Argument types differ from the types for which this computation was compiled. "
                "The mismatches are:\n"
                + "\n".join([*wrong, "Convert the arguments, compile it for these types, or call the jitted function."])
            )

    def _check_shardings(self, arrays: Sequence[Any]) -> None:
        rows = [(i, arrays[i], port) for i, port in zip(self._executable.used, self._executable.ins, strict=True)]
        rows = [(i, x, port) for i, x, port in rows if x._sig.committed]
        wrong = [(i, x, x.sharding, port.sharding) for i, x, port in rows if not has_sharding(x._sig, port.sharding)]
        self._raise_mismatches("sharding", wrong)
        wrong = [(i, x, x.format.layout, p.layout) for i, x, p in rows if x._sig.layout != p.layout]
        self._raise_mismatches("layout", [(i, x, have, shown(want, x.ndim)) for i, x, have, want in wrong])

    def _raise_mismatches(self, what: str, wrong: Sequence[tuple]) -> None:
        """Raises ValueError for arguments with another sharding or layout, as (number, array, passed, required)."""
        texts = [
            f"Argument {i} of {self._name} with shape {x.aval.str_short()}:\n  Passed {what}: {have}\n"
            f"  Required {what}: {want}"
            for i, x, have, want in wrong
        ]
        if texts:
            raise ValueError(
                f"Computation was compiled for input {what}s that disagree with the {what}s of arguments "
                f"passed to it. Here are the {len(texts)} mismatches:\n" + "\n".join(texts)
            )


class HighCompiled(Compiled):
    """An executable of a function with arguments or results of hi types."""

    def __init__(self, lowered: Lowered, executable: Executable, again: Callable[[], Loaded] | None = None):
        super().__init__(lowered, executable, again)
        self._lo: LoTraced = lowered._traced  # pyright: ignore

    def __call__(self, *args, **kwargs):
        leaves, treedef = tree.flatten((args, kwargs))
        types, low = [full_type(x) for x in leaves], self._lo.low
        values = flat(lower_values(types, leaves))
        self._check(values, _with_lists(treedef, types))
        operands, _ = operands_of(values)
        self._check_shardings(operands)
        return self._lo.high.out_tree.unflatten(low.raise_values(leaves, self._executable(operands)))


def _signatures(x: Any, aval: Any) -> list[Signature]:
    """The signature of an argument, or those of its lo values."""
    if not aval.is_high:
        return [_signature(x, aval)]
    values = aval.lo_ty() if isinstance(x, AbstractValue) else lower_values([aval], [x])[0]
    return [_signature(v, a) for v, a in zip(values, aval.lo_ty(), strict=True)]


def _signature(x: Any, aval: ShapedArray | AbstractRef) -> Signature:
    if type(aval) is AbstractRef:
        return _signature(x._value if is_ref(x) else x, aval.inner_aval)
    sharding = getattr(x, "sharding", None) if isinstance(x, ShapeDtypeStruct) else None
    if isinstance(sharding, PartitionSpec):
        sharding = concrete_sharding("lower", "ShapeDtypeStruct", sharding)
    if sharding is not None:
        return signature(aval, sharding, True, stored(x._layout, aval.ndim))
    return x._sig if isinstance(x, ArrayImpl) else single_signature(aval, client.default_device(), False)


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class _OneClass(type):
    """Counts the functions that the library jits, which jax jits as users do, among the instances."""

    __instancecheck__: Any = lambda cls, instance: isinstance(instance, Jitted)


@known_as("jaxlib._jax.PjitFunction")
class PjitFunction(Jitted, Generic[P, R], metaclass=_OneClass):
    """A function jitted by the user, with its stages."""

    __slots__ = ()
    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __get__(self, instance: None, owner: Any = None) -> Self: ...
        @overload
        def __get__(
            self: PjitFunction[Concatenate[Any, Q], R], instance: object, owner: Any = None
        ) -> PjitFunction[Q, R]: ...

    @property
    def __signature__(self) -> inspect.Signature:
        return self._engine.signature or inspect.signature(self._engine.fun)

    def __reduce__(self) -> Any:
        """Pickles the function by its name if its module has it; in `__main__` by value, for other processes."""
        owner = sys.modules.get(self.__module__) if self.__module__ != "__main__" else None
        if owner is not None and getattr(owner, self.__qualname__, None) is self:
            return self.__qualname__
        return type(self), (self._engine,), self.__dict__

    @source.boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function's jaxpr for these arguments, or for `ShapeDtypeStruct`s in their place."""
        engine = self._engine
        call = engine.flatten(args, kwargs)
        names = functools.partial(engine.argument_names, call)
        avals = leaf_types(engine.fun, call.leaves, abstract, names)
        check_aliases(engine.fun, engine.purpose, call.leaves, names)
        signatures = [s for x, aval in zip(call.leaves, avals, strict=True) for s in _signatures(x, aval)]
        return Traced(engine, engine.traced_for(avals, call._replace(leaves=())), call, signatures)

    @source.boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """As `trace(...).lower()`."""
        return self.trace(*args, **kwargs).lower()

    @source.boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forgets the traces and programs of this function."""
        self._engine.memory.clear()

    def cache_info(self) -> CacheInfo:
        """The number of traces of this function so far, and of cached traces and programs."""
        memory = self._engine.memory
        return CacheInfo(memory.count, len(memory.traces), len(memory.programs))

    def why(self) -> Explanation | None:
        """Why this function was last traced or compiled: the nearest earlier call and the differences; or None."""
        return why(self._engine.fun, self._engine.memory.number)

    def _cache_size(self) -> int:
        return len(self._engine.memory.programs)


# The functions that this library jits, which are made below this module, have the same stages.
for _stage in ("trace", "lower", "eval_shape", "clear_cache"):
    setattr(Jitted, _stage, getattr(PjitFunction, _stage))


CompilerOptions = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """Is the protocol of jitted functions, which can be traced and lowered without being run.

    Example:
        >>> isinstance(jax.jit(jnp.sin), jax.stages.Wrapped)
        True
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        raise NotImplementedError

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function's jaxpr for these arguments."""
        raise NotImplementedError

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function's StableHLO for these arguments."""
        raise NotImplementedError
