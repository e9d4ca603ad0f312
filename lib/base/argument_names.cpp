// The names of a call's arguments, innermost first. See argument_names.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>

#include <utility>

namespace plait {
namespace {

constinit thread_local ArgumentNames* innermost_names = nullptr;

}  // namespace

ArgumentNames::ArgumentNames(Name name)
    : name_(std::move(name)), outer_(std::exchange(innermost_names, this)) {}
ArgumentNames::~ArgumentNames() { innermost_names = outer_; }

std::string ArgumentNames::of(std::size_t index) {
  if (innermost_names && innermost_names->name_) return innermost_names->name_(index);
  return "argument " + std::to_string(index);
}

}  // namespace plait
