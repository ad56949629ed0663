"""The files of `jax_dump_ir_to`: StableHLO, jaxpr and equations of programs."""

import contextlib
import gzip
import itertools
import logging
import re
from collections import Counter

import numpy as np
import pytest
from compare import both, outcome, same
from jaxlib.mlir import ir

import minijax
import minijax.numpy as jnp

X = np.arange(3.0, dtype=np.float32)
sizes = itertools.count(1001)  # of operations; a process compiles each once


@contextlib.contextmanager
def dumping(jax, folder, **options):
    options = {"dump_ir_to": str(folder), **options}
    before = {name: jax.config.read(f"jax_{name}") for name in options}
    try:
        for name, value in options.items():
            jax.config.update(f"jax_{name}", value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(f"jax_{name}", value)


def files(folder):
    """The contents of files by name; numbers count within a process, and only their order is compared."""
    paths = sorted(folder.iterdir()) if folder.exists() else []
    numbers = sorted({found[0] for path in paths if (found := re.search(r"\d{4,}", path.name))})
    return {re.sub(r"\d{4,}", lambda m: f"#{numbers.index(m[0])}/{len(m[0])}", p.name): p.read_bytes() for p in paths}


def inner(x):
    return x * 41.5


def program(jax, jnp, size):
    def f(x, unused):
        y = jnp.sin(x)
        z = inner(y)
        return jax.lax.scan(lambda c, _: (c * 2 + 1, None), z, None, length=3)[0], jax.jit(inner)(z)

    f = jax.jit(f)
    f(X, 1.0)
    f(X, 2.0)
    jax.jit(lambda x: x - 43.5).lower(X).compile()
    jax.lax.asinh(np.ones(size, np.float32))
    jax.jit(lambda x: x - 47.5).trace(X)
    jax.make_jaxpr(inner)(X)


def dumped(tmp_path, **options):
    size = next(sizes)

    def run(jax, jnp):
        folder = tmp_path / jax.__name__ / "new"
        with dumping(jax, folder, **options):
            program(jax, jnp, size)
        return files(folder)

    return both(run)


@pytest.mark.oracle
def test_programs_are_written_as_they_are_compiled_under_the_names_of_jax(tmp_path):
    first, second = dumped(tmp_path)
    assert list(first) == list(second)
    assert list(first) == [f"jax_ir#{n}/4_jit_{name}_compile.mlir" for n, name in enumerate(["f", "_lambda", "asinh"])]
    for text in (x.decode() for x in first.values()):
        assert text.startswith("module @jit_") and "loc(" in text
    plain = dumped(tmp_path / "plain", include_debug_info_in_dumps=False)
    assert all(b"loc(" not in text for side in plain for text in side.values())


@pytest.mark.oracle
def test_jaxprs_are_written_as_they_are_lowered(tmp_path):
    first, second = dumped(tmp_path, dump_ir_modes="jaxpr")
    assert first == second
    assert list(first) == [f"jax_#{n}/6_{name}.jaxpr.txt" for n, name in enumerate(["f", "<lambda>", "asinh"])]


def fields(message):
    """The numbers and values of a protocol buffer's fields."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        number, wire = divmod(varint(), 8)
        value = varint()
        if wire == 2:
            value, at = message[at : at + value], at + value
        found.append((number, value))
    return found


def samples(profile):
    """How many equations of a primitive a stack has, by the primitive and the stack's functions and lines."""
    top = fields(gzip.decompress(profile))
    strings = [value.decode() for number, value in top if number == 6]
    functions = {m[1]: strings[m[2]] for m in (dict(fields(v)) for n, v in top if n == 5)}
    lines = {m[1]: dict(fields(m[4])) for m in (dict(fields(v)) for n, v in top if n == 4)}
    places = {number: (functions[line[1]], line[2]) for number, line in lines.items()}
    counts = Counter()
    for message in (dict(fields(v)) for n, v in top if n == 2):
        label = dict(fields(message[3]))
        assert strings[label[1]] == "primitive"
        counts[strings[label[2]], tuple(places[i] for i in message[1])] += message[2][0]
    return counts


@pytest.mark.oracle
def test_equations_are_counted_for_pprof(tmp_path):
    first, second = dumped(tmp_path, dump_ir_modes="eqn_count_pprof")
    assert list(first) == list(second)
    for name in ("jax_#0/6_f.eqn_count_pprof", "jax_#1/6_<lambda>.eqn_count_pprof"):
        assert samples(first[name]) == samples(second[name])
    stacks = samples(first["jax_#0/6_f.eqn_count_pprof"])
    assert {name: len(stack) for name, stack in stacks if name in ("sin", "mul", "scan")} == {
        "sin": 1,
        "mul": 2,
        "scan": 1,
    }


def test_modes_are_a_list_and_unknown_ones_write_nothing(tmp_path):
    for modes, endings in [("jaxpr,stablehlo", {".txt", ".mlir"}), ("no,jaxpr", {".txt"}), ("", set()), ("all", set())]:
        folder = tmp_path / (modes or "none")
        with dumping(minijax, folder, dump_ir_modes=modes):
            minijax.jit(lambda x: x + 53.5)(X)
        assert {f".{name.rpartition('.')[2]}" for name in files(folder)} == endings


def test_files_have_names_whatever_functions_are_called(tmp_path):
    for n, name in enumerate(["a/b", "<odd>", "x" * 400, "üñï", "..", "\0"]):

        def f(x, n=n):
            return x + n * 59.5

        f.__name__ = f.__qualname__ = name
        with dumping(minijax, tmp_path, dump_ir_modes="jaxpr,stablehlo,eqn_count_pprof"):
            minijax.jit(f)(X)
    assert len(files(tmp_path)) == 18


@pytest.mark.oracle
def test_unwritable_dump_folders_raise_as_in_jax(tmp_path, monkeypatch):
    monkeypatch.delenv("TEST_UNDECLARED_OUTPUTS_DIR", raising=False)

    def run(jax):
        errors = []
        for n, folder in enumerate(["sponge", "/dev/null", "/proc/absent"]):
            with dumping(jax, folder):
                errors.append(outcome(lambda n=n: jax.jit(lambda x: x + n * 61.5)(X)).error)
        monkeypatch.setenv("TEST_UNDECLARED_OUTPUTS_DIR", str(tmp_path / jax.__name__))
        with dumping(jax, "sponge"):
            jax.jit(lambda x: x + 67.5)(X)
        monkeypatch.delenv("TEST_UNDECLARED_OUTPUTS_DIR")
        return (
            [type(e) for e in errors],
            "TEST_UNDECLARED_OUTPUTS_DIR" in str(errors[0]),
            len(files(tmp_path / jax.__name__)),
        )

    assert same(run)[1:] == (True, 1)


@pytest.mark.oracle
def test_the_log_tells_of_dumps(tmp_path, caplog):
    def run(jax):
        caplog.clear()
        with caplog.at_level(logging.INFO), dumping(jax, tmp_path / jax.__name__, dump_ir_modes="jaxpr,stablehlo"):
            jax.jit(lambda x: x + 71.5)(X)
        records = [r for r in caplog.records if r.getMessage().startswith("Dump")]
        return [(r.name, r.levelname, re.sub(r"\d{4}|\S+/\S+", "", r.getMessage())) for r in records]

    assert len(same(run)) == 2


def test_dumped_programs_are_programs(tmp_path):
    def f(x, y):
        return jnp.linalg.solve(x, y), minijax.lax.cond(y[0] > 0, jnp.sin, jnp.cos, y)

    with dumping(minijax, tmp_path):
        minijax.jit(f)(np.eye(3, dtype=np.float32), X)
    lowered = minijax.jit(f).lower(np.eye(3, dtype=np.float32), X)
    (text,) = [text.decode() for name, text in files(tmp_path).items() if "jit_f" in name]
    with minijax.interpreters.mlir.make_ir_context():
        assert str(ir.Module.parse(text)) == str(lowered.compiler_ir())
