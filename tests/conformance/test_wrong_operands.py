"""Operations that are bound with another number of operands, or without a parameter, are refused where they are traced."""

from collections.abc import Iterator
from typing import Any

import pytest
from compare import ended, run_on, same
from conformance.table import Row, case, rows

pytestmark = pytest.mark.oracle

# Operations with bodies check them elsewhere, references are no arrays, and jax refuses collectives outside of
# `shard_map` first. For the others jax has no check of the parameter, or one that is about something else.
LEFT = {
    *(
        "closed_call jit remat custom_jvp_call custom_vjp_call custom_linear_solve linear_call shard_map new_ref after_all".split()
    ),
    *(
        "get swap addupdate freeze all_gather all_to_all axis_index pmax pmin ppermute psum psum_invariant pvary".split()
    ),
    *("reduce_scatter".split()),
}
ODD = {
    "without sharding": "convert_element_type",
    "without dimension": "concatenate",
    "without left_side": "triangular_solve",
    "without lower": "tridiagonal",
    "without perturb_singular": "tridiagonal_solve",
    "without use_magma": "qr",
    "without feature_group_count": "conv_general_dilated",
    "without batch_group_count": "conv_general_dilated",
    "an operand less": "dynamic_slice",
    "an operand more": "dynamic_slice",
}


def equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr and of those inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for p in eqn.params.values():
            for inner in p if isinstance(p, (tuple, list)) else [p]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def of_first_order() -> Iterator[Row]:
    """A line of the table for each primitive."""
    seen = set(LEFT)
    for row in rows():
        name = row.primitives[0].removesuffix("_p")
        if name not in seen:
            seen.add(name)
            yield row


def bound_wrongly(jax: Any, eqn: Any) -> list[str]:
    """How binding the operation of an equation ends without an operand, with one more, and without a parameter."""
    operands = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    # minijax's equations lack parameters that are None in nearly all of jax's.
    params = {k: v for k, v in eqn.params.items() if k not in ("accuracy", "out_dtype") or v is not None}
    ways = {f"without {k}": (operands, {q: v for q, v in params.items() if q != k}) for k in params}
    if operands:
        ways["an operand more"] = [*operands, operands[-1]], params
    if operands[1:]:
        ways["an operand less"] = operands[:-1], params

    def bind(operands: list, params: dict) -> None:
        jax.make_jaxpr(lambda *xs: eqn.primitive.bind(*xs, **params))(*operands)

    name = eqn.primitive.name
    return [f"{name} {way}: {ended(lambda w=w: bind(*w))}" for way, w in sorted(ways.items()) if ODD.get(way) != name]


def program(row: Row) -> Any:
    def program(jax):
        primitives = __import__(f"{jax.__name__}.extend.core.primitives", fromlist=["x"])
        name = getattr(getattr(primitives, row.primitives[0], None), "name", row.primitives[0])
        jaxpr = jax.make_jaxpr(run_on(jax, case(row).program))(*case(row).args).jaxpr
        return bound_wrongly(jax, next(eqn for eqn in equations(jaxpr) if eqn.primitive.name == name))

    return program


@pytest.mark.parametrize("row", list(of_first_order()), ids=lambda row: row.primitives[0])
def test_wrong_operands_and_missing_parameters_are_refused(row):
    same(program(row))
