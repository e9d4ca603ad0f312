// Which results checkpoint stores, besides those policies that transforms.h declares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/transforms.h>

namespace plait::flat {

Callable dots_with_no_batch_dims_saveable();  // results of dot_general and conv without batch axes
// Results of tag, and of all equations, but for tags of these names.
Callable save_any_names_but_these(const std::vector<std::string>& names);
Callable save_anything_except_these_names(const std::vector<std::string>& names);
Callable save_from_both_policies(const Callable& first,
                                 const Callable& second);  // what either does

}  // namespace plait::flat
