"""Functions of numpy and nn by the form of their arguments: kind, dtype, weak type and shape, or the class of the error."""

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle

FORMS: dict[str, Callable] = {
    "int": lambda jax, jnp: 3, "float": lambda jax, jnp: 0.5, "bool": lambda jax, jnp: True,
    "complex": lambda jax, jnp: 1 + 2j, "NumPy float": lambda jax, jnp: np.float64(0.5),
    "NumPy int": lambda jax, jnp: np.int8(3), "list": lambda jax, jnp: [1, 2, 3],
    "nested": lambda jax, jnp: [[1.0, 2.0], [3.0, 4.5]], "tuple": lambda jax, jnp: (0.5, 0.25),
    "NumPy array": lambda jax, jnp: np.array([3, 1, 2]), "mask": lambda jax, jnp: np.array([True, False]),
    "empty": lambda jax, jnp: jnp.zeros((0,)), "no columns": lambda jax, jnp: jnp.zeros((2, 0)),
    "scalar": lambda jax, jnp: jnp.float32(0.5), "weak": lambda jax, jnp: jnp.asarray(0.5),
    "float16": lambda jax, jnp: jnp.array([0.5, 1.0], jnp.float16), "None": lambda jax, jnp: None,
    "bytes of integers": lambda jax, jnp: jnp.array([[1, 2], [3, 4]], jnp.uint8), "text": lambda jax, jnp: "abc",
    "matrix": lambda jax, jnp: jnp.array([[0.5, 0.25], [0.125, 1.0]]),
}  # fmt: skip
FUNCTIONS = """
    abs add angle append argmax argsort array_equal atleast_2d bincount clip column_stack concatenate cumsum diag diff
    divide dot exp expand_dims flip full_like gcd geomspace hstack hypot isclose kron ldexp logaddexp matmul maximum mean
    median mod nansum nonzero outer power prod quantile ravel repeat roll round searchsorted sign sort square squeeze
    stack std sum take tile trace transpose tril unique vstack where zeros_like delete insert ix_ linspace polyval
"""
LAYERS = "relu gelu softplus softmax log_sigmoid mish elu identity sparse_plus one_hot silu hard_tanh logsumexp"
# jax fails inside NumPy for these, in other ways.
LEFT = {"average", "ix_ of mask", "insert of int", "roll of empty", "power of None"}


def outcome(jax, call) -> str:
    try:
        result = call()
    except Exception as error:
        return "TypeError" if isinstance(error, TypeError) else type(error).__name__
    return repr(
        [
            (str(getattr(x, "dtype", type(x).__name__)), bool(getattr(x, "weak_type", False)), np.shape(x))
            for x in jax.tree.leaves(result)
        ]
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("names", [*FUNCTIONS.strip().split("\n"), LAYERS])
def test_functions_take_arguments_of_every_form_as_jax_does(names):
    def program(jax, jnp, lax):
        home, found = jax.nn if names == LAYERS else jnp, []
        for name in names.split():
            function = getattr(home, name)
            parameters = inspect.signature(function).parameters.values()
            count = sum(
                p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters
            )
            for form, value in FORMS.items():
                if f"{name} of {form}" not in LEFT:
                    args = [value(jax, jnp) for _ in range(max(count, 1))]
                    found.append(f"{name} of {form}: {outcome(jax, lambda: function(*args))}")  # noqa: B023
        return "\n".join(found)

    same(program)
