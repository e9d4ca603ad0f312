// What is found out about a program by walking through all that it holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

// What make finds, kept with the program under this name. A walk into bodies asks for theirs by
// this too: equations share bodies, and so a body that is called twice at each of 40 levels is
// walked through once and not 2^40 times.
template <class Make>
auto remembered(const Jaxpr& jaxpr, const char* what, const Make& make) {
  using Found = decltype(make());
  const auto found = jaxpr->memo.get(
      what, [&]() -> std::shared_ptr<const void> { return std::make_shared<const Found>(make()); });
  return *static_cast<const Found*>(found.get());
}

}  // namespace plait
