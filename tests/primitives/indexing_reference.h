// What the tests of slicing, dynamic, gather and scatter share: arrays as plain lists of doubles
// for straightforward references, and the checks that every rule of a primitive must pass on its
// samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <plait/primitives/primitives.h>
#include <plait/rules/rules.h>
#include <plait/transforms/transforms.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace reference {

using namespace plait;
using Index = std::vector<std::int64_t>;
using SizeMap = std::map<std::string, std::int64_t, std::less<>>;

// An array as its shape and elements in row-major order.
struct Values {
  Index shape;
  std::vector<double> data;

  explicit Values(Index shape, double value = 0) : shape(std::move(shape)) {
    std::int64_t size = 1;
    for (std::int64_t s : this->shape) size *= s;
    data.assign(size, value);
  }
  Values(Index shape, std::vector<double> data) : shape(std::move(shape)), data(std::move(data)) {}
  std::size_t offset(const Index& index) const {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
    return offset;
  }
  double& at(const Index& index) { return data[offset(index)]; }
  double at(const Index& index) const { return data[offset(index)]; }
};

// Calls f with every index of a shape, in row-major order.
template <class F>
void for_each(const Index& shape, const F& f) {
  for (std::int64_t size : shape)
    if (size == 0) return;
  Index index(shape.size(), 0);
  while (true) {
    f(index);
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

inline Index sizes_of(const Shape& shape) {
  const Sizes64 sizes = shape.to_sizes();
  return {sizes.begin(), sizes.end()};
}

inline Values to_values(const Array& array) {
  const Buffer buffer = array.buffer().dense();
  Values values(sizes_of(array.shape()));
  for (std::size_t i = 0; i < values.data.size(); ++i)
    values.data[i] = visit_dtype(buffer.dtype(), [&](auto element) -> double {
      using T = decltype(element);
      const T x = static_cast<const T*>(buffer.data())[i];
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        return float(x);
      else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
        return x.real() + 1000.0 * x.imag();
      else
        return double(x);
    });
  return values;
}

inline Array to_array(const Values& values, DType dtype = DType::float64) {
  Buffer buffer = Buffer::empty(dtype, Sizes64(values.shape.begin(), values.shape.end()));
  for (std::size_t i = 0; i < values.data.size(); ++i)
    visit_dtype(dtype, [&](auto element) {
      using T = decltype(element);
      T& x = static_cast<T*>(buffer.mutable_data())[i];
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        x = T(float(values.data[i]));
      else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
        x = T(values.data[i], values.data[i] + 1);
      else
        x = T(values.data[i]);
    });
  return Array(buffer);
}

inline std::mt19937& generator() {
  static std::mt19937 generator(7);
  return generator;
}
inline Values random_values(Index shape) {
  Values values(std::move(shape));
  std::normal_distribution<double> normal;
  for (double& x : values.data) x = normal(generator());
  return values;
}
inline Values random_integers(Index shape, std::int64_t low, std::int64_t end) {
  Values values(std::move(shape));
  std::uniform_int_distribution<std::int64_t> uniform(low, end - 1);
  for (double& x : values.data) x = double(uniform(generator()));
  return values;
}
// 0, 1, 2, ...: elements that tell where they come from.
inline Values counting(Index shape) {
  Values values(std::move(shape));
  for (std::size_t i = 0; i < values.data.size(); ++i) values.data[i] = double(i % 100);
  return values;
}

inline void check_same(const Values& a, const Values& b, double tolerance = 0) {
  REQUIRE(a.shape == b.shape);
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    if (std::isnan(a.data[i]) && std::isnan(b.data[i])) continue;
    CAPTURE(i);
    if (tolerance == 0)
      REQUIRE(a.data[i] == b.data[i]);
    else
      REQUIRE(std::abs(a.data[i] - b.data[i]) <= tolerance * (1 + std::abs(b.data[i])));
  }
}
inline void check_same(const Array& a, const Values& b, double tolerance = 0) {
  check_same(to_values(a), b, tolerance);
}
inline void check_same(const Array& a, const Array& b, double tolerance = 0) {
  check_same(to_values(a), to_values(b), tolerance);
}

// An array of the same values whose memory is laid out otherwise: axes in the other order, the
// first one backwards, with gaps between its elements.
inline Array strided(const Array& array) {
  const int rank = array.ndim();
  if (rank == 0) return array;
  const int first[] = {0}, last[] = {rank - 1};
  std::vector<int> backwards;
  for (int i = rank; i-- > 0;) backwards.push_back(i);
  std::vector<lax::Padding> gaps(rank);
  gaps[0] = {2, 1, 1};
  const Array turned = lax::transpose(lax::rev(array, first), backwards);
  const Array wide = lax::pad(Array(Buffer::copy_of(turned.buffer().view())),
                              Array::literal(0, array.dtype()), gaps);
  Shape start(rank, Dim(0)), strides(rank, Dim(1)), limit = wide.shape();
  start[0] = 2, strides[0] = 2;
  limit[0] = 2 * array.shape(rank - 1) + 2 - (array.shape(rank - 1) == Dim(0) ? 0 : 1);
  const Array view =
      lax::transpose(lax::rev(lax::slice(wide, start, limit, strides), last), backwards);
  REQUIRE(view.shape() == array.shape());
  return view;
}

// --- Rules on samples ----------------------------------------------------------------------------

inline Array sample_input(const Sample::Input& input, const Index& shape) {
  using Kind = Sample::Input::Values;
  if (input.values == Kind::indices)
    return to_array(random_integers(shape, 0, input.limit), input.aval.dtype);
  return to_array(random_values(shape), input.aval.dtype);
}
inline Arrays sample_inputs(const Sample& sample) {
  Arrays inputs;
  for (const Sample::Input& input : sample.inputs)
    inputs.push_back(sample_input(input, sizes_of(input.aval.shape)));
  return inputs;
}

inline double inner(const Arrays& a, const Arrays& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Values x = to_values(a[i]), y = to_values(b[i]);
    REQUIRE(x.shape == y.shape);
    for (std::size_t j = 0; j < x.data.size(); ++j) sum += x.data[j] * y.data[j];
  }
  return sum;
}

inline Arrays moved_by(const Arrays& x, const Arrays& direction, double step) {
  Arrays result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Values values = to_values(x[i]);
    if (is_inexact(x[i].dtype())) {
      const Values d = to_values(direction[i]);
      for (std::size_t j = 0; j < values.data.size(); ++j) values.data[j] += step * d.data[j];
    }
    result.push_back(to_array(values, x[i].dtype()));
  }
  return result;
}

// jvp against finite differences, with tangents for all inputs and for each one alone; and its
// transpose: <J v, w> = <v, J^T w>.
inline void check_derivatives(const Function& f, const Arrays& primals) {
  std::vector<std::vector<bool>> choices(1, std::vector<bool>(primals.size()));
  for (std::size_t i = 0; i < primals.size(); ++i) {
    if (!is_inexact(primals[i].dtype())) continue;
    choices[0][i] = true;
    choices.push_back(std::vector<bool>(primals.size()));
    choices.back()[i] = true;
  }
  const Arrays base = f(primals);
  Arrays weights;
  for (const Array& output : base)
    weights.push_back(to_array(random_values(sizes_of(output.shape()))));
  for (const std::vector<bool>& wrt : choices) {
    Tangents tangents;
    Arrays directions;
    for (std::size_t i = 0; i < primals.size(); ++i) {
      directions.push_back(to_array(wrt[i] ? random_values(sizes_of(primals[i].shape()))
                                           : Values(sizes_of(primals[i].shape()))));
      tangents.push_back(wrt[i] ? Tangent(directions[i]) : Tangent(primals[i].aval()));
    }
    const auto [outputs, derivatives] = flat::jvp(f, primals, tangents);
    const double h = 1e-6;
    const Arrays high = f(moved_by(primals, directions, h)),
                 low = f(moved_by(primals, directions, -h));
    Arrays along;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      check_same(outputs[o], base[o]);
      Values difference = to_values(high[o]);
      const Values below = to_values(low[o]);
      for (std::size_t j = 0; j < difference.data.size(); ++j)
        difference.data[j] = (difference.data[j] - below.data[j]) / (2 * h);
      along.push_back(derivatives[o].instantiate());
      check_same(along[o], difference, 1e-6);
    }
    const flat::Pullback pullback = flat::vjp(f, primals, wrt);
    const Tangents cotangents = pullback.pull(Tangents(weights.begin(), weights.end()));
    Arrays back, through;
    for (std::size_t i = 0, next = 0; i < primals.size(); ++i) {
      const bool only_wrt = cotangents.size() != primals.size();
      if (!wrt[i]) continue;
      back.push_back(cotangents[only_wrt ? next++ : i].instantiate());
      through.push_back(directions[i]);
    }
    CHECK(inner(along, weights) == doctest::Approx(inner(through, back)).epsilon(1e-9));
  }
}

inline Array example(const Array& array, int dim, std::int64_t i) {
  return lax::index_in_dim(array, i, dim, false);
}

// vmap with every choice of batched inputs, at the first, the last and a middle axis, against a
// loop.
inline void check_vmap(const Function& f, const Sample& sample) {
  const std::size_t n = sample.inputs.size();
  constexpr std::int64_t batch = 3;
  for (std::size_t chosen = 1; chosen < (std::size_t(1) << n); ++chosen)
    for (int place = 0; place < 3; ++place) {
      Arrays inputs;
      flat::VmapOptions options;
      for (std::size_t i = 0; i < n; ++i) {
        Index shape = sizes_of(sample.inputs[i].aval.shape);
        std::optional<int> dim;
        if (chosen >> i & 1) {
          const int rank = int(shape.size());
          dim = place == 0 ? 0 : place == 1 ? rank : std::min(rank, (rank + int(i)) / 2);
          shape.insert(shape.begin() + *dim, batch);
        }
        options.in_dims.push_back(dim);
        inputs.push_back(sample_input(sample.inputs[i], shape));
      }
      options.out_dims = [](std::size_t outputs) {
        return std::vector<std::optional<int>>(outputs, 0);
      };
      CAPTURE(chosen);
      CAPTURE(place);
      const Arrays together = flat::vmap(f, inputs, options);
      for (std::int64_t b = 0; b < batch; ++b) {
        Arrays one;
        for (std::size_t i = 0; i < n; ++i)
          one.push_back(options.in_dims[i] ? example(inputs[i], *options.in_dims[i], b)
                                           : inputs[i]);
        const Arrays expected = f(one);
        for (std::size_t o = 0; o < expected.size(); ++o)
          check_same(example(together[o], 0, b), expected[o], 1e-12);
      }
    }
}

inline void check_samples(const Primitive& primitive) {
  int number = 0;
  for (const Sample& sample : rule<Samples>(primitive)()) {
    CAPTURE(number++);
    const Function f = [&](std::span<const Array> inputs) -> Arrays {
      return bind(primitive, inputs, sample.params);
    };
    const Arrays inputs = sample_inputs(sample);
    const Arrays outputs = f(inputs);
    Arrays other;
    for (const Array& input : inputs) other.push_back(strided(input));
    const Arrays again = f(other);
    for (std::size_t o = 0; o < outputs.size(); ++o) check_same(outputs[o], again[o]);
    check_derivatives(f, inputs);
    check_vmap(f, sample);
  }
}

// --- Named sizes ---------------------------------------------------------------------------------

// A function traced with named sizes, and its vjp and vmap, are valid programs; with numbers put in
// they are, as text, what tracing at those numbers gives.
inline void check_named(const Function& f, const std::vector<Aval>& avals, const SizeMap& sizes) {
  std::vector<std::pair<Dim, Dim>> replacements;
  for (const auto& [name, value] : sizes) replacements.emplace_back(Dim::size(name), Dim(value));
  std::vector<bool> wrt;
  for (const Aval& aval : avals) wrt.push_back(is_inexact(aval.dtype));
  const Function gradient = [&](std::span<const Array> in) -> Arrays {
    const flat::Pullback pullback = flat::vjp(f, in, wrt);
    Tangents cotangents;
    for (const Array& output : pullback.outputs) cotangents.push_back(output);
    Arrays results;
    for (const Tangent& ct : pullback.pull(cotangents)) results.push_back(ct.instantiate());
    return results;
  };
  const Function batched = [&](std::span<const Array> in) -> Arrays {
    flat::VmapOptions options;
    Arrays inputs;
    for (const Array& input : in) {
      Shape shape = input.shape();
      shape.insert(0, 3);
      std::vector<int> dims;
      for (int i = 0; i < input.ndim(); ++i) dims.push_back(i + 1);
      inputs.push_back(lax::broadcast_in_dim(input, shape, dims));
      options.in_dims.push_back(0);
    }
    options.out_dims = [](std::size_t count) { return std::vector<std::optional<int>>(count, 0); };
    return flat::vmap(f, inputs, options);
  };
  std::vector<Aval> numbers = avals;
  for (Aval& aval : numbers) aval.shape = substitute(aval.shape, replacements);
  for (const Function& g : {f, gradient, batched}) {
    const Jaxpr named = make_jaxpr(g, avals).jaxpr;
    check(named);
    CHECK(parse(print(named)) == named);
    const Jaxpr direct = make_jaxpr(g, numbers).jaxpr;
    std::vector<std::pair<Dim, Dim>> bound;
    for (const auto& replacement : replacements)
      if (std::find(named->sizes.begin(), named->sizes.end(), replacement.first) !=
          named->sizes.end())
        bound.push_back(replacement);
    CHECK(print(instantiate(named, bound)) == print(direct));
  }
}

// --- Masking -------------------------------------------------------------------------------------

inline std::int64_t evaluated(Dim dim, const SizeMap& sizes) {
  return dim.evaluate([&](std::string_view name) -> std::optional<std::int64_t> {
    return sizes.find(name)->second;
  });
}
// The greatest value of an expression for sizes up to their bounds.
inline std::int64_t bound_of(Dim dim, const SizeMap& bounds) {
  if (dim.is_constant()) return dim.constant();
  Index shape;
  for (const auto& [name, bound] : bounds) shape.push_back(bound + 1);
  std::int64_t greatest = 0;
  for_each(shape, [&](const Index& index) {
    SizeMap sizes;
    std::size_t next = 0;
    for (const auto& [name, bound] : bounds) sizes[name] = index[next++];
    greatest = std::max(greatest, evaluated(dim, sizes));
  });
  return greatest;
}

// The Mask rule against the primitive on real sizes: inputs are padded by NaN, and by indices far
// out of bounds. inputs gives real values for the sizes; avals have the named shapes.
inline void check_mask(const Primitive& primitive, const std::vector<Aval>& avals,
                       const Params& params, const SizeMap& sizes, const SizeMap& bounds,
                       const Arrays& inputs) {
  std::vector<std::pair<Dim, Dim>> replacements;
  for (const auto& [name, value] : sizes) replacements.emplace_back(Dim::size(name), Dim(value));
  const Arrays expected = bind(primitive, inputs, substitute(params, replacements));
  const Jaxpr named =
      make_jaxpr(
          [&](std::span<const Array> arrays) -> Arrays { return bind(primitive, arrays, params); },
          avals)
          .jaxpr;
  const std::vector<Aval> outputs = named->output_avals();

  std::vector<Masked> masked;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Index padded;
    for (Dim dim : avals[i].shape) padded.push_back(bound_of(dim, bounds));
    Values values(padded, is_inexact(avals[i].dtype) ? std::nan("") : 1000000);
    const Values real = to_values(inputs[i]);
    for_each(real.shape, [&](const Index& index) { values.at(index) = real.at(index); });
    masked.push_back({to_array(values, avals[i].dtype), avals[i]});
  }
  const SizeValues size_values{
      [&](Dim dim) {
        return Array::literal(Literal{DType::int32, false, evaluated(dim, sizes), 0, 0});
      },
      [&](Dim dim) { return Dim(bound_of(dim, bounds)); }};
  const Arrays results = rule<Mask>(primitive)(masked, outputs, params, size_values);
  REQUIRE(results.size() == expected.size());
  for (std::size_t o = 0; o < results.size(); ++o) {
    Index padded;
    for (Dim dim : outputs[o].shape) padded.push_back(bound_of(dim, bounds));
    REQUIRE(sizes_of(results[o].shape()) == padded);
    const Array real = lax::slice(results[o], Shape(padded.size(), Dim(0)), expected[o].shape());
    check_same(real, expected[o], 1e-12);
  }
}

// The same for all values of the sizes up to their bounds that the primitive accepts, on random
// inputs.
inline void check_mask(
    const Primitive& primitive, const std::vector<Sample::Input>& inputs, const Params& params,
    const SizeMap& bounds,
    const std::function<bool(const SizeMap&)>& accepts = [](const SizeMap&) { return true; }) {
  std::vector<Aval> avals;
  for (const Sample::Input& input : inputs) avals.push_back(input.aval);
  Index shape;
  for (const auto& [name, bound] : bounds) shape.push_back(bound + 1);
  int tried = 0;
  for_each(shape, [&](const Index& index) {
    SizeMap sizes;
    std::size_t next = 0;
    for (const auto& [name, bound] : bounds) sizes[name] = index[next++];
    if (!accepts(sizes)) return;
    Arrays real;
    for (const Sample::Input& input : inputs) {
      Index real_shape;
      for (Dim dim : input.aval.shape) real_shape.push_back(evaluated(dim, sizes));
      real.push_back(sample_input(input, real_shape));
    }
    std::string text;
    for (const auto& [name, value] : sizes) text += name + "=" + std::to_string(value) + " ";
    CAPTURE(text);
    check_mask(primitive, avals, params, sizes, bounds, real);
    ++tried;
  });
  CHECK(tried > 1);
}

}  // namespace reference
