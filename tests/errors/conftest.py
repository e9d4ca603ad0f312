"""What the tests of errors share."""

# SPDX-License-Identifier: Apache-2.0
import sys
import threading

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


@pytest.fixture
def at_once():
    """Runs works, functions without arguments, in threads that switch often; the first failure is the test's."""

    def run(works):
        failures = []

        def guarded(work):
            try:
                work()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        switch = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(switch)
        assert not failures, failures[0]

    return run
