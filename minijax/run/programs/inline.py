"""Programs that run in the thread that calls them, also within a host callback."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import xla_client as xc

from minijax.base import config
from minijax.base.cache import cache
from minijax.hlo.module import lower_jaxpr
from minijax.hlo.program import plain_program
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.run.arrays.array import put_host, signature
from minijax.run.clients import client
from minijax.run.programs.compile import compile_text


@cache(maxsize=1)
def _device() -> Any:
    """The device of a client without threads of its own, which host callbacks may hold."""
    client.quieten()
    return xc.make_cpu_client(asynchronous=False, num_devices=1).local_devices()[0]


class InlineProgram:
    """A jaxpr as a function of NumPy arrays, compiled at its first call under the options of when it was made."""

    __slots__ = ("_closed", "_state", "_execute", "_signatures")

    def __init__(self, closed: ClosedJaxpr):
        self._closed, self._state, self._execute = closed, config.state(), None
        self._signatures: list[Any] = []

    def _compile(self) -> Any:
        device = _device()
        module = lower_jaxpr(plain_program("inline", self._closed))
        sharding = client.single_device_sharding(device)
        self._signatures = [signature(a, sharding, True) for a in self._closed.in_avals]
        return compile_text(module.text, name="inline", devices=(device,), host_calls=module.callbacks).execute

    def __call__(self, values: Sequence[Any]) -> list[np.ndarray]:
        if self._execute is None:
            self._execute = config.run_as_of(self._state, self._compile)
        raws = [put_host(np.asarray(x), s) for x, s in zip(values, self._signatures, strict=True)]
        return [np.asarray(x[0]) for x in self._execute(raws).disassemble_into_single_device_arrays()]
