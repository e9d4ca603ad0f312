// plait::random: random numbers from keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/random.h>
