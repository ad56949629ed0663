"""`custom_partitioning`: the user gives the computation of each device and its shardings."""

import importlib
import re

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle


def module(s):
    return importlib.import_module(f"{s.jax.__name__}.experimental.custom_partitioning")


def keeping_shardings(s):
    """A rule that keeps the shardings that the compiler has chosen; `notes` records its arguments."""

    def keeping(function, notes):
        def partition(*given):
            *static, mesh, args, result = given
            notes.append((given[: len(static)], str(mesh), str(args), str(result)))
            layout = lambda tree: s.jax.tree.map(lambda x: x.sharding, tree)  # noqa: E731
            return mesh, lambda *parts: function(*static, *parts), layout(result), layout(args)

        return partition

    return keeping


def partitioned(s):
    """(function, the function of one device) -> the partitioned function, with its notes."""

    def make(whole, part=None, static=(), notes=None, partition=None, **how):
        f = module(s).custom_partitioning(whole, static_argnums=static)
        f.notes = [] if notes is None else notes
        f.def_partition(
            partition or keeping_shardings(s)(part or whole, f.notes), **{"sharding_rule": "i j -> i j", **how}
        )
        return f

    return make


def run_with_notes(s):
    """The value of a jitted call, and the recorded arguments of the rule."""

    def run(f, *args, **how):
        return s.jax.jit(f, **how)(*args), [*f.notes], f.notes.clear()

    return run


def text_without_ids(s):
    """The module without the ids and package names of callbacks."""

    def lowered(f, *args):
        found = re.sub(r'backend_config = "\d+"', "config", s.text(f, *args))
        return found.replace("MinijaxSPMDPartitioning", "CustomSPMDPartitioning").replace("@jit__un", "@jit_un")

    return lowered


GIVEN = {
    "partitioned": partitioned,
    "matmul": lambda s: lambda x, y: x @ y,
    "run_with_notes": run_with_notes,
    "text_without_ids": text_without_ids,
    "module": module,
}


def test_values_shardings_and_arguments_of_the_rule():
    same(
        [
            lambda s: s.run_with_notes(s.partitioned(lambda x: x * 2, lambda x: x * 3), s.auto_matrix),
            lambda s: s.run_with_notes(
                s.partitioned(lambda x: x * 2, lambda x: x + s.lax.axis_index("x")), s.auto_matrix
            ),
            lambda s: s.run_with_notes(s.partitioned(lambda x: x * 2), s.jnp.ones((8, 8))),
            lambda s: s.run_with_notes(
                s.partitioned(lambda x: x * 2), numbers(8, 8), in_shardings=s.sharding("x", "y")
            ),
            lambda s: s.run_with_notes(
                s.partitioned(lambda x: x * 2), s.jnp.ones((8, 8)), out_shardings=s.sharding("x", "y")
            ),
            lambda s: s.run_with_notes(s.partitioned(lambda x: x * 2), s.shard(numbers(8, 8), "i", mesh=s.mesh_of_8)),
            lambda s: s.run_with_notes(
                s.partitioned(lambda x: x * 2), s.shard(numbers(8, 8), "x", mesh=s.reversed_mesh)
            ),
            lambda s: s.run_with_notes(s.partitioned(lambda x: x * 2), s.auto_matrix.astype("bfloat16")),
            lambda s: s.run_with_notes(
                s.partitioned(lambda x: x * 2), s.shard(numbers(8, 8), "x", "y", mesh=s.explicit_mesh)
            ),
            lambda s: s.run_with_notes(
                s.partitioned(lambda x: (x, x[:, 0] * 2), sharding_rule="i j -> i j, i"), s.shard(numbers(8, 8), "x")
            ),
            lambda s: s.run_with_notes(s.partitioned(lambda x: (x,)), s.auto_matrix),
            lambda s: s.run_with_notes(
                s.partitioned(lambda t: {"o": t["p"] + t["q"][0]}, sharding_rule="i j, i j -> i j"),
                {"p": s.auto_matrix, "q": [s.auto_matrix]},
            ),
            lambda s: s.run_with_notes(
                s.partitioned(lambda n, x: x * n, static=(0,)), 3, s.auto_matrix, static_argnums=0
            ),
            lambda s: s.run_with_notes(
                s.partitioned(lambda x, n: x * n, lambda n, x: x * n, static=(1,)), s.auto_matrix, 3, static_argnums=1
            ),
            lambda s: s.run_with_notes(s.partitioned(lambda x: x * 2, decode_shardings=False), s.auto_matrix),
        ],
        **GIVEN,
    )


def test_calls_in_other_programs():
    same(
        [
            lambda s: s.partitioned(lambda x: x * 2, lambda x: x * 3)(s.auto_matrix),
            lambda s: (
                s.partitioned(lambda x, y=2: x * y, sharding_rule="i j, -> i j")(s.auto_matrix),
                s.partitioned(lambda x: x * 2)(s.jnp.ones((8, 8))),
            ),
            lambda s: s.jax.jit(
                lambda x: s.lax.scan(lambda c, _: (s.partitioned(lambda x: x * 2)(c), None), x, None, length=2)[0]
            )(s.auto_matrix),
            lambda s: s.jax.jit(lambda x: s.partitioned(s.jnp.sin)(s.partitioned(s.jnp.cos)(x)))(s.auto_matrix),
            lambda s: s.jax.jit(
                s.jax.shard_map(
                    s.partitioned(s.jnp.sin), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"), check_vma=False
                )
            )(s.auto_matrix),
            lambda s: s.jax.jit(s.partitioned(lambda x: x @ x, lambda x: x @ x, sharding_rule="b i j -> b i j"))(
                s.shard(numbers(8, 2, 2), "x")
            ),
            lambda s: s.jax.jit(
                s.partitioned(
                    lambda x: s.jnp.linalg.inv(x), sharding_rule="b i j -> b i j", need_replication_factors=("i", "j")
                )
            )(s.shard(np.stack([np.eye(2, dtype=np.float32)] * 8), "x")),
        ],
        **GIVEN,
    )


def test_rules_may_request_other_shardings_than_the_compiler_chose():
    def from_replicated(s):
        return lambda mesh, args, result: (
            mesh,
            lambda x: x * 5,
            s.NamedSharding(mesh, s.P()),
            (s.NamedSharding(mesh, s.P()),),
        )

    def from_replicated_to_shards(s):
        return lambda mesh, args, result: (mesh, lambda x: x[:2, :4], result.sharding, (s.NamedSharding(mesh, s.P()),))

    def sum_of_shards(s):
        return lambda mesh, args, result: (
            mesh,
            lambda x: s.lax.psum(x, "x"),
            s.NamedSharding(mesh, s.P(None, "y")),
            (s.NamedSharding(mesh, s.P("x", "y")),),
        )

    same(
        [
            lambda s: s.jax.jit(s.partitioned(lambda x: x * 2, partition=from_replicated(s)))(s.auto_matrix),
            lambda s: s.jax.jit(s.partitioned(lambda x: x * 2, partition=from_replicated_to_shards(s)))(s.auto_matrix),
            lambda s: s.jax.jit(
                s.partitioned(
                    lambda x: x.reshape(4, 2, 8).sum(0), partition=sum_of_shards(s), sharding_rule="i j -> k j"
                )
            )(s.auto_matrix),
        ],
        **GIVEN,
    )


def test_jaxprs_and_texts():
    def rule(s):
        rules = s.module
        operand, result = rules.ArrayMapping("i", rules.CompoundFactor("j", "k")), rules.ArrayMapping("i", "l")
        return rules.SdyShardingRule((operand,), (result,), j=2, k=4)

    same(
        [
            lambda s: (
                s.jaxpr(s.partitioned(lambda x: x * 2), s.auto_matrix),
                s.jaxpr(lambda x: s.partitioned(lambda n, x: x * n, static=(0,))(3, x), s.auto_matrix),
            ),
            lambda s: (
                s.jaxpr(s.partitioned(lambda t: {"o": t["p"]}), {"p": s.auto_matrix}),
                s.jaxpr(s.partitioned(lambda x, y=1: x * y), s.auto_matrix),
            ),
            lambda s: (
                s.text_without_ids(s.partitioned(lambda x: x * 2), s.auto_matrix),
                s.text_without_ids(s.partitioned(lambda x: x * 2), s.jnp.ones((8, 8))),
            ),
            lambda s: s.text_without_ids(
                s.partitioned(s.matmul, sharding_rule="i j, j k -> i k"), s.auto_matrix, s.auto_matrix
            ),
            lambda s: s.text_without_ids(
                s.partitioned(s.matmul, sharding_rule="... i j, ... j k -> ... i k"),
                s.shard(numbers(8, 2, 2), "x"),
                numbers(8, 2, 2),
            ),
            lambda s: s.text_without_ids(
                s.partitioned(s.matmul, sharding_rule="i j, j k -> i k", need_replication_factors=("j",)),
                s.auto_matrix,
                s.auto_matrix,
            ),
            lambda s: s.text_without_ids(
                s.partitioned(
                    s.matmul, sharding_rule="i j, j k -> i k", reduction_factors=("j",), permutation_factors=("k",)
                ),
                s.auto_matrix,
                s.auto_matrix,
            ),
            lambda s: s.text_without_ids(
                s.partitioned(lambda x: x.reshape(2, 4, 8), sharding_rule="(i j) k -> i j k"), s.auto_matrix
            ),
            lambda s: s.text_without_ids(
                s.partitioned(lambda x: x.T, sharding_rule="(i j) k -> k (i j)", i=4, j=2), s.auto_matrix
            ),
            lambda s: (
                s.text_without_ids(s.partitioned(lambda x: x, sharding_rule=rule(s)), s.auto_matrix),
                s.text_without_ids(s.partitioned(lambda x: x.sum(), sharding_rule="i j ->"), s.auto_matrix),
            ),
            lambda s: s.text_without_ids(
                s.partitioned(
                    lambda x: x,
                    sharding_rule=lambda mesh, ins, outs: " ".join(f"f{i}" for i in range(ins[0].rank)) + "->i j",
                ),
                s.auto_matrix,
            ),
            lambda s: s.text_without_ids(s.partitioned(lambda x: x, sharding_rule=None), s.auto_matrix),
        ],
        **GIVEN,
    )


def test_wrong_rules_are_refused():
    same_errors(
        [
            (
                lambda s: s.text_without_ids(s.partitioned(lambda x: x, sharding_rule="i -> i"), s.auto_matrix),
                "has rank 1, but the operation",
            ),
            (
                lambda s: s.text_without_ids(s.partitioned(lambda x: x, sharding_rule="i j k -> i j k"), s.auto_matrix),
                "has rank 3, but the operation",
            ),
            (
                lambda s: s.text_without_ids(s.partitioned(lambda x: x, sharding_rule="i j, i -> i j"), s.auto_matrix),
                "has 2 operands, but the operation has 1",
            ),
            (
                lambda s: s.text_without_ids(s.partitioned(lambda x: x, sharding_rule="i j -> i, i"), s.auto_matrix),
                "has 2 results, but the operation has 1",
            ),
            (
                lambda s: s.text_without_ids(
                    s.partitioned(lambda x: x, sharding_rule="(i j) k -> i j", i=3), s.auto_matrix
                ),
                "do not specify its size",
            ),
            (
                lambda s: s.text_without_ids(
                    s.partitioned(lambda x: x, sharding_rule="(i j) k -> (i j) k", i=3, j=3), s.auto_matrix
                ),
                "doesn't match the size 9",
            ),
            (
                lambda s: s.text_without_ids(s.partitioned(lambda x: x, sharding_rule="i i -> i i"), s.auto_matrix),
                "cannot reuse factors for the same tensor value",
            ),
            (
                lambda s: s.text_without_ids(
                    s.partitioned(lambda x: x.reshape(4, 16), sharding_rule="... i -> ... i"), s.auto_matrix
                ),
                "corresponds to two sizes",
            ),
            (
                lambda s: s.text_without_ids(s.partitioned(lambda x: x, sharding_rule=lambda *args: 3), s.auto_matrix),
                "must produce either an SdyShardingRule",
            ),
            (
                lambda s: s.text_without_ids(
                    s.partitioned(lambda x: x, sharding_rule=None, infer_sharding_from_operands=lambda *args: None),
                    s.auto_matrix,
                ),
                "Need to provide",
            ),
            (
                lambda s: s.text_without_ids(
                    s.partitioned(lambda x: x, sharding_rule=None, propagate_user_sharding=lambda *args: None),
                    s.auto_matrix,
                ),
                "Need to provide",
            ),
            (lambda s: s.module.custom_partitioning(lambda x: x)(s.auto_matrix), ""),
            (lambda s: s.jax.jit(lambda x: s.partitioned(lambda y: x * y)(s.auto_matrix))(s.auto_matrix), ""),
            (lambda s: s.jax.jit(s.partitioned(lambda n, x: x, static=(0,)))(3, s.auto_matrix), ""),
            (lambda s: s.jax.vmap(s.partitioned(s.jnp.sin))(s.auto_matrix), "not implemented"),
            (lambda s: s.jax.grad(lambda x: s.partitioned(s.jnp.sin)(x).sum())(s.auto_matrix), "not implemented"),
            (
                lambda s: s.jax.jit(s.partitioned(s.jnp.sin, partition=lambda *args: 1 / 0))(s.auto_matrix),
                "division by zero",
            ),
            (
                lambda s: s.jax.jit(s.partitioned(s.jnp.sin, partition=lambda *args: None))(s.auto_matrix),
                "cannot unpack",
            ),
            (
                lambda s: s.jax.jit(s.partitioned(s.jnp.sin, lambda x: x[:1]))(s.auto_matrix),
                "Mismatch in result shapes",
            ),
            (
                lambda s: s.jax.jit(s.partitioned(s.jnp.sin, lambda x: (x, x)))(s.auto_matrix),
                "Mismatch in result shapes",
            ),
            (
                lambda s: s.jax.jit(
                    s.partitioned(s.jnp.sin, partition=lambda m, a, r: (m, s.jnp.sin, s.P(), (s.P(),)))
                )(s.auto_matrix),
                "must return Sharding",
            ),
            (
                lambda s: s.jax.jit(s.partitioned(s.jnp.sin, partition=lambda m, a, r: (m, s.jnp.sin, r.sharding, ())))(
                    s.auto_matrix
                ),
                "Tuple arity mismatch",
            ),
            (lambda s: s.jax.jit(s.partitioned(s.jnp.sin, lambda x: s.lax.psum(x, "z")))(s.auto_matrix), ""),
        ],
        **GIVEN,
    )


def test_callbacks_in_the_partitioned_function_are_refused():
    s = side("minijax")
    f = partitioned(s)(s.jnp.sin, lambda x: s.jax.pure_callback(lambda x: x, x, x))
    with pytest.raises(s.jax.errors.JaxRuntimeError, match="cannot call functions on the host"):
        s.jax.jit(f)(s.auto_matrix)


@pytest.mark.parametrize("wrong", ["mesh", "shardings", "nothing"])
def test_a_rule_for_other_devices_is_refused(wrong):
    s = side("minijax")

    def partition(mesh, args, result):
        few = s.NamedSharding(s.mesh_of_4, s.P("x"))
        mesh = {"mesh": s.mesh_of_4, "nothing": None}.get(wrong, mesh)
        return mesh, s.jnp.sin, *((few, (few,)) if wrong == "shardings" else (result.sharding, (args[0].sharding,)))

    with pytest.raises(s.jax.errors.JaxRuntimeError, match="custom_partitioning: a rule return"):
        s.jax.jit(partitioned(s)(s.jnp.sin, partition=partition))(s.auto_matrix)


def test_the_rule_runs_under_the_options_of_its_program():
    s, seen = side("minijax"), []
    f = partitioned(s)(lambda x: x * 2, lambda x: seen.append(s.jnp.ones(1).dtype) or x * 2)
    with s.jax.enable_x64(True):
        s.jax.jit(f)(s.auto_matrix)
    assert seen == ["float64"]


def test_the_rule_runs_once_for_each_program():
    s = side("minijax")
    f = partitioned(s)(lambda x: x * 2)
    run = s.jax.jit(f)
    run(s.auto_matrix), run(s.auto_matrix), run(s.auto_matrix.T)
    assert len(f.notes) == 2
    s.jax.jit(lambda x: f(x))(s.auto_matrix)
    assert len(f.notes) == 3
