"""The requirements of the array API standard for the namespace and for arrays, compared with jax."""

import numpy as np
import pytest
from compare import same

import minijax
import minijax.numpy as jnp

pytestmark = pytest.mark.oracle

KINDS = (None, "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
         "numeric", ("bool", "integral"))  # fmt: skip


@pytest.mark.parametrize("x64", [False, True])
def test_the_namespace_tells_its_dtypes(x64):
    def told(jax, jnp):
        info = jnp.__array_namespace_info__()
        with jax.enable_x64(x64):
            return [info.dtypes(kind=kind) for kind in KINDS], info.default_dtypes(), info.capabilities()

    same(told)


def test_the_namespace_tells_its_devices():
    info = jnp.__array_namespace_info__()
    assert info.devices() == [None, *minijax.devices()] and info.default_device() is None
    assert jnp.__array_api_version__ == "2024.12"
    same(lambda jnp: jnp.__array_namespace_info__().dtypes(kind="bogus"), raises=True)


def test_arrays_know_their_namespace():
    assert jnp.ones(3).__array_namespace__() is jnp


@pytest.mark.parametrize("version", ["2024.12", None, "1.0"])
def test_arrays_know_the_versions_of_their_namespace(version):
    def program(jnp):
        return bool(jnp.ones(3).__array_namespace__(api_version=version))

    same(program, raises=version == "1.0")


# As a library that uses only the standard would.
def test_a_function_of_the_standard_runs():
    def standardized(x):
        xp = x.__array_namespace__()
        x = xp.astype(x, xp.__array_namespace_info__().default_dtypes()["real floating"])
        return xp.matrix_transpose((x - xp.mean(x, axis=0)) / xp.std(x, axis=0, correction=1))

    same(lambda jnp: standardized(jnp.asarray(np.arange(6).reshape(3, 2) ** 2)))
