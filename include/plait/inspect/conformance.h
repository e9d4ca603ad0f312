// Conformance of a backend: the laws that kernels must obey, over every primitive and each of the
// 15 dtypes that it says it supports, in small and in large cases.
//
//   plait::ConformanceReport report = plait::conformance("accelerator");
//   std::puts(report.to_string().c_str());
//   return report.passed() ? 0 : 1;
//
// The kernel of an equation must satisfy the following. Results equal the reference's within the
// table of tolerances (tolerance.h), NaN and infinities included. Inputs may have any strides and
// are not changed. Nothing is written outside outputs and scratch. An input that may be overwritten
// may share memory with the result. A second call, and calls from two threads, give the same bits.
// On a device other than the CPU the two threads have a stream each. Then programs are tried: a
// primitive, its derivatives and its vmap, partitioned between the backend and the reference alone,
// give the reference's results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait {

struct ConformanceRow {
  enum class State { passed, refused, failed };
  std::string primitive;  // or the symbol of a composite
  DType dtype = DType::float32;
  State state = State::passed;
  int samples = 0;     // that the backend took
  std::string detail;  // refused: what runs it instead, and why; failed: the law and the sample
};

struct ConformanceReport {
  std::string backend;
  std::vector<ConformanceRow> rows;
  int count(ConformanceRow::State state) const;
  bool passed() const { return count(ConformanceRow::State::failed) == 0; }
  std::string to_string() const;  // a line for each primitive and state, then counts
};

struct ConformanceOptions {
  std::vector<std::string> primitives = {};  // only those; empty: every registered one
  bool runs = true;                          // otherwise it is only asked what it takes
  bool programs = true;                      // derivatives and vmap too
  Device device = {};                        // that the backend runs on
  std::vector<DType> dtypes = {};            // rows of only those; empty: all
};

// ValueError for a primitive that is not registered; for a name, also the errors of backend_named.
ConformanceReport conformance(const Backend& backend, const ConformanceOptions& options = {});
ConformanceReport conformance(const std::string& backend, const ConformanceOptions& options = {});

// The backend of this name, after loading shared modules that may register it. ValueError for a
// module that cannot be loaded or a name that is not registered; BackendError for a backend that
// cannot be used on this machine.
const Backend& backend_named(const std::string& name, std::span<const std::string> modules = {});

}  // namespace plait
