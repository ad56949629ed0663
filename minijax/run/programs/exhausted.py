"""Explains why a program ran out of memory: by its largest buffers, and the largest arrays that are alive."""

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minijax.base.html import amount
from minijax.base.native import JaxRuntimeError
from minijax.run.clients import client
from minijax.run.programs import host_calls
from minijax.run.programs.hlo_places import PlaceTables

_SHOWN = 3
_INSTRUCTION = re.compile(r"^  (?:ROOT )?%\S+ = (\w+)\[([\d,]+)\]\S* ([\w-]+)\((.*)$", re.MULTILINE)
# Instructions that have no buffer of their own.
_FREE = "parameter", "bitcast", "get-tuple-element", "tuple", "constant"


def refused(size: int, loaded: Any) -> Callable | None:
    """A function that raises JaxRuntimeError, if results of `size` bytes on CPUs are more than this machine's memory.

    XLA would allocate them later, and would end the process when such a result is read.
    """
    if loaded.devices[0].platform != "cpu" or size <= _memory():
        return None

    def refuse(raws):
        raise JaxRuntimeError(f"RESOURCE_EXHAUSTED: Out of memory allocating {size} bytes.")

    refuse.executable = loaded.executable  # pyright: ignore[reportFunctionMemberAccess]
    return refuse


@functools.cache
def _memory() -> float:
    """The bytes of memory and swap of this machine; infinite if that is unknown."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return math.inf
    return sum(int(size) << 10 for size in re.findall(r"^(?:MemTotal|SwapTotal): *(\d+) kB$", text, re.MULTILINE))


def raise_explained(failure: JaxRuntimeError, execute: Callable | None = None) -> None:
    """Raises a failure for lack of memory with what the program needs, and what else is in memory.

    Without `execute`, the function that ran the program, it is the program that allocates as much as the failure says.
    """
    size = re.search(r"Out of memory allocating (\d+) bytes", str(failure))
    if size is not None and "\n" not in str(failure):
        executable = _allocating(int(size[1])) if execute is None else _of(execute)
        host_calls.raise_with(failure, "\n".join([*_needs(executable), *_alive()]))


def _of(execute: Callable) -> Any:
    """The executable that a function runs; None if that is unknown."""
    executable = getattr(execute, "executable", getattr(execute, "__self__", None))
    return executable if hasattr(executable, "hlo_modules") else None


def _allocating(size: int) -> Any:
    """An executable that has temporaries or results of that size; None if there is none."""
    for executable in client.get_client().live_executables():
        memory = executable.get_compiled_memory_stats()
        if size in (memory.temp_size_in_bytes, memory.output_size_in_bytes):
            return executable
    return None


def _needs(executable: Any) -> list[str]:
    if executable is None:
        return []
    modules, memory = executable.hlo_modules(), executable.get_compiled_memory_stats()
    needs = (
        f"The program {modules[0].name} needs {amount(memory.argument_size_in_bytes)} for its arguments, "
        f"{amount(memory.output_size_in_bytes)} for its results and {amount(memory.temp_size_in_bytes)} for "
        "temporaries. Its largest buffers are:"
    )
    return [needs, *[line for module in modules for line in _buffers(module.to_string())]]


def _alive() -> list[str]:
    kinds = [raw.aval for raw in client.get_client().live_arrays() if not raw.is_deleted()]
    sized = [(math.prod(kind.shape) * kind.dtype.itemsize, f"{kind.dtype}{list(kind.shape)}") for kind in kinds]
    shown = [f"{text.replace(' ', '')} ({amount(size)})" for size, text in sorted(sized, reverse=True)[:_SHOWN]]
    return [f"The largest arrays alive are {', '.join(shown)}."] if shown else []


def _buffers(text: str) -> list[str]:
    """The largest buffers of the optimized HLO, with the operation and the user's line where they are known."""
    found, tables = [], PlaceTables()
    for line in text[: text.find("\nENTRY ")].splitlines():
        tables.read(line)
    for dtype, sizes, opcode, rest in _INSTRUCTION.findall(text[text.find("\nENTRY ") :]):
        if opcode not in _FREE:
            bits = int((re.search(r"\d+", dtype) or ["8"])[0])
            found.append((math.prod(map(int, sizes.split(","))) * bits // 8, f"{dtype}[{sizes}]", rest))
    found.sort(key=lambda row: row[0], reverse=True)
    return [f"  {amount(count)}: {kind}{_made_by(rest, tables)}" for count, kind, rest in found[:_SHOWN]]


def _made_by(metadata: str, tables: PlaceTables) -> str:
    """The operation of an instruction, and the user's line."""
    operation, place = re.search(r'op_name="([^"]*)"', metadata), tables.place(metadata)
    name = operation[1] if operation else "an operation" if place else ""
    return (f" by {name}" if name else "") + (f" at {place[0]}:{place[1]}" if place else "")
