"""Kernels as plans: steps that each do an operation on memory, or run a stretch of operations on values at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, dtypes, source
from minijax.calls.call import Inlined
from minijax.composed.callbacks.callback import HostFunction
from minijax.composed.refs import parts_of
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import trace_to_jaxpr
from minijax.kernels import expanded
from minijax.kernels.operations.selection import SelectedRef
from minijax.kernels.operations.sparse import SubcoreAccess
from minijax.kernels.simulator import scalars, views
from minijax.kernels.simulator.machine import Core, Run
from minijax.kernels.simulator.options import InterpretParams
from minijax.run.programs.inline import InlineProgram

_NO_STEP = expanded.Step((), ())  # operations on values do not ask for the numbers of a step

Values = list  # of the variables of a plan, by number
Step = Callable[[Core, Values], Run | None]
Get = Callable[[Values], Any]

_OF_CORES = frozenset(
    "program_id num_programs axis_index get_barrier_semaphore prng_random_bits prng_seed delay trace_value "
    "add_dependency".split()
)


@cache.weak_cache
def touches_memory(jaxpr: Jaxpr) -> bool:
    """Returns whether a jaxpr does more than compute values from values."""
    return any(map(is_simulated, jaxpr.eqns))


def is_simulated(eqn: JaxprEqn) -> bool:
    """Returns whether an equation reads or changes what the simulator keeps."""
    if eqn.primitive.name in _OF_CORES or eqn.effects or isinstance(eqn.primitive, HostFunction):
        return True
    if any(type(a.aval) is AbstractRef for a in (*eqn.invars, *eqn.outvars)):
        return True
    return any(map(touches_memory, jaxprs_in_params(eqn.params)))


@cache.weak_cache
def has_only_scalars(jaxpr: Jaxpr) -> bool:
    """Returns whether a jaxpr only has operations on integers and flags."""
    return not jaxpr.constvars and all(
        scalars.rule_of(eqn) is not None
        or (isinstance(eqn.primitive, Inlined) and has_only_scalars(eqn.primitive.body(eqn.params).jaxpr))
        for eqn in jaxpr.eqns
    )


@cache.weak_cache
def has_kernel_forms(jaxpr: Jaxpr) -> bool:
    """Returns whether operations of a jaxpr are others in kernels than outside of them."""
    return any(hasattr(eqn.primitive, "evaluate_in_kernel") for eqn in jaxpr.eqns) or any(
        map(has_kernel_forms, jaxpr.inner)
    )


def _in_kernel(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The jaxpr with the forms that its operations have in kernels."""
    run = lambda *xs: expanded.evaluate(jaxpr, [], xs, _NO_STEP)  # noqa: E731
    return ClosedJaxpr(*trace_to_jaxpr(run, jaxpr.in_avals, jaxpr.debug_info))


class Plan:
    """A jaxpr as steps."""

    __slots__ = ("steps", "lines", "template", "inputs", "outputs")

    def __init__(self, steps: list[Step], lines: list[JaxprEqn], template: Values, inputs: list, outputs: list):
        self.steps, self.lines, self.template, self.inputs, self.outputs = steps, lines, template, inputs, outputs

    def run(self, core: Core, args: Sequence[Any]) -> Run:
        """Runs the steps on a core and returns the values of the results."""
        values = self.template.copy()
        for i, x in zip(self.inputs, args, strict=True):
            values[i] = x
        at = 0
        try:
            for at, step in enumerate(self.steps):  # noqa: B007  for the message
                waits = step(core, values)
                if waits is not None:
                    yield from waits
        except Exception as error:
            self._note(error, core, at)
            raise
        return [values[i] for i in self.outputs]

    def _note(self, error: Exception, core: Core, at: int) -> None:
        """Tells where in the kernel an error was, once."""
        if not getattr(error, "__notes__", None):
            where = source.summary(self.lines[at].traceback)
            error.add_note(f"The kernel was at {where}, on device {core.device}, core {core.number}.")


class Builder:
    """Makes the plan of a jaxpr: operations on memory in their order, and between them stretches of others."""

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any], options: InterpretParams, rules: dict[str, Callable]):
        self.jaxpr, self.options, self.rules = jaxpr, options, rules
        self._numbers: dict[Var, int] = {}
        self._template: Values = []
        self._steps: list[Step] = []
        self._lines: list[JaxprEqn] = []
        self._pending: list[JaxprEqn] = []
        self._users: dict[Var, set[int]] = {}
        for eqn in jaxpr.eqns:
            for a in eqn.invars:
                if type(a) is not Literal:
                    self._users.setdefault(a, set()).add(id(eqn))
        for a in jaxpr.outvars:
            if type(a) is not Literal:
                self._users.setdefault(a, set()).add(0)
        for v, x in zip(jaxpr.constvars, consts, strict=False):
            self._template[self.number(v)] = x if hasattr(x, "array") else np.asarray(x)

    def number(self, atom: Any) -> int:
        """The number of a variable, or of a new one with the value of a literal."""
        if type(atom) is Literal:
            self._template.append(np.asarray(atom.val, atom.aval.dtype)[()])
            return len(self._template) - 1
        found = self._numbers.get(atom)
        if found is None:
            found = self._numbers[atom] = len(self._template)
            self._template.append(None)
        return found

    def get(self, atom: Any) -> Get:
        """A function from the values of the plan to that of an atom."""
        number = self.number(atom)
        return lambda values: values[number]

    def is_used(self, var: Var) -> bool:
        """Returns whether an equation or a result needs the variable."""
        return var in self._users

    def view(self, view: Any) -> Get:
        """A function from the values of the plan to (memory, stages of the view)."""
        if type(view) is SelectedRef:
            index, gets = self.get(view.index), [self.view(r) for r in view.refs]
            return lambda values: gets[int(index(values))](values)
        ref, path, arrays = parts_of(view)
        memory, stages = self.number(ref), views.stages_of(path, [self.get(a) for a in arrays])
        return lambda values: (values[memory], stages(values))

    def plan(self, body: ClosedJaxpr | Jaxpr) -> Plan:
        """The plan of a body."""
        jaxpr, consts = (body.jaxpr, body.consts) if isinstance(body, ClosedJaxpr) else (body, ())
        return plan_of(jaxpr, consts, self.options, self.rules)

    def build(self, inputs: Sequence[Var]) -> Plan:
        """The plan, whose arguments are these variables."""
        numbers = [self.number(v) for v in inputs]
        for eqn in self.jaxpr.eqns:
            self._add(eqn)
        self._compute([a for a in self.jaxpr.outvars if type(a) is not Literal])
        return Plan(self._steps, self._lines, self._template, numbers, [self.number(a) for a in self.jaxpr.outvars])

    def _add(self, eqn: JaxprEqn) -> None:
        if is_simulated(eqn):
            self._compute(eqn.invars)
            self._append(self._rule(eqn)(self, eqn), eqn)
            return
        if self.options.skip_floating_point_ops and _yields_floats(eqn):
            self._append(_infinities([(self.number(v), v.aval) for v in eqn.outvars]), eqn)
            return
        if self._is_pending(eqn.invars) or not self._add_scalars(eqn):
            self._pending.append(eqn)

    def _add_scalars(self, eqn: JaxprEqn) -> bool:
        """Adds the steps of an equation on integers and flags, or of a call of such ones; False for another one."""
        scalar = scalars.rule_of(eqn)
        if scalar is not None:
            ins = [self.number(a) for a in eqn.invars]
            self._append(_scalar_step(scalar, ins, self._fresh(eqn.outvars[0])), eqn)
            return True
        if not isinstance(eqn.primitive, Inlined) or not has_only_scalars(eqn.primitive.body(eqn.params).jaxpr):
            return False
        body = eqn.primitive.body(eqn.params).jaxpr
        self._numbers.update({v: self.number(a) for v, a in zip(body.invars, eqn.invars, strict=True)})
        for inner in body.eqns:
            self._add_scalars(inner)
        self._numbers.update({v: self.number(a) for v, a in zip(eqn.outvars, body.outvars, strict=True)})
        return True

    def _fresh(self, var: Var) -> int:
        """A new number of a variable, since a body may be called again."""
        self._numbers.pop(var, None)
        return self.number(var)

    def _rule(self, eqn: JaxprEqn) -> Callable:
        rule = None if isinstance(eqn.primitive, SubcoreAccess) else self.rules.get(eqn.primitive.name)
        if rule is None and isinstance(eqn.primitive, HostFunction):
            rule = self.rules["host function"]
        if rule is None and isinstance(eqn.primitive, Inlined):
            rule = self.rules["call"]
        if rule is None:
            raise NotImplementedError(
                f"pallas_call: {eqn.primitive.name} at {source.summary(eqn.traceback)} cannot be simulated"
            )
        return rule

    def _append(self, step: Step, eqn: JaxprEqn) -> None:
        self._steps.append(step)
        self._lines.append(eqn)

    def _is_pending(self, atoms: Sequence[Any]) -> bool:
        made = {v for eqn in self._pending for v in eqn.outvars}
        return any(type(a) is not Literal and a in made for a in atoms)

    # ---- stretches of operations on values --------------------------------------------------------------

    def _compute(self, atoms: Sequence[Any]) -> None:
        """Adds a step that computes these values, by one program."""
        if not self._is_pending(atoms):
            return
        group = self._taken(atoms)
        chosen, made = set(map(id, group)), {v for eqn in group for v in eqn.outvars}
        ins = list(dict.fromkeys(a for eqn in group for a in eqn.invars if type(a) is not Literal and a not in made))
        outs = [v for eqn in group for v in eqn.outvars if self._users.get(v, set()) - chosen]
        jaxpr = Jaxpr([], ins, outs, group, debug_info=self.jaxpr.debug_info._replace(arg_names=None))
        closed = _in_kernel(jaxpr) if has_kernel_forms(jaxpr) else ClosedJaxpr(jaxpr)
        self._append(_program_step(closed, list(map(self.number, ins)), list(map(self.number, outs))), group[0])

    def _taken(self, atoms: Sequence[Any]) -> list[JaxprEqn]:
        """The pending equations that these values need, which are pending no more."""
        needed, group = {a for a in atoms if type(a) is not Literal}, []
        for eqn in reversed(self._pending):
            if any(v in needed for v in eqn.outvars):
                group.append(eqn)
                needed.update(a for a in eqn.invars if type(a) is not Literal)
        chosen = set(map(id, group))
        self._pending = [eqn for eqn in self._pending if id(eqn) not in chosen]
        return group[::-1]


def _scalar_step(rule: Callable, ins: list[int], out: int) -> Step:
    if len(ins) == 1:
        (only,) = ins

        def unary(core, values):
            values[out] = rule(values[only])

        return unary
    if len(ins) == 2:
        first, second = ins

        def binary(core, values):
            values[out] = rule(values[first], values[second])

        return binary

    def several(core, values):
        values[out] = rule(*[values[i] for i in ins])

    return several


def _program_step(closed: ClosedJaxpr, ins: list[int], outs: list[int]) -> Step:
    """A step that runs a program; one without operands runs once."""
    program = InlineProgram(closed)
    constant: list = []

    def step(core, values):
        if ins:
            results = program([values[i] for i in ins])
        else:
            results = constant or program([])
            constant[:] = results
        for i, x in zip(outs, results, strict=True):
            values[i] = x

    return step


def _yields_floats(eqn: JaxprEqn) -> bool:
    return all(isinstance(v.aval.dtype, np.dtype) and dtypes.issubdtype(v.aval.dtype, np.floating) for v in eqn.outvars)


def _infinities(outs: Sequence[tuple[int, Any]]) -> Step:
    """A step that yields infinity in place of floats."""
    made = [(i, np.full(aval.shape, np.inf, aval.dtype)) for i, aval in outs]

    def step(core, values):
        for i, x in made:
            values[i] = x

    return step


@cache.weak_cache
def _planned(jaxpr: Jaxpr) -> dict:
    return {}


def plan_of(jaxpr: Jaxpr, consts: Sequence[Any], options: InterpretParams, rules: dict[str, Callable]) -> Plan:
    """The plan of a jaxpr, whose arguments are its constants, if they are not given, and then its inputs."""
    plans = _planned(jaxpr)
    key = options, bool(consts)
    if key not in plans:
        inputs = jaxpr.invars if consts else [*jaxpr.constvars, *jaxpr.invars]
        plans[key] = Builder(jaxpr, consts, options, rules).build(inputs)
    return plans[key]
