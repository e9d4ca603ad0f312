// plait::optim: optimisers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/optim.h>
