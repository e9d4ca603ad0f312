"""Effects that are under way: none after a call.

SPDX-License-Identifier: Apache-2.0
"""


def wait_for_tokens():
    """Does nothing: a call has had its effects when it returns."""
