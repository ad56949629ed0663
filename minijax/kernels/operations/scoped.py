"""References that live while a function runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, tree
from minijax.base.mask import Mask
from minijax.calls.bodied import split_tangents
from minijax.composed.refs import new_ref_p
from minijax.ir import state
from minijax.ir.body import Flat, argument_names, as_consts, signature_of, source_of, trace_flat
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Primitive
from minijax.ir.refs import Ref
from minijax.ir.trace import JaxprTrace
from minijax.kernels.expanded import Step, evaluate
from minijax.kernels.uninitialized import uninitialized
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.discharge import DischargeableCall
from minijax.transforms.jvp import jvp_jaxpr


class RunScoped(DischargeableCall):
    """Calls a jaxpr with new references as its inputs; its constants are the operands."""

    name = "run_scoped"
    auto_pvary = False
    owns_refs = True

    def infer(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def effects(self, *avals, jaxpr, **params):
        return jaxpr.effects

    def evaluate_in_kernel(self, operands: Sequence, params: dict, step: Step) -> list:
        """The results of the body, whose references are values."""
        jaxpr = params["jaxpr"]
        refs = [_made(uninitialized(v.aval.shape, v.aval.dtype)) for v in jaxpr.invars]
        body = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
        return evaluate(body, [], [*operands, *refs], step)

    def jvp(self, primals, tangents, **params):
        """Calls the body on primals and tangents, with references to tangents beside those to floats."""
        jaxpr = params["jaxpr"]
        moved, made = nonzero_mask(tangents), Mask([dtypes.issubdtype(v.aval.dtype, np.inexact) for v in jaxpr.invars])
        opened = ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]))
        pushed, nonzeros = jvp_jaxpr(opened, (*moved, *made), (False,) * len(jaxpr.outvars))
        n, m, k = len(moved), len(made), sum(moved)
        ins = pushed.jaxpr.invars
        # (operands, new references; tangents of both) -> (operands, tangents), (new references, tangents)
        consts, new = [*ins[:n], *ins[n + m : n + m + k]], [*ins[n : n + m], *ins[n + m + k :]]
        info = pushed.jaxpr.debug_info._replace(arg_names=None)
        body = pushed.jaxpr.replace(constvars=consts, invars=new, debug_info=info)
        operands = [*primals, *moved.marked(tangents)]
        results = self.bind_all(operands, {**params, "jaxpr": body, "ref_transforms": ((),) * len(new)})
        count = len(jaxpr.outvars)
        return split_tangents(results[:count], results[count:], nonzeros)

    def _on_values(self, operands, params):
        return self.evaluate_in_kernel(operands, params, Step((), ()))


def _made(value: Any) -> Any:
    """A new reference; where the body of a loop or branch is recorded, operations on references are too."""
    trace = state.current_trace()
    if type(trace) is JaxprTrace and not trace.keeps_refs:
        return Primitive.bind_all(new_ref_p, [value], dict(memory_space=None, kind=None))[0]
    return Ref(value)


run_scoped_p = RunScoped()


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """Calls a function with references to new memory, which lives until the function returns.

    Args:
      f: function of references.
      *types: types of its positional arguments, such as `pltpu.VMEM((8, 128), jnp.float32)`, and trees of these.
      collective_axes: names of axes along which one memory is shared, on GPUs.
      **kw_types: types of its keyword arguments.

    Returns:
      The result of the function.

    See also: `pl.with_scoped`, `scratch_shapes` of `pl.pallas_call`.

    Example:
        >>> def kernel(x_ref, o_ref):
        ...     def body(scratch):
        ...         scratch[...] = x_ref[...] + 1
        ...         o_ref[...] = scratch[...] * 2
        ...     pl.run_scoped(body, pl.ANY((4,), jnp.int32))
        >>> print(pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), interpret=True)(jnp.arange(4)))
        [2 4 6 8]
    """
    leaves, treedef = tree.flatten((types, kw_types))
    axes = collective_axes if isinstance(collective_axes, tuple) else (collective_axes,)
    avals = [x.get_ref_aval() for x in leaves]
    flat = Flat(f, treedef, lambda values: values)
    info = DebugInfo("run_scoped", source_of(f), argument_names(signature_of(f), treedef, ()))
    body = trace_flat(flat, avals, info, as_consts)
    jaxpr, consts = body.jaxpr, body.closed.consts
    results = run_scoped_p.bind_all(
        list(consts), dict(jaxpr=jaxpr, collective_axes=axes, ref_transforms=((),) * len(avals))
    )
    return body.out_tree.unflatten(results)


class GetGlobal(Primitive):
    """A reference to memory that outlives the kernel, which only Mosaic has for GPUs."""

    name = "get_global"

    def infer(self, *, what):
        return [what]

    def evaluate_in_kernel(self, operands: Any, params: dict, step: Any) -> list:
        """Raises NotImplementedError: interpreted kernels have no such memory."""
        raise _no_memory()


def _no_memory() -> NotImplementedError:
    return NotImplementedError("get_global: there is such memory only where Mosaic compiles a kernel for GPUs")


get_global_p = GetGlobal()


def get_global(what: Any) -> Any:
    """Returns a reference to memory that outlives the kernel.

    Args:
      what: type of the memory, such as `pltpu.SemaphoreType.REGULAR`.

    Kernels with such memory are traced, but neither interpreted nor compiled: only Mosaic has it, for GPUs.

    See also: `pl.run_scoped`.

    Example:
        >>> def kernel(o):
        ...     counter = pl.get_global(pltpu.SemaphoreType.REGULAR)
        ...     pl.semaphore_signal(counter)
        >>> traced = jax.jit(pl.pallas_call(kernel, jax.ShapeDtypeStruct((1,), jnp.int32))).trace()
        >>> 'get_global' in str(traced.jaxpr)
        True
    """
    if state.thread.trace is None:
        raise _no_memory()
    return get_global_p.bind(what=what.get_ref_aval())


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable:
    """Gives the decorated function references to new memory, after its own arguments or by name.

    Arguments as those of `pl.run_scoped`.

    Example:
        >>> def kernel(x, o):
        ...     @pl.with_scoped(pltpu.VMEM((2,), jnp.int32))
        ...     def body(scratch):
        ...         scratch[...] = 2 * x[...]
        ...         o[...] = scratch[...] + 1
        ...     body()
        >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)(jnp.array([1, 2]))
        Array([3, 5], dtype=int32)
    """

    def decorate(f):
        def called(*args, **kwargs):
            return run_scoped(
                lambda *refs, **named: f(*args, *refs, **kwargs, **named),
                *types,
                collective_axes=collective_axes,
                **kw_types,
            )

        return called

    return decorate
