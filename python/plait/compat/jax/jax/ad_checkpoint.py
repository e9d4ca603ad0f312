"""jax.ad_checkpoint: what checkpoint stores.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors
from jax._transforms import checkpoint as checkpoint, checkpoint_policies as checkpoint_policies

checkpoint_name = None
_doors.take(globals(), __import__("plait"), "checkpoint_name")
if checkpoint_name is None:
    checkpoint_name = _doors.refused(
        "jax.ad_checkpoint.checkpoint_name", "names of results for policies"
    )
__getattr__ = _doors.lacking(__name__)
