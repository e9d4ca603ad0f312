"""jax.export: programs as StableHLO are not here; plait.save and plait.load keep programs.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

export = _doors.refused(
    "jax.export.export", "programs as StableHLO; plait.save(path, f, *args) saves a program"
)
deserialize = _doors.refused(
    "jax.export.deserialize", "programs as StableHLO; plait.load(path) loads plait's"
)
__getattr__ = _doors.lacking(__name__)
