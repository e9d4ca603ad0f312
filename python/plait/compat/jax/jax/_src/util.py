"""Functions of sequences.

SPDX-License-Identifier: Apache-2.0
"""

from jax.api_util import safe_map as safe_map, safe_zip as safe_zip


def unzip2(pairs):
    """The first and the second elements of pairs."""
    pairs = list(pairs)
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
