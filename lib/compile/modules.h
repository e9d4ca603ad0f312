// Whether backends come from shared modules beside the library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait {

// From now on only backends that are linked in are used; to be called before the first program is
// compiled. What plait compile makes is complete, and looks for nothing in the folder it is in.
void load_no_modules();

}  // namespace plait
