"""Checks of `find_leak`, which test_leaks.py runs in a process of their own: pytest freezes what it collected."""

import sys
import traceback

import minijax as jax
import minijax.numpy as jnp

kept: list = []
table: dict = {}
top = None


class Model:
    pass


class Slotted:
    __slots__ = ("state",)


model, slotted = Model(), Slotted()


def leaks_of(keep):
    with jax.find_leak() as leaks:
        jax.jit(lambda x: keep(x * 2) or x)(1.0)  # made here
    return leaks


def only(leaks):
    (leak,) = leaks.tracers
    assert leak.type == "DynamicJaxprTracer float32[]" and leak.made_at.startswith(__file__)
    return leak.kept_by


def a_function_that_keeps_nothing_has_no_leaks():
    leaks = leaks_of(lambda x: None)
    assert not leaks and repr(leaks).startswith("No leaks")


def a_list():
    try:
        leaks = leaks_of(kept.append)
        assert only(leaks) == f"{__name__}.kept[0]"
        assert "1 tracers outlive" in repr(leaks) and "kept[0]" in repr(leaks)
    finally:
        kept.clear()


def a_global():
    def keep(x):
        global top
        top = x

    assert only(leaks_of(keep)) == f"{__name__}.top"
    keep(None)


def an_attribute():
    assert only(leaks_of(lambda x: setattr(model, "state", x))) == f"{__name__}.model.state"
    del model.state
    assert only(leaks_of(lambda x: setattr(slotted, "state", x))) == f"{__name__}.slotted.state"
    del slotted.state


def nested_containers():
    assert only(leaks_of(lambda x: table.update(a={"b": (x,)}))) == f"{__name__}.table['a']['b'][0]"
    table.clear()


def a_closure():
    def keep(x):
        kept.append(lambda: x)

    try:
        path = only(leaks_of(keep))
        assert path.startswith(f"{__name__}.kept[0] (the function") and path.endswith("its closure's variable x")
    finally:
        kept.clear()


def a_local_variable():
    mine = []
    path = only(leaks_of(mine.append))
    assert path.startswith("the local variable mine of a_local_variable") and path.endswith("it[0]")


def tracers_of_other_transformations():
    with jax.find_leak() as leaks:
        jax.vmap(lambda x: kept.append(x * 2) or x)(jnp.ones(3))
        jax.grad(lambda x: kept.append(x * 2) or x)(1.0)
    assert {f"{__name__}.kept[0]", f"{__name__}.kept[1]"} <= {leak.kept_by for leak in leaks.tracers}
    kept.clear()


def large_arrays():
    old = jnp.ones((600, 600))
    with jax.find_leak() as leaks:
        model.weights = jnp.ones((1000, 1000))
        small = jnp.ones(3)
    (leak,) = leaks.arrays
    assert (leak.kept_by, leak.bytes, leak.made_at) == (f"{__name__}.model.weights", 4_000_000, "")
    assert "4,000,000 bytes" in repr(leaks)
    sizes = [leak.bytes for leak in jax.find_leak().arrays]
    assert old.nbytes in sizes and small.nbytes not in sizes
    del model.weights


if __name__ == "__main__":
    for check in sys.argv[1:]:
        try:
            globals()[check]()
        except Exception:
            print(check, traceback.format_exc(), "\0", sep="\n")
