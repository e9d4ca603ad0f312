"""Named scopes: which equations are in them, under transforms and on every path out of them.

SPDX-License-Identifier: Apache-2.0
"""

import pytest

import plait
import plait.numpy as jnp


def test_results_do_not_depend_on_scopes():
    def plain(x):
        return jnp.sin(x) * x

    @plait.named_scope("outer")
    def scoped(x):
        with plait.named_scope("inner"):
            y = jnp.sin(x)
        return y * x

    assert str(plait.make_jaxpr(plait.grad(plain))(1.0)) == str(
        plait.make_jaxpr(plait.grad(scoped))(1.0)
    )
    assert float(plait.grad(scoped)(1.0)) == float(plait.grad(plain)(1.0))


def test_an_error_leaves_the_scope():
    with pytest.raises(ZeroDivisionError):
        with plait.named_scope("a"):
            raise ZeroDivisionError
    with plait.named_scope("b"), plait.named_scope("b"):
        assert float(jnp.sin(0.0)) == 0


@pytest.mark.parametrize("name", ["", None, 3])
def test_names_are_texts(name):
    with pytest.raises(plait.ValueError, match="named_scope: the name is"):
        plait.named_scope(name)
