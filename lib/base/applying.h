// The transforms that errors of this thread name, where they are not those of its own scopes: of
// work that was submitted earlier, or on another thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace plait {

// Errors say "while applying" this text, or nothing where it is empty; null: the thread's own
// scopes, as at first. The text must live until it is replaced. Gives what it was before.
const std::string* apply_instead(const std::string* text);

}  // namespace plait
