// check: a condition on values that a program tests while it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive check_p;

// ValueError with this message, when the program runs, unless pred, a bool array, is true
// everywhere. Each "{}" in the message stands for one of the values; the remaining values follow
// the message. Values of the shape of pred are shown at the first element that fails. Under vmap
// the error names the example; under mask, padding is not checked.
void check(Operand pred, const std::string& message, std::span<const Array> values = {});
void check(Operand pred, const std::string& message, std::initializer_list<Array> values);

}  // namespace plait
