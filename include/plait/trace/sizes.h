// Named sizes of programs: specs that stand for arguments ("n d", "i32[n]"), the values of sizes
// solved from shapes, and what masking needs.
//
// A size is bound by the program that names it. Where a program that is being traced around this
// one already uses a name, the inner program takes another: see fresh_size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

#include <algorithm>
#include <map>

namespace plait {

// What stands for an argument: sizes separated by spaces or commas, "n d", "2*n+1 4", "n+m"; with a
// dtype, "i32[n d]"; "_" for a size taken from the call, "" for a scalar. A default one takes
// everything from the call. Without a dtype it is that of the call, or float32.
class Spec {
 public:
  Spec() = default;
  Spec(std::nullopt_t) {}                                   // NOLINT: None is a spec
  Spec(std::string_view text);                              // NOLINT: ValueError for bad text
  Spec(const char* text) : Spec(std::string_view(text)) {}  // NOLINT
  Spec(const std::string& text) : Spec(std::string_view(text)) {}  // NOLINT
  Spec(const Aval& aval);                                          // NOLINT

  // The resulting aval; actual is needed where the spec takes a part from the call. ShapeError or
  // DtypeError when the call's has another rank or dtype; messages begin with where.
  Aval resolve(const std::optional<Aval>& actual = {}, const std::string& where = "") const;
  void collect_sizes(std::vector<Dim>& sizes) const;
  Spec substitute(SizeSubstitution replacements) const;
  std::string to_string() const;

 private:
  std::optional<DType> dtype_;
  std::optional<std::vector<std::optional<Dim>>> dims_;  // a dim of nullopt is that of the call
  bool weak_ = false;
};

// Values of named sizes, by name: m(x, w, Sizes{{"n", 3}}). Integer scalars, traced or not. A tree,
// so that vmap maps over arrays of lengths in it.
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

// Solves for the sizes at which formal shapes equal the actual ones (numbers, or sizes of an
// enclosing program). 2*n+1 gives n; each size needs one dim that determines it. Sizes that no
// shape mentions are left out. ShapeError names the function, the argument, the axis and both
// extents where two disagree.
std::vector<std::pair<Dim, Dim>> solve_sizes(std::span<const Dim> sizes,
                                             std::span<const Aval> formal,
                                             std::span<const Aval> actual,
                                             std::string_view function);

// The largest value of an expression over sizes from 0 to a bound each, at least 0: the padded size
// of an axis. Sizes that are not listed are fixed.
Dim largest(Dim dim, SizeSubstitution bounds);

// The same program with its size binders in this order; every size that it uses is among them.
Jaxpr with_sizes(const Jaxpr& jaxpr, const std::vector<Dim>& sizes);
// The program with numbers, or other sizes, in place of named sizes: instantiate(jaxpr, {{"n",
// 3}}). ValueError for a name that the program does not have, ShapeError where constraints are
// violated.
Jaxpr instantiate(const Jaxpr& jaxpr, const std::map<std::string, Dim>& sizes);
// The program for inputs of these avals: jaxpr itself without named sizes, else instantiated,
// memoised. ValueError for a size that no input determines.
Jaxpr instantiate_for(const Jaxpr& jaxpr, std::span<const Aval> inputs);

// Traces a function on specs, some with the value's aval. The jaxpr binds the specs' sizes in order
// of first occurrence.
Traced trace_with_specs(const Function& function, std::span<const Spec> specs,
                        std::span<const std::optional<Aval>> actual,
                        std::string_view name = "make_jaxpr");

// --- Ragged values -------------------------------------------------------------------------------

// Arrays that differ in the size of their first axis, as one array padded with zeros, and their
// int32 lengths.
struct Ragged {
  Array data, lengths;
  Arrays arrays() const;  // without padding; the lengths' values must be known
  Dim size() const { return data.shape(0); }
};
// length: the padded size; by default that of the longest array. ShapeError and DtypeError say
// which arrays differ in another axis or in dtype.
Ragged ragged(std::span<const Array> arrays, std::optional<Dim> length = {});

}  // namespace plait
