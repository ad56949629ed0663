"""The part of `minijax doctor` with a process of its own, which a broken plugin or option may end."""

import json
from typing import Any

from minijax.base import config
from minijax.run.clients import client, plugins
from minijax.run.programs import disk_cache


def _outcome(function: Any) -> Any:
    """The result of a function, or the error as {"error": text}."""
    try:
        return function()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _options() -> dict[str, Any]:
    options = [config.option(name) for name in dir(config.config) if name.startswith(("jax", "mock"))]
    return {
        "names": [option.name for option in options],
        "set": {option.name: repr(option.value) for option in options if option.is_set},
    }


def _devices() -> dict[str, Any]:
    kinds: dict[str, list[str]] = {}
    for platform in client.clients():
        kinds[platform] = [device.device_kind for device in client.devices(platform)]
    return {"devices": kinds, "default": client.default_backend(), "failures": client.failures()}


def _plugins() -> dict[str, Any]:
    cuda = plugins.find_cuda()
    return {"cuda": cuda and cuda[1], "tpu": plugins.find_tpu()}


def main() -> None:
    """Prints what it found as a line of JSON for each part, so that those before a crash are there."""
    for name, part in {"options": _options, "cache": _cache, "plugins": _plugins, "devices": _devices}.items():
        print(json.dumps({name: _outcome(part)}), flush=True)


def _cache() -> dict[str, Any]:
    return {"folder": disk_cache.folder_in_use()}


if __name__ == "__main__":
    main()
