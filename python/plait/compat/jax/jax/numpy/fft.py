"""jax.numpy.fft over plait's.

SPDX-License-Identifier: Apache-2.0
"""

from plait.numpy import fft as _fft

from jax._doors import door
from jax._dtypes import creating

fftfreq, rfftfreq = creating(_fft.fftfreq), creating(_fft.rfftfreq)
__getattr__ = door(globals(), "plait.numpy.fft")
