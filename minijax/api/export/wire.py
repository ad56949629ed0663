"""FlatBuffers: encodes tables as bytes with the package `flatbuffers`, and decodes them with every offset checked.

A schema lists the fields of each table in the order of their slots, with their kinds: a kind of number, `string`,
another table, or in brackets a vector of one of these. Tables are dicts; a field with the default, 0 or None, is
missing.
"""

import struct
import zlib
from collections.abc import Mapping
from typing import Any

from minijax.base.lazy import defer

flatbuffers = defer("flatbuffers")

Schema = Mapping[str, Mapping[str, str]]  # table -> field -> kind
_NUMBERS = {"bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "u32": "I"}
_DEFAULTS = {**dict.fromkeys(_NUMBERS, 0), "bool": False}
_SIZES = {kind: struct.calcsize(code) for kind, code in _NUMBERS.items()}
_SLOTS = {"bool": "Bool", "i8": "Int8", "i16": "Int16", "u16": "Uint16", "u32": "Uint32"}
_MAX_DEPTH = 200  # tables within tables
# The file identifier of our bytes, which end with a checksum; other readers ignore both. Without the checksum damaged
# bytes could reach jaxlib's parser of modules, which may end the process.
_CHECKSUMMED = b"mjx1"


def encoded(schema: Schema, table: str, fields: Mapping[str, Any], has_checksum: bool = True) -> bytearray:
    """A table as bytes; a dict that occurs several times is written once.

    Raises ImportError without the package.
    """
    try:
        builder = flatbuffers.Builder(4096)
    except ImportError as error:
        raise ImportError(
            "Exported programs are serialized with the package flatbuffers. Install it: `pip install flatbuffers`, or "
            "with minijax: `pip install 'minijax[export]'`."
        ) from error
    root = _Writer(schema, builder).table(table, fields)
    builder.Finish(root, file_identifier=_CHECKSUMMED if has_checksum else None)
    data = builder.Output()
    return data + struct.pack("<I", zlib.crc32(data)) if has_checksum else data


class _Writer:
    def __init__(self, schema: Schema, builder: Any):
        self._schema, self._builder = schema, builder
        self._written: dict[int, int] = {}

    def table(self, name: str, fields: Mapping[str, Any]) -> int:
        """Writes a table, and returns its offset."""
        if id(fields) not in self._written:
            self._written[id(fields)] = self._table(self._schema[name], fields)
        return self._written[id(fields)]

    def _table(self, kinds, fields):
        b = self._builder
        places = {
            f: self._nested(k, fields[f]) for f, k in kinds.items() if k not in _NUMBERS and fields.get(f) is not None
        }
        b.StartObject(len(kinds))
        for slot, (field, kind) in enumerate(kinds.items()):
            value = fields.get(field)
            if field in places:
                b.PrependUOffsetTRelativeSlot(slot, places[field], 0)
            elif value is not None:
                getattr(b, f"Prepend{_SLOTS[kind]}Slot")(slot, value, 0)
        return b.EndObject()

    def _nested(self, kind, value):
        """Writes the value of a field that is stored by offset, and returns the offset."""
        b = self._builder
        if kind == "string":
            return b.CreateString(value)
        if kind == "[u8]":
            return b.CreateByteVector(bytes(value))
        if kind[0] != "[":
            return self.table(kind, value)
        inner = kind[1:-1]
        if inner in _NUMBERS:
            b.StartVector(_SIZES[inner], len(value), _SIZES[inner])
            put = getattr(b, f"Prepend{_SLOTS[inner]}")
        else:
            value = [self._nested(inner, x) for x in value]
            b.StartVector(4, len(value), 4)
            put = b.PrependUOffsetTRelative
        for x in reversed(value):
            put(x)
        return b.EndVector()


def decoded(schema: Schema, table: str, data: bytes) -> dict[str, Any]:
    """The table that the bytes hold. Raises ValueError for damaged bytes."""
    if len(data) < 12 or len(data) % 4:
        raise ValueError(f"the serialized program is cut off: it has {len(data)} bytes")
    if data[4:8] == _CHECKSUMMED and data[-4:] != struct.pack("<I", zlib.crc32(data[:-4])):
        raise ValueError("the serialized program is cut off or damaged: its checksum differs")
    reader = _Reader(schema, data)
    return reader.table(table, reader.offset(0))


class _Reader:
    def __init__(self, schema: Schema, data: bytes):
        self._schema, self._data = schema, data
        self._read: dict[tuple[str, int], dict | None] = {}  # None: it is being read
        self._depth = 0

    def number(self, kind: str, at: int) -> Any:
        if at < 0 or at + _SIZES[kind] > len(self._data):
            raise ValueError(f"the serialized program is damaged: nothing is at byte {at}")
        return struct.unpack_from("<" + _NUMBERS[kind], self._data, at)[0]

    def offset(self, at: int) -> int:
        """The position that the offset at a position refers to."""
        return at + self.number("u32", at)

    def table(self, name: str, at: int) -> dict[str, Any]:
        """The table at a position; the same dict each time."""
        key = name, at
        if self._read.get(key, self) is None or self._depth > _MAX_DEPTH:
            raise ValueError("the serialized program is damaged: a table is part of itself")
        if key not in self._read:
            self._read[key] = None
            self._depth += 1
            self._read[key] = self._fields(self._schema[name], at)
            self._depth -= 1
        return self._read[key]  # pyright: ignore

    def _fields(self, kinds, at):
        slots = at - struct.unpack("<i", struct.pack("<I", self.number("u32", at)))[0]
        size = self.number("u16", slots)
        fields = {}
        for slot, (field, kind) in enumerate(kinds.items()):
            entry = 4 + 2 * slot
            place = self.number("u16", slots + entry) if entry + 2 <= size else 0
            fields[field] = self._value(kind, at + place) if place else _DEFAULTS.get(kind)
        return fields

    def _value(self, kind, at):
        if kind in _NUMBERS:
            return self.number(kind, at)
        at = self.offset(at)
        if kind == "string":
            return self._string(at)
        if kind[0] != "[":
            return self.table(kind, at)
        return self._vector(kind[1:-1], at)

    def _string(self, at):
        size, start = self.number("u32", at), at + 4
        if start + size >= len(self._data) or self._data[start + size]:
            raise ValueError("the serialized program is damaged: a text has no end")
        return self._data[start : start + size].decode()

    def _vector(self, inner, at):
        size, start = self.number("u32", at), at + 4
        width = _SIZES.get(inner, 4)
        if start + size * width > len(self._data):
            raise ValueError(f"the serialized program is damaged: a vector has {size} elements")
        if inner == "u8":
            return self._data[start : start + size]
        return [self._value(inner, start + width * i) for i in range(size)]
