// plait::nn: functions of neural networks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/nn.h>
