// What is wrong, in the words of the error that a function throws; empty where it throws none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>

#include <functional>
#include <string>

namespace plait {

inline std::string problem(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.problem();
  }
  return "";
}

// The same, and its fix behind a bar; of errors of one class, while others pass.
template <class E = Error>
std::string problem_and_fix(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& error) {
    return error.problem() + " | " + error.fix();
  }
  return "";
}

}  // namespace plait
