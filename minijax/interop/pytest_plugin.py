"""A plugin of pytest: with `-p minijax.interop.pytest_plugin` tests run on minijax in place of jax.

It is no entry point, for pytest rewrites the modules of packages that have one.
"""

from minijax.interop.alias import install

install()
