"""plait's drop-in for jaxlib: its version. The compiler that jaxlib binds is not here.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking
from jax.version import __version__ as __version__

__getattr__ = lacking(__name__)
