// What holds for every masked function, checked on given sizes with NaN in all padding: values,
// tangents, gradients and batches of mask f are those of f on the real elements, and padding gives
// and gets zero.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/plait.h>

#include "../primitives/properties.h"

namespace plait::test {

struct MaskCase {
  Function function;
  std::vector<Spec> specs;
  std::vector<std::pair<std::string, Dim>> bounds;  // of the named sizes
  std::vector<Sample::Input::Values> values = {};   // of each input: normal when left out
  std::vector<DType> dtypes = {};                   // float64 when left out
  std::int64_t limit = 3;                           // of indices
};

// Elements of other sizes than value's: cut, or padded with NaN, or with 77 and -77 by turns.
inline Array refilled(const Array& value, const Sizes64& shape, bool nan = true) {
  const Buffer from = value.buffer();
  Buffer to = Buffer::empty(from.dtype(), shape);
  visit_dtype(from.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t k = 0; k < num_elements(shape); ++k) {
      T& slot = static_cast<T*>(to.mutable_data())[k];
      if constexpr (std::is_floating_point_v<T>)
        slot = nan ? std::numeric_limits<T>::quiet_NaN() : T(0);
      else if constexpr (std::is_same_v<T, bool>)
        slot = nan && k % 2;
      else if constexpr (std::is_integral_v<T>)
        slot = nan ? T(k % 2 ? 77 : -77) : T(0);
    }
  });
  Sizes64 common = shape;
  for (std::size_t i = 0; i < shape.size(); ++i) common[i] = std::min(shape[i], from.shape()[i]);
  copy_elements(View{from.view().data, from.dtype(), common, from.strides()},
                View{to.view().data, to.dtype(), common, to.strides()});
  return Array(to);
}

inline Array stacked(const Arrays& examples) {
  Arrays rows;
  for (const Array& example : examples) {
    Shape shape{1};
    for (Dim dim : example.shape()) shape.push_back(dim);
    rows.push_back(lax::reshape(example, shape));
  }
  return lax::concatenate(rows, 0);
}

inline Array size_array(std::int64_t value) { return Array(Buffer::scalar(std::int32_t(value))); }

// The inputs of one example: real ones, and padded ones.
struct MaskExample {
  Arrays real, padded;
  std::vector<std::int64_t> sizes;
};

inline MaskExample mask_example(const MaskCase& c, const std::vector<std::int64_t>& sizes,
                                unsigned seed) {
  MaskExample example{{}, {}, sizes};
  std::vector<std::pair<Dim, Dim>> values, bounds;
  for (std::size_t i = 0; i < c.bounds.size(); ++i) {
    values.emplace_back(Dim::size(c.bounds[i].first), sizes[i]);
    bounds.emplace_back(Dim::size(c.bounds[i].first), c.bounds[i].second);
  }
  for (std::size_t i = 0; i < c.specs.size(); ++i) {
    Aval aval = c.specs[i].resolve();
    aval.dtype = i < c.dtypes.size() ? c.dtypes[i] : DType::float64;
    const auto kind = i < c.values.size() ? c.values[i] : Sample::Input::Values::normal;
    Sample::Input input{{substitute(aval.shape, values), aval.dtype}, kind, c.limit};
    example.real.push_back(values_for(input, seed + unsigned(i)));
    example.padded.push_back(
        refilled(example.real.back(), substitute(aval.shape, bounds).to_sizes()));
  }
  return example;
}

// mask f as a flat function of the sizes, then the arrays.
inline Function masked(const MaskCase& c) {
  return [&c](std::span<const Array> operands) {
    flat::MaskOptions options{c.specs, {}, {}};
    for (std::size_t i = 0; i < c.bounds.size(); ++i)
      options.sizes.emplace(c.bounds[i].first, operands[i]);
    return flat::mask(c.function, operands.subspan(c.bounds.size()), options);
  };
}

// Outputs and, for each real output's NaN-padded cotangent, gradients of the inputs marked.
inline Arrays with_gradients(const Function& f, std::span<const Array> operands,
                             const std::vector<bool>& wrt, const Arrays& cotangents) {
  const flat::Pullback pullback = flat::vjp(f, operands, wrt);
  Tangents of_outputs;
  for (std::size_t i = 0; i < pullback.outputs.size(); ++i)
    of_outputs.push_back(is_inexact(pullback.outputs[i].dtype())
                             ? Tangent(cotangents[i])
                             : Tangent(pullback.outputs[i].aval()));
  Arrays results = pullback.outputs;
  for (const Tangent& tangent : pullback.pull(of_outputs)) results.push_back(tangent.instantiate());
  return results;
}

inline void check_mask_at(const MaskCase& c, const std::vector<std::vector<std::int64_t>>& rows,
                          double tolerance) {
  const std::size_t num_sizes = c.bounds.size();
  const Function f = masked(c);
  std::vector<bool> wrt(num_sizes, false), real_wrt;
  bool differentiable = false;
  std::vector<Arrays> operands, expected, cotangents;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    CAPTURE(row);
    const MaskExample example = mask_example(c, rows[row], unsigned(17 * row + 1));
    if (row == 0)
      for (const Array& input : example.real) {
        real_wrt.push_back(input.dtype() == DType::float64);
        wrt.push_back(real_wrt.back());
        differentiable |= real_wrt.back();
      }
    Arrays arguments;
    for (std::int64_t size : rows[row]) arguments.push_back(size_array(size));
    arguments.insert(arguments.end(), example.padded.begin(), example.padded.end());
    // Values. Padded results have the shapes that the function gives for the bounds.
    const Arrays plain = c.function(example.real), outputs = f(arguments);
    const std::vector<Aval> bounded =
        make_jaxpr(c.function, avals_of(example.padded)).jaxpr->output_avals();
    REQUIRE(!plain.empty());
    REQUIRE(outputs.size() == plain.size());
    Arrays real_cotangents, padded_cotangents;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CAPTURE(i);
      REQUIRE(outputs[i].ndim() == plain[i].ndim());
      check_close(outputs[i], refilled(plain[i], bounded[i].shape.to_sizes(), false), tolerance);
      const Array w = values_for({{plain[i].shape(), DType::float64}}, unsigned(500 + i));
      real_cotangents.push_back(lax::convert_element_type(w, plain[i].dtype()));
      padded_cotangents.push_back(refilled(real_cotangents.back(), outputs[i].shape().to_sizes()));
    }
    operands.push_back(arguments);
    expected.push_back(outputs);
    cotangents.push_back(padded_cotangents);
    if (!differentiable) continue;
    // Gradients, with NaN in the padding of cotangents.
    const Arrays real_results = with_gradients(c.function, example.real, real_wrt, real_cotangents);
    const Arrays results = with_gradients(f, arguments, wrt, padded_cotangents);
    REQUIRE(results.size() == real_results.size());
    std::size_t gradient = plain.size();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!wrt[i]) continue;
      CAPTURE(i);
      check_close(results[gradient],
                  refilled(real_results[gradient], arguments[i].shape().to_sizes(), false),
                  tolerance);
      ++gradient;
    }
    REQUIRE(gradient == results.size());
    expected.back() = results;
    // Tangents, with NaN in their padding: <Jv, w> = <v, J'w>.
    Tangents tangents;
    double backward = 0, forward = 0;
    std::size_t at = plain.size();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!wrt[i]) {
        tangents.push_back(Tangent(arguments[i].aval()));
        continue;
      }
      const Array direction = values_for({example.real[i - num_sizes].aval()}, unsigned(700 + i));
      tangents.push_back(refilled(direction, arguments[i].shape().to_sizes()));
      backward += dot(refilled(direction, arguments[i].shape().to_sizes(), false), results[at++]);
    }
    const Differentiated pushed = flat::jvp(f, arguments, tangents);
    for (std::size_t i = 0; i < plain.size(); ++i)
      if (is_inexact(plain[i].dtype()))
        forward += dot(pushed.tangents[i].instantiate(),
                       refilled(real_cotangents[i], outputs[i].shape().to_sizes(), false));
    CHECK(forward == doctest::Approx(backward).epsilon(1e-8));
  }
  // Batches of examples of different sizes; each array batched, then all but one.
  const Function g = differentiable ? Function([&](std::span<const Array> inputs) {
    const std::size_t count = operands[0].size();
    return with_gradients(f, inputs.first(count), wrt,
                          Arrays(inputs.begin() + std::ptrdiff_t(count), inputs.end()));
  })
                                    : f;
  flat::VmapOptions options;
  options.out_dims = [](std::size_t count) { return std::vector<std::optional<int>>(count, 0); };
  Arrays batched;
  const std::size_t count = operands[0].size() + (differentiable ? cotangents[0].size() : 0);
  for (std::size_t i = 0; i < count; ++i) {
    Arrays examples;
    for (std::size_t row = 0; row < rows.size(); ++row)
      examples.push_back(i < operands[row].size() ? operands[row][i]
                                                  : cotangents[row][i - operands[row].size()]);
    batched.push_back(stacked(examples));
    options.in_dims.push_back(0);
  }
  const Function vmapped = [&](std::span<const Array> inputs) {
    return flat::vmap(g, inputs, options);
  };
  const Arrays results = vmapped(batched);
  REQUIRE(results.size() == expected[0].size());
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(row);
      CAPTURE(i);
      check_close(example_of(results[i], 0, std::int64_t(row)), expected[row][i], tolerance);
    }
  // Compiled: the same.
  const Arrays jitted = flat::Jit(vmapped, "vmapped")(batched);
  REQUIRE(jitted.size() == results.size());
  for (std::size_t i = 0; i < results.size(); ++i) check_close(jitted[i], results[i], tolerance);
  if (!differentiable) return;
  // The gradient of the batch, where all examples share the sizes and arrays of the first but one
  // array.
  for (std::size_t shared = num_sizes; shared < operands[0].size(); ++shared) {
    if (!wrt[shared]) continue;
    CAPTURE(shared);
    flat::VmapOptions one;
    one.out_dims = options.out_dims;
    Arrays arguments = batched;
    arguments.resize(operands[0].size());
    arguments[shared] = operands[0][shared];
    for (std::size_t i = 0; i < arguments.size(); ++i)
      one.in_dims.push_back(i == shared ? std::nullopt : std::optional<int>(0));
    const Function batch = [&](std::span<const Array> inputs) {
      return flat::vmap(f, inputs, one);
    };
    const Arrays batch_cotangents(batched.begin() + std::ptrdiff_t(operands[0].size()),
                                  batched.end());
    std::vector<bool> only(arguments.size(), false);
    only[shared] = true;
    const Array gradient = with_gradients(batch, arguments, only, batch_cotangents).back();
    Array total = lax::zeros_like(gradient.aval());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      Arrays example = operands[row];
      example[shared] = operands[0][shared];
      total = total + with_gradients(f, example, only, cotangents[row]).back();
    }
    check_close(gradient, total, tolerance);
  }
}

// Every size from 0 (or least) to its bound appears in some row.
inline void check_mask_laws(const MaskCase& c, std::int64_t least = 0, double tolerance = 1e-9) {
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t row = 0; row < 4; ++row) {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < c.bounds.size(); ++i) {
      const std::int64_t bound = c.bounds[i].second.constant(), range = bound - least + 1;
      sizes.push_back(row == 0   ? bound - 1
                      : row == 3 ? bound
                                 : least + (row * 2 + std::int64_t(i)) % range);
    }
    rows.push_back(sizes);
  }
  check_mask_at(c, rows, tolerance);
}

}  // namespace plait::test
