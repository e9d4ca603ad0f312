// Whether memory runs short: the allocator asks before it keeps a large block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait {

// Whether less than a sixteenth of the memory of the machine, or of the control group, is left. The
// system is asked at most four times a second; the last answer holds in between.
bool memory_is_short() noexcept;

}  // namespace plait
