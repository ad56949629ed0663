"""The engine is one: few caches of programs, one type of executable, one way into each; counted in the source."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import package

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The trees of the package's files, by path."""
    return {path: package.trees()[name] for name, path in package.files().items()}


def called(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def calls_of(name: str) -> list[str]:
    """The files that call a function or make an object of this name, once for each place."""
    nodes = [(path, node) for path, tree in trees().items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    passed = [(path, node) for path, node in nodes if any(getattr(a, "attr", "") == name for a in node.args)]
    return sorted(path for path, node in [(p, n) for p, n in nodes if called(n) == name] + passed)


def assigned() -> Iterator[tuple[str, str]]:
    """File and name of each attribute of the thread's state that is set."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in [x for t in targets for x in ast.walk(t)]:
                if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") in ("thread", "_thread"):
                    yield path, target.attr


def test_programs_are_remembered_in_five_caches():
    caches = calls_of("Programs") + calls_of("WeakValues")
    assert caches == [
        "dispatch/executable.py",  # of jaxprs with the same equations
        "dispatch/jitted.py",  # of a jitted function, or of a compiled one
        "dispatch/operations.py",  # of operations and fused functions
        "dispatch/operations.py",  # of jaxprs, with which they die
        "run/programs/compile.py",  # what XLA made of equal texts
    ]


def test_options_are_pinned_in_one_place():
    # Rules of partitioning run in threads of XLA's, simulated kernels in callbacks, under the options of their program.
    assert calls_of("run_as_of") == ["base/cache.py", "run/programs/inline.py", "run/programs/partitioners.py"]


def test_there_is_one_type_of_executable():
    assert calls_of("Executable") == ["dispatch/executable.py"]
    texts = {path: (ROOT / "minijax" / path).read_text() for path in trees()}
    # `run/arrays/host.py` widens, on the device, numbers that NumPy has not.
    assert sorted(path for path, text in texts.items() if "execute_sharded" in text) == [
        "run/arrays/host.py",
        "run/programs/compile.py",
    ]


def test_no_switch_of_the_process_is_set():
    texts = {path: (ROOT / "minijax" / path).read_text() for path in trees()}
    switching = sorted(path for path, text in texts.items() if "jax_jit" in text or "global_state" in text)
    # `guards.py` asks jaxlib's collector of cycles to watch; the other is jax's name for the state of several processes.
    assert switching == ["interop/private.py", "run/clients/guards.py"]


def test_the_trace_of_the_thread_is_set_in_one_place():
    setters = set(assigned())
    assert {path for path, name in setters if name in ("trace", "axes", "manual", "mesh", "context")} == {
        "base/thread.py",
        "interop/introspection.py",  # `trace_ctx.reset()`
    }
    assert {path for path, name in setters if name in ("ready", "current", "pinned", "overrides")} == {
        "base/thread.py",
        "base/config.py",
    }
