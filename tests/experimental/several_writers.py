"""A program of two processes that write an array and a tree together; `test_array_serialization.py` starts it.

Arguments: the number of this process, where the first listens, a directory.
"""

import os
import sys

os.environ["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"
import numpy as np

import minijax as jax
from minijax.experimental.array_serialization import pytree_serialization, serialization

PROCESS, ADDRESS, ROOT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(ADDRESS, 2, PROCESS, initialization_timeout=60)
WHOLE = np.arange(16, dtype=np.float32).reshape(4, 4)
sharding = jax.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), ("x",)), jax.P("x"))
x = jax.make_array_from_callback((4, 4), sharding, lambda index: WHOLE[index])
manager, committed = serialization.GlobalAsyncCheckpointManager(timeout_secs=60), []
manager.serialize_with_paths([x], [f"{ROOT}/array"], on_commit_callback=lambda: committed.append(1))
manager.wait_until_finished()
pytree_serialization.save({"a": x}, f"{ROOT}/tree")
read = [manager.deserialize_with_paths([sharding], [f"{ROOT}/array"])[0]]
read.append(pytree_serialization.load(f"{ROOT}/tree", sharding)["a"])
assert len(committed) == (PROCESS == 0)
for y in read:
    for shard in y.addressable_shards:
        assert np.array_equal(shard.data, WHOLE[shard.index])
try:
    serialization.run_serialization([jax.numpy.ones(3)], [serialization.get_tensorstore_spec(f"{ROOT}/own")])
except ValueError as error:
    print("fully addressable" in str(error))
