"""Tokens between programs: each takes those that the one before it gave."""

import numpy as np

import minijax
from minijax.run.programs import tokens


def test_a_program_takes_the_token_that_the_one_before_gave(monkeypatch):
    taken, given = [], []

    def take(*args):
        taken.append(take_now(*args))
        return taken[-1]

    def put(effects, devices, raws):
        given.append(list(raws))
        put_now(effects, devices, raws)

    take_now, put_now = tokens.take, tokens.put
    monkeypatch.setattr(tokens, "take", take)
    monkeypatch.setattr(tokens, "put", put)
    f = minijax.jit(lambda x: minijax.debug.callback(lambda x: None, x, ordered=True))
    g = minijax.jit(lambda x: minijax.experimental.io_callback(lambda x: None, None, x, ordered=True))
    for call in (f, f, g, f, g):
        call(np.float32(1))
    debug, io = ([i for i, c in enumerate("ffgfg") if c == name] for name in "fg")
    for order in (debug, io):
        for before, now in zip(order, order[1:], strict=False):
            assert taken[now][0] is given[before][0]
    minijax.effects_barrier()
    f(np.float32(1))
    assert taken[-1][0] is not given[debug[-1]][0]
    minijax.effects_barrier()
