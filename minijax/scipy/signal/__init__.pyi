# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.signal.spectra import convolve as convolve
from minijax.scipy.signal.spectra import convolve2d as convolve2d
from minijax.scipy.signal.spectra import correlate as correlate
from minijax.scipy.signal.spectra import correlate2d as correlate2d
from minijax.scipy.signal.spectra import csd as csd
from minijax.scipy.signal.spectra import detrend as detrend
from minijax.scipy.signal.spectra import fftconvolve as fftconvolve
from minijax.scipy.signal.spectra import istft as istft
from minijax.scipy.signal.spectra import stft as stft
from minijax.scipy.signal.spectra import welch as welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch"
]
