"""Runs a program in this process like python does: a file, a module or a string of code."""

import builtins
import contextlib
import os
import pkgutil
import runpy
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader
from types import ModuleType, TracebackType

from minijax.base.lazy import defer

_linecache, _subprocess = defer("linecache"), defer("subprocess")


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module like `python -m`."""
    sys.argv = ["-m", *arguments]
    with contextlib.suppress(OSError):  # The working directory may be gone.
        _set_first_path(os.getcwd())
    _new_main_module()
    runpy._run_module_as_main(name)  # The interpreter calls the same; run_module would restore sys at the end.


def run_code(source: str, arguments: list[str]) -> None:
    """Runs source code like `python -c`."""
    sys.argv = ["-c", *arguments]
    _set_first_path("")
    module = _new_main_module(__loader__=BuiltinImporter)
    if sys.version_info >= (3, 13):  # From this version on, tracebacks show the lines of the code.
        _linecache.cache["<string>"] = len(source), None, source.splitlines(keepends=True), "<string>"
    exec(compile(source, "<string>", "exec", dont_inherit=True), module.__dict__)


def run_file(path: str, arguments: list[str]) -> None:
    """Runs a file, or a folder or archive that contains `__main__.py`, like `python PATH`."""
    sys.argv = [path, *arguments]
    full = os.path.abspath(path)
    if pkgutil.get_importer(full) is not None:
        sys.path.insert(0, full)
        if not sys.flags.safe_path:
            del sys.path[1]
        _new_main_module()
        runpy._run_module_as_main("__main__", alter_argv=False)
        return
    try:
        with open(full, "rb") as file:
            source = file.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {full!r}: {reason}", file=sys.stderr)
        sys.exit(2)
    _set_first_path(os.path.dirname(os.path.realpath(full)))
    module = _new_main_module(__file__=full, __cached__=None, __loader__=SourceFileLoader("__main__", full))
    exec(compile(source, full, "exec", dont_inherit=True), module.__dict__)


def become_python(arguments: list[str]) -> None:
    """Replaces this process by a new python with the arguments, after the options that this one was started with."""
    command = [sys.executable, *_subprocess._args_from_interpreter_flags(), *arguments]
    sys.stdout.flush()
    if os.name == "nt":  # On Windows the shell would not wait for the new process.
        sys.exit(_subprocess.call(command))
    os.execv(sys.executable, command)


def shorten_the_traceback() -> None:
    """Makes tracebacks of uncaught exceptions begin at the program's first frame, as python shows them."""
    show, here = sys.excepthook, globals()

    def show_shortened(kind: type, error: BaseException, trace: TracebackType | None) -> None:
        seen_runner = False
        while trace and not (seen_runner and trace.tb_frame.f_globals is not here):
            seen_runner = seen_runner or trace.tb_frame.f_globals is here
            trace = trace.tb_next
        sys.last_traceback = trace
        show(kind, error.with_traceback(trace), trace)

    sys.excepthook = show_shortened


def _new_main_module(**attributes: object) -> ModuleType:
    """Replaces `__main__` by an empty module."""
    module = ModuleType("__main__")
    module.__dict__.update(attributes, __builtins__=builtins)
    if sys.version_info < (3, 14):
        module.__annotations__ = {}
    sys.modules["__main__"] = module
    return module


def _set_first_path(folder: str) -> None:
    # With -P the interpreter inserts no folder, and the first entry must stay.
    if not sys.flags.safe_path:
        sys.path[0] = folder
