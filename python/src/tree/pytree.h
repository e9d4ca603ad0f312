// Shared by pytree.cpp and pytree_module.cpp: classes of containers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

#include <unordered_map>

namespace plait::python {

// A user's class of containers: the functions given to register_pytree_node.
struct Registration {
  py::object type, flatten, unflatten, flatten_with_keys;
};
std::unordered_map<PyTypeObject*, Registration>& registry();

// The keys of a dict: in the order of leaves, and, as a dict of None, in the order of insertion.
struct DictKeys {
  py::object sorted, prototype;
};
// The fields of a dataclass: names of children, and names and values of static ones.
struct Fields {
  py::object names, static_names, static_values;
};

bool is_namedtuple(PyObject* object);
// Whether dataclasses are trees unasked; otherwise those are that have an attribute __plait_tree__.
bool& every_dataclass_is_a_tree();
PyObject* dataclass_fields(PyObject* object);  // borrowed; null if it is no tree by its fields
// Which fields of a dataclass are children and which are static, by metadata.
const Fields& fields_of(PyObject* object);

bool is_true(const py::object& answer);

}  // namespace plait::python
