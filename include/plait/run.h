// Compiled programs, and named sizes at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/backends/lane_work.h>
#include <plait/compile/compile.h>
#include <plait/compile/sized.h>
#include <plait/trace/wait.h>
