// plait::ops: reductions of segments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/ops.h>
