"""A plugin of pytest: with `-p minijax.interop.pytest_plugin` tests, and processes that they start, run on minijax.

It is no entry point, for pytest rewrites the modules of packages that have one.
"""

from minijax.interop.alias import install
from minijax.interop.children import let_children_see_jax

install()
let_children_see_jax()
