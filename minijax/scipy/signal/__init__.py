"""Signals: convolutions, trends and spectra."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.scipy.signal.spectra: convolve convolve2d correlate correlate2d csd detrend fftconvolve istft stft welch
""",
)
