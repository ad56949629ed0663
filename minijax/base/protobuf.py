"""Messages of protocol buffers as bytes: fields with their numbers, without a schema."""

from collections.abc import Iterable, Iterator


def varint(value: int) -> bytes:
    """A number as a message has it."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def packed(values: Iterable[int]) -> bytes:
    """A list of numbers as one field has it."""
    return b"".join(map(varint, values))


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A message of these fields."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [varint(number << 3), varint(value)]
        else:
            parts += [varint(number << 3 | 2), varint(len(value)), value]
    return b"".join(parts)


def read(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, as `message` takes them. Raises ValueError for fields of four or eight bytes."""
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
    """The number that begins at a place, and the place after it."""
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
