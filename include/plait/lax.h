// plait::lax: primitives as functions, and JAX's functions made of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/lax.h>
#include <plait/functions/lax_numbers.h>
#include <plait/primitives/linalg.h>
#include <plait/primitives/primitives.h>
