// Trees: nested containers as a flat list of leaves and a structure (TreeDef).
//
// Transforms see leaves only; paths appear in errors. In C++ tuples, pairs, vectors, maps,
// optionals and aggregates are trees (api.h); in Python tuples, lists, dicts, None, namedtuples,
// dataclasses and registered classes. unflatten(flatten(t)) == t.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

class TreeDef {
 public:
  enum class Kind { leaf, none, tuple, list, dict, record };  // record: named fields of a class
  // A class that a record is made of: compared by identity of type and by aux.
  struct Type {
    std::string name;
    std::shared_ptr<void> type;  // the language's own class object
    std::shared_ptr<void> aux;   // static data of a registered class
    bool (*same_aux)(const void*, const void*) = nullptr;
  };

  TreeDef();  // a leaf
  static TreeDef none();
  static TreeDef tuple(std::vector<TreeDef> children);
  static TreeDef list(std::vector<TreeDef> children);
  // keys in the order of the leaves (sorted, by the caller).
  static TreeDef dict(std::vector<std::string> keys, std::vector<TreeDef> children);
  // The same, with the language's own keys in type.aux.
  static TreeDef dict(std::vector<std::string> keys, std::vector<TreeDef> children, Type type);
  // A field whose name starts with "[" is shown as an index.
  static TreeDef record(Type type, std::vector<std::string> fields, std::vector<TreeDef> children);
  // A struct of C++: a record whose fields are numbered where their names are not known.
  static TreeDef fields(std::string_view type, std::span<const std::string_view> names,
                        std::vector<TreeDef> children);

  Kind kind() const;
  const Type& type() const;                      // of a record
  const std::vector<std::string>& keys() const;  // of a dict or record
  const std::vector<TreeDef>& children() const;
  int num_leaves() const;
  // "['layers'][0].w": where leaf number index is; "" when the tree is one leaf.
  std::string path(int index) const;
  std::string to_string() const;  // "{'b': *, 'w': (*, *)}"
  std::size_t hash() const;
  bool operator==(const TreeDef& other) const;
  // Whether the parts are identified by name: those of a dict, and of a record unless its fields
  // are numbered.
  bool has_names() const;
  // Whether it is a value that belongs to the structure: neither an array nor a container of
  // arrays.
  bool is_constant() const;
  // The index of the part for each field of a struct: by name where there are names, by position in
  // tuples, lists and records of numbered fields. TreeError where they do not fit, or where a
  // struct without names stands for named parts.
  std::vector<int> places_of(std::span<const std::string_view> names, std::size_t count) const;

 private:
  struct Node;
  explicit TreeDef(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static TreeDef make(Kind kind, Type type, std::vector<std::string> keys,
                      std::vector<TreeDef> children);
  std::shared_ptr<const Node> node_;
};

template <class Leaf>
struct Tree {
  TreeDef structure;
  std::vector<Leaf> leaves;
};

// For each leaf of structure, the index of the leaf of a prefix tree that stands for it: leaves of
// a prefix stand for whole subtrees (as in_axes=(0, None) does). TreeError names the path that does
// not fit.
std::vector<int> broadcast_prefix(const TreeDef& prefix, const TreeDef& structure,
                                  const std::string& what);

// TreeError: a value of this structure is not what a C++ type needs.
[[noreturn]] void throw_misfit(const TreeDef& structure, std::string_view what);
std::string number_text(double value);  // the shortest text that reads back as the same number

}  // namespace plait
