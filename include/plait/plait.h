// All of plait: arrays, NumPy's functions, transforms over C++ functions, jaxprs and their text.
//
// The headers beside this one are umbrella headers for users: each includes those of a folder, and
// the folders are the layers of the library. The library itself does not use umbrella headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/control.h>
#include <plait/image.h>
#include <plait/inspect.h>
#include <plait/lax.h>
#include <plait/mesh.h>
#include <plait/nn.h>
#include <plait/numpy.h>
#include <plait/ops.h>
#include <plait/optim.h>
#include <plait/program.h>
#include <plait/random.h>
#include <plait/rewrite.h>
#include <plait/run.h>
#include <plait/scipy.h>
#include <plait/sparse.h>
#include <plait/transforms.h>

#include <plait/base/memory.h>
#include <plait/base/progress.h>
#include <plait/functions/standard.h>
#include <plait/primitives/check.h>
#include <plait/primitives/host_call.h>
#include <plait/trace/staged.h>
#include <plait/transforms/composites.h>
