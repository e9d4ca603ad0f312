"""Generator: random numbers with state, which is a key.

SPDX-License-Identifier: Apache-2.0
"""

import functools
from typing import TYPE_CHECKING, Any

from plait import _plait
from plait._key_dtype import KEY
from plait._plait import Array

_functions = _plait.catalogue("random")


class Generator:
    """Random numbers without explicit keys: each draw splits the key that the generator keeps.

    generator.normal(shape) is random.normal(subkey, shape), where random.split(key) gives the generator's next key and
    the subkey; the same holds for every function of plait.random that takes a key. The same seed gives the same bits,
    eagerly and in programs. seed is an integer, or key= a key.

    A generator is a tree with one leaf, its key. A function that takes one, under jit, vmap or scan, draws from a copy:
    to continue from there, return it. A generator made outside a function that is being traced (by jit, say) cannot
    advance inside, because the program would draw the same numbers each time: that is a TracerError. split(n) gives n
    generators in one, which vmap can map over or which can be indexed.
    """

    def __init__(self, seed=None, *, key=None):
        if (seed is None) == (key is None):
            _plait.fail(
                "ValueError",
                "random.Generator: " + ("both a seed and a key" if key is not None else "no seed"),
                "give a seed, an integer, or key=",
            )
        if key is None:
            self.key = _functions["key"](seed)
            return
        key = _plait.to_array(key, "random.Generator")
        if key.dtype != KEY and (key.dtype != "uint32" or key.shape[-1:] != (2,)):
            _plait.fail(
                "ShapeError",
                f"random.Generator: the key is {key.dtype}{list(key.shape)}",
                "give one that random.key or random.split made, or an array of them",
            )
        self.key = _functions["wrap_key_data"](key)

    if TYPE_CHECKING:  # the functions that are turned into methods below

        def __getattr__(self, name: str) -> Any: ...

    def next_key(self):
        """A new key, which no draw of this generator uses."""
        return self._split(2)[1]

    def split(self, num=2):
        """num independent generators in one, with a leading axis: for vmap, or for indexing."""
        return Generator(key=self._split(num + 1)[1:])

    def _split(self, num):
        key = self.key
        if not isinstance(key, Array):
            key = _plait.to_array(key, "random.Generator")
        if key.ndim > 0:
            _plait.fail(
                "ShapeError",
                f"random.Generator: this holds {list(key.shape)} generators, and one draws",
                "map over it with vmap, or take one of them, as in generators[0]",
            )
        keys = _functions["split"](key, num)
        if not _plait.have_same_trace(key, keys):
            _plait.fail(
                "TracerError",
                "random.Generator: a generator that was made outside a function being traced cannot advance inside",
                "pass it to the function as an argument, and return it to go on from there",
            )
        self.key = keys[0]
        return keys

    def __getitem__(self, index):
        if self.key.ndim < 1:
            _plait.fail("IndexError", "random.Generator: one generator was indexed", "use split")
        return Generator(key=self.key[index])

    def __len__(self):
        if self.key.ndim < 1:
            _plait.fail("DtypeError", "random.Generator: one generator has no length", "use split")
        return self.key.shape[0]

    def __repr__(self):
        return f"Generator(key={self.key})"


def _method(name, function):
    @functools.wraps(function)
    def draw(self, *args, **kwargs):
        return function(self.next_key(), *args, **kwargs)

    draw.__qualname__ = f"Generator.{name}"
    draw.__doc__ = f"random.{name} with the next key.\n\n{function.__doc__}"
    return draw


_WITHOUT_KEY = {"key", "PRNGKey", "key_data", "wrap_key_data", "clone", "split", "fold_in"}
for _name, _function in _functions.items():
    if _name not in _WITHOUT_KEY:
        setattr(Generator, _name, _method(_name, _function))


def _unflatten(_, children):
    generator = object.__new__(Generator)
    (generator.key,) = children
    return generator


_plait.register_pytree_node(Generator, lambda generator: ((generator.key,), None), _unflatten, None)
