"""jax.stages: the types of jit's stages.

SPDX-License-Identifier: Apache-2.0
"""

from typing import Any

import plait
from plait._stages import Compiled as Compiled, Lowered as Lowered, Traced as Traced

from jax import _doors


class _Compiled(Compiled):
    """plait's Compiled, which is called without the static arguments, as in JAX."""

    def __call__(self, *args, **kwargs):
        options = getattr(self._jitted.__wrapped__, "static_options", {})
        numbers, names = options.get("static_argnums", ()), options.get("static_argnames", ())
        numbers = (numbers,) if isinstance(numbers, int) else numbers
        names = (names,) if isinstance(names, str) else names
        count = len(self._args)
        static = {number % count for number in numbers if -count <= number < count}
        if len(args) == count - len(static):
            given = iter(args)
            args = [arg if i in static else next(given) for i, arg in enumerate(self._args)]
        fixed = {name: self._kwargs[name] for name in names if name in self._kwargs}
        return super().__call__(*args, **{**fixed, **kwargs})


def add_options():
    """Lets compile take options of XLA, which say nothing here; part of `import jax`."""
    Lowered.compile = lambda lowered, compiler_options=None, **_: _Compiled(
        lowered._jitted, lowered._args, lowered._kwargs
    )


Wrapped = plait.JitFunction
CompilerOptions = dict[str, Any]
ArgInfo = plait.ShapeDtypeStruct
__getattr__ = _doors.lacking(__name__)
