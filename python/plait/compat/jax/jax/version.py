"""The version of JAX whose names these are.

SPDX-License-Identifier: Apache-2.0
"""

__version__ = "0.10.2"
__version_info__ = (0, 10, 2)
