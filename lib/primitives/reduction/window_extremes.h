// Extremes over small windows. See window_extremes.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "window.h"

namespace plait {

// Whether eval_extremes is faster than one pass per axis: few elements in a window, and runs of
// neighbours after the windowed axes.
bool has_small_windows(const Windows& windows, const Sizes64& in);

// Kinds max, min, argmax and argmin over dense memory of float or double. result holds values or
// positions; identity is the value of windows of padding alone.
template <class T>
void eval_extremes(const std::string& kind, const Windows& windows, const Sizes64& in,
                   const Sizes64& out, const T* x, T identity, void* result);

}  // namespace plait
