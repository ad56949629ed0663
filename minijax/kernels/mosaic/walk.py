"""Walks through the jaxpr of a kernel and writes each equation by the rule of its primitive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.hlo import spell
from minijax.ir.jaxpr import Jaxpr, JaxprEqn, Literal
from minijax.kernels.mosaic.verbs import Key, Memory, Value, Verbs, type_of
from minijax.kernels.parameters import CoreType
from minijax.kernels.text import Type

Function = Callable[..., Any]


class Rule(NamedTuple):
    """Writes the equations of a primitive: (kernel, site, *arguments, **parameters) -> value, values or None.

    The arguments are made of the operands by (kernel, site, operands, parameters), before scopes begin or end here
    unless the rule `is_late`, as jax's are.
    """

    write: Function
    arguments: Function
    is_late: bool


# kind of core -> name of a primitive -> rule
RULES: dict[CoreType, dict[str, Rule]] = {core: {} for core in CoreType}


class Site(NamedTuple):
    """An equation: the types of its operands and results."""

    ins: Sequence[Any]
    outs: Sequence[Any]
    name: str

    @property
    def out(self) -> Any:
        """The type of the first result."""
        return self.outs[0]

    @property
    def type(self) -> Type:
        """The first result's type in the kernel."""
        return type_of(self.outs[0])


def values(k: Kernel, site: Site, operands: Sequence[Any], params: Any = None) -> list[Any]:
    """The operands, literals among them as constants of the kernel."""
    return [k.value(x, a) for x, a in zip(operands, site.ins, strict=True)]


def unchanged(k: Kernel, site: Site, operands: Sequence[Any], params: Any) -> Sequence[Any]:
    """The operands, literals among them as numbers."""
    return operands


def rule(
    *names: str, arguments: Function = values, late: bool = False, cores: Sequence[CoreType] = (CoreType.TC,)
) -> Callable[[Function], Function]:
    """Registers the rule of primitives on kinds of cores."""

    def register(function: Function) -> Function:
        for core in cores:
            RULES[core].update(dict.fromkeys(names, Rule(function, arguments, late)))
        return function

    return register


class Grid(NamedTuple):
    """The grid of a kernel: the numbers of the step and the sizes of all axes, and the axes that `vmap` added.

    A size that is known only when the program runs is None.
    """

    ids: Sequence[Value] = ()
    sizes: Sequence[int | None] = ()
    mapped: Sequence[int] = ()
    names: Sequence[Any] = ()

    def axis(self, axis: int) -> int:
        """The number of an axis as the kernel counts them, among all."""
        return [i for i in range(len(self.sizes)) if i not in self.mapped][axis]


class Kernel(Verbs):
    """The module under construction, and what its kernel runs over."""

    def __init__(self, mesh: dict[str, int] | None = None, has_layout_passes: bool = True):
        super().__init__()
        self.core = CoreType.TC
        self.grid = Grid()
        self.mesh = mesh or {}  # the sizes of the axes of the mesh of devices around the kernel
        self.has_layout_passes = has_layout_passes  # otherwise values have the shapes of registers
        self.chosen: dict[Value, int] = {}  # values that are known while the kernel is lowered
        self._scopes: tuple[str, ...] = ()

    def run(self, jaxpr: Jaxpr, operands: Iterable[Any]) -> list[Any]:
        """Writes the equations of a jaxpr, whose constants are the first operands, and returns its results."""
        env: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], operands, strict=True))
        outer = self._scopes
        for eqn in jaxpr.eqns:
            scopes = (*outer, *[getattr(s, "name", s) for s in eqn.ctx.name_stack])
            operands = [a.val if isinstance(a, Literal) else env[a] for a in eqn.invars]
            results = self._equation(eqn, operands, lambda scopes=scopes: self._enter(outer, scopes))
            env.update(zip(eqn.outvars, results, strict=True))
        self._enter(outer, outer)
        return [self.value(v.val, v.aval) if isinstance(v, Literal) else env[v] for v in jaxpr.outvars]

    def values(self, jaxpr: Jaxpr, operands: Iterable[Any]) -> list[Value]:
        """As `run`, with constants as values of the kernel."""
        found = self.run(jaxpr, operands)
        return [self.value(x, v.aval) for x, v in zip(found, jaxpr.outvars, strict=True)]

    def value(self, x: Any, aval: Any) -> Any:
        """A literal as a value of the kernel; other operands as they are."""
        if isinstance(x, Value | Memory | Key):
            return x
        return self.dense(np.asarray(x), aval.shape, aval.dtype)

    def _equation(self, eqn: JaxprEqn, operands: list[Any], enter: Callable[[], None]) -> Sequence[Any]:
        name = getattr(eqn.primitive, "rule_name", eqn.primitive.name)
        found = RULES[self.core].get(name)
        if found is None:
            raise NotImplementedError(
                f"Unimplemented primitive in Pallas TPU lowering for {self.core.value}: {eqn.primitive.name}. "
                f"{eqn.primitive} has no operation of Mosaic; compute it outside of the kernel or by other operations."
            )
        site = Site([a.aval for a in eqn.invars], [v.aval for v in eqn.outvars], name)
        if found.is_late:
            enter()
        arguments = found.arguments(self, site, operands, eqn.params)
        if not found.is_late:
            enter()
        results = found.write(self, site, *arguments, **eqn.params)
        return [results] if isinstance(results, Value | Memory | Key) else results or []

    def _enter(self, kept: Sequence[str], scopes: tuple[str, ...]) -> None:
        """Leaves the scopes that end here, down to those of the caller, and enters those that begin."""
        now = self._scopes
        common = len(kept)
        while common < min(len(now), len(scopes)) and now[common] == scopes[common]:
            common += 1
        for _ in now[common:]:
            self.op("tpu.trace_stop")
        for scope in scopes[common:]:
            self.enter_scope(scope)
        self._scopes = scopes

    def enter_scope(self, name: str) -> None:
        """Begins a scope that profiles show."""
        self.op("tpu.trace_start", attributes=dict(level="10 : i32", message=spell.string(name)))
