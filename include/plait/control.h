// Structured control flow: cond, scan, while_loop and others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/control/control.h>
#include <plait/control/where.h>
