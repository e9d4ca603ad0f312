// Traces that are alive but not current, while a custom rule runs for a trace in the enclosing
// trace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// While it lives, any use of a tracer of trace is reported as captured by function.
class SuspendedTrace {
 public:
  // function must outlive it.
  SuspendedTrace(const Trace& trace, std::string_view function);
  ~SuspendedTrace();
  SuspendedTrace(const SuspendedTrace&) = delete;

 private:
  friend void check_usable(const Array& array);
  const Trace& trace_;
  const std::string_view function_;
  SuspendedTrace* const outer_;
};

[[noreturn]] void throw_captured(const Array& array, std::string_view function);

}  // namespace plait
