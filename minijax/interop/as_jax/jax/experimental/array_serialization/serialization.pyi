# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.array_serialization.serialization import (AsyncManager as AsyncManager, BarrierTimeoutError
    as BarrierTimeoutError, GlobalAsyncCheckpointManager as GlobalAsyncCheckpointManager,
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase, TS_CONTEXT as TS_CONTEXT,
    get_tensorstore_spec as get_tensorstore_spec, is_remote_storage as is_remote_storage, logger as logger,
    run_deserialization as run_deserialization, run_serialization as run_serialization)
