"""User-defined functions that rewrite modules while XLA compiles them."""

import enum
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _xla

from minijax.base import thread
from minijax.run.clients import client, jaxlib_versions

# (name, stage, platform) -> the number of registered functions.
_registered: dict[tuple[str, int, str], int] = {}
_changes = [0]


class PipelineStage(enum.Enum):
    """The stage of the compilation at which a function is called."""

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def state() -> int:
    """A number that changes with each registration, part of cache keys; 0 if nothing was ever registered."""
    return _changes[0]


def _platforms(platforms: Sequence[str] | str | None) -> list[str]:
    if platforms is None:
        return list(client.clients())
    return [platforms] if isinstance(platforms, str) else list(dict.fromkeys(platforms))


def _check_stage(stage: Any) -> None:
    if not isinstance(stage, PipelineStage):
        raise TypeError(f"stage must be a PipelineStage enum, got {type(stage)}")


def register_hlo_module_transformation(
    callback: Callable[[bytes], bytes | None],
    *,
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> None:
    """Registers a function from each serialized module that XLA compiles to the module to continue with, or None.

    Functions of one stage are called in the order of registration, by default on all platforms. Programs compiled
    before are kept. Raises TypeError for an invalid function, name or stage.
    """
    _check_stage(stage)
    if not callable(callback) or not isinstance(name, str):
        raise TypeError(f"register_hlo_module_transformation: {callback!r}, {name!r} is not a function with a name")

    def transform(module: bytes) -> bytes | None:
        with thread.outside_traces():
            result = callback(module)
        if not isinstance(result, bytes | None):  # XLA would end the process
            raise TypeError(f"the HLO module transformation {name} must return bytes or None, got {type(result)}")
        return result

    for platform in _platforms(platforms):
        if platform == "cpu":
            _xla.register_xla_transform(name, stage.value, transform)
        elif platform in client.clients():
            interface = jaxlib_versions.plugin_interface(client.get_client(platform), platform)
            _xla.register_xla_transform_c_api(interface, name, stage.value, transform)
        else:
            continue
        key = name, stage.value, platform
        _registered[key] = _registered.get(key, 0) + 1
        _changes[0] += 1


def clear_hlo_module_transformation(
    name: str, stage: PipelineStage = PipelineStage.PRE_SCHEDULER, platforms: Sequence[str] | str | None = None
) -> bool:
    """Unregisters the first function that was registered under a name; returns whether there was one.

    Raises TypeError for an invalid stage.
    """
    _check_stage(stage)
    found = False
    for platform in _platforms(platforms):
        key = name, stage.value, platform
        if not _registered.get(key):
            continue
        if platform == "cpu":
            _xla.clear_xla_transform(name, stage.value)
        else:
            interface = jaxlib_versions.plugin_interface(client.get_client(platform), platform)
            _xla.clear_xla_transform_c_api(interface, name, stage.value)
        _registered[key] -= 1
        _changes[0] += 1
        found = True
    return found


def is_any() -> bool:
    """Returns whether a function is registered; then compiled programs must not be stored on disk."""
    return any(_registered.values())
