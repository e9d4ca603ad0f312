// Whether memory runs short: what the allocator asks before it keeps a large block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait {

// Whether less than a sixteenth of the memory of the machine, or of the control group, is left. The
// system is asked at most four times a second; in between the last answer stands.
bool memory_is_short() noexcept;

}  // namespace plait
