// The tables of the catalogue's rule kinds. See rules.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/rules.h>
#include <plait/rules/steps.h>

namespace plait {

// One exported function per kind instead of a template static: with hidden visibility each library
// would get its own table.
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
PLAIT_TABLE(Autocast)
PLAIT_TABLE(PictureGroup)
PLAIT_TABLE(Steps)
#undef PLAIT_TABLE

}  // namespace plait
