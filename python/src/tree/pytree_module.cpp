// plait.tree for Python: structures as objects, keys of nodes, and registration. See pytree.h.
// SPDX-License-Identifier: Apache-2.0
#include "pytree.h"

namespace plait::python {
namespace {

std::vector<py::object> to_vector(py::handle sequence) {
  std::vector<py::object> result;
  for (py::handle item : sequence) result.push_back(py::reinterpret_borrow<py::object>(item));
  return result;
}

// The children of one node with their keys, as the key classes of plait.tree take them: ("dict",
// key), ("sequence", index), ("attribute", name), ("flattened", index), or a registered key.
py::object node_keys(py::object node, py::object is_leaf) {
  if (!is_leaf.is_none() && is_true(is_leaf(node))) return py::none();
  PyObject* object = node.ptr();
  py::list result;
  auto add = [&](const char* kind, py::object key, py::object child) {
    result.append(py::make_tuple(kind, key, child));
  };
  if (object == Py_None) return result;
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    Py_ssize_t index = 0;
    for (py::handle item : node) add("sequence", py::int_(index++), borrowed(item.ptr()));
    return result;
  }
  std::vector<py::object> leaves;
  if (PyDict_CheckExact(object)) {
    const TreeDef def = flatten(object, leaves);
    const auto* keys = static_cast<const DictKeys*>(def.type().aux.get());
    for (py::handle key : py::tuple(keys->sorted)) add("dict", borrowed(key.ptr()), node[key]);
    return result;
  }
  if (auto found = registry().find(Py_TYPE(object)); found != registry().end()) {
    if (!found->second.flatten_with_keys.is_none()) {
      const py::object pair = found->second.flatten_with_keys(node);
      for (py::handle entry : pair[py::int_(0)])
        add("registered", py::object(entry[py::int_(0)]), py::object(entry[py::int_(1)]));
      return result;
    }
    Py_ssize_t index = 0;
    const py::object pair = found->second.flatten(node);
    for (py::handle item : pair[py::int_(0)])
      add("flattened", py::int_(index++), borrowed(item.ptr()));
    return result;
  }
  if (is_namedtuple(object)) {
    for (py::handle name : node.attr("_fields"))
      add("attribute", borrowed(name.ptr()), node.attr(name));
    return result;
  }
  if (!PyType_Check(object) && dataclass_fields(object)) {
    for (py::handle name : py::tuple(fields_of(object).names))
      add("attribute", borrowed(name.ptr()), node.attr(name));
    return result;
  }
  return py::none();
}

int count_nodes(const TreeDef& def) {
  int total = 1;
  for (const TreeDef& child : def.children()) total += count_nodes(child);
  return total;
}

// A tree of this structure whose leaves are their numbers.
py::object numbered(const TreeDef& def) {
  std::vector<py::object> leaves;
  for (int i = 0; i < def.num_leaves(); ++i) leaves.push_back(py::int_(i));
  return unflatten(def, leaves);
}

TreeDef structure_of(const py::object& tree) {
  std::vector<py::object> leaves;
  return flatten(tree.ptr(), leaves);
}

// The class of the outermost container, and its data besides children: the keys of a dict, the aux
// of a registered class.
py::object node_data(const TreeDef& def) {
  if (def.kind() == TreeDef::Kind::leaf) return py::none();
  const py::object node = numbered(def);
  py::object data = py::none();
  if (def.kind() == TreeDef::Kind::dict) {
    data = py::list(py::tuple(static_cast<const DictKeys*>(def.type().aux.get())->sorted));
  } else if (auto found = registry().find(Py_TYPE(node.ptr())); found != registry().end()) {
    data = py::object(found->second.flatten(node)[py::int_(1)]);
  }
  return py::make_tuple(borrowed(reinterpret_cast<PyObject*>(Py_TYPE(node.ptr()))), data);
}

// The outer structure with a tree of the inner one at every leaf.
TreeDef compose(const TreeDef& outer, const TreeDef& inner) {
  const std::vector<py::object> trees(std::size_t(outer.num_leaves()), numbered(inner));
  return structure_of(unflatten(outer, trees));
}

// Calls f_node(results of the children, node_data) from the leaves up, and f_leaf(leaf) at leaves.
py::object walk(const TreeDef& def, const py::object& f_node, const py::object& f_leaf,
                std::span<const py::object>& leaves) {
  if (def.kind() == TreeDef::Kind::leaf) {
    const py::object leaf = leaves.front();
    leaves = leaves.subspan(1);
    return f_leaf.is_none() ? leaf : f_leaf(leaf);
  }
  py::tuple children(def.children().size());
  for (std::size_t i = 0; i < children.size(); ++i)
    children[i] = walk(def.children()[i], f_node, f_leaf, leaves);
  return f_node(children, node_data(def));
}

}  // namespace

void add_pytree(py::module_& module) {
  py::class_<TreeDef>(module, "TreeDef",
                      "The structure of a tree: its containers, with a * for each leaf.")
      .def_property_readonly("num_leaves", &TreeDef::num_leaves)
      .def_property_readonly("num_nodes", &count_nodes)
      .def("children",
           [](const TreeDef& def) {
             py::list result;
             for (const TreeDef& child : def.children()) result.append(treedef_object(child));
             return result;
           })
      .def(
          "unflatten",
          [](const TreeDef& def, py::object leaves) { return unflatten(def, to_vector(leaves)); },
          "The tree with these leaves.")
      .def("flatten_up_to",
           [](const TreeDef& def, py::object tree) {
             // Subtrees of tree where this structure has leaves.
             py::list result;
             auto walk = [&](auto&& self, const TreeDef& at, py::object node,
                             const std::string& path) -> void {
               if (at.kind() == TreeDef::Kind::leaf) {
                 result.append(node);
                 return;
               }
               int index = 0;
               std::vector<py::object> parts;
               const py::object outer = node;
               const TreeDef shallow =
                   flatten(node.ptr(), parts, py::cpp_function([&](py::object object) {
                                                return object.ptr() != outer.ptr() || index++ > 0;
                                              }).ptr());
               const bool fits = shallow.kind() == at.kind() && shallow.keys() == at.keys() &&
                                 shallow.children().size() == at.children().size() &&
                                 shallow.type().type == at.type().type;
               if (!fits)
                 throw TreeError("trees differ" + (path.empty() ? std::string() : " at " + path) +
                                     ": " + at.to_string() + " against " +
                                     (shallow.kind() == TreeDef::Kind::leaf ? text_of(node.ptr())
                                                                            : shallow.to_string()),
                                 "give trees of one structure");
               std::size_t next = 0;
               for (std::size_t i = 0; i < at.children().size(); ++i) {
                 const bool none = shallow.children()[i].kind() == TreeDef::Kind::none;
                 self(self, at.children()[i], none ? py::object(py::none()) : parts[next++],
                      path + "/" + std::to_string(i));
               }
             };
             walk(walk, def, tree, "");
             return result;
           })
      .def("path", &TreeDef::path)
      .def("node_data", &node_data,
           "The class of the outermost container and what it keeps besides children, such as a "
           "dict's keys; None for a leaf.")
      .def("compose", &compose, "The structure with a tree of the other one at each leaf.")
      .def(
          "walk",
          [](const TreeDef& def, py::object f_node, py::object f_leaf, py::object leaves) {
            const std::vector<py::object> all = to_vector(leaves);
            if (int(all.size()) != def.num_leaves())
              throw TreeError("walk: " + std::to_string(all.size()) + " leaves for a tree of " +
                                  std::to_string(def.num_leaves()),
                              "give one value for each leaf of the structure");
            std::span<const py::object> rest = all;
            return walk(def, f_node, f_leaf, rest);
          },
          "f_node(results of the children, node_data) for each container, from the leaves up, "
          "where f_leaf(leaf) is called, or the leaf taken where f_leaf is None.")
      .def("__copy__", [](py::object self) { return self; })
      .def("__deepcopy__", [](py::object self, py::object) { return self; })
      .def("__reduce__",
           [](const TreeDef& def) {
             return py::make_tuple(py::module_::import("plait._plait").attr("structure_of"),
                                   py::make_tuple(numbered(def)));
           })
      .def("__eq__",
           [](const TreeDef& a, py::object b) {
             return py::isinstance<TreeDef>(b) && a == b.cast<TreeDef>();
           })
      .def("__hash__", &TreeDef::hash)
      .def("__repr__", [](const TreeDef& def) { return "TreeDef(" + def.to_string() + ")"; })
      .def("__str__", &TreeDef::to_string);
  module.def(
      "flatten",
      [](py::object tree, py::object is_leaf) {
        std::vector<py::object> leaves;
        TreeDef structure = flatten(tree.ptr(), leaves, is_leaf.ptr());
        py::list list(leaves.size());
        for (std::size_t i = 0; i < leaves.size(); ++i)
          PyList_SET_ITEM(list.ptr(), i, leaves[i].release().ptr());
        return py::make_tuple(list, treedef_object(std::move(structure)));
      },
      py::arg("tree"), py::arg("is_leaf") = py::none());
  module.def("structure_of", [](py::object tree) { return treedef_object(structure_of(tree)); });
  module.def("unflatten", [](py::object structure, py::object leaves) {
    return unflatten(treedef_of(structure), to_vector(leaves));
  });
  module.def("node_keys", &node_keys);
  module.def(
      "broadcast_prefix", [](py::object prefix, py::object structure, const std::string& what) {
        // A None in the prefix is a value: no axis.
        std::vector<py::object> leaves;
        const TreeDef def =
            flatten(prefix.ptr(), leaves,
                    py::cpp_function([](py::object object) { return object.is_none(); }).ptr());
        py::list result;
        for (int leaf : broadcast_prefix(def, treedef_of(structure), what))
          result.append(leaves[leaf]);
        return result;
      });
  module.def(
      "register_pytree_node",
      [](py::object type, py::object flatten, py::object unflatten, py::object with_keys) {
        if (!PyType_Check(type.ptr()))
          throw TreeError("register_pytree_node: " + text_of(type.ptr()) + " is no class",
                          "pass the class itself");
        auto* key = reinterpret_cast<PyTypeObject*>(type.ptr());
        if (registry().count(key))
          throw ValueError("register_pytree_node: " + std::string(py::str(type.attr("__name__"))) +
                               " is registered already",
                           "register a class once");
        registry().emplace(key, Registration{type, flatten, unflatten, with_keys});
      },
      py::arg("nodetype"), py::arg("flatten_func"), py::arg("unflatten_func"),
      py::arg("flatten_with_keys_func") = py::none());
  module.def("is_registered", [](py::object type) {
    return registry().count(reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
  });
  // Whether dataclasses that are not registered are trees, in this process; see pytree.h.
  module.def("set_every_dataclass_is_a_tree",
             [](bool every) { every_dataclass_is_a_tree() = every; });
  // Makes an instance of a registered class, with None for its aux.
  module.def("make_registered", [](py::object type, py::tuple children) {
    const auto found = registry().find(reinterpret_cast<PyTypeObject*>(type.ptr()));
    if (found == registry().end())
      throw TreeError(text_of(type.ptr()) + " is no named tuple, no dataclass and not registered",
                      "register it with plait.tree.register_pytree_node");
    const py::object unflatten = found->second.unflatten;
    return unflatten(py::none(), children);
  });
}

}  // namespace plait::python
