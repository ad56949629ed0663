"""Options: the table against jax's, overrides and threads, and the interned state of cache keys."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import types

import pytest

from minijax.base import config as options
from minijax.base.config import config, state

BOTH = """
import json, jax
from minijax.base.config import config
print(json.dumps([{n: str(v) for n, v in c.values.items()} for c in (jax.config, config)]))
"""


@contextlib.contextmanager
def restored(cfg, name):
    before = cfg.values[name]
    try:
        yield
    finally:
        cfg.update(name, before)


def outcome(action):
    try:
        return str(action())
    except Exception as error:
        return type(error)


def values_in_a_process(**environment):
    pytest.importorskip("jax")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    run = subprocess.run(
        [sys.executable, "-c", BOTH], env=clean | environment, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "environment",
    [
        {},
        dict(
            JAX_ENABLE_X64="TRUE", JAX_NUMPY_RANK_PROMOTION="warn", JAX_DEFAULT_MATMUL_PRECISION="high",
            JAX_DISABLE_JIT="y", JAX_THREEFRY_PARTITIONABLE="off", JAX_COMPILATION_CACHE_MAX_SIZE="7",
            JAX_NUMPY_DTYPE_PROMOTION="strict", JAX_EXPLICIT_X64_DTYPES="allow", JAX_LOGGING_LEVEL="ERROR",
            JAX_COMPILATION_CACHE_DIR="", JAX_DEFAULT_DEVICE="cpu", JAX_EXEC_TIME_OPTIMIZATION_EFFORT="0.5",
            CHECK_VMA="1", JAX_PLATFORM_NAME="cpu", JAX_SEND_TRACEBACK_TO_RUNTIME="on",
        ),
    ],
    ids=["defaults", "environment"],
)  # fmt: skip
def test_all_options_have_the_names_and_values_that_jax_gives_them(environment):
    theirs, ours = values_in_a_process(**environment)
    assert {name: value for name, value in ours.items() if not name.startswith("minijax_")} == theirs


@pytest.mark.parametrize(
    "text, value",
    [(w, True) for w in ("1", "true", "TRUE", "Yes", "y", "t", "on")]
    + [(w, False) for w in ("0", "False", "no", "n", "f", "OFF")]
    + [("maybe", ValueError), ("", ValueError)],
)
def test_environment_booleans_are_the_words_of_strtobool(monkeypatch, text, value):
    monkeypatch.setenv("MINIJAX_TEST_OPTION", text)
    try:
        made = outcome(lambda: options.Option("minijax_test_option", "False", "", options.Boolean()).value)
    finally:
        options._options.pop("minijax_test_option", None)
    assert made == (value if isinstance(value, type) else str(value))


def test_a_wrong_choice_in_the_environment_is_a_value_error(monkeypatch):
    monkeypatch.setenv("MINIJAX_TEST_OPTION", "foo")
    kinds = options.Number(int), options.Number(float), options.Choice("a", "b")
    for kind in (*kinds, options.Member(options.NumpyDtypePromotion)):
        with pytest.raises(ValueError, match="Invalid value"):
            options.Option("minijax_test_option", "1", "", kind)
    assert "minijax_test_option" not in config.values


UPDATES = [
    ("foo", 1), ("jax_enable_x64", 1), ("jax_enable_x64", "true"), ("jax_enable_x64", None),
    ("jax_numpy_rank_promotion", "warn"), ("jax_numpy_rank_promotion", "foo"),
    ("jax_numpy_rank_promotion", 3), ("jax_numpy_rank_promotion", None),
    ("jax_numpy_dtype_promotion", "strict"), ("jax_numpy_dtype_promotion", "foo"),
    ("jax_numpy_dtype_promotion", 3), ("jax_numpy_dtype_promotion", None),
    ("jax_default_matmul_precision", "float32"), ("jax_default_matmul_precision", "foo"),
    ("jax_default_matmul_precision", 3), ("jax_default_matmul_precision", None),
    ("jax_captured_constants_warn_bytes", "a"), ("jax_captured_constants_warn_bytes", 1.5),
    ("jax_captured_constants_warn_bytes", 5), ("jax_compilation_cache_dir", 3),
    ("jax_exec_time_optimization_effort", "x"), ("jax_exec_time_optimization_effort", 1),
    ("jax_default_device", "cpu"), ("jax_default_device", "foo"), ("jax_default_device", 3),
    ("jax_default_device", "cpu:0"), ("jax_explicit_x64_dtypes", "error"), ("jax_explicit_x64_dtypes", "1"),
    ("jax_explicit_x64_dtypes", 1), ("jax_legacy_prng_key", "warn"), ("jax_legacy_prng_key", "foo"),
    ("jax_platforms", 5), ("jax_platforms", "cpu"), ("jax_platform_name", "cpu"),
    ("jax_transfer_guard", "foo"), ("jax_transfer_guard", "allow"), ("jax_logging_level", "FOO"),
    ("jax_default_prng_impl", "foo"), ("jax_default_prng_impl", "rbg"), ("jax_xla_profile_version", "k"),
    ("jax_debug_log_modules", None), ("jax_error_checking_behavior_nan", "foo"),
    ("jax_cpu_collectives_implementation", None), ("jax_use_magma", "k"),
    ("jax_memory_fitting_level", None), ("jax_debug_nans", "x"),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name, value", UPDATES)
def test_update_accepts_and_rejects_the_values_of_jax(name, value):
    jax = pytest.importorskip("jax")

    def updated(cfg):
        with restored(cfg, name) if name in cfg.values else contextlib.nullcontext():
            cfg.update(name, value)
            return repr(cfg.values[name])

    assert outcome(lambda: updated(config)) == outcome(lambda: updated(jax.config))


MANAGERS = [
    "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "check_tracer_leaks",
    "debug_infs", "debug_nans", "default_device", "default_matmul_precision",
    "default_prng_impl", "enable_checks", "enable_custom_prng", "enable_x64", "explain_cache_misses",
    "jax2tf_associative_scan_reductions", "legacy_prng_key", "log_compiles", "no_execution", "no_tracing",
    "numpy_dtype_promotion", "numpy_rank_promotion", "remove_size_one_mesh_axis_from_type",
    "softmax_custom_jvp", "thread_guard", "threefry_partitionable", "transfer_guard",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host", "transfer_guard_host_to_device",
    "disable_jit", "checking_leaks",
]  # fmt: skip
ARGUMENTS = [(), (True,), (False,), ("allow",), ("raise",), ("strict",), ("rbg",), ("cpu",), ("foo",), (None,), (3,)]


@pytest.mark.oracle
@pytest.mark.parametrize("name", MANAGERS)
def test_context_managers_accept_and_set_the_values_of_jax(name):
    jax = pytest.importorskip("jax")

    def inside(namespace, cfg, arguments):
        with getattr(namespace, name)(*arguments):
            return {n: str(v) for n, v in cfg.values.items() if v != cfg_before[n]}

    for arguments in ARGUMENTS:
        results = []
        for namespace, cfg in ((options, config), (jax, jax.config)):
            cfg_before = cfg.values
            try:
                results.append(inside(namespace, cfg, arguments))
            except Exception as error:
                results.append(type(error))
            assert cfg.values == cfg_before
        assert results[0] == results[1], arguments


@pytest.mark.oracle
def test_the_options_in_trace_keys_are_those_of_the_trace_context_of_jax():
    names = pytest.importorskip("jax._src.config").trace_context_names()
    wanted = {name for name in names if name in config.values}
    assert {option.name for option in options._traced if option.name in config.values} == wanted


@pytest.mark.oracle
def test_unknown_and_read_only_attributes_raise_as_in_jax():
    jax = pytest.importorskip("jax")
    actions = [
        lambda c: c.foo,
        lambda c: c.FLAGS,
        lambda c: c.read("foo"),
        lambda c: c.read("jax_enable_x64"),
        lambda c: c.read("jax_platform_name"),
        lambda c: c.jax_platform_name,
        lambda c: c.x64_enabled,
        lambda c: c.jax_enable_x64,
        lambda c: setattr(c, "jax_enable_x64", True),
        lambda c: c.jax_disable_jit,
        lambda c: setattr(c, "x64_enabled", True),
        lambda c: hasattr(c, "jax_default_device"),
    ]
    for number, action in enumerate(actions):
        assert outcome(lambda: action(config)) == outcome(lambda: action(jax.config)), number  # noqa: B023


def test_equal_settings_are_the_same_state_object_and_unequal_ones_another():
    plain = state()
    with options.enable_x64(True):
        wide = state()
        assert wide is not plain and wide.enable_x64 and not plain.enable_x64
        with options.enable_x64(False):
            assert state() is plain
        assert state() is wide
    assert state() is plain
    with restored(config, "jax_enable_x64"):
        config.update("jax_enable_x64", True)
        assert state() is wide
    assert state() is plain and len({plain, wide}) == 2


def test_untraced_options_leave_the_state_alone():
    plain = state()
    with options.enable_checks(True), options.log_compiles(True):
        assert state() is plain and options.enable_checks.value and config.jax_log_compiles
    assert not hasattr(plain, "log_compiles")


def test_options_of_how_programs_run_are_in_the_state_but_not_in_the_traced_part():
    plain = state()
    with options.debug_nans(True):
        checked = state()
        assert checked is not plain and checked.debug_nans and checked.traced is plain.traced
        with options.enable_x64(True):
            assert state().debug_nans and state().traced is not plain.traced
    assert state() is plain and not hasattr(plain.traced, "debug_nans") and plain.traced.traced is plain.traced


def test_the_state_cannot_be_written_to():
    with pytest.raises(AttributeError):
        state().enable_x64 = True


def test_overrides_apply_to_one_thread_and_updates_to_all():
    seen = []
    begun, updated = threading.Event(), threading.Event()

    def watch():
        seen.append((config.x64_enabled, state().numpy_rank_promotion))
        begun.set()
        updated.wait()
        seen.append((config.x64_enabled, state().numpy_rank_promotion))

    with options.enable_x64(True), restored(config, "jax_numpy_rank_promotion"):
        thread = threading.Thread(target=watch)
        thread.start()
        begun.wait()
        config.update("jax_numpy_rank_promotion", "raise")
        updated.set()
        thread.join()
        assert config.x64_enabled and state().numpy_rank_promotion == "raise"
    assert seen == [(False, "allow"), (False, "raise")]


def test_managers_nest_in_themselves_decorate_and_survive_exceptions():
    manager = options.enable_x64(True)
    with manager:
        with manager:
            assert config.x64_enabled
        assert config.x64_enabled
    assert not config.x64_enabled

    @manager
    def inside(depth):
        """Documented."""
        return config.x64_enabled if depth == 0 else inside(depth - 1)

    assert inside(2) and inside.__doc__ == "Documented." and not config.x64_enabled
    with pytest.raises(ZeroDivisionError), manager:
        raise ZeroDivisionError
    assert not config.x64_enabled


def test_one_manager_may_be_shared_by_threads():
    manager, entered, left, seen = (options.numpy_rank_promotion("raise"), threading.Event(), threading.Event(), [])

    def other():
        with options.numpy_rank_promotion("warn"), manager:
            entered.set()
            left.wait()
        seen.append(config.jax_numpy_rank_promotion)

    thread = threading.Thread(target=other)
    with manager:
        thread.start()
        entered.wait()
    seen.append(config.jax_numpy_rank_promotion)
    left.set()
    thread.join()
    assert seen == ["allow", "allow"]


def test_a_forbidden_override_leaves_everything_as_it_was(monkeypatch):
    def forbid(value, thread_only):
        if value == "disallow":
            raise RuntimeError("no")

    monkeypatch.setattr(options.transfer_guard_device_to_host, "_callbacks", [forbid])
    before = config.values
    with pytest.raises(RuntimeError, match="no"), options.transfer_guard("disallow"):
        pass
    assert config.values == before


def test_an_option_is_not_a_boolean():
    with pytest.raises(TypeError, match="value"):
        bool(options.enable_x64)


def test_a_callback_sees_changes_before_they_happen_and_may_forbid_them(monkeypatch):
    calls = []
    monkeypatch.setattr(options.debug_infs, "_callbacks", [])

    @options.debug_infs.on_change
    def check(value, thread_only):
        calls.append((value, thread_only, options.debug_infs.value))
        if not thread_only:
            raise RuntimeError("too late")

    with pytest.raises(RuntimeError, match="too late"):
        config.update("jax_debug_infs", True)
    assert config.jax_debug_infs is False
    with options.debug_infs(True):
        assert config.jax_debug_infs is True
    assert calls == [(True, False, False), (True, True, False), (False, True, True)]


def test_user_contexts_are_part_of_the_state():
    context = options.make_user_context("none")
    plain = state()
    assert context.value == "none"
    with context("a"):
        inner = state()
        assert context.value == "a" and inner is not plain
    assert state() is plain
    with context("a"):
        assert state() is inner
    with pytest.raises(TypeError):
        context([])


def test_options_are_module_attributes_with_help():
    assert options.log_compiles is options.option("jax_log_compiles") is options.option("log_compiles")
    assert options.persistent_cache_min_compile_time_secs.value == 1.0
    assert all(option.help.endswith(".") for option in options._options.values())
    with pytest.raises(AttributeError):
        _ = options.no_such_option


def test_absl_flags_are_declared_and_taken_over(monkeypatch):
    declared, registered = {}, []

    class Flags(dict):
        def __call__(self, argv, known_only):
            flag = self["jax_numpy_rank_promotion"]
            flag.value, flag.present = "warn", 1

    flags = types.SimpleNamespace(FLAGS=Flags())
    for kind in ("bool", "integer", "float", "string"):

        def define(name, default, help, kind=kind):
            declared[name] = kind
            flags.FLAGS[name] = types.SimpleNamespace(value=default, present=0)

        setattr(flags, f"DEFINE_{kind}", define)
    monkeypatch.setattr(options, "absl_flags", flags)
    monkeypatch.setattr(options, "absl_app", types.SimpleNamespace(call_after_init=registered.append))
    with restored(config, "jax_numpy_rank_promotion"):
        config.parse_flags_with_absl()
        assert config.jax_numpy_rank_promotion == "warn"
        config.update("jax_numpy_rank_promotion", "raise")
        registered[0]()
        assert config.jax_numpy_rank_promotion == "warn"
    assert declared.keys() == config.values.keys() and declared["jax_enable_x64"] == "bool"
