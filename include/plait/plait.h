// All of plait: arrays, NumPy's functions, transforms over C++ functions, jaxprs and their text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/api.h>
#include <plait/autocast.h>
#include <plait/base/memory.h>
#include <plait/base/progress.h>
#include <plait/check.h>
#include <plait/composites.h>
#include <plait/control.h>
#include <plait/cost.h>
#include <plait/custom.h>
#include <plait/draw.h>
#include <plait/first_nan.h>
#include <plait/host_call.h>
#include <plait/implicit.h>
#include <plait/inspect.h>
#include <plait/lax.h>
#include <plait/nn.h>
#include <plait/numpy.h>
#include <plait/numpy_linalg.h>
#include <plait/ops_linalg.h>
#include <plait/optim.h>
#include <plait/profile.h>
#include <plait/program.h>
#include <plait/random.h>
#include <plait/rewrite.h>
#include <plait/run.h>
#include <plait/scipy.h>
#include <plait/scipy_linalg.h>
#include <plait/specs.h>
#include <plait/staged.h>
#include <plait/tape.h>
#include <plait/transforms.h>
#include <plait/where.h>
