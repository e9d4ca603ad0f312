// The tables of the catalogue's rule kinds. See rules.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules.h>

namespace plait {

// One exported function a kind, not a template static: with hidden visibility each library would
// get a table of its own.
#define PLAIT_TABLE(Kind)                     \
  RuleTable<Kind>& Kind::table() {            \
    static auto* table = new RuleTable<Kind>; \
    return *table;                            \
  }
PLAIT_TABLE(Eval)
PLAIT_TABLE(Alias)
PLAIT_TABLE(Pointwise)
PLAIT_TABLE(Decompose)
PLAIT_TABLE(Jvp)
PLAIT_TABLE(Linearize)
PLAIT_TABLE(Transpose)
PLAIT_TABLE(Batch)
PLAIT_TABLE(Mask)
PLAIT_TABLE(Samples)
#undef PLAIT_TABLE

}  // namespace plait
