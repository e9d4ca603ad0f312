"""The libraries of tests/bench on a GPU: arrays lie there, and calls only submit work.

SPDX-License-Identifier: Apache-2.0
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))

import libraries  # noqa: E402

NAMES = ("plait", "torch", "compile", "jax")


class Plait(libraries.Plait):
    def array(self, value):
        return self.module.asarray(np.asarray(value), device="cuda:0")

    def sync(self, value):
        self.module.block_until_ready(value)

    def release(self):
        self.module.clear_memory()


class Jax(libraries.Jax):
    wait = libraries.Library.wait

    def __init__(self, name):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.12")  # which it keeps
        super().__init__(name)

    def sync(self, value):
        self.module.block_until_ready(value)

    def release(self):
        pass


class Torch(libraries.Torch):
    def __init__(self, name):
        super().__init__(name)
        self.has_gpu = self.module.cuda.is_available()  # in a rehearsal there is none
        # Made where the arrays are: torch.arange and its like.
        self.module.set_default_device("cuda" if self.has_gpu else "cpu")

    def array(self, value):
        made = super().array(value)
        return made.cuda() if self.has_gpu else made

    def numpy(self, tree):
        return libraries.mapped(
            lambda leaf: self.leaf(leaf) if hasattr(leaf, "detach") else np.asarray(leaf), tree
        )

    def leaf(self, value):
        value = value.detach()
        return (value.float() if value.dtype == self.module.bfloat16 else value).cpu().numpy()

    def sync(self, value):
        if self.has_gpu:
            self.module.cuda.synchronize()

    def release(self):
        if self.has_gpu:
            self.module.cuda.empty_cache()


class Compile(Torch):
    """torch.compile with captured graphs."""

    def setup(self, row):
        self.module._dynamo.reset()

    def jit(self, function, **options):
        return self.module.compile(function, dynamic=False, mode="reduce-overhead")


def load(name):
    kind = {"plait": Plait, "jax": Jax, "torch": Torch, "compile": Compile}[name]
    return kind(name)


def set_rules(library, rounds):
    """What a row wants of the library: whether products of float32 may round their factors to tf32
    (PLAIT_TF32 says so to plait), and nothing that an earlier row wanted."""
    if library.kind == "torchlike":
        library.module.use_deterministic_algorithms(False)
        library.module.backends.cuda.matmul.allow_tf32 = rounds
        library.module.backends.cudnn.allow_tf32 = rounds
    elif library.name == "jax":
        precision = "tensorfloat32" if rounds else "float32"
        library.module.config.update("jax_default_matmul_precision", precision)
