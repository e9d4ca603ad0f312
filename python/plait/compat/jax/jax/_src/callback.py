"""The private home of callbacks.

SPDX-License-Identifier: Apache-2.0
"""

from jax._transforms import io_callback as io_callback, pure_callback as pure_callback
