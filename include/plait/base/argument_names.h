// How messages name the arrays that a transform was given. Transforms see flat lists and say
// "argument 2"; the caller that flattened a user's arguments knows that this is "argument 1 ['w']".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace plait {

// Names the arrays of the call that this thread is making, until it is destroyed. An empty function
// restores the numbers, because user code that the transform runs has arguments of its own.
class ArgumentNames {
 public:
  using Name = std::function<std::string(std::size_t index)>;
  explicit ArgumentNames(Name name);
  ~ArgumentNames();
  ArgumentNames(const ArgumentNames&) = delete;

  // "argument 1 ['w']"; "argument 2" where no name was given.
  static std::string of(std::size_t index);

 private:
  Name name_;
  ArgumentNames* outer_;
};

}  // namespace plait
