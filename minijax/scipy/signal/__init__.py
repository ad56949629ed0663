"""Signals: convolutions, trends and spectra."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.scipy.signal.convolutions: convolve convolve2d correlate correlate2d fftconvolve
minijax.scipy.signal.spectra: csd detrend istft stft welch
""",
)
