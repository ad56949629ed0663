"""Sharding rules: factors, mappings, and the texts that they are parsed from, as jax has them."""

import importlib

import pytest
from compare import outcome, same
from given import given

RULES = [
    lambda CompoundFactor: CompoundFactor("a", "b"),
    lambda CompoundFactor: CompoundFactor("a"),
    lambda CompoundFactor: CompoundFactor("a", 1),
    lambda CompoundFactor: CompoundFactor("1", "2"),
    lambda CompoundFactor, BATCHING: CompoundFactor(BATCHING, "i"),
    lambda ArrayMapping: ArrayMapping(),
    lambda ArrayMapping: ArrayMapping("i", "j", "i"),
    lambda CompoundFactor, ArrayMapping: ArrayMapping("i", CompoundFactor("a", "b"), "I"),
    lambda ArrayMapping, BATCHING: ArrayMapping(BATCHING, "i"),
    lambda ArrayMapping, BATCHING: ArrayMapping(BATCHING + "1", "i"),
    lambda ArrayMapping, BATCHING: ArrayMapping("i", BATCHING),
    lambda ArrayMapping, BATCHING: ArrayMapping(BATCHING + "ab"),
    lambda ArrayMapping: ArrayMapping("...", "i"),
    lambda ArrayMapping: ArrayMapping("1a"),
    lambda ArrayMapping: ArrayMapping("_a"),
    lambda ArrayMapping: ArrayMapping("i-j"),
    lambda ArrayMapping: ArrayMapping("a1_2"),
    lambda ArrayMapping: ArrayMapping("i", 3),
    lambda ArrayMapping: ArrayMapping(("i", "j")),
    lambda ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping("i", "j"), ArrayMapping("j", "k")), (ArrayMapping("i", "k"),)
    ),
    lambda ArrayMapping, SdyShardingRule: SdyShardingRule((ArrayMapping("i"),), (ArrayMapping("i"),), i=3),
    lambda ArrayMapping, SdyShardingRule: SdyShardingRule((ArrayMapping("i"),), (ArrayMapping("i"),), k=3),
    lambda CompoundFactor, ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping(CompoundFactor("i", "j")),), (ArrayMapping(CompoundFactor("i", "j")),), i=3
    ),
    lambda CompoundFactor, ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping(CompoundFactor("i", "j")),), (ArrayMapping(CompoundFactor("i", "j")),), i=3, j=2
    ),
    lambda CompoundFactor, ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping(CompoundFactor("i", "j")),), (ArrayMapping("i", "j"),), i=3
    ),
    lambda ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping("i", "k"),), (ArrayMapping("i"),), reduction_factors=("k",), permutation_factors=("i",)
    ),
    lambda ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping("i"),), (ArrayMapping("i"),), need_replication_factors=("j",)
    ),
    lambda ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping("i"),), (ArrayMapping("i"),), need_replication_factors="i"
    ),
    lambda ArrayMapping, SdyShardingRule: SdyShardingRule(
        (ArrayMapping("i"),), (ArrayMapping("i"),), reduction_factors=("i",), permutation_factors=("i",)
    ),
    lambda CompoundFactor, ArrayMapping, BATCHING: (
        ArrayMapping("i") == ArrayMapping("i"),
        CompoundFactor("i", "j") == ("i", "j"),
        BATCHING,
    ),
    lambda parsed: parsed("i j, j k -> i k"),
    lambda parsed: parsed("i j,j k->i k"),
    lambda parsed: parsed("... (i j) -> ...1 i j"),
    lambda parsed: parsed("...1 i, ...2 i -> "),
    lambda parsed: parsed("(i j) k -> (i j) k", i=2, j=4),
    lambda parsed: parsed("(i j) k -> (i j) k", i=2),
    lambda parsed: parsed("(i j) k -> (i j) k", i=2.0, j=4),
    lambda parsed: parsed("i j -> i j", z=3),
    lambda parsed: parsed("i j -> i", reduction_factors=("j",)),
    lambda parsed: parsed("i j -> i", reduction_factors=("j",), need_replication_factors=("j",)),
    lambda parsed: parsed("i j -> i", reduction_factors=["j"]),
    lambda parsed: parsed("i ... -> i"),
    lambda parsed: parsed(".. i -> i"),
    lambda parsed: parsed(".... i -> i"),
    lambda parsed: parsed("(... i) j -> i j"),
    lambda parsed: parsed("… i -> i"),
    lambda parsed: parsed("i j"),
    lambda parsed: parsed(""),
    lambda parsed: parsed("i -> i -> i"),
    lambda parsed: parsed("(i j -> i"),
    lambda parsed: parsed("i j) -> i"),
    lambda parsed: parsed(")i j( -> i"),
    lambda parsed: parsed("((i j) k) l -> i"),
    lambda parsed: parsed("(i) j -> i"),
    lambda parsed: parsed("() j -> j"),
    lambda parsed: parsed("1 j -> j"),
    lambda parsed: parsed("i-j -> i"),
    lambda parsed: parsed(3),
    lambda parsed: parsed(None, i=3),
    lambda parsed: parsed(lambda *types: "i -> i", reduction_factors=("i",)),
]


@pytest.mark.oracle
@pytest.mark.parametrize("call", RULES)
def test_a_rule_is_that_of_jax(call):
    def run(jax):
        module = importlib.import_module(f"{jax.__name__}.experimental.custom_partitioning")

        def parsed(rule, **how):
            call = module.custom_partitioning(lambda x: x)
            call.def_partition(lambda *args: None, sharding_rule=rule, **how)
            return call.sharding_rule

        result = outcome(lambda: given(call, {**{n: getattr(module, n) for n in dir(module)}, "parsed": parsed}))
        return str(result.value), type(result.error).__name__

    same(run)
