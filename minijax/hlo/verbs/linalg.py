"""Verbs for linear algebra: products, convolutions, FFTs and triangular systems."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from minijax.hlo import spell
from minijax.hlo.custom_call import layouts_by
from minijax.hlo.shardy import batched_rule
from minijax.hlo.sizes import are_known, has_sizes
from minijax.hlo.spell import attribute, int_array, int_list
from minijax.hlo.verbs.control import Control
from minijax.hlo.writer import Avals, Ints, Names
from minijax.ir.types import Name, ShapedArray


class ConvWindow(NamedTuple):
    """The window of a convolution: for each spatial axis its stride, padding, dilations and direction."""

    strides: Ints
    padding: Sequence[tuple[int, int]]
    lhs_dilation: Ints
    rhs_dilation: Ints
    reverse: Sequence[bool] | None = None

    def text(self) -> str:
        """The argument `window` of `stablehlo.convolution`."""
        flags = ", ".join(map(attribute, self.reverse or [False] * len(self.strides)))
        pads = ", ".join([f"[{a}, {b}]" for a, b in self.padding])
        strides, lhs, rhs = (int_list(tuple(x)) for x in (self.strides, self.lhs_dilation, self.rhs_dilation))
        text = f"stride = {strides}, pad = [{pads}], lhs_dilate = {lhs}, rhs_dilate = {rhs}, reverse = [{flags}]"
        return f"{{{text if self.strides else ''}}}"


class Linalg(Control):
    """Products, convolutions, FFTs, and calls of LAPACK and of GPU libraries."""

    def dot_general(
        self,
        x: Name,
        y: Name,
        lhs: ShapedArray,
        rhs: ShapedArray,
        out: ShapedArray,
        contracting: tuple[Ints, Ints],
        batching: tuple[Ints, Ints] = ((), ()),
        precision: tuple[str, str] | None = ("DEFAULT", "DEFAULT"),
        algorithm: tuple | None = None,
    ) -> Name:
        """`algorithm`: dtypes of lhs, rhs and accumulation, component counts, operations, imprecise."""
        text = f", contracting_dims = {_by(contracting)}"
        if batching[0]:
            text = f", batching_dims = {_by(batching)}{text}"
        if precision is not None:
            text += f", precision = [{precision[0]}, {precision[1]}]"
        if algorithm is not None:
            text += f", algorithm = <{_algorithm(*algorithm)}>"
        return self.result(f"stablehlo.dot_general {x}, {y}{text}", (lhs, rhs), out)

    def ragged_dot(
        self, operands: Names, ins: Avals, out: ShapedArray, axes: Mapping[str, Ints], precision: tuple[str, str]
    ) -> Name:
        """`axes` has the axes of lhs, rhs and group sizes by their names in the attribute `chlo.ragged_dot`."""
        named = ", ".join([f"{name} = {int_list(tuple(numbers))}" for name, numbers in axes.items() if numbers])
        how = ", ".join([f"#chlo<precision {p}>" for p in precision])
        attrs = f"precision_config = [{how}], ragged_dot_dimension_numbers = #chlo.ragged_dot<{named}>"
        return self.op("chlo.ragged_dot", operands, ins, (out,), attrs)[0]

    def convolution(
        self,
        x: Name,
        kernel: Name,
        ins: Avals,
        out: ShapedArray,
        specs: tuple[Ints, Ints, Ints],
        window: ConvWindow,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision: tuple[str, str] | None = ("DEFAULT", "DEFAULT"),
    ) -> Name:
        """`specs` are `ConvDimensionNumbers`: of lhs, rhs and out the axes (batch or out, feature or in, *spatial)."""
        numbers = f"{_axes('bf', specs[0])}x{_axes('oi', specs[1])}->{_axes('bf', specs[2])}"
        groups = ("batch", batch_group_count), ("feature", feature_group_count)
        attrs = ", ".join([f"{name}_group_count = {count} : i64" for name, count in groups])
        if precision is not None:
            names = ", ".join([f"#stablehlo<precision {p}>" for p in precision])
            attrs += f", precision_config = [{names}]"
        if not all(map(are_known, window.padding)):
            pads, kind = self.size_pairs(window.padding)
            attrs += (
                f", dimension_numbers = #stablehlo.conv<{numbers}>, window_strides = {int_array(window.strides)}, "
                f"lhs_dilation = {int_array(window.lhs_dilation)}, rhs_dilation = {int_array(window.rhs_dilation)}"
            )
            return self.op("dynamic_conv", (x, kernel, pads), (*ins, kind), (out,), attrs)[0]
        text = f"stablehlo.convolution({x}, {kernel}) dim_numbers = {numbers}, window = {window.text()} {{{attrs}}}"
        return self.result(text, ins, out)

    def fft(self, x: Name, aval: ShapedArray, out: ShapedArray, kind: str, lengths: Ints) -> Name:
        """`kind` is FFT, IFFT, RFFT or IRFFT."""
        return self.map_to("fft", x, aval, out, f", type = {kind}, length = {int_list(tuple(lengths))}")

    def cholesky(self, x: Name, aval: ShapedArray) -> Name:
        return self.unary("cholesky", x, aval, ", lower = true")

    def triangular_solve(self, a: Name, b: Name, a_aval: ShapedArray, b_aval: ShapedArray, *, left_side: bool,
                         lower: bool, transpose: str = "NO_TRANSPOSE",
                         unit_diagonal: bool = False) -> Name:  # fmt: skip
        """`transpose` is NO_TRANSPOSE, TRANSPOSE or ADJOINT."""
        attrs = (
            f"left_side = {attribute(left_side)}, lower = {attribute(lower)}, "
            f"transpose_a = #stablehlo<transpose {transpose}>, unit_diagonal = {attribute(unit_diagonal)}"
        )
        return self.op("triangular_solve", (a, b), (a_aval, b_aval), (b_aval,), attrs)[0]

    def batched_call(self, target: str, operands: Names, ins: Avals, outs: Avals, config: Mapping[str, Any],
                     aliases: Mapping[int, int] | None = None, batch: int | None = None,
                     by_column: bool = True) -> list[Name]:  # fmt: skip
        """Calls a target on batches of matrices, in column-major or row-major layout."""
        n = ins[0].ndim - 2 if batch is None else batch
        layouts = layouts_by(lambda a: _layout(a, n if by_column else a.ndim), ins, outs)
        rule = None if any(map(has_sizes, (*ins, *outs))) else batched_rule(ins, outs, n)
        options = dict(backend_config=config, aliases=aliases, frontend={"num_batch_dims": str(n)}, sharding_rule=rule)
        return self.custom_call(target, operands, ins, outs, **options, **layouts)


def _layout(aval: ShapedArray, batch: int) -> list[int]:
    """Column-major for matrices after `batch` axes, row-major for other ranks."""
    axes = list(range(aval.ndim))[::-1]
    return [axes[1], axes[0], *axes[2:]] if aval.ndim - batch == 2 else axes


def _by(sides: tuple[Ints, Ints]) -> str:
    return f"{int_list(tuple(sides[0]))} x {int_list(tuple(sides[1]))}"


def _axes(names: str, spec: Ints) -> str:
    labels = [""] * len(spec)
    for label, axis in zip([*names, *map(str, range(len(spec) - 2))], spec, strict=True):
        labels[axis] = label
    return f"[{', '.join(labels)}]"


def _algorithm(lhs, rhs, accumulation, lhs_count, rhs_count, operations, imprecise) -> str:
    return (
        f"lhs_precision_type = {spell.element(lhs)}, rhs_precision_type = {spell.element(rhs)}, "
        f"accumulation_type = {spell.element(accumulation)}, lhs_component_count = {lhs_count}, "
        f"rhs_component_count = {rhs_count}, num_primitive_operations = {operations}, "
        f"allow_imprecise_accumulation = {attribute(imprecise)}"
    )
