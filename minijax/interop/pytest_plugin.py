"""A pytest plugin: with `-p minijax.interop.pytest_plugin`, tests and their subprocesses run on minijax.

It is not registered as an entry point, because pytest rewrites the modules of packages that have one.
"""

from minijax.interop.alias import install
from minijax.interop.children import let_children_see_jax

install()
let_children_see_jax()
