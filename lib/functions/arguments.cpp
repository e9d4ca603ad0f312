// Arguments that have several forms, from either language. See arguments.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/arguments.h>
#include <plait/functions/catalogue.h>
#include <plait/primitives/primitives.h>

namespace plait {

std::optional<Axes> Axes::from_argument(const Argument& argument) {
  if (argument.is_none()) return Axes();
  std::optional<std::vector<int>> axes = detail::as_ints(argument);
  if (!axes) return std::nullopt;
  return Axes(*std::move(axes));
}

std::vector<int> Axes::of(int rank, std::string_view function) const {
  std::vector<int> axes;
  if (!axes_) {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }
  for (int axis : *axes_) axes.push_back(normalize_axis(axis, rank, function));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    throw ValueError(std::string(function) + ": the axes (" + to_shape(*axes_).to_string() +
                         ") name an axis twice",
                     "name each axis once");
  return axes;
}

std::optional<PadWidth> PadWidth::from_argument(const Argument& argument) {
  if (std::optional<Shape> shape = detail::as_shape(argument)) {
    if (shape->size() == 1) return PadWidth((*shape)[0]);
    if (shape->size() == 2) return PadWidth({{(*shape)[0], (*shape)[1]}});
    return std::nullopt;
  }
  std::vector<Pair> pairs;
  if (const auto* table = std::get_if<Array>(&argument.value);
      table && table->ndim() == 2 && table->shape(1) == Dim(2) && is_integer(table->dtype()) &&
      table->known_buffer()) {
    const std::vector<std::int64_t> widths = table->to_vector<std::int64_t>();
    for (std::size_t i = 0; i < widths.size(); i += 2) pairs.emplace_back(widths[i], widths[i + 1]);
    return PadWidth(std::move(pairs));
  }
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (!list) return std::nullopt;
  for (const Argument& part : *list) {
    std::optional<Shape> pair = detail::as_shape(part);
    if (!pair || pair->empty() || pair->size() > 2) return std::nullopt;
    pairs.emplace_back((*pair)[0], pair->back());
  }
  return PadWidth(std::move(pairs));
}

std::vector<PadWidth::Pair> PadWidth::of(int rank, std::string_view function) const {
  if (int(pairs_.size()) == rank) return pairs_;
  if (pairs_.size() != 1)
    throw ValueError(std::string(function) + ": " + std::to_string(pairs_.size()) +
                         " pad widths for an array of " + std::to_string(rank) + " axes",
                     "give one pair for all axes, or one for each");
  return std::vector<Pair>(rank, pairs_[0]);
}

std::optional<Sections> Sections::from_argument(const Argument& argument) {
  std::optional<Shape> shape = detail::as_shape(argument);
  if (!shape) return std::nullopt;
  if (std::holds_alternative<Argument::List>(argument.value)) return Sections(*std::move(shape));
  if (const auto* array = std::get_if<Array>(&argument.value); array && array->ndim() > 0)
    return Sections(*std::move(shape));
  return Sections((*shape)[0]);
}

std::optional<Repeats> Repeats::from_argument(const Argument& argument) {
  if (const auto* dim = std::get_if<Dim>(&argument.value)) return Repeats(*dim);
  if (std::optional<std::int64_t> count = detail::as_integer(argument)) return Repeats(Dim(*count));
  if (std::optional<Array> counts = detail::as_array(argument)) return Repeats(*counts);
  std::optional<Shape> list = detail::as_shape(argument);
  if (!list || !list->is_constant()) return std::nullopt;
  Arrays counts;
  for (Dim count : *list) counts.push_back(lax::full({1}, double(count.constant()), default_int()));
  return Repeats(counts.empty() ? lax::full({0}, 0, default_int()) : lax::concatenate(counts, 0));
}

std::optional<BinaryFunction> BinaryFunction::from_argument(const Argument& argument) {
  const auto* function = std::get_if<Function>(&argument.value);
  if (!function) return std::nullopt;
  return BinaryFunction([function = *function](const Array& x, const Array& y) {
    return function(Arrays{x, y}).at(0);
  });
}

std::optional<Number> Number::from_argument(const Argument& argument) {
  if (const auto* dim = std::get_if<Dim>(&argument.value)) return Number(*dim);
  if (std::optional<std::int64_t> integer = detail::as_integer(argument)) return Number(*integer);
  if (std::optional<double> real = detail::as_double(argument)) return Number(*real);
  if (const auto* array = std::get_if<Array>(&argument.value); array && array->ndim() == 0)
    return Number(array->item<double>());  // throws the error for a value that is not known
  return std::nullopt;
}

double Number::as_double() const {
  return is_float() ? std::get<double>(value_) : double(dim().constant());
}

}  // namespace plait
