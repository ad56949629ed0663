"""Functions with sizes of zero and one, objects that become arrays, and what stages say of results over meshes."""

import numpy as np
import pytest
from compare import same, same_refusal
from given import given

pytestmark = pytest.mark.oracle

CALLS = [
    lambda jnp: jnp.compress(jnp.ones(1), jnp.ones(1), size=0),
    lambda jnp, x: jnp.extract(x, x, size=0),
    lambda jnp, x, y: jnp.compress(x, y, 0, size=0),
    lambda jnp, e: jnp.intersect1d(e, e, size=2),
    lambda jnp, e: jnp.intersect1d(e, e, size=2, assume_unique=True),
    lambda jnp, e, x: jnp.intersect1d(e, x, size=2),
    lambda jnp, e: jnp.intersect1d(e, e, size=2, return_indices=True, fill_value=7),
    lambda jnp, e: jnp.repeat(e, 2, total_repeat_length=3),
    lambda jnp, e: jnp.repeat(e, e.astype(int), total_repeat_length=2),
    lambda jnp: jnp.repeat(jnp.ones((0, 2)), 2, 0, total_repeat_length=1),
    lambda jnp, x: jnp.repeat(x, 2, total_repeat_length=0),
    lambda jax, x: jax.scipy.signal.stft(x, nperseg=1, noverlap=0),
    lambda jax, x: jax.scipy.signal.welch(x, nperseg=1, noverlap=0),
    lambda jnp: jnp.sum(jnp.arange(3), initial=np.inf),
    lambda jnp: jnp.sum(jnp.arange(3), initial=np.nan),
    lambda jnp: jnp.max(jnp.arange(3), initial=np.inf),
    lambda jnp: jnp.sum(jnp.ones(2, bool), initial=np.inf),
    lambda jnp: jnp.min(jnp.arange(3), initial=-1e20),
    lambda jnp: jnp.prod(jnp.arange(3), initial=-np.inf),
    lambda jnp: jnp.sum(jnp.arange(3, dtype="int8"), initial=3e10),
]


@pytest.mark.parametrize("call", CALLS)
def test_values(call):
    def program(jax, jnp):
        return given(call, dict(jax=jax, jnp=jnp, e=jnp.zeros(0), x=jnp.arange(3.0), y=jnp.ones((3, 2))))

    same(program)


def test_compress_refuses_sizes_that_the_axis_does_not_have():
    for size in (-1, 4):
        same_refusal(lambda jnp, size=size: lambda: jnp.compress(jnp.ones(3), jnp.ones(3), size=size))


WITHOUT_JIT = [
    lambda jnp, w: jnp.clip(w, 0, 2),
    lambda jnp, w: jnp.cumprod(w),
    lambda jnp, w: jnp.cumsum(w),
    lambda jnp, w: jnp.nancumsum(w),
    lambda jnp, w, m: jnp.where(m, w, w),
    lambda jnp, w: jnp.array_equal(w, w),
    lambda jnp, w, i, v: jnp.put_along_axis(w, i, v, 0, inplace=False),
    lambda jnp, w: jnp.array_equiv(w, w),
    lambda jnp, w: jnp.linalg.norm(w),
]


@pytest.mark.parametrize("call", WITHOUT_JIT)
@pytest.mark.parametrize("is_tree", [False, True])
def test_objects_that_become_arrays_without_jit(call, is_tree):
    def program(jax, jnp):
        class Wrapped:
            def __init__(self, x):
                self.x = jnp.asarray(x)

            def __jax_array__(self):
                return self.x

        if is_tree:
            jax.tree_util.register_pytree_node(Wrapped, lambda w: ((w.x,), None), lambda _, xs: Wrapped(*xs))
        w, m, i = Wrapped(np.arange(3.0)), Wrapped(np.array([True, False, True])), Wrapped(np.array([1, 2]))
        with jax.disable_jit():
            return given(call, dict(jnp=jnp, w=w, m=m, i=i, v=Wrapped(np.ones(2, np.float32))))

    same(program)


def test_array_equal_converts_objects():
    def program(jax, jnp):
        class Ones:
            def __jax_array__(self):
                return jnp.ones(3)

        return jnp.array_equal(Ones(), Ones())

    same(program)


def test_results_of_lowered_programs_are_over_the_mesh():
    def program(jax, jnp):
        mesh = jax.make_mesh((4,), ("x",))
        x = jax.device_put(jnp.ones((4, 2)), jax.NamedSharding(mesh, jax.P("x", None)))
        stages = [jax.jit(f).lower(x) for f in (lambda x: x.T, lambda x: x, lambda x: x.sum(), lambda x: jnp.ones(3))]
        return "\n".join(repr(stage.out_info) for stage in stages)

    same(program)


def test_constraints_of_a_deserialized_program():
    def program(jax, jnp):
        (n,) = jax.export.symbolic_shape("n", constraints=["n >= 2"])
        exported = jax.export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((n,), jnp.float32))
        return lambda: jax.export.deserialize(exported.serialize()).call(jnp.ones(1))

    same_refusal(program, ["Error refining shapes"])


@pytest.mark.parametrize("shape", [(96,), (4, 4, 6), (7,)])
def test_gelu_outside_of_jit_has_the_last_bits_of_single_operations(shape):
    def program(jax, jnp):
        x = 3 * jax.random.normal(jax.random.key(1), shape)
        ends = [jax.nn.gelu(x, approximate=a) for a in (True, False)]
        ends += [*jax.jvp(jax.nn.gelu, (x,), (x,)), jax.vjp(jax.nn.gelu, x)[1](x)[0], jax.vmap(jax.nn.gelu)(x)]
        return [np.asarray(end).view(np.int32) for end in ends]

    same(program)
