// The table of cost rules, apart from the rules: who states one needs no other primitive.
// SPDX-License-Identifier: Apache-2.0
#include <plait/cost.h>

namespace plait {

RuleTable<Cost>& Cost::table() {
  static auto* table = new RuleTable<Cost>;
  return *table;
}

}  // namespace plait
