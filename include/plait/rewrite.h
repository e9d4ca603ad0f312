// Reading and rewriting programs: passes, patterns, rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rewriting/edit.h>
#include <plait/rewriting/patterns.h>
#include <plait/rewriting/rewrite.h>
