// Saved programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/program/program.h>
