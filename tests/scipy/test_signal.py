"""jax.scipy.signal: the calls of `signal.txt`, against jax; what transforms give, and warnings."""

import warnings
from pathlib import Path

import compare
import numpy as np
import pytest
from listed_differences import idle_entries
from scipy_calls import agree_in_double, calls, under

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:Input data is complex")]

WAVE = np.sin(np.arange(20, dtype=np.float32) * 0.7) + np.arange(20, dtype=np.float32) / 8
OPERANDS = {
    "x": WAVE[:5],
    "r": np.array([0.4, 1.25, 3.0], np.float32),
    "L": WAVE,
    "X": WAVE.reshape(4, 5),
    "Y": WAVE[6:12].reshape(3, 2),
    "Z": np.cos(np.arange(24, dtype=np.float32)).reshape(2, 3, 4),
    "F": (np.cos(np.arange(20)) + 1j * np.sin(3.0 * np.arange(20))).reshape(5, 4).astype(np.complex64),
    "i": np.array([1, 2, 5, 3], np.int32),
    "c": np.array([0.5 + 0.25j, -1.5 - 2j, 3 - 1j, 2j], np.complex64),
    "s": np.array(0.6, np.float32),
}
CLOSE = {"rtol": 2e-5, "atol": 2e-5, "why": "XLA fuses the programs of a group in another way"}
CALLS = calls(Path(__file__).parent / "signal.txt", "jax.scipy.signal", OPERANDS, CLOSE)
OTHER_JAXPRS = (
    "jax.scipy.signal.welch(x[:0])",  # the window, which is not read, is not computed
)


@pytest.mark.parametrize("part", range(4))
def test_calls_agree(part, tier):
    cases = CALLS[part::4]
    compare.sweep([c for c in cases if not c.name.startswith(OTHER_JAXPRS)], tier)
    compare.sweep([c for c in cases if c.name.startswith(OTHER_JAXPRS)], tier, jaxpr=False)


def test_calls_agree_in_double_precision(tier):
    agree_in_double(CALLS, tier, 12, OTHER_JAXPRS)


@pytest.mark.parametrize("transform", ["vmap", "jvp", "grad"])
def test_calls_agree_under_transforms(transform, tier):
    compare.sweep(under(transform, [c for c in CALLS if "[:0" not in c.name and "L" not in c.name], tier, 12), tier)


def test_listed_jaxprs_still_differ():
    assert idle_entries(OTHER_JAXPRS, CALLS) == []


def test_long_segments_are_shortened_with_a_warning():
    def program(jax):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = jax.scipy.signal.stft(WAVE), jax.scipy.signal.welch(WAVE, nperseg=30)
        return values, [str(w.message) for w in caught if "greater than" in str(w.message)]

    ours, theirs = compare.both(program)
    assert ours[1] == theirs[1]
    compare.same_value(ours[0], theirs[0], **CLOSE)


def test_an_inverse_transform_restores_the_signal():
    signal = compare.ours().scipy.signal
    _, _, spectra = signal.stft(WAVE, nperseg=8)
    np.testing.assert_allclose(signal.istft(spectra)[1][:20], WAVE, rtol=1e-5, atol=1e-6)
