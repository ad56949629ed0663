"""Symbolic dimensions: text, outcome of comparisons and errors as jax has them, and decided answers that hold."""

import copy
import functools
import importlib
import itertools
import math
import os
import pickle
import random
import re

import numpy as np
import pytest
from compare import both, same

import minijax
from minijax.base.symbolic import bounds
from minijax.base.symbolic.dimension import FLOORDIV, MAX, MIN, MOD, SymbolicDim

# The first line of a group names the constraints; the others are expressions over a, b, c and d.
ARITHMETIC = """
# none
a + b + 1; a - b; b - a; -a - -1*b; 2*a*b - b*a; a*a*b + a*b*b + a*b + a*a + 2; (a + b)**3; (a - 1)**2; a**0; a*0; a - a
a*b + c*d + a*c + b*d + a*d + b*c; a*a + b*b + a*b; a*(b//4) + b*(a//4) + b*(a%4) + a//4 + a*a + b + 15; 3 - a; -2*a
a // 1; a // -1; a % -1; a // 2; a % 2; (-a) // 2; a // -2; (a + 4) // 2; (4*a + 3) // 2; (4*a + 6) // 4; (4*a + 6) % 4
(6*a) // 4; (4*a) // (2*b); a // a; (a*a + 3*a + 2) // (a + 1); (a*a + 3*a + 3) % (a + 1); (a*a - b*b) // (a + b)
(3*a + 2) // -3; (3*a + 2) % -3; (3*a*a*b + 2*b*b*a) // (a*b); (a*b + 3) // a; (a + b) // b; 5 // a; 0 % a; -5 // a
(a//4)//4; (a//4)*4 + a%4; (a%4)%2; a // (b//2); a // (a - 3); a // 0; a % 0; divmod(a, 0); divmod(7, a); divmod(3*a, 2)
mx(a, b); mx(b, a) - mx(a, b); mx(1, a); mx(2, a); mx(a, 2); mn(a, 1); mn(2, a); mx(a, a + b); mn(a, a - b); mx(a - 1, 0)
mx(a - 2, 0); mx(1 - a, 0); mx(a % 4, 4); mn(a % 4, 3); mx(mx(a, b), a); mx(a//2, a); mx(a, 1.5); mx("x", a); mn(a, None)
a >= 1; a > 0; a >= 2; a < 1; a < 2; a <= a + b; a > b; a//2 < a; a % 3 <= 2; a % b < b; a*b >= a; a*a >= 1; mx(a, b) >= a
mn(a, b) <= mx(a, b); 4*a + b + 3 >= 8; 4*a + b + 3 >= 9; 8 <= 4*a + b + 3; -2*((-b)//2) >= b; a - 2*(a//2) <= 1; a > a
b - mx(b - a, 0) >= 1; 1 - mx(-1, a - 2*b - 2) + mx(-1, a - 2) >= 0; mx(b, mn(a, b + 10)) <= b + 10; mx(15 - a, 0)//3 <= 4
a == b; a == a; a != a; 2*a == a + a; a == 1; a == "x"; a == 1.5; a == np.array([1, 2]); a in (1, b); hash(a + b) == hash(b + a)
int(a); float(a); bool(a - a + 1); bool(a - b); range(a); [1, 2][a]; abs(a); +a; a & 1; "%d" % a; round(a)
a ** -1; a ** 1.5; pow(a, 2, 3); np.int64(3)*a; a + np.array(3); np.array(3)*a; a + np.uint8(3); a + True; a*np.bool_(True)
np.prod([a, 2, b]); np.asarray([a, 2]); np.array([a, 1])*2; np.sum([a, b]); np.maximum(a, b); np.equal(a, a); sum([a, b])
math.prod([a, b, 2]); sorted([a, b]); max(a, 1); a + 1.5; 2.5 // a; a / 2; a < 1.5; a + "x"; None + a; a + np.array([1, 2])
jnp.int32(3) + 0 == 3 and a + jnp.int32(3); core.is_constant_dim(a); export.is_symbolic_dim(a); export.is_symbolic_dim(3)
# a >= 5, b <= 16
a >= 5; a >= 6; b <= 16; b < 16; a + b >= 6; mx(a, 2); mn(a, 5); mx(b, 20); a // 2 >= 2; a*b >= 5; a - b >= -11; b % a <= 4
# a >= b + 2, b <= 4
a >= b; a - b >= 2; mx(a, b); mn(a, b); a >= 3; a // b >= 1; a*2 >= b*2 + 4; a*2 >= b*2 + 5
# a == b, c >= b + 3, max(d, a) == b + 3
a; mx(c, a); d - b <= 3; d - b <= 2; a + b; a*b
# mod(b, 4) == 0
b % 4; 4*(b//4); b >= 4*(b//4); 4*(b//4) >= b; b // 4 >= 1; 8*(b//4) + 1; (b//4)*c*4; b//2; math.prod([b//4, c, d, 2, 2])
# 2*b == 3*a + 1
b; 2*b; 4*b; 3*b; 2*a*b; b*b*2; b == 3*a + 1 - b; b >= a; b >= 2*a; (2*b) // 3
# a*b == c, a^2 == d
a*b; a*b*2 + 1; a*d*b; a*b*d; a**2; a**3; a**4; a*c*a; (a*b) // c
# a >= 4, max(a, 2) >= 6
a >= 6; mx(a, 2)
# max(a, 2) >= 6, a >= 4
a >= 6; mx(a, 2)
# 2*a >= 5, 3*a <= 10
a >= 3; a <= 3; 5*a - 2 <= 13
# floordiv(a, 3) == -2*a + 3*b + 9, a <= 11
a >= 6; a // 3; a//b
# 4*d == a - c, c >= 0, c <= 3
a - 4*d >= 1; a - 4*d <= 3; a - 2*d >= 3; a >= 4; a >= 5
# max(a, b) == 5, min(a, b) == 3
a >= 3; a <= 5; mx(a, b); a <= 4
# a <= 5, a >= 6
a >= 2
# a >= c + 1, c >= b + 4, a <= d + 2, d <= b + 2
a >= b
# 4*a == b
b >= a; b >= 4*a; 9*a >= 2*b; 5*a >= b + 1; b // a
# mod(a + mod(a, 2), -2) == 0
divmod(a + a % 2, -2); -2*((a + a % 2) // -2)
"""
GROUPS = [(head, body) for head, _, body in (part.partition("\n") for part in ARITHMETIC.split("\n# ")[1:])]

# Calls that make dimensions or fail to: `S` is symbolic_shape.
TEXTS = r"""
S(""); S("()"); S("(a)"); S(" ( 2 , 3 ) "); S("((a,b))"); S("a,"); S("a,,b"); S(","); S("2*b*a"); S("-2 * b * a^2 + b^2"); S("a^0"); S("2^3*a")
S("+ a - b"); S("3 * a * mod(a + 2, b + 2)"); S("3 * floordiv(a + 2, b + 2) * 2"); S("max(a, b), min(a, 2)"); S("max(a, a + 2)"); S("mod(7, 4)")
S("floordiv(3*a, 3), mod(a, 1), floordiv(0, a), max(1, 2)"); S("a - -3"); S("max(a,b)*2 - -3"); S("a-a"); S("é, A_1, _c"); S("a,\nb"); S("-1, 0")
S("a; a"); S("2.5"); S("a + a a"); S("a ^ a"); S("_"); S("..."); S(")("); S("2a"); S("a@"); S("'a'"); S("('a', ...)"); S("mod(a)"); S("a(b)"); S("mod")
S("floordiv(a, b, c)"); S("..., 3"); S("a*(b+1)"); S("a**2"); S("a//2"); S("a^-1"); S("--a"); S("a b"); S("1e3"); S("0x10"); S("a # b"); S("a.b"); S(3)
S("a*b + a^2 + b + a"); S("a*floordiv(b, 8)*mod(b, 4)"); S("- mod(a, 4) + 3"); S("2*a^2 - 3*a - 1"); S(["a"]); S(None); S("non_negative(a)"); S("a^2^2")
S(None, like=(2, 3)); S("2, 3,", like=(2, 3)); S("2, _", like=(2, 3)); S("2, ...", like=(2,)); S("(a, ...) ", like=(None, 3)); S("b", like=(4, 7))
S("3", like=(4,)); S("b, 3", like=(None, 4)); S("b, ..."); S("b, 5, _"); S("b, 6, c, _", like=(4, 6, 7)); S("b, 7, c, ...", like=(4, 7)); S("b, _", like=(4, None))
S("..., b", like=(2, 3)); S("...", like=S("a+1, b")); S("3", like=S("a+1")); S("b, c, d", like=(4, 7)); S("2*b, c", like=(5, 6)); S("...", like=(4, None))
S("a", constraints="a >= 1"); S("a", constraints=("a != 0",)); S("a", constraints=("a > 0",)); S("a", constraints=(3,))
S("a", constraints=("a == a + 1",)); S("a", constraints=("a >= a + 1",)); S("a", constraints=("3 >= 4",)); S("a", constraints=("3 >= 3", "a <= a + 1"))
S("a", constraints=("a >= 3",), scope=Scope()); S("a, a", scope=Scope(["a >= 3"])); Scope("a >= b"); S("a, b", constraints=["a == 5"]); S("a", constraints=["5 == a"])
S("a, b", constraints=["a == 5", "a == 6"]); S("a, b, c", constraints=["a == b", "b == c"]); S("a, b, c", constraints=["a == b", "a == c"])
S("a, b", constraints=["a == b", "b == a"]); S("a, b", constraints=["a == b + 1", "b == a - 2"]); S("a, 2*a, b", constraints=["-2*a == 4*b"])
S("a, b, c", constraints=["a + b == c"]); S("a, 2*a, 4*b", constraints=["2*a == 4*b", "2*b == a"]); S("a", constraints=["a >= 1 >= 0"])
S("a, c", constraints=["mod(a, 4) == 0", "floordiv(a, 4) == c"]); S("a^2, a*b, floordiv(a, 2)", constraints=["a == 5"]); S("a*b", constraints=["a*b == c"])
shown(Scope(["mod(a + b, -2) == 0", "b == a", "a <= a", "a >= 1"])); shown(Scope()); S("a")[0] + S("a")[0]; S("a")[0] >= S("a")[0]; S("a") == S("a")
core.max_dim(S("a")[0], S("a")[0]); S("a")[0] * S("b")[0]; S("a")[0] // S("b")[0]; S("a", scope=Scope([])) == S("a")
"""  # noqa: E501


@functools.cache
def side(jax):
    package = jax.__name__
    export, core = importlib.import_module(f"{package}.export"), importlib.import_module(f"{package}.core")
    return {
        "S": export.symbolic_shape, "Scope": export.SymbolicScope, "export": export, "core": core, "np": np, "math": math,
        "mx": core.max_dim, "mn": core.min_dim, "jax": jax, "jnp": importlib.import_module(f"{package}.numpy"),
        "shown": lambda scope: re.sub(r"(SymbolicScope )?\d+ created at .*?( with|$)", r"scope\2", str(scope)),
    }  # fmt: skip


OURS = side(minijax)


def outcome(expression, names):
    """The text of a value with its kind, or the class of an error with the phrase that programs match on."""
    try:
        value = eval(expression, dict(names))
    except Exception as error:
        phrase = re.split(r"\n| but found| \[|: expecting|; like|\. Parsed", str(error))[0]
        told = isinstance(error, ValueError | AttributeError) or "inconclusive" in phrase
        phrase = phrase if told and re.search("symbolic|Symbolic|inconclusive|Unsatisfiable", phrase) else ""
        return type(error).__name__, re.sub("constraint.*", "constraint", phrase)
    kind = "dim" if type(value).__name__ in ("SymbolicDim", "_DimExpr") else type(value).__name__
    return kind, str(value)


def rows(text):
    return [row for line in text.strip().splitlines() for row in line.split("; ")]


@pytest.mark.parametrize(("constraints", "expressions"), GROUPS, ids=[head for head, _ in GROUPS])
def test_arithmetic_and_comparisons(constraints, expressions):
    given = [] if constraints == "none" else [c for c in re.split(r", (?![^(]*\))", constraints)]

    def found(jax):
        dims = side(jax)["S"]("a, b, c, d", constraints=given)
        return [(row, outcome(row, side(jax) | dict(zip("abcd", dims, strict=True)))) for row in rows(expressions)]

    same(found)


def test_texts():
    same(lambda jax: [(row, outcome(row, side(jax))) for row in rows(TEXTS)])


def expression(r, depth):
    if depth == 0 or r.random() < 0.2:
        return r.choice("abc") if r.random() < 0.75 else str(r.randint(1, 9))
    x, y, n = expression(r, depth - 1), expression(r, depth - 1), r.choice([2, 3, 4, -2])
    forms = [f"({x} + {y})", f"({x} - {y})", f"{r.randint(-4, 4)}*{x}", f"({x}*{y})", f"(({x})//{n})", f"(({x})%{n})",
             f"(({x})//({y}))", f"(({x})%({y}))", f"mx({x}, {y})", f"mn({x}, {y})"]  # fmt: skip
    return r.choice(forms)


def constraint(r):
    x, y = r.sample("abc", 2)
    sides = [x, f"2*{x} - {y}", f"mod({x}, {r.randint(2, 4)})", f"max({x}, {r.randint(1, 6)})", f"floordiv({x}, 2)"]
    return f"{r.choice(sides)} {r.choice(['>=', '<='])} {r.choice([y, f'{y} + 2', str(r.randint(2, 9))])}"


@pytest.mark.parametrize("seed", range(70))
def test_random_expressions(seed):
    r = random.Random(os.environ.get("MINIJAX_TEST_SEED", "0") + f"/{seed}")
    given = [constraint(r) for _ in range(r.randint(0, 2))]
    x, y = expression(r, 2), expression(r, 2)
    texts = (x, f"{x} >= {y}", f"{x} - {y} > 3", f"mx({x}, {y})", f"{x} == {y}")
    # Not recorded, since each seed has other expressions.
    made = both(lambda jax: outcome("S('a, b, c', constraints=given)", side(jax) | {"given": given})[0])
    assert made[0] == made[1]
    if made[0] != "tuple":
        return

    def found(jax):
        dims = dict(zip("abc", side(jax)["S"]("a, b, c", constraints=given), strict=True))
        return [outcome(text, side(jax) | dims) for text in texts]

    ours, theirs = both(found)
    assert ours == theirs, (given, texts)
    holds = [eval_constraint(c) for c in given]
    for values in itertools.product((1, 2, 3, 5, 8), repeat=3):
        env = dict(zip("abc", values, strict=True)) | {"mx": max, "mn": min}
        if all(hold(env) for hold in holds):
            check_sound(texts[1:3], ours[1:3], env)


def eval_constraint(text):
    code = compile(text, text, "eval")
    functions = {"mod": lambda x, y: x % y, "floordiv": lambda x, y: x // y, "max": max}
    return lambda env: eval(code, functions, env)


def check_sound(texts, outcomes, env):
    """A comparison that was decided has that answer for these values."""
    for text, (kind, answer) in zip(texts, outcomes, strict=True):
        if kind != "bool":
            continue
        try:
            assert str(eval(text, dict(env))) == answer, (text, env)
        except ZeroDivisionError:
            continue


def test_evaluation():
    a, b = OURS["S"]("a, b")
    assert (a * a - b).evaluate({"a": 2, "b": 3}) == 1
    assert (a * a // b + a % b).evaluate({"a": 5, "b": 7}) == 8
    assert str((2 * a + b + 1).evaluate({"a": b, "b": 3})) == "2*b + 4"
    table = {n: lambda x, y, n=n: f"{n}({x},{y})" for n in ("add", "mul", FLOORDIV, MOD, MAX, MIN)}
    d = 2 * a * a + OURS["mx"](a // b, 3) - 1
    assert d.evaluate({"a": "A", "b": "B"}, table) == "add(add(max(floordiv(A,B),3),mul(mul(A,A),2)),-1)"
    with pytest.raises(Exception, match="dimension variable 'b' that is not appearing.*\n.*'a'"):
        (a + b).evaluate({"a": 1})
    assert d.variables() == {"a", "b"}


def test_copies():
    for names in (OURS, side(pytest.importorskip("jax"))):
        a, b = names["S"]("a, b", constraints=["mod(a, 4) == 0", "b >= 3"])
        for copies in (copy.deepcopy((a, b, a + b)), pickle.loads(pickle.dumps((a, b, a + b)))):
            assert str(copies) == str((a, b, a + b))
            assert copies[0].scope is copies[1].scope is not a.scope
            assert copies[0] != a and hash(copies[0]) != hash(a) and copies[0] + copies[1] == copies[2]
            assert names["jax"].__name__ == "jax" or copies[0] == 4 * (copies[0] // 4) and copies[1] >= 3
    assert copy.copy(a) == a


def test_value_is_an_operation_elsewhere():
    (a,) = OURS["S"]("a")
    with pytest.raises(NotImplementedError, match="'a' has no value"):
        a.__jax_array__()
    assert a.__jax_array__.__func__ is SymbolicDim.dimension_as_value


def test_division_ends():
    a, b = OURS["S"]("a, b", constraints=["a*b == 2*a*b + b"])
    assert str((a * a * b) // a) in ("floordiv(a^2*b, a)", "a*b")


def test_long_sums_are_decided_in_bounded_time(monkeypatch):
    sums, eliminated = [], bounds.Decision._eliminated
    monkeypatch.setattr(
        bounds.Decision, "_eliminated", lambda self, terms: sums.append(terms) or eliminated(self, terms)
    )
    a, b = OURS["S"]("a, b")
    triangle = lambda n: (n * n + n) // 2  # noqa: E731
    rest = triangle(a + b - 2) - triangle(OURS["mx"](b - 2, 0)) - triangle(OURS["mx"](a - 2, 0))
    assert OURS["mx"](rest, 0) >= 0 and 3 * OURS["mx"](rest, 0) + 5 > 4
    assert max(map(len, sums)) > 8 and len(sums) < 20_000


def test_a_multiple_has_the_multiple_of_the_bounds():
    a, b = OURS["S"]("a, b", constraints=["a <= 10", "b <= a"])
    low, high = a.scope.bounds(a * b // 3 - b)
    assert a.scope.bounds(4 * (a * b // 3 - b) + 1) == (4 * low + 1, 4 * high + 1)
    assert a.scope.bounds(7 - 2 * (a * b // 3 - b)) == (7 - 2 * high, 7 - 2 * low)
