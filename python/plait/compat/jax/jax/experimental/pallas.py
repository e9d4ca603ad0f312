"""jax.experimental.pallas: kernels in Pallas are not here.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

pallas_call = _doors.refused("jax.experimental.pallas.pallas_call", "kernels in Pallas")
__getattr__ = _doors.lacking(__name__)
