// Looking inside: summaries, code, pictures, profiles, the first NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/inspect/draw.h>
#include <plait/inspect/first_nan.h>
#include <plait/inspect/inspect.h>
#include <plait/inspect/profile.h>
#include <plait/rules/cost.h>
