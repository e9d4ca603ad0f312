"""What chex patches to see compilations; plait compiles elsewhere, and this is called by nothing.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import refused

backend_compile = backend_compile_and_load = refused(
    "jax._src.compiler.backend_compile", "XLA's compiler"
)
