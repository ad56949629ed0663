"""`isinstance(x, jax.Array)`, independent of earlier checks."""

import minijax
import minijax.numpy as jnp


def test_asking_about_other_objects_changes_no_answer():
    assert not isinstance(object(), minijax.Array) and not isinstance(1.0, minijax.Array)

    class Other:
        pass

    assert not isinstance(Other(), minijax.Array)
    assert isinstance(jnp.ones(2), minijax.Array) and isinstance(minijax.random.key(0), minijax.Array)
    minijax.make_jaxpr(lambda x: x if isinstance(x, minijax.Array) else 1 / 0)(1.0)
