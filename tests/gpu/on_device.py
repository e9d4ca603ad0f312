"""A plugin of pytest (-p on_device): new arrays of a test lie on the GPU, and it computes there.

SPDX-License-Identifier: Apache-2.0
"""

import pytest

import plait


@pytest.fixture(autouse=True)
def new_arrays_on_the_device():
    with plait.default_device("cuda:0"):
        yield
