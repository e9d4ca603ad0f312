// constant: known elements, as parameters. Programs that are kept for all callers have no operands
// for what a user's rule captured; see transforms/custom_derivative.cpp.
//
//   dtype, shape   of the result
//   words          the bits of the elements, each in as many words of 32 bits as it needs
// SPDX-License-Identifier: Apache-2.0

#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>
#include <plait/trace/constants.h>

#include <array>
#include <cstring>

#include "primitives/cost.h"

namespace plait {
namespace {

constinit const Primitive constant_p{"constant"};

std::int64_t words_of(DType dtype) { return (size_of(dtype) + 3) / 4; }

// The element at a place of the parameter words.
Literal element_of(const Params& params, std::int64_t place) {
  const DType dtype = params.get<DType>("dtype");
  const Shape& words = params.get<Shape>("words");
  std::array<std::uint32_t, 4> bits{};
  for (std::int64_t i = 0; i < words_of(dtype); ++i)
    bits[std::size_t(i)] = std::uint32_t(words[int(place * words_of(dtype) + i)].constant());
  return visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    std::memcpy(static_cast<void*>(&element), bits.data(), sizeof(element));
    Literal literal{dtype, false, 0, 0, 0};
    if constexpr (is_complex_v<T>)
      literal.real = element.real(), literal.imaginary = element.imag();
    else if constexpr (std::is_same_v<T, double>)
      literal.real = element;
    else if constexpr (std::is_integral_v<T>)
      literal.integer = std::int64_t(element);
    else
      literal.real = float(element);
    return literal;
  });
}

// More are memory that is made once, or a kernel's.
constexpr std::int64_t most_chosen = 64;

// Few elements are numbers of the loop program; of some more, each index chooses one by halves.
loops::Tensors emit_constant(loops::Writer& w, const Equation& equation,
                             std::span<const loops::Tensor>) {
  using namespace loops;  // NOLINT
  const Params& params = equation.params;
  const Aval aval{params.get<Shape>("shape"), params.get<DType>("dtype")};
  const std::int64_t size = num_elements(aval.shape.to_sizes());
  if (size > (w.has_kernels() ? few : most_chosen)) w.refuse("`constant` of many elements");
  Values elements;
  for (std::int64_t i = 0; i < size; ++i) elements.push_back(w.literal(element_of(params, i)));
  if (size <= few) return {{aval, std::move(elements)}};
  const Sizes64 strides = dense_strides(aval.shape.to_sizes());
  const auto element = [&w, elements, strides,
                        source = equation.source](std::span<const Index> indices) {
    Index place;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
      place.offset += indices[axis].offset * strides[axis];
      for (const Place::Term& term : indices[axis].terms)
        place.terms.push_back({term.index, term.stride * strides[axis]});
    }
    const Value number = w.number(place);
    const auto chosen = [&](const auto& self, std::size_t first, std::size_t last) -> Value {
      if (last - first == 1) return elements[first];
      const std::size_t middle = (first + last) / 2;
      const Value is_before = w.compute(cmp_p, {{"direction", std::string("lt")}},
                                        {number, w.integer(std::int64_t(middle))}, source);
      return w.compute(select_p, {},
                       {is_before, self(self, first, middle), self(self, middle, last)}, source);
    };
    return chosen(chosen, 0, elements.size());
  };
  return {w.computed(aval, {element, {}, double(size)})};
}

const auto constant_def =
    define(constant_p, "Few known elements.")
        .rule<Abstract>([](std::span<const Aval>, const Params& params) {
          const Aval aval{params.get<Shape>("shape"), params.get<DType>("dtype")};
          const auto& words = params.get<Shape>("words");
          if (!(num_elements(aval.shape.to_sizes()) * words_of(aval.dtype) == words.rank()))
            throw InternalError("constant: " + std::to_string(words.rank()) + " words for " +
                                aval.to_string());
          return std::vector<Aval>{aval};
        })
        .rule<Eval>([](std::span<const View>, std::span<const View> outputs, const Params& params) {
          const View& out = outputs[0];
          const Shape& words = params.get<Shape>("words");
          const std::int64_t bytes = size_of(out.dtype), step = words_of(out.dtype);
          auto* target = static_cast<std::byte*>(out.data);
          for (int i = 0; i < words.rank(); i += int(step), target += bytes)
            for (std::int64_t part = 0; part < step; ++part) {
              const auto word = std::uint32_t(words[i + int(part)].constant());
              std::memcpy(target + 4 * part, &word, std::size_t(std::min<std::int64_t>(bytes, 4)));
            }
        })
        .rule<Decompose>([](std::span<const Array>, const Params& params) {
          const Shape& shape = params.get<Shape>("shape");
          const DType dtype = params.get<DType>("dtype");
          const std::int64_t size = num_elements(shape.to_sizes());
          Arrays elements;
          for (std::int64_t i = 0; i < size; ++i)
            elements.push_back(broadcast_to(Array::literal(element_of(params, i)), {1}));
          if (elements.empty()) return Arrays{lax::full(shape, 0, dtype)};
          return Arrays{lax::reshape(lax::concatenate(elements, 0), shape)};
        })
        .rule<Emit>(emit_constant)
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .rule<PictureGroup>(PictureGroup::other)
        .rule<Speculate>({})
        .rule<Motion>(Motion::moves)
        .rule<Jvp>(zero_derivative())
        .rule<Batch>(
            [](Dim, std::span<const Batched>, const Params& params) -> std::vector<Batched> {
              return {{Array(bind(constant_p, {}, params)), std::nullopt}};
            })
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{}, {{"dtype", DType::int32}, {"shape", Shape{2, 2}}, {"words", Shape{3, 1, 4, 1}}}},
              {{}, {{"dtype", DType::float64}, {"shape", Shape{1}}, {"words", Shape{1, 3}}}}};
        });

// Of at most max_constant elements.
Array constant_of(const Aval& aval, const Buffer& elements) {
  if (is_stored(aval.dtype))
    return bind(bitcast_p, {constant_of(in_memory(aval), elements)}, {{"dtype", aval.dtype}});
  const Buffer dense = elements.dense();
  const std::int64_t size = num_elements(dense.shape()), bytes = size_of(aval.dtype);
  Shape words;
  for (std::int64_t i = 0; i < size; ++i) {
    std::array<std::uint32_t, 4> bits{};
    std::memcpy(bits.data(), static_cast<const std::byte*>(dense.data()) + i * bytes,
                std::size_t(bytes));
    for (std::int64_t part = 0; part < words_of(aval.dtype); ++part)
      words.push_back(Dim(std::int64_t(bits[std::size_t(part)])));
  }
  const Params params{{"dtype", aval.dtype}, {"shape", aval.shape}, {"words", words}};
  const Array made = size == 1 ? broadcast_to(Array::literal(element_of(params, 0)), aval.shape)
                               : Array(bind(constant_p, {}, params));
  return aval.weak ? Array(lax::convert_element_type(made, aval.dtype, true)) : made;
}

const bool provides = (make_constant = constant_of, true);

}  // namespace

}  // namespace plait
