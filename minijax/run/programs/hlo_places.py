"""Places in the user's program, as an HLO text has them: in tables of files and frames, or at each instruction."""

import re

Place = tuple[str, int, int]  # file, line, column; -1 for a column that is not there

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


class PlaceTables:
    """The tables of a text, which is read line by line."""

    def __init__(self):
        self._tables: dict[str, dict[int, str]] = {name: {} for name in _TABLES}
        self._open: dict[int, str] | None = None

    def read(self, line: str) -> bool:
        """Reads a line; returns whether it belongs to the tables."""
        is_inside = self._open is not None
        if line in _TABLES:
            self._open = self._tables[line]
        elif self._open is not None and line:
            number, _, row = line.partition(" ")
            self._open[int(number)] = row
        else:
            self._open = None
        return is_inside or self._open is not None

    def place(self, instruction: str) -> Place | None:
        """The place of an instruction, from its metadata; None if it has none."""
        if frame := re.search(r"stack_frame_id=(\d+)", instruction):
            return self._place_of_frame(int(frame[1]))
        file = re.search(r'source_file="([^"]*)"', instruction)
        line = re.search(r"source_line=(\d+)", instruction)
        column = re.search(r"source_column=(\d+)", instruction)
        return (file[1], int(line[1]), int(column[1]) if column else -1) if file and line else None

    def _place_of_frame(self, number: int) -> Place | None:
        frame = self._row("StackFrames", number)
        where = self._row("FileLocations", frame.get("file_location_id", 0))
        file = self._tables["FileNames"].get(where.get("file_name_id", 0), "").strip('"')
        return (file, where["line"], where.get("column", -1)) if file and "line" in where else None

    def _row(self, table: str, number: int) -> dict[str, int]:
        return {name: int(n) for name, n in re.findall(r"(\w+)=(\d+)", self._tables[table].get(number, ""))}
