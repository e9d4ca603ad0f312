// Saved programs: traced functions in one `.plait` file, with their constants, the structure of
// their arguments and test vectors. A loaded function is an ordinary function: it runs, and can be
// jitted, differentiated, vmapped and masked.
//
//   plait::save("model.plait", {{"predict", plait::traced(predict, weights, x)}});
//   plait::Program program = plait::load("model.plait");
//   auto predict = program.entry<Array(Weights, Array)>("predict");
//   auto slope = plait::grad(predict);
//
// The file is a zip archive: `manifest.json`, the jaxpr of each entry as text (jaxpr.h), constants
// and test vectors as safetensors. Every format version loads forever (lib/program/upgrade.cpp).
// Loading runs no code of the file, and bounds what it reads; verification runs the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/sized.h>
#include <plait/transforms/api.h>

#include <map>

namespace plait {

// A traced function with everything that a file stores of it. The jaxpr's last inputs are its
// constants.
struct TracedFunction {
  Jaxpr jaxpr;
  Arrays constants;
  std::vector<std::string> constant_names;  // one for each, or empty: then they are numbered
  TreeDef arguments, result;                // arguments: a tuple
  std::vector<std::string> argument_names;  // one for each, or empty
  Arrays example;                           // leaves of the arguments, for a test vector, or empty
  // With names for the arguments: in errors, for keywords in Python, and in C headers.
  // traced(predict, weights, x).named({"weights", "x"}). TreeError unless there is one for each.
  TracedFunction named(std::vector<std::string> names) && {
    if (names.size() != arguments.children().size())
      throw TreeError("save: " + std::to_string(names.size()) + " names for " +
                          std::to_string(arguments.children().size()) + " arguments",
                      "give one name for each argument");
    argument_names = std::move(names);
    return std::move(*this);
  }
};

// TreeError where the structure holds values that are not arrays, which a file cannot hold.
void check_savable(const TreeDef& structure);

// Traces a function on arguments (trees of Arrays) and keeps them as its example.
template <class F, class... A>
TracedFunction traced(F f, const A&... arguments) {
  const detail::Flat<F> flat(f, typename std::decay_t<A>(arguments)...);
  check_savable(TreeDef::tuple(flat.structures));
  Traced trace = make_jaxpr(flat.function, avals_of(flat.inputs), "save");
  check_savable(*flat.result);
  return {std::move(trace.jaxpr),
          std::move(trace.captured),
          {},
          TreeDef::tuple(flat.structures),
          *flat.result,
          {},
          flat.inputs};
}

// The same with named sizes: a spec for each leaf of the arguments, which give the structure. The
// sizes satisfy the constraints, which the file stores: traced_with_specs(f, {"b 784"},
// Constraints{"b > 0"}, x).
template <class F, class... A>
TracedFunction traced_with_specs(F f, const std::vector<Spec>& specs,
                                 const Constraints& constraints, const A&... arguments) {
  const detail::Flat<F> flat(f, typename std::decay_t<A>(arguments)...);
  if (specs.size() != flat.inputs.size())
    throw TreeError("save: " + std::to_string(specs.size()) + " specs for arguments of " +
                        std::to_string(flat.inputs.size()) + " arrays",
                    "give one spec for each array");
  const std::vector<Aval> avals = avals_of(flat.inputs);
  Traced trace = trace_with_specs(flat.function, specs,
                                  std::vector<std::optional<Aval>>(avals.begin(), avals.end()),
                                  "save", constraints);
  check_savable(TreeDef::tuple(flat.structures));
  check_savable(*flat.result);
  return {std::move(trace.jaxpr),
          std::move(trace.captured),
          {},
          TreeDef::tuple(flat.structures),
          *flat.result,
          {},
          {}};
}

template <class F, class... A>
TracedFunction traced_with_specs(F f, const std::vector<Spec>& specs, const A&... arguments)
  requires(sizeof...(A) > 0 &&
           !std::is_same_v<std::tuple_element_t<0, std::tuple<A...>>, Constraints>)
{
  return traced_with_specs(std::move(f), specs, Constraints(), arguments...);
}

// One function of a program. Immutable, cheap to copy.
class Entry {
 public:
  Entry(std::string name, TracedFunction function);
  const std::string& name() const { return data_->name; }
  const Jaxpr& jaxpr() const { return data_->function.jaxpr; }
  const TreeDef& arguments() const { return data_->function.arguments; }
  const TreeDef& result() const { return data_->function.result; }
  const std::vector<std::string>& argument_names() const { return data_->function.argument_names; }
  const Arrays& constants() const { return data_->function.constants; }
  const std::vector<std::string>& constant_names() const { return data_->function.constant_names; }
  // The complete function, in the form that save takes.
  const TracedFunction& function() const { return data_->function; }
  // The avals of the arguments' leaves. Named sizes accept any sizes that agree with each other.
  std::span<const Aval> inputs() const;
  // Maps the leaves of the arguments to those of the result. TreeError, ShapeError and DtypeError
  // name the leaf that does not fit. Arrays may be traced.
  Arrays operator()(std::span<const Array> leaves) const;
  // The operands of the jaxpr for these leaves: the leaves, converted as needed, and the constants.
  Arrays operands(std::span<const Array> leaves) const;
  // The same, run at the sizes of each call as the options say. Without options, each size has an
  // executable of its own. Constraints are those of the file.
  Entry at_sizes(SizeOptions options) const;
  // The steps that run for leaves of these avals, and the cost of padding.
  std::string explain(std::span<const Aval> leaves) const;
  // The same with some constants replaced, by name, by arrays of the same shapes and dtypes.
  Entry with_constants(const std::map<std::string, Array>& replacements) const;
  // The same function with another program, such as a pass makes from jaxpr(); the test vector
  // stays. ShapeError where its inputs or outputs have other types.
  Entry with_jaxpr(const Jaxpr& jaxpr) const;
  // TreeError where the structure does not match the arguments. Classes of records are not
  // compared, because the file holds only their names.
  void check_arguments(const TreeDef& given) const;
  // Reorders the leaves of arguments of this structure to the order of the entry: fields of
  // structs, which may be in any order, match by name. TreeError as for check_arguments.
  Arrays arranged(const TreeDef& given, std::span<const Array> leaves) const;
  // Runs its test vector. ValueError says which output differs, and by how much.
  void verify() const;
  bool has_example() const { return !data_->function.example.empty() || inputs().empty(); }

 private:
  friend class Program;
  friend struct ProgramFile;
  struct Data {
    std::string name;
    TracedFunction function;
    Arrays expected;                      // the outputs for the example
    std::shared_ptr<SizedProgram> sized;  // with named sizes
  };
  std::shared_ptr<const Data> data_;
};

struct SaveOptions {
  std::map<std::string, std::string> meta = {};  // free text by key: "author", "dataset", ...
  std::string licence = {};
  bool constants = true;     // false: they are left out, and must be given on loading
  bool test_vectors = true;  // for entries that have an example
  bool sources = true;       // the lines that equations were traced from
};

struct LoadOptions {
  bool verify = false;                          // run every test vector, compare all checksums
  std::map<std::string, Array> constants = {};  // replace those of the file, by name
  // Constants are paged in from the file on first read; then only verify compares checksums.
  bool map_memory = true;
};

class Program {
 public:
  explicit Program(std::vector<Entry> entries, std::map<std::string, std::string> meta = {},
                   std::string licence = {});
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry& operator[](std::string_view name) const;  // ValueError lists the names
  const std::map<std::string, std::string>& meta() const { return meta_; }
  const std::string& licence() const { return licence_; }
  void verify() const;  // every entry that has a test vector

  // An entry as a C++ function: entry<Array(Weights, Array)>("predict"). A struct matches a dict, a
  // namedtuple or a dataclass of the file with the same names, in any order (values.h says where
  // field names come from), or a tuple, by position. TreeError when the structures of arguments or
  // results differ from the file's.
  template <class Signature>
  auto entry(std::string_view name) const {
    return as_function((*this)[name], std::type_identity<Signature>());
  }
  template <class Signature>
  auto entry(std::string_view name, SizeOptions options) const {
    return as_function((*this)[name].at_sizes(std::move(options)), std::type_identity<Signature>());
  }
  // For a program with one entry.
  template <class Signature>
  auto entry() const {
    return entry<Signature>(only().name());
  }
  const Entry& only() const;  // ValueError where there are several

 private:
  template <class R, class... A>
  static auto as_function(const Entry& entry, std::type_identity<R(A...)>) {
    return Transformed<R, detail::ArgumentOf<A>...>(
        [entry](const detail::ArgumentOf<A>&... arguments) -> R {
          Arrays leaves;
          std::vector<TreeDef> structures;
          (structures.push_back(flatten(arguments, leaves)), ...);
          const TreeDef given = TreeDef::tuple(std::move(structures));
          return unflatten<R>(entry.result(), entry(entry.arranged(given, leaves)));
        });
  }

  std::vector<Entry> entries_;
  std::map<std::string, std::string> meta_;
  std::string licence_;
};

// Writes a file atomically: an existing file stays until the new one is complete. FileError when it
// cannot be written. ValueError names what a file cannot hold: host calls, and primitives or rules
// that are functions of this process.
void save(const std::string& path, const std::map<std::string, TracedFunction>& functions,
          const SaveOptions& options = {});
// Reads a file. ValueError says where in the file it is damaged, which primitives are not
// registered in this process, or that a newer plait wrote it.
Program load(const std::string& path, const LoadOptions& options = {});

}  // namespace plait
