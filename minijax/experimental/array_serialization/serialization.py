"""jax.experimental.array_serialization.serialization: saves arrays of several processes by tensorstore."""

import abc
import asyncio
import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import tree
from minijax.base.errors import JaxRuntimeError
from minijax.base.faces import listing
from minijax.experimental.array_serialization import tensorstore_impl
from minijax.experimental.array_serialization.tensorstore_impl import (
    TS_CONTEXT as TS_CONTEXT,
    LimitInFlightBytes,
    async_deserialize as async_deserialize,
    async_serialize as async_serialize,
    is_remote_storage as is_remote_storage,
)
from minijax.run.clients import client, distributed

__all__, __dir__ = listing(
    __name__,
    """
    AsyncManager BarrierTimeoutError GlobalAsyncCheckpointManager GlobalAsyncCheckpointManagerBase TS_CONTEXT
    get_tensorstore_spec is_remote_storage logger run_deserialization run_serialization
""",
)

logger = logging.getLogger("jax.experimental.array_serialization.serialization")

get_tensorstore_spec = functools.partial(tensorstore_impl.get_tensorstore_spec, ocdbt=False, driver="zarr")

_numbers = itertools.count()  # of commits; equal in all processes, which commit in the same order
_GB = 10**9


class BarrierTimeoutError(Exception):
    """Raised if another process does not reach the commit barrier in time."""


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]]) -> None:
    """Writes the arrays of a tree, and waits until they are on disk."""

    async def run() -> None:
        await asyncio.gather(*tree.tree_leaves(tree.tree_map(async_serialize, arrays, tensorstore_specs)))

    asyncio.run(run())


def run_deserialization(
    shardings: Sequence, tensorstore_specs: Sequence, global_shapes: Any = None, dtypes: Any = None,
    concurrent_gb: int = 32,
) -> list:  # fmt: skip
    """Reads arrays, at most `concurrent_gb` gigabytes at a time."""

    async def run() -> list:
        limit = LimitInFlightBytes(concurrent_gb * _GB)
        count = len(shardings)
        rows = zip(shardings, tensorstore_specs, global_shapes or [None] * count, dtypes or [None] * count, strict=True)
        return await asyncio.gather(*(async_deserialize(s, t, shape, dtype, limit) for s, t, shape, dtype in rows))

    return asyncio.run(run())


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of managers that write arrays asynchronously, one checkpoint at a time."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises the error of the last write, if any."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Waits until the last write is done."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Sequence[Any], tensorstore_specs: Sequence[dict], *, on_commit_callback: Callable
    ) -> None:
        """Starts to write arrays."""

    @abc.abstractmethod
    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict], global_shapes: Any = None, dtypes: Any = None
    ) -> list:
        """Reads arrays."""


class AsyncManager:
    """Waits in a thread until the arrays of every process are on disk; then the first process commits them.

    Raises ValueError in a program of several processes without `jax.distributed.initialize()`.
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout_in_ms = timeout_secs * 1000
        self._commit_futures: Sequence[Any] = ()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._client = distributed.state.client
        if client.process_count() > 1 and self._client is None:
            raise ValueError(
                "AsyncManager: a program of several processes must call `jax.distributed.initialize()` when it starts"
            )

    def __del__(self):
        if getattr(self, "_thread", None) is not None and self._thread.is_alive():
            logger.warning("A checkpoint is still being written: `wait_until_finished` was not called.")

    def _commit(self, on_commit_callback: Callable[[], None], number: int) -> None:
        started = time.monotonic()
        try:
            for future in self._commit_futures:
                future.result()
            if client.process_count() > 1:
                self._wait_at_barrier(f"tensorstore_checkpoint_{number}")
            if client.process_index() == 0:
                on_commit_callback()
                if client.process_count() > 1:
                    self._client.key_value_set(f"tensorstore_committed_{number}", "committed")
            logger.info("Checkpoint %d was committed in %.2f s", number, time.monotonic() - started)
        except Exception as error:
            self._error = error

    def _wait_at_barrier(self, name: str) -> None:
        try:
            self._client.wait_at_barrier(name, self._timeout_in_ms)
        except JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
            raise BarrierTimeoutError(
                f"Another process did not reach the commit barrier within {self._timeout_in_ms // 1000} s: {error}"
            ) from error

    def _add_futures(self, futures: Sequence[Any]) -> None:
        self._commit_futures = futures

    def _start_async_commit(self, on_commit_callback: Callable[[], None]) -> None:
        self._number = next(_numbers)
        self._thread = threading.Thread(target=self._commit, args=(on_commit_callback, self._number))
        self._thread.start()

    def check_for_errors(self) -> None:
        """Raises the error of the last write, if any, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Waits until the first process has committed the last write. Raises the error of the write, if any."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self.check_for_errors()
        if thread is not None and client.process_count() > 1:
            self._client.blocking_key_value_get(f"tensorstore_committed_{self._number}", self._timeout_in_ms)


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays asynchronously, and reads them."""

    def serialize(
        self, arrays: Sequence, tensorstore_specs: Sequence[dict], *,
        on_commit_callback: Callable[[], None] | None = None, transaction: Any = None,
    ) -> None:  # fmt: skip
        """Starts to write arrays. The first process calls `on_commit_callback` once all are on disk."""
        self.wait_until_finished()
        commits: list = []

        async def run() -> None:
            write = functools.partial(async_serialize, commit_future=commits, transaction=transaction)
            await asyncio.gather(*tree.tree_leaves(tree.tree_map(write, arrays, tensorstore_specs)))

        asyncio.run(run())
        self._add_futures(commits)
        self._start_async_commit(on_commit_callback or (lambda: None))

    def serialize_with_paths(
        self, arrays: Sequence, paths: Sequence[str], *,
        on_commit_callback: Callable[[], None] | None = None, transaction: Any = None,
    ) -> None:  # fmt: skip
        """As `serialize`, to these paths."""
        specs = [get_tensorstore_spec(path) for path in paths]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self, shardings: Sequence, tensorstore_specs: Sequence, global_shapes: Any = None, dtypes: Any = None,
        concurrent_gb: int = 32,
    ) -> list:  # fmt: skip
        """Reads arrays after the pending write is done."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self, shardings: Sequence, paths: Sequence[str], global_shapes: Any = None, dtypes: Any = None,
        concurrent_gb: int = 32,
    ) -> list:  # fmt: skip
        """As `deserialize`, from these paths."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
