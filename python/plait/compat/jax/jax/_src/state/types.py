"""The type of the types of mutable references: no value has one.

SPDX-License-Identifier: Apache-2.0
"""


class AbstractRef:
    """The type of a mutable reference."""
