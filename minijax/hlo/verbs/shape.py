"""Verbs that create arrays and that rearrange them at static indices."""

from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.hlo.sizes import Sizes, are_known, has_sizes
from minijax.hlo.spell import int_list, physical, results_of, suffix_of, type_of
from minijax.hlo.writer import Avals, Ints, Names
from minijax.ir.types import Name, ShapedArray

_TWO_BITS = frozenset((dtypes.int2, dtypes.uint2))


class Shape(Sizes):
    """Filled arrays, random bits, and operations on axes."""

    # ---- filled arrays ----------------------------------------------------------------------------

    def full(self, value: Any, aval: ShapedArray) -> Name:
        """An array with one value everywhere."""
        aval = physical(aval)
        if not aval.shape:
            return self.constant(value, aval)
        single = ShapedArray((), aval.dtype)
        return self.broadcast_in_dim(self.constant(value, single), single, aval, ())

    def zeros(self, aval: ShapedArray) -> Name:
        return self.full(0, aval)

    def iota(self, dim: int, aval: ShapedArray) -> Name:
        if has_sizes(aval):
            return self.sized("dynamic_iota", (), (), [aval.shape], aval, f", dim = {dim}")
        return self.assign(f"stablehlo.iota dim = {dim} : {type_of(aval)}")

    def rng_bit_generator(
        self, key: Name, key_aval: ShapedArray, out: ShapedArray, algorithm: str = "DEFAULT"
    ) -> list[Name]:
        """Returns the new state and the bits; `algorithm` is DEFAULT, THREE_FRY or PHILOX."""
        if has_sizes(out):
            text = (
                f"stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator({key}, {self.size_list(out.shape)}) "
                f"{{api_version = 2 : i32, rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}"
            )
            return self.results(text, (key_aval, self.list_type(out.ndim)), (key_aval, out))
        left, right = self._stemmed("output_state"), self._stemmed("output")
        self.line(
            f"{left}, {right} = stablehlo.rng_bit_generator {key}, algorithm = {algorithm} : "
            f"({type_of(key_aval)}) -> {results_of((key_aval, out))}"
        )
        return [left, right]

    def rng_uniform(self, low: Name, high: Name, aval: ShapedArray, out: ShapedArray) -> Name:
        """Numbers from XLA's stateful generator in the interval from `low` to `high`, which are scalars."""
        sizes = ShapedArray((out.ndim,), dtypes.int64)
        dims = self.constant(np.array(out.shape, np.int64), sizes)
        return self.result(f"stablehlo.rng {low}, {high}, {dims}, distribution = UNIFORM", (aval, aval, sizes), out)

    # ---- shape ------------------------------------------------------------------------------------

    def broadcast_in_dim(self, x: Name, aval: ShapedArray, out: ShapedArray, dims: Ints) -> Name:
        """Axis i of `x` becomes axis `dims[i]` of the result."""
        if suffix := suffix_of(aval):
            dims = (*dims, *range(out.ndim, out.ndim + len(suffix)))
        attrs = f", dims = {int_list(tuple(dims))}"
        if has_sizes(out):
            return self.sized("dynamic_broadcast_in_dim", (x,), (aval,), [physical(out).shape], out, attrs)
        return self.map_to("broadcast_in_dim", x, aval, out, attrs)

    def broadcast_to(self, x: Name, aval: ShapedArray, shape: tuple[int, ...]) -> Name:
        """Broadcasts as NumPy: the axes of `x` are the trailing ones, and axes of size 1 are repeated."""
        out = ShapedArray(shape, aval.dtype)
        return self.broadcast_in_dim(x, aval, out, range(len(shape) - aval.ndim, len(shape)))

    def reshape(self, x: Name, aval: ShapedArray, out: ShapedArray) -> Name:
        if has_sizes(out):
            return self.sized("dynamic_reshape", (x,), (aval,), [physical(out).shape], out)
        return self.map_to("reshape", x, aval, out)

    def transpose(self, x: Name, aval: ShapedArray, out: ShapedArray, permutation: Ints) -> Name:
        if suffix := suffix_of(aval):
            permutation = (*permutation, *range(aval.ndim, aval.ndim + len(suffix)))
        return self.map_to("transpose", x, aval, out, f", dims = {int_list(tuple(permutation))}")

    def slice(
        self, x: Name, aval: ShapedArray, out: ShapedArray, start: Ints, limit: Ints, strides: Ints | None = None
    ) -> Name:
        strides = strides or (1,) * aval.ndim
        if has_sizes(out) or not are_known((*start, *limit)):
            return self._sized_slice(x, aval, out, start, limit, strides)
        parts = [f"{a}:{b}" if s == 1 else f"{a}:{b}:{s}" for a, b, s in zip(start, limit, strides, strict=True)]
        parts += [f"0:{d}" for d in suffix_of(aval)]
        return self.map_to("slice", x, aval, out, f" [{', '.join(parts)}]")

    def _sized_slice(self, x, aval, out, start, limit, strides):
        suffix = suffix_of(aval)
        lists = (*start, *(0,) * len(suffix)), (*limit, *suffix), (*strides, *(1,) * len(suffix))
        return self.sized("real_dynamic_slice", (x,), (aval,), lists, out)

    def concatenate(self, operands: Names, ins: Avals, out: ShapedArray, dim: int) -> Name:
        if out.dtype in _TWO_BITS and self.platform == "cpu":  # XLA crashes on it
            wide = [ShapedArray(a.shape, dtypes.int8) for a in (*ins, out)]
            operands = [self.map_to("convert", x, a, w) for x, a, w in zip(operands, ins, wide, strict=False)]
            return self.map_to("convert", self.concatenate(operands, wide[:-1], wide[-1], dim), wide[-1], out)
        return self.result(f"stablehlo.concatenate {', '.join(operands)}, dim = {dim}", ins, out)

    def reverse(self, x: Name, aval: ShapedArray, dims: Ints) -> Name:
        return self.unary("reverse", x, aval, f", dims = {int_list(tuple(dims))}")
