// plait::lax: primitives as functions, and JAX's functions made of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/lax.h>
#include <plait/functions/lax_linalg.h>
#include <plait/functions/lax_numbers.h>
#include <plait/primitives/collectives.h>
#include <plait/primitives/decompositions.h>
#include <plait/primitives/fourier.h>
#include <plait/primitives/linalg.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/special.h>
