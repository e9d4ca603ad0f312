// Elementwise primitives that convert: numbers to another dtype, and bits.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stored.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/motion.h>

#include "primitives/cost.h"
#include "primitives/spelling.h"

#include <limits>

namespace plait {
namespace {

// Out of range of an integer, where it is undefined in C++, it saturates, and NaN becomes 0.
template <class Out, class In>
Out cast_real(In x) {
  if constexpr (std::is_same_v<Out, bool>) {
    return x != In(0);
  } else if constexpr (std::is_integral_v<Out> && std::is_floating_point_v<In>) {
    using Limits = std::numeric_limits<Out>;
    const double value = double(x);
    if constexpr (sizeof(Out) <= 4) {  // whose bounds are numbers: without a branch, in vectors
      const double above = value > double(Limits::min()) ? value : double(Limits::min());
      const double within = above < double(Limits::max()) ? above : double(Limits::max());
      return Out(value == value ? within : 0.0);
    } else {
      if (value != value) return 0;
      if (value <= double(Limits::min())) return Limits::min();
      if (value >= double(Limits::max())) return Limits::max();
      return Out(value);
    }
  } else {
    return Out(detail::Compute<Out>(x));
  }
}

template <class In, class Out>
void cast_loop(const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
  const In* x = static_cast<const In*>(inputs[0]);
  Out* out = static_cast<Out*>(output);
  constexpr bool from_complex = std::is_same_v<In, complex64> || std::is_same_v<In, complex128>;
  constexpr bool to_complex = std::is_same_v<Out, complex64> || std::is_same_v<Out, complex128>;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (from_complex && to_complex)
      out[i] = Out(x[i]);
    else if constexpr (from_complex && std::is_same_v<Out, bool>)
      out[i] = x[i] != In(0);
    else if constexpr (from_complex)
      out[i] = cast_real<Out>(x[i].real());
    else if constexpr (to_complex)
      out[i] = Out(typename Out::value_type(detail::Compute<In>(x[i])));
    else
      out[i] = cast_real<Out>(detail::Compute<In>(x[i]));
  }
}

}  // namespace

constinit const Primitive cast_p{"cast"};
static const auto cast_def =
    define(cast_p,
           "Conversion to another dtype: floats round to nearest even, floats to integers truncate "
           "and saturate.")
        .family(elementwise(all_dtypes | stored_dtypes))
        .takes_stored()
        .rule<Motion>(Motion::cheap)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const DType from = inputs[0].dtype, to = params.get<DType>("dtype");
          if (from != to && (from == DType::key || to == DType::key)) throw_stored(DType::key);
          return std::vector<Aval>{{inputs[0].shape, to, params.flag("weak")}};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          return inputs[0].dtype == params.get<DType>("dtype") &&
                 inputs[0].weak == params.flag("weak");
        })
        .rule<Pointwise>([](std::span<const DType> in, const Params& params) -> Chunk {
          return {visit_dtype(in[0], [&](auto from) {
            return visit_dtype(params.get<DType>("dtype"), [&](auto to) -> Chunk::Loop {
              // Bools are bytes of 0 and 1, which g++ takes in vectors.
              using From = std::conditional_t<std::is_same_v<decltype(from), bool>, std::uint8_t,
                                              decltype(from)>;
              return &cast_loop<From, decltype(to)>;
            });
          })};
        })
        .rule<Fold>([](std::span<const Literal> inputs,
                       const Params& params) -> std::optional<std::vector<Literal>> {
          const DType to = params.get<DType>("dtype");
          if (is_stored(to)) return {};
          return std::vector<Literal>{cast(inputs[0], to, params.flag("weak"))};
        })
        .rule<Cost>(cost::moves())
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          if (w.params().flag("weak")) return {};
          return w.call("convert_element_type", {w.operand(0), w.dtype("dtype")});
        })
        .rule<Jvp>([](auto, auto tangents, auto outputs, const Params& params) -> Tangents {
          if (is_float8(outputs[0].dtype()))
            throw DtypeError(
                "a conversion to " + std::string(name_of(outputs[0].dtype())) +
                    " was differentiated, and a stored number has no tangent",
                "round with lax.reduce_precision, through which derivatives pass, or give the "
                "function a custom_jvp rule");
          if (!is_differentiable(outputs[0].aval())) return {Tangent(outputs[0].aval())};
          return {lax::convert_element_type(tangents[0].array(), params.get<DType>("dtype"),
                                            params.flag("weak"))};
        })
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs, const Params&) -> Tangents {
          const Aval& input = inputs[0].aval();
          return {lax::convert_element_type(cotangents[0].array(), input.dtype, input.weak)};
        })
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{{{{2, 3}, DType::float64}}}, {{"dtype", DType::float32}, {"weak", false}}},
              {{{{{4}, DType::int32}}}, {{"dtype", DType::float64}, {"weak", false}}},
              {{{{{4}, DType::float64}}}, {{"dtype", DType::int32}, {"weak", false}}}};
        });
Array lax::convert_element_type(Operand operand, DType new_dtype, bool weak) {
  if (operand.dtype() == new_dtype && operand.aval().weak == weak) return operand;
  return bind(cast_p, {operand}, {{"dtype", new_dtype}, {"weak", weak}});
}

constinit const Primitive bitcast_p{"bitcast"};
static const auto bitcast_def =
    define(bitcast_p, "The same bits as another dtype of equal width.")
        .family(elementwise(all_dtypes | stored_dtypes))
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const DType dtype = params.get<DType>("dtype");
          if (size_of(dtype) != size_of(inputs[0].dtype))
            throw DtypeError(
                "bitcast: " + std::string(name_of(inputs[0].dtype)) + " and " +
                    std::string(name_of(dtype)) + " have different widths",
                "choose a dtype of " + std::to_string(size_of(inputs[0].dtype)) + " bytes");
          return std::vector<Aval>{{inputs[0].shape, dtype, false}};
        })
        .rule<Pointwise>([](std::span<const DType> in, const Params&) -> Chunk {
          auto copy = []<class T>(std::type_identity<T>) -> Chunk::Loop {
            return [](const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
              std::copy_n(static_cast<const T*>(inputs[0]), n, static_cast<T*>(output));
            };
          };
          switch (size_of(in[0])) {
            case 1:
              return {copy(std::type_identity<std::uint8_t>{})};
            case 2:
              return {copy(std::type_identity<std::uint16_t>{})};
            case 4:
              return {copy(std::type_identity<std::uint32_t>{})};
            case 8:
              return {copy(std::type_identity<std::uint64_t>{})};
            default:
              return {copy(std::type_identity<complex128>{})};
          }
        })
        .rule<Cost>(cost::moves())
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("bitcast_convert_type", {w.operand(0), w.dtype("dtype")});
        })
        .rule<Jvp>(zero_derivative())
        .rule<Samples>([] {
          return std::vector<Sample>{{{{{{2, 3}, DType::float32}}}, {{"dtype", DType::int32}}}};
        });

namespace {

DType unsigned_of_size(std::int64_t bytes) {
  return bytes == 1   ? DType::uint8
         : bytes == 2 ? DType::uint16
         : bytes == 4 ? DType::uint32
                      : DType::uint64;
}
Array as_bits(const Array& x, DType dtype) {
  return x.dtype() == dtype ? x : Array(bind(bitcast_p, {x}, {{"dtype", dtype}}));
}

// Each element as several narrower ones along a new last axis, the lowest bits first.
Array in_parts(const Array& x, DType part) {
  const DType word = unsigned_of_size(size_of(x.dtype()));
  const Array whole = as_bits(x, word);
  Shape shape = x.shape();
  shape.push_back(1);
  Arrays parts;
  for (std::int64_t i = 0; i < size_of(word) / size_of(part); ++i) {
    const Array shift = Array::literal(Literal{word, false, 8 * size_of(part) * i, 0, 0});
    parts.push_back(lax::reshape(
        lax::convert_element_type(lax::shift_right_logical(whole, shift), part), shape));
  }
  return lax::concatenate(parts, x.ndim());
}

// The elements along the last axis as one wider element, the lowest bits first.
Array joined(const Array& x, DType word) {
  const int axis = x.ndim() - 1;
  const std::int64_t count = size_of(word) / size_of(x.dtype());
  if (axis < 0 || !(x.shape(axis) == Dim(count)))
    throw ShapeError("bitcast_convert_type: the last axis of " + x.aval().to_string() +
                         " is to become elements of " + std::to_string(size_of(word)) + " bytes",
                     "give a last axis of " + std::to_string(count));
  const Shape shape(x.shape().begin(), x.shape().end() - 1);
  Array whole;
  for (std::int64_t i = 0; i < count; ++i) {
    const Array part = lax::convert_element_type(
        lax::reshape(lax::slice_in_dim(x, i, i + 1, 1, axis), shape), word);
    const Array shift = Array::literal(Literal{word, false, 8 * size_of(x.dtype()) * i, 0, 0});
    whole = i == 0 ? part : lax::bitwise_or(whole, lax::shift_left(part, shift));
  }
  return whole;
}

}  // namespace

Array lax::bitcast_convert_type(Operand operand, DType new_dtype) {
  const DType from = operand.dtype();
  if (from != new_dtype && (from == DType::key || new_dtype == DType::key))
    throw_stored(DType::key);
  const std::int64_t size = size_of(from), new_size = size_of(new_dtype);
  if (size == new_size || is_bool(from) || is_bool(new_dtype) || std::max(size, new_size) > 8)
    return bind(bitcast_p, {operand}, {{"dtype", new_dtype}});
  if (size > new_size) return as_bits(in_parts(operand, unsigned_of_size(new_size)), new_dtype);
  return as_bits(joined(as_bits(operand, unsigned_of_size(size)), unsigned_of_size(new_size)),
                 new_dtype);
}

}  // namespace plait
