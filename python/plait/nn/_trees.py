"""Trees of arrays, models above all, with parts replaced, taken apart, and written to files.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses

import numpy as np

from plait import _plait, tree
from plait._functions import file_path, refuse
from plait._key_dtype import KeyDType
from plait.nn._module import _text as type_text


class _Mark:
    """Stands for one leaf, so that equal leaves can be told apart."""

    def __init__(self, leaf):
        self.leaf = leaf


def tree_at(where, pytree, replacement):
    """pytree with a part replaced: where(pytree) gives the part, or a tuple of parts with as many replacements.

    tree_at(lambda model: model.layers[0].weight, model, weight). Parts are arrays, modules or other containers.
    TreeError where what where gives is no part of the tree.
    """
    leaves, structure = tree.flatten(pytree)
    marked = tree.unflatten(structure, [_Mark(leaf) for leaf in leaves])
    chosen = where(marked)
    several = type(chosen) is tuple and not any(
        chosen is node for node in _nodes(marked, type(chosen))
    )
    parts, values = (chosen, tuple(replacement)) if several else ((chosen,), (replacement,))
    if len(parts) != len(values):
        _plait.fail(
            "TreeError",
            f"tree_at: {len(parts)} parts and {len(values)} replacements",
            "give a replacement for each part",
        )
    numbers = {id(part): number for number, part in enumerate(parts) if part is not None}
    nodes, outer = tree.flatten(marked, is_leaf=lambda node: id(node) in numbers)
    found = {numbers[id(node)] for node in nodes if id(node) in numbers}
    if len(found) != len(parts):
        _plait.fail(
            "TreeError",
            "tree_at: where(pytree) gives what is no array, module or container of the tree",
            "give a part such as model.layers[0].weight; None is replaced by module.replace(bias=...)",
        )
    return tree.unflatten(
        outer, [values[numbers[id(node)]] if id(node) in numbers else node.leaf for node in nodes]
    )


def _nodes(pytree, kind):
    """The containers of one class in a tree."""
    found = []
    tree.flatten(pytree, is_leaf=lambda node: bool(type(node) is kind and found.append(node)))
    return found


def partition(pytree, which):
    """(chosen, rest): pytree twice, with None where a leaf is in the other one.

    which is a function of a leaf, or a tree of bools, of which a leaf may stand for a whole subtree. The gradient of
    lambda chosen: loss(combine(chosen, rest)) is that of the chosen leaves.
    """
    leaves, structure = tree.flatten(pytree)
    if callable(which) and not dataclasses.is_dataclass(which):
        flags = [which(leaf) for leaf in leaves]
    else:
        flags = tree.leaves(tree.broadcast(which, pytree))
        for flag in flags:
            if isinstance(flag, str):
                refuse("partition", "which", which, "give a function of a leaf, or a tree of bools")
    sides = ([leaf if bool(flag) is side else None for flag, leaf in zip(flags, leaves)] for side in (True, False))  # fmt: skip
    chosen, rest = (tree.unflatten(structure, side) for side in sides)
    return chosen, rest


def combine(*trees):
    """The tree of the leaves of several trees that are None elsewhere: what partition took apart."""
    is_none = lambda node: node is None  # noqa: E731
    return tree.map(
        lambda *leaves: next((leaf for leaf in leaves if leaf is not None), None),
        *trees,
        is_leaf=is_none,
    )


_words, _keys = (_plait.catalogue("random")[name] for name in ("key_data", "wrap_key_data"))


def _is_key(leaf):
    return isinstance(getattr(leaf, "dtype", None), KeyDType)


def save_weights(path, pytree):
    """Writes the arrays of a tree to a NumPy archive (.npz), by their paths: ".layers[0].weight".

    plait.save writes programs; this writes what training continues from: model, optimiser state, key.
    """
    arrays = {
        tree.keystr(keys): np.asarray(_words(leaf) if _is_key(leaf) else leaf)
        for keys, leaf in tree.leaves_with_path(pytree)
    }
    with open(file_path("save_weights", path), "wb") as file:
        np.savez(file, **{name or "array": array for name, array in arrays.items()})


def load_weights(path, like):
    """The tree like with the arrays that save_weights wrote. like may hold ShapeDtypeStructs, as eval_shape gives.

    ValueError where the file's names, shapes or dtypes are not those of like.
    """
    pairs, structure = tree.flatten_with_path(like)
    leaves = []
    with np.load(file_path("load_weights", path).decode()) as file:
        names = [tree.keystr(keys) or "array" for keys, _ in pairs]
        if sorted(names) != sorted(file.files):
            differing = sorted(set(names) ^ set(file.files))
            _plait.fail(
                "ValueError",
                f"load_weights: {differing[0]} is not in both the file and the tree",
                "give a tree of the same structure as the one that was saved",
            )
        for name, (_, leaf) in zip(names, pairs):
            array = file[name]
            if not hasattr(leaf, "dtype"):
                refuse("load_weights", name, leaf, "give a tree of arrays, or of their types")
            if _is_key(leaf) and array.shape == (*leaf.shape, 2) and array.dtype == np.uint32:
                leaves.append(_keys(array))
                continue
            if array.dtype.kind == "V":  # NumPy's files have no names for ml_dtypes
                array = array.view(leaf.dtype)
            if array.shape != tuple(leaf.shape) or array.dtype != leaf.dtype:
                _plait.fail(
                    "ValueError",
                    f"load_weights: {name} is {array.dtype}{list(array.shape)} in the file, and {type_text(leaf)} in the tree",
                    "give a tree of the same types as the one that was saved",
                )
            leaves.append(_plait.to_array(array, "load_weights"))
    return tree.unflatten(structure, leaves)
