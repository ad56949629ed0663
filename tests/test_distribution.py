"""The built distributions install, and the command of the installed package works."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from minijax.base.naming import VERSION
from minijax.interop import children, command

ROOT = Path(__file__).resolve().parents[1]
BUILD = """
import sys
import setuptools.build_meta as backend
print(getattr(backend, sys.argv[1])(sys.argv[2]))
"""


def run(*command, **options):
    options = {"capture_output": True, "text": True, "timeout": 300, **options}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MINIJAX_AS"))}
    return subprocess.run([str(word) for word in command], env={**environment, **options.pop("env", {})}, **options)


def printed(*command, **options):
    result = run(*command, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def build(what, source, target):
    """The path of the distribution that the build backend makes of the source."""
    output = printed(sys.executable, "-W", "ignore", "-c", BUILD, f"build_{what}", target, cwd=source)
    return target / output.splitlines()[-1]


class Environment:
    """A fresh Python environment that finds this one's packages after its own."""

    def __init__(self, folder):
        venv.create(folder, symlinks=True)
        self.folder = folder
        self.scripts = folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.scripts / "python"
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = Path(printed(self.python, "-c", code).strip())

    def add_packages_around(self):
        """After its own package is installed: pip would take that of the packages around for it."""
        others = [path for path in map(Path, sys.path) if path.name in ("site-packages", "dist-packages")]
        (self.packages / "others.pth").write_text("".join(f"{path}\n" for path in others))

    def minijax(self, *arguments, **options):
        return run(self.scripts / "minijax", *arguments, cwd=self.folder, **options)

    def printed(self, code, **options):
        return printed(self.python, "-c", code, cwd=self.folder, **options)


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The source archive, and the wheel built from what it holds."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("build")
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, folder / "tree", ignore=left_out)
    sdist = build("sdist", folder / "tree", folder)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return sdist, build("wheel", unpacked, folder)


@pytest.fixture(scope="module")
def environment(archives, tmp_path_factory):
    """An environment into which pip has installed the wheel."""
    pytest.importorskip("pip")
    made = Environment(tmp_path_factory.mktemp("installed"))
    flags = ["-q", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    printed(sys.executable, "-m", "pip", "--python", made.python, "install", *flags, archives[1])
    made.add_packages_around()
    return made


def sources(folder):
    """The files of the package, by their path."""
    files = {path.relative_to(ROOT).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in files if "__pycache__" not in name}


def test_the_archives_hold_the_package_and_the_documents_but_no_tests(archives):
    sdist, wheel = archives
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if not archive.getmember(name).isdir()}
    package = sources(ROOT / "minijax")
    assert {name for name in names if name.startswith("minijax/")} == package
    assert names >= {"ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "pyproject.toml"}
    assert names >= {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.py")}
    assert {name.split("/")[0] for name in names if "/" in name} - {"docs"} == {
        "minijax",
        "minijax.egg-info",
        "notebooks",
    }
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name for name in names if ".dist-info/" not in name or name.startswith("minijax/")} == package


def test_the_metadata_has_author_and_description(archives):
    with zipfile.ZipFile(archives[1]) as archive:
        (name,) = [name for name in archive.namelist() if re.fullmatch(r"[^/]*\.dist-info/METADATA", name)]
        metadata = archive.read(name).decode()
    for line in (
        "Author: The minijax authors",
        "License-Expression: Apache-2.0",
        "Project-URL: Changelog, CHANGELOG.md",
    ):
        assert f"\n{line}\n" in metadata
    assert "\nKeywords: " in metadata and "\nClassifier: Programming Language :: Python :: 3.11\n" in metadata
    assert "\n# minijax\n" in metadata


def test_the_wheel_runs_programs_and_leaves_jax_alone(environment):
    code = "import jax; print(jax.devices()[0].platform, jax.__file__)"
    file = environment.packages / "minijax" / "__init__.py"
    assert printed(environment.python, "-m", "minijax", "-c", code, cwd=environment.folder) == f"cpu {file}\n"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    assert environment.minijax("-c", child).stdout == f"cpu {file}\n"
    assert not [path for path in environment.packages.iterdir() if path.suffix == ".pth" and "minijax" in path.name]
    assert environment.printed("import sys; print([name for name in sys.modules if 'minijax' in name])") == "[]\n"


def test_the_command_finds_modules_and_files_where_python_does(environment):
    (environment.folder / "program.py").write_text("import sys; print(sys.argv, sys.path[0], __name__)\n")
    for words in (["program.py", "a"], ["-m", "program", "a"], ["-c", "import sys, program; print(sys.path[0] == '')"]):
        assert environment.minijax(*words).stdout == printed(environment.python, *words, cwd=environment.folder)
    failed = environment.minijax("-c", "def f():\n    1 / 0\nf()")
    assert (failed.returncode, failed.stderr.count("File ")) == (1, 2)


def test_the_command_prints_versions_without_loading_the_backend(environment):
    shown = environment.minijax("--version", env={"PYTHONVERBOSE": "1"})
    project = (ROOT / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.*)"', project, re.MULTILINE)[1]
    lines = dict(line.split(" ", 1) for line in shown.stdout.splitlines())
    assert lines["minijax"] == f"{version} (jax {VERSION}, {environment.packages / 'minijax'})"
    assert set(lines) == {"minijax", "jaxlib", "numpy", "ml_dtypes", "python", "platform"}
    assert lines["numpy"] == environment.printed("import numpy; print(numpy.__version__)").strip()
    assert not re.search(r"^import '(numpy|jaxlib)", shown.stderr, re.MULTILINE)


def test_jax_becomes_minijax_in_the_whole_environment_and_is_itself_again(environment):
    file = environment.packages / "minijax_as_jax.pth"
    code = (
        "import sys; print('minijax' in sys.modules); import jax.numpy as jnp; print(sys.modules['jax'].__spec__.name)"
    )
    for state in ("wrote", "found"):
        said = environment.minijax("install", "--as-jax").stdout
        assert said.startswith(f"{state} {file}\n") and "minijax uninstall --as-jax" in said
    try:
        assert environment.printed(code) == "False\nminijax\n"
        assert printed(environment.python, "-I", "-c", code) == "False\nminijax\n"
        assert environment.printed("import importlib.metadata as m; print(m.version('jax'))") == f"{VERSION}\n"
        assert str(file) in environment.minijax("--version").stdout
        real = "import importlib.util as u; print('as_jax' in str(u.find_spec('jax')))"
        assert environment.printed(real, env={"MINIJAX_AS_JAX": "0"}) == "False\n"
        left = environment.minijax("-c", "import jax; print(jax.__spec__.name)", env={"MINIJAX_AS_JAX": "0"}).stdout
        assert left == "minijax\n"
        removal = run(environment.python, "-m", "pip", "--disable-pip-version-check", "uninstall", "-y", "jax")
        assert (
            "minijax" in removal.stderr + removal.stdout
            and (environment.packages / "minijax/interop/as_jax/jax").is_dir()
        )
    finally:
        said = environment.minijax("uninstall", "--as-jax").stdout
    assert said.startswith(f"removed {file}\n") and not file.exists()
    assert environment.minijax("uninstall", "--as-jax").stdout.startswith(f"there is no {file}\n")


def test_an_environment_that_cannot_be_written_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(children, "switch_file", lambda: str(tmp_path / "file" / "minijax_as_jax.pth"))
    with pytest.raises(SystemExit) as stopped:
        command.main(["install", "--as-jax"])
    said = capsys.readouterr().err
    assert stopped.value.code == 1 and f"minijax install: cannot change {tmp_path}" in said and "venv" in said


def test_the_name_jax_has_the_version_of_the_api():
    (folder,) = Path(children.FOLDER).glob("*.dist-info")
    assert folder.name == f"jax-{VERSION}.dist-info" and f"\nVersion: {VERSION}\n" in (folder / "METADATA").read_text()


# The help

VARIABLES = {
    "JAX_PLATFORMS": "cpu",
    "JAX_NUM_CPU_DEVICES": "3",
    "JAX_ENABLE_X64": "1",
    "JAX_DEFAULT_MATMUL_PRECISION": "highest",
    "JAX_DEBUG_NANS": "1",
    "JAX_TRACEBACK_FILTERING": "off",
    "JAX_LOG_COMPILES": "1",
    "JAX_EXPLAIN_CACHE_MISSES": "1",
    "JAX_DUMP_IR_TO": "texts",
    "JAX_COMPILATION_CACHE_DIR": "kept",
    "XLA_FLAGS": "--xla_dump_to=dumped",
    "MINIJAX_PROGRESS": "0",
    "MINIJAX_REPORT": "report.html",
}
OTHERS = {"JAX_DISABLE_JIT": "1", "JAX_ENABLE_COMPILATION_CACHE": "0", "MINIJAX_AS_JAX": "0"}
PROGRAM = """
import os, traceback
import jax, jax.numpy as jnp
f = jax.jit(lambda x: print("called") or x @ x.T)
text = f.lower(jnp.ones((2, 2))).as_text()
f(jnp.ones((2, 2))), f(jnp.ones((2, 2)))
print(jax.devices()[0].platform, jax.device_count(), jnp.ones(1).dtype, "HIGHEST" in text)
try:
    print(jax.jit(jnp.log)(-1.0))
except FloatingPointError as error:
    print(type(error).__name__)
try:
    jax.jit(lambda x: x.nosuch)(1.0)
except AttributeError:
    print("/minijax/dispatch/" in traceback.format_exc().replace(os.sep, "/"))
print([os.path.isdir(name) and bool(os.listdir(name)) for name in ("texts", "kept", "dumped")])
"""


def test_each_variable_that_the_help_names_works(tmp_path):
    shown = printed(sys.executable, "-m", "minijax", "--help", cwd=ROOT)
    named = re.findall(r"^  ([A-Z][A-Z_0-9]*)=", shown, re.MULTILINE)
    assert sorted(named) == sorted({**VARIABLES, **OTHERS})
    plain = {name: value for name, value in os.environ.items() if name not in named}
    plain |= {"PYTHONPATH": str(ROOT), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    seen, unseen = (
        ["called", "cpu 3 float64 True", "FloatingPointError", "True", "[True, True, True]"],
        ["called"] * 3 + ["cpu 1 float32 False", "nan", "False", "[False, False, False]"],
    )
    for name, environment, lines in (("set", VARIABLES, seen), ("other", OTHERS, unseen)):
        (tmp_path / name).mkdir()
        environment = {**plain, "JAX_COMPILATION_CACHE_DIR": "kept", **environment}
        command = [sys.executable, "-m", "minijax", "-c", PROGRAM]
        options = {"cwd": tmp_path / name, "env": environment, "timeout": 300}
        done = subprocess.run(command, capture_output=True, text=True, **options)
        assert [line for line in done.stdout.splitlines() if "Invalid nan value" not in line] == lines, done.stderr
        for logged in ("Finished tracing", "Compiling jit", "TRACING CACHE MISS"):
            assert (logged in done.stderr) == (name == "set")
        assert (tmp_path / name / "report.html").exists() == (name == "set")
