// plait::sparse: arrays by coordinates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/sparse.h>
