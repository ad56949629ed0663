"""Sharding rules: factors, mappings, and the texts that they are parsed from, as jax has them."""

import importlib

import pytest
from compare import outcome, same

RULES = """
CompoundFactor('a', 'b')
CompoundFactor('a')
CompoundFactor('a', 1)
CompoundFactor('1', '2')
CompoundFactor(BATCHING, 'i')
ArrayMapping()
ArrayMapping('i', 'j', 'i')
ArrayMapping('i', CompoundFactor('a', 'b'), 'I')
ArrayMapping(BATCHING, 'i')
ArrayMapping(BATCHING + '1', 'i')
ArrayMapping('i', BATCHING)
ArrayMapping(BATCHING + 'ab')
ArrayMapping('...', 'i')
ArrayMapping('1a')
ArrayMapping('_a')
ArrayMapping('i-j')
ArrayMapping('a1_2')
ArrayMapping('i', 3)
ArrayMapping(('i', 'j'))
SdyShardingRule((ArrayMapping('i', 'j'), ArrayMapping('j', 'k')), (ArrayMapping('i', 'k'),))
SdyShardingRule((ArrayMapping('i'),), (ArrayMapping('i'),), i=3)
SdyShardingRule((ArrayMapping('i'),), (ArrayMapping('i'),), k=3)
SdyShardingRule((ArrayMapping(CompoundFactor('i', 'j')),), (ArrayMapping(CompoundFactor('i', 'j')),), i=3)
SdyShardingRule((ArrayMapping(CompoundFactor('i', 'j')),), (ArrayMapping(CompoundFactor('i', 'j')),), i=3, j=2)
SdyShardingRule((ArrayMapping(CompoundFactor('i', 'j')),), (ArrayMapping('i', 'j'),), i=3)
SdyShardingRule((ArrayMapping('i', 'k'),), (ArrayMapping('i'),), reduction_factors=('k',), permutation_factors=('i',))
SdyShardingRule((ArrayMapping('i'),), (ArrayMapping('i'),), need_replication_factors=('j',))
SdyShardingRule((ArrayMapping('i'),), (ArrayMapping('i'),), need_replication_factors='i')
SdyShardingRule((ArrayMapping('i'),), (ArrayMapping('i'),), reduction_factors=('i',), permutation_factors=('i',))
ArrayMapping('i') == ArrayMapping('i'), CompoundFactor('i', 'j') == ('i', 'j'), BATCHING
parsed('i j, j k -> i k')
parsed('i j,j k->i k')
parsed('... (i j) -> ...1 i j')
parsed('...1 i, ...2 i -> ')
parsed('(i j) k -> (i j) k', i=2, j=4)
parsed('(i j) k -> (i j) k', i=2)
parsed('(i j) k -> (i j) k', i=2., j=4)
parsed('i j -> i j', z=3)
parsed('i j -> i', reduction_factors=('j',))
parsed('i j -> i', reduction_factors=('j',), need_replication_factors=('j',))
parsed('i j -> i', reduction_factors=['j'])
parsed('i ... -> i')
parsed('.. i -> i')
parsed('.... i -> i')
parsed('(... i) j -> i j')
parsed('… i -> i')
parsed('i j')
parsed('')
parsed('i -> i -> i')
parsed('(i j -> i')
parsed('i j) -> i')
parsed(')i j( -> i')
parsed('((i j) k) l -> i')
parsed('(i) j -> i')
parsed('() j -> j')
parsed('1 j -> j')
parsed('i-j -> i')
parsed(3)
parsed(None, i=3)
parsed(lambda *types: 'i -> i', reduction_factors=('i',))
""".strip().splitlines()


@pytest.mark.oracle
@pytest.mark.parametrize("text", RULES)
def test_a_rule_is_that_of_jax(text):
    def run(jax):
        module = importlib.import_module(f"{jax.__name__}.experimental.custom_partitioning")

        def parsed(rule, **how):
            call = module.custom_partitioning(lambda x: x)
            call.def_partition(lambda *args: None, sharding_rule=rule, **how)
            return call.sharding_rule

        result = outcome(lambda: eval(text, {**{n: getattr(module, n) for n in dir(module)}, "parsed": parsed}))
        return str(result.value), type(result.error).__name__

    same(run)
