"""Puts the switch MINIJAX_AS_JAX beside the package: Python runs a `.pth` file of site-packages when it starts."""

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithSwitch(build_py):
    """Builds the package and copies the switch."""

    def run(self):
        super().run()
        if not self.editable_mode:
            self.copy_file("minijax_as_jax.pth", self.build_lib)


setup(cmdclass={"build_py": BuildWithSwitch})
