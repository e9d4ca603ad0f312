"""jax.interpreters: the tables of rules that libraries fill for their own primitives.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking

__getattr__ = lacking(__name__, ["ad", "batching", "mlir", "partial_eval", "xla"])
