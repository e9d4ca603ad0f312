"""jax.tree_util over plait's trees, in a process in which dataclasses are leaves unless they are registered.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

import dataclasses

import plait
from plait import _plait
from plait.tree_util import *  # noqa: F403
from plait.tree_util import (
    flatten_one_level as _flatten_one_level,
    register_dataclass as _register_dataclass,
    tree_flatten,
    tree_structure,
    tree_transpose as _tree_transpose,
    treedef_is_leaf,
)

from jax import _doors

_plait.set_every_dataclass_is_a_tree(False)


def _text(structure):
    """A structure as JAX writes it."""
    if treedef_is_leaf(structure):
        return "*"
    kind, data = structure.node_data()
    parts = [_text(child) for child in structure.children()]
    inner = ", ".join(parts)
    if kind in (tuple, list, dict, type(None)):
        pairs = ", ".join(f"{key!r}: {part}" for key, part in zip(data or (), parts))
        comma = "," if len(parts) == 1 else ""
        return {tuple: f"({inner}{comma})", list: f"[{inner}]", dict: f"{{{pairs}}}"}.get(
            kind, "None"
        )
    is_named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    head = f"namedtuple[{kind.__name__}]" if is_named else f"{kind.__name__}[{data}]"
    return f"CustomNode({head}, [{inner}])"


_plait.TreeDef.__repr__ = _plait.TreeDef.__str__ = (
    lambda structure: f"PyTreeDef({_text(structure)})"
)


def tree_transpose(outer_treedef, inner_treedef=None, pytree_to_transpose=None):
    """A tree of trees transposed; the inner structure is that of the first inner tree where it is not given."""
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    found, expected = tree_structure(pytree_to_transpose), outer_treedef.compose(inner_treedef)
    if found != expected:
        raise TypeError(f"Mismatch\n{expected}\n != \n{found}")
    return _tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose)


def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes a dataclass a container: data_fields are children, meta_fields part of the structure."""
    is_dataclass = hasattr(nodetype, "__dataclass_fields__")
    if (data_fields is None or meta_fields is None) and not is_dataclass:
        raise TypeError(
            "register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. "
            f"Got {nodetype=}."
        )
    if data_fields is not None and meta_fields is not None:
        data, meta = set(data_fields), set(meta_fields)
        if data & meta:
            raise ValueError(f"data_fields and meta_fields must not overlap, got {data & meta}")
        fields = dataclasses.fields(nodetype) if is_dataclass else ()
        known = {field.name for field in fields if field.init} - set(drop_fields)
        text = "data_fields and meta_fields must include all dataclass fields"
        if is_dataclass and known - data - meta:
            raise ValueError(f"{text} with init=True. Missing fields: {known - data - meta}")
        if is_dataclass and (data | meta) - known:
            raise ValueError(f"{text} and only those. Unexpected fields: {(data | meta) - known}")
    return _register_dataclass(nodetype, data_fields, meta_fields, drop_fields)


def _raise_difference(structure, tree):
    """Raises ValueError in JAX's words where a tree first differs from a structure of which it is to be an extension."""
    if treedef_is_leaf(structure):
        return
    kind, data = structure.node_data() or (type(None), None)
    parts, named = structure.children(), lambda value: hasattr(type(value), "_fields")
    if kind in (tuple, list):
        name = kind.__name__
        if type(tree) is not kind:
            raise ValueError(f"Expected {name}, got {tree!r}.")
        if len(tree) != len(parts):
            raise ValueError(
                f"{name.capitalize()} arity mismatch: {len(tree)} != {len(parts)}; {name}: {tree!r}."
            )
        children = tree
    elif kind is dict:
        if type(tree) is not dict:
            raise ValueError(f"Expected dict, got {tree!r}.")
        if list(data) != sorted(tree):
            raise ValueError(f"Dict key mismatch; expected keys: {list(data)!r}; dict: {tree!r}.")
        children = [tree[key] for key in data]
    elif kind is type(None):
        raise ValueError(f"Expected None, got {tree!r}.")
    elif issubclass(kind, tuple) and hasattr(kind, "_fields") and not _plait.is_registered(kind):
        if not isinstance(tree, tuple) or not named(tree):
            raise ValueError(f"Expected named tuple, got {tree!r}.")
        if type(tree) is not kind:
            raise ValueError(f"Named tuple type mismatch: expected type: {kind}, tuple: {tree!r}.")
        children = tree
    else:
        if type(tree) is not kind:
            raise ValueError(f"Custom node type mismatch: expected type: {kind}, value: {tree!r}.")
        children = _flatten_one_level(tree)[0]
    for part, child in zip(parts, children):
        _raise_difference(part, child)


_flatten_up_to = _plait.TreeDef.flatten_up_to


def _flattened_up_to(structure, tree):
    try:
        return _flatten_up_to(structure, tree)
    except plait.TreeError:
        _raise_difference(structure, tree)
        raise


_plait.TreeDef.flatten_up_to = _flattened_up_to


def is_tree_node(value):
    """Whether a value is a container."""
    return not treedef_is_leaf(tree_structure(value, lambda node: node is not value))


class _Registry:
    """The registry of containers: plait's own."""

    def flatten(self, tree, is_leaf=None):
        return tree_flatten(tree, is_leaf)

    def flatten_one_level(self, tree):
        return _flatten_one_level(tree) if is_tree_node(tree) else None


default_registry = _Registry()
__getattr__ = _doors.lacking(__name__)
__all__ = _doors.public(globals())
