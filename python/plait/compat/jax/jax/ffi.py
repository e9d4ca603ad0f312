"""jax.ffi: calls of libraries by XLA are not here; jax.pure_callback calls the host.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

ffi_call = _doors.refused("jax.ffi.ffi_call", "calls by XLA; use jax.pure_callback")
__getattr__ = _doors.lacking(__name__)
