"""Calls with one NumPy array: jaxlib's own dispatch moves it to the device and launches the program."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jaxlib.version
from jaxlib import _jax

from minijax.base.cache import cache
from minijax.run import transfer
from minijax.run.array import ArrayImpl, Signature

# Up to here a copy, which a program that is still running may read, costs less than to move the array first.
_MAX_BYTES = 1 << 14
_KNOWN = "0.10."  # the jaxlib whose dispatch this was written for: its interface is jax's private one


class _Launch(NamedTuple):
    """What jaxlib reads of a program that it launches, by these names."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence
    out_shardings: Sequence
    out_avals: Sequence
    out_committed: Sequence
    kept_var_bitvec: Sequence
    in_device_local_layouts: Sequence
    const_args: Sequence = ()


def bind_host_call(call: Callable[[Sequence], Any], sig: Signature) -> Callable[[Sequence], Any] | None:
    """`call`, a function of one array with the signature `sig`, as one of a NumPy array of that type.

    None if transfers are watched.
    """
    place = transfer.placer(sig)
    if place is None:
        return None

    def moved(values):
        return call((place(values[0]),))

    return _launched(call, sig, moved) if _is_launchable(call, sig) else moved


def _is_launchable(call, sig):
    result = getattr(call, "result", None)
    return (
        result is not None
        and result.wrap is ArrayImpl
        and not (_is_wide(sig.dtype) or _is_wide(result.dtype))
        and sig.aval.size * sig.dtype.itemsize <= _MAX_BYTES
        and _set_up()
    )


def _is_wide(dtype):
    """Whether what becomes of the dtype depends on a switch that the real jax shares."""
    return dtype.itemsize // (1 + (dtype.kind == "c")) >= 8


def _launched(call, sig, moved):
    result = call.result
    launch = _Launch(
        call.program.executable, _leaf(), [sig.native], [result.native], [result], [result.committed], [True], [None]
    )

    def plainly(x):
        return moved((x,))._raw

    dispatch = _jax.pjit(
        call.program.name,
        plainly,
        lambda x: (plainly(x), launch),
        [],
        [],
        sig,
        _registry(),
        plainly,
        _jax.PjitFunctionCache(1),
    )
    # jaxlib may let the program read the memory of the array: it gets one that nobody else can write to.
    return lambda values: ArrayImpl(dispatch(values[0].copy()), result)


def _registry():
    return _jax.pytree.default_registry()


@cache
def _leaf():
    return _registry().flatten(0)[1]


@cache
def _set_up() -> bool:
    """Whether jaxlib's dispatch can be used; it reads switches, which the real jax sets if it is there."""
    if not jaxlib.version.__version__.startswith(_KNOWN):
        return False
    if "jax._src.config" not in sys.modules:
        switches = _jax.jax_jit
        switches.set_enable_x64_state(switches._Config("minijax_enable_x64", False))
        switches.set_disable_jit_state(switches._Config("minijax_disable_jit", False))
        switches.set_post_hook_state(switches._Config("minijax_post_hook", None))
    return True
