// The geometry of windows. See window.h.
// SPDX-License-Identifier: Apache-2.0
#include "window.h"

namespace plait {

using indexing::text_of;

Dim num_windows(Dim n, const Windows& windows, int axis) {
  const Dim length =
      windows.low[axis] + dilated_size(n, windows.base_dilation[axis]) + windows.high[axis];
  const Dim reach = dilated_size(windows.window[axis], windows.window_dilation[axis]);
  return maximum(0, floor_divide(length - reach, windows.strides[axis]) + 1);
}

Dim high_for(Dim count, Dim n, const Windows& windows, int axis) {
  const Dim reach = dilated_size(windows.window[axis], windows.window_dilation[axis]);
  return (count - 1) * windows.strides[axis] + reach -
         dilated_size(n, windows.base_dilation[axis]) - windows.low[axis];
}

bool is_trivial(const Windows& w, int axis) {
  return w.window[axis] == Dim(1) && w.strides[axis] == Dim(1) && w.low[axis] == Dim(0) &&
         w.high[axis] == Dim(0) && w.base_dilation[axis] == Dim(1);
}

void check_windows(std::string_view name, const Windows& windows, int axes, const Aval& operand) {
  auto check = [&](const Shape& list, const char* what, std::optional<Dim> least) {
    if (list.rank() != axes)
      throw ShapeError(std::string(name) + ": " + what + " " + text_of(list) + " has " +
                           std::to_string(list.rank()) +
                           (list.rank() == 1 ? " entry" : " entries") + " for the " +
                           std::to_string(axes) + " windowed axes of an array of shape " +
                           text_of(operand.shape),
                       "give one entry for each axis");
    if (!least) return;
    for (Dim entry : list)
      indexing::require_order(*least, entry, [&] {
        return ShapeError(std::string(name) + ": " + what + " " + text_of(list) +
                              " has an entry below " + least->to_string(),
                          "give entries of at least " + least->to_string());
      });
  };
  check(windows.window, "the window", Dim(0));
  check(windows.strides, "window_strides", Dim(1));
  check(windows.low, "the low padding", {});
  check(windows.high, "the high padding", {});
  check(windows.base_dilation, "the dilation of the operand", Dim(1));
  check(windows.window_dilation, "the dilation of the window", Dim(1));
}

Shape or_ones(const Shape& list, int axes) { return list.empty() ? Shape(axes, 1) : list; }

void resolve_padding(std::string_view name, const lax::WindowPadding& padding, const Shape& sizes,
                     Windows& windows) {
  windows.low = windows.high = Shape();
  if (padding.name.empty()) {
    for (const auto& [low, high] : padding.pairs) {
      windows.low.push_back(low);
      windows.high.push_back(high);
    }
    return;
  }
  if (padding.name != "VALID" && padding.name != "SAME" && padding.name != "SAME_LOWER")
    throw ValueError(std::string(name) + ": there is no padding '" + padding.name + "'",
                     "choose VALID, SAME, SAME_LOWER, or give pairs of sizes");
  for (int i = 0; i < sizes.rank(); ++i) {
    Dim low = 0, high = 0;
    if (padding.name != "VALID" && i < windows.window.rank() && i < windows.strides.rank() &&
        i < windows.window_dilation.rank()) {
      const Dim stride = windows.strides[i], count = ceil_divide(sizes[i], stride);
      const Dim reach = dilated_size(windows.window[i], windows.window_dilation[i]);
      const Dim total = maximum(0, (count - 1) * stride + reach - sizes[i]),
                half = floor_divide(total, 2);
      low = padding.name == "SAME" ? half : total - half;
      high = total - low;
    }
    windows.low.push_back(low);
    windows.high.push_back(high);
  }
}

WindowRead read_of(const Windows& windows, int axis, std::int64_t n, const loops::Index& window,
                   const loops::Index& k) {
  using namespace written;  // NOLINT
  loops::Writer& w = Writing::current().writer;
  const std::int64_t holes = windows.base_dilation[axis].constant();
  Index position = sum_of(times(window, windows.strides[axis].constant()),
                          times(k, windows.window_dilation[axis].constant()));
  position.offset -= windows.low[axis].constant();
  const loops::Range range = w.range(position);
  const std::int64_t last = (n - 1) * holes;
  WindowRead read{position, {}};
  if (range.low >= 0 && range.high <= last && holes == 1) return read;
  const Number at = number_of(position);
  if (range.low < 0) require_too(read.is_element, at >= integer(0));
  if (range.high > last) require_too(read.is_element, at <= integer(last));
  if (holes > 1) require_too(read.is_element, at % integer(holes) == integer(0));
  const Number element = holes > 1 ? at / integer(holes) : at;
  read.element = {0, {{w.clamped(element.value, 0, n - 1), 1}}};
  return read;
}

void require_too(std::optional<written::Number>& all, const std::optional<written::Number>& one) {
  if (all && one)
    all = *all & *one;
  else if (one)
    all = one;
}

Masked place_under_windows(const Masked& operand, const Array& fill, std::span<const int> axes,
                           Windows& windows, const SizeValues& sizes) {
  const int rank = operand.aval.rank();
  Shape low(rank, 0), interior(rank, 0);
  bool shifts = false;
  std::vector<int> windowed;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!is_trivial(windows, int(i))) windowed.push_back(axes[i]);
    if (windows.low[i].is_constant() && windows.base_dilation[i].is_constant()) continue;
    low[axes[i]] = windows.low[i];
    interior[axes[i]] = windows.base_dilation[i] - 1;
    windows.low[i] = 0;
    windows.base_dilation[i] = 1;
    shifts = true;
  }
  Masked placed = operand;
  if (shifts) {
    const Params params{{"low", low}, {"high", Shape(rank, 0)}, {"interior", interior}};
    const Masked value{fill, fill.aval()}, inputs[] = {operand, value};
    const std::vector<Aval> avals =
        infer(pad_p, std::vector<Aval>{operand.aval, fill.aval()}, params);
    placed = {rule<Mask>(pad_p)(inputs, avals, params, sizes)[0], avals[0]};
  }
  return {fill_padding(placed, fill, sizes, windowed), placed.aval};
}

}  // namespace plait
