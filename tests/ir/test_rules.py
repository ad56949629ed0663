"""The contract of primitives: each rule takes what `ir/rules.py` says, and each trait and rule has a reader."""

import importlib
import inspect
import re
import types
import typing

import package
import pytest

from minijax.ir import rules
from minijax.ir.primitive import Primitive
from minijax.primitives.moving import AxisWise

# Arguments that have another name where a parameter of the operation has theirs.
OTHER_NAMES = {"axis_data": "axis", "axis_in": "axis", "dims_in": "dims", "args": "operands"}
PROTOCOLS = {
    name: next(p for p in typing.get_args(hint) if p is not types.NoneType)
    for name, hint in inspect.get_annotations(Primitive, eval_str=True).items()
    if type(None) in typing.get_args(hint) and "rules" in str(hint)
}
# Libraries, and programs that look at jaxprs, read these.
READ_BY_PROGRAMS = {"call_primitive", "skip_canonicalization"}


ROOMS = "primitives calls higher dispatch composed api numpy random kernels experimental.sparse".split()


def operations(base=Primitive):
    """The classes of the package's operations."""
    for name in package.files():
        if name.startswith(tuple(f"minijax.{room}." for room in ROOMS)):
            importlib.import_module(name)
    waiting, found = [base], []
    while waiting:
        new = waiting.pop().__subclasses__()
        found += [c for c in new if c.__module__.startswith("minijax.")]
        waiting += new
    return dict.fromkeys(found)


def leading(function):
    """The names of the positional parameters after `self`, and whether others follow as `*operands`."""
    kinds = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    named = [p.name for p in kinds if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return named, any(p.kind is p.VAR_POSITIONAL for p in kinds)


def test_each_rule_has_a_protocol_with_a_docstring():
    assert len(PROTOCOLS) >= 22
    declared = {p for p in vars(rules).values() if inspect.isclass(p) and p.__module__ == rules.__name__}
    assert set(PROTOCOLS.values()) == declared
    assert all(getattr(Primitive, name) is None for name in PROTOCOLS)
    assert [p for p in declared if not p.__doc__ or p.__doc__ == typing.Protocol.__doc__] == []


def test_rules_take_the_arguments_of_their_protocols():
    wrong = []
    for cls in operations():
        for name, protocol in PROTOCOLS.items():
            rule = vars(cls).get(name)
            if not inspect.isfunction(rule):
                continue
            wanted, takes_operands = leading(protocol.__call__)
            named, _ = leading(rule)
            first = [OTHER_NAMES.get(n, n) for n in named[: len(wanted)]]
            if first != wanted or (len(named) > len(wanted) and not takes_operands):
                wrong.append(f"{cls.__module__}.{cls.__name__}.{name}({', '.join(named)}): {', '.join(wanted)}")
    assert wrong == []


def test_a_rule_with_other_arguments_is_found():
    class Wrong(Primitive):
        def jvp(self, tangents, primals):
            """Has its arguments in another order."""

    assert leading(Wrong.jvp)[0] != leading(PROTOCOLS["jvp"].__call__)[0]


def test_each_trait_and_rule_has_a_reader():
    # Texts, since to parse the whole package takes seconds.
    words = r"\.(\w+)\b(?!\s*=[^=])|[\"'](\w+)"
    read = {x for text in package.texts().values() for found in re.findall(words, text) for x in found}
    declared = [name for name in vars(Primitive) if not name.startswith("_")]
    assert set(declared) - read - READ_BY_PROGRAMS == set()


@pytest.mark.parametrize("rule", ["infer", "jvp", "transpose", "batch"])
def test_an_absent_rule_says_so(rule):
    with pytest.raises(NotImplementedError, match="for 'mine' not implemented"):
        rules.no_rule(Primitive("mine"), rule)


def test_what_axis_wise_operations_declare_are_their_parameters():
    declared = {}
    for cls in operations(AxisWise):
        if cls.infer is None:
            continue
        named = (*cls.entries, *cls.numbers, *filter(None, [cls.drops]))
        for name in named:
            taken = inspect.signature(cls.infer).parameters
            assert name in taken or "window" in taken, (cls, name)
        declared[cls.__name__] = named
    assert len(declared) >= 14 and all(declared.values())
