// What holds for every primitive, checked on given inputs: derivatives against differences,
// adjointness, vmap against a loop, masks against the unpadded computation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/primitives/families.h>

#include <cmath>
#include <complex>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../problem.h"

namespace plait::test {

template <class T>
Array array(const std::vector<T>& values, const Sizes64& shape) {
  Buffer buffer = Buffer::empty(dtype_of<T>(), shape);
  for (std::size_t i = 0; i < values.size(); ++i)
    static_cast<T*>(buffer.mutable_data())[i] = values[i];
  return Array(buffer);
}
template <class T>
Array array(const std::vector<T>& values) {
  return array(values, {std::int64_t(values.size())});
}

template <class T>
std::vector<T> elements(const Array& x) {
  const Buffer dense = x.buffer().dense();
  REQUIRE(dense.dtype() == dtype_of<T>());
  const T* data = static_cast<const T*>(dense.data());
  return std::vector<T>(data, data + num_elements(dense.shape()));
}

// Elements of any dtype as doubles; complex ones as two.
inline std::vector<double> numbers_of(const Array& x) {
  const Buffer dense = x.buffer().dense();
  std::vector<double> result;
  visit_dtype(dense.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* data = static_cast<const T*>(dense.data());
    for (std::int64_t i = 0; i < num_elements(dense.shape()); ++i) {
      if constexpr (is_complex_v<T>) {
        result.push_back(data[i].real());
        result.push_back(data[i].imag());
      } else if constexpr (detail::is_half<T>) {
        result.push_back(float(data[i]));
      } else {
        result.push_back(double(data[i]));
      }
    }
  });
  return result;
}

inline void check_close(const Array& actual, const Array& expected, double tolerance = 1e-9) {
  REQUIRE(actual.aval().to_string() == expected.aval().to_string());
  const std::vector<double> a = numbers_of(actual), b = numbers_of(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(b[i]) || std::isinf(b[i])) {
      CHECK((std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]));
    } else {
      CHECK(std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])));
    }
  }
}

// Deterministic inputs of a sample.
inline Array values_for(const Sample::Input& input, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> unit(0, 1);
  const Sizes64 shape = input.aval.shape.to_sizes();
  const std::int64_t n = num_elements(shape);
  std::vector<std::int64_t> order(n);
  for (std::int64_t i = 0; i < n; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), generator);
  Buffer buffer = Buffer::empty(input.aval.dtype, shape);
  using Values = Sample::Input::Values;
  visit_dtype(input.aval.dtype, [&](auto element) {
    using T = decltype(element);
    T* data = static_cast<T*>(buffer.mutable_data());
    for (std::int64_t i = 0; i < n; ++i) {
      double value = normal(generator);
      if (input.values == Values::distinct)
        value = 0.25 * double(order[i]) - 0.1 * double(n) + 0.05;
      if (input.values == Values::positive) value = std::abs(value) + 0.5;
      if (input.values == Values::indices)
        value = double(generator() % std::max<std::int64_t>(1, input.limit));
      if (input.values == Values::boolean) value = double(generator() % 2);
      if (input.values == Values::key) value = double(generator());
      if constexpr (is_complex_v<T>)
        data[i] = T(value, normal(generator));
      else if constexpr (detail::is_half<T>)
        data[i] = T(float(value));
      else
        data[i] = T(value);
    }
  });
  return Array(buffer);
}

inline double dot(const Array& x, const Array& y) {
  const std::vector<double> a = numbers_of(x), b = numbers_of(y);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// jvp against central differences, and <Jv, w> = <v, J'w>, for real float64 inputs.
inline void check_derivatives(const Function& f, const Arrays& primals, double tolerance = 1e-6) {
  Arrays directions, moved[2];
  Tangents tangents;
  std::vector<bool> wrt;
  const double h = 1e-6;
  for (std::size_t i = 0; i < primals.size(); ++i) {
    const Aval& aval = primals[i].aval();
    wrt.push_back(aval.dtype == DType::float64);
    directions.push_back(values_for({{aval.shape, DType::float64}}, unsigned(100 + i)));
    tangents.push_back(wrt[i] ? Tangent(directions[i]) : Tangent(aval));
    for (int side : {0, 1})
      moved[side].push_back(wrt[i] ? Array(primals[i] + directions[i] * (side ? h : -h))
                                   : primals[i]);
  }
  const Differentiated result = flat::jvp(f, primals, tangents);
  const Arrays low = f(moved[0]), high = f(moved[1]);
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    if (!is_inexact(result.outputs[i].dtype())) {
      CHECK(result.tangents[i].is_zero());
      continue;
    }
    check_close(result.tangents[i].instantiate(), (high[i] - low[i]) * (0.5 / h), tolerance);
  }
  const flat::Pullback pullback = flat::vjp(f, primals, wrt);
  double forward = 0, backward = 0;
  Tangents cotangents;
  for (std::size_t i = 0; i < pullback.outputs.size(); ++i) {
    const Aval& aval = pullback.outputs[i].aval();
    if (!is_inexact(aval.dtype)) {
      cotangents.push_back(Tangent(aval));
      continue;
    }
    const Array w = values_for({aval}, unsigned(200 + i));
    cotangents.push_back(w);
    forward += dot(result.tangents[i].instantiate(), w);
  }
  const Tangents pulled = pullback.pull(cotangents);
  for (std::size_t i = 0, k = 0; i < primals.size(); ++i) {
    if (!wrt[i]) continue;
    const Tangent& back = pulled[pulled.size() == primals.size() ? i : k++];
    if (!back.is_zero()) {
      CHECK(back.aval().shape == primals[i].shape());
      backward += dot(directions[i], back.array());
    }
  }
  CHECK(forward == doctest::Approx(backward).epsilon(1e-9));
}

// The derivatives of the derivative: jvp of the pullback.
inline void check_second_derivatives(const Function& f, const Arrays& primals,
                                     double tolerance = 1e-6) {
  auto pull = [&](std::span<const Array> inputs) {
    const flat::Pullback pullback = flat::vjp(f, inputs, std::vector<bool>(inputs.size(), true));
    Tangents cotangents;
    for (std::size_t i = 0; i < pullback.outputs.size(); ++i)
      cotangents.push_back(
          is_inexact(pullback.outputs[i].dtype())
              ? Tangent(values_for({pullback.outputs[i].aval()}, unsigned(300 + i)))
              : Tangent(pullback.outputs[i].aval()));
    Arrays results;
    for (const Tangent& tangent : pullback.pull(cotangents))
      results.push_back(tangent.instantiate());
    return results;
  };
  check_derivatives(pull, primals, tolerance);
}

inline Array example_of(const Array& batched, int dim, std::int64_t index) {
  const Buffer buffer = batched.buffer();
  Sizes64 shape = buffer.shape(), strides = buffer.strides();
  const std::int64_t offset = index * strides[dim] * size_of(buffer.dtype());
  shape.erase(dim);
  strides.erase(dim);
  return Array(buffer.view_as(shape, strides, offset));
}

// vmap over every choice of batched inputs, each at its first, last or middle axis, against a loop.
inline void check_vmap(const Function& f, const std::vector<Sample::Input>& inputs,
                       double tolerance = 1e-9) {
  constexpr int size = 3;
  for (unsigned subset = 1; subset < (1u << inputs.size()); ++subset)
    for (int place : {0, 1, 2}) {
      flat::VmapOptions options;
      options.out_dims = [](std::size_t count) {
        return std::vector<std::optional<int>>(count, 0);
      };
      Arrays batched;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        Sample::Input input = inputs[i];
        std::optional<int> dim;
        if (subset >> i & 1) {
          dim = place == 0 ? 0 : place == 1 ? input.aval.rank() : input.aval.rank() / 2;
          input.aval.shape.insert(*dim, size);
        }
        options.in_dims.push_back(dim);
        batched.push_back(values_for(input, unsigned(i + 7)));
      }
      CAPTURE(subset);
      CAPTURE(place);
      const Arrays outputs = flat::vmap(f, batched, options);
      for (int index = 0; index < size; ++index) {
        Arrays examples;
        for (std::size_t i = 0; i < inputs.size(); ++i)
          examples.push_back(options.in_dims[i] ? example_of(batched[i], *options.in_dims[i], index)
                                                : batched[i]);
        const Arrays expected = f(examples);
        for (std::size_t i = 0; i < outputs.size(); ++i)
          check_close(example_of(outputs[i], 0, index), expected[i], tolerance);
      }
    }
}

// All of it for the samples that a primitive's block gives.
inline void check_samples(const Primitive& primitive) {
  int number = 0;
  for (const Sample& sample : rule<Samples>(primitive)()) {
    CAPTURE(number++);
    CAPTURE(sample.params.to_string());
    Arrays primals;
    bool has_float = false;
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      primals.push_back(values_for(sample.inputs[i], unsigned(i + 1)));
      has_float |= sample.inputs[i].aval.dtype == DType::float64;
    }
    const Function f = [&](std::span<const Array> inputs) -> Arrays {
      return bind(primitive, inputs, sample.params);
    };
    const Jaxpr jaxpr = make_jaxpr(f,
                                   [&] {
                                     std::vector<Aval> avals;
                                     for (const Sample::Input& input : sample.inputs)
                                       avals.push_back(input.aval);
                                     return avals;
                                   }())
                            .jaxpr;
    check(jaxpr);
    if (has_float) check_derivatives(f, primals);
    check_vmap(f, sample.inputs);
  }
}

// A named size: what it is at run time, and what it is padded to.
using Extents = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

// The Mask rule of a primitive on padding full of NaN (or large integers) against the primitive
// itself on the real elements. avals and params hold named sizes.
inline void check_mask(const Primitive& primitive, const std::vector<Aval>& avals,
                       const Params& params, const Extents& extents, double tolerance = 1e-9,
                       Sample::Input::Values kind = Sample::Input::Values::normal) {
  auto at = [&](Dim dim) {
    return dim.evaluate(
        [&](std::string_view name) { return std::optional(extents.at(std::string(name)).first); });
  };
  // The largest value for sizes up to their bounds.
  auto bound = [&](Dim dim) {
    std::int64_t largest = 0;
    std::map<std::string, std::int64_t> sizes;
    std::function<void(Extents::const_iterator)> visit = [&](Extents::const_iterator size) {
      if (size == extents.end()) {
        largest = std::max(largest, dim.evaluate([&](std::string_view name) {
          return std::optional(sizes.at(std::string(name)));
        }));
        return;
      }
      for (std::int64_t value = 0; value <= size->second.second; ++value) {
        sizes[size->first] = value;
        visit(std::next(size));
      }
    };
    visit(extents.begin());
    return largest;
  };
  const SizeValues sizes{
      [&](Dim dim) { return Array::literal(Literal{DType::int32, false, at(dim), 0, 0}); },
      [&](Dim dim) { return Dim(bound(dim)); }};
  std::vector<std::pair<Dim, Dim>> numbers;
  for (const auto& [name, extent] : extents) numbers.emplace_back(Dim::size(name), extent.first);
  Arrays real;
  std::vector<Masked> masked;
  for (std::size_t i = 0; i < avals.size(); ++i) {
    const Array value = values_for({{substitute(avals[i].shape, numbers), avals[i].dtype}, kind, 3},
                                   unsigned(i + 11));
    Sizes64 padded;
    for (Dim dim : avals[i].shape) padded.push_back(bound(dim));
    Buffer buffer = Buffer::empty(avals[i].dtype, padded);
    visit_dtype(avals[i].dtype, [&](auto element) {
      using T = decltype(element);
      T* data = static_cast<T*>(buffer.mutable_data());
      for (std::int64_t k = 0; k < num_elements(padded); ++k) {
        if constexpr (std::is_floating_point_v<T>)
          data[k] = std::numeric_limits<T>::quiet_NaN();
        else if constexpr (std::is_integral_v<T>)
          data[k] = T(k % 2 ? 77 : -77);
      }
    });
    copy_elements(value.buffer().view(), View{buffer.view().data, avals[i].dtype,
                                              value.shape().to_sizes(), buffer.strides()});
    real.push_back(value);
    masked.push_back({Array(buffer), avals[i]});
  }
  std::vector<Aval> outputs;
  {
    JaxprTrace trace("test");  // takes the constraints
    TraceScope scope(&trace);
    outputs = infer(primitive, avals, params);
  }
  const Arrays results = rule<Mask>(primitive)(masked, outputs, params, sizes);
  const Arrays expected = bind(primitive, real, substitute(params, numbers));
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(outputs[i].to_string());
    Shape padded;
    for (Dim dim : outputs[i].shape) padded.push_back(bound(dim));
    CHECK(results[i].shape().to_string() == padded.to_string());
    const Buffer result = results[i].buffer();
    const Sizes64 shape = substitute(outputs[i].shape, numbers).to_sizes();
    check_close(
        Array(Buffer::copy_of(View{result.view().data, result.dtype(), shape, result.strides()})),
        expected[i], tolerance);
  }
}

}  // namespace plait::test
