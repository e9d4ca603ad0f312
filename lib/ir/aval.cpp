// The type of a value in a program. See aval.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/aval.h>

namespace plait {

std::string Aval::to_string() const {
  return std::string(short_name_of(dtype)) + "[" + shape.to_string() + "]" + (weak ? "*" : "");
}

std::size_t Aval::hash() const {
  return shape.hash() * 31 + static_cast<std::size_t>(dtype) * 2 + (weak ? 1 : 0);
}

}  // namespace plait
