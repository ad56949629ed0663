"""Events for listeners, the log of compilations, and why functions are traced again."""

import importlib
import logging

import numpy as np
import pytest
from compare import both, outcome, same

import minijax
import minijax.numpy as jnp
from minijax import lax, monitoring

KINDS = {
    "event": ("register_event_listener", "unregister_event_listener"),
    "duration": ("register_event_duration_secs_listener", "unregister_event_duration_listener"),
    "span": ("register_event_time_span_listener", "unregister_event_time_span_listener"),
    "scalar": ("register_scalar_listener", "unregister_scalar_listener"),
}
PROGRAMS = {
    "jit": lambda jax, jnp: jax.jit(lambda x: jnp.cos(x) * 17.5)(jnp.arange(3.0)),
    "operation": lambda jax, jnp: jax.lax.tan(np.arange(5, dtype=np.float32)),
    "stages": lambda jax, jnp: jax.jit(lambda x: x * 19.5).lower(np.arange(3.0)).compile(),
    "make_jaxpr": lambda jax, jnp: jax.make_jaxpr(lambda x: jnp.cos(x) * 9)(np.arange(3.0)),
    "nested": lambda jax, jnp: jax.jit(lambda x: jax.jit(lambda y: y * 21.5)(x) + 1)(jnp.arange(3.0)),
    "jvp": lambda jax, jnp: jax.jvp(jax.jit(lambda x: x * x * 22.5), (2.0,), (1.0,)),
    "vmap": lambda jax, jnp: jax.vmap(jax.jit(lambda x: x * 24.5))(np.arange(3.0)),
    "scan": lambda jax, jnp: jax.jit(lambda x: jax.lax.scan(lambda c, a: (c + a, c), 25.5, x))(np.arange(3.0)),
    "an error in a trace": lambda jax, jnp: outcome(lambda: jax.jit(lambda x: 1 / 0)(1.0)),
    "an error in a compilation": lambda jax, jnp: outcome(
        lambda: jax.jit(lambda x: x * 26.5).lower(1.0).compile(compiler_options={"no_such": 1})
    ),
    "eval_shape": lambda jax, jnp: jax.eval_shape(lambda x: x * 9, np.arange(3.0)),
}


def _heard(program):
    """A program's events on a side: kinds, names and keywords; times are left out."""

    def run(jax, jnp):
        told = []
        found = importlib.import_module(f"{jax.__name__}.monitoring")
        listeners = {k: (lambda event, *v, k=k, **kw: told.append((k, event, kw))) for k in KINDS}
        jnp.arange(3.0)
        for kind, (register, _) in KINDS.items():
            getattr(found, register)(listeners[kind])
        try:
            program(jax, jnp)
        finally:
            for kind, (_, unregister) in KINDS.items():
                getattr(found, unregister)(listeners[kind])
        program(jax, jnp)
        return [t for t in told if t[2].get("fun_name") != "jit(iota)"]

    return run


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiling_a_program_reports_the_events_of_jax(name):
    assert same(_heard(PROGRAMS[name]))


@pytest.mark.oracle
def test_events_are_passed_to_the_listeners_of_their_kind():
    def program(jax):
        found, told = importlib.import_module(f"{jax.__name__}.monitoring"), []
        for kind, (register, _) in KINDS.items():
            getattr(found, register)(lambda *values, kind=kind, **kw: told.append((kind, values, kw)))
        found.record_event("/a", tag="x")
        found.record_event_duration_secs("/b", 1.5, n=2)
        found.record_event_time_span("/c", 1.0, 2.0)
        found.record_scalar("/d", 3)
        found.clear_event_listeners()
        found.record_event("/e")
        ends = [outcome(lambda u=u: getattr(found, u)(print)).error for _, u in KINDS.values()]
        return told, [type(e) for e in ends]

    assert len(same(program)[0]) == 4


def _logged(program):
    def run(jax, jnp):
        records = []

        class Handler(logging.Handler):
            def emit(self, record):
                records.append(record)

        handler, logger = Handler(), logging.getLogger("jax")
        x = jnp.arange(3.0)
        logger.addHandler(handler)
        try:
            program(jax, jnp, x)
        finally:
            logger.removeHandler(handler)
        # Names and levels, and messages without what took how long.
        return [(r.name, r.levelname, r.getMessage().rpartition(" in ")[0] or r.getMessage()) for r in records]

    return run


@pytest.mark.oracle
def test_compilations_are_logged_under_the_names_and_with_the_words_of_jax():
    def program(jax, jnp, x):
        def f(x):
            return jnp.sin(x) * 23.5

        with jax.log_compiles(True):
            jax.jit(f)(x)
            jax.jit(f)(x)
            jax.lax.acosh(x)
            jax.jit(lambda x: jax.jit(f)(x) * 27.5)(x)
            jax.jit(lambda x: x * 28.5)(jax.device_put(x, jax.devices()[1]))
            mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), "i")
            jax.jit(lambda x: x * 30.5)(jax.device_put(x, jax.NamedSharding(mesh, jax.P("i"))))
            outcome(lambda: jax.jit(lambda x: 1 / 0)(x))
        jax.jit(f)(x[:2])

    compilation = ["Compiling", "Finished", "Finished"]
    assert [m.split()[0] for _, _, m in same(_logged(program))] == [*["Finished", *compilation] * 5, "Finished"]


@pytest.mark.oracle
def test_cache_misses_are_explained():
    def program(jax, jnp, x):
        def f(x, y=1, n=None):
            return x * 29.5

        f = jax.jit(f, static_argnames="n")
        with jax.explain_cache_misses(True):
            f(x)
            f(x)
            f(x[:2])
            f(x, y=2)
            f(x, n=3)
            f(x, n=4)
            with jax.numpy_rank_promotion("warn"):
                f(x)
            jnp.sinh(x), jnp.einsum("i,i->", x, x)  # of functions that are not the user's nothing is said
            g = jax.jit(lambda x: x * 30.5)
            g(jnp.float32(1))
            g(1.0)

    first, second = ([r for r in records if "MISS" in r[2]] for records in both(_logged(program)))
    assert [r[:2] for r in first] == [r[:2] for r in second] and len(first) == 8
    phrases = [
        "never seen function",
        "different input types:\n  * at x, now f32[2] and before f32[3]",
        "different input pytree",
        "",
        "",
        "* jax_numpy_rank_promotion differs: now warn and before allow",
        "never seen function",
        "* at x, now f32[]{weak_type=True} and before f32[]{weak_type=False}",
    ]
    for (_, _, our), (_, _, their), phrase in zip(first, second, phrases, strict=True):
        for text in (our.replace("float32", "f32"), their):
            assert text.startswith("TRACING CACHE MISS at ") and phrase in text
    assert "different static arguments:\n  * at n, now 4 and before 3" in first[4][2]


def test_options_of_jit_do_not_count_as_a_redefinition():
    def f(x, n=2):
        return x * 31.5

    def program(jax, jnp, x):
        with jax.explain_cache_misses(True):
            jax.jit(f)(x)
            jax.jit(f, static_argnums=1)(x)
            jax.jit(f, keep_unused=True)(x)  # has the jaxpr of the first

    _, (_, _, text) = [r for r in _logged(program)(minijax, jnp) if "MISS" in r[2]]
    assert "its jit option static_nums differs: now (1,) and before ()" in text and "re-defined" not in text


def test_without_listeners_and_logs_nothing_is_reported(caplog):
    told = []
    monitoring.register_event_duration_secs_listener(lambda *a, **k: told.append(a))
    monitoring.clear_event_listeners()
    with caplog.at_level(logging.WARNING):
        minijax.jit(lambda x: lax.sin(x) * 31.5)(jnp.arange(3.0))
    assert not told and not caplog.records


@pytest.mark.oracle
def test_options_select_which_log_records_go_to_stderr(capsys):
    steps = [("logging_level", "INFO"), ("debug_log_modules", "jax._src.dispatch,other"), ("logging_level", None)]
    steps += [("debug_log_modules", "jax"), ("debug_log_modules", ""), ("logging_level", "NOTSET")]
    names = "jax", "jaxlib", "jax._src.dispatch", "other"
    before = {name: list(logging.getLogger(name).handlers) for name in names}

    def program(jax):
        seen = []
        try:
            for option, value in steps:
                jax.config.update(f"jax_{option}", value)
                loggers = [logging.getLogger(name) for name in names]
                handlers = [[h for h in logger.handlers if h not in before[logger.name]] for logger in loggers]
                seen += [
                    (logger.level, [(type(h), h.level) for h in own])
                    for logger, own in zip(loggers, handlers, strict=True)
                ]
                if option == "debug_log_modules":
                    logging.getLogger("other").debug("said")
        finally:
            jax.config.update("jax_debug_log_modules", "")
            jax.config.update("jax_logging_level", "NOTSET")
        return seen, [line.split(":")[0] + line.rpartition(":")[2] for line in capsys.readouterr().err.splitlines()]

    first, second = both(program)
    # jax writes to what stderr was at its import.
    assert first[0] == second[0] and first[1] == ["DEBUG said"]
