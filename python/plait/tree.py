"""Trees: nested containers of arrays, as leaves and a structure.

tuple, list, dict, None, namedtuple and dataclass are containers; others by registration. These
functions take Python callables and containers, so they are Python over the C++ flattening.

SPDX-License-Identifier: Apache-2.0
"""

import builtins as _builtins
import collections as _collections
import dataclasses as _dataclasses
import functools as _functools

from plait import _names
from plait import _plait
from plait._plait import TreeDef
from plait._plait import catalogue as _catalogue
from plait._plait import register_pytree_node as _register

globals().update(
    {name: function for name, function in _catalogue("tree").items() if name not in globals()}
)

PyTreeDef = TreeDef


def flatten(tree, is_leaf=None):
    """(leaves, structure) of a tree. is_leaf(node) says where to stop; None is a container without leaves."""
    return _plait.flatten(tree, is_leaf)


def unflatten(treedef, leaves):
    """The tree of this structure with these leaves, a sequence. TreeError for a wrong number of leaves."""
    return _plait.unflatten(treedef, leaves)


def leaves(tree, is_leaf=None):
    """The leaves of a tree, in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree, is_leaf=None):
    """The structure of a tree: its containers, with a * for each leaf."""
    return flatten(tree, is_leaf)[1]


def treedef_children(treedef):
    """The structures of the children of the outermost container."""
    return treedef.children()


def treedef_is_leaf(treedef):
    """Whether the structure is that of one leaf."""
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def treedef_tuple(treedefs):
    """The structure of a tuple of trees of these structures."""
    return structure(tuple(treedef.unflatten(range(treedef.num_leaves)) for treedef in treedefs))


def all_leaves(iterable, is_leaf=None):
    """Whether none of these is a container."""
    return _builtins.all(treedef_is_leaf(structure(item, is_leaf)) for item in iterable)


def map(f, tree, *rest, is_leaf=None):
    """The tree of f(leaf, *corresponding leaves of the other trees)."""
    values, treedef = flatten(tree, is_leaf)
    columns = [values] + [treedef.flatten_up_to(other) for other in rest]
    return unflatten(treedef, [f(*row) for row in zip(*columns)])


def reduce(function, tree, initializer=..., is_leaf=None):
    """Reduces the leaves with function, from the left."""
    values = leaves(tree, is_leaf)
    return (
        _functools.reduce(function, values)
        if initializer is ...
        else _functools.reduce(function, values, initializer)
    )


def reduce_associative(operation, tree, *, identity=..., is_leaf=None):
    """Reduces the leaves pairwise with operation, which is associative."""
    values = leaves(tree, is_leaf)
    if not values:
        if identity is ...:
            _plait.fail(
                "ValueError", "tree.reduce_associative: the tree has no leaves", "give identity"
            )
        return identity
    while len(values) > 1:
        odd = values[-1:] if len(values) % 2 else []
        values = [operation(a, b) for a, b in zip(values[::2], values[1::2])] + odd
    return values[0]


def all(tree, *, is_leaf=None):
    """Whether every leaf is true."""
    for leaf in leaves(tree, is_leaf):
        if not leaf:
            return False
    return True


def transpose(outer_treedef, inner_treedef, pytree_to_transpose):
    """A tree of trees transposed, with the inner structure outside."""
    values, treedef = flatten(pytree_to_transpose)
    inner_size, outer_size = inner_treedef.num_leaves, outer_treedef.num_leaves
    if len(values) != inner_size * outer_size:
        _plait.fail(
            "TreeError",
            f"tree.transpose: {len(values)} leaves, and the structures hold {outer_size} times {inner_size}",
            "give a tree of the outer structure whose leaves are trees of the inner one",
        )
    rows = [values[start : start + inner_size] for start in range(0, len(values), inner_size)]
    return unflatten(inner_treedef, [unflatten(outer_treedef, column) for column in zip(*rows)])


def broadcast(prefix_tree, full_tree, is_leaf=None):
    """prefix_tree with its leaves repeated to the structure of full_tree."""
    treedef = structure(full_tree, is_leaf)
    return unflatten(treedef, _plait.broadcast_prefix(prefix_tree, treedef, "tree.broadcast"))


class _Key:
    __slots__ = ("_value",)

    def __init__(self, value):
        self._value = value

    def __eq__(self, other):
        return type(self) is type(other) and self._value == other._value

    def __hash__(self):
        return hash((type(self).__name__, self._value))

    def __repr__(self):
        return f"{type(self).__name__}({self._value!r})"


class DictKey(_Key):
    """The key of a dict."""

    __match_args__ = ("key",)

    def __init__(self, key):
        super().__init__(key)

    key = property(lambda self: self._value)

    def __str__(self):
        return f"[{self._value!r}]"


class SequenceKey(_Key):
    """The index of a tuple or list."""

    __match_args__ = ("idx",)

    def __init__(self, idx):
        super().__init__(idx)

    idx = property(lambda self: self._value)

    def __str__(self):
        return f"[{self._value}]"


class GetAttrKey(_Key):
    """The field of a namedtuple or dataclass."""

    __match_args__ = ("name",)

    def __init__(self, name):
        super().__init__(name)

    name = property(lambda self: self._value)

    def __str__(self):
        return f".{self._value}"


class FlattenedIndexKey(_Key):
    """The index of a child of a registered class without keys."""

    __match_args__ = ("key",)

    def __init__(self, key):
        super().__init__(key)

    key = property(lambda self: self._value)

    def __str__(self):
        return f"[<flat index {self._value}>]"


_KEYS = {
    "dict": DictKey,
    "sequence": SequenceKey,
    "attribute": GetAttrKey,
    "flattened": FlattenedIndexKey,
}


def leaves_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """Pairs of a leaf's path, a tuple of keys, and the leaf. is_leaf(node) says where to stop, or is_leaf(path, node)."""
    result = []

    def walk(node, path):
        stop = _functools.partial(is_leaf, path) if is_leaf and is_leaf_takes_path else is_leaf
        children = _plait.node_keys(node, stop)
        if children is None:
            result.append((path, node))
            return
        for kind, key, child in children:
            walk(child, (*path, _KEYS[kind](key) if kind in _KEYS else key))

    walk(tree, ())
    return result


def flatten_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """leaves_with_path(tree), and the structure."""
    if is_leaf is None or not is_leaf_takes_path:
        return leaves_with_path(tree, is_leaf), structure(tree, is_leaf)
    answers = []

    def stop(path, node):
        answers.append(is_leaf(path, node))
        return answers[-1]

    pairs = leaves_with_path(tree, stop, True)
    given = iter(answers)  # both go through the nodes in one order
    return pairs, structure(tree, lambda node: next(given))


def map_with_path(f, tree, *rest, is_leaf=None, is_leaf_takes_path=False):
    """The tree of f(path, leaf, *corresponding leaves of the other trees)."""
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return unflatten(
        treedef, [f(path, leaf, *others) for (path, leaf), *others in zip(pairs, *columns)]
    )


def keystr(path, *, simple=False, separator=""):
    """A path as text: "['layers'][0].w"."""
    return separator.join(
        str(key._value) if simple and isinstance(key, _Key) else str(key) for key in path
    )


def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Makes a class a container: flatten_func(x) gives (children, aux), unflatten_func(aux, children) x."""
    _register(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """register_pytree_node with a key for each child: flatten_with_keys(x) gives ((key, child) pairs, aux)."""

    def without_keys(value):
        pairs, aux = flatten_with_keys(value)
        return [child for _, child in pairs], aux

    _register(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls):
    """Registers a class by its methods tree_flatten and tree_unflatten."""
    _register(cls, lambda value: value.tree_flatten(), cls.tree_unflatten, None)
    return cls


def register_pytree_with_keys_class(cls):
    """Registers a class by its methods tree_flatten_with_keys and tree_unflatten."""
    flatten_func = (lambda value: value.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls, lambda value: value.tree_flatten_with_keys(), cls.tree_unflatten, flatten_func
    )
    return cls


def register_static(cls):
    """Makes a class a container without leaves: its instances are part of the structure."""
    _register(cls, lambda value: ((), value), lambda aux, _: aux, None)
    return cls


_register(
    _collections.OrderedDict,
    lambda value: (list(value.values()), tuple(value)),
    lambda keys, values: _collections.OrderedDict(zip(keys, values)),
    lambda value: ([(DictKey(key), item) for key, item in value.items()], tuple(value)),
)
_register(
    _collections.defaultdict,
    lambda value: (
        [value[key] for key in sorted(value)],
        (value.default_factory, tuple(sorted(value))),
    ),
    lambda aux, values: _collections.defaultdict(aux[0], zip(aux[1], values)),
    lambda value: (
        [(DictKey(key), value[key]) for key in sorted(value)],
        (value.default_factory, tuple(sorted(value))),
    ),
)


def static(**options):
    """dataclasses.field(**options) of a field that is part of the structure, and no leaf."""
    metadata = {**options.pop("metadata", {}), "static": True}
    return _dataclasses.field(metadata=metadata, **options)


# The names of jax.tree_util.
tree_flatten, tree_unflatten, tree_leaves, tree_structure = flatten, unflatten, leaves, structure
tree_map, tree_reduce, tree_all, tree_transpose = map, reduce, all, transpose
tree_broadcast, tree_reduce_associative = broadcast, reduce_associative
tree_map_with_path, tree_flatten_with_path, tree_leaves_with_path = (
    map_with_path,
    flatten_with_path,
    leaves_with_path,
)

__getattr__ = _names.missing(__name__, globals())
__all__ = sorted(name for name in globals() if not name.startswith("_"))
