// The tables of the rule kinds. Those that the checker needs are in lib/ir/primitive.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/bodies.h>
#include <plait/rules/commute.h>
#include <plait/rules/cost.h>
#include <plait/rules/diverge.h>
#include <plait/rules/emit.h>
#include <plait/rules/guard.h>
#include <plait/rules/inline.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/prune.h>
#include <plait/rules/put.h>
#include <plait/rules/rules.h>
#include <plait/rules/separate.h>
#include <plait/rules/share.h>
#include <plait/rules/speculate.h>
#include <plait/rules/spelling.h>
#include <plait/rules/steps.h>

namespace plait {

PLAIT_RULE_TABLE(Eval)
PLAIT_RULE_TABLE(Alias)
PLAIT_RULE_TABLE(Pointwise)
PLAIT_RULE_TABLE(Decompose)
PLAIT_RULE_TABLE(Jvp)
PLAIT_RULE_TABLE(Linearize)
PLAIT_RULE_TABLE(Transpose)
PLAIT_RULE_TABLE(Accumulate)
PLAIT_RULE_TABLE(Batch)
PLAIT_RULE_TABLE(Mask)
PLAIT_RULE_TABLE(Samples)
PLAIT_RULE_TABLE(Autocast)
PLAIT_RULE_TABLE(PictureGroup)
PLAIT_RULE_TABLE(Steps)
PLAIT_RULE_TABLE(Bodies)
PLAIT_RULE_TABLE(Commute)
PLAIT_RULE_TABLE(Cost)
PLAIT_RULE_TABLE(Diverge)
PLAIT_RULE_TABLE(Emit)
PLAIT_RULE_TABLE(Guard)
PLAIT_RULE_TABLE(Inline)
PLAIT_RULE_TABLE(Motion)
PLAIT_RULE_TABLE(OnHost)
PLAIT_RULE_TABLE(Prune)
PLAIT_RULE_TABLE(Put)
PLAIT_RULE_TABLE(Separate)
PLAIT_RULE_TABLE(Share)
PLAIT_RULE_TABLE(Speculate)
PLAIT_RULE_TABLE(Spelling)

}  // namespace plait
