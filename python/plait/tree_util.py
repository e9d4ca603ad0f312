"""plait.tree under the names of jax.tree_util.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401
from plait import _names
from plait._tree_nodes import (
    KeyEntry,
    KeyPath,
    Partial,
    flatten_one_level,
    flatten_one_level_with_keys,
    register_dataclass,
)
from plait.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    keystr,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    tree_all,
    tree_broadcast,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_reduce_associative,
    tree_structure,
    tree_transpose,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)

__all__ = sorted(name for name in globals() if not name.startswith("_"))
__getattr__ = _names.missing(__name__, globals())
