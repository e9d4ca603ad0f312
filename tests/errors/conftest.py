"""What the tests of errors share."""

# SPDX-License-Identifier: Apache-2.0
import pytest

import plait.numpy as jnp
from plait import _plait, grad, jit


@pytest.fixture
def unharmed():
    """Asserts that plait works after what a test did to it."""

    def check():
        assert not _plait.is_tracing()
        assert float(jit(lambda x: jnp.sum(x * 2))(jnp.ones(3))) == 6
        assert float(grad(lambda x: x * x)(3.0)) == 6

    return check
