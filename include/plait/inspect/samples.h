// What the laws are tested on: the samples of every primitive as concrete arrays, and comparisons
// of arrays that say how they differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/kernels.h>
#include <plait/transforms/transforms.h>

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plait::laws {

// --- Cases ---------------------------------------------------------------------------------------

// One application of a primitive to concrete arrays.
struct Case {
  std::string name;                      // of the primitive
  const Primitive* primitive = nullptr;  // none where the primitive is reached through a function
  std::vector<Sample::Input> inputs;
  Params params;
  std::function<Arrays(std::span<const Array>, const Params&)> apply;

  Arrays operator()(std::span<const Array> arrays) const { return apply(arrays, params); }
  Function function() const {
    return [*this](std::span<const Array> arrays) { return apply(arrays, params); };
  }
  std::vector<Aval> avals() const;
  Arrays values(unsigned seed = 1) const;
  std::string to_string() const;  // "reduce[axes=(0), kind=sum] f64[2,3,4]"
};

Case make_case(const Primitive& primitive, Sample sample);
// The samples that the primitive's block gives. custom_linear is applied by custom_vjp, and
// empty_stack by a loop in a branch.
std::vector<Case> cases_of(const Primitive& primitive);
// Cases above the work threshold of every backend, most in sizes that no vector width divides:
// libraries claim these only in large groups, or whole. Of dot_general and conv, and of composites
// by their symbols.
std::vector<Case> large_cases();
// The primitive applied to this many examples of the case at once; nullopt where that is not one
// application of it.
std::optional<Case> enlarged(const Case& one, std::int64_t examples);
// The case with this dtype in place of float64; nullopt when the Abstract rule, or the function
// that reaches the primitive, refuses it.
std::optional<Case> with_dtype(const Case& original, DType dtype);

// Every primitive but the mutants.
std::vector<const PrimitiveInfo*> primitives_under_law();

// --- Values --------------------------------------------------------------------------------------

// Deterministic values in the domain where the function is defined and smooth.
Array values_for(const Sample::Input& input, unsigned seed);
Array normal_like(const Aval& aval, unsigned seed);
// The same numbers as another dtype, without plait's own casts; of complex numbers the real parts.
Array converted(const Array& array, DType dtype);
// The same elements in memory that is not dense: reversed, with gaps.
Array strided(const Array& array);
// Element `index` of an axis.
Array example_of(const Array& array, int axis, std::int64_t index);
// The array inside a larger one; the padding is `fill`, or a large integer, or true.
Array padded_to(const Array& array, const Sizes64& shape,
                double fill = std::numeric_limits<double>::quiet_NaN());
// The leading elements of an array along each axis.
Array leading(const Array& array, const Sizes64& shape);
// x + step * direction, in the dtype's own arithmetic, for float and complex arrays.
Array moved(const Array& x, const Array& direction, double step);

// Every element as a complex number.
std::vector<complex128> numbers_of(const Array& array);
// The real part of the sum of products, without conjugation: what transposition preserves.
double dot(const Array& a, const Array& b);

// --- Comparison ----------------------------------------------------------------------------------

// Nullopt when equal; otherwise where and how they differ.
std::optional<std::string> difference_in_bits(const Array& actual, const Array& expected);
std::optional<std::string> difference_in_bits(const Arrays& actual, const Arrays& expected);
// Shapes, dtypes, and values within the tolerance of the table, or the given one.
std::optional<std::string> difference(const Array& actual, const Array& expected,
                                      std::optional<double> tolerance = {});
std::optional<std::string> difference(const Arrays& actual, const Arrays& expected,
                                      std::optional<double> tolerance = {});
std::optional<std::string> difference(double actual, double expected, double scale,
                                      double tolerance);

// All non-empty subsets of n things for n <= 3; for larger n, the single ones and the whole.
std::vector<std::vector<bool>> nonempty_subsets(std::size_t n);

}  // namespace plait::laws
