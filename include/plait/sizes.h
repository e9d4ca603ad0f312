// Named sizes of programs: specs that stand for arguments ("n d", "i32[n]"), the values of sizes
// found from shapes, and what masking needs to know about them.
//
// A size is bound by the program that names it. Where a name is in use already, by a program that
// is being traced around this one, the inner program takes another: see fresh_size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

#include <algorithm>
#include <map>

namespace plait {

// What stands for an argument: sizes separated by spaces or commas, "n d", "2*n+1 4", "n+m"; with a
// dtype, "i32[n d]"; "_" for a size taken from the call, "" for a scalar. A default one takes all
// from the call. Without a dtype it is that of the call, or float32.
class Spec {
 public:
  Spec() = default;
  Spec(std::nullopt_t) {}       // NOLINT: None is a spec
  Spec(std::string_view text);  // NOLINT: ValueError says position and fault
  Spec(const char* text) : Spec(std::string_view(text)) {}         // NOLINT
  Spec(const std::string& text) : Spec(std::string_view(text)) {}  // NOLINT
  Spec(const Aval& aval);                                          // NOLINT

  // The aval meant; what it takes from the call must be given then. ShapeError or DtypeError when
  // the call's has another rank or dtype; messages begin with where.
  Aval resolve(const std::optional<Aval>& actual = {}, const std::string& where = "") const;
  void collect_sizes(std::vector<Dim>& sizes) const;
  Spec substitute(SizeSubstitution replacements) const;
  std::string to_string() const;

 private:
  std::optional<DType> dtype_;
  std::optional<std::vector<std::optional<Dim>>> dims_;  // a dim of none is the call's
  bool weak_ = false;
};
inline Spec parse_spec(std::string_view text) { return Spec(text); }

// Values of named sizes, by name: m(x, w, Sizes{{"n", 3}}). Integer scalars, traced or not; a tree,
// so that vmap maps arrays of lengths in it.
using Sizes = std::map<std::string, Array>;

// --- Names in scope ------------------------------------------------------------------------------

// The sizes that programs being traced on this thread bind, outermost first.
std::span<const Dim> sizes_in_scope();
// Adds sizes to those in scope.
class SizeScope {
 public:
  explicit SizeScope(std::span<const Dim> sizes);
  ~SizeScope();
  SizeScope(const SizeScope&) = delete;

 private:
  std::size_t previous_;
};
// size, or the first of n', n'', ... that is not among the taken ones.
Dim fresh_size(Dim size, std::span<const Dim> taken);

// --- Values --------------------------------------------------------------------------------------

// The values of sizes at which formal shapes are the actual ones (numbers, or sizes of an enclosing
// program): 2*n+1 gives n, and each size needs one dim that gives it. Sizes that no shape mentions
// are left out. ShapeError names the function, the argument, the axis and both extents where two
// disagree.
std::vector<std::pair<Dim, Dim>> solve_sizes(std::span<const Dim> sizes,
                                             std::span<const Aval> formal,
                                             std::span<const Aval> actual,
                                             std::string_view function);

// The largest value of an expression when sizes take values from 0 to a bound each, at least 0:
// what an array of this size is padded to. Sizes that are not listed are fixed.
Dim largest(Dim dim, SizeSubstitution bounds);

// The same program with its size binders in this order; every size that it uses is among them.
Jaxpr with_sizes(const Jaxpr& jaxpr, const std::vector<Dim>& sizes);
// The program with numbers, or other sizes, in place of named sizes: instantiate(jaxpr, {{"n",
// 3}}). ValueError for a name that the program has not, ShapeError where it needs other sizes.
Jaxpr instantiate(const Jaxpr& jaxpr, const std::map<std::string, Dim>& sizes);
// The program for inputs of these avals: jaxpr itself without named sizes, else instantiated,
// memoised. ValueError for a size that no input tells.
Jaxpr instantiate_for(const Jaxpr& jaxpr, std::span<const Aval> inputs);

// Traces a function on specs, some with the value's aval. The jaxpr binds the specs' sizes in order
// of first occurrence.
Traced trace_with_specs(const Function& function, std::span<const Spec> specs,
                        std::span<const std::optional<Aval>> actual,
                        std::string_view name = "make_jaxpr");

// --- The `masked` equation -----------------------------------------------------------------------

// A vmap around a masked equation: how many examples, and which operands have one for each. Their
// batch axes come first, outermost lane first; results have every lane but those that sum them over
// the examples, which cotangents of operands that these share do.
struct Lane {
  Dim size;
  std::vector<bool> batched;
  std::vector<bool> summed = {};  // by output; empty: none
  bool sums(std::size_t output) const { return output < summed.size() && summed[output]; }
  bool sums_any() const { return std::find(summed.begin(), summed.end(), true) != summed.end(); }
};

// The parameters of a masked equation, which applies a body of real shapes to padded arrays:
//
//   body      the jaxpr. Its last sizes are ragged: their values are the equation's first operands,
//             in order, int32 scalars. Its other sizes belong to the enclosing program
//   bounds    what each ragged size is padded to
//   sizes     values of the other sizes, in order
//   lanes     sizes of the lanes, outermost first; batched: for each lane, 1 for each operand that
//             has it; summed: for each lane, 1 for each output that is the sum over its examples
//   checked   whether sizes outside their bounds are errors when it runs
struct MaskedParams {
  MaskedParams() = default;
  explicit MaskedParams(const Params& params);
  Params to_params() const;

  Jaxpr body;
  std::vector<Dim> ragged;  // the body's own names
  Shape bounds, sizes;
  std::vector<Lane> lanes;
  bool checked = true;

  std::size_t num_ragged() const { return bounds.size(); }
  // The body with the enclosing program's sizes put in; what its ragged sizes are called there,
  // with their bounds.
  Jaxpr open_body() const;
  std::vector<std::pair<Dim, Dim>> open_bounds() const;
  // The padded aval of a value of the body, without lanes.
  Aval padded(const Aval& real) const;

 private:
  std::vector<std::pair<Dim, Dim>> opening() const;  // from the body's sizes to those of open_body
};

// --- Ragged values -------------------------------------------------------------------------------

// Arrays that differ in the size of their first axis, as one array padded with zeros, and their
// int32 lengths.
struct Ragged {
  Array data, lengths;
  Arrays arrays() const;  // without padding; the lengths' values must be known
  Dim size() const { return data.shape(0); }
};
// length: the padded size; the longest array's when absent. ShapeError and DtypeError say which
// arrays differ in another axis or in dtype.
Ragged ragged(std::span<const Array> arrays, std::optional<Dim> length = {});

}  // namespace plait
