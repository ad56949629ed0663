# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.processes import ProcessFailureError as ProcessFailureError
from minijax.api.processes import assert_equal as assert_equal
from minijax.api.processes import broadcast_one_to_all as broadcast_one_to_all
from minijax.api.processes import global_array_to_host_local_array as global_array_to_host_local_array
from minijax.api.processes import host_local_array_to_global_array as host_local_array_to_global_array
from minijax.api.processes import live_devices as live_devices
from minijax.api.processes import process_allgather as process_allgather
from minijax.api.processes import reached_preemption_sync_point as reached_preemption_sync_point
from minijax.api.processes import sync_global_devices as sync_global_devices
from minijax.partition.shardings import PartitionSpec as P
from minijax.primitives.host_local import GlobalToLocal
from minijax.primitives.host_local import LocalToGlobal

__all__ = [
    "P", "ProcessFailureError", "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
    "global_array_to_host_local_array_p", "host_local_array_to_global_array", "host_local_array_to_global_array_p",
    "live_devices", "process_allgather", "reached_preemption_sync_point", "sync_global_devices"
]

global_array_to_host_local_array_p: GlobalToLocal
host_local_array_to_global_array_p: LocalToGlobal
