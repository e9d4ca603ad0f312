// check: an equation that is an error where a condition does not hold. See check.h.
//
//   message   the text, in which "{}" stands for a value
//   lanes     the number of leading axes of each operand that belong to vmaps
//
// Operands: the condition, then the values.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/examples.h>
#include <plait/primitives/check.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/guard.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

std::string text_of(const View& view, std::int64_t offset) {
  return visit_dtype(view.dtype, [&](auto element) -> std::string {
    using T = decltype(element);
    const T value = view.as<T>()[offset];
    Literal literal{view.dtype, true, 0, 0, 0};
    if constexpr (std::is_same_v<T, bool>)
      return value ? "True" : "False";
    else if constexpr (std::is_integral_v<T>)
      return std::to_string(value);
    else if constexpr (is_complex_v<T>)
      literal.real = value.real(), literal.imaginary = value.imag();
    else if constexpr (std::is_same_v<T, double>)
      literal.real = value;
    else
      literal.real = float(value);                 // 16-bit floats too
    const std::string text = literal.to_string();  // "2.0:f32"
    return text.substr(0, text.find(':'));
  });
}

// All elements of a small array, the first of a large one.
std::string text_of(const View& view) {
  constexpr std::int64_t most = 6;
  const Buffer dense = Buffer::copy_of(view);
  const std::int64_t size = view.size();
  if (view.rank() == 0) return text_of(dense.view(), 0);
  std::string text = "[";
  for (std::int64_t i = 0; i < std::min(size, most); ++i)
    text += (i ? ", " : "") + text_of(dense.view(), i);
  return text + (size > most ? ", ...]" : "]");
}

std::string text_of(std::span<const std::int64_t> indices) {
  std::string text;
  for (std::int64_t index : indices) text += (text.empty() ? "" : ", ") + std::to_string(index);
  return indices.size() == 1 ? text : "(" + text + ")";
}

// The subview at these indices of its first axes.
View at(View view, std::span<const std::int64_t> indices) {
  for (std::int64_t index : indices) {
    view.data = static_cast<char*>(view.data) + index * view.strides[0] * size_of(view.dtype);
    view.shape.erase(0);
    view.strides.erase(0);
  }
  return view;
}

std::string filled(const std::string& message, const std::vector<std::string>& values) {
  std::string text;
  std::size_t next = 0, begin = 0;
  for (std::size_t place;
       next < values.size() && (place = message.find("{}", begin)) != std::string::npos;
       begin = place + 2)
    text += message.substr(begin, place - begin) + values[next++];
  text += message.substr(begin);
  for (std::size_t first = next; next < values.size(); ++next)
    text += (next == first ? ": " : ", ") + values[next];
  return text;
}

void eval_check(std::span<const View> inputs, std::span<const View>, const Params& params) {
  const Buffer holds = Buffer::copy_of(inputs[0]);
  const bool* const begin = static_cast<const bool*>(holds.data());
  const bool* const end = begin + num_elements(holds.shape());
  const bool* const failed = std::find(begin, end, false);
  if (failed == end) return;
  std::vector<std::int64_t> place(holds.shape().size());
  std::int64_t rest = failed - begin;
  for (std::size_t axis = place.size(); axis-- > 0; rest /= holds.shape()[axis])
    place[axis] = rest % holds.shape()[axis];
  const std::size_t lanes = params.integer("lanes");
  const std::span<const std::int64_t> all(place);
  std::vector<std::string> values;
  for (const View& input : inputs.subspan(1)) {
    const bool same_shape = input.shape == inputs[0].shape;
    values.push_back(text_of(at(input, same_shape ? all : all.first(lanes))));
  }
  std::string what = "check: " + filled(params.text("message"), values);
  if (place.size() > lanes) what += "; at element " + text_of(all.subspan(lanes));
  if (lanes > 0) what += "; in example " + text_of(ExampleScope::numbers_of(all.first(lanes)));
  throw ValueError(what, "give values for which it holds, or correct what is checked");
}

}  // namespace

constinit const Primitive check_p{"check"};
static const auto check_def =
    define(check_p, "An error unless the first operand is true everywhere.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_dtype("check", inputs[0], boolean);
          for (const Aval& input : inputs)
            if (input.rank() < params.integer("lanes"))
              throw InternalError("check: an operand without the axes of its lanes");
          return std::vector<Aval>{};
        })
        .rule<Eval>(eval_check)
        .rule<OnHost>("it raises an error")
        .rule<Cost>(cost::for_each_operand(1))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::effect)
        .refuse<Speculate>("it may raise")
        .refuse<Motion>("it may raise")
        .rule<Jvp>([](auto, auto, auto, const Params&) { return Tangents{}; })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          Arrays arrays;
          for (const Batched& input : inputs) arrays.push_back(batch_to_front(input, size));
          bind(check_p, arrays, params.with("lanes", Dim(params.integer("lanes") + 1)));
          return std::vector<Batched>{};
        })
        .rule<Guard>({{},
                      [](const Array& live, std::span<const Array> inputs, const Params& params) {
                        Arrays arrays(inputs.begin(), inputs.end());
                        const Array passes = lax::bitwise_not(live);
                        arrays[0] =
                            lax::bitwise_or(inputs[0], broadcast_to(passes, inputs[0].shape()));
                        return Arrays(bind(check_p, arrays, params));
                      }})
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          if (!sizes.checked) return Arrays{};  // some examples may be padding
          Arrays arrays;
          for (const Masked& input : inputs) arrays.push_back(input.padded);
          arrays[0] = fill_padding(inputs[0], Array(true), sizes);
          return Arrays(bind(check_p, arrays, params));
        })
        .rule<Samples>([] {
          const Sample::Input value{{{3, 5}, DType::float64}};
          const Sample::Input none{{{0}, DType::bool_}, Sample::Input::Values::boolean};
          return std::vector<Sample>{
              {{none, value}, {{"message", std::string("{}")}, {"lanes", Dim(0)}}}};
        })
        .effectful();

void check(Operand pred, const std::string& message, std::span<const Array> values) {
  if (pred.dtype() != DType::bool_)
    throw DtypeError("check: the condition is " + pred.aval().to_string() + ", and should be bool",
                     "compare it, as in x > 0");
  Arrays operands{pred};
  operands.insert(operands.end(), values.begin(), values.end());
  bind(check_p, operands, {{"message", message}, {"lanes", Dim(0)}});
}

void check(Operand pred, const std::string& message, std::initializer_list<Array> values) {
  check(pred, message, std::span<const Array>(values.begin(), values.size()));
}

}  // namespace plait
