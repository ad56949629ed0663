"""Jaxprs in colours, as IPython shows them, have the codes of jax's."""

from types import CodeType

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle

X = np.ones(3, np.float32)


def changed(ref, i):
    ref[...] = ref[...] * 2.0
    ref[0] += 1.0
    return ref[i]


def twice(f):
    return lambda x: f(f(x))


PROGRAMS = {
    "operations": lambda jax, jnp: (lambda x: jnp.sin(x) + 1.0, X),
    "constants": lambda jax: (lambda x: x + X, X),
    "nothing": lambda jax: (lambda: None,),
    "many arguments": lambda jax: (lambda *xs: xs[0], *[1.0] * 40),
    "long parameters": lambda jax, jnp: (
        lambda x, y: jnp.dot(x, y),
        np.ones((40, 50), np.float32),
        np.ones((50, 60), np.float32),
    ),
    "jit of scan": lambda jax, lax: (lambda x: jax.jit(lambda x: lax.scan(lambda c, a: (c + a, c), x, X))(x), 1.0),
    "cond": lambda jax, lax: (lambda x: lax.cond(x > 0, lambda y: y * 2, lambda y: y, x), 1.0),
    "a program used twice": lambda jax: (twice(jax.jit(lambda a: a * 2)), X),
    "references": lambda jax: (changed, jax.new_ref(X), 1),
}
WAYS = {
    "colours": dict(),
    "narrow": dict(width=20),
    "places": dict(source_info=True),
    "names": dict(name_stack=True, source_info=True),
    "no types": dict(print_shapes=False),
}


def moved(code):
    """The code as if a file `programs.py` held it: positions are part of the texts, the checkout's folder is not."""
    constants = tuple(moved(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_filename="/programs.py", co_consts=constants)


for function in (changed, twice, *PROGRAMS.values()):
    function.__code__ = moved(function.__code__)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_codes_are_those_of_jax(name, way):
    def program(jax, jnp, lax):
        given = dict(jax=jax, jnp=jnp, lax=lax)
        function, *args = PROGRAMS[name](**{n: given[n] for n in PROGRAMS[name].__code__.co_varnames[:2] if n in given})
        return jax.make_jaxpr(function)(*args).pretty_print(use_color=True, **WAYS[way])

    assert "\x1b[34;1mlambda \x1b[39;22m" in same(program)


class Printer:
    """The part of IPython's printer that is used."""

    def __init__(self):
        self.texts = []

    def text(self, text):
        self.texts.append(text)


def test_ipython_shows_colours_and_other_texts_have_none():
    def program(jax):
        closed, shown = jax.make_jaxpr(lambda x: x + 1)(X), []
        for jaxpr in (closed, closed.jaxpr):
            printer = Printer()
            jaxpr._repr_pretty_(printer, False)
            shown += [printer.texts, str(jaxpr), jaxpr.pretty_print()]
        return shown

    shown = same(program)
    assert "\x1b" in shown[0][0] and "\x1b" not in shown[1] + shown[2]
