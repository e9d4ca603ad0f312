"""Every public function and class has a docstring that says something.

SPDX-License-Identifier: Apache-2.0
"""

import importlib
import inspect
import re

import pytest

import plait

MODULES = (
    "debug dtypes flatten_util image lax lax.linalg nn nn.initializers numpy numpy.linalg ops optim random sparse scipy.linalg scipy.special scipy.stats "
    "tree tree_util"
).split() + [
    f"scipy.stats.{name}"
    for name, part in vars(plait.scipy.stats).items()
    if inspect.ismodule(part) and name in plait.scipy.stats.__all__
]


def pages():
    for name in ["", *MODULES]:
        module = importlib.import_module(f"plait.{name}".rstrip("."))
        yield module.__name__, module.__doc__
        for member in getattr(module, "__all__", dir(module)):
            value = getattr(module, member)
            owner = getattr(value, "__module__", None) or ""
            if member.startswith("_") or not callable(value) or not owner.startswith("plait"):
                continue
            yield f"{module.__name__}.{member}", value.__doc__
            if inspect.isclass(value):
                for method, function in vars(value).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{module.__name__}.{member}.{method}", function.__doc__


@pytest.mark.parametrize("name, page", list(pages()))
def test_pages_say_something(name, page):
    assert page and page.strip(), f"{name} has no documentation"
    text = page.strip()
    if re.match(r"\w+\(.*\)( -> \w+)?$", text.splitlines()[0]):  # the signature
        text = text.partition("\n\n")[2]
    sentence = " ".join(text.partition("\n\n")[0].split())
    assert len(sentence.split()) >= 3 and sentence.rstrip()[-1] in ".:)", f"{name}: {sentence!r}"


@pytest.mark.parametrize(
    "name",
    ["T", "at", "shape", "dtype", "item", "astype", "tolist", "block_until_ready", "reshape"],
)
def test_members_of_arrays_are_documented(name):
    assert getattr(plait.Array, name).__doc__
