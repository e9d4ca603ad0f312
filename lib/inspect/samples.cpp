// Samples as arrays. See samples.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/samples.h>

#include <plait/control/control.h>
#include <plait/functions/lax.h>
#include <plait/functions/nn.h>
#include <plait/functions/numpy.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/functions/numpy_shape.h>
#include <plait/primitives/linalg.h>
#include <plait/primitives/linear_solve.h>
#include <plait/primitives/special.h>
#include <plait/rules/collect.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include <plait/inspect/tolerance.h>

namespace plait::laws {

// --- Cases ---------------------------------------------------------------------------------------

std::vector<Aval> Case::avals() const {
  std::vector<Aval> result;
  for (const Sample::Input& input : inputs) result.push_back(input.aval);
  return result;
}

Arrays Case::values(unsigned seed) const {
  Arrays arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    arrays.push_back(values_for(inputs[i], seed + 17 * unsigned(i)));
  return arrays;
}

std::string Case::to_string() const {
  std::string text = name + "[" + params.to_string() + "]";
  for (const Sample::Input& input : inputs) text += " " + input.aval.to_string();
  return text;
}

Case make_case(const Primitive& primitive, Sample sample) {
  Case made{std::string(primitive.name()),
            &primitive,
            std::move(sample.inputs),
            std::move(sample.params),
            {}};
  made.apply = [&primitive](std::span<const Array> arrays, const Params& params) -> Arrays {
    return bind(primitive, arrays, params);
  };
  return made;
}

namespace {

// custom_linear has no samples, because it holds a program that only custom_vjp makes: here that of
// sin(x) y, with the true backward rule.
Case custom_vjp_case(const Primitive& primitive) {
  const Sample::Input input{{{2, 3}, DType::float64}};
  Case made{std::string(primitive.name()), nullptr, {input, input}, {}, {}};
  made.apply = [](std::span<const Array> inputs, const Params&) {
    const Function function = [](std::span<const Array> x) -> Arrays {
      return {lax::mul(lax::sin(x[0]), x[1])};
    };
    const flat::ForwardRule forward = [function](std::span<const Array> x) -> flat::Forward {
      return {function(x), {x[0], x[1]}};
    };
    const Function backward = [](std::span<const Array> r) -> Arrays {
      const Array first = lax::mul(lax::cos(r[0]), r[1]), second = lax::sin(r[0]);
      return {lax::mul(r[2], first), lax::mul(r[2], second)};
    };
    return flat::custom_vjp(function, forward, backward, inputs, "f");
  };
  return made;
}

// empty_stack is the result of a branch without the loop, where another branch has one.
Case loop_in_branch_case(const Primitive& primitive) {
  const Sample::Input index{{{}, DType::int32}, Sample::Input::Values::indices, 2};
  const Sample::Input input{{{3}, DType::float64}};
  Case made{std::string(primitive.name()), nullptr, {index, input, input}, {}, {}};
  made.apply = [](std::span<const Array> inputs, const Params&) {
    const Function plain = [](std::span<const Array> x) -> Arrays { return {lax::sin(x[0])}; };
    const Function loop = [](std::span<const Array> x) -> Arrays {
      const Array start = Array::literal(0, DType::int32);
      return {flat::while_loop(
          [](std::span<const Array> now) -> Arrays {
            return {lax::lt(now[0], Array::literal(3, DType::int32))};
          },
          [&](std::span<const Array> now) -> Arrays {
            return {lax::add(now[0], Array::literal(1, DType::int32)),
                    lax::sin(lax::mul(now[1], x[1]))};
          },
          Arrays{start, x[0]})[1]};
    };
    return flat::cond(inputs[0], {plain, loop}, inputs.subspan(1));
  };
  return made;
}

// A case of a primitive that is reached through a function, with these inputs.
Case function_case(const Primitive& primitive, std::vector<Sample::Input> inputs,
                   std::function<Arrays(std::span<const Array>)> function) {
  Case made{std::string(primitive.name()), nullptr, std::move(inputs), {}, {}};
  made.apply = [function](std::span<const Array> arrays, const Params&) {
    return function(arrays);
  };
  return made;
}

// Positive definite matrices of any: x x' + 1.
Array positive_definite(const Array& x) {
  const Dim n = x.shape(x.ndim() - 1);
  return numpy::add(numpy::matmul(x, numpy::matrix_transpose(x)), numpy::eye(n, {}, 0, x.dtype()));
}

// linear_solve holds programs: here a b = y for positive definite a, which all of them capture.
Arrays solved_system(std::span<const Array> inputs) {
  const Array a = positive_definite(inputs[0]), l = lax::linalg::cholesky(a);
  const Function matvec = [&](std::span<const Array> x) -> Arrays {
    return {numpy::matmul(a, x[0])};
  };
  const Function solve = [&](std::span<const Array> b) -> Arrays {
    const Array y = lax::linalg::triangular_solve(l, b[0], true, true);
    return {lax::linalg::triangular_solve(l, y, true, true, true)};
  };
  return linear_solve(matvec, inputs.subspan(1), solve, solve);
}

std::vector<Case> systems(const Primitive& primitive) {
  const Sample::Input square{{{3, 3}, DType::float64}}, tall{{{3, 2}, DType::float64}};
  return {function_case(primitive, {square, tall}, solved_system)};
}
std::vector<Case> factorizations(const Primitive& primitive) {
  std::vector<Case> cases;
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 2, 2}})
    cases.push_back(function_case(primitive, {{{shape, DType::float64}}},
                                  [](std::span<const Array> x) -> Arrays {
                                    return {lax::linalg::cholesky(positive_definite(x[0]), false)};
                                  }));
  return cases;
}

// Special functions of x whose first operands are whole, or have no derivative.
template <Array (*function)(Operand, Operand)>
std::vector<Case> with_first(const Primitive& primitive, std::initializer_list<double> parameters) {
  std::vector<Case> cases;
  for (const double parameter : parameters)
    for (const Shape& shape : {Shape{2, 3}, Shape{}})
      cases.push_back(
          function_case(primitive, {{{shape, DType::float64}, Sample::Input::Values::positive}},
                        [=](std::span<const Array> x) -> Arrays {
                          return {function(Array::literal(parameter, x[0].dtype()), x[0])};
                        }));
  return cases;
}
// The same of x between 0 and 1 after several constants.
template <auto function, class... Constants>
std::vector<Case> of_unit(const Primitive& primitive, Constants... constants) {
  const Sample::Input x{{{2, 3}, DType::float64}, Sample::Input::Values::unit};
  return {function_case(primitive, {x}, [=](std::span<const Array> x) -> Arrays {
    return {function(Array::literal(constants, x[0].dtype())..., x[0])};
  })};
}

// Primitives whose equations only functions make, or whose operands have a structure that random
// ones do not have.
using CasesOf = std::vector<Case> (*)(const Primitive& primitive);
const auto& through_functions = *new const std::map<std::string_view, CasesOf>{
    {"betainc", [](const Primitive& p) { return of_unit<&lax::betainc>(p, 1.5, 2.75); }},
    {"cholesky", factorizations},
    {"custom_linear", [](const Primitive& p) { return std::vector{custom_vjp_case(p)}; }},
    {"empty_stack", [](const Primitive& p) { return std::vector{loop_in_branch_case(p)}; }},
    {"expn", [](const Primitive& p) { return with_first<lax::expn>(p, {1, 3}); }},
    {"hyp1f1", [](const Primitive& p) { return of_unit<&lax::hyp1f1>(p, 1.5, 2.75); }},
    {"hyp2f1", [](const Primitive& p) { return of_unit<&lax::hyp2f1>(p, 0.5, 1.5, 2.75); }},
    {"igamma_grad_a", [](const Primitive& p) { return with_first<lax::igamma_grad_a>(p, {1.5}); }},
    {"linear_solve", systems},
    {"polygamma", [](const Primitive& p) { return with_first<lax::polygamma>(p, {1, 2}); }},
    {"random_gamma_grad",
     [](const Primitive& p) { return with_first<lax::random_gamma_grad>(p, {1.5}); }},
    {"zeta", [](const Primitive& p) { return with_first<lax::zeta>(p, {2.5}); }},
};

}  // namespace

std::vector<Case> cases_of(const Primitive& primitive) {
  const auto found = through_functions.find(primitive.name());
  std::vector<Case> cases;
  if (found != through_functions.end()) cases = found->second(primitive);
  for (Sample& sample : rule<Samples>(primitive)())
    cases.push_back(make_case(primitive, std::move(sample)));
  return cases;
}

namespace {

using Inputs = std::span<const Array>;

std::vector<Sample::Input> inputs_of(const std::vector<Shape>& shapes) {
  std::vector<Sample::Input> inputs;
  for (const Shape& shape : shapes) inputs.push_back({{shape, DType::float64}});
  return inputs;
}

// A case of the primitive with which the function ends.
Case applied(const Primitive& primitive, const std::vector<Shape>& shapes,
             const std::function<Array(Inputs)>& function) {
  Sample sample{inputs_of(shapes), {}};
  std::vector<Aval> avals;
  for (const Sample::Input& input : sample.inputs) avals.push_back(input.aval);
  const Jaxpr program = make_jaxpr([&](Inputs x) -> Arrays { return {function(x)}; }, avals).jaxpr;
  sample.params = program->equations.back().params;
  return make_case(primitive, std::move(sample));
}

Case composed(const char* symbol, const std::vector<Shape>& shapes,
              std::function<Array(Inputs)> function) {
  Case made{symbol, nullptr, inputs_of(shapes), {}, {}};
  made.apply = [function = std::move(function)](Inputs x, const Params&) -> Arrays {
    return {function(x)};
  };
  return made;
}

}  // namespace

std::vector<Case> large_cases() {
  auto dot = [](const std::vector<Shape>& shapes, const lax::DotDimensions& dimensions) {
    return applied(dot_general_p, shapes,
                   [&](Inputs x) { return lax::dot_general(x[0], x[1], dimensions); });
  };
  auto conv = [](const std::vector<Shape>& shapes, const Shape& strides, const char* padding,
                 const Shape& lhs_dilation = {}, const Shape& rhs_dilation = {}, int groups = 1) {
    return applied(conv_p, shapes, [&](Inputs x) {
      return lax::conv_general_dilated(x[0], x[1], strides, padding, lhs_dilation, rhs_dilation, {},
                                       groups);
    });
  };
  return {
      dot({{33, 41}, {41, 37}}, {{1}, {0}, {}, {}}),
      dot({{41, 35}, {37, 41}}, {{0}, {1}, {}, {}}),
      dot({{3, 17, 45}, {3, 45, 23}}, {{2}, {1}, {0}, {0}}),
      dot({{131, 133}, {133, 135}}, {{1}, {0}, {}, {}}),  // divided among several threads
      conv({{2, 6, 11, 10}, {7, 6, 3, 3}}, {1, 1}, "SAME"),
      conv({{2, 6, 13, 11}, {9, 6, 3, 3}}, {2, 1}, "VALID"),
      conv({{2, 8, 11, 9}, {10, 4, 3, 3}}, {1, 1}, "SAME", {}, {2, 2}, 2),
      conv({{2, 6, 6, 5}, {7, 6, 3, 3}}, {1, 1}, "SAME", {2, 2}),  // a data gradient
      conv({{3, 10, 61}, {11, 10, 5}}, {1}, "VALID"),
      composed("layer_norm", {{6, 50}, {50}, {50}},
               [](Inputs x) { return nn::layer_norm(x[0], x[1], x[2]); }),
      composed("attention", {{2, 3, 7, 9}, {2, 3, 11, 9}, {2, 3, 11, 9}},
               [](Inputs x) { return nn::attention(x[0], x[1], x[2]); }),
      composed("avg_pool", {{2, 9, 11, 5}},
               [](Inputs x) { return nn::avg_pool(x[0], {3, 2}, {2, 1}, "SAME", false); }),
      composed("softmax", {{7, 53}}, [](Inputs x) { return nn::softmax(x[0]); }),
      composed("gelu", {{7, 53}}, [](Inputs x) { return nn::gelu(x[0]); }),
  };
}

std::optional<Case> enlarged(const Case& one, std::int64_t examples) {
  if (!one.primitive || one.inputs.empty()) return std::nullopt;
  Case larger = one;
  // Scalars beside arrays stay as they are: padding values, say.
  const bool has_arrays =
      std::any_of(one.inputs.begin(), one.inputs.end(),
                  [](const Sample::Input& input) { return input.aval.rank() > 0; });
  std::vector<std::optional<int>> dims;
  for (Sample::Input& input : larger.inputs) {
    const bool is_batched = !has_arrays || input.aval.rank() > 0;
    dims.push_back(is_batched ? std::optional<int>(0) : std::nullopt);
    if (is_batched) input.aval.shape.insert(0, examples);
  }
  try {
    const Jaxpr program = make_jaxpr(one.function(), one.avals()).jaxpr;
    const Jaxpr batched = batch_jaxpr(program, examples, dims)->jaxpr;
    if (batched->equations.size() != 1) return std::nullopt;
    const Equation& equation = batched->equations[0];
    if (!(*equation.primitive == *one.primitive) ||
        equation.inputs.size() != larger.inputs.size() || holds_bodies(equation.params))
      return std::nullopt;
    for (std::size_t i = 0; i < equation.inputs.size(); ++i)
      if (!equation.inputs[i].is_var() || equation.inputs[i].var().id != int(i))
        return std::nullopt;
    larger.params = equation.params;
    infer(*larger.primitive, larger.avals(), larger.params);
    return larger;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Case> with_dtype(const Case& original, DType dtype) {
  Case other = original;
  bool changed = false;
  for (Sample::Input& input : other.inputs) {
    if (input.aval.dtype != DType::float64) continue;
    input.aval.dtype = dtype;
    changed = true;
  }
  if (!changed || !(original.primitive || is_inexact(dtype))) return std::nullopt;
  for (const auto& [name, value] : original.params.entries())
    if (const DType* param = std::get_if<DType>(&value); param && *param == DType::float64)
      other.params = other.params.with(name, dtype);
  try {
    if (other.primitive)
      infer(*other.primitive, other.avals(), other.params);
    else
      make_jaxpr(other.function(), other.avals());
  } catch (const Error&) {
    return std::nullopt;
  }
  return other;
}

std::vector<const PrimitiveInfo*> primitives_under_law() {
  std::vector<const PrimitiveInfo*> all = all_primitives();
  std::erase_if(all, [](const PrimitiveInfo* info) {
    return info->primitive->name().starts_with("mutant_") ||
           Collect::table().find(*info->primitive) ||  // runs inside of vmap(axis_name=...) alone
           info->family == "over a mesh";              // inside of shard_map
  });
  return all;
}

// --- Values --------------------------------------------------------------------------------------

namespace {

using Values = Sample::Input::Values;

template <class T>
T element_from(complex128 value) {
  if constexpr (is_complex_v<T>)
    return T(value);
  else if constexpr (detail::is_half<T>)
    return T(float(value.real()));
  else if constexpr (std::is_integral_v<T>)
    return T(std::int64_t(value.real()));  // modulo what the dtype holds
  else
    return T(value.real());
}
template <class T>
complex128 number_from(T value) {
  if constexpr (is_complex_v<T>)
    return complex128(value);
  else if constexpr (detail::is_half<T>)
    return float(value);
  else
    return double(value);
}

Array array_of(std::span<const complex128> numbers, DType dtype, const Sizes64& shape) {
  Buffer buffer = Buffer::empty(dtype, shape);
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    T* data = static_cast<T*>(buffer.mutable_data());
    for (std::size_t i = 0; i < numbers.size(); ++i) data[i] = element_from<T>(numbers[i]);
  });
  return Array(buffer);
}

}  // namespace

Array values_for(const Sample::Input& input, unsigned seed) {
  std::mt19937 generator(seed * 7919 + 13);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1);
  const Sizes64 shape = input.aval.shape.to_sizes();
  const std::int64_t n = num_elements(shape);
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), generator);
  const bool whole = !is_inexact(input.aval.dtype);
  std::vector<complex128> numbers(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double draw = normal(generator), part = uniform(generator);
    const double sign = generator() % 2 ? 1 : -1;
    double value = whole ? std::round(4 * draw) : draw;
    switch (input.values) {
      case Values::normal:
        break;
      case Values::positive:
        value = whole ? 1 + std::abs(value) : 0.5 + std::abs(draw);
        break;
      case Values::unit:
        value = 0.05 + 0.9 * part;
        break;
      // Away from 0 and 1/2, where rounding is discontinuous.
      case Values::open_unit:
        value = sign * (part < 0.5 ? 0.1 + 0.6 * part : 0.3 + 0.6 * part);
        break;
      case Values::nonzero:
        value = sign * (whole ? 1 + std::abs(value) : 0.3 + std::abs(draw));
        break;
      case Values::distinct:
        value = (whole ? 1 : 0.25) * double(order[i]) - (whole ? 0 : 0.1 * double(n) - 0.05);
        break;
      case Values::indices:
        value = double(generator() % std::max<std::int64_t>(1, input.limit));
        break;
      case Values::boolean:
        value = double(generator() % 2);
        break;
      case Values::key:
        value = double(generator());
        break;
    }
    if (is_unsigned_integer(input.aval.dtype)) value = std::abs(value);
    numbers[i] = {value, is_complex(input.aval.dtype) ? normal(generator) : 0.0};
  }
  return array_of(numbers, input.aval.dtype, shape);
}

Array normal_like(const Aval& aval, unsigned seed) {
  return values_for({aval, Values::normal, 0}, seed);
}

Array converted(const Array& array, DType dtype) {
  return array_of(numbers_of(array), dtype, array.shape().to_sizes());
}

Array strided(const Array& array) {
  const Sizes64 shape = array.shape().to_sizes();
  if (shape.empty()) return array;
  // Every axis but the last reversed, in columns of which every third is used.
  Sizes64 larger = shape;
  larger[larger.size() - 1] = 3 * larger[larger.size() - 1] + 1;
  Buffer buffer = Buffer::empty(array.dtype(), larger);
  std::memset(buffer.mutable_data(), 0x7f, std::size_t(buffer.bytes()));
  Sizes64 strides = buffer.strides();
  std::int64_t offset = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    offset += std::max<std::int64_t>(0, shape[i] - 1) * strides[i];
    strides[i] = -strides[i];
  }
  strides[strides.size() - 1] = 3;
  if (num_elements(shape) == 0) return array;
  const Buffer view = buffer.view_as(shape, strides, offset * size_of(array.dtype()));
  copy_elements(array.host_buffer().view(), view.view());
  return Array(view, array.aval().weak);
}

Array example_of(const Array& array, int axis, std::int64_t index) {
  const Buffer buffer = array.host_buffer();
  Sizes64 shape = buffer.shape(), strides = buffer.strides();
  const std::int64_t offset = index * strides[axis] * size_of(buffer.dtype());
  shape.erase(axis);
  strides.erase(axis);
  return Array(Buffer::copy_of(buffer.view_as(shape, strides, offset).view()), array.aval().weak);
}

Array padded_to(const Array& array, const Sizes64& shape, double fill) {
  Buffer buffer = Buffer::empty(array.dtype(), shape);
  visit_dtype(array.dtype(), [&](auto element) {
    using T = decltype(element);
    T* data = static_cast<T*>(buffer.mutable_data());
    for (std::int64_t i = 0; i < num_elements(shape); ++i) {
      if constexpr (std::is_same_v<T, bool>)
        data[i] = true;
      else if constexpr (std::is_integral_v<T>)
        data[i] = T(i % 2 ? 77 : -77);
      else
        data[i] = element_from<T>({fill, fill});
    }
  });
  if (array.aval().shape.num_elements().constant() > 0)
    copy_elements(array.host_buffer().view(),
                  buffer.view_as(array.shape().to_sizes(), buffer.strides(), 0).view());
  return Array(buffer);
}

Array leading(const Array& array, const Sizes64& shape) {
  const Buffer buffer = array.host_buffer();
  return Array(Buffer::copy_of(buffer.view_as(shape, buffer.strides(), 0).view()),
               array.aval().weak);
}

Array moved(const Array& x, const Array& direction, double step) {
  std::vector<complex128> numbers = numbers_of(x), along = numbers_of(direction);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += step * along[i];
  return array_of(numbers, x.dtype(), x.shape().to_sizes());
}

std::vector<complex128> numbers_of(const Array& array) {
  const Buffer dense = array.host_buffer().dense();
  std::vector<complex128> numbers(num_elements(dense.shape()));
  visit_dtype(dense.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* data = static_cast<const T*>(dense.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = number_from(data[i]);
  });
  return numbers;
}

double dot(const Array& a, const Array& b) {
  const std::vector<complex128> left = numbers_of(a), right = numbers_of(b);
  complex128 sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum.real();
}

// --- Comparison ----------------------------------------------------------------------------------

namespace {

std::string text_of(complex128 value) {
  char text[80];
  std::snprintf(text, sizeof text, value.imag() == 0 ? "%.17g" : "%.17g%+.17gi", value.real(),
                value.imag());
  return text;
}

std::optional<std::string> difference_in_type(const Array& actual, const Array& expected) {
  const Aval &a = actual.aval(), &b = expected.aval();
  if (a.shape == b.shape && a.dtype == b.dtype) return std::nullopt;
  return a.to_string() + " where " + b.to_string() + " is expected";
}

std::string at_element(std::size_t i, complex128 actual, complex128 expected) {
  return "element " + std::to_string(i) + " is " + text_of(actual) + " where " + text_of(expected) +
         " is expected";
}

template <class Compare>
std::optional<std::string> difference_of_lists(const Arrays& actual, const Arrays& expected,
                                               Compare compare) {
  if (actual.size() != expected.size())
    return std::to_string(actual.size()) + " results where " + std::to_string(expected.size()) +
           " are expected";
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (auto found = compare(actual[i], expected[i]))
      return "result " + std::to_string(i) + ": " + *found;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference_in_bits(const Array& actual, const Array& expected) {
  if (auto found = difference_in_type(actual, expected)) return found;
  const Buffer a = actual.host_buffer().dense(), b = expected.host_buffer().dense();
  const std::int64_t size = size_of(a.dtype());
  for (std::int64_t i = 0; i < num_elements(a.shape()); ++i)
    if (std::memcmp(static_cast<const char*>(a.data()) + i * size,
                    static_cast<const char*>(b.data()) + i * size, std::size_t(size)) != 0)
      return at_element(std::size_t(i), numbers_of(actual)[i], numbers_of(expected)[i]) +
             ", to the bit";
  return std::nullopt;
}

std::optional<std::string> difference_in_bits(const Arrays& actual, const Arrays& expected) {
  return difference_of_lists(
      actual, expected, [](const Array& a, const Array& b) { return difference_in_bits(a, b); });
}

std::optional<std::string> difference(const Array& actual, const Array& expected,
                                      std::optional<double> tolerance) {
  if (auto found = difference_in_type(actual, expected)) return found;
  if (!is_inexact(expected.dtype())) return difference_in_bits(actual, expected);
  const double factor = tolerance.value_or(tolerance_of(expected.dtype()).value);
  const std::vector<complex128> a = numbers_of(actual), b = numbers_of(expected);
  auto close = [&](double x, double y, double scale) {
    if (std::isnan(y)) return std::isnan(x);
    if (std::isinf(y)) return x == y;
    return std::abs(x - y) <= factor * (1 + scale);
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = std::abs(b[i]), scale = std::isfinite(size) ? size : 0;
    if (!close(a[i].real(), b[i].real(), scale) || !close(a[i].imag(), b[i].imag(), scale))
      return at_element(i, a[i], b[i]);
  }
  return std::nullopt;
}

std::optional<std::string> difference(const Arrays& actual, const Arrays& expected,
                                      std::optional<double> tolerance) {
  return difference_of_lists(actual, expected, [&](const Array& a, const Array& b) {
    return difference(a, b, tolerance);
  });
}

std::optional<std::string> difference(double actual, double expected, double scale,
                                      double tolerance) {
  if (std::abs(actual - expected) <= tolerance * (1 + scale)) return std::nullopt;  // false for NaN
  return text_of(actual) + " where " + text_of(expected) + " is expected";
}

std::vector<std::vector<bool>> nonempty_subsets(std::size_t n) {
  std::vector<std::vector<bool>> subsets;
  if (n <= 3) {
    for (unsigned bits = 1; bits < 1u << n; ++bits) {
      subsets.emplace_back(n);
      for (std::size_t i = 0; i < n; ++i) subsets.back()[i] = bits >> i & 1;
    }
    return subsets;
  }
  subsets.emplace_back(n, true);
  for (std::size_t i = 0; i < n; ++i) {
    subsets.emplace_back(n, false);
    subsets.back()[i] = true;
  }
  return subsets;
}

}  // namespace plait::laws
