"""Random programs run on jax and minijax alike."""

import compare
import jax

import minijax


def check(program):
    with minijax.enable_x64(program.x64), jax.enable_x64(program.x64):
        compare.check(program.case())
