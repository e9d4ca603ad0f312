// The memory of an object made by plait compile. See memory.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait::deployed {

// Memory freed between these calls is kept for later requests; the last end releases it. They nest.
void begin_keeping_memory();
void end_keeping_memory();

}  // namespace plait::deployed
