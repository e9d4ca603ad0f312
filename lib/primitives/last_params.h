// Caches the Params of a function's last equation, for the next call with equal arguments: making
// Params costs as much as running a small kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/params.h>

#include <optional>
#include <tuple>
#include <utility>

namespace plait {

// The result of make, or of its last call on this thread if the keys are equal. Each lambda has its
// own cache.
template <class Make, class... Keys>
Params last_params(const Make& make, const Keys&... keys) {
  static thread_local std::optional<std::pair<std::tuple<Keys...>, Params>> last;
  if (!last || last->first != std::tie(keys...)) last.emplace(std::tuple<Keys...>(keys...), make());
  return last->second;
}

}  // namespace plait
