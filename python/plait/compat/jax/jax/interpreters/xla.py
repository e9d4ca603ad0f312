"""jax.interpreters.xla: XLA is not here.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking

canonicalize_dtype_handlers: dict = {}
__getattr__ = lacking(__name__)
