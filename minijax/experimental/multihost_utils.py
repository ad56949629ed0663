"""jax.experimental.multihost_utils: communication between the processes of a program."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.primitives.host_local: global_array_to_host_local_array_p=global_to_local_p
    host_local_array_to_global_array_p=local_to_global_p
minijax.partition.shardings: P=PartitionSpec
minijax.api.processes: ProcessFailureError assert_equal broadcast_one_to_all global_array_to_host_local_array
    host_local_array_to_global_array live_devices process_allgather reached_preemption_sync_point sync_global_devices
""",
)
