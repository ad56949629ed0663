"""Information about the environment of this process."""

import contextlib
import os
import platform
import sys

import numpy as np

from minijax.base.lazy import defer
from minijax.base.naming import VERSION
from minijax.run.clients import client

metadata = defer("importlib.metadata")
subprocess = defer("subprocess")


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints, or returns, information for bug reports: versions, devices and the output of `nvidia-smi`.

    Example:
        >>> jax.print_environment_info()
        jax:    ...
        jaxlib: ...
    """
    devices = client.devices()
    kinds = ", ".join(dict.fromkeys(device.device_kind for device in devices))
    version = sys.version.replace("\n", " ")
    lines = [
        f"jax:    {VERSION}",
        f"jaxlib: {metadata.version('jaxlib')}",
        f"numpy:  {np.__version__}",
        f"python: {version}",
        f"device info: {kinds}-{len(devices)}, {client.local_device_count()} local devices",
        f"process_count: {client.process_count()}",
        f"platform: {platform.uname()}",
        *[f"{k}={v}" for k, v in os.environ.items() if k.startswith(("JAX_", "XLA_"))],
    ]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        shown = subprocess.run(["nvidia-smi"], check=True, capture_output=True, text=True, errors="replace").stdout
        lines += ["", "$ nvidia-smi", shown]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
