"""The private home of jax.tree_util.

SPDX-License-Identifier: Apache-2.0
"""

import collections

from plait import _plait

from jax.tree_util import *  # noqa: F403


class _Registry:
    """The classes of containers, for `in`."""

    def __contains__(self, kind):
        return kind in _CONTAINERS or _plait.is_registered(kind)


_CONTAINERS = (tuple, list, dict, type(None), collections.OrderedDict, collections.defaultdict)
_registry = _Registry()
