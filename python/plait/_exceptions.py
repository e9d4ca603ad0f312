"""The functions of numpy, lax, nn, random, optim and tree that are Python, and why each one must be.

Everything else in those modules is C++ and comes from the catalogue; a test compares.

SPDX-License-Identifier: Apache-2.0
"""

_CALLABLE = "takes a Python function"
_CONTAINER = "handles Python's own containers and classes"
_DTYPE = "answers about NumPy's dtype objects"
_OBJECT = "converts Python objects to arrays"
_SYNTAX = "is an object that is subscripted"

REASONS = {
    "numpy": {
        "array": _OBJECT,
        "asarray": _OBJECT,
        "from_dlpack": _OBJECT,
        "isscalar": _OBJECT,
        "can_cast": _DTYPE,
        "finfo": _DTYPE,
        "iinfo": _DTYPE,
        "isdtype": _DTYPE,
        "issubdtype": _DTYPE,
        "promote_types": _DTYPE,
        "result_type": _DTYPE,
        "dtype": _DTYPE,
        "fromfunction": _CALLABLE,
        "vectorize": _CALLABLE,
        "mgrid": _SYNTAX,
        "ogrid": _SYNTAX,
        "s_": _SYNTAX,
        "index_exp": _SYNTAX,
        "ndarray": "is the class of arrays",
    },
    "lax": {},
    "nn": {},
    "random": {},
    "optim": {},
    "tree": dict.fromkeys(
        "all broadcast flatten flatten_with_path keystr leaves leaves_with_path map map_with_path reduce "
        "reduce_associative structure transpose unflatten register_pytree_node register_pytree_node_class "
        "register_pytree_with_keys register_pytree_with_keys_class register_static DictKey SequenceKey GetAttrKey "
        "FlattenedIndexKey TreeDef PyTreeDef tree_all tree_flatten tree_flatten_with_path tree_leaves "
        "tree_leaves_with_path tree_map tree_map_with_path tree_reduce tree_structure tree_transpose "
        "tree_unflatten".split(),
        _CONTAINER,
    ),
}
