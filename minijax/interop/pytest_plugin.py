"""A plugin of pytest: with `--minijax-as-jax`, or `minijax_as_jax = true` among its options, tests run on minijax."""

from typing import Any

from minijax.interop.alias import install


def pytest_addoption(parser: Any) -> None:
    """Adds the switch and the option of the configuration file."""
    text = "let jax stand for minijax in the tests"
    parser.getgroup("minijax").addoption("--minijax-as-jax", action="store_true", help=text)
    parser.addini("minijax_as_jax", text, type="bool", default=False)


def pytest_load_initial_conftests(early_config: Any) -> None:
    """Before anything of the tests is imported."""
    if early_config.known_args_namespace.minijax_as_jax or early_config.getini("minijax_as_jax"):
        install()
