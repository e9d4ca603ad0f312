"""jit(f).trace(...), .lower(...) and .compile(), under JAX's names; imported by the first of them.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses

from plait import _plait, numpy
from plait._functions import name_of
from plait._inspect import summary
from plait._plait import flatten, unflatten
from plait._transforms import eval_shape


def _concrete(args, kwargs):
    """The arguments with shapes and dtypes replaced by arrays."""
    leaves, structure = flatten((args, kwargs))
    made = [
        numpy.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, _plait.ShapeDtypeStruct) else leaf
        for leaf in leaves
    ]
    return unflatten(structure, made)


class _Stage:
    def __init__(self, jitted, args, kwargs):
        self._jitted = jitted
        self._args, self._kwargs = _concrete(args, kwargs)
        self.jaxpr = jitted.jaxpr_for(*self._args, **self._kwargs)
        self.fun_name = name_of(jitted)

    @property
    def in_avals(self):
        """The tree (args, kwargs) of the arguments' shapes and dtypes."""
        leaves, structure = flatten((self._args, self._kwargs))
        return unflatten(structure, [_type_of(leaf) for leaf in leaves])

    @property
    def out_info(self):
        """The tree of the result's shapes and dtypes."""
        return eval_shape(lambda: self._jitted(*self._args, **self._kwargs))

    @property
    def in_tree(self):
        """The structure of (args, kwargs)."""
        return flatten((self._args, self._kwargs))[1]

    @property
    def out_tree(self):
        """The structure of the result."""
        return flatten(self.out_info)[1]


class Traced(_Stage):
    """The result of jit(f).trace(...): .jaxpr, .out_info, .lower()."""

    def lower(self):
        return Lowered(self._jitted, self._args, self._kwargs)


class _Program(_Stage):
    def cost_analysis(self):
        """{"flops", "bytes accessed"} of one call, as plait.summary counts them."""
        total = summary(self.jaxpr).total
        return {
            "flops": float(total.flops),
            "bytes accessed": float(total.bytes_read + total.bytes_written),
        }


class Lowered(_Program):
    """The result of jit(f).lower(...): .as_text(), .cost_analysis(), .compile()."""

    def as_text(self):
        """The text of the jaxpr."""
        return str(self.jaxpr)

    def compile(self):
        return Compiled(self._jitted, self._args, self._kwargs)


@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes of one call: inputs (including captured arrays), results, temporaries, and the peak besides inputs."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    peak_memory_in_bytes: int


class Compiled(_Program):
    """The result of .compile(): called with arguments of the same types, it never traces again."""

    def __init__(self, jitted, args, kwargs):
        super().__init__(jitted, args, kwargs)
        self._memory = MemoryAnalysis(*jitted.memory_for(*self._args, **self._kwargs))
        leaves, self._structure = flatten((self._args, self._kwargs))
        self._types = [_type_of(leaf) for leaf in leaves]

    def __call__(self, *args, **kwargs):
        leaves, structure = flatten((args, kwargs))
        types = [_type_of(leaf) for leaf in leaves]
        if structure != self._structure or types != self._types:
            _plait.fail(
                "DtypeError",
                f"`{self.fun_name}` was compiled for ({_text(self._structure, self._types)}), and is called "
                f"with ({_text(structure, types)})",
                "call the jitted function, which compiles for other arguments too",
            )
        return self._jitted(*args, **kwargs)

    def memory_analysis(self):
        return self._memory

    def as_text(self):
        """Where each equation runs."""
        return self._jitted.explain(*self._args, **self._kwargs)


def _type_of(leaf):
    return _plait.aval_of(leaf, "compile") if _plait.is_array_like(leaf) else leaf


def _text(structure, types):
    return ", ".join(f"{structure.path(i)}: {type_}" for i, type_ in enumerate(types))


def trace(jitted, *args, **kwargs):
    return Traced(jitted, args, kwargs)


def lower(jitted, *args, **kwargs):
    return Lowered(jitted, args, kwargs)
