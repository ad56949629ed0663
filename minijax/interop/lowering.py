"""Users' lowering rules: functions to trace, or to build operations with MLIR's bindings, and calls of FFI targets."""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from minijax.base import cache, config, native
from minijax.base.symbolic.solver import variables_of
from minijax.composed.callbacks.callback import HostFunction
from minijax.composed.callbacks.ffi import attribute, minor_to_major
from minijax.hlo import spell
from minijax.hlo.emitter import Emitter, constant_writers, ordered_in
from minijax.hlo.module import lower_jaxpr
from minijax.hlo.program import plain_program
from minijax.hlo.splice import splice
from minijax.ir import context
from minijax.ir.effects import ordered_effects
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from minijax.ir.primitive import Primitive
from minijax.ir.rules import no_lowering
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import AbstractValue, ShapedArray, token_type as token_aval, typeof
from minijax.partition.layouts import Layout
from minijax.partition.meshes import AbstractMesh, Mesh
from minijax.run.clients import client
from minijax.run.programs.bindings import context as mlir_context, extension, func, ir, stablehlo
from minijax.transforms.discharge import discharged

_ignores_forward_compatibility = config.option("jax_export_ignore_forward_compatibility")

# ---- the contexts of rules ---------------------------------------------------------------------------


class TokenSet:
    """The tokens of ordered effects."""

    def __init__(self, tokens: Any = ()):
        self._tokens = dict(tokens)

    def __len__(self):
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        return self._tokens[effect]

    def effects(self) -> set:
        return set(self._tokens)

    def items(self) -> tuple:
        return tuple(self._tokens.items())

    def tokens(self) -> tuple:
        return tuple(self._tokens.values())

    def update_tokens(self, tokens: "TokenSet") -> "TokenSet":
        return TokenSet({effect: tokens._tokens.get(effect, t) for effect, t in self.items()})


@dataclasses.dataclass(frozen=True)
class SPMDAxisContext:
    """The axis context inside `shard_map`: its mesh and the manual axes."""

    mesh: Mesh
    manual_axes: frozenset = frozenset()


@dataclasses.dataclass(frozen=True)
class ShardingContext:
    """The axis context outside `shard_map`: the number of devices of the program."""

    num_devices: int
    device_assignment: tuple | None = None
    abstract_mesh: AbstractMesh | None = None


AxisContext = SPMDAxisContext | ShardingContext


def _axis_context(e: Emitter) -> AxisContext:
    """The axis context of the emitter's position; in `shard_map` the mesh is the user's, with its types of axes."""
    if e.manual is None:
        return ShardingContext(e.num_partitions)
    inner, axes = e.manual
    is_users = e.mesh is not None and e.mesh.axis_names == inner.axis_names
    return SPMDAxisContext(e.mesh if is_users else inner, axes)


@dataclasses.dataclass(frozen=True)
class LoweringParameters:
    """The options of a lowering."""

    override_lowering_rules: tuple | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


class ShapePolyLoweringState:
    """The dimension variables of a module, which are the first arguments of its functions."""

    def __init__(self, dim_vars: tuple[str, ...], lowering_platforms: tuple[str, ...] | None):
        self.has_platform_index_argument = len(lowering_platforms or ()) > 1
        self.uses_dim_vars = bool(dim_vars)
        self.dim_vars = ("_platform_index",) * self.has_platform_index_argument + tuple(dim_vars)


DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3


@dataclasses.dataclass
class ModuleContext:
    """The module that a rule builds in."""

    module: Any
    context: Any
    ip: Any
    symbol_table: Any
    platforms: Sequence[str]
    keepalives: list = dataclasses.field(default_factory=list)
    host_callbacks: list = dataclasses.field(default_factory=list)
    axis_context: Any = ShardingContext(1)
    lowering_parameters: LoweringParameters = LoweringParameters()
    shape_poly_state: ShapePolyLoweringState | None = None

    @property
    def backend(self) -> Any:
        return self.get_backend()

    def get_backend(self) -> Any:
        return client.get_client(self.platforms[0])

    def add_keepalive(self, keepalive: Any) -> None:
        self.keepalives.append(keepalive)

    replace = dataclasses.replace


@dataclasses.dataclass
class LoweringRuleContext:
    """The first argument of a lowering rule: types, tokens, and the module that it builds in."""

    module_context: ModuleContext
    name_stack: Any
    traceback: Any
    primitive: Primitive | None
    avals_in: Sequence[AbstractValue]
    avals_out: Any
    tokens_in: TokenSet
    tokens_out: TokenSet | None
    const_lowering: dict
    axis_size_env: dict | None = None
    dim_var_values: Sequence = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        if self.tokens_out is not None:
            raise AssertionError("Should only set `tokens_out` once.")
        self.tokens_out = tokens_out

    replace = dataclasses.replace

    def is_forward_compat(self) -> bool:
        return False


# ---- registering -------------------------------------------------------------------------------------

LoweringRule = Callable[..., Any]
_ALIASES = {"gpu": ("cuda", "rocm")}


def register_lowering(
    prim: Primitive, rule: LoweringRule, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> None:
    """Sets the lowering rule of a primitive, for one platform or for those without a rule of their own.

    The rule, `(context, *operands, **params) -> results`, takes and returns MLIR values, or is a `lower_fun`. Its
    operations are in a function of their own unless `inline`.
    """
    known = client.known_platforms()
    if platform is not None and platform not in known:
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
            f"platforms are: {', '.join(sorted(known))}."
        )
    rules = prim.__dict__.setdefault("lowerings", {})
    for name in _ALIASES.get(platform, (platform,)):
        rules[name] = rule, inline
    prim.lower, prim.prints_alike = functools.partial(by_rules, prim, rules), False


def by_rules(
    prim: Primitive, rules: dict, e: Emitter, ins: Sequence, outs: Sequence, /, *operands: str, **params: Any
) -> Any:
    """Lowers an operation by its rule for the platform; `rules` maps platforms to rules, None to that of the others."""
    registered = (rules.get(e.platform) if rules.keys() - {None} else None) or rules.get(None)
    if registered is None:
        own = type(prim).lower or no_lowering(prim, e.platform)
        return own(prim, e, ins, outs, *operands, **params)
    rule, inline = registered
    if isinstance(rule, lower_fun):
        write = functools.partial(rule.write, e, ins, params)
    else:
        write = functools.partial(_write, prim, rule, e, ins, outs, params)
    ordered = sorted(ordered_effects.filter_in(prim.typed(ins, params)[1]), key=str)
    if inline or ordered:
        return write(*operands, ordered=ordered)
    key = prim, cache.key(tuple(params.items()))
    return e.call_shared(prim.name, key, operands, ins, outs, functools.partial(write, ordered=()))


class lower_fun:
    """The lowering rule that traces `fun(*operands, **params)`; it returns a list if `multiple_results`."""

    def __init__(self, fun: Callable, multiple_results: bool = True):
        self.fun, self.multiple_results = fun, multiple_results

    def trace(self, avals: Sequence[AbstractValue], params: Mapping) -> ClosedJaxpr:
        """The function's jaxpr."""

        def flat(*operands):
            results = self.fun(*operands, **params)
            return list(results) if self.multiple_results else [results]

        info = DebugInfo("lower_fun", getattr(self.fun, "__name__", "fun"))
        return discharged(ClosedJaxpr(*trace_to_jaxpr(flat, avals, info)))

    def write(self, e: Emitter, ins: Sequence, params: Mapping, *operands: str, ordered: Sequence = ()) -> list[str]:
        """Emits the function's operations; returns the names of its results."""
        closed = self.trace(ins, params)
        return e.inlined(closed.jaxpr, e.constants(closed), operands)

    def __call__(self, ctx: LoweringRuleContext, *args: Any, **params: Any) -> Sequence:
        """Builds a call of the function, inside another rule."""
        return _call(ctx, self.trace(ctx.avals_in, params), "lower_fun", args)


# ---- lowering jaxprs ---------------------------------------------------------------------------------


class LoweringResult(NamedTuple):
    """A module, and the objects that must live as long as its executable."""

    module: Any
    keepalive: Any
    host_callbacks: list
    shape_poly_state: ShapePolyLoweringState


def _reject(name: str, **options: Any) -> None:
    if unsupported := [key for key, value in options.items() if value]:
        raise NotImplementedError(f"{name} does not take {', '.join(unsupported)} yet")


def lower_jaxpr_to_module(
    module_name: str, jaxpr: ClosedJaxpr, *, num_const_args: int, in_avals: Sequence[AbstractValue],
    ordered_effects: list, platforms: Sequence[str], backend: Any, axis_context: AxisContext,
    donated_args: Sequence[bool], replicated_args: Sequence[bool] | None = None,
    arg_shardings: Sequence | None = None, result_shardings: Sequence | None = None,
    in_layouts: Sequence | None = None, out_layouts: Sequence | None = None,
    arg_names: Sequence[str] | None = None, result_names: Sequence[str] | None = None,
    num_partitions: int = 1, all_default_mem_kind: bool = True,
    input_output_aliases: tuple[int | None, ...] | None = None,
    propagated_out_mem_kinds: tuple[str | None, ...] | None = None, lowering_parameters: LoweringParameters,
) -> LoweringResult:  # fmt: skip
    """The MLIR module of a program, with `jaxpr` as its function `main`.

    Raises NotImplementedError for several platforms, layouts, memory kinds and the caller's lowering rules.
    """
    _reject(
        "lower_jaxpr_to_module",
        num_const_args=num_const_args,
        platforms=len(platforms) > 1,
        in_layouts=any(in_layouts or ()),
        out_layouts=any(out_layouts or ()),
        input_output_aliases=any(a is not None for a in input_output_aliases or ()),
        propagated_out_mem_kinds=any(propagated_out_mem_kinds or ()),
        override_lowering_rules=lowering_parameters.override_lowering_rules,
    )
    closed = discharged(jaxpr)
    program = plain_program(module_name, closed, platforms=platforms, arg_names=arg_names, result_names=result_names)
    donated, unspecified = donated_args or (False,) * len(program.ins), (None,) * len(program.ins)
    ins = [
        port._replace(sharding=sharding, donated=is_donated)
        for port, sharding, is_donated in zip(program.ins, arg_shardings or unspecified, donated, strict=True)
    ]
    shardings = result_shardings or (None,) * len(program.outs)
    outs = [port._replace(sharding=sharding) for port, sharding in zip(program.outs, shardings, strict=True)]
    variables = variables_of([a.shape for a in jaxpr.in_avals if isinstance(a, ShapedArray)])
    text = lower_jaxpr(
        program._replace(ins=tuple(ins), outs=tuple(outs), num_partitions=num_partitions, variables=variables)
    ).text
    module = ir.Module.parse(text, mlir_context())
    return LoweringResult(module, [], [], ShapePolyLoweringState((), tuple(platforms)))


def lower_jaxpr_to_fun(
    ctx: ModuleContext, name: str, jaxpr: ClosedJaxpr, effects: Sequence, *, num_const_args: int,
    main_function: bool = False, replicated_args: Sequence[bool] | None = None,
    in_avals: Sequence[AbstractValue], arg_shardings: Sequence | None = None,
    result_shardings: Sequence | None = None, use_sharding_annotations: bool = True,
    input_output_aliases: Sequence[int | None] | None = None, xla_donated_args: Sequence[bool] | None = None,
    arg_names: Sequence[str | None] | None = None, result_names: Sequence[str] | None = None,
    arg_memory_kinds: Sequence[str | None] | None = None,
    result_memory_kinds: Sequence[str | None] | None = None, arg_layouts: Sequence | None = None,
    result_layouts: Sequence | None = None, propagated_out_mem_kinds: tuple[str | None, ...] | None = None,
) -> Any:  # fmt: skip
    """Adds a function that holds `jaxpr` to the module; tokens of ordered effects are its first arguments.

    Raises NotImplementedError for shardings, layouts, memory kinds and aliases.
    """
    _reject(
        "lower_jaxpr_to_fun", num_const_args=num_const_args,
        **{key: any(x is not None and x is not False for x in values or ()) for key, values in dict(
            arg_shardings=arg_shardings, result_shardings=result_shardings, arg_layouts=arg_layouts,
            result_layouts=result_layouts, input_output_aliases=input_output_aliases,
            xla_donated_args=xla_donated_args, arg_memory_kinds=arg_memory_kinds,
            result_memory_kinds=result_memory_kinds, propagated_out_mem_kinds=propagated_out_mem_kinds,
        ).items()},
    )  # fmt: skip
    program = plain_program(name, discharged(jaxpr), platforms=ctx.platforms, result_names=result_names)
    text = lower_jaxpr(program).text
    symbol = merge_mlir_modules(ctx.module, name, ir.Module.parse(text, ctx.context))
    (function,) = [op for op in ctx.module.body.operations if op.attributes["sym_name"].value == symbol]
    if main_function:
        function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    return function


def _call(ctx: LoweringRuleContext, closed: ClosedJaxpr, name: str, args: Sequence) -> list:
    """Builds a call of a function that holds a jaxpr; returns the values of its results."""
    results, tokens = _call_in_module(ctx.module_context, closed, name, ctx.tokens_in, args)
    if tokens:
        ctx.set_tokens_out(tokens)
    return results


def _call_in_module(ctx: ModuleContext, closed: ClosedJaxpr, name: str, tokens: TokenSet, args: Sequence) -> tuple:
    ordered = ordered_in(closed.jaxpr)
    function = lower_jaxpr_to_fun(ctx, name, closed, ordered, num_const_args=0, in_avals=closed.in_avals)
    operands = [*map(tokens.get, ordered), *ir_tree_registry.flatten(list(args))[0]]
    called = ir.FlatSymbolRefAttr.get(function.name.value)
    results = list(func.CallOp(function.type.results, called, operands).results)
    return results[len(ordered) :], TokenSet(zip(ordered, results, strict=False))


def jaxpr_subcomp(
    ctx: ModuleContext,
    jaxpr: Jaxpr,
    name_stack: Any,
    tokens: TokenSet,
    consts_for_constvars: Sequence,
    *args: Any,
    dim_var_values: Sequence,
    const_lowering: dict,
    outer_traceback: Any,
) -> tuple[Sequence, TokenSet]:
    """Builds the operations of a jaxpr in a function of their own; returns the results and the new tokens."""
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]))
    results, after = _call_in_module(ctx, closed, "jaxpr_subcomp", tokens, [*consts_for_constvars, *args])
    return tuple(results), tokens.update_tokens(after)


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Any, name: str, backend: Any = None, call_jaxpr: ClosedJaxpr | Jaxpr
) -> list:
    """The lowering rule of a primitive that calls its parameter `call_jaxpr`."""
    return _call(ctx, call_jaxpr if isinstance(call_jaxpr, ClosedJaxpr) else ClosedJaxpr(call_jaxpr), name, args)


# ---- host callbacks -------------------------------------------------------------------------------


class _HostCall(HostFunction):
    """A host callback that a rule builds."""

    name = "python_callback"
    ordered_effect = "its token"

    def __init__(self, callback: Callable, is_ordered: bool, has_side_effect: bool):
        self.callback, self._is_ordered, self._has_side_effect = callback, is_ordered, has_side_effect

    def is_ordered(self, params):
        return self._is_ordered

    def effects(self, *avals, **params):
        return frozenset(["effect"] * self._has_side_effect)

    def function(self, params):
        return lambda *arrays: list(self.callback(*arrays))


def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable[..., Sequence], token: Any, operands: Sequence,
    operand_avals: Sequence[AbstractValue], result_avals: Sequence[AbstractValue], *, has_side_effect: bool,
    returns_token: bool = True, partitioned: bool = False, sharding: Any = None,
) -> tuple[Sequence, Any, Any]:  # fmt: skip
    """Builds a call of `callback`, a function of NumPy arrays that returns a sequence of arrays of `result_avals`.

    Returns the results, the token after the given one (None without), and an object that must live as long as the
    program. With `partitioned` each device calls it on its shard. Raises NotImplementedError for a `sharding`.
    """
    _reject("emit_python_callback", sharding=sharding)
    e, module = Emitter(ctx.module_context.platforms[0]), ctx.module_context
    e.callbacks = module.host_callbacks
    call, tokens = _HostCall(callback, token is not None, has_side_effect), [] if token is None else [token_aval]

    def body(names):
        e.tokens = dict(zip([call.ordered_effect], names[: len(tokens)], strict=False))
        results = call.lower(e, operand_avals, result_avals, *names[len(tokens) :], partitioned=partitioned)
        return [*e.tokens.values(), *results]

    e.main([*tokens, *operand_avals], [*tokens, *result_avals], body)
    text = e.written("callback", {}).text()
    results = _inlined(ir.Module.parse(text, module.context), [token, *operands] if tokens else operands)
    after = results.pop(0) if tokens else None
    return results, after if returns_token else None, e.callbacks[-1]


def _inlined(module: Any, operands: Sequence) -> list:
    """Builds the operations of a module's one function on other operands; returns its results."""
    (block,) = module.body.operations[0].regions[0].blocks
    values = dict(zip(block.arguments, operands, strict=True))
    *ops, end = block.operations
    for op in ops:
        named = [op.attributes[i] for i in range(len(op.attributes))]
        attributes = {attribute.name: attribute.attr for attribute in named}
        types = [r.type for r in op.results]
        new = ir.Operation.create(op.operation.name, types, [values[x] for x in op.operands], attributes)
        values.update(zip(op.results, new.results, strict=True))
    return [values[x] for x in end.operands]


# ---- running a rule ----------------------------------------------------------------------------------


def _write(prim, rule, e, ins, outs, params, *operands, ordered):
    tokens = [token_aval] * len(ordered)
    names = [*operands, *map(e.tokens.get, ordered)]
    text = _module_of_rule(prim, rule, e, [*ins, *tokens], [*outs, *tokens], params, ordered)
    results = splice(e, text, names)
    e.tokens.update(zip(ordered, results[len(outs) :], strict=True))
    return results[: len(outs)]


def _module_of_rule(prim, rule, e, ins, outs, params, ordered):
    """The text of a module whose function `rule` holds the operations that the rule builds."""
    shared = mlir_context()
    with shared, ir.Location.unknown(shared):
        module = ir.Module.create()
        types = [aval_to_ir_type(None, a) for a in ins]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("rule", (types, []))
        entry = function.add_entry_block()
        n, eqn_context = len(ins) - len(ordered), e.eqn.ctx if e.eqn else context.current_context()
        operands, tokens = entry.arguments[:n], TokenSet(zip(ordered, entry.arguments[n:], strict=True))
        with ir.InsertionPoint(entry) as point:
            parameters = LoweringParameters(
                for_export=e.for_export, export_ignore_forward_compatibility=_ignores_forward_compatibility.value
            )
            options = _axis_context(e), parameters, ShapePolyLoweringState((), e.platforms)
            symbols = ir.SymbolTable(module.operation)
            module_context = ModuleContext(module, shared, point, symbols, e.platforms, [], e.callbacks, *options)
            ctx = LoweringRuleContext(
                module_context, eqn_context.name_stack, None, prim, tuple(ins[:n]),
                list(outs[: len(outs) - len(ordered)]), tokens, None,
                {}, dim_var_values=[], jaxpr_eqn_ctx=eqn_context,
            )  # fmt: skip
            values = _flat_values(rule(ctx, *operands, **params))
            if ordered:
                values += ctx.tokens_in.update_tokens(ctx.tokens_out or ctx.tokens_in).tokens()
            _check_types(prim, values, outs)
            func.ReturnOp(values)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [v.type for v in values]))
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise ValueError(f"the lowering rule of {prim} built invalid operations: {error}") from error
        return module.operation.get_asm(use_local_scope=True)


def _flat_values(results):
    """The results of a rule (a value, an operation or a nested sequence of them) as a list of values."""
    if isinstance(results, ir.Value):
        return [results]
    if isinstance(results, (ir.OpView, ir.Operation)):
        return list(results.results)
    return [v for r in results for v in _flat_values(r)]


def _check_types(prim, values, outs):
    have, want = [str(v.type) for v in values], list(map(spell.type_of, outs))
    if have != want:
        raise ValueError(f"the lowering rule of {prim} returned values of types {have}; the types are {want}")


# ---- MLIR values, types and attributes ---------------------------------------------------------------


def aval_to_ir_type(ctx: ModuleContext | None, aval: AbstractValue) -> Any:
    """The MLIR type of a value."""
    return ir.Type.parse(spell.type_of(aval))


def aval_to_ir_types(ctx: ModuleContext | None, aval: AbstractValue) -> tuple:
    """As `aval_to_ir_type`, in a tuple."""
    return (aval_to_ir_type(ctx, aval),)


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR element type of a dtype."""
    return ir.Type.parse(spell.element(np.dtype(dtype)))


class ConstantHandler(Protocol):
    """Builds a constant of a registered type."""

    def __call__(self, val: Any, aval: AbstractValue | None) -> Any: ...


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Sets the function that builds constants of a user's type: handler(value, its type or None) -> MLIR value."""
    _constant_handlers[type_] = handler_fun
    constant_writers[type_] = lambda e, value, aval: _write(
        f"a {type_.__name__}", lambda ctx: handler_fun(value, aval), e, [], [aval], {}, ordered=()
    )[0]


def ir_constant(val: Any, *, const_lowering: dict | None = None, aval: AbstractValue | None = None) -> Any:
    """Builds a constant; a Python number has the type that it would have as an operand."""
    if handler := _constant_handlers.get(type(val)):
        return handler(val, aval)
    aval = typeof(val) if aval is None else aval
    _, text = spell.constant(val, aval)
    return stablehlo.constant(ir.Attribute.parse(text))


def ir_constants(val: Any, *, const_lowering: dict | None = None, aval: AbstractValue | None = None) -> tuple:
    """As `ir_constant`, in a tuple."""
    return (ir_constant(val, const_lowering=const_lowering, aval=aval),)


def ir_attribute(val: Any) -> Any:
    """The MLIR attribute of a number, string, sequence or mapping."""
    return ir.Attribute.parse(spell.attribute(val))


def i32_attr(i: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Iterable[int]) -> Any:
    """The attribute `dense<...> : tensor<nxi64>`."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def dense_int_array(values: Sequence[int]) -> Any:
    """The attribute `array<i64: ...>`."""
    return ir.DenseI64ArrayAttr.get(values)


def shape_tensor(ctx: ModuleContext, sizes: Sequence[int]) -> Any:
    """Builds the int32 vector of the sizes of a shape."""
    return ir_constant(np.array(sizes, np.int32), aval=ShapedArray((len(sizes),), np.int32))


def token_type() -> Any:
    """The MLIR type of tokens."""
    return stablehlo.TokenType.get()


ir_tree_registry = native.PyTreeRegistry(enable_none=False, enable_tuple=True, enable_list=True)


def _flattener(name: str) -> Callable[[Iterable], list]:
    def flatten(xs: Iterable) -> list:
        """The leaves of values or types and of tuples of them."""
        _warn_deprecated(name, "mlir.ir_tree_registry.flatten")
        return ir_tree_registry.flatten(list(xs))[0]

    return flatten


flatten_ir_values, flatten_ir_types = _flattener("flatten_ir_values"), _flattener("flatten_ir_types")


def _warn_deprecated(name, better):
    text = f"jax.interpreters.mlir.{name} is deprecated. Use {better} instead."
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def unflatten_ir_values_like_types(xs: Iterable, ys: Sequence) -> list:
    """Values grouped as the types are."""
    _warn_deprecated("unflatten_ir_values_like_types", "treedef.unflatten")
    values = iter(xs)
    return [next(values) if isinstance(t, ir.Type) else tuple(next(values) for _ in t) for t in ys]


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """The text of an MLIR module."""
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))


def module_to_bytecode(module: Any) -> bytes:
    """An MLIR module in the binary form."""
    written: list[bytes] = []

    class _File:
        write = staticmethod(written.append)

    module.operation.write_bytecode(file=_File())
    return b"".join(written)


def merge_mlir_modules(dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None) -> str:
    """Moves the functions of a module into another; returns the new name of its `main`."""
    table = ir.SymbolTable(dst_module.operation) if dst_symtab is None else dst_symtab
    operations = [
        op.operation.clone(ip=ir.InsertionPoint.at_block_begin(dst_module.body)) for op in src_module.body.operations
    ]
    names = {}
    for op in operations:
        old = ir.StringAttr(op.attributes["sym_name"]).value
        op.attributes["sym_name"] = ir.StringAttr.get(sym_name if old == "main" else old)
        op.attributes["sym_visibility"] = ir.StringAttr.get("private")
        names[old] = table.insert(op).value
    for op in operations:
        for old, new in names.items():
            if old != new:
                ir.SymbolTable.replace_all_symbol_uses(old, new, op)
    return names["main"]


class JaxIrContext(ir.Context):
    """An MLIR context of a class that code can import."""


upstream_dialects = ir.DialectRegistry()
extension.register_dialects(upstream_dialects)


def lower_with_sharding_in_types(ctx: LoweringRuleContext, op: Any, aval: ShapedArray) -> Any:
    """Constrains a value in a lowering rule to the sharding of its type.

    Raises NotImplementedError for a type sharded over Explicit axes: results of rules are constrained in any case.
    """
    if aval.has_mesh:
        raise NotImplementedError(f"lower_with_sharding_in_types: constraints on a value of type {aval.str_short()}")
    return op


_TYPED_API = 4  # the API version from which on calls have attributes


def _minor_to_major(layout: Any, aval: Any, what: str) -> Any:
    """Returns a layout as axes, the innermost first: a `Layout`, axes in that order, or None for row-major."""
    if layout is not None and not isinstance(layout, Layout):
        layout = tuple(layout)[::-1]
    return np.array(minor_to_major(layout, aval, what), np.int64)


def _layouts(given: Sequence | None, avals: Sequence, what: str) -> Any:
    rows = [None] * len(avals) if given is None else given
    if len(rows) < len(avals):
        raise ValueError(f"{what} has {len(rows)} layouts for {len(avals)} values")
    index = ir.IndexType.get()
    orders = [_minor_to_major(x, a, what) for x, a in zip(rows, avals, strict=False)]
    return ir.ArrayAttr.get([ir.DenseIntElementsAttr.get(order, type=index) for order in orders])


def _alias(operand: int, result: int, results: int) -> Any:
    where = [result] if results > 1 else []
    return stablehlo.OutputOperandAlias.get(output_tuple_indices=where, operand_index=operand, operand_tuple_indices=[])


def _config_attributes(target: str, config: Any, params: Mapping, version: int) -> dict[str, Any]:
    """Returns the attributes of a call for its `backend_config` and parameters."""
    if version < _TYPED_API:
        if params or isinstance(config, Mapping):
            raise ValueError(
                f"{target}: The use of ffi_call attributes requires a custom call API version of at least "
                f"{_TYPED_API}; got api_version={version}."
            )
        return {"backend_config": ir.StringAttr.get(config or "")}
    if not isinstance(config, Mapping | None):
        raise ValueError(f"{target}: backend_config must be a dictionary for api_version {version}, got {config!r}")
    config = {**(config or {}), **{name: ir_attribute(attribute(name, value)) for name, value in params.items()}}
    return {"backend_config": ir.StringAttr.get(""), spell.TYPED_CONFIG: ir.DictAttr.get(config)}


def build_ffi_lowering_function(
    call_target_name: str, *, operand_layouts: Sequence | None = None, result_layouts: Sequence | None = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    api_version: int = _TYPED_API, has_side_effect: bool = False, result_types: Sequence | None = None,
    result_shapes: Sequence | None = None, called_computations: Sequence[str] = (),
    operand_output_aliases: Mapping[int, int] | None = None, extra_attributes: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Returns a function of a rule's context and operands that emits a call of the target; keywords are attributes.

    Layouts are axes, the innermost first, a `Layout`, or None for row-major. `backend_config` maps names to MLIR
    attributes, or is a string for a target of an API version below 4. Raises ValueError for layouts that do not fit,
    and for attributes of an older target.

    Example:
        >>> rule = jax.ffi.build_ffi_lowering_function("my_target", has_side_effect=True)
        >>> callable(rule)
        True
    """

    def build(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> Any:
        types = [aval_to_ir_type(None, a) for a in ctx.avals_out] if result_types is None else list(result_types)
        version = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1 if api_version >= _TYPED_API else api_version)
        attributes = {
            "call_target_name": ir.StringAttr.get(call_target_name),
            "has_side_effect": ir.BoolAttr.get(has_side_effect),
            "api_version": version,
            "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(name) for name in called_computations]),
            **_config_attributes(call_target_name, backend_config, params, api_version),
        }
        shapes = list(result_shapes or ())
        if result_shapes is not None:
            places = np.arange(len(operands), len(operands) + len(shapes), dtype=np.int64)
            attributes["indices_of_shape_operands"] = ir.DenseIntElementsAttr.get(places)
        if not skip_ffi_layout_processing:
            of_shapes = [ShapedArray(ir.RankedTensorType(x.type).shape, np.int32) for x in shapes]
            rows = (
                ("operand", operand_layouts, [*ctx.avals_in, *of_shapes]),
                ("result", result_layouts, ctx.avals_out),
            )
            for side, given, avals in rows:
                attributes[f"{side}_layouts"] = _layouts(given, avals, f"{call_target_name}: {side}_layouts")
        if operand_output_aliases:
            pairs = [_alias(i, out, len(types)) for i, out in operand_output_aliases.items()]
            attributes["output_operand_aliases"] = ir.ArrayAttr.get(pairs)
        op = ir.Operation.create(stablehlo.CustomCallOp.OPERATION_NAME, types, [*operands, *shapes], attributes)
        for name, value in (extra_attributes or {}).items():
            op.attributes[name] = value
        return op

    return build


def ffi_lowering(call_target_name: str, **options: Any) -> LoweringRule:
    """Returns a lowering rule that calls a target; the equation's parameters are its attributes.

    The options are those of `build_ffi_lowering_function`.

    Example:
        >>> callable(jax.ffi.ffi_lowering("my_target"))
        True
    """
    build = build_ffi_lowering_function(call_target_name, **options)

    def rule(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> list:
        return list(build(ctx, *operands, **params).results)

    return rule
