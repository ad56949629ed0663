"""Linear algebra."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.scipy.linalg.systems: cho_factor cho_solve cholesky det inv lu_factor lu_solve solve solve_triangular
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
