// check_sizes: the check of sizes that functions on padded arrays run.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/cost.h"
#include "primitives/spelling.h"

#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

namespace plait {
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
            if (const auto wrong = violation(left, right)) {
              const bool from_data = params.has("from_data");
              throw ShapeError((from_data ? "the function needs " : "mask: the function needs ") +
                                   constraints[i] +
                                   (from_data ? " of a size that depends on values" : "") +
                                   ", and here that is " + std::to_string(wrong->left) +
                                   (is_rest ? " == 0" : " <= " + std::to_string(wrong->right)) +
                                   in_lane(left.rank() ? left : right, wrong->lane),
                               from_data ? "give values of which enough are chosen, or say size="
                                         : "call it with sizes that satisfy this");
            }
          }
        })
        .rule<OnHost>("it raises an error")
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::effect)
        .refuse<Speculate>("it may raise")
        .refuse<Motion>("it may raise")
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
