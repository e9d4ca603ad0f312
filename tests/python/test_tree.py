"""Trees: containers of Python, registration, paths.

SPDX-License-Identifier: Apache-2.0
"""

import collections
import dataclasses

import numpy as np
import pytest

import plait
from plait import tree

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = dataclasses.field(default="dense", metadata={"static": True})


class Pair:
    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag

    def __eq__(self, other):
        return (self.a, self.b, self.tag) == (other.a, other.b, other.tag)

    def __repr__(self):
        return f"Pair({self.a!r}, {self.b!r}, {self.tag!r})"


tree.register_pytree_node(
    Pair, lambda p: ((p.a, p.b), p.tag), lambda tag, children: Pair(*children, tag)
)

TREES = [
    1, None, (), [], {}, (1, 2), [1, (2, [3])], {"b": 1, "a": {"z": 2}}, Point(1, Point(2, 3)), Layer(1, [2]), Pair(1, (2,), "t"),
    collections.OrderedDict([("z", 1), ("a", 2)]), {1: "x", 2: "y"}, {(1, 2): 3, "a": 4}, [None, {"a": None}],
]  # fmt: skip


@pytest.mark.parametrize("value", TREES, ids=str)
def test_unflatten_undoes_flatten(value):
    leaves, structure = tree.flatten(value)
    assert tree.unflatten(structure, leaves) == value
    assert type(tree.unflatten(structure, leaves)) is type(value)
    assert structure == tree.structure(value) and hash(structure) == hash(tree.structure(value))
    assert structure.num_leaves == len(leaves)


def test_dicts_flatten_in_sorted_order_and_keep_their_own():
    value = {"b": 1, "a": 2}
    assert tree.leaves(value) == [2, 1]
    assert list(tree.map(lambda x: x, value)) == ["b", "a"]
    assert tree.structure(value) == tree.structure({"a": 0, "b": 0})


def test_static_fields_are_structure():
    a, b = Layer(1, 2, "a"), Layer(1, 2, "b")
    assert tree.leaves(a) == [1, 2]
    assert tree.structure(a) != tree.structure(b)


def test_map_with_several_trees():
    assert tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10}) == {
        "a": 11,
        "b": [22],
    }
    with pytest.raises(plait.TreeError):
        tree.map(lambda x, y: x, [1, 2], [1])
    assert tree.map(lambda x: x + 1, [None, 1]) == [None, 2]


def test_is_leaf():
    assert tree.leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]


def test_reduce_all_transpose():
    assert tree.reduce(lambda a, b: a + b, {"a": 1, "b": (2, 3)}) == 6
    assert tree.reduce(lambda a, b: a + b, [], 7) == 7
    assert tree.reduce_associative(lambda a, b: a + b, [1, 2, 3, 4, 5]) == 15
    assert tree.all([1, True, (2,)]) and not tree.all([1, 0])
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    assert tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {
        "a": [1, 3],
        "b": [2, 4],
    }


def test_paths():
    value = {"layers": [Layer(1, 2), Point(3, 4)], "p": Pair(5, 6, "t")}
    pairs, structure = tree.flatten_with_path(value)
    assert [leaf for _, leaf in pairs] == tree.leaves(value)
    assert [tree.keystr(path) for path, _ in pairs] == [
        "['layers'][0].w", "['layers'][0].b", "['layers'][1].x", "['layers'][1].y",
        "['p'][<flat index 0>]", "['p'][<flat index 1>]",
    ]  # fmt: skip
    path = pairs[0][0]
    assert path == (tree.DictKey("layers"), tree.SequenceKey(0), tree.GetAttrKey("w"))
    named = tree.map_with_path(lambda path, leaf: tree.keystr(path), value)
    assert named["layers"][1] == Point("['layers'][1].x", "['layers'][1].y")
    second = lambda path, node: path == (tree.DictKey("layers"), tree.SequenceKey(1))  # noqa: E731
    pairs, structure = tree.flatten_with_path(value, second, is_leaf_takes_path=True)
    assert [leaf for _, leaf in pairs] == [1, 2, Point(3, 4), 5, 6]
    assert structure.unflatten([leaf for _, leaf in pairs]) == value


def test_registration_by_class():
    @tree.register_pytree_node_class
    class Box:
        def __init__(self, value):
            self.value = value

        def tree_flatten(self):
            return (self.value,), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    assert tree.leaves([Box(3)]) == [3]
    assert tree.map(lambda x: x * 2, Box(3)).value == 6
    with pytest.raises(plait.ValueError, match="registered already"):
        tree.register_pytree_node_class(Box)


def test_errors_of_registered_classes_propagate():
    class Bad:
        pass

    def flatten(value):
        raise RuntimeError("mine")

    tree.register_pytree_node(Bad, flatten, lambda aux, children: Bad())
    with pytest.raises(RuntimeError, match="mine"):
        tree.leaves([Bad()])


def test_a_tree_that_contains_itself():
    value = []
    value.append(value)
    with pytest.raises(plait.TreeError, match="contains itself"):
        tree.leaves(value)


def test_wrong_number_of_leaves():
    with pytest.raises(plait.TreeError):
        tree.unflatten(tree.structure([1, 2]), [1])


def test_transforms_see_through_containers():
    gradient = plait.grad(lambda layer: (layer.w * layer.b).sum())(
        Layer(np.float32([1, 2]), np.float32([3, 4]))
    )
    assert isinstance(gradient, Layer) and gradient.name == "dense"
    np.testing.assert_array_equal(np.asarray(gradient.w), [3, 4])
    gradient = plait.grad(lambda p: p.x * p.y[0])(Point(2.0, [3.0]))
    assert isinstance(gradient, Point) and float(gradient.x) == 3 and float(gradient.y[0]) == 2
