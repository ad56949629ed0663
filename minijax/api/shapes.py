"""Abstract descriptions of arrays: `ShapeDtypeStruct` and `typeof`."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.base.dtypes import canonicalize_dtype
from minijax.base.naming import known_as
from minijax.ir import types
from minijax.ir.hitypes import AvalQDD, full_type
from minijax.ir.refs import AbstractRef, Ref
from minijax.partition import meshes
from minijax.partition.explicit import sharding_in_type
from minijax.partition.layouts import Format, check_not_auto
from minijax.partition.memory import Device
from minijax.partition.shardings import NamedSharding, PartitionSpec, Sharding
from minijax.run.arrays.array import ArrayImpl, Signature, signature
from minijax.run.clients.client import default_device, single_device_sharding


@known_as("jax.ShapeDtypeStruct")
class ShapeDtypeStruct:
    """Describes an array without its values: its shape and dtype, and optionally its sharding.

    Functions that only need types accept it in place of an array: `jax.eval_shape`, `jax.make_jaxpr`,
    `jax.jit(f).lower`, `jax.linear_transpose`, `jax.export`. It is immutable and hashable; `update(**changes)` returns
    a copy with some fields changed.

    Args:
        shape: The sizes of the axes.
        dtype: The type of the elements.
        sharding: A `jax.sharding.Sharding`, a `Format` with a layout, or a `PartitionSpec` on the context mesh.
        weak_type: Whether the dtype is weak, as that of a Python number.
        manual_axis_type: Inside `jax.shard_map`, how the value varies over the manual mesh axes.
        is_ref: Whether it describes a mutable reference.

    Raises:
        ValueError: If `dtype` is None, or the sharding does not fit the shape.

    Example:
        >>> jax.ShapeDtypeStruct((2, 3), jnp.float32)
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        >>> jax.jit(jnp.sin).lower(jax.ShapeDtypeStruct((4,), jnp.float32)).out_info
        ShapeDtypeStruct(shape=(4,), dtype=float32)
    """

    __slots__ = ("shape", "dtype", "_placed", "_layout", "weak_type", "manual_axis_type", "is_ref", "__weakref__")
    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    is_ref: bool

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Sharding | PartitionSpec | Format | None = None,
        weak_type: bool = False,
        manual_axis_type: types.ManualAxisType | None = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        aval = types.ShapedArray(tuple(shape), dtype, weak_type)
        layout = sharding.layout if isinstance(sharding, Format) else None
        check_not_auto(sharding, "a `ShapeDtypeStruct`")
        values = aval.shape, aval.dtype, _checked(sharding, aval), layout, bool(weak_type), manual_axis_type, is_ref
        for name, value in zip(self.__slots__, values, strict=False):
            object.__setattr__(self, name, value)

    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))
    format = property(lambda self: Format(self._layout, self.sharding))

    @property
    def sharding(self) -> Sharding | None:
        """The sharding; a spec is resolved with the current context mesh. Raises TypeError if no mesh is set."""
        if not isinstance(self._placed, PartitionSpec):
            return self._placed
        mesh = meshes.context_mesh()
        if mesh is None:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. Please use "
                "`jax.set_mesh` to set the mesh context."
            )
        return NamedSharding(mesh, self._placed)

    @staticmethod
    def like(a: Any) -> "ShapeDtypeStruct":
        """Returns the shape, dtype and weak type of a value, and the sharding of a committed array.

        Raises TypeError if it is not a value.
        """
        has_sharding = isinstance(a, ShapeDtypeStruct) or isinstance(a, ArrayImpl) and a.committed
        described_as = described(abstract(a))
        if isinstance(a, ArrayImpl | ShapeDtypeStruct):
            return described_as.update(sharding=a.format if has_sharding else None)
        return described_as

    # They are valid as arguments that a program does not use.
    @property
    def _sig(self) -> Signature:
        place = self.sharding or single_device_sharding(default_device())
        return signature(abstract(self), place, self.sharding is not None)

    @property
    def _raw(self) -> NoReturn:
        raise TypeError(f"Argument of shape {abstract(self).str_short()} of type {type(self)} is not a valid JAX type.")

    @property
    def _base_array(self) -> NoReturn:
        raise TypeError(
            "A ShapeDtypeStruct does not have a value and cannot be used as a constant in a JAX function: pass it as "
            "an argument of `lower` or `eval_shape`, or use an array."
        )

    _value = _raw

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(self, name):
            raise AttributeError(f"'ShapeDtypeStruct' object has no attribute {name!r}")
        if getattr(self, name) != value:
            raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects")

    def __reduce__(self) -> Any:
        return functools.partial(ShapeDtypeStruct, **self._fields()), ()

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:  # for pickles that jax wrote
        fields = dict(state[1])
        sharding, layout = fields.pop("_sharding"), fields.pop("_dll")
        placed = sharding if layout is None else Format(layout, sharding)
        ShapeDtypeStruct.__init__(self, **fields, sharding=placed)

    def _fields(self) -> dict[str, Any]:
        names = ("shape", "dtype", "weak_type", "manual_axis_type", "is_ref")
        sharding = self._placed if self._layout is None else self.format
        return {**{n: getattr(self, n) for n in names}, "sharding": sharding}

    def update(self, **fields: Any) -> "ShapeDtypeStruct":
        """Returns a copy with some fields changed; unknown fields are ignored.

        Raises ValueError if a `Format` is replaced by a sharding: its layout would be lost.
        """
        own = self._fields()
        if self._layout is not None and not isinstance(fields.get("sharding"), Format | None):
            raise ValueError(
                f"updating ShapeDtypeStruct with a `Format`, {self.format}, needs another `Format` or None, got "
                f"sharding={fields['sharding']}"
            )
        return ShapeDtypeStruct(**{name: fields.get(name, value) for name, value in own.items()})

    def __eq__(self, other):
        return type(other) is ShapeDtypeStruct and self._fields() == other._fields()

    def __hash__(self):
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self):
        text = f"shape={self.shape}, dtype={self.dtype.name}"
        placed = self._placed if meshes.context_mesh() is None else self.sharding
        text += "" if placed is None else f", sharding={placed}"
        text += "" if self._layout is None else f", format={self._layout}"
        text += ", weak_type=True" if self.weak_type else ""
        text += f", manual_axis_type={self.manual_axis_type}" if self.manual_axis_type else ""
        return f"ShapeDtypeStruct({text}{', is_ref=True' if self.is_ref else ''})"


def _checked(spec: Any, aval: types.ShapedArray) -> Sharding | PartitionSpec | None:
    """Checks the sharding of a description; returns a sharding, a spec, or None."""
    sharding = spec.sharding if isinstance(spec, Format) else spec
    if isinstance(sharding, PartitionSpec) and len(sharding) > aval.ndim:
        raise ValueError(
            f"ShapeDtypeStruct: {sharding} is only valid for values of rank at least {len(sharding)}, but was applied "
            f"to a value of rank {aval.ndim}, {aval.str_short()}"
        )
    if sharding is not None and not isinstance(sharding, Sharding | PartitionSpec):
        raise ValueError(
            "sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or "
            f"`jax.experimental.layout.Format`. Got {spec} of type {type(spec)}."
        )
    if isinstance(sharding, NamedSharding):
        sharding.check_compatible_aval(aval.shape)
    return sharding


def typeof(x: Any) -> Any:
    """Returns the type of a value as programs see it: shape, dtype, weak type and, over Explicit mesh axes, sharding.

    Args:
        x: An array, a tracer, a key array, a NumPy array, a Python number, or a `jax.ShapeDtypeStruct`.

    Returns:
        A `jax.core.ShapedArray`; printed, it is short, with `~` before a weak type. While a function is traced, this
        is what is known of `x`.

    Raises:
        TypeError: For a value of another type.

    Example:
        >>> print(jax.typeof(jnp.zeros((2, 3))), jax.typeof(1.0))
        float32[2,3] ~float32[]
        >>> jax.typeof(1.0).weak_type
        True
    """
    if isinstance(x, ShapeDtypeStruct):
        return abstract(x)
    aval = types.checked_type(x)
    if type(x) is ArrayImpl and not x.committed and not aval.has_mesh and (mesh := meshes.abstract_context()):
        return aval.sharded_over(mesh, aval.entries)
    return aval


def abstract(x: Any) -> Any:
    """Returns the abstract value of a value or a `ShapeDtypeStruct`."""
    if isinstance(x, ShapeDtypeStruct):
        space = x.sharding._memory_space if isinstance(x.sharding, Sharding) else Device
        in_type = None if x.sharding is None else sharding_in_type(x.sharding, len(x.shape))
        dtype = canonicalize_dtype(x.dtype, True)
        aval = types.ShapedArray(x.shape, dtype, x.weak_type, sharding=in_type, memory_space=space)
        if x.manual_axis_type:
            aval = aval.update(manual_axis_type=x.manual_axis_type)
        return AbstractRef(aval) if x.is_ref else aval
    if isinstance(x, Ref):
        return x.aval
    if isinstance(x, types.AbstractValue):
        return x
    if type(x) in types.hi_classes:
        return full_type(x)
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return types.ShapedArray(x.shape, canonicalize_dtype(x.dtype, True), getattr(x, "weak_type", False))
    return types.checked_type(x)


def described(aval: Any) -> Any:
    """Returns the `ShapeDtypeStruct` of an abstract value; the type itself if it has no shape."""
    if aval.is_high or aval is types.token_type:
        return aval.aval if isinstance(aval, AvalQDD) else aval
    sharding = kind = None
    if type(aval) is types.ShapedArray:
        sharding, kind = aval.own_sharding, None if aval.manual_axis_type.empty else aval.manual_axis_type
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding, manual_axis_type=kind)


# They can be operands of equations, but not of operations that run.
types.register_value_type(ShapeDtypeStruct, abstract)
