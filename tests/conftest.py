"""Set-up of all tests: the platform, the oracle, the tiers and the seed."""

import datetime
import functools
import gc
import importlib.abc
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

import memory
import pytest
import recorded

ORACLE = recorded.ORACLE

# `-m quick` runs the floors without XLA, and two columns of the matrix.
QUICK = ("tests/base/", "tests/ir/", "tests/hlo/", "test_layers", "-plain]", "-vmap_of_grad]")

# Read by XLA when the first client starts. Eight host devices let sharded programs run on any machine.
DEVICES = "--xla_force_host_platform_device_count=8"
# Most of the time of the tests is XLA's compilation: with little optimization, on both sides, it takes a third.
# `-m full` compares programs as users compile them.
LITTLE_OPTIMIZATION = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("minijax", "what jax has confirmed (tests/confirmed)")
    group.addoption("--record", action="store_true", help="ask jax for what is not recorded, and record it")
    group.addoption("--oracle", action="store_true", help="ask jax for everything; a record that it denies fails")
    group.addoption(
        "--recorded", type=int, metavar="N", help="run one in N of the tests that have records, drawn by the seed"
    )


def pytest_configure(config: pytest.Config) -> None:
    if _is_alone():
        sys.meta_path.append(_NoOracle())
    if "device" not in config.option.markexpr:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if "full" in config.option.markexpr:
        os.environ["MINIJAX_TEST_TIER"] = "full"
    # Each run compiles its programs; the tests of the disk cache turn it on.
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    # A flag that another jaxlib does not have would end the process.
    plain = "full" in config.option.markexpr or importlib.metadata.version("jaxlib") != ORACLE
    os.environ.setdefault("XLA_FLAGS", DEVICES if plain else f"{DEVICES} {LITTLE_OPTIMIZATION}")
    # What asks jax whatever is recorded is drawn by the seed of the day, which is printed; continuous integration sets another one.
    os.environ.setdefault("MINIJAX_TEST_SEED", datetime.date.today().strftime("%Y%m%d"))
    option, alone = config.option, _is_alone()
    if alone and (option.record or option.oracle):
        raise pytest.UsageError(f"--record and --oracle need jax {ORACLE}")
    everything = option.oracle or os.environ.get("MINIJAX_TEST_TIER") == "full"
    mode = recorded.RECORD if option.record else recorded.EVERYTHING if everything else recorded.USUAL
    recorded.session.mode = recorded.ALONE if alone else mode
    recorded.session.one_in = 100 if config.option.markexpr == "quick" else 10
    recorded.session.environment = dict(os.environ)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Finds what is recorded of the test, and keeps what it confirms."""
    recorded.session.running = recorded.test_of(item.path, item.nodeid)
    try:
        return (yield)
    finally:
        recorded.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    result = yield
    if (running := recorded.session.running) and running.undecided:
        pytest.skip(f"{running.undecided} comparisons are not recorded, and jax {ORACLE} is not installed")
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if running := recorded.session.running:
        running.passed &= report.passed


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Takes over what a worker has recorded."""
    for made, counts in filter(None, [getattr(node, "workeroutput", {}).get("recorded")]):
        recorded.session.counts.update(counts)
        recorded.merge(made)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    made, counts = recorded.session.made, dict(recorded.session.counts)
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["recorded"] = made, counts
    else:
        recorded.merge(made)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if counts := recorded.session.counts:
        terminalreporter.write_line("comparisons: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Hides the objects of the collection from the garbage collector: with them, a full collection takes two seconds."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish():
    memory.drop_after_growth()


@pytest.fixture
def few_objects():
    """Hides existing objects from the garbage collector, which the search for leaks runs after each trace."""
    # They stay hidden: `gc.unfreeze` would bring the objects of the collection back.
    gc.collect()
    gc.freeze()


@pytest.fixture
def every_object():
    """Shows all objects to the garbage collector, for tests that find objects by `gc.get_objects`."""
    gc.unfreeze()
    yield
    gc.freeze()


def pytest_report_header() -> str:
    return f"MINIJAX_TEST_SEED={os.environ['MINIJAX_TEST_SEED']}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the fixture `tier` is run with "text", and under -m full with "full" instead."""
    if "tier" in metafunc.fixturenames:
        metafunc.parametrize("tier", ["text", pytest.param("full", marks=pytest.mark.full)])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "full" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    if one_in := config.option.recorded:
        chosen = [item for item in items if _has_records(item, one_in)]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    # The rules of the layers share parsed trees: at the head of the list, one worker gets all of them.
    items.sort(key=lambda item: "test_layers" not in item.nodeid)
    for item in items:
        if any(part in item.nodeid for part in QUICK):
            item.add_marker(pytest.mark.quick)
    # Where no jax is installed, a test runs as far as it needs none.
    missing = {"oracle": not _is_alone() and _oracle_missing(), "device": _device_missing()}
    for item in items:
        for marker, reason in missing.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _has_records(item: pytest.Item, one_in: int) -> bool:
    """Returns whether the seed draws the test, and jax's answers are recorded of it."""
    is_drawn = recorded.share(os.environ["MINIJAX_TEST_SEED"], item.nodeid, one_in)
    return is_drawn and bool(recorded.test_of(item.path, item.nodeid).known)


class _NoOracle(importlib.abc.MetaPathFinder):
    """Skips the module or test that imports jax, where it is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name == "jax":
            pytest.skip(f"needs jax {ORACLE}, which is not installed", allow_module_level=True)


@functools.cache  # before the finder below refuses jax
def _is_alone() -> bool:
    """Returns whether no jax is installed: then records decide, and what is not recorded is skipped."""
    return importlib.util.find_spec("jax") is None


def _oracle_missing() -> str:
    try:
        found = "" if _is_alone() else importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        found = ""
    if not found:
        return f"needs jax {ORACLE}, which is not installed"
    jax, minijax = (Path(importlib.util.find_spec(name).origin).parent for name in ("jax", "minijax"))
    if jax.is_relative_to(minijax):
        return f"needs jax {ORACLE}, and jax is minijax in this environment"
    return "" if found == ORACLE else f"needs jax {ORACLE}, not {found}"


def _device_missing() -> str:
    found = any(Path(path).exists() for path in ("/dev/nvidia0", "/dev/accel0", "/dev/vfio/0"))
    return "" if found else "needs an accelerator"
