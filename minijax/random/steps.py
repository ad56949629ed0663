"""Draws in two programs: random bits, which all samplers share, and the numbers that a sampler computes from them.

XLA takes longest for the bits. They are integers, so that compiling them with few optimizations, in a sixth of the
time, changes no number; running them takes three times as long.
"""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.jit import jit, make_jaxpr
from minijax.base import config
from minijax.base.cache import Keyed
from minijax.base.util import named
from minijax.composed.random import random_bits_p
from minijax.dispatch.jit import jit_p
from minijax.ir import state
from minijax.ir.jaxpr import Jaxpr, JaxprEqn
from minijax.ir.trace import environment, values_of
from minijax.ir.types import typeof
from minijax.run.programs import compile

_programs = Keyed(256)


def in_two_steps(draw: Callable[..., Any], name: str, values: Sequence, dynamic: Sequence[int]) -> Any:
    """The result of `draw(*values)` on a CPU, where the values at the places `dynamic` are operands, a key first."""
    operands = [values[i] for i in dynamic]
    static = tuple(x for i, x in enumerate(values) if i not in dynamic)
    key = config.state(), draw, static, tuple(dynamic), tuple(map(typeof, operands))
    programs = _programs.get(key)
    if programs is None:
        programs = _programs.once(key, _split, draw, name, list(values), dynamic)
    bits, numbers = programs
    return numbers(bits(*operands), *operands)


def _split(draw: Callable, name: str, values: list, dynamic: Sequence[int]) -> tuple[Callable, Callable]:
    def drawn(*operands: Any) -> Any:
        given = dict(zip(dynamic, operands, strict=True))
        return draw(*[given.get(i, x) for i, x in enumerate(values)])

    closed = make_jaxpr(drawn)(*[values[i] for i in dynamic])

    def bits(*operands: Any) -> list:
        found = []

        def keep(eqn: JaxprEqn, operands: Sequence) -> list:
            found.extend(eqn.primitive.rebind(state.current_trace(), operands, eqn.params))
            return found[-1:]

        _evaluate(closed.jaxpr, closed.consts, operands, keep)
        return found

    def numbers(bits: Sequence, *operands: Any) -> Any:
        given = iter(bits)
        return _evaluate(closed.jaxpr, closed.consts, operands, lambda eqn, operands: [next(given)])[0]

    quick = compile.quick_options("cpu")
    return jit(named(bits, "_bits", None), compiler_options=quick or None), jit(named(numbers, f"_{name}", None))


def _evaluate(jaxpr: Jaxpr, consts: Sequence, args: Sequence, draw: Callable[[JaxprEqn, Sequence], list]) -> list:
    """The results of a jaxpr in which `draw(eqn, operands)` gives the random bits of calls, too."""
    env = environment(jaxpr, consts)
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        operands = values_of(eqn.invars, env)
        if eqn.primitive is random_bits_p:
            results = draw(eqn, operands)
        elif eqn.primitive is jit_p:
            inner = eqn.params["jaxpr"]
            results = _evaluate(inner.jaxpr, inner.consts, operands, draw)
        else:
            results = eqn.primitive.rebind(state.current_trace(), operands, eqn.params)
        env.update(zip(eqn.outvars, results, strict=True))
    return values_of(jaxpr.outvars, env)
