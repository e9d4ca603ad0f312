// For authors of primitives: families of rules, and loops from lambdas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/families.h>
#include <plait/primitives/kernels.h>
