"""`custom_partitioning`: functions with user-defined partitioning over devices."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.custom import _resolve_kwargs
from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import errors, source, tree
from minijax.calls.custom_partitioning import custom_partitioning_p
from minijax.ir.body import Flat, function_name, signature_of, source_of, trace_flat
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray, typeof
from minijax.partition.factors import SdyShardingRule, parse_rule
from minijax.partition.shardings import Sharding


def _description(aval: ShapedArray, sharding: Sharding) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)


class custom_partitioning:  # noqa: N801
    """A function whose computation on each device is defined by `def_partition`.

    The arguments `static_argnums` are passed to the user's functions unchanged. It cannot be differentiated or
    batched: wrap it in functions with rules for that.
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()):
        self.fun = fun
        self.partition: Callable | None = None
        self.static_argnums = static_argnums
        self.propagate_user_sharding: Callable | None = None
        self.infer_sharding_from_operands: Callable | None = None
        self.sharding_rule: Any = None

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable | None = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable:
        """Sets how calls are partitioned, and returns `partition`: (*static arguments, mesh, arguments, result) ->
        (mesh, function of one device's parts, shardings of the result, shardings of the arguments), where arguments
        and result are trees of ShapeDtypeStruct with the shardings that the compiler has chosen.

        It chooses them by `sharding_rule`: a string with the factors of all dimensions (`i j, j k -> i k`), a rule, or
        a function (*static arguments, mesh, types, result types) -> one of these. The arguments after it name factors
        of a string. The two functions that propagate shardings are never called: Shardy uses rules instead, and
        without one they are rejected. Without `decode_shardings`, shardings do not name mesh axes.
        """
        special = dict(
            reduction_factors=reduction_factors,
            need_replication_factors=need_replication_factors,
            permutation_factors=permutation_factors,
        )
        how = {name: factors for name, factors in special.items() if factors} | factor_sizes
        if sharding_rule is None or callable(sharding_rule) or isinstance(sharding_rule, SdyShardingRule):
            if how:
                raise ValueError(f"def_partition: Unknown keyword arguments: {how}")
        else:
            sharding_rule = parse_rule(sharding_rule, **how)
        self.partition, self.sharding_rule = partition, sharding_rule
        self.propagate_user_sharding = propagate_user_sharding
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.decode_shardings = decode_shardings
        return partition

    @source.boundary
    def __call__(self, *args, **kwargs):
        name = function_name(self.fun)
        if self.partition is None:
            raise AttributeError(f"custom_partitioning: def_partition was not called for {name}")
        args = _resolve_kwargs(signature_of(self.fun), args, kwargs)
        static = {i: args[i] for i in self.static_argnums if 0 <= i < len(args)}
        if any(isinstance(x, Tracer) for value in static.values() for x in tree.tree_leaves(value)):
            raise errors.UnexpectedTracerError(
                f"custom_partitioning: a static argument of {name} is a traced value; static_argnums must be arguments "
                "that are known when it is called"
            )
        places = [i for i in range(len(args)) if i not in static]

        def fun(*dynamic):
            merged = static | dict(zip(places, dynamic, strict=True))
            return self.fun(*[merged[i] for i in range(len(args))])

        leaves, in_tree = tree.flatten(tuple([args[i] for i in places]))
        info = DebugInfo("custom_partitioning", source_of(self.fun))
        body = trace_flat(Flat(fun, in_tree), [typeof(x) for x in leaves], info)
        if body.captured:
            raise AssertionError(f"custom_partitioning: {name} captures arrays, which must be arguments")
        results = custom_partitioning_p.bind(
            *leaves, call=body.closed, partition=(self.partition, _description), sharding_rule=self.sharding_rule,
            propagate_user_sharding=self.propagate_user_sharding, in_tree=in_tree, out_tree=body.out_tree,
            infer_sharding_from_operands=self.infer_sharding_from_operands,
            decode_shardings=self.decode_shardings, static_args=tuple([args[i] for i in static]),
        )  # fmt: skip
        return body.out_tree.unflatten(results)
