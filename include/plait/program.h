// Saved programs: traced functions in one `.plait` file, with their constants, the structure of
// their arguments and test vectors. What is loaded is an ordinary function: it runs, jits,
// differentiates, vmaps and masks like any other.
//
//   plait::save("model.plait", {{"predict", plait::traced(predict, weights, x)}});
//   plait::Program program = plait::load("model.plait");
//   auto predict = program.entry<Array(Weights, Array)>("predict");
//   auto slope = plait::grad(predict);
//
// The file is a zip archive: `manifest.json`, the jaxpr of each entry as text (jaxpr.h), constants
// and test vectors as safetensors. Format versions load forever (lib/program/upgrade.cpp). Loading
// runs no code of the file, and bounds what it reads; to verify is to run the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/api.h>
#include <plait/sized.h>

#include <map>

namespace plait {

// A traced function with what a file keeps of it. The jaxpr's last inputs are its constants.
struct TracedFunction {
  Jaxpr jaxpr;
  Arrays constants;
  std::vector<std::string> constant_names;  // one for each, or none: then they are numbered
  TreeDef arguments, result;                // arguments: a tuple
  std::vector<std::string> argument_names;  // one for each, or none
  Arrays example;                           // leaves of arguments, for a test vector, or none
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

// TreeError where the structure holds values that are no arrays, which a file does not.
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

// The same for sizes with names: a spec for each leaf of the arguments, which say the structure.
// The sizes satisfy the constraints, which the file keeps: traced_with_specs(f, {"b 784"},
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
  // All of it, as save takes it.
  const TracedFunction& function() const { return data_->function; }
  // The avals of the arguments' leaves; those with named sizes take any that fit each other.
  std::span<const Aval> inputs() const;
  // The leaves of the result, for the leaves of the arguments. TreeError, ShapeError and DtypeError
  // name the leaf that does not fit. Arrays may be traced.
  Arrays operator()(std::span<const Array> leaves) const;
  // What the jaxpr is given for these leaves: they, as it takes them, and the constants.
  Arrays operands(std::span<const Array> leaves) const;
  // The same, run at the sizes of its calls as the options say; without, each size has a program of
  // its own. Constraints are those of the file.
  Entry at_sizes(SizeOptions options) const;
  // What runs for leaves of these avals, and what padding costs.
  std::string explain(std::span<const Aval> leaves) const;
  // The same with other arrays for some constants, by name, of the same shapes and dtypes.
  Entry with_constants(const std::map<std::string, Array>& replacements) const;
  // The same function by another program, such as a pass makes of jaxpr(); its test vector stays.
  // ShapeError where it has inputs or outputs of other types.
  Entry with_jaxpr(const Jaxpr& jaxpr) const;
  // TreeError where arguments of this structure are no arguments of it. Classes of records are not
  // compared, for the file knows only their names.
  void check_arguments(const TreeDef& given) const;
  // Leaves of arguments of this structure, in the order of the entry's: parts of structs, which are
  // in any order, go by name. TreeError as check_arguments.
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
  bool constants = true;     // false: they are left out, and are to be given when it is loaded
  bool test_vectors = true;  // for entries that have an example
  bool sources = true;       // the lines that equations were traced from
};

struct LoadOptions {
  bool verify = false;                          // run every test vector, compare all checksums
  std::map<std::string, Array> constants = {};  // instead of the file's, by name
  // Constants stay in the file until they are read; only verify compares them with checksums then.
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

  // An entry as a C++ function: entry<Array(Weights, Array)>("predict"). A struct stands for a
  // dict, a namedtuple or a dataclass of the file whose names are those of its fields, in any
  // order (values.h says where they come from), or for a tuple, by place. TreeError when arguments
  // or results are of other structures than the file's.
  template <class Signature>
  auto entry(std::string_view name) const {
    return as_function((*this)[name], std::type_identity<Signature>());
  }
  template <class Signature>
  auto entry(std::string_view name, SizeOptions options) const {
    return as_function((*this)[name].at_sizes(std::move(options)), std::type_identity<Signature>());
  }
  // Of a program with one entry.
  template <class Signature>
  auto entry() const {
    return entry<Signature>(only().name());
  }
  const Entry& only() const;  // ValueError where there are several

 private:
  template <class R, class... A>
  static auto as_function(const Entry& entry, std::type_identity<R(A...)>) {
    return Transformed<R, detail::Argument<A>...>(
        [entry](const detail::Argument<A>&... arguments) -> R {
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

// Writes a file, whole or not at all: what was there stays until the new one is complete. FileError
// when it cannot be written; ValueError names what a file cannot hold: host calls, and primitives
// or rules that are functions of this process.
void save(const std::string& path, const std::map<std::string, TracedFunction>& functions,
          const SaveOptions& options = {});
// Reads a file. ValueError says where in the file it is damaged, which primitives are not
// registered here, or that a newer plait wrote it.
Program load(const std::string& path, const LoadOptions& options = {});

}  // namespace plait
