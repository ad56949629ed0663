"""Options: global values, thread-local overrides, and the interned state that is part of cache keys."""

import contextlib
import enum
import functools
import itertools
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base.lazy import defer
from minijax.base.thread import NEVER, thread as _thread

absl_app = defer("absl.app")
absl_flags = defer("absl.flags")


class NumpyDtypePromotion(enum.StrEnum):
    STANDARD = "standard"
    STRICT = "strict"


class LegacyPrngKeyState(enum.StrEnum):
    ALLOW = "allow"
    WARN = "warn"
    ERROR = "error"


class RuntimeTracebackMode(enum.StrEnum):
    OFF = "off"
    ON = "on"
    FULL = "full"

    @classmethod
    def _missing_(cls, value):
        return next((mode for mode in cls if isinstance(value, str) and mode.value == value.lower()), None)


class ExplicitX64Mode(enum.IntEnum):
    WARN = 1
    ERROR = 2
    ALLOW = 3

    @classmethod
    def _missing_(cls, value):
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class _Unset:
    def __repr__(self) -> str:
        return "<required>"


UNSET = _Unset()
TRUTHS = {"y", "yes", "t", "true", "on", "1"}
FALSEHOODS = {"n", "no", "f", "false", "off", "0"}


# ---- the thread's view -------------------------------------------------------------------------------


class State:
    """The effective values of the options that are part of cache keys; equal values are one object, compared by `is`.

    `traced` is the state of only those options that change a trace; the others change how programs are run.
    """

    # `ready` pairs it with the epoch, as one object for all threads. `__dict__` has only the options.
    __slots__ = ("__dict__", "__weakref__", "traced", "ready")

    def __init__(self, values: dict[str, Any], traced: "State | None" = None):
        self.__dict__.update(values)
        object.__setattr__(self, "traced", traced or self)
        object.__setattr__(self, "ready", NEVER)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the config state has no option {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"config state is immutable, {name!r} cannot be set")

    def __repr__(self) -> str:
        return f"State({', '.join(f'{n}={v!r}' for n, v in self.__dict__.items())})"


_lock = threading.RLock()
_numbers = itertools.count()
epoch = [object()]  # replaced by every global change, so that each thread notices
_options: dict[str, "Option"] = {}
_traced: list["Option"] = []
_keyed: list["Option | Condition"] = []  # options that do not change traces but change how programs are run
_states: weakref.WeakValueDictionary[tuple, State] = weakref.WeakValueDictionary()


def state() -> State:
    """Returns the calling thread's values of the traced and keyed options; equal values are one object."""
    current, since = _thread.current
    return current if since is epoch[0] else _refresh()  # pyright: ignore[reportReturnType]


def has_own_settings() -> bool:
    """Returns whether this thread has a value of its own for an option that no cache key contains."""
    return any([isinstance(option, Option) and option.states is None for option in _thread.overrides])


def make_ready() -> State:
    """As `state`, for a thread without a current trace: its next calls are looked up by it, if jit is enabled."""
    options = state()
    if not options.disable_jit:
        _thread.ready = _thread.current
    return options


def unready() -> None:
    """Makes this thread's next call look up the options."""
    _thread.ready = NEVER


def forget_ready() -> None:
    """Makes each thread look up its options, and the program of its next call, again."""
    epoch[0] = object()


def _refresh() -> State:
    now = epoch[0]
    full_state = _interned([*_traced, *_keyed], _interned(_traced, None))
    if full_state.ready[1] is not now:
        object.__setattr__(full_state, "ready", (full_state, now))
    _thread.current = full_state.ready
    return full_state


def _interned(options: Sequence["Option | Condition"], traced: State | None) -> State:
    overrides = _thread.overrides
    key = traced, *[overrides.get(option, option.default) for option in options]
    interned = _states.get(key)
    if interned is None:
        names = [option.attribute for option in options]
        with _lock:
            interned = _states.setdefault(key, State(dict(zip(names, key[1:], strict=True)), traced))
    return interned


def run_as_of(state: State, fun: Callable[..., Any], *args: Any) -> Any:
    """Calls `fun` under the options of a cache key, regardless of what other threads set meanwhile."""
    thread = _thread
    if thread.pinned is not None:
        return fun(*args)
    saved, before, ready = thread.overrides, thread.current, thread.ready
    pinned = dict(_values_of(state, len(_traced)))
    for option in saved:
        pinned.pop(option, None)
    try:
        thread.pinned, thread.overrides = pinned, {**saved, **pinned}
        thread.current, thread.ready = before if before[0] is state else NEVER, NEVER
        return fun(*args)
    finally:
        thread.pinned, thread.overrides, thread.current, thread.ready = None, saved, before, ready


@functools.lru_cache(maxsize=16)
def _values_of(state: State, count: int) -> dict["Option | Condition", Any]:
    """The values in `state` of the first `count` traced options and of the keyed ones, where the state has them."""
    options = [*_traced[:count], *_keyed]
    return {o: getattr(state, o.attribute) for o in options if hasattr(state, o.attribute)}


# ---- kinds of options --------------------------------------------------------------------------------


class Kind:
    """The values that an option accepts: all of them, unless a subclass restricts them."""

    absl = "DEFINE_string"  # the function of absl that declares a flag of this kind

    def check(self, value: Any, name: str) -> Any:
        """Returns the value in its normal form. Raises ValueError or TypeError for an invalid value."""
        return value

    def parse(self, text: str, name: str) -> Any:
        """Returns the value that a text in the environment specifies. Raises ValueError for an invalid text."""
        try:
            return self.check(self.read(text), name)
        except (ValueError, TypeError):
            raise ValueError(f'Invalid value "{text}" for JAX flag {name}') from None

    def read(self, text: str) -> Any:
        """Converts a text; `check` then decides whether the result is valid."""
        return text


def _got(value: Any, name: str) -> str:
    return f"got {value} of type {type(value)} for {name}"


class Boolean(Kind):
    """True or False; any value is accepted for its truth."""

    absl = "DEFINE_bool"

    def check(self, value: Any, name: str) -> bool:
        return bool(value)

    def parse(self, text: str, name: str) -> bool:
        word = text.lower()
        if word in TRUTHS or word in FALSEHOODS:
            return word in TRUTHS
        raise ValueError(f"invalid truth value {text!r} for environment {name.upper()!r}")


class Number(Kind):
    """Numbers of a class, or None; ints are valid floats."""

    def __init__(self, cls: type):
        self.cls, self.absl = cls, "DEFINE_float" if cls is float else "DEFINE_integer"

    def check(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, (float, int) if self.cls is float else self.cls):
            return value
        word = self.cls.__name__
        raise ValueError(f"new {word} config value must be None or of type {word}, {_got(value, name)}")

    def read(self, text: str) -> Any:
        return self.cls(text)


class Text(Kind):
    """Strings, and None if it is optional."""

    def __init__(self, optional: bool = False):
        self.optional = optional

    def check(self, value: Any, name: str) -> str | None:
        if isinstance(value, str) or value is None and self.optional:
            return value
        if self.optional:
            raise ValueError(f"new string config value must be None or of type str, {_got(value, name)}")
        raise TypeError(f"new string config value must be of type str, {_got(value, name)}")


class Choice(Kind):
    """One of several words, or None if that is among them."""

    def __init__(self, *words: str | None):
        self.words = words

    def check(self, value: Any, name: str) -> str | None:
        if value in self.words and isinstance(value, str | None):
            return value
        words = [word for word in self.words if word is not None]
        raise ValueError(f"new enum value must be {'None or ' * (None in self.words)}in {words}, {_got(value, name)}")


class Member(Kind):
    """A member of an enum, which may be given as text."""

    def __init__(self, cls: type[enum.Enum]):
        self.cls = cls

    def check(self, value: Any, name: str) -> enum.Enum:
        if isinstance(value, (str, self.cls)):
            return self.cls(value)
        raise TypeError(f"new enum value must be an instance of {self.cls}, {_got(value, name)}")


PLATFORMS = ("cpu", "gpu", "tpu")


class DeviceOrPlatform(Kind):
    """A device, the name of a platform, or None."""

    def check(self, value: Any, name: str) -> Any:
        if value in PLATFORMS if isinstance(value, str) else value is None or hasattr(value, "platform"):
            return value
        raise ValueError(
            f"jax.default_device must be passed either a Device object or a platform name string, got: {value!r}"
        )


def _example(option: "Option") -> str:
    """The example in the docstring of an option that is a context manager of `jax`.

    allow_f16_reductions:
            >>> with jax.allow_f16_reductions(False):
            ...     jax.config.jax_allow_f16_reductions
            False
    array_garbage_collection_guard:
            >>> with jax.array_garbage_collection_guard("log"):
            ...     jax.config.jax_array_garbage_collection_guard
            'log'
    auto_pcast:
            >>> mesh = jax.make_mesh((1,), ("i",))
            >>> f = jax.shard_map(lambda x: x + jax.lax.pcast(x, "i", to="varying"), mesh=mesh, in_specs=jax.P(),
            ...                   out_specs=jax.P("i"))
            >>> jax.jit(f)(jnp.ones(1)).tolist()
            [2.0]
            >>> with jax.auto_pcast(False):
            ...     jax.jit(f)(jnp.ones(1))
            Traceback (most recent call last):
            ValueError: ...
    check_tracer_leaks:
            >>> leaked = []
            >>> with jax.check_tracer_leaks():
            ...     jax.jit(leaked.append)(1.0)
            Traceback (most recent call last):
            Exception: Leaked trace DynamicJaxprTrace. ...
    debug_infs:
            >>> with jax.debug_infs():
            ...     1 / jnp.zeros(2)
            Traceback (most recent call last):
            FloatingPointError: invalid value (inf) encountered in div. ...
    debug_key_reuse:
            >>> key = jax.random.key(0)
            >>> with jax.debug_key_reuse():
            ...     jax.random.normal(key) + jax.random.normal(key)
            Traceback (most recent call last):
            minijax.errors.KeyReuseError: Previously-consumed key passed to jit-compiled function at index 0. ...
    debug_nans:
            >>> with jax.debug_nans():
            ...     jnp.log(-1.0)
            Traceback (most recent call last):
            FloatingPointError: invalid value (nan) encountered in log. ...
    default_device:
            >>> with jax.default_device("cpu"):
            ...     jnp.ones(2).device.platform
            'cpu'
    default_matmul_precision:
            >>> with jax.default_matmul_precision("highest"):
            ...     jax.make_jaxpr(jnp.matmul)(jnp.ones(2), jnp.ones(2)).eqns[0].params["precision"]
            (Precision.HIGHEST, Precision.HIGHEST)
    default_prng_impl:
            >>> with jax.default_prng_impl("rbg"):
            ...     jax.random.key(0).dtype
            key<rbg>
    enable_checks:
            >>> with jax.enable_checks():
            ...     jax.make_jaxpr(jnp.sin)(1.0)  # its types are checked
            { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    enable_custom_prng:
            >>> with jax.enable_custom_prng():
            ...     jax.random.PRNGKey(0).dtype
            key<fry>
    enable_x64:
            >>> with jax.enable_x64():
            ...     jnp.ones(2).dtype
            dtype('float64')
    explain_cache_misses:
            >>> f = jax.jit(lambda x: x + 1)
            >>> with jax.explain_cache_misses():
            ...     _ = f(1), f(2.0)  # the log says that x is now f32[] and was i32[]
    jax2tf_associative_scan_reductions:
            >>> with jax.jax2tf_associative_scan_reductions():
            ...     jnp.cumsum(jnp.array([1, 2, 3]))
            Array([1, 3, 6], dtype=int32)
    legacy_prng_key:
            >>> with jax.legacy_prng_key("error"):
            ...     jax.random.normal(jax.random.PRNGKey(0))
            Traceback (most recent call last):
            ValueError: Legacy uint32 key array passed as key to jax.random function. ...
    log_compiles:
            >>> with jax.log_compiles():
            ...     _ = jax.jit(lambda x: x + 2)(1)  # the log has the times of tracing, lowering and compiling
    no_execution:
            >>> with jax.no_execution():
            ...     jnp.sin(1.0)
            Traceback (most recent call last):
            RuntimeError: JAX tried to execute function jit(sin), but the no_execution config option is set...
    no_tracing:
            >>> with jax.no_tracing():
            ...     jax.jit(lambda x: x + 1)(1)
            Traceback (most recent call last):
            RuntimeError: re-tracing function <lambda> at ... for `jit`, but 'no_tracing' is set...
    numpy_dtype_promotion:
            >>> with jax.numpy_dtype_promotion("strict"):
            ...     jnp.ones(2) + jnp.ones(2, int)
            Traceback (most recent call last):
            minijax.dtypes.TypePromotionError: Input dtypes ('float32', 'int32') have no available implicit dtype ...
    numpy_rank_promotion:
            >>> with jax.numpy_rank_promotion("raise"):
            ...     jnp.ones((2, 2)) + jnp.ones(2)
            Traceback (most recent call last):
            ValueError: Operands could not be broadcast together for add on shapes (2, 2) (2,) ...
    pallas_enable_debug_checks:
            >>> with pl.enable_debug_checks(True):
            ...     pl.enable_debug_checks.value
            True
    pallas_poison_buffers:
            >>> with pl.enable_poison_buffers(True):
            ...     pl.enable_poison_buffers.value
            True
    remove_size_one_mesh_axis_from_type:
            >>> mesh = jax.make_mesh((1,), ("i",))
            >>> f = jax.jit(lambda x: print(jax.typeof(x)))
            >>> with jax.set_mesh(mesh), jax.remove_size_one_mesh_axis_from_type():
            ...     f(jax.device_put(jnp.ones(2), jax.P("i")))
            float32[2]
    softmax_custom_jvp:
            >>> with jax.softmax_custom_jvp():
            ...     jax.make_jaxpr(jax.nn.softmax)(jnp.ones(2)).eqns[0].primitive
            custom_jvp_call
    thread_guard:
            >>> with jax.thread_guard():
            ...     jnp.ones(2).tolist()  # in another thread this would raise
            [1.0, 1.0]
    threefry_partitionable:
            >>> key = jax.random.key(0)
            >>> with jax.threefry_partitionable(False):
            ...     old = jax.random.bits(key)
            >>> old == jax.random.bits(key)
            Array(False, dtype=bool)
    transfer_guard_device_to_device:
            >>> with jax.transfer_guard_device_to_device("disallow"):
            ...     jax.device_put(jnp.ones(2), jax.devices()[0]).tolist()  # explicit transfers are allowed
            [1.0, 1.0]
    transfer_guard_device_to_host:
            >>> with jax.transfer_guard_device_to_host("disallow"):
            ...     jax.device_get(jnp.ones(2)).tolist()  # explicit transfers are allowed
            [1.0, 1.0]
    transfer_guard_host_to_device:
            >>> with jax.transfer_guard_host_to_device("disallow"):
            ...     try:
            ...         jnp.sin(np.ones(2))
            ...     except jax.errors.JaxRuntimeError as error:
            ...         print(error)
            INVALID_ARGUMENT: Disallowed host-to-device transfer: ...
    """
    found = re.search(rf"^    {option.attribute}:\n((?: {{12}}.*\n)+)", _example.__doc__ or "", re.MULTILINE)
    return f"\n\n        Example:\n{found[1]}" if found else ""


# ---- options -----------------------------------------------------------------------------------------


class Option:
    """One named setting; `option.value` reads it, `with option(value):` overrides it in this thread."""

    # `default` is the global value, which a thread without an override reads.
    __slots__ = ("name", "attribute", "default", "help", "kind", "states", "_callbacks", "_is_chosen")

    # `states`: the list of options (traced or keyed) that this one joins; None if it is not part of the thread's state.
    def __init__(self, name: str, default: str, help: str, kind: Kind, states: "list[Option] | None" = None):
        self.name, self.help, self.kind, self.states = name, help, kind, states
        self.attribute = name.removeprefix("jax_")
        self._callbacks: list[Callable[[Any, bool], None]] = []
        self._is_chosen = name.upper() in os.environ
        text = os.environ.get(name.upper(), default)
        self.default = None if default == "-" and text == "-" else kind.parse(text, name)
        with _lock:
            _options[name] = self
            if states is not None:
                states.append(self)
            forget_ready()

    @property
    def value(self) -> Any:
        return _thread.overrides.get(self, self.default)

    @property
    def is_set(self) -> bool:
        """True if the value was set explicitly, even to the default of the table."""
        return self._is_chosen or self in _thread.overrides

    def __bool__(self) -> bool:
        raise TypeError(f"bool() not supported for the config option {self.name}: read its `.value` instead")

    def __repr__(self) -> str:
        return f"<option {self.name}={self.value!r}>"

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"Sets the option `{self.name}` of this thread in a `with` statement. {self.help}{_example(self)}"

    @property
    def __name__(self) -> str:
        return self.attribute

    def __call__(self, new_val: Any = UNSET) -> "Override":
        if new_val is UNSET:
            if not isinstance(self.kind, Boolean):
                raise TypeError(f"Context manager for {self.attribute} config option requires an argument")
            new_val = True
        return Override(((self, self.check(new_val)),))

    def set(self, value: Any) -> None:
        """Sets the global value, for all threads without an override."""
        try:
            value = self.check(value)
        except (TypeError, ValueError) as error:
            error.__traceback__ = None
            raise
        for callback in self._callbacks:
            callback(value, False)
        with _lock:
            self.default, self._is_chosen = value, True
            forget_ready()
        pinned = _thread.pinned
        if pinned is not None and self in pinned:
            if _thread.overrides.get(self) is pinned[self]:
                _thread.overrides[self] = value
            pinned[self] = value

    def on_change(self, callback: Callable[[Any, bool], None]) -> Callable[[Any, bool], None]:
        """Calls `callback(value, thread_only)` before each change; the change is rejected if the callback raises."""
        self._callbacks.append(callback)
        return callback

    def override(self, value: Any) -> None:
        """Sets this thread's own value, or drops it for UNSET."""
        for callback in self._callbacks:
            callback(self.default if value is UNSET else value, True)
        if value is UNSET and self in (_thread.pinned or ()):
            value = _thread.pinned[self]
        if value is UNSET:
            _thread.overrides.pop(self, None)
        else:
            _thread.overrides[self] = value
        if self.states is not None:
            _thread.current = _thread.ready = NEVER

    def check(self, value: Any) -> Any:
        """Returns the value in its normal form. Raises ValueError or TypeError for an invalid value."""
        return self.kind.check(value, self.name)


class Flag(Option):
    """An option without thread-local values; it accepts any value."""

    __slots__ = ()

    def check(self, value: Any) -> Any:
        return value

    def __call__(self, new_val: Any = UNSET) -> "Override":
        raise TypeError(f"{self.name} is a global flag, set it with config.update")


class Override(contextlib.ContextDecorator):
    """Context manager and decorator that sets options in this thread; one object may be entered again while active."""

    __slots__ = ("_changes",)

    def __init__(self, changes: tuple[tuple[Option, Any], ...]):
        self._changes = changes

    # The previous values are kept per thread, since threads may share this object.
    def __enter__(self) -> None:
        pinned = _thread.pinned or {}
        before = [UNSET if option in pinned else _thread.overrides.get(option, UNSET) for option, _ in self._changes]
        _thread.saved.append((self, before))
        try:
            for option, value in self._changes:
                option.override(value)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        saved = _thread.saved
        index = next(i for i in reversed(range(len(saved))) if saved[i][0] is self)
        for (option, _), value in zip(self._changes, saved.pop(index)[1], strict=True):
            option.override(value)


class UserContext(Option):
    """A user-defined thread-local value that is part of every trace-cache key."""

    __slots__ = ()

    def __init__(self, default: Any):
        self.name = self.attribute = f"user_context_{next(_numbers)}"
        self.default, self.help, self.kind, self.states, self._callbacks = default, "", Kind(), _traced, []
        self._is_chosen = False
        with _lock:
            _traced.append(self)
            forget_ready()

    def check(self, value: Any) -> Any:
        hash(value)
        return value

    def get_global(self) -> Any:
        """Returns the value in threads without a value of their own."""
        return self.default

    def set_global(self, value: Any) -> None:
        """Sets the value in threads without a value of their own."""
        self.set(value)


class Condition:
    """A global value that users do not set and that programs depend on, as they do on keyed options."""

    __slots__ = ("attribute", "default")

    def __init__(self, attribute: str, default: Any):
        self.attribute, self.default = attribute, default
        with _lock:
            _keyed.append(self)
            forget_ready()

    def set(self, value: Any) -> None:
        """Sets the value in all threads."""
        self.default = value
        forget_ready()


def make_user_context(default_value: Any = None) -> UserContext:
    """Creates a thread-local value that is part of every key of the caches of traces: `with context(value): ...`.

    Example:
        >>> factor = jax.make_user_context(1)
        >>> f = jax.jit(lambda x: x * factor.value)
        >>> with factor(3):
        ...     print(f(2))
        6
        >>> print(f(2))
        2
    """
    return UserContext(default_value)


# ---- the object that users see -----------------------------------------------------------------------


_LISTED = "`jax.config.values` lists the options."


class Config:
    """Holds the options of JAX: `jax.config` is the one instance.

    Options are read as attributes, `jax.config.jax_enable_x64`, and set by `jax.config.update`. The context managers
    of the same names, such as `jax.enable_x64`, set an option in a block and in this thread only. Environment variables
    in capital letters, `JAX_ENABLE_X64=1`, set it at start.

    Example:
        >>> jax.config.jax_enable_x64
        False
    """

    def __getattr__(self, name: str) -> Any:
        try:
            option = _options.get(name)
            if option is None or isinstance(option, Flag):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. {_LISTED}")
            return option.value
        except AttributeError as error:
            error.__traceback__ = None  # the error is shown at the user's line
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _options or name == "x64_enabled":
            raise AttributeError(f"config attribute {name!r} has no setter: use config.update({name!r}, ...)")
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(n for n, option in _options.items() if not isinstance(option, Flag))]

    @property
    def x64_enabled(self) -> bool:
        return option("enable_x64").value

    @property
    def values(self) -> dict[str, Any]:
        return {name: option.value for name, option in _options.items()}

    def update(self, name: str, val: Any) -> None:
        """Sets an option for all threads, until it is set again.

        Args:
            name: The name of the option, for example `"jax_enable_x64"` (keep 64-bit types), `"jax_debug_nans"` (raise
                where a NaN is computed), or `"jax_platforms"` (the platforms to use; set it before the first array).
            val: Its value.

        Raises:
            AttributeError: If no option has the name.
            TypeError, ValueError: If the option does not have such values.

        Example:
            >>> jax.config.update("jax_debug_nans", True)
            >>> jnp.log(-1.0)
            Traceback (most recent call last):
                ...
            FloatingPointError: invalid value (nan) encountered in log...
            >>> jax.config.update("jax_debug_nans", False)
        """
        _named(name).set(val)

    def read(self, name: str) -> Any:
        """Returns the value of an option or flag."""
        return _named(name).value

    def add_option(self, name: str, holder: Option, opt_type: Any, meta_args: Any, meta_kwargs: Any) -> None:
        """Registers a holder of a value under a name."""
        if name in _options:
            raise Exception(f"Config option {name} already defined")
        _options[name] = holder

    def config_with_absl(self) -> None:
        """Declares every option as an absl flag and takes over the values given on the command line."""
        flags = absl_flags
        for name, option in _options.items():
            value = option.default
            shown = value.name.lower() if isinstance(value, enum.Enum) else value
            getattr(flags, option.kind.absl)(name, shown, option.help)
        absl_app.call_after_init(lambda: self.complete_absl_config(absl_flags))

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Takes over the values of the absl flags that were given."""
        for name in _options:
            if name in absl_flags.FLAGS and absl_flags.FLAGS[name].present:
                self.update(name, absl_flags.FLAGS[name].value)

    def parse_flags_with_absl(self) -> None:
        """Parses the command line with absl, for programs that do not run under absl.app."""
        if "jax_enable_x64" not in absl_flags.FLAGS:
            self.config_with_absl()
            absl_flags.FLAGS(sys.argv, known_only=True)
            self.complete_absl_config(absl_flags)


def _named(name: str) -> Option:
    try:
        if name not in _options:
            raise AttributeError(f"Unrecognized config option: {name}. {_LISTED}")
        return _options[name]
    except AttributeError as error:
        error.__traceback__ = None
        raise


config = Config()

# ---- the table: one line an option -------------------------------------------------------------------

_PRECISIONS = """
default high highest bfloat16 tensorfloat32 float32 ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM ANY_F8_ANY_F8_ANY
ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6
BF16_BF16_F32_X9 TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32 F64_F64_F64
""".split()

# A kind that ends in "?" also accepts None; "a|b" lists choices, in which "-" is None.
KINDS: dict[str, Kind] = {
    "bool": Boolean(),
    "int": Number(int),
    "int?": Number(int),
    "float": Number(float),
    "str": Text(),
    "str?": Text(optional=True),
    "device": DeviceOrPlatform(),
    "explicit_x64": Member(ExplicitX64Mode),
    "legacy_key": Member(LegacyPrngKeyState),
    "promotion": Member(NumpyDtypePromotion),
    "traceback": Member(RuntimeTracebackMode),
    "reaction": Choice("ignore", "raise"),
    "guard": Choice(None, "allow", "log", "disallow", "log_explicit", "disallow_explicit"),
    "level": Choice("UNKNOWN", "O0", "O1", "O2", "O3"),
    "logging": Choice(None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "filtering": Choice("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
    "prng": Choice("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
    "matmul": Choice(None, *_PRECISIONS),
}

TRACED = """
check_vma  bool  False  Track in shard_map which values vary over which axes.
eager_constant_folding  bool  False  Fold constants while tracing.
jax_allow_f16_reductions  bool  True  Accumulate reductions of 16-bit floats in 16 bits.
jax_auto_pcast  bool  True  Cast values to varying types where an operation needs it.
jax_check_static_indices  bool  False  Check static indices against array bounds.
jax_custom_vjp3  bool  False  Use the other custom_vjp implementation.
jax_debug_key_reuse  bool  False  Raise when a random key is used twice.
jax_default_device  device  -  Device, or platform name, of uncommitted values.
jax_default_matmul_precision  matmul  -  Precision of matrix products and convolutions.
jax_disable_jit  bool  False  Run jitted functions operation by operation.
jax_embedded_constants_max_bytes  int  32  Largest captured constant that is printed into a module.
jax_enable_pgle  bool  False  Profile, then compile again with the profile.
jax_enable_x64  bool  False  Keep 64-bit types.
jax_error_checking_behavior_divide  reaction  ignore  Effect of a division by zero under error checking.
jax_error_checking_behavior_nan  reaction  ignore  Effect of a NaN under error checking.
jax_error_checking_behavior_oob  reaction  ignore  Effect of an index out of bounds under error checking.
jax_explicit_x64_dtypes  explicit_x64  warn  Effect of an explicitly requested 64-bit type when x64 is off.
jax_high_dynamic_range_gumbel  bool  False  Draw Gumbel variates with more range.
jax_hlo_source_file_canonicalization_regex  str?  -  Pattern that is cut from source file names.
jax_mutable_array_checks  bool  True  Forbid aliased and escaping refs.
jax_no_execution  bool  False  Raise when something runs.
jax_numpy_dtype_promotion  promotion  standard  Promotion of mixed dtypes: standard or strict.
jax_numpy_rank_promotion  allow|warn|raise  allow  Effect of adding leading axes implicitly.
jax_pallas_enable_debug_checks  bool  False  Run debug checks in Pallas kernels.
jax_pallas_use_mosaic_gpu  bool  True  Compile GPU kernels with Mosaic.
jax_pgle_profiling_runs  int  3  Number of profiled runs.
jax_ragged_dot_use_gpu_pallas_triton_lowering  bool  False  Lower ragged_dot to a Triton kernel.
jax_random_seed_offset  int  0  Added to every random seed.
jax_remat3  bool  False  Use the other checkpoint implementation.
jax_remove_size_one_mesh_axis_from_type  bool  False  Drop mesh axes of size 1 from types.
jax_scan3  bool  False  Use the other scan implementation.
jax_softmax_custom_jvp  bool  False  Differentiate softmax by a rule of its own.
jax_threefry_gpu_kernel_lowering  bool  False  Lower threefry to a GPU kernel.
jax_threefry_partitionable  bool  True  Draw bits so that the shards of an array do not communicate.
jax_use_direct_linearize  bool  True  Linearize directly rather than through jvp.
jax_use_emit_pipeline_primitive  bool  False  Emit Pallas pipelines as a primitive.
jax_use_shardy_partitioner  bool  True  Partition with Shardy.
jax_use_simplified_jaxpr_constants  bool  False  Keep constants inside jaxprs.
jax_xla_profile_version  int  0  Changes the cache key of profile-guided compilation.
"""

KEYED = """
jax_debug_infs  bool  False  Raise when a computation yields an infinity.
jax_debug_nans  bool  False  Raise when a computation yields a NaN.
jax_transfer_guard_device_to_device  guard  -  Guard for transfers between devices.
jax_transfer_guard_device_to_host  guard  -  Guard for transfers to the host.
jax_transfer_guard_host_to_device  guard  -  Guard for transfers from the host.
"""

UNTRACED = """
jax2tf_associative_scan_reductions  bool  False  Lower cumulative reductions as associative scans.
jax2tf_default_native_serialization  bool  True  Serialize as StableHLO.
jax_array_garbage_collection_guard  -|allow|log|fatal  -  Guard for arrays in reference cycles.
jax_bcoo_cusparse_lowering  bool  False  Use cuSPARSE for BCOO operations.
jax_captured_constants_report_frames  int  0  Frames shown with each large captured constant.
jax_captured_constants_warn_bytes  int  2000000000  Warn about larger captured constants; -1: never.
jax_check_tracer_leaks  bool  False  Raise when a tracer outlives its trace.
jax_compilation_cache_check_contents  bool  False  Compare a cached executable with a fresh one.
jax_compilation_cache_dir  str?  -  Directory of the on-disk compilation cache.
jax_compilation_cache_expect_pgle  bool  False  Warn when a profile-guided executable is not cached.
jax_compilation_cache_include_metadata_in_key  bool  False  Let source locations take part in the cache key.
jax_compilation_cache_max_size  int  -1  Maximum size of the on-disk cache in bytes; -1: unbounded.
jax_compiler_enable_remat_pass  bool  True  Let XLA rematerialize.
jax_cpu_collectives_implementation  -|gloo|mpi|megascale  gloo  Library for collectives between CPU processes.
jax_cpu_get_global_topology_timeout_minutes  int  5  How long to wait for the global CPU topology.
jax_cpu_get_local_topology_timeout_minutes  int  2  How long to wait for the local CPU topology.
jax_debug_leaked_clients_on_clear_backends  bool  False  Report clients that survive clear_backends.
jax_debug_log_modules  str  ""  Modules whose debug log goes to stderr, comma separated.
jax_default_prng_impl  prng  threefry2x32  Generator behind new random keys.
jax_disable_bwd_checks  bool  False  Do not check the types of custom backward results.
jax_disable_vmap_shmap_error  bool  False  Allow vmap with spmd_axis_name around shard_map.
jax_disallow_mesh_context_manager  bool  False  Forbid meshes as context managers.
jax_distributed_debug  bool  False  Log what distributed start-up does.
jax_enable_checks  bool  False  Check internal invariants.
jax_enable_compilation_cache  bool  True  Use the on-disk compilation cache.
jax_enable_custom_prng  bool  False  Make random keys typed key arrays by default.
jax_enable_preemption_service  bool  True  Watch for preemption notices.
jax_enable_recoverability  bool  False  Survive the loss of other processes.
jax_exec_time_optimization_effort  float  0.0  Compiler effort for run time, -1 to 1.
jax_experimental_unsafe_xla_runtime_errors  bool  False  Raise XLA errors from inside programs.
jax_explain_cache_misses  bool  False  Log why a function is traced again.
jax_export_calling_convention_version  int  10  Calling convention of exported programs.
jax_export_ignore_forward_compatibility  bool  False  Export with the newest features.
jax_include_full_tracebacks_in_locations  bool  True  Put whole tracebacks into locations.
jax_legacy_prng_key  legacy_key  allow  Effect of using a raw uint32 key.
jax_log_checkpoint_residuals  bool  False  Log what checkpoint saves.
jax_log_compiles  bool  False  Log every compilation.
jax_logging_level  logging  NOTSET  Level of the library's loggers.
jax_memory_fitting_effort  float  0.0  Compiler effort for memory, -1 to 1.
jax_memory_fitting_level  level  O2  Compiler effort for memory, as a level.
jax_mosaic_allow_hlo  bool  False  Allow HLO inside Mosaic kernels.
jax_no_tracing  bool  False  Raise when a function is traced.
jax_num_cpu_devices  int  -1  Number of CPU devices; -1 leaves it to XLA.
jax_optimization_level  level  UNKNOWN  Compiler effort, as a level.
jax_pallas_poison_buffers  bool  False  Fill Pallas buffers with NaN.
jax_persistent_cache_enable_xla_caches  str?  xla_gpu_per_fusion_autotune_cache_dir  XLA's own caches.
jax_persistent_cache_min_compile_time_secs  float  1.0  Faster compilations are not stored.
jax_persistent_cache_min_entry_size_bytes  int  0  Smaller executables are not stored.
jax_pgle_aggregation_percentile  int  90  Percentile taken over profiles.
jax_pjrt_client_create_options  str?  -  Options for PJRT clients, key:value;key:value.
jax_platforms  str?  -  Platforms to start, comma separated, the first is the default.
jax_pprint_use_color  bool  True  Colour printed jaxprs on terminals.
jax_ragged_dot_use_ragged_dot_instruction  bool  True  Lower ragged_dot to XLA's instruction.
jax_raise_persistent_cache_errors  bool  False  Raise errors of the on-disk cache.
jax_refs_to_pins  bool  False  Lower refs to pinned buffers.
jax_remove_custom_partitioning_ptr_from_cache_key  bool  False  Leave callback addresses out of the cache key.
jax_send_traceback_to_runtime  traceback  off  Hand Python tracebacks to the runtime.
jax_serialization_version  int  0  Version of serialized programs; 0 is the default one.
jax_share_binary_between_hosts  bool  False  Compile on one host and send the executable.
jax_share_binary_between_hosts_timeout_ms  int  1200000  How long to wait for the executable.
jax_source_url_schema  str?  -  Pattern that turns source positions into links.
jax_thread_guard  bool  False  Forbid use of devices by other threads.
jax_traceback_filtering  filtering  auto  Hide the library's frames in tracebacks.
jax_traceback_in_locations_limit  int  100  Frames in a location.
jax_transfer_guard  guard  -  Guard for transfers between host and devices.
jax_use_magma  off|on|auto  auto  Use MAGMA on GPUs.
minijax_compile_ahead  bool  True  Compile programs on threads while Python goes on; their results wait for them.
minijax_progress  bool  True  Show on a terminal, or in a notebook, what is compiled for long.
minijax_tiered  bool  False  Compile quickly, and fully on a thread while the program runs already.
"""

FLAGS = """
jax_backend_target  str  ""  Address of a remote backend.
jax_check_proxy_envs  bool  True  Warn about http proxies when a cluster starts.
jax_compiler_detailed_logging_min_ops  int  10  Modules with fewer operations are logged briefly.
jax_cpu_enable_async_dispatch  bool  True  Run CPU programs without blocking the caller.
jax_cross_host_transfer_socket_address  str  ""  Address for transfers between hosts.
jax_cross_host_transfer_timeout_seconds  int?  -  Time limit of a transfer between hosts.
jax_cross_host_transfer_transfer_size  int?  -  Chunk size of transfers between hosts.
jax_cross_host_transport_addresses  str  ""  Transport addresses for transfers between hosts.
jax_cuda_visible_devices  str  all  CUDA devices to use, or all.
jax_disable_most_optimizations  bool  False  Compile fast rather than well.
jax_dump_ir_modes  str  stablehlo  Which forms of a module are dumped.
jax_dump_ir_to  str  ""  Directory for dumps of modules.
jax_force_dcn_cross_host_transfers  bool  False  Send transfers between hosts over the data-center network.
jax_include_debug_info_in_dumps  bool  True  Keep locations in dumps.
jax_mock_gpu_topology  str  ""  Shape of a pretended GPU cluster.
jax_oneapi_visible_devices  str  all  oneAPI devices to use, or all.
jax_pallas_verbose_errors  bool  False  Show all of a Pallas error.
jax_platform_name  str  ""  Preferred platform (older name of jax_platforms).
jax_rocm_visible_devices  str  all  ROCm devices to use, or all.
jax_sort_devices_by_process_index  bool  True  Order devices by process.
jax_tracer_error_num_traceback_frames  int  5  Frames shown in errors about tracers.
jax_xla_backend  str  ""  Older name of jax_platforms.
mock_num_gpu_processes  int  0  Number of pretended GPU processes.
"""


def _define(table: str, make: Callable[..., Option]) -> None:
    for line in table.strip().splitlines():
        name, word, default, help = line.split(maxsplit=3)
        kind = KINDS.get(word) or Choice(*[None if choice == "-" else choice for choice in word.split("|")])
        make(name, default if default != '""' else "", help, kind)


_define(TRACED, functools.partial(Option, states=_traced))
_define(KEYED, functools.partial(Option, states=_keyed))
_define(UNTRACED, Option)
_define(FLAGS, Flag)


def option(name: str) -> Option:
    """Returns the option of that name, with or without its prefix `jax_`."""
    return _options[f"jax_{name}"] if f"jax_{name}" in _options else _named(name)


def __getattr__(name: str) -> Option:
    """Makes options attributes of this module; each is looked up at its first use."""
    return globals().setdefault(name, option(name))


checking_leaks = functools.partial(option("check_tracer_leaks"), True)
checking_leaks.__doc__ = "Raises an error in a `with` statement for tracers that outlive their trace."
_all_transfers = option("transfer_guard")
_transfers = [option(f"transfer_guard_{way}") for way in ("host_to_device", "device_to_device", "device_to_host")]


@_all_transfers.on_change
def _guard_all_transfers(value: Any, thread_only: bool) -> None:
    for guard in () if thread_only else _transfers:
        guard.set(value)


if _all_transfers.default is not None:
    _guard_all_transfers(_all_transfers.default, False)


def transfer_guard(new_val: str | None) -> Override:
    """Sets the guards of all three kinds of transfers in a `with` statement.

    The values are `"allow"`, `"log"`, `"disallow"`, `"log_explicit"` and `"disallow_explicit"`. Those without
    "explicit" concern implicit transfers alone; `jax.device_put` and `jax.device_get` are explicit.

    Example:
        >>> with jax.transfer_guard("disallow"):
        ...     jax.device_put(np.ones(2)).tolist()
        [1.0, 1.0]
    """
    return Override(tuple([(guard, guard.check(new_val)) for guard in (_all_transfers, *_transfers)]))


def disable_jit(disable: bool = True) -> Override:
    """Runs jitted functions operation by operation in a `with` statement, so that `print` and debuggers see values.

    Example:
        >>> with jax.disable_jit():
        ...     jax.jit(lambda x: print(x) or x)(jnp.ones(2))
        [1. 1.]
        Array([1., 1.], dtype=float32)
    """
    return option("disable_jit")(disable)
