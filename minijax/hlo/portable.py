"""Modules for several platforms: an argument, the platform index, selects the code that differs between them."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.hlo.emitter import Emitter
from minijax.hlo.writer import PLATFORM_INDEX, Names
from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.primitive import Primitive
from minijax.ir.types import Aval, token_type

Lower = Callable[..., Sequence[str]]


def rules_of(e: Emitter, overrides: Mapping[Primitive, Lower]) -> Callable[[JaxprEqn], Lower] | None:
    """The lowering rule of an equation, for several platforms or with `overrides`; None if the primitives' apply."""
    if len(e.platforms) == 1 and not overrides:
        return None

    def rule_of(eqn: JaxprEqn) -> Lower:
        rule = overrides.get(eqn.primitive, eqn.primitive.lower)
        return rule if len(e.platforms) == 1 else functools.partial(_for_all_platforms, rule)

    return rule_of


class _State(NamedTuple):
    """A state of an emitter, to which it can be reset."""

    lines: int
    functions: int
    marks: int
    called: int
    callbacks: int
    watchers: int
    names: tuple
    tokens: dict

    @classmethod
    def of(cls, e: Emitter) -> "_State":
        sizes = [len(x) for x in (e.lines, e.functions, e.marks, e._called, e.callbacks, e.watchers)]
        return cls._make([*sizes, e.names_taken(), dict(e.tokens)])

    def restore(self, e: Emitter) -> None:
        """Discards the lines that were emitted since."""
        del e.lines[self.lines :]
        del e.marks[self.marks :]
        e.take_names(self.names)
        e.tokens = dict(self.tokens)

    def restore_module(self, e: Emitter) -> None:
        """As `restore`, and discards the functions that were emitted since."""
        self.restore(e)
        del e.functions[self.functions :]
        del e.callbacks[self.callbacks :]
        del e.watchers[self.watchers :]
        while len(e._called) > self.called:
            e._called.popitem()


class _Draft(NamedTuple):
    """The code of an operation for one platform."""

    lines: tuple[str, ...]
    results: tuple[str, ...]
    tokens: tuple[str, ...]


def _for_all_platforms(
    rule: Lower, e: Emitter, ins: Sequence[Aval], outs: Sequence[Aval], *operands: str, **params: Any
) -> Names:
    """Lowers an operation once if its rule does not read the platform, else once for each platform."""
    if len(e.platforms) == 1:
        return rule(e, ins, outs, *operands, **params)
    outer, e.has_asked = e.has_asked, False
    before = _State.of(e)
    try:
        results = rule(e, ins, outs, *operands, **params)
        if not e.has_asked:
            return results
        before.restore_module(e)
        return _lower_per_platform(e, outs, lambda: rule(e, ins, outs, *operands, **params))
    finally:
        e.has_asked = outer


def _lower_per_platform(e: Emitter, outs: Sequence[Aval], build: Callable[[], Names]) -> Names:
    platforms, before = e.platforms, _State.of(e)
    drafts = []
    for platform in platforms:
        before.restore(e)
        e.platforms = (platform,)
        try:
            results = e.indented(build)
        finally:
            e.platforms = platforms
        drafts.append(_Draft(tuple(e.lines[before.lines :]), tuple(results), tuple(e.tokens.values())))
    del e.lines[before.lines :], e.marks[before.marks :]
    different = list(dict.fromkeys(drafts))
    if len(different) == 1:
        (draft,) = different
        e.lines += [line[2:] for line in draft.lines]
        return draft.results
    return _select_draft(e, outs, different, [different.index(d) for d in drafts], before.tokens)


def _select_draft(
    e: Emitter, outs: Sequence[Aval], drafts: Sequence[_Draft], draft_numbers: Sequence[int], tokens: dict
) -> Names:
    """Selects the draft of the running platform; `draft_numbers` has the number of each platform's draft."""
    if PLATFORM_INDEX not in e.globals:
        raise NotImplementedError(f"programs for several platforms, {e.platforms}, with this operation in a comparator")
    at = [i for i, old in enumerate(tokens.values()) if any(d.tokens[i] != old for d in drafts)]
    rows = [(d.lines, [*(d.tokens[i] for i in at), *d.results]) for d in drafts]
    index = e.globals[PLATFORM_INDEX]
    if list(draft_numbers) != list(range(len(drafts))):
        index = e.looked_up(index, draft_numbers)
    results = e.written_case(index, rows, [*[token_type] * len(at), *outs])
    e.tokens = {**tokens, **{list(tokens)[i]: x for i, x in zip(at, results, strict=False)}}
    return results[len(at) :]
