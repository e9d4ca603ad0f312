"""SciPy's names: signals, images, solvers, minimisation, linear algebra, special functions, distributions.

SPDX-License-Identifier: Apache-2.0
"""

import importlib as _importlib

from plait import _names

# Imported where they are used, for `import plait` to be quick.
_LAZY = (
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats",
)  # fmt: skip
_missing = _names.missing(__name__, globals(), _LAZY)


def __getattr__(name):
    if name in _LAZY:
        return _importlib.import_module(f"plait.scipy.{name}")
    _missing(name)


def __dir__():
    return sorted({*globals(), *_LAZY})


__all__ = [*_LAZY]
