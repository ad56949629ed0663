"""`jax.ffi`: calls of functions registered with XLA, and control dependencies between values."""

import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, source
from minijax.base.errors import JaxRuntimeError
from minijax.base.util import ByKey
from minijax.composed.callbacks.callback import Foreign, aliases_of, check_aliases, check_method, dtype_of
from minijax.hlo.spell import physical
from minijax.ir.effects import FfiEffect
from minijax.ir.jaxpr import NO_EFFECTS
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, Tracer
from minijax.ir.types import AbstractToken, AbstractValue, ShapedArray, Zero, typeof
from minijax.partition.explicit import sharding_in_type
from minijax.partition.layouts import Layout
from minijax.partition.shardings import Sharding
from minijax.run.arrays.array import ArrayImpl
from minijax.run.programs import host_calls

_EFFECTS = frozenset({FfiEffect()})


class FfiCall(Foreign):
    """Calls the function registered with XLA as `target_name`. Layouts are memory orders of operands and results."""

    name = "ffi_call"
    constrain_results = False

    def typed(self, avals, params):
        return self.declared_types(avals, params)

    def infer(self, *avals, result_avals, **params):
        return list(result_avals)

    def effects(self, *avals, has_side_effect, **params):
        return _EFFECTS if has_side_effect else NO_EFFECTS

    def lower(self, e, ins, outs, *operands, target_name, has_side_effect, input_output_aliases, **params):
        ins, outs, aliases = list(map(physical, ins)), list(map(physical, outs)), dict(input_output_aliases)
        check_aliases(aliases, ins, outs)
        version, legacy_config = params["custom_call_api_version"], params["legacy_backend_config"]
        _check_lowered(target_name, version, legacy_config)
        host_calls.note_ffi_target(target_name)
        config = {name: attribute(name, x) for name, x in params["attributes"]} if version >= 4 else legacy_config
        layouts = dict(operand_layouts=params["input_layouts"], result_layouts=params["output_layouts"])
        how = dict(api_version=min(version, 4), has_side_effect=has_side_effect, aliases=aliases)
        return e.custom_call(target_name, operands, ins, outs, backend_config=config, **how, **layouts)

    def jvp(self, primals, tangents, *, target_name, **params):
        if any(type(t) is not Zero for t in tangents):
            self._refuse_derivative(target_name)
        outs = self.bind_all(primals, dict(target_name=target_name, **params))
        return outs, list(map(Zero.from_primal_value, outs))

    def transpose(self, cts, *operands, target_name, **params):
        self._refuse_derivative(target_name)

    def _refuse_derivative(self, target_name):
        raise ValueError(
            f"The FFI call to `{target_name}` cannot be differentiated. You can use `jax.custom_jvp` or "
            "`jax.custom_vjp` to add support."
        )

    def mapped_params(self, params, has_axis):
        layouts = zip(params["input_layouts"], has_axis, strict=True)
        return {
            "input_layouts": tuple([_with_leading(layout) if axis else layout for layout, axis in layouts]),
            "output_layouts": tuple(map(_with_leading, params["output_layouts"])),
        }


ffi_call_p = FfiCall()
_OF_CALLBACKS = re.compile("xla_(ffi|buffer)_.*python_.*_callback.*")


def _check_lowered(target_name: str, version: int, config: Any) -> None:
    if _OF_CALLBACKS.fullmatch(target_name):
        # XLA would call a callback by a number that was never registered.
        raise ValueError(f"ffi_call: `{target_name}` can only be called by `pure_callback` and similar functions")
    if version < 0:
        raise ValueError(f"ffi_call: custom_call_api_version of `{target_name}` must not be negative, got {version}")
    if not isinstance(config, str | bytes | None):
        raise ValueError(f"ffi_call: legacy_backend_config of `{target_name}` is of an unexpected type: {config!r}")


# ---- attributes --------------------------------------------------------------------------------------


class FrozenDict(ByKey):
    """A hashable dict, for parameters of equations."""

    def __init__(self, items: Mapping):
        self.items = dict(items)
        self.identify(cache.key(self.items))

    def __repr__(self):
        return f"FrozenDict({self.items})"


class HashableArray(ByKey):
    """A hashable NumPy array, for parameters of equations."""

    def __init__(self, array: np.ndarray):
        self.array = np.array(array)
        self.identify(array.dtype, array.shape, array.tobytes())

    def __repr__(self):
        return f"HashableArray({self.array!r})"


def _hashable(name: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return HashableArray(value)
    try:
        if isinstance(value, Mapping):
            return FrozenDict(value)
        hash(value)
    except TypeError:
        raise TypeError(f"Non-hashable keyword argument to ffi_call {name}: {value}") from None
    return value


_LEAVES = bool | int | float | str | bytes | np.generic | np.ndarray | np.dtype


def attribute(name: str, value: Any) -> Any:
    """Converts an attribute for `spell.attribute`. Raises TypeError for types that XLA has no attributes for."""
    if isinstance(value, HashableArray):
        return value.array
    if isinstance(value, FrozenDict | Mapping):
        items = value.items if isinstance(value, FrozenDict) else value
        return {_checked_key(name, key): attribute(f"{name}.{key}", item) for key, item in items.items()}
    if isinstance(value, tuple | list):
        return [attribute(name, item) for item in value]
    if not isinstance(value, _LEAVES) or isinstance(value, np.complexfloating):
        raise TypeError(f"ffi_call: No attribute handler defined for type: {type(value)}, of the attribute {name}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"ffi_call: Python int too large to convert to C long, for the attribute {name}: {value}")
    return value


def _checked_key(name: str, key: Any) -> str:
    if isinstance(key, str):
        return key
    raise TypeError(f"ffi_call: the keys of the attribute {name} must be strings, got {key!r} of type {type(key)}")


# ---- layouts and types -------------------------------------------------------------------------------


def _with_leading(layout: tuple[int, ...]) -> tuple[int, ...]:
    """A minor-to-major layout with a new leading axis."""
    return (*[i + 1 for i in layout], 0)


def minor_to_major(layout: Any, aval: AbstractValue, what: str) -> tuple[int, ...]:
    """Converts a layout to minor-to-major order. Raises ValueError if it does not match the type.

    `layout` is a `Layout`, the axes from major to minor, or None for row-major order.
    """
    ndim = physical(aval).ndim if isinstance(aval, ShapedArray) else 0
    if layout is None:
        return tuple(reversed(range(ndim)))
    if isinstance(layout, Layout):
        if layout.tiling is not None:
            raise ValueError(f"{what}: The FFI does not support layouts with tiling, got {layout}")
        layout = layout.major_to_minor
    try:
        axes = tuple(map(operator.index, layout))
    except TypeError:
        axes = ()
    if sorted(axes) != [*range(ndim)]:
        raise ValueError(f"{what}: a layout of {aval.str_short()} must be a permutation of [0, {ndim}), got {layout}")
    return axes[::-1]


def _layouts(layouts: Sequence | None, avals: Sequence, kind: str, name: str) -> tuple:
    if layouts is None:
        layouts = [None] * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(
            f"The number of {kind}s ({len(avals)}) must equal the number of {name} layouts ({len(layouts)})."
        )
    what = f"ffi_call: {name}_layouts"
    return tuple([minor_to_major(x, a, what) for x, a in zip(layouts, avals, strict=True)])


def _result_type(x: Any, i: int) -> AbstractValue:
    if isinstance(x, AbstractToken | ShapedArray):
        return x
    if isinstance(x, Tracer | ArrayImpl):
        return typeof(x)
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(
            f"All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got {x} at position {i}."
        )
    sharding = getattr(x, "sharding", None)
    sharding_of_type = sharding_in_type(sharding, len(x.shape)) if isinstance(sharding, Sharding) else None
    aval = ShapedArray(tuple(x.shape), dtype_of(x), bool(getattr(x, "weak_type", False)), sharding=sharding_of_type)
    manual = getattr(x, "manual_axis_type", None)
    return aval.update(manual_axis_type=manual) if manual else aval


# ---- the public functions ----------------------------------------------------------------------------


def ffi_call(
    target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False, vmap_method: str | None = None,
    input_layouts: Sequence | None = None, output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None, custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Returns a function of arrays that calls a target registered with XLA; keywords are its attributes.

    `result_shape_dtypes` is an object with a shape and a dtype, or a sequence of them. Layouts specify the memory order
    of the buffers that the target takes: each is a `Layout`, the axes from major to minor, or None.
    `input_output_aliases` maps the numbers of arguments to those of the results that share their memory.
    `vmap_method` is as in `pure_callback`. A target with side effects is called even if its results are not used.
    Targets older than API version 4 are configured by `legacy_backend_config` instead of attributes.

    Raises ValueError for inconsistent options and TypeError for attributes that XLA has no type for. Raises
    JaxRuntimeError when the program is compiled if the target is not registered, and when it runs if the target takes
    other arguments or fails.

    Example:
        >>> results = jax.ShapeDtypeStruct((2, 2), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
        >>> cholesky = jax.ffi.ffi_call("lapack_spotrf_ffi", results)
        >>> program = jax.jit(lambda x: cholesky(x, uplo=np.uint8(ord("L"))))
        >>> "lapack_spotrf_ffi" in program.lower(jnp.eye(2)).as_text()
        True
    """
    check_method(vmap_method)
    if not isinstance(target_name, str):
        raise TypeError(f"ffi_call: target_name must be a string, got {target_name!r}")
    version, is_typed = custom_call_api_version, custom_call_api_version >= 4
    if is_typed and legacy_backend_config is not None:
        raise ValueError(
            f"The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got {version}."
        )
    is_several = isinstance(result_shape_dtypes, Sequence)
    if not is_several:
        result_shape_dtypes = [result_shape_dtypes]
        output_layouts = None if output_layouts is None else [output_layouts]
    results = tuple([_result_type(x, i) for i, x in enumerate(result_shape_dtypes)])
    container = type(result_shape_dtypes) if isinstance(result_shape_dtypes, list) else tuple

    @source.boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not is_typed:
            raise ValueError(
                f"The use of ffi_call attributes requires a custom call API version of at least 4; got {version}."
            )
        operands = list(map(typeof, args))
        aliases = aliases_of(input_output_aliases)
        check_aliases(aliases, operands, results)
        outs = ffi_call_p.bind(
            *args,
            target_name=target_name,
            result_avals=results,
            has_side_effect=has_side_effect,
            vmap_method=vmap_method,
            input_layouts=_layouts(input_layouts, operands, "input argument", "input"),
            output_layouts=_layouts(output_layouts, results, "output", "output"),
            input_output_aliases=tuple(sorted(aliases.items())),
            custom_call_api_version=version,
            legacy_backend_config=legacy_backend_config,
            attributes=tuple([(name, _hashable(name, kwargs[name])) for name in sorted(kwargs)]),
        )
        return container(outs) if is_several else outs[0]

    return wrapped


# ---- order -------------------------------------------------------------------------------------------

_NO_RESULTS = dict.fromkeys(("result_avals", "output_layouts", "input_output_aliases", "attributes"), ())
_CONTROL_DEP = dict(target_name="control_dep", has_side_effect=True, custom_call_api_version=4, **_NO_RESULTS)


def control_dep(src: Any, dst: Any) -> tuple:
    """Makes XLA compute `dst` after `src`. Raises ValueError in derivatives, NotImplementedError under `vmap`.

    Raises JaxRuntimeError for a cycle, here or when the program is compiled.
    """
    if type(src) is type(dst) is DynamicJaxprTracer and src._trace is dst._trace:
        _check_acyclic(src._trace, src.val, dst.val)
    layouts = tuple([tuple(reversed(range(physical(typeof(x)).ndim))) for x in (src, dst)])
    params = dict(input_layouts=layouts, legacy_backend_config=None, vmap_method=None)
    return tuple(ffi_call_p.bind(src, dst, **params, **_CONTROL_DEP))


def _check_acyclic(trace: JaxprTrace, src: Any, dst: Any) -> None:
    """Raises JaxRuntimeError for a cycle within one jaxpr, for which XLA may end the process."""
    order = defaultdict(list)
    for eqn in trace.eqns:
        if eqn.primitive is ffi_call_p and eqn.params["target_name"] == "control_dep":
            order[eqn.invars[1]].append(eqn.invars[0])
    if dst in trace.behind(src, order):
        raise JaxRuntimeError(f"control_dep: a cycle, since {src.aval} is computed after {dst.aval} already")


def schedule(ops: Sequence[Any]) -> None:
    """Makes XLA compute these arrays one after the other; see `control_dep`."""
    for src, dst in itertools.pairwise(ops[i] for i in range(len(ops))):
        control_dep(src, dst)
