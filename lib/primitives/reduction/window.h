// The geometry of windows, which reduce_window and conv share: window o of an axis reads, for k
// from 0, position o * stride + k * window_dilation - low of the axis with holes between its
// elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "order.h"
#include "primitives/indexing/indexing.h"
#include "primitives/written.h"

namespace plait {

// One entry per windowed axis.
struct Windows {
  Shape window, strides, low, high, base_dilation, window_dilation;
};

// n elements with holes between them, so that neighbours are `dilation` apart.
inline Dim dilated_size(Dim n, Dim dilation) { return indexing::dilated(n, dilation - 1); }

// How many windows fit on an axis of n elements; 0 when the window is longer than the axis.
Dim num_windows(Dim n, const Windows& windows, int axis);

// The padding after the elements with which exactly `count` windows fit.
Dim high_for(Dim count, Dim n, const Windows& windows, int axis);

// The axis is not windowed: its elements stay as they are.
bool is_trivial(const Windows& windows, int axis);

// Errors of users: lists of another length than `axes`, strides or dilations below 1.
void check_windows(std::string_view name, const Windows& windows, int axes, const Aval& operand);

Shape or_ones(const Shape& list, int axes);  // an empty list is all ones
// Sets low and high of windows over axes of these sizes.
void resolve_padding(std::string_view name, const lax::WindowPadding& padding, const Shape& sizes,
                     Windows& windows);

// Prepares a masked operand for windows with constant low padding and holes: fill beyond the real
// elements, which sizes in the padding have shifted by a dynamic amount. Sets low and base_dilation
// accordingly. axes[i] is the operand's axis of window i.
Masked place_under_windows(const Masked& operand, const Array& fill, std::span<const int> axes,
                           Windows& windows, const SizeValues& sizes);

// In loop programs: the element of an axis of n that a window reads, clamped, and whether there is
// one, if that is not known.
struct WindowRead {
  loops::Index element;
  std::optional<written::Number> is_element;
};
WindowRead read_of(const Windows& windows, int axis, std::int64_t n, const loops::Index& window,
                   const loops::Index& k);
// Adds a truth to those that must hold.
void require_too(std::optional<written::Number>& all, const std::optional<written::Number>& one);

// The parameters of reduce_window, its kernel, and the result of its kind for an empty window.
Windows windows_of(const Params& params);
void eval_reduce_window(std::span<const View> inputs, std::span<const View> outputs,
                        const Params& params);
Array window_identity(const std::string& kind, DType dtype);

}  // namespace plait
