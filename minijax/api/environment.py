"""Questions about the process: what it runs on, and whether it is done."""

import os
import platform
import sys

import numpy as np

from minijax.base.lazy import defer
from minijax.base.naming import VERSION
from minijax.run import client

metadata = defer("importlib.metadata")


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints, or returns, what a report of a problem should say of versions and devices."""
    devices = client.devices()
    kinds = ", ".join(dict.fromkeys(device.device_kind for device in devices))
    version = sys.version.replace("\n", " ")
    text = f"""\
jax:    {VERSION}
jaxlib: {metadata.version("jaxlib")}
numpy:  {np.__version__}
python: {version}
device info: {kinds}-{len(devices)}, {client.local_device_count()} local devices
process_count: {client.process_count()}
platform: {platform.uname()}
"""
    told = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(("JAX_", "XLA_"))]
    text += "".join([f"{line}\n" for line in told])
    if return_string:
        return text
    print(text, end="")
    return None
