"""jax.tools.pgo_nsys_converter: `python -m` this tells XLA's scheduler what a profile of nsys says of instructions."""

from minijax.run.nsys import main as main

if __name__ == "__main__":
    main()
