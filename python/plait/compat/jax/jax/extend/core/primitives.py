"""jax.extend.core.primitives: JAX's primitives that plait has, by name.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking
from jax._primitives import existing

_lacking = lacking(__name__)


def __getattr__(name):
    found = existing(name[:-2]) if name.endswith("_p") else None
    return found if found is not None else _lacking(name)
