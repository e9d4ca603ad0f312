"""Neural networks: activations, normalisation, attention; initializers as a module of its own; layers as modules.

Every function is C++ and comes from the catalogue, with its documentation. Layers are trees of arrays.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _names
from plait._plait import catalogue as _catalogue

globals().update(_catalogue("nn"))

from plait.nn import initializers  # noqa: E402, F401

# Layers are imported when one of them is asked for: making dataclasses takes milliseconds.
_LAZY = {
    "_module": "Module",
    "_trees": "combine load_weights partition save_weights tree_at",
    "_layers": "BatchNorm BatchNormState Conv Conv1d Conv2d Conv3d Dropout Embedding GroupNorm Lambda LayerNorm Linear MLP RMSNorm Sequential",
    "_sequences": "GRUCell KVCache LSTMCell MultiHeadAttention",
}
_OWNERS = {name: owner for owner, names in _LAZY.items() for name in names.split()}
_missing = _names.missing(__name__, globals(), _OWNERS)


def __getattr__(name):
    if name not in _OWNERS:
        _missing(name)
    import importlib

    value = getattr(importlib.import_module(f"plait.nn.{_OWNERS[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_OWNERS})


__all__ = sorted([*_catalogue("nn"), *_OWNERS, "initializers"])
