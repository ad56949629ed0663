"""The part of an array on one device."""

from typing import Any, NamedTuple


class Shard(NamedTuple):
    """The shard of an array on one device."""

    device: Any
    index: tuple
    replica_id: int
    data: Any

    def __repr__(self):
        fields = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data}"
        return f"Shard({fields})"
