"""Containers of JAX's tree_util: dataclasses with static fields, functions with arguments, one level of a tree.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import functools
from typing import Any

from plait import _plait, tree

KeyEntry = Any
KeyPath = tuple[Any, ...]


def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes a class a container whose data_fields are children and whose meta_fields are part of the structure.

    Dataclasses are containers without it, by their fields and those that tree.static() declares; here the names say which
    are which, and drop_fields are in neither. The class is made of these fields as keywords. Returns nodetype.
    """
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            _plait.fail(
                "TreeError",
                f"register_dataclass: {nodetype.__name__} is no dataclass",
                "give data_fields and meta_fields",
            )
        fields = [field for field in dataclasses.fields(nodetype) if field.init]
        meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
        data_fields = [field.name for field in fields if field.name not in meta_fields]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)
    if dataclasses.is_dataclass(nodetype):
        known = {field.name for field in dataclasses.fields(nodetype) if field.init}
        if known != {*data_fields, *meta_fields, *drop_fields} & known:
            _plait.fail(
                "TreeError",
                f"register_dataclass: the fields {sorted(known - {*data_fields, *meta_fields, *drop_fields})} of "
                f"{nodetype.__name__} are not named",
                "name each in data_fields, meta_fields or drop_fields",
            )

    def flatten(value):
        return [getattr(value, name) for name in data_fields], tuple(
            getattr(value, name) for name in meta_fields
        )

    def flatten_with_keys(value):
        children, meta = flatten(value)
        return [(tree.GetAttrKey(name), child) for name, child in zip(data_fields, children)], meta

    def unflatten(meta, children):
        return nodetype(**dict(zip(data_fields, children)), **dict(zip(meta_fields, meta)))

    tree.register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


class Partial(functools.partial):
    """functools.partial as a tree: the arguments are children, and the function is part of the structure."""


tree.register_pytree_node(
    Partial,
    lambda value: ((value.args, value.keywords), value.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda value: (
        ((tree.GetAttrKey("args"), value.args), (tree.GetAttrKey("keywords"), value.keywords)),
        value.func,
    ),
)


def _children(what, node):
    children, structure = tree.flatten(node, lambda each: each is not node)
    if tree.treedef_is_leaf(structure):
        _plait.fail(
            "TreeError", f"{what}: {type(node).__name__} is no container", "give a container"
        )
    data = structure.node_data()
    return children, data[1] if data else None


def flatten_one_level(tree):
    """(children, data) of a container; TreeError for a leaf."""
    return _children("flatten_one_level", tree)


def flatten_one_level_with_keys(tree):
    """((key, child) pairs, data) of a container; TreeError for a leaf."""
    from plait.tree import leaves_with_path

    _, data = _children("flatten_one_level_with_keys", tree)
    pairs = leaves_with_path(tree, lambda each: each is not tree)
    return [(path[0], child) for path, child in pairs], data
