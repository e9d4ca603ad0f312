// How a function of named sizes runs at the sizes of a call: with one executable for each set of
// sizes, padded to the next size of a list (buckets), or padded to one bound for all calls.
//
//   auto f = plait::jit(predict, {"d k", "b d"},
//                       {.constraints = {"b > 0"}, .buckets = powers_of_two});
//   auto g = plait::jit(predict, {"d k", "b d"}, {.bound = {{"b", 512}}});
//   f.explain(w, x);                              // the steps, and what padding costs
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>
#include <plait/transforms/specs.h>
#include <plait/transforms/trace_store.h>

#include <list>

namespace plait {

// The sizes to pad to, ascending, by name; "" stands for every other size. An empty list means the
// powers of two.
using Buckets = std::map<std::string, std::vector<std::int64_t>>;
inline const Buckets& powers_of_two = *new const Buckets{{"", {}}};

struct SizeOptions {
  std::vector<std::string> constraints = {};
  Buckets buckets = {};                            // sizes that are padded to the next of a list
  std::map<std::string, std::int64_t> bound = {};  // sizes that are padded to a bound
  std::size_t executables = 64;  // how many are kept; the least recently used goes first
};

// A program of named sizes, with its executables for the sizes of its calls. Thread-safe.
class SizedProgram {
 public:
  // ValueError where the options name sizes that the program does not have, or hold invalid sizes.
  // Messages begin with who.
  SizedProgram(Jaxpr program, SizeOptions options, std::string name, std::string who = "jit");

  // Another program with the same options, such as one that a pass makes of this program.
  std::shared_ptr<SizedProgram> with_program(Jaxpr program) const {
    return std::make_shared<SizedProgram>(std::move(program), options_, name_, who_);
  }

  // Runs the program, padded where the options say so; inputs may be traced. ShapeError where sizes
  // disagree, violate the constraints, or exceed the bound or the last bucket.
  Arrays operator()(std::span<const Array> inputs);
  // How inputs of these avals run: one line on sizes and padding, then a line for each step.
  std::string explain(std::span<const Aval> inputs);

  // What a call runs.
  struct Instance {
    std::vector<std::pair<Dim, Dim>> sizes;   // of the call
    std::vector<std::pair<Dim, Dim>> padded;  // the padded sizes, and what each is padded to
    Jaxpr program;                            // takes the values of the padded sizes first
  };
  Instance instance_for(std::span<const Aval> inputs);
  // Converts the inputs of the call to those of the instance, and its results back.
  Arrays pad(const Instance& instance, std::span<const Array> inputs) const;
  Arrays cut(const Instance& instance, Arrays results) const;
  std::string describe(const Instance& instance);  // the first line of explain

 private:
  std::optional<std::int64_t> padded_value(Dim size, std::int64_t value) const;
  void require_sizes() const;

  struct Kept {
    std::vector<std::pair<Dim, Dim>> key;
    Jaxpr program;
  };
  const Jaxpr program_;
  const SizeOptions options_;
  const std::string name_, who_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the most recently used first
};

// The percentage of the work of a padded program (arithmetic; bytes where there is none) that is
// spent on padding.
double padding_share(const Jaxpr& program, SizeSubstitution sizes, SizeSubstitution padded);

namespace flat {

// jit of a function of flat lists, traced once for all values of the sizes that specs name.
class SizedJit {
 public:
  SizedJit(SizeOptions options, std::string name)
      : state_(std::make_shared<State>(std::move(options), std::move(name))) {}
  // structure distinguishes calls whose trees differ. When there is no trace yet, make gives the
  // function, and result the structure of its results.
  struct Call {
    std::vector<TreeDef> structures;
    std::vector<Spec> specs;
    std::span<const Array> inputs;
    Function function;
    std::shared_ptr<TreeDef> result;
  };
  std::pair<Arrays, TreeDef> operator()(const Call& call) const;
  std::string explain(const Call& call) const;
  std::size_t num_traces() const;

 private:
  struct Entry {
    std::vector<TreeDef> structures;
    std::vector<Aval> formal;
    Arrays captured;
    TreeDef result;
    std::shared_ptr<SizedProgram> program;
  };
  struct State {
    State(SizeOptions given, std::string called)
        : options(std::move(given)), name(std::move(called)) {}
    const SizeOptions options;
    const std::string name;
    TraceStore<const Entry> traces;
  };
  std::shared_ptr<const Entry> entry_for(const Call& call) const;
  std::shared_ptr<State> state_;
};

}  // namespace flat

// The result of jit of a function of named sizes.
template <class Result, class... A>
class JittedSizes {
 public:
  template <class F>
  JittedSizes(F f, SpecTree specs, SizeOptions options, std::string name)
      : jitted_(std::move(options), std::move(name)) {
    flatten_ = [f = std::move(f), specs = std::move(specs)](const A&... arguments) {
      const detail::Flat<F> flat(f, arguments...);
      std::vector<Spec> list;
      if (!specs.is_list() && sizeof...(A) != 1)
        throw ValueError("jit: sizes has 1 spec, and the function takes " +
                             std::to_string(sizeof...(A)) + " arguments",
                         "give one spec for each argument");
      specs.spread("jit: sizes", TreeDef::tuple(flat.structures), list);
      return Flattened{flat.structures, std::move(list), flat.inputs, flat.function, flat.result};
    };
  }

  using Signature = Result(A...);

  Result operator()(const A&... arguments, Here here = PLAIT_HERE) const {
    here.remember();
    const Flattened flat = flatten_(arguments...);
    const auto [outputs, structure] = jitted_(call_of(flat));
    return unflatten<Result>(structure, outputs);
  }
  // Where each equation runs for these arguments, at which sizes, and what padding costs.
  std::string explain(const A&... arguments) const {
    const Flattened flat = flatten_(arguments...);
    return jitted_.explain(call_of(flat));
  }
  std::size_t num_traces() const { return jitted_.num_traces(); }

 private:
  struct Flattened {
    std::vector<TreeDef> structures;
    std::vector<Spec> specs;
    Arrays inputs;
    Function function;
    std::shared_ptr<TreeDef> result;
  };
  static flat::SizedJit::Call call_of(const Flattened& flat) {
    return {flat.structures, flat.specs, flat.inputs, flat.function, flat.result};
  }
  std::function<Flattened(const A&...)> flatten_;
  flat::SizedJit jitted_;
};

// f traced once for every value of the sizes that specs name, one spec for each argument. Arrays
// that a lambda captures are frozen. ShapeError names the argument and the axis that does not fit.
template <class F>
auto jit(F f, SpecTree sizes, SizeOptions options, std::string name = "f") {
  return typename detail::signature_of<F>::template As<JittedSizes>(
      std::move(f), std::move(sizes), std::move(options), std::move(name));
}

}  // namespace plait
