"""The contestants: each library under one small interface, in a process of its own."""

# SPDX-License-Identifier: Apache-2.0

import functools
import importlib.metadata
import os
import types

import numpy as np

# In the order of the table. "compile" is PyTorch too, through torch.compile.
NAMES = ("plait", "jax", "torch", "compile", "mlx", "numpy")
MODULES = {"compile": "torch", "mlx": "mlx.core"}
PACKAGES = {"compile": "torch"}


def module_of(name):
    return MODULES.get(name, name)


def version_of(name):
    try:
        return importlib.metadata.version(PACKAGES.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        return getattr(importlib.import_module(module_of(name)), "__version__", "unknown")


def names(module, **more):
    """A module with the names of NumPy, some of them replaced."""
    made = types.ModuleType("names")
    for name in dir(module):
        if not name.startswith("_"):
            try:
                setattr(made, name, getattr(module, name))
            except AttributeError:  # deprecated
                pass
    vars(made).update(more)
    return made


def mapped(function, tree):
    """function of every leaf of tuples (named ones too), lists and dicts."""
    if isinstance(tree, dict):
        return {key: mapped(function, value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [mapped(function, value) for value in tree]
        return parts if isinstance(tree, list) else tuple(parts)
    return None if tree is None else function(tree)


class Library:
    """array and arrays bring NumPy's in, numpy brings results out; xp has NumPy's names; wait ends
    when its argument is computed; jit compiles a function, or says in which ways it can."""

    kind = ""

    def __init__(self, name):
        self.name = name

    def arrays(self, tree):
        return mapped(self.array, tree)

    def numpy(self, tree):
        return mapped(np.asarray, tree)

    def wait(self, value):
        return value

    def waiting(self, function, *arguments):
        """The call, with as little around it as there can be."""
        if type(self).wait is Library.wait:
            return functools.partial(function, *arguments)
        return lambda: self.wait(function(*arguments))

    def jit(self, function, **options):
        return function

    def compilations(self, function):
        """By name, the ways to compile it, of which a row takes the fastest."""
        return {"": self.jit(function)}

    def setup(self, row):
        """What must be set before a row is built."""


class Plait(Library):
    kind = "jaxlike"

    def __init__(self, name):
        super().__init__(name)
        import plait

        self.module, self.lax = plait, plait.lax
        self.xp = names(plait.numpy, erf=plait.lax.erf)

    def jit(self, function, **options):
        return self.module.jit(function, **options)

    def array(self, value):
        return self.module.numpy.array(value)  # a copy: memory that NumPy sees cannot be donated


class Jax(Library):
    kind = "jaxlike"

    def __init__(self, name):
        super().__init__(name)
        import jax

        self.module, self.lax = jax, jax.lax
        self.xp = names(jax.numpy, erf=jax.lax.erf)

    def setup(self, row):
        self.module.config.update("jax_enable_x64", row.x64)

    def wait(self, value):
        return self.module.block_until_ready(value)

    def jit(self, function, **options):
        return self.module.jit(function, **options)

    def array(self, value):
        return self.module.numpy.array(value)


class Torch(Library):
    kind = "torchlike"

    def __init__(self, name):
        super().__init__(name)
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
        self.module = torch

        def maximum(x, y):
            return torch.maximum(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, min=y)

        self.xp = names(torch, maximum=maximum, max=torch.amax, concatenate=torch.cat)

    def array(self, value):
        value = np.asarray(value)
        if value.dtype.name == "bfloat16":
            return self.module.from_numpy(value.astype(np.float32)).bfloat16()
        return self.module.from_numpy(np.array(value))

    def numpy(self, tree):
        def leaf(value):
            if not isinstance(value, self.module.Tensor):
                return np.asarray(value)
            value = value.detach()
            return (value.float() if value.dtype == self.module.bfloat16 else value).numpy()

        return mapped(leaf, tree)


class Compile(Torch):
    """torch.compile, in its default mode and in the one that searches."""

    def setup(self, row):
        self.module._dynamo.reset()

    def jit(self, function, **options):
        return self.module.compile(function, dynamic=False, **options)

    def compilations(self, function):
        modes = ("default", "max-autotune")
        return {mode: self.jit(function, mode=mode) for mode in modes}


class Mlx(Library):
    def __init__(self, name):
        super().__init__(name)
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.module, self.xp = mx, mx
        self.array = mx.array

    def jit(self, function, **options):
        return self.module.compile(function)

    def wait(self, value):
        self.module.eval(value)
        return value


class NumPy(Library):
    def __init__(self, name):
        super().__init__(name)
        self.module = np
        try:
            from scipy.special import erf
        except ImportError:
            erf = None
        self.xp = names(np, erf=erf)

    def array(self, value):
        return np.array(value)


CLASSES = {
    "plait": Plait,
    "jax": Jax,
    "torch": Torch,
    "compile": Compile,
    "mlx": Mlx,
    "numpy": NumPy,
}


def load(name):
    return CLASSES[name](name)


# --- How rows are built ----------------------------------------------------------------------------


def jitted(function):
    """Calls of function(xp, *arrays), compiled where the library compiles."""

    def build(library, *arrays):
        def run(*arrays):
            return function(library.xp, *arrays)

        return compiled(library, run, *arrays)

    return build


def compiled(library, run, *arrays):
    """Calls of run(*arrays), compiled where the library compiles, in the ways that it has."""
    functions = library.compilations(run)
    return {name: library.waiting(function, *arrays) for name, function in functions.items()}


def eager(function):
    """Calls of function(xp, *arrays) as it is."""

    def build(library, *arrays):
        if library.name == "compile":
            return None
        return library.waiting(function, library.xp, *arrays)

    return build
