// Python containers as trees: tuple, list, dict, None, namedtuple and dataclass by default, other
// classes by registration.
//
// NOTE: [dicts] The leaves of a dict are in sorted order of its keys, so that equal dicts have the
// same structure. Keys that cannot be sorted keep their order. Unflattening restores the order of
// insertion. The keys themselves are in the structure's aux.
// SPDX-License-Identifier: Apache-2.0
#include "pytree.h"

#include <algorithm>

namespace plait::python {

std::unordered_map<PyTypeObject*, Registration>& registry() {
  static auto* table = new std::unordered_map<PyTypeObject*, Registration>;
  return *table;
}

bool is_true(const py::object& answer) {
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) throw py::error_already_set();
  return truth == 1;
}

bool is_namedtuple(PyObject* object) {
  static PyObject* const name = PyUnicode_InternFromString("_fields");
  return PyTuple_Check(object) && _PyType_Lookup(Py_TYPE(object), name) != nullptr;
}
bool& every_dataclass_is_a_tree() {
  static bool every = true;
  return every;
}

PyObject* dataclass_fields(PyObject* object) {
  static PyObject* const name = PyUnicode_InternFromString("__dataclass_fields__");
  static PyObject* const mark = PyUnicode_InternFromString("__plait_tree__");
  PyObject* const fields = _PyType_Lookup(Py_TYPE(object), name);
  if (!fields || every_dataclass_is_a_tree()) return fields;
  return _PyType_Lookup(Py_TYPE(object), mark) ? fields : nullptr;
}

const Fields& fields_of(PyObject* object) {
  static auto* table = new std::unordered_map<PyTypeObject*, Fields>;
  PyTypeObject* type = Py_TYPE(object);
  if (auto found = table->find(type); found != table->end()) return found->second;
  py::list names, static_names;
  const auto fields = borrowed(dataclass_fields(object)).cast<py::dict>();
  for (auto [name, field] : fields) {
    // Pseudo-fields (ClassVar, InitVar) hold no data.
    if (std::string(py::str(py::object(field.attr("_field_type")).attr("name"))) != "_FIELD")
      continue;
    const bool is_static = field.attr("metadata").attr("get")("static", false).cast<bool>();
    (is_static ? static_names : names).append(name);
  }
  Py_INCREF(type);
  return table->emplace(type, Fields{py::tuple(names), py::tuple(static_names), py::none()})
      .first->second;
}

namespace {

template <class T>
std::shared_ptr<void> keep(T value) {
  return std::shared_ptr<void>(new T(std::move(value)), [](void* pointer) {
    if (!Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    delete static_cast<T*>(pointer);
    PyGILState_Release(state);
  });
}

bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  const PyGILState_STATE state = PyGILState_Ensure();
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  PyGILState_Release(state);
  return equal == 1;
}

bool same_aux_objects(const void* a, const void* b) {
  return same_object(static_cast<PyObject*>(const_cast<void*>(a)),
                     static_cast<PyObject*>(const_cast<void*>(b)));
}
bool same_sorted_keys(const void* a, const void* b) {
  return same_object(static_cast<const DictKeys*>(a)->sorted.ptr(),
                     static_cast<const DictKeys*>(b)->sorted.ptr());
}
bool same_static_values(const void* a, const void* b) {
  return same_object(static_cast<const Fields*>(a)->static_values.ptr(),
                     static_cast<const Fields*>(b)->static_values.ptr());
}

std::shared_ptr<void> type_of(PyObject* object) {
  // The reference keeps the class alive as long as the structure.
  return share(borrowed(reinterpret_cast<PyObject*>(Py_TYPE(object))));
}

std::string short_name(PyObject* object) {
  return py::str(borrowed(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("__name__"));
}

struct Flattener {
  std::vector<py::object>& leaves;
  PyObject* is_leaf;
  int depth = 0;

  TreeDef leaf(PyObject* object) {
    leaves.push_back(borrowed(object));
    return {};
  }

  std::vector<TreeDef> children_of(PyObject* sequence) {
    std::vector<TreeDef> children;
    children.reserve(PySequence_Fast_GET_SIZE(sequence));
    // Visiting may run user code that changes the list.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i)
      children.push_back(visit(borrowed(PySequence_Fast_GET_ITEM(sequence, i)).ptr()));
    return children;
  }

  static std::vector<std::string> index_keys(std::size_t size) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < size; ++i) keys.push_back("[" + std::to_string(i) + "]");
    return keys;
  }

  TreeDef visit(PyObject* object) {
    if (is_leaf && is_leaf != Py_None) {
      const py::object answer = owned(PyObject_CallOneArg(is_leaf, object));
      if (is_true(answer)) return leaf(object);
    }
    if (is_array(object) || PyFloat_CheckExact(object) || PyLong_CheckExact(object))
      return leaf(object);
    if (object == Py_None) return TreeDef::none();
    struct Depth {
      int& depth;
      explicit Depth(int& depth) : depth(depth) {
        if (++depth > 800)
          throw TreeError("a tree is nested more than 800 deep, or contains itself",
                          "flatten it less deeply");
      }
      ~Depth() { --depth; }
    } counted(depth);
    if (PyTuple_CheckExact(object)) return TreeDef::tuple(children_of(object));
    if (PyList_CheckExact(object)) return TreeDef::list(children_of(object));
    if (PyDict_CheckExact(object)) return visit_dict(object);
    if (auto found = registry().find(Py_TYPE(object)); found != registry().end())
      return visit_registered(object, found->second);
    if (is_namedtuple(object)) {
      std::vector<std::string> names;
      for (py::handle name : borrowed(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("_fields"))
        names.push_back(utf8_of(name.ptr()));
      return TreeDef::record({short_name(object), type_of(object), nullptr, nullptr}, names,
                             children_of(object));
    }
    if (!PyType_Check(object) && dataclass_fields(object)) return visit_dataclass(object);
    return leaf(object);
  }

  static py::dict prototype_of(const py::object& keys) {
    py::dict prototype;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.ptr()); ++i)
      if (PyDict_SetItem(prototype.ptr(), PyTuple_GET_ITEM(keys.ptr(), i), Py_None) < 0)
        throw py::error_already_set();
    return prototype;
  }

  TreeDef visit_dict(PyObject* object) {
    py::object written = owned(PySequence_Tuple(object));
    py::object sorted = owned(PySequence_List(object));
    if (PyList_Sort(sorted.ptr()) < 0) {
      PyErr_Clear();
      sorted = written;
    } else {
      sorted = owned(PySequence_Tuple(sorted.ptr()));
    }
    std::vector<std::string> keys;
    std::vector<TreeDef> children;
    bool text_keys = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sorted.ptr()); ++i) {
      PyObject* key = PyTuple_GET_ITEM(sorted.ptr(), i);
      text_keys &= bool(PyUnicode_Check(key));
      keys.push_back(PyUnicode_Check(key) ? utf8_of(key) : "[" + text_of(key) + "]");
      PyObject* value = PyDict_GetItemWithError(object, key);
      if (!value) {
        if (PyErr_Occurred()) throw py::error_already_set();
        throw TreeError("a dict changed while it was flattened", "do not change it there");
      }
      children.push_back(visit(borrowed(value).ptr()));  // user code may change the dict
    }
    TreeDef::Type type{"dict", nullptr, keep(DictKeys{sorted, prototype_of(written)}),
                       same_sorted_keys};
    if (text_keys) return TreeDef::dict(std::move(keys), std::move(children), std::move(type));
    type.type = share(borrowed(reinterpret_cast<PyObject*>(&PyDict_Type)));
    return TreeDef::record(std::move(type), std::move(keys), std::move(children));
  }

  TreeDef visit_registered(PyObject* object, const Registration& registration) {
    const py::object type = registration.type;  // the callback may register, and so move the table
    const py::object result = registration.flatten(borrowed(object));
    if (!PyTuple_Check(result.ptr()) || PyTuple_GET_SIZE(result.ptr()) != 2)
      throw TreeError(
          "the flatten function of " + short_name(object) + " returned " + text_of(result.ptr()),
          "return a pair (children, aux)");
    const py::object children = owned(PySequence_Tuple(PyTuple_GET_ITEM(result.ptr(), 0)));
    const py::object aux = borrowed(PyTuple_GET_ITEM(result.ptr(), 1));
    std::vector<TreeDef> defs = children_of(children.ptr());
    std::vector<std::string> keys = index_keys(defs.size());
    return TreeDef::record({short_name(object), type_of(object), share(aux), same_aux_objects},
                           std::move(keys), std::move(defs));
  }

  TreeDef visit_dataclass(PyObject* object) {
    const Fields& fields = fields_of(object);
    std::vector<std::string> names;
    std::vector<TreeDef> children;
    const py::object value = borrowed(object);
    const py::tuple field_names = fields.names, static_names = fields.static_names;
    for (py::handle name : field_names) {
      names.push_back(utf8_of(name.ptr()));
      children.push_back(visit(py::object(value.attr(name)).ptr()));
    }
    py::tuple values(static_names.size());
    for (std::size_t i = 0; i < static_names.size(); ++i) values[i] = value.attr(static_names[i]);
    return TreeDef::record({short_name(object), type_of(object),
                            keep(Fields{field_names, static_names, values}), same_static_values},
                           std::move(names), std::move(children));
  }
};

// NextLeaf gives the leaves in order.
template <class NextLeaf>
struct Unflattener {
  NextLeaf next_leaf;

  py::object make(const TreeDef& def) {
    if (def.kind() == TreeDef::Kind::leaf) return next_leaf();
    return container(def);
  }

  py::object container(const TreeDef& def) {
    switch (def.kind()) {
      case TreeDef::Kind::none:
        return py::none();
      case TreeDef::Kind::tuple:
        return tuple_of(def);
      case TreeDef::Kind::list: {
        const std::vector<TreeDef>& children = def.children();
        py::list result(children.size());
        for (std::size_t i = 0; i < children.size(); ++i)
          PyList_SET_ITEM(result.ptr(), i, make(children[i]).release().ptr());
        return result;
      }
      case TreeDef::Kind::dict:
        return dict_of(def);
      default:
        return record_of(def);
    }
  }

  py::tuple tuple_of(const TreeDef& def) {
    py::tuple result(def.children().size());
    for (std::size_t i = 0; i < def.children().size(); ++i)
      PyTuple_SET_ITEM(result.ptr(), i, make(def.children()[i]).release().ptr());
    return result;
  }

  py::object dict_of(const TreeDef& def) {
    const std::vector<TreeDef>& children = def.children();
    const auto* keys = static_cast<const DictKeys*>(def.type().aux.get());
    // A copy of a dict costs less than inserting its keys, and has their original order.
    const py::object result = owned(keys ? PyDict_Copy(keys->prototype.ptr()) : PyDict_New());
    for (std::size_t i = 0; i < children.size(); ++i) {
      const py::object made = keys ? py::object() : py::str(def.keys()[i]);
      PyObject* key = keys ? PyTuple_GET_ITEM(keys->sorted.ptr(), i) : made.ptr();
      const py::object value = make(children[i]);
      if (PyDict_SetItem(result.ptr(), key, value.ptr()) < 0) throw py::error_already_set();
    }
    return result;
  }

  py::object record_of(const TreeDef& def) {
    auto* type = static_cast<PyObject*>(def.type().type.get());
    if (!type)
      throw TreeError(
          "a tree made in C++ holds a " + def.type().name + ", which Python does not know",
          "return tuples, lists and dicts");
    if (type == reinterpret_cast<PyObject*>(&PyDict_Type)) return dict_of(def);
    if (auto found = registry().find(reinterpret_cast<PyTypeObject*>(type));
        found != registry().end()) {
      const py::object unflatten = found->second.unflatten;
      const py::tuple children = tuple_of(def);
      return unflatten(borrowed(static_cast<PyObject*>(def.type().aux.get())), children);
    }
    if (PyType_FastSubclass(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_TUPLE_SUBCLASS))
      return borrowed(type).attr("_make")(tuple_of(def));
    // A dataclass: its fields are set directly, because __init__ may check what tracers cannot
    // answer.
    auto* made_type = reinterpret_cast<PyTypeObject*>(type);
    const py::object result = owned(made_type->tp_new(made_type, py::tuple().ptr(), nullptr));
    const auto* fields = static_cast<const Fields*>(def.type().aux.get());
    auto set = [&](PyObject* name, PyObject* value) {
      if (PyObject_GenericSetAttr(result.ptr(), name, value) < 0) throw py::error_already_set();
    };
    for (std::size_t i = 0; i < def.children().size(); ++i)
      set(PyTuple_GET_ITEM(fields->names.ptr(), i), make(def.children()[i]).ptr());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields->static_names.ptr()); ++i)
      set(PyTuple_GET_ITEM(fields->static_names.ptr(), i),
          PyTuple_GET_ITEM(fields->static_values.ptr(), i));
    return result;
  }
};

struct Matcher {
  std::vector<PyObject*>& leaves;
  std::vector<py::object>& keep;
  bool keeps = false;

  void add(PyObject* leaf) {
    leaves.push_back(leaf);
    if (keeps) keep.push_back(borrowed(leaf));
  }
  // From here on, user code may run and change the containers.
  void protect() {
    if (std::exchange(keeps, true)) return;
    for (PyObject* leaf : leaves) keep.push_back(borrowed(leaf));
  }

  bool match_child(const TreeDef& def, PyObject* object) {
    if (!is_array(object) || def.kind() != TreeDef::Kind::leaf)
      return match(def, borrowed(object).ptr());
    add(object);
    return true;
  }

  bool match_items(const TreeDef& def, PyObject* sequence) {
    const std::vector<TreeDef>& children = def.children();
    if (std::size_t(PySequence_Fast_GET_SIZE(sequence)) != children.size()) return false;
    for (std::size_t i = 0; i < children.size(); ++i)
      if (Py_ssize_t(i) >= PySequence_Fast_GET_SIZE(sequence) ||
          !match_child(children[i], PySequence_Fast_GET_ITEM(sequence, i)))
        return false;
    return true;
  }

  // Most dicts are in sorted order, and iterating costs less than looking keys up.
  bool match_dict(const std::vector<TreeDef>& children, PyObject* sorted, PyObject* dict) {
    bool is_in_order = true;
    Py_ssize_t position = 0;
    for (std::size_t i = 0; i < children.size(); ++i) {
      PyObject *wanted = PyTuple_GET_ITEM(sorted, i), *key = nullptr, *value = nullptr;
      is_in_order = is_in_order && PyDict_Next(dict, &position, &key, &value) && key == wanted;
      if (!is_in_order) {
        protect();  // comparing keys may run user code
        value = PyDict_GetItemWithError(dict, wanted);
      }
      if (!value) {
        PyErr_Clear();
        return false;
      }
      if (!match_child(children[i], value)) return false;
    }
    return true;
  }

  bool match(const TreeDef& def, PyObject* object) {
    switch (def.kind()) {
      case TreeDef::Kind::leaf:
        if (!is_array(object) && !PyFloat_CheckExact(object) && !PyLong_CheckExact(object) &&
            !is_numpy_array(object)) {
          if (object == Py_None || PyTuple_Check(object) || PyList_CheckExact(object) ||
              PyDict_CheckExact(object) || registry().count(Py_TYPE(object)) ||
              (!PyType_Check(object) && dataclass_fields(object)))
            return false;
        }
        if (!is_array(object)) protect();  // converting or comparing it may run user code
        add(object);
        return true;
      case TreeDef::Kind::none:
        return object == Py_None;
      case TreeDef::Kind::tuple:
        return PyTuple_CheckExact(object) && match_items(def, object);
      case TreeDef::Kind::list:
        return PyList_CheckExact(object) && match_items(def, object);
      case TreeDef::Kind::dict: {
        const auto* keys = static_cast<const DictKeys*>(def.type().aux.get());
        if (!keys || !PyDict_CheckExact(object) ||
            std::size_t(PyDict_GET_SIZE(object)) != def.children().size())
          return false;
        return match_dict(def.children(), keys->sorted.ptr(), object);
      }
      default:
        return match_record(def, object);
    }
  }

  bool match_dataclass(const TreeDef& def, PyObject* object) {
    const auto* fields = static_cast<const Fields*>(def.type().aux.get());
    protect();  // attributes may be properties
    auto value_of = [&](const py::tuple& names, Py_ssize_t i) {
      PyObject* value = PyObject_GetAttr(object, PyTuple_GET_ITEM(names.ptr(), i));
      if (!value) PyErr_Clear();
      return py::reinterpret_steal<py::object>(value);
    };
    for (std::size_t i = 0; i < def.children().size(); ++i) {
      const py::object value = value_of(fields->names, Py_ssize_t(i));
      if (!value || !match_child(def.children()[i], value.ptr())) return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields->static_names.ptr()); ++i) {
      const py::object value = value_of(fields->static_names, i);
      PyObject* wanted = PyTuple_GET_ITEM(fields->static_values.ptr(), i);
      if (!value || !same_object(value.ptr(), wanted)) return false;
    }
    return true;
  }

  bool match_record(const TreeDef& def, PyObject* object) {
    if (def.type().type.get() != Py_TYPE(object)) return false;
    if (!registry().count(Py_TYPE(object))) {
      if (PyTuple_Check(object)) return match_items(def, object);
      if (def.type().same_aux == same_static_values) return match_dataclass(def, object);
    }
    protect();
    std::vector<py::object> made;
    const TreeDef now = Flattener{made, nullptr}.visit(object);
    if (!(now == def)) return false;
    for (py::object& leaf : made) add(leaf.ptr());
    return true;
  }
};

}  // namespace

TreeDef flatten(PyObject* tree, std::vector<py::object>& leaves, PyObject* is_leaf) {
  return Flattener{leaves, is_leaf}.visit(tree);
}

py::object unflatten(const TreeDef& structure, std::span<const py::object> leaves) {
  if (int(leaves.size()) != structure.num_leaves())
    throw TreeError("unflatten: " + std::to_string(leaves.size()) + " leaves for a structure of " +
                        std::to_string(structure.num_leaves()),
                    "give one leaf for each * of " + structure.to_string());
  auto next = [&, i = std::size_t(0)]() mutable { return leaves[i++]; };
  return Unflattener<decltype(next)>{next}.make(structure);
}

py::object unflatten_arrays(const TreeDef& structure, Arrays leaves) {
  if (int(leaves.size()) != structure.num_leaves())
    throw InternalError("unflatten: " + std::to_string(leaves.size()) +
                        " arrays for a structure of " + std::to_string(structure.num_leaves()));
  auto next = [&, i = std::size_t(0)]() mutable { return to_python(std::move(leaves[i++])); };
  return Unflattener<decltype(next)>{next}.make(structure);
}

bool flatten_as(const TreeDef& structure, PyObject* tree, std::vector<PyObject*>& leaves,
                std::vector<py::object>& keep) {
  return Matcher{leaves, keep}.match(structure, tree);
}

py::object treedef_object(TreeDef structure) { return py::cast(std::move(structure)); }
const TreeDef& treedef_of(py::handle object) {
  if (!py::isinstance<TreeDef>(object))
    throw TreeError(text_of(object.ptr()) + " is no tree structure",
                    "make one with plait.tree.structure");
  return object.cast<const TreeDef&>();
}

Tree<Array> to_tree(PyObject* tree, const Role& role) {
  std::vector<py::object> leaves;
  Tree<Array> result{flatten(tree, leaves), {}};
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!is_array_like(leaves[i].ptr())) {
      const std::string path = result.structure.path(int(i)), who = role.to_string();
      throw TreeError((who.empty() ? "" : who + ": ") + "the leaf" +
                          (path.empty() ? "" : " at " + path) + " is " + text_of(leaves[i].ptr()) +
                          " of type " + type_name_of(leaves[i].ptr()) + ", which is no array",
                      "keep only arrays and numbers in the tree; register other containers with "
                      "plait.tree.register_pytree_node");
    }
    result.leaves.push_back(to_array(leaves[i].ptr(), role));
  }
  return result;
}

py::object from_tree(const Tree<Array>& tree) {
  std::vector<py::object> leaves;
  for (const Array& leaf : tree.leaves) leaves.push_back(to_python(leaf));
  return unflatten(tree.structure, leaves);
}

}  // namespace plait::python
