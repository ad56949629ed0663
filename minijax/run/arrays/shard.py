"""The part of an array on one device."""

from typing import Any

from minijax.base.naming import known_as


@known_as("jax._src.array.Shard")
class Shard:
    """Describes the part of an array on one device: `device`, `index` (slices), `replica_id`, and `data`, an array."""

    def __init__(self, device: Any, index: tuple, replica_id: int, data: Any):
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self):
        fields = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data}"
        return f"Shard({fields})"
