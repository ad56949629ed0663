"""Runs a Python program in which `jax` is minijax: `python -m minijax PROGRAM`, `-m MODULE` or `-c CODE`."""

from minijax.interop.command import main

if __name__ == "__main__":
    main()
