"""jax.tools.pgo_nsys_converter: a script (`python -m`) that converts a profile of nsys for XLA's scheduler."""

from minijax.run.watching.nsys import main as main

if __name__ == "__main__":
    main()
