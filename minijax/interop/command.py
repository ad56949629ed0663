"""The command `minijax`, and `python -m minijax`: runs a program like python does, with minijax as `jax`."""

import os
import sys
from collections.abc import Callable

from minijax.base.lazy import defer
from minijax.base.naming import PACKAGE, VERSION
from minijax.interop import children, running
from minijax.interop.alias import install

_metadata, _platform, _report = defer("importlib.metadata"), defer("platform"), defer("minijax.explaining.report")
_doctor = defer("minijax.explaining.doctor")

USAGE = """\
usage: minijax [--report[=FILE.html]] [PYTHON'S OPTIONS] [PROGRAM | -m MODULE | -c CODE | -] [ARGUMENTS]
       minijax install --as-jax | uninstall --as-jax
       minijax doctor
       minijax --help | --version
"""

HELP = f"""{USAGE}
Runs a program as python does, with jax and jax.* being minijax and minijax.*, also in the Python
processes that the program starts. `python -m minijax` is the same command.

  minijax program.py [ARGUMENTS]  a file, or a folder or an archive that holds __main__.py
  minijax -m pytest [ARGUMENTS]   a module
  minijax -c "import jax; ..."    a text
  minijax -                       a program on standard input
  minijax                         python's prompt
  minijax -X dev program.py       python's own options come first; with -I and -E write
                                  `python -I -m minijax program.py`
  minijax --report program.py     shows at the end what was traced, compiled and called, how often,
                                  how long it took and why; --report=FILE.html writes a page too
  minijax install --as-jax        makes jax minijax in every process of this Python environment,
                                  by the file minijax_as_jax.pth in its site-packages
  minijax uninstall --as-jax      removes that file
  minijax doctor                  says what is installed, set and cached, what is wrong with it, and the
                                  command that mends it; the exit status is 1 if something is wrong
  minijax ./install               a file named as a command

Other ways: `import minijax as jax` in a program, `minijax.install()` before it imports jax, and
`python -m pytest -p minijax.interop.pytest_plugin`.

The environment (an option `jax_name` of jax.config is the variable JAX_NAME):

  MINIJAX_AS_JAX=0                gives a process of such an environment, or one that a program
                                  started, the real jax
  MINIJAX_REPORT=FILE.html        as --report, for any program; 1 writes no page
  MINIJAX_PROGRESS=0              shows on no terminal which function is compiled for long
  JAX_PLATFORMS=cuda,cpu          the platforms to start, the default one first
  JAX_NUM_CPU_DEVICES=8           the number of CPU devices
  JAX_ENABLE_X64=1                64-bit types
  JAX_DEFAULT_MATMUL_PRECISION=highest
                                  the precision of products on accelerators
  JAX_DISABLE_JIT=1               runs jitted functions one operation at a time
  JAX_DEBUG_NANS=1                raises an error where a NaN arises
  JAX_TRACEBACK_FILTERING=off     shows minijax's own frames in tracebacks
  JAX_LOG_COMPILES=1              logs what is traced and compiled, and how long it took
  JAX_EXPLAIN_CACHE_MISSES=1      logs why a function is traced again
  JAX_DUMP_IR_TO=FOLDER           writes each program's StableHLO
  JAX_COMPILATION_CACHE_DIR=FOLDER
                                  where compiled programs are kept (~/.cache/minijax)
  JAX_ENABLE_COMPILATION_CACHE=0  keeps none
  XLA_FLAGS=...                   the compiler's own options
"""

# Python's options that take a value, that end the options, and that make it ignore PYTHONPATH.
_VALUED, _ENDING, _IGNORE_PATH = "XW", "cm", "IE"
_REPORT = "MINIJAX_REPORT"


def main(arguments: list[str] | None = None) -> None:
    """Runs the program or subcommand that `arguments` specify, by default those of the process."""
    arguments = sys.argv[1:] if arguments is None else arguments
    match arguments:
        case ["-h" | "--help", *_]:
            print(HELP, end="")
        case ["-V" | "--version", *_]:
            print(_versions())
        case ["install" | "uninstall", "--as-jax"]:
            (_install_as_jax if arguments[0] == "install" else _uninstall_as_jax)()
        case ["doctor"]:
            sys.exit(_doctor.main())
        case ["install" | "uninstall" | "doctor", *_] | ["-m" | "-c"]:
            _refuse("")
        case [word, *rest] if word.partition("=")[0] == "--report":
            os.environ[_REPORT] = word.partition("=")[2] or "1"
            main(rest)
        case [word, *_] if word.startswith("--"):
            _refuse(f"minijax: unknown option {word}\n")
        case ["-m", module, *rest]:
            _run(running.run_module, module, rest)
        case ["-c", source, *rest]:
            _run(running.run_code, source, rest)
        case [path, *rest] if not path.startswith("-"):
            _run(running.run_file, path, rest)
        case _:
            _run_python(arguments)


def _run(run: Callable[[str, list[str]], None], program: str, arguments: list[str]) -> None:
    install()
    children.let_children_see_jax()
    if path := os.environ.get(_REPORT):  # else `import minijax` has switched the report on
        _report.switch_on(path)
    try:
        run(program, arguments)
    except SystemExit:
        raise
    except BaseException:
        running.shorten_the_traceback()
        raise


def _run_python(arguments: list[str]) -> None:
    """Runs a separate python, for python's options, for a program on standard input, and for interactive sessions."""
    if sys.flags.ignore_environment or _ignores_pythonpath(arguments):
        _refuse(
            "minijax: with -I and -E python ignores PYTHONPATH, by which this program would see jax; "
            "`python -I -m minijax` takes PROGRAM, -m MODULE and -c CODE\n"
        )
    children.let_children_see_jax()
    running.become_python(arguments)


def _ignores_pythonpath(arguments: list[str]) -> bool:
    """Returns whether python options before the program make it ignore PYTHONPATH."""
    words = iter(arguments)
    for word in words:
        if word == "-" or not word.startswith("-"):
            return False
        for i, letter in enumerate(word[1:], 2):
            if letter in _IGNORE_PATH:
                return True
            if letter in _ENDING:
                return False
            if letter in _VALUED:
                if i == len(word):
                    next(words, None)
                break
    return False


def _refuse(message: str) -> None:
    print(message + USAGE, end="", file=sys.stderr)
    sys.exit(2)


def _versions() -> str:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    python = f"{_platform.python_version()} ({_platform.python_implementation()}, {sys.executable})"
    lines = [
        f"{PACKAGE} {_version(PACKAGE)} (jax {VERSION}, {package})",
        *(f"{name} {_version(name)}" for name in ("jaxlib", "numpy", "ml_dtypes")),
        f"python {python}",
        f"platform {_platform.platform()}",
    ]
    file = children.switch_file()
    return "\n".join([*lines, f"jax is minijax in this environment, by {file}"] if os.path.exists(file) else lines)


def _version(name: str) -> str:
    try:
        return _metadata.version(name)
    except _metadata.PackageNotFoundError:
        return "run from its sources" if name == PACKAGE else "is not installed"


def _install_as_jax() -> None:
    file = children.switch_file()
    try:
        state = "wrote" if children.switch_on(file) else "found"
    except OSError as error:
        _fail("install", file, error)
    print(
        f"{state} {file}\n"
        f"`import jax` gives minijax in every process of {sys.prefix}; with {children.VARIABLE}=0 in its environment, "
        f"the real jax.\npip finds jax {VERSION} here, which it cannot replace: it refuses libraries that require "
        "another jax, but\n`pip install --no-deps LIBRARY` installs them.\n"
        "`minijax uninstall --as-jax` removes the file."
    )


def _uninstall_as_jax() -> None:
    file = children.switch_file()
    try:
        state = f"removed {file}" if children.switch_off(file) else f"there is no {file}"
    except OSError as error:
        _fail("uninstall", file, error)
    print(f"{state}\n`import jax` does not give minijax in {sys.prefix}, unless a program is run by minijax.")


def _fail(command: str, file: str, error: OSError) -> None:
    print(
        f"minijax {command}: cannot change {file}: {error.strerror}. "
        "Use a Python environment of your own (python3 -m venv).",
        file=sys.stderr,
    )
    sys.exit(1)
