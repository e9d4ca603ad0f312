"""jax.ad_checkpoint: what checkpoint stores.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait

from jax import _doors
from jax._dtypes import converted
from jax._transforms import checkpoint as checkpoint, checkpoint_policies as checkpoint_policies


def checkpoint_name(x, name):
    """x, a tree, whose arrays policies of checkpoint know by a name."""
    leaves, structure = _plait.flatten(x)
    arrays = [_plait.bind("tag", converted(leaf), name=name) for leaf in leaves]
    return _plait.unflatten(structure, arrays)


__getattr__ = _doors.lacking(__name__)
