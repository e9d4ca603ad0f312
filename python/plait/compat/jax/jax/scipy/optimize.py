"""jax.scipy.optimize over plait's, where it has it.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import door, refused

__getattr__ = door(globals(), "plait.scipy.optimize")
if "minimize" not in globals():
    minimize = refused("jax.scipy.optimize.minimize", "minimisation; optax.lbfgs and jaxopt do it")
