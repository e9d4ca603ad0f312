// masked: the primitive that holds a function over named sizes and applies it to padded arrays; and
// the check of sizes that it runs. What it does to them is said in transforms/masked.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "ops/lanes.h"

#include <plait/families.h>
#include <plait/ops.h>
#include <plait/sizes.h>

namespace plait {

MaskedParams::MaskedParams(const Params& params)
    : body(params.get<Jaxpr>("body")),
      bounds(params.get<Shape>("bounds")),
      checked(params.flag("checked")) {
  if (params.has("sizes")) sizes = params.get<Shape>("sizes");
  if (sizes.size() + bounds.size() != body->sizes.size())
    throw InternalError("masked: the parameters do not fit each other: " + params.to_string());
  ragged.assign(body->sizes.end() - bounds.size(), body->sizes.end());
  if (params.has("lanes"))
    lanes = lanes_of(params, num_ragged() + body->num_binders, body->outputs.size(), "masked");
}

Params MaskedParams::to_params() const {
  std::vector<Params::Entry> entries{{"body", body}, {"bounds", bounds}, {"checked", checked}};
  if (!sizes.empty()) entries.emplace_back("sizes", sizes);
  if (!lanes.empty()) add_lanes(entries, lanes, body->outputs.size());
  return Params(std::move(entries));
}

std::vector<std::pair<Dim, Dim>> MaskedParams::opening() const {
  std::vector<std::pair<Dim, Dim>> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) result.emplace_back(body->sizes[i], sizes[i]);
  std::vector<Dim> taken;
  collect_sizes(sizes, taken);
  collect_sizes(bounds, taken);
  for (Dim size : ragged) {
    result.emplace_back(size, fresh_size(size, taken));
    taken.push_back(result.back().second);
  }
  return result;
}

Jaxpr MaskedParams::open_body() const {
  const std::vector<std::pair<Dim, Dim>> replacements = opening();
  const bool same = std::all_of(replacements.begin(), replacements.end(),
                                [](const auto& pair) { return pair.first == pair.second; });
  return same ? body : instantiate(body, replacements);
}

std::vector<std::pair<Dim, Dim>> MaskedParams::open_bounds() const {
  const std::vector<std::pair<Dim, Dim>> replacements = opening();
  std::vector<std::pair<Dim, Dim>> result;
  for (std::size_t i = 0; i < bounds.size(); ++i)
    result.emplace_back(replacements[sizes.size() + i].second, bounds[i]);
  return result;
}

Aval MaskedParams::padded(const Aval& real) const {
  if (real.shape.is_constant()) return real;
  const std::vector<std::pair<Dim, Dim>> replacements = opening(), limits = open_bounds();
  Aval aval = real;
  for (Dim& dim : aval.shape) dim = largest(dim.substitute(replacements), limits);
  return aval;
}

constinit const Primitive masked_p{"masked"};
static const auto masked_def =
    define(masked_p,
           "Applies a function of named sizes to padded arrays and the sizes' values; the padding "
           "of results is zero.")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const MaskedParams masked(params);
          const std::size_t num_ragged = masked.num_ragged();
          if (inputs.size() != num_ragged + masked.body->num_binders)
            throw InternalError("masked: " + std::to_string(inputs.size()) + " operands for " +
                                std::to_string(num_ragged) + " sizes and a body of " +
                                std::to_string(masked.body->num_binders));
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            Aval expected = i < num_ragged ? Aval{{}, DType::int32}
                                           : masked.padded(masked.body->avals[i - num_ragged]);
            for (auto lane = masked.lanes.rbegin(); lane != masked.lanes.rend(); ++lane)
              if (lane->batched[i]) expected.shape.insert(0, lane->size);
            if (!(inputs[i].shape == expected.shape) || inputs[i].dtype != expected.dtype)
              throw InternalError("masked: operand " + std::to_string(i) + " is " +
                                  inputs[i].to_string() + " where " + expected.to_string() +
                                  " is needed\n" + print(masked.body));
          }
          std::vector<Aval> outputs;
          for (const Aval& real : masked.body->output_avals()) {
            const std::size_t i = outputs.size();
            outputs.push_back(masked.padded(real));
            for (auto lane = masked.lanes.rbegin(); lane != masked.lanes.rend(); ++lane)
              if (!lane->sums(i)) outputs.back().shape.insert(0, lane->size);
          }
          return outputs;
        })
        .rule<Samples>([] {
          Builder builder;  // sin(x) summed over n, times y
          const Dim n = Dim::size("n");
          const Var x = builder.add_binder({{n, 3}, DType::float64});
          const Var y = builder.add_binder({{3}, DType::float64});
          const Var sine = builder.add(sin_p, {x}, {}, {})[0];
          const Var sum = builder.add(reduce_p, {sine},
                                      {{"kind", std::string("sum")}, {"axes", Shape{0}}}, {})[0];
          const Var product = builder.add(mul_p, {sum, y}, {}, {})[0];
          const Jaxpr body = builder.close({product, sine}, {n});
          const Sample::Input size{{{}, DType::int32}, Sample::Input::Values::indices, 5};
          return std::vector<Sample>{{{size, {{{4, 3}, DType::float64}}, {{{3}, DType::float64}}},
                                      {{"body", body}, {"bounds", Shape{4}}, {"checked", true}}}};
        });

// --- The check of sizes --------------------------------------------------------------------------

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The first pair of elements with left > right, and its place.
struct Violation {
  std::int64_t lane, left, right;
};
std::optional<Violation> violation(const View& left_view, const View& right_view) {
  const Buffer left = Buffer::copy_of(left_view), right = Buffer::copy_of(right_view);
  const auto *l = static_cast<const std::int32_t*>(left.data()),
             *r = static_cast<const std::int32_t*>(right.data());
  const std::int64_t num_left = num_elements(left.shape()), num_right = num_elements(right.shape()),
                     n = std::max(num_left, num_right);
  for (std::int64_t i = 0; i < n; ++i)
    if (const std::int32_t a = l[num_left == 1 ? 0 : i], b = r[num_right == 1 ? 0 : i]; a > b)
      return Violation{i, a, b};
  return std::nullopt;
}

}  // namespace

constinit const Primitive check_sizes_p{"check_sizes"};
static const auto check_sizes_def =
    define(check_sizes_p,
           "An error unless each named size is from 0 to its bound, and the left of each pair that "
           "follows is at most "
           "the right. Operands are int32: the sizes, then the pairs.")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::size_t num_names = lines_of(params.text("names")).size();
          const Shape& bounds = params.get<Shape>("bounds");
          const bool fits =
              bounds.is_constant() && bounds.size() == num_names &&
              inputs.size() == num_names + 2 * lines_of(params.text("constraints")).size() &&
              std::all_of(inputs.begin(), inputs.end(),
                          [](const Aval& aval) { return aval.dtype == DType::int32; });
          if (!fits)
            throw InternalError("check_sizes: the operands do not fit the parameters " +
                                params.to_string());
          return std::vector<Aval>{};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View>, const Params& params) {
          const std::vector<std::string> names = lines_of(params.text("names")),
                                         constraints = lines_of(params.text("constraints"));
          auto in_lane = [](const View& view, std::int64_t lane) {
            return view.rank() == 0 ? std::string() : " in example " + std::to_string(lane);
          };
          for (std::size_t i = 0; i < names.size(); ++i) {
            const Buffer bound = Buffer::scalar(
                             std::int32_t(params.get<Shape>("bounds")[i].constant())),
                         zero = Buffer::scalar(std::int32_t(0));
            if (const auto wrong = violation(inputs[i], bound.view()))
              throw ValueError(
                  "mask: the size " + names[i] + " is " + std::to_string(wrong->left) +
                      in_lane(inputs[i], wrong->lane) + ", and the arrays are padded to " +
                      std::to_string(wrong->right),
                  "give a size that is at most that, or pad the arrays to a larger one");
            if (const auto wrong = violation(zero.view(), inputs[i]))
              throw ValueError("mask: the size " + names[i] + " is " +
                                   std::to_string(wrong->right) + in_lane(inputs[i], wrong->lane),
                               "give a size of 0 or more");
          }
          for (std::size_t i = 0; i < constraints.size(); ++i) {
            const View &left = inputs[names.size() + 2 * i],
                       &right = inputs[names.size() + 2 * i + 1];
            const bool is_rest = constraints[i].ends_with(" == 0");  // never negative
            if (const auto wrong = violation(left, right))
              throw ShapeError("mask: the function needs " + constraints[i] +
                                   ", and here that is " + std::to_string(wrong->left) +
                                   (is_rest ? " == 0" : " <= " + std::to_string(wrong->right)) +
                                   in_lane(left.rank() ? left : right, wrong->lane),
                               "call it with sizes that satisfy this");
          }
        })
        .rule<Jvp>([](auto, auto, auto, const Params&) { return Tangents{}; })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          Arrays arrays;
          for (const Batched& input : inputs) arrays.push_back(batch_to_front(input, size));
          bind(check_sizes_p, arrays, params);
          return std::vector<Batched>{};
        })
        .rule<Mask>([](auto, auto, const Params&, const SizeValues&) { return Arrays{}; })
        .rule<Samples>([] {
          const Sample::Input size{{{}, DType::int32}, Sample::Input::Values::indices, 5};
          return std::vector<Sample>{{{size},
                                      {{"names", std::string("n")},
                                       {"bounds", Shape{4}},
                                       {"constraints", std::string()}}}};
        })
        .effectful();

}  // namespace plait
