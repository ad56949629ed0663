"""Custom partitioners: functions that XLA calls during compilation to partition calls."""

import itertools
import weakref
from collections.abc import Callable, Sequence

from jaxlib import _hlo, xla_client as xc

from minijax.base import cache, config, thread
from minijax.run.clients import plugins
from minijax.run.programs.custom_calls import ensure_custom_calls

# jaxlib keeps the first function registered under a name, which may be jax's: hence a name of our own.
TARGET = "MinijaxSPMDPartitioning"
_numbers = itertools.count(1)
_partitioners: weakref.WeakValueDictionary[int, "Partitioner"] = weakref.WeakValueDictionary()

# HLO shardings of operands and results -> the per-device module, and the shardings of its operands and results.
Function = Callable[[Sequence, Sequence], tuple[str, list, list]]


class Partitioner:
    """A function that partitions a call, run under the options of the thread that created this, not of XLA's threads.

    A program refers to it by its `number`, and keeps it alive until it is compiled.
    """

    __slots__ = ("function", "number", "state", "__weakref__")

    def __init__(self, function: Function):
        _register()
        self.function, self.number, self.state = function, next(_numbers), config.state()
        _partitioners[self.number] = self

    def raise_error(self) -> None:
        """Does nothing, since XLA raises the function's errors itself."""


@cache.cache
def _register() -> None:
    for plugin in (None, *plugins.loaded):
        how = {} if plugin is None else {"c_api": plugin}
        xc.register_custom_call_partitioner(TARGET, _refuse, _partition, _refuse, True, **how)


def _partition(shapes, in_shardings, result_shape, result_sharding, number):
    is_tuple = result_shape.is_tuple()
    out_shardings = result_sharding.tuple_elements() if is_tuple else [result_sharding]
    partitioner = _partitioners[int(number)]
    with thread.outside_traces():
        text, ins, outs = config.run_as_of(partitioner.state, partitioner.function, in_shardings, out_shardings)
    ensure_custom_calls(text)
    return text.encode(), ins, _hlo.HloSharding.tuple_sharding(result_shape, outs) if is_tuple else outs[0]


def _refuse(*call):
    raise NotImplementedError("custom_partitioning: Shardy propagates shardings, by the sharding rule")
