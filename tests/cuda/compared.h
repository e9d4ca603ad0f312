// Programs on the first CUDA device, which is the stand-in's, against the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/plait.h>

#include <functional>
#include <string>

namespace plait::cuda {

inline Device first_device() { return Device::named("cuda:0"); }

Array numbers(const Shape& shape, DType dtype);

// Runs a function there and here, and compares. Returns what explain says. compiled: called before
// it runs there.
std::string compared(
    const std::function<Array(std::span<const Array>)>& f, const Arrays& inputs,
    const std::function<void()>& compiled = [] {});

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace plait::cuda
