"""Types of effects that may be in loops: any; plait orders effects itself.

SPDX-License-Identifier: Apache-2.0
"""


class EffectTypeSet:
    """A set of types of effects."""

    def __init__(self):
        self._types = set()

    def add_type(self, effect_type):
        self._types.add(effect_type)

    def contains(self, effect):
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = EffectTypeSet()
