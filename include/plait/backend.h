// For authors of backends: what compiles and runs groups of equations, and the laws it must obey.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>
#include <plait/inspect/conformance.h>
