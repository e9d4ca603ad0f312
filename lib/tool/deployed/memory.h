// The memory of an object that plait compile made. See memory.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait::deployed {

// What is freed between these is kept for later requests; then it is given back. They nest.
void begin_keeping_memory();
void end_keeping_memory();

}  // namespace plait::deployed
