"""Comparison of random programs with jax, except for the known differences."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import compare
from fuzz import shrink


class Comparison:
    """Compares the programs that `generate` makes of seeds with jax by `check`, which returns how their jaxprs differ.

    `known` are patterns of mismatches that are not faults of minijax, by the reason.
    """

    def __init__(self, generate: Callable[[int], Any], check: Callable[[Any], str], known: Mapping[str, str]):
        self.generate, self.check, self.known = generate, check, known

    def known_difference(self, program: Any) -> str:
        """The known way in which the two differ; empty if they do not differ."""
        try:
            return self.check(program)
        except compare.Mismatch as difference:
            for reason, words in self.known.items():
                if re.search(rf"(?s){words}", str(difference)):
                    return reason
            raise

    def mismatch(self, program: Any) -> str:
        """The mismatch, if the two differ in a way that is not known; else empty."""
        try:
            self.known_difference(program)
        except compare.Mismatch as difference:
            return str(difference)
        except Exception:  # noqa: BLE001
            # A reduced program may be one that both sides refuse.
            return ""
        return ""

    def run(self, seeds: Iterable[int]) -> dict[int, str]:
        """Requires that the programs agree, except in known ways; shows the smallest form of each that does not."""
        failures, known = [], {}
        for seed in seeds:
            program = self.generate(seed)
            if program is None:
                continue
            try:
                if difference := self.known_difference(program):
                    known[seed] = difference
            except compare.Mismatch:
                small = shrink.shrunk(program, self.mismatch)
                failures.append(f"{small}\n{self.mismatch(small)}")
        assert not failures, "\n\n".join([f"{len(failures)} programs differ", *failures])
        return known
