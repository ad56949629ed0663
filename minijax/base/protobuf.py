"""Encodes and reads protocol buffer messages without a schema: fields with their numbers."""

from collections.abc import Iterable, Iterator


def varint(value: int) -> bytes:
    """The varint encoding of a number."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def packed(values: Iterable[int]) -> bytes:
    """The packed encoding of a list of numbers, the contents of one field."""
    return b"".join(map(varint, values))


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """The encoding of a message with these (number, value) fields."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [varint(number << 3), varint(value)]
        else:
            parts += [varint(number << 3 | 2), varint(len(value)), value]
    return b"".join(parts)


def read(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the fields of a message, as `message` takes them. Raises ValueError for fields of four or eight bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _number(data, at)
        value, at = _number(data, at)
        if key & 7 == 2:
            at, value = at + value, data[at : at + value]
        elif key & 7:
            raise ValueError(f"Field {key >> 3} of a message has wire type {key & 7}.")
        yield key >> 3, value


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The varint at offset `at`, and the offset after it."""
    value, shift = data[at], 7
    if value < 128:
        return value, at + 1
    value &= 127
    while True:
        at += 1
        group = data[at]
        value |= (group & 127) << shift
        if group < 128:
            return value, at + 1
        shift += 7
