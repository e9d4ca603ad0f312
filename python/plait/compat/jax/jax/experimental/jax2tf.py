"""jax.experimental.jax2tf: TensorFlow is not here.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

convert = _doors.refused(
    "jax.experimental.jax2tf.convert", "conversion to TensorFlow; plait.save saves a program"
)
call_tf = _doors.refused(
    "jax.experimental.jax2tf.call_tf", "calls of TensorFlow; use jax.pure_callback"
)
__getattr__ = _doors.lacking(__name__)
