"""`jax.debug.breakpoint`: a prompt in a running program, over the Python frames that traced it."""

import cmd
import contextlib
import inspect
import itertools
import linecache
import pprint
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from minijax.base import source, tree
from minijax.base.mask import Mask
from minijax.composed.callbacks.debugging import debug_callback
from minijax.ir.trace import Tracer
from minijax.run.arrays.array import ArrayImpl

_MARGIN = 3  # lines shown before the current one when a frame is entered
_one_prompt = threading.Lock()  # devices at a breakpoint prompt one after the other


class Frame(NamedTuple):
    """A frame of the program that was traced, with its variables."""

    file: str
    line: int
    local: dict[str, Any]
    first_line: int  # of `lines` in the file
    lines: tuple[str, ...]  # the function's, or the file's

    def shown(self, margin: int | None = None) -> str:
        """Formats the lines around the current one; without a margin, all lines of the function."""
        at = self.line - self.first_line
        first = 0 if margin is None else max(at - margin, 0)
        last = len(self.lines) if margin is None else at + margin
        rows = enumerate(self.lines[first:last], first)
        return "\n".join([f"> {self.file}({self.line})", *(f"{'->' if i == at else '':4}{line}" for i, line in rows)])


def _frames(start: types.FrameType | None, only_users: bool) -> Iterator[Frame]:
    while start is not None:
        code = start.f_code
        if not only_users or source.is_user_file(code.co_filename):
            lines, first = linecache.getlines(code.co_filename), 1
            if code.co_name != "<module>":
                with contextlib.suppress(OSError):
                    lines, first = inspect.getsourcelines(code)
            text = tuple(line.rstrip("\n") for line in lines)
            yield Frame(code.co_filename, start.f_lineno, dict(start.f_locals), first, text)
        start = start.f_back


class _Prompt(cmd.Cmd):
    """The prompt over frames, the innermost first."""

    prompt = "(jdb) "
    intro = "Entering jdb:"
    use_rawinput = False

    def __init__(self, frames: list[Frame], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._frames, self._at = frames, 0

    @property
    def _frame(self) -> Frame:
        return self._frames[self._at]

    def _write(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def _evaluate(self, expression: str, show: Any) -> None:
        try:
            self._write(show(eval(expression, {}, self._frame.local)))  # noqa: S307
        except Exception as error:
            self._write(f"*** {type(error).__name__}: {error}")

    def default(self, line: str) -> None:
        """Evaluates an expression"""
        self._evaluate(line, repr)

    def do_p(self, arg: str) -> None:
        """p expression: evaluates an expression over the frame's variables, and prints its value"""
        self._evaluate(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp expression: as p, but pretty-prints the value"""
        self._evaluate(arg, pprint.pformat)

    def do_a(self, arg: str) -> None:
        """a(rgs): prints the arguments of the frame's function, and its other variables"""
        for name, value in self._frame.local.items():
            self._write(f"{name} = {value!r}")

    def do_l(self, arg: str) -> None:
        """l(ist): shows the lines around the current one"""
        self._write(f"{self._frame.shown(2 * _MARGIN)}\n")

    def do_ll(self, arg: str) -> None:
        """ll: shows all lines of the function"""
        self._write(f"{self._frame.shown()}\n")

    def _move(self, by: int, end: str) -> None:
        if 0 <= self._at + by < len(self._frames):
            self._at += by
        else:
            self._write(f"At {end} frame.")
        self._write(f"{self._frame.shown(_MARGIN)}\n")

    def do_u(self, arg: str) -> None:
        """u(p): goes to the frame that called this one"""
        self._move(1, "topmost")

    def do_d(self, arg: str) -> None:
        """d(own): goes to the frame that this one called"""
        self._move(-1, "bottommost")

    def do_bt(self, arg: str) -> None:
        """w(here), bt: prints the frames, the outermost first"""
        self._write("Traceback:")
        for frame in reversed(self._frames):
            self._write(f'  File "{frame.file}", line {frame.line}')
            at = frame.line - frame.first_line
            self._write(f"    {frame.lines[at].strip() if 0 <= at < len(frame.lines) else ''}")

    def do_c(self, arg: str) -> bool:
        """c(ont(inue)): continues the program"""
        return True

    def do_q(self, arg: str) -> None:
        """q(uit), exit: ends the process"""
        sys.exit(0)

    def do_EOF(self, arg: str) -> None:
        """Ends the process"""
        sys.exit(0)

    do_list, do_up, do_down, do_w, do_where = do_l, do_u, do_d, do_bt, do_bt
    do_args, do_cont, do_continue, do_quit, do_exit = do_a, do_c, do_c, do_q, do_q


@source.boundary
def breakpoint(  # noqa: A001
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    r"""Stops the program at this point. Opens a prompt over the frames that traced it and their variables' values.

    `help` lists the commands. `filter_frames` leaves the library's own frames out, `num_frames` limits their
    number; `stdin` and `stdout` are files for the prompt. With a `token`, the prompt opens after the operation that
    computed it, and a token is returned. Raises ValueError for another `backend` than "cli".

    Example:
        >>> import io, sys
        >>> def f(x):
        ...     jax.debug.breakpoint(stdin=io.StringIO("p x + 1\nc\n"), stdout=sys.stdout)
        >>> f(1)
        Entering jdb:
        (jdb) 2
        (jdb)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"jax.debug.breakpoint: unknown debugger backend {backend!r}; only 'cli' is supported")
    if unknown := kwargs.keys() - {"stdin", "stdout"}:
        raise TypeError(f"jax.debug.breakpoint: unexpected keyword arguments {sorted(unknown)}")
    frames = list(_frames(sys._getframe(1), filter_frames))[:num_frames]
    # The arrays in variables, traced or not, are operands of the callback.
    leaves, trees = [], []
    for frame in frames:
        for value in frame.local.values():
            flat, treedef = _flattened(value)
            leaves += flat
            trees.append(treedef)
    are_arrays = Mask(isinstance(x, Tracer | ArrayImpl) for x in leaves)
    others = are_arrays.unmarked(leaves)

    def stop(_, *arrays):
        rest = iter(are_arrays.merge(others, arrays))
        values = iter([t.unflatten(itertools.islice(rest, t.num_leaves)) for t in trees])
        shown = [frame._replace(local=dict(zip(frame.local, values, strict=False))) for frame in frames]
        with _one_prompt:
            _Prompt(shown, **kwargs).cmdloop()

    debug_callback(stop, token, *are_arrays.marked(leaves), ordered=ordered)
    return token


def _flattened(value: Any) -> tuple[list, Any]:
    try:
        # jaxlib would flatten it until the stack ends, and never give the stack back.
        if not _holds_itself(value):
            return tree.flatten(value)
    except Exception:  # of a user-defined class, or a dict whose keys cannot be sorted
        pass
    return [_Unflattenable()], _LEAF


def _holds_itself(value: Any, around: tuple = ()) -> bool:
    """Whether a container is inside of itself."""
    if type(value) not in (list, tuple, dict):
        return False
    parts = value.values() if type(value) is dict else value
    return any(value is outer for outer in around) or any(_holds_itself(part, (*around, value)) for part in parts)


class _Unflattenable:
    """Replaces a variable that cannot be flattened."""

    def __repr__(self):
        return "<cant_flatten>"


_LEAF = tree.tree_structure(0)
