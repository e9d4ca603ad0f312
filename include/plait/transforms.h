// The transforms of C++ functions: grad, vmap, jit, mask and others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/api.h>
#include <plait/transforms/autocast.h>
#include <plait/transforms/custom.h>
#include <plait/transforms/implicit.h>
#include <plait/transforms/specs.h>
#include <plait/transforms/tape.h>
