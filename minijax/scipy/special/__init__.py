"""Special functions."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.scipy.special.logarithms: boxcox boxcox1p entr expit kl_div logit rel_entr xlog1py xlogy
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
