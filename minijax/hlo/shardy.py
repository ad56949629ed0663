"""Prints meshes and shardings in the syntax of Shardy."""

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.hlo.spell import string, suffix_of
from minijax.ir.types import Aval, token_type
from minijax.partition.meshes import UNCONSTRAINED, axes_of
from minijax.partition.shardings import GSPMDSharding, NamedSharding

Axes = tuple[tuple[Any, int], ...]


def constraining(mesh: Any) -> Any:
    """The mesh if results must be constrained to the shardings in their types, else None."""
    return mesh if mesh.explicit_axes or (mesh.manual_axes and mesh.auto_axes) else None


def _axes_text(axes: Axes) -> str:
    return ", ".join([f"{string(str(name))}={size}" for name, size in axes])


class Meshes:
    """The meshes of a module, declared before its functions."""

    def __init__(self, preamble: list[str], unique_symbol: Any):
        self._preamble, self._unique_symbol = preamble, unique_symbol
        self._symbols: dict[Any, str] = {}
        self._unreduced: Axes | None = None  # the mesh over which a value is unreduced

    def symbol(self, axes: Axes, order: tuple[int, ...] | None = None) -> str:
        """The symbol of the mesh with these names and sizes; `order`: that of its devices, if not 0, 1, 2, …"""
        symbol = self._symbols.get((axes, order))
        if symbol is None:
            symbol = self._symbols[axes, order] = self._unique_symbol("mesh" if axes else "empty_mesh")
            short = _axes_text(axes)
            long = ", ".join([f"{{name = {string(str(name))}, size = {size} : i64}}" for name, size in axes])
            ids = "" if order is None else f", device_ids=[{', '.join(map(str, order))}]"
            self._preamble.append(f"sdy.mesh {symbol} = <[{short}]{ids}> {{stablehlo.mesh = {{axes = [{long}]}}}}")
        return symbol

    def sharding_text(self, sharding: Any, aval: Aval) -> str:
        """`@mesh, [{"x"}, {}]`: prints the sharding of a value of type `aval`; one without a mesh is replicated."""
        ndim, closed = (0, []) if aval is token_type else (aval.ndim, [()] * len(suffix_of(aval)))
        if isinstance(sharding, NamedSharding):
            entries = [e if e is UNCONSTRAINED else axes_of(e) for e in sharding.spec.padded(ndim)[:ndim]]
            symbol = self.symbol(sharding.mesh.shape_tuple)
            return f"{symbol}, {_dims([*entries, *closed])}{self._unreduced_text(sharding.spec, sharding.mesh)}"
        if isinstance(sharding, GSPMDSharding) and not sharding.tiles.is_replicated():
            grid = sharding.grid
            order = tuple(grid.ravel().tolist())
            axes = tuple((f"_axis_{i}", n) for i, n in enumerate(grid.shape) if n > 1)
            symbol = self.symbol(axes, None if order == tuple(range(len(order))) else order)
            entries = [(f"_axis_{i}",) if grid.shape[i] > 1 else () for i in range(ndim)]
            return f"{symbol}, {_dims([*entries, *closed])}"
        return f"{self.symbol(())}, {_dims([()] * (ndim + len(closed)))}"

    def type_sharding_text(self, mesh: Any, aval: Any) -> str:
        """As `sharding_text`, for the sharding in a type; sharding over Auto axes stays open."""
        mesh = aval.own_sharding.mesh if aval.has_mesh else mesh
        spec, free = aval.sharding.spec, bool(mesh.auto_axes)
        entries = [", ".join([*(string(str(a)) for a in axes_of(e)), *["?"] * free]) for e in spec]
        entries += [""] * len(suffix_of(aval))
        used = {*spec.mesh_axes, *spec.unreduced}
        replicated = [a for a in mesh.explicit_axes if a not in used] if free else []
        sets = _axis_set("replicated", replicated) + self._unreduced_text(spec, mesh)
        return f"{self.symbol(mesh.shape_tuple)}, [{', '.join([f'{{{e}}}' for e in entries])}]{sets}"

    def open_text(self, aval: Aval) -> str:
        """As `sharding_text`, with all dimensions open except the physical ones of an extended dtype."""
        return f"{self.symbol(())}, [{', '.join(['{?}'] * aval.ndim + ['{}'] * len(suffix_of(aval)))}]"

    def region_sharding_text(self, mesh: Any, spec: Any, aval: Aval) -> str:
        """The sharding of an operand or result of a region with the manual axes of `mesh`."""
        ndim, closed = (0, []) if aval is token_type else (aval.ndim, [()] * len(suffix_of(aval)))
        entries = [*map(axes_of, spec.padded(ndim)), *closed]
        if not mesh.auto_axes:
            return f"{self.symbol(mesh.shape_tuple)}, {_dims(entries)}{self._unreduced_text(spec, mesh)}"
        texts = ["{" + ", ".join([*(string(str(a)) for a in e), "?"]) + "}" for e in entries]
        return f"{self.symbol(mesh.shape_tuple)}, [{', '.join(texts)}]{_axis_set('replicated', mesh.explicit_axes)}"

    def inlined(self, mesh: Any, shardings: str) -> str:
        """Shardings with their mesh inline, because merging modules may rename the mesh symbol."""
        return shardings.replace(self.symbol(mesh.shape_tuple), f"mesh<[{_axes_text(mesh.shape_tuple)}]>")

    def on_one_device(self, device: int, count: int) -> str:
        """The sharding attribute of an operation with `count` results that runs on one device only."""
        symbol = self._symbols.get(device)
        if symbol is None:
            symbol = self._symbols[device] = self._unique_symbol(f"maximal_mesh_{device}")
            axes = f"{{axes = [], device_ids = dense<{device}> : tensor<1xi64>}}"
            self._preamble.append(f"sdy.mesh {symbol} = <[], device_ids=[{device}]> {{stablehlo.mesh = {axes}}}")
        return f"#sdy.sharding_per_value<[{', '.join([f'<{symbol}, []>'] * count)}]>"

    def on_each_device(self, count: int) -> str:
        """The sharding attribute of an operation with `count` results that each device runs."""
        return f"#sdy.sharding_per_value<[{', '.join([f'<{self.symbol(())}, []>'] * count)}]>"

    def _unreduced_text(self, spec: Any, mesh: Any) -> str:
        if spec.unreduced:
            self._unreduced = mesh.shape_tuple
        return _axis_set("unreduced", sorted(spec.unreduced, key=mesh.axis_names.index))

    def head_on_mesh(self, head: str) -> str:
        """A function's first line, with arguments on the mesh of an unreduced value: else Shardy ends the process."""
        if self._unreduced is None:
            return head
        return head.replace(f"<{self.symbol(())},", f"<{self.symbol(self._unreduced)},")

    def attribute(self, sharding: Any, aval: Aval) -> str:
        """The sharding attribute of an argument or result."""
        return f"#sdy.sharding<{self.sharding_text(sharding, aval)}>"


def rule_text(
    ins: Sequence[Sequence], outs: Sequence[Sequence], sizes: Mapping[Any, int], special: Mapping[str, Sequence] = {}
) -> str:
    """Prints a sharding rule: the factors of each dimension of operands and results, and the sizes of factors.

    `special` has the special factors by kind, such as reduction.
    """
    numbers = {factor: i for i, factor in enumerate(sizes)}

    def letter(factor: Any) -> str:
        i = numbers[factor]
        return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"

    def dims(value: Sequence) -> str:
        return f"[{', '.join([''.join(map(letter, factors)) for factors in value])}]"

    sides = [f"({', '.join(map(dims, side))})" for side in (ins, outs)]
    text = "->".join(sides) + f" {{{', '.join([f'{letter(f)}={size}' for f, size in sizes.items()])}}}" * bool(sizes)
    for kind, factors in special.items():
        if factors:
            text += f" {kind}={{{', '.join(map(letter, sorted(factors, key=numbers.__getitem__)))}}}"
    return f"#sdy.op_sharding_rule<{text}, custom>"


def batched_rule(ins: Sequence[Aval], outs: Sequence[Aval], batch: int) -> str:
    """The sharding rule of a batched operation: only its first `batch` axes are sharded, each with its own factor."""
    sizes = dict(enumerate(ins[0].shape[:batch]))

    def dims(aval: Aval) -> list[tuple[int]]:
        own = range(len(sizes), len(sizes) + len(aval.shape[batch:]))
        sizes.update(zip(own, aval.shape[batch:], strict=True))
        return [(i,) for i in (*range(min(batch, aval.ndim)), *own)]

    return rule_text([dims(a) for a in ins], [dims(a) for a in outs], sizes)


def _dims(entries: Sequence) -> str:
    texts = ["{?}" if e is UNCONSTRAINED else f"{{{', '.join([string(str(a)) for a in e])}}}" for e in entries]
    return f"[{', '.join(texts)}]"


def _axis_set(name: str, axes: Sequence) -> str:
    return f", {name}={{{', '.join([string(str(a)) for a in axes])}}}" if axes else ""
