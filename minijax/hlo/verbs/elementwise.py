"""Verbs for elementwise operations whose operands and results differ in type."""

from minijax.base import dtypes
from minijax.hlo import spell
from minijax.hlo.spell import physical, suffix_of, type_of
from minijax.hlo.verbs.reduction import Reduction
from minijax.hlo.verbs.shape import Shape
from minijax.hlo.writer import FLAG
from minijax.ir.types import Name, ShapedArray


class Elementwise(Reduction, Shape):
    """Conversions, comparisons and selects; `Writer.unary` and `Writer.binary` emit all others."""

    def convert(self, x: Name, aval: ShapedArray, out: ShapedArray) -> Name:
        return self.map_to("convert", x, aval, out)

    def bitcast_convert(self, x: Name, aval: ShapedArray, out: ShapedArray) -> Name:
        return self.map_to("bitcast_convert", x, aval, out)

    def reduce_precision(self, x: Name, aval: ShapedArray, exponent_bits: int, mantissa_bits: int) -> Name:
        return self.unary("reduce_precision", x, aval, f", format = e{exponent_bits}m{mantissa_bits}")

    def complex(self, real: Name, imag: Name, part: ShapedArray, out: ShapedArray) -> Name:
        """Complex numbers from their parts, which have the type `part`."""
        return self.result(f"stablehlo.complex {real}, {imag}", (part, part), out)

    def compare(self, direction: str, x: Name, y: Name, aval: ShapedArray, kind: str | None = None) -> Name:
        """`direction`: EQ, NE, LT, ...; `kind`: FLOAT, TOTALORDER, SIGNED or UNSIGNED, by default as for the dtype."""
        real = physical(aval)
        out = ShapedArray(real.shape, dtypes.bool_)
        kind = kind or spell.comparison_of(real.dtype)
        flags = self.result(f"stablehlo.compare {direction}, {x}, {y}, {kind}", (real, real), out)
        if real is aval:
            return flags
        both, axes = direction == "EQ", range(aval.ndim, real.ndim)
        reduced = ShapedArray(aval.shape, dtypes.bool_)
        start = self.constant(both, FLAG)
        return self.reduce([flags], [start], [out], [reduced], tuple(axes), "and" if both else "or")[0]

    def select(self, pred: Name, on_true: Name, on_false: Name, pred_aval: ShapedArray, aval: ShapedArray) -> Name:
        """`pred` has the shape of the cases, or is a scalar."""
        if suffix_of(aval):
            wide = ShapedArray(physical(aval).shape, dtypes.bool_)
            pred = self.broadcast_in_dim(pred, pred_aval, wide, tuple(range(pred_aval.ndim)))
            pred_aval = wide
        return self.assign(f"stablehlo.select {pred}, {on_true}, {on_false} : {type_of(pred_aval)}, {type_of(aval)}")

    def clamp(self, low: Name, x: Name, high: Name, aval: ShapedArray) -> Name:
        return self.assign(f"stablehlo.clamp {low}, {x}, {high} : {type_of(aval)}")
