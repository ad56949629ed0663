"""The rules of control flow, calls, the grid, prints and scopes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.higher.cond import group_of
from minijax.hlo import spell
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal
from minijax.kernels.fuser.custom import in_kernel
from minijax.kernels.mosaic.references import region
from minijax.kernels.mosaic.verbs import Region, Value, ints, memref, type_of
from minijax.kernels.mosaic.walk import Kernel, Site, rule, unchanged
from minijax.kernels.text import I32

# ---- calls ---------------------------------------------------------------------------------------------

_CALLS = "jit closed_call core_call remat2 checkpoint custom_jvp_call custom_vjp_call custom_vmap_call".split()


def _called(params: dict[str, Any]) -> Jaxpr | ClosedJaxpr:
    """The jaxpr of a call; the primal function of a custom rule."""
    return next(params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in params)


def inlined(k: Kernel, jaxpr: Jaxpr | ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Writes a jaxpr in place of a call."""
    if isinstance(jaxpr, ClosedJaxpr):
        consts = [k.value(c, v.aval) for c, v in zip(jaxpr.consts, jaxpr.constvars, strict=True)]
        return k.run(jaxpr.jaxpr, [*consts, *operands])
    return k.run(jaxpr, operands)


@rule(*_CALLS)
def _call(k: Kernel, site: Site, *operands: Any, **params: Any) -> list[Any]:
    return inlined(k, _called(params), operands)


@rule("custom_fusion")
def _custom_fusion(k: Kernel, site: Site, *operands: Any, **params: Any) -> list[Any]:
    return inlined(k, *in_kernel(params, operands))


# ---- branches ------------------------------------------------------------------------------------------


@rule("cond")
def _cond(k: Kernel, site: Site, index: Value, *operands: Any, branches: Sequence[Any], **_: Any) -> list[Value]:
    results = [type_of(a) for a in site.outs]
    write = lambda branch: lambda: _values(k, branch, operands)  # noqa: E731

    def choose(index, rest):
        """Writes the choice among the branches that are left; the first one has the number 0."""
        is_other = k.compare("ne", index, k.i32(0))
        if len(rest) == 2:
            return k.branch(is_other, results, write(rest[1]), write(rest[0]))
        others = lambda: choose(k.binary("sub", index, k.i32(1)), rest[1:])  # noqa: E731
        return k.branch(is_other, results, others, write(rest[0]))

    if len(branches) == 1 or index in k.chosen:
        return _values(k, branches[k.chosen.get(index, 0)], operands)
    return choose(index, branches)


def _values(k: Kernel, closed: Jaxpr | ClosedJaxpr, operands: Sequence[Any]) -> list[Value]:
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    found = inlined(k, closed, operands)
    return [k.value(x, v.aval) for x, v in zip(found, jaxpr.outvars, strict=True)]


@rule("platform_index")
def _platform_index(k: Kernel, site: Site, platforms: Any) -> Value:
    number = group_of("mosaic", platforms)
    index = k.i32(number)
    k.chosen[index] = number
    return index


# ---- loops ---------------------------------------------------------------------------------------------


def _counter_dropped(jaxpr: Jaxpr, position: int) -> Jaxpr | None:
    """The body of a loop whose carry at `position` counts steps, without that count; None if it does not count.

    The number of the step stays an input.
    """
    at = position - (len(jaxpr.invars) - len(jaxpr.outvars))
    counter, counted = jaxpr.invars[position], jaxpr.outvars[at]
    eqn = next((e for e in jaxpr.eqns if counted in e.outvars), None)
    if eqn is None or not _adds_one(eqn, counter):
        return None
    used = [a for e in jaxpr.eqns for a in e.invars] + jaxpr.outvars
    if sum(a is counted for a in used) > 1:
        return None
    outs = [v for i, v in enumerate(jaxpr.outvars) if i != at]
    return jaxpr.replace(eqns=[e for e in jaxpr.eqns if e is not eqn], outvars=outs)


def _adds_one(eqn: Any, counter: Any) -> bool:
    """Returns whether an equation is a number of 32 bits plus one."""
    if eqn.primitive.name != "add" or eqn.invars[0] is not counter:
        return False
    step, aval = eqn.invars[1], counter.aval
    return isinstance(step, Literal) and step.val == 1 and not aval.shape and aval.dtype == np.int32


class _Loop:
    """A loop that counts: its body as a jaxpr of (constants, number of the step if it is used, carry)."""

    def __init__(self, k: Kernel, jaxpr: Jaxpr, consts: Sequence[Any], counts: bool):
        self._k, self._jaxpr, self._consts, self._counts = k, jaxpr, consts, counts

    def _step(self, number: Value | Callable[[], Value], carry: Sequence[Value]) -> list[Value]:
        number = number() if callable(number) else number
        return self._k.values(self._jaxpr, [*self._consts, *([number] if self._counts else []), *carry])

    def static(self, start: Any, length: int, unroll: int, carry: Sequence[Value]) -> list[Value]:
        """A loop of so many steps from `start`, an int or a value."""
        k = self._k
        carry = list(carry)
        if (unroll == length or not unroll) and length:
            for i in range(length):
                number = k.binary("add", start, k.i32(i)) if isinstance(start, Value) else k.i32(start + i)
                carry = self._step(number, carry)
            return carry
        first = k.as_i32(start)
        together = length // unroll * unroll if length else 0
        stop = k.binary("add", first, k.i32(together))
        if together:
            carry = k.loop(first, stop, k.i32(unroll), carry, self._unrolled(unroll))
        for i in range(together, length):
            carry = self._step(k.binary("add", first, k.i32(i)), carry)
        return carry

    def _unrolled(self, unroll: int) -> Callable:
        def body(number, *carry):
            for i in range(unroll):
                carry = self._step(self._k.binary("add", number, self._k.i32(i)) if i else number, carry)
            return carry

        return body

    def dynamic(self, start: Value, end: Value, carry: Sequence[Value]) -> list[Value]:
        """A loop between bounds that are known when the program runs."""
        k = self._k
        count = k.binary("sub", end, start)
        stop = k.binary("add", start, count)
        unroll = k.i32(1)
        together = k.binary("add", start, k.binary("mul", k.binary("div", count, unroll), unroll))
        carry = k.loop(start, together, k.i32(1), carry, self._unrolled(1))
        return k.loop(together, stop, k.i32(1), carry, self._unrolled(1))


@rule("scan", arguments=unchanged, late=True)
def _scan(
    k: Kernel, site: Site, *operands: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int,
    reverse: bool, unroll: int, **_: Any,
) -> list[Any]:  # fmt: skip
    count = num_consts + num_carry
    if len(operands) > count:
        raise ValueError(
            f"Scan with {len(operands) - count} extensive argument(s) is not supported. Found {num_consts} consts "
            f"and {num_carry} carry arguments. Index a reference with the number of the step instead."
        )
    if len(site.outs) > num_carry:
        raise ValueError(
            f"Scan with {len(site.outs) - num_carry} extensive output(s) is not supported. Write to a reference "
            "instead."
        )
    if reverse:
        raise NotImplementedError("scan: kernels for TPUs have no loops in reverse; count from the end in the body")
    consts = [k.value(x, a) for x, a in zip(operands[:num_consts], site.ins, strict=False)]
    body = _closed_body(k, jaxpr)
    inner = _counter_dropped(body, num_consts) if num_carry else None
    counts = inner is not None
    carried = list(zip(operands[num_consts + counts :], site.ins[num_consts + counts :], strict=True))
    carry = [k.value(x, a) for x, a in carried]
    start = operands[num_consts] if counts else 0
    start = start if isinstance(start, Value) else int(start)
    results = _Loop(k, inner or body, consts, counts).static(start, length, unroll, carry)
    if not counts:
        return results
    last = k.binary("add", start, k.i32(length)) if isinstance(start, Value) else k.i32(length)
    return [last, *results]


def _closed_body(k: Kernel, closed: ClosedJaxpr) -> Jaxpr:
    if closed.consts:
        raise NotImplementedError("a loop in a kernel for TPUs captures constants; pass them as operands of the kernel")
    return closed.jaxpr


@rule("while")
def _while(
    k: Kernel, site: Site, *operands: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int, **_: Any,
) -> list[Any]:  # fmt: skip
    tests, condition, body = operands[:cond_nconsts], _closed_body(k, cond_jaxpr), _closed_body(k, body_jaxpr)
    consts, carry = operands[cond_nconsts : cond_nconsts + body_nconsts], operands[cond_nconsts + body_nconsts :]
    inner = _bounded(condition, body, cond_nconsts, body_nconsts)
    if inner is not None:
        start, end, *rest = carry
        # The bound stays an input of the body, which returns it as it got it.
        return [end, end, *_Loop(k, inner, consts, True).dynamic(start, end, rest)]
    types = [x.type for x in carry]

    def before(*values):
        return [*k.values(condition, [*tests, *values]), *values]

    def after(*values):
        return k.values(body, [*consts, *values])

    regions = [Region(types, before, "scf.condition"), Region(types, after, "scf.yield")]
    return k.op("scf.while", list(carry), types, None, regions)


def _bounded(condition: Jaxpr, body: Jaxpr, cond_nconsts: int, body_nconsts: int) -> Jaxpr | None:
    """The body of a loop that counts from its first carry to its second, without the count and the bound.

    None if the loop does not.
    """
    if cond_nconsts or len(condition.eqns) != 1 or len(condition.invars) < 2:
        return None
    (eqn,) = condition.eqns
    number, bound = condition.invars[:2]
    if eqn.primitive.name != "lt" or eqn.invars != [number, bound] or condition.outvars != eqn.outvars:
        return None
    if body.outvars[1] is not body.invars[body_nconsts + 1]:
        return None
    inner = _counter_dropped(body, body_nconsts)
    if inner is None:
        return None
    limit = body.invars[body_nconsts + 1]
    if any(limit in e.invars for e in inner.eqns) or limit in inner.outvars[1:]:
        return None
    return inner.replace(invars=[v for v in inner.invars if v is not limit], outvars=inner.outvars[1:])


# ---- the grid ------------------------------------------------------------------------------------------


@rule("program_id")
def _program_id(k: Kernel, site: Site, axis: int) -> Value:
    return k.grid.ids[k.grid.axis(axis)]


@rule("num_programs")
def _num_programs(k: Kernel, site: Site, axis: int) -> Value:
    number = k.grid.axis(axis)
    size = k.grid.sizes[number]
    return k.one("tpu.iteration_bound", (), I32, dim=f"{number} : i32") if size is None else k.i32(size)


# ---- prints and others -----------------------------------------------------------------------------------

_HOLE = re.compile(r"\{[^{}]*\}")


@rule("debug_print")
def _debug_print(k: Kernel, site: Site, *xs: Value, fmt: str, **_: Any) -> list[Value]:
    if not xs:
        k.op("tpu.log", attributes=dict(tag=spell.string(fmt)))
        return []
    if len(xs) == 1 and xs[0].shape:
        return _print_buffer(k, site, xs[0], fmt)
    if not all(x.type == I32 for x in xs):
        raise TypeError(
            "All arguments must be 32-bit integers when using placeholders (`{...}`). If you need to print values of "
            "other types, remove placeholders from the format string."
        )
    numbers = iter(range(len(xs)))
    tag = _HOLE.sub(lambda _: f"${next(numbers)}", fmt)
    k.op("tpu.log", xs, attributes=dict(formatted="true", tag=spell.string(tag)))
    return []


def _print_buffer(k: Kernel, site: Site, x: Value, fmt: str) -> list[Value]:
    """Prints a vector, which is written to memory first."""
    if not fmt.endswith("{}") or fmt.count("{}") != 1:
        raise NotImplementedError(f"debug_print: a vector is printed by a format that ends in one {{}}, not by {fmt!r}")

    def body():
        kind = memref(x.shape, x.element, "vmem")
        buffer = k.memory_of_its_own(kind)
        zero = k.index(0)
        k.op("vector.store", [x, buffer, *[zero] * len(x.shape)])
        k.op("tpu.log_buffer", [buffer], attributes=dict(shape=ints(x.shape), tag=spell.string(fmt[:-2])))
        return []

    return region(k, (), body)


@rule("check")
def _check(k: Kernel, site: Site, *_: Any, **__: Any) -> None:
    """Checks that no `checkify` collects are left out."""


@rule("add_dependency")
def _add_dependency(k: Kernel, site: Site, x: Any, *_: Any) -> list[Any]:
    return [x][: len(site.outs)]


@rule("delay")
def _delay(k: Kernel, site: Site, nanos: Value) -> None:
    k.op("tpu.delay", [nanos])


@rule("trace_value")
def _trace_value(k: Kernel, site: Site, x: Value, label: str) -> None:
    k.op("tpu.trace_value", [x], attributes=dict(label=spell.string(label)))


@rule("multiple_of")
def _multiple_of(k: Kernel, site: Site, x: Value, values: Sequence[int]) -> Value:
    for multiple in values:
        x = k.one("tpu.assume_multiple", [x], x.type, multiple=f"{multiple} : i32")
    return x


@rule("prng_seed")
def _seed(k: Kernel, site: Site, *seeds: Value) -> None:
    k.op("tpu.prng_set_seed_32", seeds)


@rule("prng_random_bits")
def _random_bits(k: Kernel, site: Site, shape: Sequence[int], **_: Any) -> Value:
    return k.op("tpu.prng_random_bits", (), [type_of(site.out)])[0]


@rule("prng_split")
def _split_key(k: Kernel, site: Site, key: Sequence[Value]) -> list[Any]:
    return list(key)


@rule("prng_join")
def _join_key(k: Kernel, site: Site, *seeds: Value) -> list[Any]:
    return [seeds]
