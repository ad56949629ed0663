"""Programs in two tiers, if the user asks for them: compiled quickly and run at once, and compiled fully meanwhile.

XLA takes a third of the time, or much less, for a program that it hardly optimizes. From the second call on a thread
compiles the program fully, and later calls run that one. A program that is called once is compiled once. The
two may differ in the last bits of floats, and when the second takes over depends on the machine: nothing is tiered
unless `jax.config.update("minijax_tiered", True)` asks for it.
"""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from minijax.base import config, errors
from minijax.hlo.locations import Located
from minijax.run.programs import compile
from minijax.run.programs.compile import Loaded, Source
from minijax.run.watching.progress import count_operations

_LARGE = 32  # operations, below which compiling fully takes little longer
_option = config.option("minijax_tiered")
_one_at_a_time = threading.Lock()


class Account:
    """The times of one program: seconds to compile it quickly and fully, and the calls before the latter was done.

    `full` is None as long as the program is not compiled fully.
    """

    __slots__ = ("name", "quick", "calls", "full")

    def __init__(self, name: str, quick: float):
        self.name, self.quick, self.calls = name, quick, 0
        self.full: float | None = None

    def __str__(self) -> str:
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        full = "" if self.full is None else f", fully in {self.full:.2f} s"
        return f"{self.name}: compiled quickly in {self.quick:.2f} s for {calls}{full}"


accounts: deque[Account] = deque(maxlen=200)


def is_on() -> bool:
    """Returns whether the user asks for two tiers."""
    return _option.value


class Tiered(Loaded):
    """A program that is compiled quickly, and from its second call on is replaced by `compile_fully()`."""

    __slots__ = ("account", "_run", "_quick", "_begun", "_compile_fully")

    def __init__(self, quick: Loaded, names: bytes, account: Account, compile_fully: Callable[[], Loaded]):
        super().__init__(quick.executable, quick.devices, quick.name, names)
        self.account, self._compile_fully = account, compile_fully
        self._begun = itertools.count(1)
        self._quick, self._run = quick.execute, self._run_quick

    @property
    def execute(self) -> Callable:
        """Runs the program as it is compiled at that time."""
        return self._execute

    def _execute(self, raws: Any, **options: Any) -> Any:
        return self._run(raws, **options)

    def _run_quick(self, raws: Any, **options: Any) -> Any:
        number = self.account.calls = next(self._begun)
        if number == 2:
            try:
                threading.Thread(target=self._replace, name=f"compiling {self.name}").start()
            except RuntimeError:  # threads cannot start while the interpreter shuts down
                pass
        return self._quick(raws, **options)

    def _replace(self) -> None:
        with _one_at_a_time:
            if not threading.main_thread().is_alive():  # the process ends, and waits for this thread
                return
            started = time.perf_counter()
            try:
                full = self._compile_fully()
            except Exception as error:
                errors.warn(f"minijax_tiered: {self.name} goes on as it was compiled first. {error}")
                return
        self.account.full = time.perf_counter() - started
        self.executable, self.stored = full.executable, full.stored
        self._run = self._quick = full.execute  # a thread may be about to call `_quick`
        del self._compile_fully  # it holds the text


def load(source: Source, located: Callable[[], Located]) -> Loaded:
    """Loads a program for one device from disk; else compiles it, in two tiers if that takes long."""
    found = located()  # the function holds the jaxpr and what that captured
    platform, text = source.devices[0].platform, found.text
    options = compile.quick_options(platform)
    may_choose_layouts = 'layout_mode = "auto"' in text  # and twice different ones
    if not options or may_choose_layouts or count_operations(text) < _LARGE or compile.default_options(text, platform):
        return compile.load_or_build(source, located)
    stored = compile.load_stored(source, located)
    if stored is not None:
        return stored
    started = time.perf_counter()
    quick = compile.compile_uncached(text, source.name, source.devices, options, compile.CLOSED)
    account = Account(source.name.removeprefix("jit_"), time.perf_counter() - started)
    accounts.append(account)
    return Tiered(quick, found.names, account, lambda: compile.load_or_build(source, lambda: found))
