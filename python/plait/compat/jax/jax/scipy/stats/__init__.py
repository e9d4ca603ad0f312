"""jax.scipy.stats over plait's: distributions, a module each.

SPDX-License-Identifier: Apache-2.0
"""

import importlib as _importlib
import pkgutil as _pkgutil
import sys as _sys

import plait.scipy.stats as _stats

from jax._doors import door, refused

__getattr__ = door(globals(), "plait.scipy.stats")

for _found in _pkgutil.iter_modules(_stats.__path__):
    if not _found.name.startswith("_"):
        _module = _importlib.import_module(f"plait.scipy.stats.{_found.name}")
        globals()[_found.name] = _sys.modules[f"{__name__}.{_found.name}"] = _module

# numpyro imports it, and uses it in one sampler.
if "gaussian_kde" not in globals():
    gaussian_kde = refused("jax.scipy.stats.gaussian_kde", "estimates of densities by kernels")
