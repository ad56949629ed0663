"""Custom calls: their options, and these as attributes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minijax.hlo import spell
from minijax.hlo.spell import attribute
from minijax.ir.types import Aval


class HostTransfers(NamedTuple):
    """A host function that a program for TPUs calls by transfers, each on a channel of its own from `first` on."""

    function: Any
    first: int
    sends: Sequence[Any]  # types; one array of zeros is sent to a function without operands
    receives: Sequence[Any]

    @property
    def channels(self) -> tuple[list[int], list[int]]:
        """The channels of what is sent, and of what is received."""
        middle = self.first + len(self.sends)
        return [*range(self.first, middle)], [*range(middle, middle + len(self.receives))]


@dataclass(frozen=True)
class CustomCall:
    """A call of the function that is registered with XLA as `target`, without operands and types."""

    target: str
    api_version: int = 4
    backend_config: Mapping[str, Any] | str | bytes | None = None
    has_side_effect: bool = False
    operand_layouts: Sequence[Sequence[int]] | None = None
    result_layouts: Sequence[Sequence[int]] | None = None
    aliases: Mapping[int, int] | None = None  # operand -> result
    called: Sequence[str] = ()  # symbols of functions
    frontend: Mapping[str, str] | None = None  # attributes that XLA forwards
    sharding: str | None = None
    sharding_rule: str | None = None
    kernel_name: str | None = None  # of a kernel for TPUs
    shaped: bool = True  # the shapes of results with symbolic dimensions are additional operands

    def attributes(self, num_results: int) -> dict[str, str]:
        """The printed attributes of the operation."""
        aliases = [_alias(i, out, num_results) for i, out in (self.aliases or {}).items()]
        options = {
            "called_computations": self.called and _listed(self.called),
            "has_side_effect": self.has_side_effect and "true",
            "kernel_name": self.kernel_name and spell.string(self.kernel_name),
            "mhlo.frontend_attributes": self.frontend and attribute(self.frontend),
            "output_operand_aliases": aliases and _listed(aliases),
            "sdy.sharding": self.sharding,
            "sdy.sharding_rule": self.sharding_rule,
        }
        return {**self._config(), **self._layouts(), **{name: text for name, text in options.items() if text}}

    def _config(self) -> dict[str, str]:
        if self.api_version == 4:
            return {"backend_config": '""', spell.TYPED_CONFIG: attribute(self.backend_config or {})}
        config = self.backend_config if isinstance(self.backend_config, bytes) else str(self.backend_config or "")
        version = {} if self.api_version == 1 else {"api_version": f"{self.api_version} : i32"}
        return {"backend_config": spell.string(config), **version}

    def _layouts(self) -> dict[str, str]:
        if self.operand_layouts is None or self.result_layouts is None:
            return {}
        sides = {"operand_layouts": self.operand_layouts, "result_layouts": self.result_layouts}
        return {name: _listed(map(spell.layout, layouts)) for name, layouts in sides.items()}


def layouts_by(layout: Callable[[Aval], Sequence[int]], ins: Sequence[Aval], outs: Sequence[Aval]) -> dict[str, list]:
    """The options of a `CustomCall` for operands and results with the layouts that `layout` gives."""
    return {"operand_layouts": list(map(layout, ins)), "result_layouts": list(map(layout, outs))}


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def _alias(operand: int, result: int, num_results: int) -> str:
    indices = f"[{result}]" if num_results > 1 else "[]"
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {indices}, operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )
