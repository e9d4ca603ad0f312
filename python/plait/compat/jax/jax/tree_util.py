"""jax.tree_util over plait's trees.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

import dataclasses
import functools
from typing import Any

import plait
from plait import _plait
from plait import tree as _tree
from plait.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    keystr,
    treedef_children,
    treedef_is_leaf,
    unflatten as tree_unflatten,
)

from jax import _doors

KeyEntry = Any
KeyPath = tuple[Any, ...]

# --- Dataclasses are leaves unless they are registered -------------------------------------------

_registered: set = set()  # classes that are containers by these functions
_plain: set = set()  # structures without other dataclasses


def _is_foreign(value):
    kind = type(value)
    return kind not in _registered and hasattr(kind, "__dataclass_fields__")


def _holds_foreign(structure):
    """Whether plait sees a container where JAX sees a leaf."""
    data = structure.node_data()
    if data is not None and data[0] not in _registered and hasattr(data[0], "__dataclass_fields__"):
        return True
    return any(map(_holds_foreign, structure.children()))


def _stop(is_leaf):
    return _is_foreign if is_leaf is None else lambda node: is_leaf(node) or _is_foreign(node)


def tree_flatten(tree, is_leaf=None):
    """(leaves, structure) of a tree; is_leaf(node) says where to stop."""
    leaves, structure = _plait.flatten(tree, is_leaf)
    if structure in _plain:
        return leaves, structure
    if _holds_foreign(structure):
        return _plait.flatten(tree, _stop(is_leaf))
    if len(_plain) > 4096:
        _plain.clear()
    _plain.add(structure)
    return leaves, structure


def tree_leaves(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


class TreeMismatch(plait.TreeError, ValueError):
    """Trees that should have one structure, and have not: a ValueError, as in JAX."""


def _like(structure, tree):
    """The subtrees of a tree in the places of the leaves of a structure."""
    try:
        return structure.flatten_up_to(tree)
    except plait.TreeError as error:
        raise TreeMismatch(str(error)) from None


def tree_map(f, tree, *rest, is_leaf=None):
    """The tree of f(leaf, *corresponding subtrees of the others)."""
    leaves, structure = tree_flatten(tree, is_leaf)
    columns = [_like(structure, other) for other in rest]
    return structure.unflatten([f(*row) for row in zip(leaves, *columns)])


def tree_reduce(function, tree, initializer=..., is_leaf=None):
    """Reduces the leaves with function, from the left."""
    leaves = tree_leaves(tree, is_leaf)
    return (
        functools.reduce(function, leaves)
        if initializer is ...
        else functools.reduce(function, leaves, initializer)
    )


def tree_reduce_associative(operation, tree, *, identity=..., is_leaf=None):
    return _tree.reduce_associative(operation, tree_leaves(tree, is_leaf), identity=identity)


def tree_all(tree, *, is_leaf=None):
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable, is_leaf=None):
    """Whether none of these is a container."""
    return all(treedef_is_leaf(tree_structure(item, is_leaf)) for item in iterable)


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), ...], structure) of a tree."""
    structure = tree_structure(tree, is_leaf)
    if _holds_foreign(_plait.flatten(tree, is_leaf)[1]):
        is_leaf = _stop(is_leaf)
    return _tree.leaves_with_path(tree, is_leaf), structure


def tree_leaves_with_path(tree, is_leaf=None):
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(f, tree, *rest, is_leaf=None):
    """The tree of f(path, leaf, *corresponding subtrees of the others)."""
    pairs, structure = tree_flatten_with_path(tree, is_leaf)
    columns = [_like(structure, other) for other in rest]
    return structure.unflatten(
        [f(path, leaf, *others) for (path, leaf), *others in zip(pairs, *columns)]
    )


def tree_broadcast(prefix_tree, full_tree, is_leaf=None):
    """prefix_tree with its leaves repeated to the structure of full_tree."""
    structure = tree_structure(full_tree, is_leaf)
    return structure.unflatten(_plait.broadcast_prefix(prefix_tree, structure, "tree_broadcast"))


def treedef_tuple(treedefs):
    """The structure of a tuple of trees of these structures."""
    return _tree.treedef_tuple(tuple(treedefs))


def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Makes a class a container: flatten_func(x) gives (children, aux), unflatten_func(aux, children) x."""
    _registered.add(nodetype)
    _plain.clear()
    _tree.register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """register_pytree_node with a key for each child."""
    _registered.add(nodetype)
    _plain.clear()
    _tree.register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func)


def _registering(register):
    @functools.wraps(register)
    def registered(cls):
        _registered.add(cls)
        _plain.clear()
        return register(cls)

    return registered


register_pytree_node_class = _registering(_tree.register_pytree_node_class)
register_pytree_with_keys_class = _registering(_tree.register_pytree_with_keys_class)
register_static = _registering(_tree.register_static)


def tree_transpose(outer_treedef, inner_treedef=None, pytree_to_transpose=None):
    """A tree of trees transposed; the inner structure is that of the first inner tree where it is not given."""
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    return _tree.transpose(outer_treedef, inner_treedef, pytree_to_transpose)


def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes a dataclass a container: data_fields are children, meta_fields part of the structure."""
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required for a class that is no dataclass"
            )
        static = [f.name for f in dataclasses.fields(nodetype) if f.metadata.get("static", False)]
        meta_fields = static
        data_fields = [
            f.name for f in dataclasses.fields(nodetype) if f.init and f.name not in static
        ]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)

    def children(value):
        return [getattr(value, name) for name in data_fields], tuple(
            getattr(value, name) for name in meta_fields
        )

    def with_keys(value):
        values, meta = children(value)
        return [(GetAttrKey(name), each) for name, each in zip(data_fields, values)], meta

    def restore(meta, values):
        return nodetype(**dict(zip(data_fields, values)), **dict(zip(meta_fields, meta)))

    register_pytree_node(nodetype, children, restore, with_keys)
    return nodetype


class Partial(functools.partial):
    """functools.partial as a tree, whose children are the arguments."""


def _partial_children(value):
    return (value.args, value.keywords), value.func


register_pytree_with_keys(
    Partial,
    lambda value: (
        ((GetAttrKey("args"), value.args), (GetAttrKey("keywords"), value.keywords)),
        value.func,
    ),
    lambda func, children: Partial(func, *children[0], **children[1]),
    _partial_children,
)


def is_tree_node(value):
    """Whether a value is a container."""
    return not treedef_is_leaf(tree_structure(value, lambda node: node is not value))


def flatten_one_level(tree):
    """The children of a container, and its data."""
    leaves, structure = tree_flatten(tree, lambda node: node is not tree)
    return leaves, structure.node_data()[1] if structure.node_data() else None


class _Registry:
    """The registry of containers: plait's own."""

    def flatten(self, tree, is_leaf=None):
        return tree_flatten(tree, is_leaf)

    def flatten_one_level(self, tree):
        return flatten_one_level(tree) if is_tree_node(tree) else None


default_registry = _Registry()
__getattr__ = _doors.lacking(__name__)
__all__ = _doors.public(globals())
