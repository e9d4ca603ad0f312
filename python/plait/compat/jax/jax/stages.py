"""jax.stages: the types of jit's stages.

SPDX-License-Identifier: Apache-2.0
"""

from typing import Any

import plait
from plait._stages import Compiled as Compiled, Lowered as Lowered, Traced as Traced

from jax import _doors


def add_options():
    """Lets compile take options of XLA, which say nothing here; part of `import jax`."""
    compile = Lowered.compile
    Lowered.compile = lambda lowered, compiler_options=None, **_: compile(lowered)


Wrapped = plait.JitFunction
CompilerOptions = dict[str, Any]
ArgInfo = plait.ShapeDtypeStruct
__getattr__ = _doors.lacking(__name__)
