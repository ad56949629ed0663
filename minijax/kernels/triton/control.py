"""Rules of loops, branches and calls for Triton."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from minijax.kernels.fuser.custom import in_kernel
from minijax.kernels.text import Value
from minijax.kernels.triton.memory import Block
from minijax.kernels.triton.verbs import I32, kind


def _values(k: Any, xs: Sequence) -> list:
    """The operands as values; references stay."""
    return [x if type(x) is Block else k.tile(x) for x in xs]


def _shaped(k: Any, xs: Sequence, avals: Sequence) -> list[Value]:
    """The results of a body in the shapes of their types."""
    return [x.pointer if type(x) is Block else k.tile(x, a.shape) for x, a in zip(xs, avals, strict=True)]


def _called(jaxpr: Any) -> tuple[Jaxpr, list]:
    """A jaxpr, and the values of its constants."""
    return (jaxpr.jaxpr, list(jaxpr.consts)) if hasattr(jaxpr, "jaxpr") else (jaxpr, [])


def _walk(k, closed, args):
    jaxpr, consts = _called(closed)
    return k.walk(jaxpr, args, consts)


def _call(name: str) -> Callable:
    return lambda k, eqn, *xs: _walk(k, eqn.params[name], xs)


# ---- loops ----------------------------------------------------------------------------------------------


def _increment(jaxpr: Jaxpr, number: Var, result: Any) -> JaxprEqn | None:
    """The equation that makes the result by adding 1 to a number."""
    for eqn in jaxpr.eqns:
        if eqn.outvars[0] is result and eqn.primitive.name == "add" and eqn.invars[0] is number:
            step = eqn.invars[1]
            return eqn if isinstance(step, Literal) and step.val == 1 else None
    return None


def _is_integer(aval: Any) -> bool:
    return not getattr(aval, "shape", (0,)) and np.issubdtype(aval.dtype, np.integer)


def _without(jaxpr: Jaxpr, step: JaxprEqn) -> Jaxpr:
    """The body of a loop without the equation of its counter, unless another one reads it."""
    others = [eqn for eqn in jaxpr.eqns if eqn is not step]
    made = step.outvars[0]
    is_read = any(v is made for eqn in others for v in eqn.invars) or sum(v is made for v in jaxpr.outvars) > 1
    return jaxpr if is_read else jaxpr.replace(eqns=others)


def _scan(k, eqn, *xs):
    p = eqn.params
    jaxpr, constants = _called(p["jaxpr"])
    nc, carried = p["num_consts"], p["num_consts"] + p["num_carry"]
    for count, what in ((len(xs) - carried, "input"), (len(eqn.outvars) - p["num_carry"], "output")):
        if count:
            raise ValueError(f"Scan with {count} extensive {what}(s) is not supported.")
    consts, carry = _values(k, xs[:nc]), _values(k, xs[nc:])
    counter = jaxpr.invars[nc] if carry else None
    step = _increment(jaxpr, counter, jaxpr.outvars[0]) if carry and _is_integer(counter.aval) else None
    if step is None:
        start, stop = k.constant(0, I32), k.constant(p["length"], I32)
        body = lambda i, *carry: _shaped(k, k.walk(jaxpr, [*consts, *carry], constants), jaxpr.out_avals)  # noqa: E731
        return k.loop(start, stop, k.constant(1, I32), carry, body)
    start, *rest = carry
    stop = k.arith("add", start, k.constant(p["length"], start.dtype))
    return _counted(k, _without(jaxpr, step), consts, start, stop, rest, constants)


def _counted(k, jaxpr, consts, start, stop, carry, constants, fixed=()):
    """A loop whose first carry is a counter; those in `fixed` do not change."""

    def body(i, *carry):
        results = k.walk(jaxpr, [*consts, i, *fixed, *carry], constants, skipped=1 + len(fixed))
        return _shaped(k, results, jaxpr.out_avals[1 + len(fixed) :])

    results = k.loop(start, stop, k.constant(1, start.dtype), carry, body)
    return [stop, *fixed, *results]


def _while(k, eqn, *xs):
    p = eqn.params
    nt, nb = p["cond_nconsts"], p["body_nconsts"]
    test, test_constants = _called(p["cond_jaxpr"])
    body, body_constants = _called(p["body_jaxpr"])
    step = _step_of_range(test, body, nt, nb)
    xs = _values(k, xs)
    if step is not None:
        start, stop, *carry = xs[nb:]
        _, *results = _counted(k, _without(body, step), xs[:nb], start, stop, carry, body_constants, [stop])
        # Without a step the counter is above the end. It is seldom read.
        return [lambda: k.arith("max", start, stop), *results]
    blocks = [x if type(x) is Block else None for x in xs]

    def restored(args):
        # A loop carries the pointers of references.
        return [a if b is None else b._replace(pointer=a) for a, b in zip(args, blocks, strict=True)]

    def condition(*args):
        inner = restored(args)
        (holds,) = k.walk(test, [*inner[:nt], *inner[nt + nb :]], test_constants)
        return [k.tile(holds), *args]

    def repeated(*args):
        inner = restored(args)
        results = k.walk(body, inner[nt:], body_constants)
        return [*args[: nt + nb], *_shaped(k, results, body.out_avals)]

    carry = [x.pointer if type(x) is Block else x for x in xs]
    return restored(k.repeat(carry, condition, repeated))[nt + nb :]


def _step_of_range(test: Jaxpr, body: Jaxpr, nt: int, nb: int) -> JaxprEqn | None:
    """The equation that counts, of a loop from its first carry to its second one; None for any other loop."""
    if nt or len(test.eqns) != 1 or len(test.invars) < 2 or not _is_integer(test.invars[0].aval):
        return None
    (eqn,), (number, stop) = test.eqns, body.invars[nb : nb + 2]
    is_less = eqn.primitive.name == "lt" and list(eqn.invars) == test.invars[:2] and eqn.outvars == test.outvars
    if not is_less or body.outvars[1] is not stop:
        return None
    return _increment(body, number, body.outvars[0])


# ---- branches -------------------------------------------------------------------------------------------


def _cond(k, eqn, index, *xs):
    branches, avals = eqn.params["branches"], [v.aval for v in eqn.outvars]
    index = k.tile(index)
    if index.dtype == np.bool_ or kind(index.dtype) == 0:
        index = k.cast(index, I32)
    return _chosen(k, branches, index, xs, avals)


def _chosen(k, branches, index, xs, avals):
    """Branch 0 where the index is 0, else one of the others."""
    run = lambda i: _shaped(k, _walk(k, branches[i], xs), avals)  # noqa: E731
    if len(branches) == 1:
        return run(0)

    def others():
        if len(branches) == 2:
            return run(1)
        rest = k.arith("sub", index, k.constant(1, index.dtype))
        return _chosen(k, branches[1:], rest, xs, avals)

    is_first = k.compare("eq", index, k.constant(0, index.dtype))
    return k.branch(is_first, lambda: run(0), others, [(a.shape, a.dtype) for a in avals])


RULES: dict[str, Callable] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "jit": _call("jaxpr"),
    "closed_call": _call("call_jaxpr"),
    "core_call": _call("call_jaxpr"),
    "remat2": _call("jaxpr"),
    "checkpoint": _call("jaxpr"),
    "custom_jvp_call": _call("call_jaxpr"),
    "custom_vjp_call": _call("call_jaxpr"),
    "custom_fusion": lambda k, eqn, *xs: _walk(k, *in_kernel(eqn.params, xs)),
}
