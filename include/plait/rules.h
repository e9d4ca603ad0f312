// For authors of transforms: the rule kinds, and interpreters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/interpret.h>
#include <plait/rules/rules.h>
