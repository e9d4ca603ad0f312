// Programs that put values on other devices. Such a program is cut into programs of one device
// each, its parts, which run one after the other; between them, values are copied.
//
//   on cuda:0   h = tanh (x @ w)          part 0, on cuda:0
//               k = device_put[cpu:0] h   copy h to cpu:0
//   on cpu:0    s = sum k                 part 1, on cpu:0
//
// An equation runs where its operands lie. Numbers of the host move to the other operands. What is
// made of numbers alone is computed in every part that uses it.
//
// A part is as large as can be: it ends only where a value is needed that another device makes of
// its results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>

namespace plait {

// Whether a program for this device puts a value on another one, in bodies too.
bool puts_elsewhere(const Jaxpr& program, Device device);
// Whether it puts values anywhere.
bool puts_values(const Jaxpr& program);

// BackendError for operands on two devices, and for a loop or a branch whose body puts values
// elsewhere.
// outputs: what the executable says that they are.
std::shared_ptr<const Executable> compile_on_several(const Jaxpr& program,
                                                     std::vector<Aval> outputs,
                                                     const CompileOptions& options);

}  // namespace plait
