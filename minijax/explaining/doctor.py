"""`minijax doctor`: shows an installation, and finds the mistakes in it and the commands that mend them."""

import json
import os
import re
import sys
from typing import Any, NamedTuple

from minijax.base.lazy import defer
from minijax.base.naming import PACKAGE, VERSION
from minijax.interop import children
from minijax.run.programs import disk_counts

_difflib, _metadata, _subprocess = defer("difflib"), defer("importlib.metadata"), defer("subprocess")
_util, _pwd, _shlex, _tempfile = defer("importlib.util"), defer("pwd"), defer("shlex"), defer("tempfile")

OLDEST_PYTHON = (3, 11)
JAXLIB = ("0.10.2", "0.12.0.1")  # the oldest and the newest that are tested
_LEAST = {"numpy": "2.0", "ml_dtypes": "0.5"}
_PLUGINS = ("jax-cuda13-plugin", "jax-cuda13-pjrt", "jax-cuda12-plugin", "jax-cuda12-pjrt")
_TIMEOUT = 120  # in seconds
_SHOWN = ("JAX", "MINIJAX", "XLA", "CUDA_VISIBLE", "TPU", "LIBTPU", "TF_CPP", "PYTHONPATH", "XDG_CACHE_HOME")
_NO_OPTIONS = (
    "JAX_COORDINATOR_ADDRESS",
    "JAX_COORDINATOR_PORT",
    "JAX_COORDINATOR_BIND_ADDRESS",
    "JAX_LOCAL_DEVICE_IDS",
)
_SUFFIX = "-minijax"  # of the cache's files


class Problem(NamedTuple):
    """A mistake, and a command, or a sentence, that says how to mend it."""

    text: str
    mend: str


class Report:
    """Lines of facts, and the problems."""

    def __init__(self):
        self.facts: list[tuple[str, str]] = []
        self.problems: list[Problem] = []

    def fact(self, name: str, text: str) -> None:
        self.facts.append((name, text))

    def problem(self, text: str, mend: str) -> None:
        self.problems.append(Problem(text, mend))

    def __str__(self):
        lines = [f"{name:<12} {text}" for name, text in self.facts]
        if not self.problems:
            return "\n".join([*lines, "", "Nothing is wrong."])
        lines += ["", f"{len(self.problems)} problem{'s' * (len(self.problems) > 1)}:"]
        for i, (text, mend) in enumerate(self.problems, 1):
            lines += [f"  {i}. {text}", f"     to mend it: {mend}"]
        return "\n".join(lines)


def main() -> int:
    """Prints the report; returns the exit status, 1 if something is wrong."""
    report = Report()
    for part in (_versions, _environment, _jax):
        try:
            part(report)
        except Exception as error:  # no check may hide the results of the others
            report.problem(f"{part.__name__.strip('_')}: {type(error).__name__}: {error}", "report this as a bug")
    print(report)
    return 1 if report.problems else 0


def _numbers(version: str) -> tuple[int, ...]:
    return tuple([int(n) for n in re.findall(r"\d+", version.split("+")[0])])


def _version(name: str) -> str | None:
    try:
        return _metadata.version(name)
    except _metadata.PackageNotFoundError:
        return None


def _pip(words: str) -> str:
    return f"{_shlex.quote(sys.executable)} -m pip install {words}"


# ---- versions ---------------------------------------------------------------------------------------


def _versions(report: Report) -> None:
    report.fact("minijax", f"{_version(PACKAGE) or 'run from its sources'} (jax {VERSION})")
    report.fact("Python", f"{sys.version.split()[0]} ({sys.executable})")
    if sys.version_info[:2] < OLDEST_PYTHON:
        report.problem("this Python is too old", "python3.11 -m venv env, or a newer one")
    _check_jaxlib(report)
    for name, least in _LEAST.items():
        version = _version(name)
        report.fact(name, version or "not installed")
        if version is None or _numbers(version) < _numbers(least):
            report.problem(f"{name} {version or 'is missing'}: {least} or later is needed", _pip(f"'{name}>={least}'"))


def _check_jaxlib(report: Report) -> None:
    jaxlib, (oldest, newest) = _version("jaxlib"), JAXLIB
    if jaxlib is None:
        report.fact("jaxlib", "not installed")
        report.problem("jaxlib is missing", _pip(f"jaxlib=={newest}"))
        return
    is_tested = _numbers(oldest) <= _numbers(jaxlib) <= _numbers(newest)
    report.fact("jaxlib", f"{jaxlib} ({'tested' if is_tested else f'not tested; {oldest} to {newest} are'})")
    if not is_tested:
        report.problem(f"jaxlib {jaxlib} is none that minijax was tested with", _pip(f"'jaxlib>={oldest},<={newest}'"))
    for name in _PLUGINS:
        version = _version(name)
        if version is not None:
            report.fact("plugin", f"{name} {version}")
        if version is not None and _numbers(version) != _numbers(jaxlib):
            mend = _pip(f"'{name}=={jaxlib}'")
            report.problem(f"{name} {version} does not load beside jaxlib {jaxlib}: the versions must be equal", mend)


# ---- options, devices and the cache -----------------------------------------------------------------


def _environment(report: Report) -> None:
    parts = _probe(report)
    options = parts.get("options", {})
    if "error" in options:
        report.problem(f"the options: {options['error']}", "unset the variables JAX_* that it names")
    _check_names(report, options.get("names", []))
    for name in sorted(os.environ):
        if name.startswith(_SHOWN):
            report.fact("variable", f"{name}={os.environ[name]}")
    for name, value in options.get("set", {}).items():
        report.fact("option", f"{name} = {value}")
    _check_devices(report, parts)
    cache = parts.get("cache", {})
    if "error" in cache:
        report.problem(f"the cache of compiled programs: {cache['error']}", "export JAX_ENABLE_COMPILATION_CACHE=0")
    else:
        _check_cache(report, cache.get("folder"))


def _probe(report: Report) -> dict[str, Any]:
    """Returns the findings of the probe; variables that it refuses are reported, and left out of the next try."""
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ, children.VARIABLE: "0"}
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    while True:
        output, errors = _run(environment)
        refused = re.search(r"^ValueError: (.*?(?:flag|environment) '?(\w+)'?)$", errors, re.MULTILINE)
        name = refused[2].upper() if refused else ""
        if output or refused is None or name not in environment:
            break
        report.problem(f"{name}={environment.pop(name)}: {refused[1]}", f"unset {name}")
    parts: dict[str, Any] = {}
    for line in output.splitlines():
        if line.startswith("{"):
            parts |= json.loads(line)
    if "devices" not in parts:
        last = errors.strip().splitlines()[-1:] or ["it said nothing"]
        where = "starting the devices" if parts else "importing minijax"
        report.problem(f"{where} ended the process: {last[0]}", "export JAX_PLATFORMS=cpu, to do without accelerators")
    return parts


def _run(environment: dict[str, str]) -> tuple[str, str]:
    command = [sys.executable, "-m", "minijax.explaining.probe"]
    try:
        done = _subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_TIMEOUT)
    except _subprocess.TimeoutExpired as late:
        return _text(late.stdout), f"it did not end within {_TIMEOUT} seconds"
    status = f"\nended by signal {-done.returncode}" if done.returncode < 0 else ""
    return done.stdout, done.stderr + status


def _text(output: Any) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _check_names(report: Report, names: list[str]) -> None:
    """Finds variables that look like options, but that no option has."""
    known = {name.upper() for name in names}
    for name in sorted(os.environ) if known else ():
        if name.startswith("JAX_") and name not in known and name not in _NO_OPTIONS:
            near = _difflib.get_close_matches(name, known, 1)
            mend = f"unset {name}" + (f"; export {near[0]}={_shlex.quote(os.environ[name])}" if near else "")
            meant = f"; {near[0]} is one" if near else ""
            report.problem(f"the variable {name} is set, but there is no such option{meant}", mend)


def _check_devices(report: Report, parts: dict[str, Any]) -> None:
    found = parts.get("plugins", {})
    for platform in ("cuda", "tpu"):
        report.fact("plugin", f"{platform}: {found.get(platform) or 'none is installed'}")
    if "error" in found:
        report.problem(f"looking for plugins: {found['error']}", "reinstall the plugin, or uninstall it")
    state = parts.get("devices", {})
    if "error" in state:
        report.fact("devices", "none")
        report.problem(f"no devices: {state['error']}", _mend_platforms(found))
        return
    for platform, kinds in state.get("devices", {}).items():
        default = " (default)" * (platform == state["default"])
        counts = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
        report.fact("devices", f"{platform}{default}: {counts}")
    for platform, reason in state.get("failures", {}).items():
        report.fact("devices", f"{platform}: did not start: {reason}")
        if platform != "tpu" or "no TPU is attached" not in reason:
            report.problem(
                f"the plugin of {platform} did not start: {reason}",
                f"export JAX_PLATFORMS=cpu, if {platform} is not wanted; else see what the message asks for",
            )


def _mend_platforms(found: dict[str, Any]) -> str:
    wanted = os.environ.get("JAX_PLATFORMS", "")
    if ("cuda" in wanted or "gpu" in wanted) and not found.get("cuda"):
        return _pip(f"'jax-cuda13-plugin[with-cuda]=={_version('jaxlib')}'") + ", or export JAX_PLATFORMS=cpu"
    if "tpu" in wanted and not found.get("tpu"):
        return _pip("libtpu") + ", or export JAX_PLATFORMS=cpu"
    return "unset JAX_PLATFORMS" if wanted else "export JAX_PLATFORMS=cpu"


def _check_cache(report: Report, folder: str | None) -> None:
    if folder is None:
        report.fact("cache", "none: compiled programs are not kept")
        return
    elsewhere = "export JAX_COMPILATION_CACHE_DIR=FOLDER, one that you own"
    try:
        if not os.path.exists(folder):
            report.fact("cache", f"{folder}: not made yet")
            parent = folder
            while not os.path.exists(parent):
                parent = os.path.dirname(parent) or "."
            if not _can_write(parent):
                report.problem(f"the cache folder {folder} cannot be made in {parent}", elsewhere)
            return
        if not os.path.isdir(folder):
            report.problem(f"the cache folder {folder} is a file", elsewhere)
            return
        with os.scandir(folder) as entries:
            files = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries if not entry.is_dir()]
    except OSError as error:
        report.problem(f"the cache folder {folder} cannot be read: {error.strerror}", elsewhere)
        return
    status = os.stat(folder)
    programs = [file for name, file in files if _is_program(name)]
    size = sum([file.st_size for _, file in files])
    owner = _owner(status.st_uid)
    text = f"{folder}: {len(programs)} programs, {size / 1e6:.1f} MB, owner {owner}, {_hit_rate(folder)}"
    report.fact("cache", text)
    if not _can_write(folder):
        report.problem(f"the cache folder {folder} of {owner} cannot be written", elsewhere)
    foreign = [file for file in programs if file.st_uid != os.geteuid() or file.st_mode & 0o022]
    if foreign:
        text = (
            f"{len(foreign)} programs in {folder} belong to another user, or others may write them: they are not loaded"
        )
        report.problem(text, f"rm {_shlex.quote(folder)}/*{_SUFFIX}")


def _is_program(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.startswith("trail-")


def _hit_rate(folder: str) -> str:
    """The share of the programs worth keeping that the latest processes found in the folder."""
    loaded, stored, processes = disk_counts.read(folder)
    if not loaded + stored:
        return "hit rate not known yet"
    return f"hit rate {loaded / (loaded + stored):.0%} ({loaded} loaded, {stored} stored, by {processes} processes)"


def _can_write(folder: str) -> bool:
    """Tries it, since permissions do not tell of disks that are full or cannot be written."""
    try:
        os.rmdir(_tempfile.mkdtemp(dir=folder))
    except OSError:
        return False
    return True


def _owner(number: int) -> str:
    try:
        return _pwd.getpwuid(number).pw_name
    except (KeyError, ImportError):
        return str(number)


# ---- jax --------------------------------------------------------------------------------------------


def _jax(report: Report) -> None:
    """Says what `import jax` gives in a process that `minijax` does not start."""
    file, spec = children.switch_file(), _util.find_spec("jax")
    if os.path.exists(file) and os.environ.get(children.VARIABLE) != "0":
        report.fact("import jax", f"minijax, by {file}")
        with open(file, encoding="ascii", errors="replace") as opened:
            if opened.read() != children.SWITCH:
                report.problem(f"{file} is that of another minijax", "minijax install --as-jax")
    elif spec is None:
        report.fact("import jax", "not installed; `minijax PROGRAM` gives minijax")
    elif spec.origin and spec.origin.startswith(children.FOLDER):
        report.fact("import jax", "minijax, by PYTHONPATH")
    else:
        report.fact("import jax", f"jax {_version('jax')} ({spec.origin}); `minijax PROGRAM` gives minijax")
