"""Programs that run on several devices at once: what they expect of arguments, and how they are launched."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo

from minijax.ir.meshes import Mesh, PartitionSpec
from minijax.ir.shardings import GSPMDSharding, NamedSharding, Sharding
from minijax.run import watch
from minijax.run.array import ArrayImpl, Signature, collect_garbage, signature
from minijax.run.compile import JaxRuntimeError, Program, result_handler

# ---- shardings that the compiler chose --------------------------------------------------------------


def chosen_shardings(program: Program, ins: int, outs: int) -> tuple[list, list]:
    """The HLO shardings of arguments and results, as the compiler has settled them."""
    executable = program.executable
    found = []
    for protos, count in ((executable.get_parameter_shardings(), ins), (executable.get_output_shardings(), outs)):
        chosen = [_hlo.HloSharding.from_proto(p) for p in protos or ()]
        found.append(chosen or [_hlo.HloSharding.replicate()] * count)
    return found[0], found[1]


def named_sharding(mesh: Mesh, hlo: Any, ndim: int) -> Sharding:
    """The sharding over the axes of `mesh` that lies as `hlo` says; of axes of size 1 nothing is known."""
    if hlo.is_replicated() or not hlo.is_tiled():
        return NamedSharding(mesh, PartitionSpec(*[None] * ndim if mesh.explicit_axes else ()))
    dims = list(hlo.tile_assignment_dimensions())
    devices = np.asarray(hlo.tile_assignment_devices())
    tile_of = np.empty(devices.size, np.int64)
    tile_of[devices] = np.arange(devices.size)
    places = np.stack(np.unravel_index(tile_of, dims), -1).reshape(*mesh.axis_sizes, len(dims))
    entries = [_axes_along(mesh, places[..., d]) for d in range(ndim)]
    unreduced = [
        _axes_along(mesh, places[..., d])
        for d, kind in enumerate(hlo.subgroup_types(), ndim)
        if kind == _hlo.OpSharding_Type.UNREDUCED
    ]
    if None in entries or None in unreduced:
        return GSPMDSharding(mesh._flat_devices_tuple, hlo)
    while entries and not entries[-1] and not mesh.explicit_axes:
        entries.pop()
    spec = [None if not e else e[0] if len(e) == 1 else e for e in entries]
    return NamedSharding(mesh, PartitionSpec(*spec, unreduced=frozenset(sum(unreduced, ()))))


def _axes_along(mesh, tiles):
    """The mesh axes whose coordinates, read as digits, number the tiles; None if there are none such."""
    total, found = np.zeros_like(tiles), []
    origin = (0,) * tiles.ndim
    for k, (name, size) in enumerate(mesh.shape_tuple):
        if size > 1:
            step = int(tiles[tuple([int(i == k) for i in range(tiles.ndim)])] - tiles[origin])
            if step:
                found.append((step, name))
                total = total + step * np.indices(mesh.axis_sizes, sparse=True)[k]
    found.sort(key=lambda pair: -pair[0])
    return tuple([name for _, name in found]) if np.array_equal(total, tiles) else None


# ---- launching --------------------------------------------------------------------------------------

_COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-", "reduce-scatter")
_turn = threading.Lock()
_last: list[Any] = [None]


def _launch_in_turn(execute: Callable, raws: Sequence, handlers: Sequence) -> list:
    # On CPU the members of two collective programs can starve each other of threads, and XLA then aborts
    # the process: one such program runs at a time.
    with _turn:
        if _last[0] is not None:
            with contextlib.suppress(JaxRuntimeError):
                _last[0].block_until_ready()
        collect_garbage()
        results = execute(raws, with_tokens=True)
        _last[0] = results.consume_token()
    return results.consume_with_handlers(handlers)


def _launch(execute: Callable, raws: Sequence, handlers: Sequence) -> list:
    collect_garbage()
    return execute(raws).consume_with_handlers(handlers)


def launcher(program: Program) -> Callable[[Callable, Sequence, Sequence], list]:
    """What runs a program of several devices: (its `execute_sharded`, raw arguments, handlers) -> results."""
    if program.devices[0].platform != "cpu":
        return _launch
    text = program.as_text()
    return _launch_in_turn if any(f" {name}" in text for name in _COLLECTIVES) else _launch


def bind_spread(
    program: Program, avals: Sequence[Any], shardings: Sequence[Sharding], label: str = ""
) -> Callable[[Sequence], list[ArrayImpl]]:
    """A function from raw inputs, which must be as the program expects them, to arrays."""
    signatures = [signature(aval, s, True) for aval, s in zip(avals, shardings, strict=True)]
    handlers = [result_handler(sig) for sig in signatures]
    execute = program.executable.execute_sharded
    launch = launcher(program)

    def run(raws):
        # jaxlib would end the process for an argument that is gone.
        for raw in raws:
            if raw.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={_type_text(raw.aval)}.")
        outputs = launch(execute, raws, handlers)
        return [sig.wrap(raw, sig) for raw, sig in zip(outputs, signatures, strict=True)]

    run = watch.watched(run, label or program.name)
    run.program = program  # as long as somebody can run it, the cache finds it
    return run


def check_donated(raws: Sequence[Any], donated: Sequence[int]) -> None:
    """Raises JaxRuntimeError if a program is given an array twice and may take its memory."""
    found = [id(raw) for raw in raws]
    if len(set(found)) == len(found):
        return
    for n in donated:
        if found.count(found[n]) > 1:
            again = next(k for k, same in enumerate(found) if same == found[n] and k != n)
            raise JaxRuntimeError(
                "INVALID_ARGUMENT: Attempt to use a buffer that was previously donated in the same call to "
                f"Execute() (flattened argument {again}, first use: {n}). Toy example for this bug: "
                "`f(donate(a), a)`."
            )


def _type_text(kind: Any) -> str:
    return kind.aval.str_short() if type(kind) is Signature else str(kind)


def is_placed(sig: Signature, sharding: Sharding) -> bool:
    """Whether an array lies as a program wants it, device by device."""
    if sig.sharding is sharding:
        return True
    mine, wanted = sig.sharding, sharding
    return (
        mine._device_assignment == wanted._device_assignment
        and mine.memory_kind == wanted.memory_kind
        and sig.native is signature(sig.aval, wanted, sig.committed).native
    )
