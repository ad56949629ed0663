"""Programs as people write them, under nested transforms: jaxprs, types, modules, values and warnings, or errors."""

import dataclasses
import os
import random
import re
import warnings
from types import ModuleType
from typing import Any

import compare
import numpy as np
import pytest
from fuzz import people, wrapping
from fuzz.comparison import Comparison

from tests.fuzz.test_fuzz import how_jaxprs_differ

jax = compare.theirs()

pytestmark = pytest.mark.oracle

# Why the two may differ: by patterns of what differs.
KNOWN = {
    "references under jvp and vmap are run on their values": (
        r"other jaxprs.*--- not .*\[kind=None memory_space=None\]|weak type: ours True, theirs False"
    ),
    "jax does not transform all uses of references": (
        "has no attribute (accum|ref)'|State effect not supported|No state discharge rule implemented|"
        r"returned .*(KeyError\(Var|returned a mutable array reference|Invalid shape for `swap`|`vmap` ordered IO)"
    ),
    "jax keeps tangents of integers in calls of custom_vmap": r"other jaxprs.*--- not .*:float0\S* .*= custom_vmap_call",
    "jax batches the primal results of jacfwd": (
        r"at vmap out_axes\[0\]\[0\], got axis spec None.*(AssertionError|ours returned)|ours returned.*at vmap out_axes"
    ),
    "jax refuses in shard_map what is traced here": (
        "returned .*(Closing over inputs to shard_map where|Eager shard_map)|returned .*inside eager shard_map"
    ),
    "jax moves constants onto the mesh in shard_map": (
        r"other jaxprs.*--- not .*(= reshard (nan|inf|-?\d|\(b)|(?=.*shard_map).*name=_where.*= reshard \w)"
    ),
    "jax keeps residuals that nothing reads": r"other jaxprs.*--- not .*:\w+\[1\] .*= shard_map",
    "a value over a mesh of Explicit axes that is not set": (
        "returned .*(Length of device assignment|is required when only AbstractMesh exists)"
    ),
    "jax checks transforms of custom functions by assertions": (
        "theirs raised (AssertionError|ValueError.'safe_zip|ValueError.'Linearization failed to produce)"
    ),
    "jax keeps tangents of integers that a rule returns": r"other jaxprs.*--- not .*:float0\[[\d,]*\] (\w+:\S+ )*= custom_lin",
    "jax gives results of checkify the types of all elements": r"returned .*select cases must have the same shapes, got",
    "jax has no derivatives of functions of no arrays": (
        "returned .*(Too few leaves for PyTreeDef|max.. arg is an empty|integer modulo by zero|argmin of an empty sequence)"
    ),
    "jax rounds the residuals of checkpoint, complex ones too": "returned .*reduce_precision does not accept dtype complex",
    "jax refuses effects in branches under vmap": "returned .*IO effect not supported in vmap-of-cond",
    "a tangent of integers reaches a rule that returns integers": (
        "returned .*can't apply forward-mode autodiff .jvp. to a custom_vjp"
    ),
    "jax has no references of tangents of integers": "returned .*TypedNdArray' object has no attribute",
    "jax does not map derivatives of custom_vmap over one of a value and its tangent": (
        r"other jaxprs(?=.*= iota.*= gather.*--- not )(?!.*--- not .*= gather)"
    ),
    "jax mixes widths where random bits are made under enable_x64": "returned .*same dtypes, got uint32, uint64",
    "in shard_map jax moves cotangents by reshapes": r"other jaxprs.*--- not .*= reshape\[[^\]]*axis_types=\(Manual",
    "jax carries tangents of integers through loops": r"other jaxprs.*--- not .*lambda (\w+:\S+ )*\w+:float0",
    "NumPy adds float0 to float0": "ours raised UFuncTypeError.*theirs raised TypeError.*float0",
    "tangents of integers are weakly typed": r"results: ours .*float0.*theirs .*float0\S*\*",
    "a complex replacement of NaN is converted to a real one": "warnings: ours ..ComplexWarning",
    "jax writes numbers of two widths in one operation": "returned .*Cannot lower jaxpr with verifier errors",
    "results over a mesh of Explicit axes that is not set have a spec of all axes": (
        r"sharding's (spec: ours P\((None,? ?)*\), theirs P\((None.*)?\)|type: ours NamedSharding, theirs GSPMDSharding)"
    ),
}


@dataclasses.dataclass
class Seen:
    """What one side makes of a program; the error is that of the first step that fails."""

    jaxpr: str = ""
    types: str = ""
    module: str = ""
    warned: tuple[str, ...] = ()
    step: str = "made"
    error: BaseException | None = None


ADDRESSES = re.compile(r"index = \d+ : ui64|callback_index = \"?\d+|0x[0-9a-f]+")


def seen(program: people.Program, side: ModuleType) -> Seen:
    found = Seen()
    with warnings.catch_warnings(record=True) as warned, side.enable_x64(program.x64):
        warnings.simplefilter("always")
        try:
            function, args = program.on(side)
            found.step = "jaxpr"
            closed = side.make_jaxpr(function)(*args)
            if side.__name__ == "minijax":
                compare.check_jaxpr(closed)
            found.jaxpr = compare.normal(str(closed))
            found.types = ", ".join(a.str_short() + "*" * getattr(a, "weak_type", False) for a in closed.out_avals)
            found.step = "module"
            text = side.jit(function).lower(*args).as_text()
            found.module = ADDRESSES.sub("", compare.canonical(text))
        except Exception as error:  # noqa: BLE001
            found.error = error
    found.warned = tuple(sorted({w.category.__name__ for w in warned}))
    return found


def check(program: people.Program) -> str:
    """Requires that both sides make the same of a program; returns how the jaxprs differ."""
    ours, theirs = (seen(program, side) for side in (compare.ours(), jax))
    if ours.error or theirs.error:
        compare._same_raised(compare.Outcome(ours.step, ours.error), compare.Outcome(theirs.step, theirs.error))
    compare.require(ours.types == theirs.types, "results", ours.types, theirs.types)
    compare.require(ours.warned == theirs.warned, "warnings", ours.warned, theirs.warned)
    if "checkify" in str(program.transforms) and not ours.error:
        # The numbers of its errors are those of a counter.
        same_values(program)
        return ""
    if compare._unwrapped(ours.jaxpr) != compare._unwrapped(theirs.jaxpr):
        try:
            difference = how_jaxprs_differ(ours.jaxpr, theirs.jaxpr) or "names"
        except compare.Mismatch:
            if "checkpoint" not in f"{program.source}{program.transforms}":
                raise
            difference = "calls"
        except (RecursionError, AttributeError):
            difference = "unread"
    else:
        difference = "module" if ours.module != theirs.module else ""
    if not ours.error and (
        difference in ("module", "calls", "unread") or compare.sampled(str(program.seed), of="people")
    ):
        same_values(program)
    return difference


def plain(side: ModuleType, results: Any, wide: bool) -> Any:
    """The results of a function that ran at once with NumPy values for arrays: there, constants have other classes."""

    def number(x: Any) -> Any:
        if wrapping.is_key(x):
            return x
        x = x if hasattr(x, "dtype") else np.asarray(x)
        if not wide and x.dtype in (np.float64, np.complex128):
            x = np.asarray(x).astype(np.float32 if x.dtype == np.float64 else np.complex64)
        return np.asarray(x) if np.shape(x) else str(np.asarray(x).tolist())

    return side.tree.map(number, results)


def same_values(program: people.Program) -> None:
    """Requires equal bits, of the jitted function and of the function itself."""
    ends = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for side in (compare.ours(), jax):
            with side.enable_x64(program.x64):
                for jitted in (True, False):
                    function, args = program.on(side)
                    called = side.jit(function) if jitted else function
                    ends.append(compare.outcome(lambda called=called, args=args: called(*args)))
    for which, mine, yours in zip(("jitted", "eager"), ends[:2], ends[2:], strict=True):
        if mine.error or yours.error:
            compare._same_raised(mine, yours)
        else:
            try:
                if which == "eager":
                    compare.same_value(
                        *(
                            plain(s, v.value, program.x64)
                            for s, v in zip((compare.ours(), jax), (mine, yours), strict=True)
                        )
                    )
                else:
                    compare.same_value(mine.value, yours.value)
            except compare.Mismatch as difference:
                raise compare.Mismatch(f"{which} {difference}") from None


COMPARISON = Comparison(people.generate, check, KNOWN)
# Of a block, a few programs differ in known ways: inner jaxprs have an operand more, or references are kept. More than
# SELDOM would be news.
BLOCK, SMALL_RUN, FULL_RUN, SELDOM = 30, 2, 100, 8


def blocks() -> list:
    full = pytest.mark.full
    return [pytest.param(i, marks=() if i < SMALL_RUN else full) for i in range(FULL_RUN)]


@pytest.mark.parametrize("block", blocks())
def test_programs_as_people_write_them_are_those_of_jax(block):
    known = COMPARISON.run(range(BLOCK * block, BLOCK * (block + 1)))
    # Where the modules of equal jaxprs differ, the values are equal.
    texts = {seed: how for seed, how in known.items() if how != "module"}
    assert len(texts) <= SELDOM, texts


@pytest.mark.full
@pytest.mark.parametrize("block", range(10))
def test_new_programs_as_people_write_them_are_those_of_jax(block):
    day = random.Random(f"{os.environ['MINIJAX_TEST_SEED']}:people:{block}")
    COMPARISON.run([day.randrange(10**9) for _ in range(BLOCK)])


def test_a_program_is_the_same_again():
    assert [str(people.generate(seed)) for seed in range(5)] == [str(people.generate(seed)) for seed in range(5)]


def test_each_wrapper_and_each_kind_of_argument_is_drawn():
    programs = [people.drawn_arguments(random.Random(seed)) for seed in range(300)]
    texts = "".join(text for _, args, _ in programs for text in args)
    assert {name for *_, chosen in programs for name, _ in chosen} == set(wrapping.WRAPPERS)
    assert all(
        word in texts for word in ("Point(", "Params(", "Box(", "None", "np.float32(", "random.key", "1j", "True")
    )
