// The laws of a kernel besides its results. See conformance.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>
#include <plait/inspect/samples.h>

namespace plait::laws {

// The violation by a backend's kernel of a group on a device, for these inputs, which lie on the
// host; expected are its results.
std::optional<std::string> kernel_violation(const Backend& backend, Device device,
                                            const Jaxpr& group, const Arrays& inputs,
                                            const Arrays& expected);

}  // namespace plait::laws
