"""jax.experimental.colocated_python.func: functions colocated with devices."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import dtypes, tree
from minijax.base.faces import listing
from minijax.run.arrays.array import ArrayImpl

__all__, __dir__ = listing(__name__, "FunctionInfo Specialization is_prng_key_dtype make_callable")


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A function, its source location, and its signature."""

    fun: Callable[..., Any]
    fun_sourceinfo: str | None
    fun_signature: inspect.Signature | None


@dataclasses.dataclass(frozen=True, slots=True)
class Specialization:
    """The specs of a function's arguments, results and devices that are known before a call."""

    in_specs_treedef: Any = None
    in_specs_leaves: tuple[ShapeDtypeStruct, ...] | None = None
    out_specs_fn: Callable[..., Any] | None = None
    out_specs_treedef: Any = None
    out_specs_leaves: tuple[ShapeDtypeStruct, ...] | None = None
    devices: Any = None

    def update(self, **fields: Any) -> "Specialization":
        """Adds fields. Raises ValueError for a field that is set already."""
        for name in fields:
            if getattr(self, name) is not None:
                raise ValueError(f"{name.removesuffix('_treedef').removesuffix('_leaves')} already specified")
        if fields.get("devices") is not None:
            fields["devices"] = tuple(fields["devices"])
        return dataclasses.replace(self, **fields)


def is_prng_key_dtype(dtype: Any) -> bool:
    """Returns whether `dtype` is a dtype of PRNG keys."""
    return dtype is not None and dtypes.is_extended(dtype) and dtypes.issubdtype(dtype, dtypes.prng_key)


def make_callable(
    fun: Callable[..., Any], fun_sourceinfo: str | None, fun_signature: inspect.Signature | None
) -> Callable[..., Any]:
    """Makes a function of arrays run on their hosts."""
    return _callable(FunctionInfo(fun, fun_sourceinfo, fun_signature), Specialization())


def _callable(info: FunctionInfo, known: Specialization) -> Callable[..., Any]:
    def specialize(
        in_specs: Any = None, out_specs_fn: Callable[..., Any] | None = None, devices: Sequence[Any] | None = None
    ) -> Callable[..., Any]:
        """This function with the specs of (args, kwargs), a function from these to specs of results, and devices."""
        fields: dict[str, Any] = {}
        if in_specs is not None:
            leaves, treedef = tree.flatten(in_specs)
            fields |= dict(in_specs_leaves=tuple(map(_spec, leaves)), in_specs_treedef=treedef)
        if out_specs_fn is not None:
            fields["out_specs_fn"] = out_specs_fn
        if devices is not None:
            fields["devices"] = devices
        return _callable(info, known.update(**fields))

    @functools.wraps(info.fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        return _run(info, known, args, kwargs)

    setattr(run, "specialize", specialize)  # noqa: B010
    return run


def _spec(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)


def _run(info: FunctionInfo, known: Specialization, args: tuple, kwargs: dict[str, Any]) -> Any:
    leaves, treedef = tree.flatten((args, kwargs))
    specs = list(map(_spec, leaves))
    device_lists = {spec.sharding._device_assignment for spec in specs}
    if len(device_lists) > 1:
        raise ValueError(f"All arguments must use the same device list, but got multiple device lists: {device_lists}.")
    devices = known.devices if known.devices is not None else next(iter(device_lists), None)
    if not devices:
        raise ValueError(
            "No devices found. colocated_python function without input arguments must be first specialized with "
            "devices."
        )
    if devices[0].platform != "cpu":
        raise NotImplementedError(
            f"colocated_python: Python cannot run beside devices of platform {devices[0].platform}. Pass arrays "
            "on `colocated_cpu_devices(devices)`"
        )
    if known.out_specs_fn is not None:
        in_args, in_kwargs = treedef.unflatten(specs)
        known.out_specs_fn(*in_args, **in_kwargs)
    results = info.fun(*args, **kwargs)
    for x in tree.tree_leaves(results):
        if not isinstance(x, ArrayImpl):
            raise ValueError(f"colocated_python only supports jax.Array as input and output, but got {type(x)}.")
    return results
