// See rules/inline.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/inline.h>

namespace plait {

const std::string* title_of(const Primitive& primitive, const Params& params) {
  const Inline::Rule* rule = Inline::table().find(primitive);
  const ParamValue* title = rule ? params.find(rule->title) : nullptr;
  return title ? std::get_if<std::string>(title) : nullptr;
}

}  // namespace plait
