// Conformance: the backends that there are obey the laws, and a backend with one flaw does not.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/inspect/conformance.h>
#include <plait/plait.h>

#include <cmath>
#include <cstring>

#include "standin/standin.h"

using namespace plait;

namespace {

enum class Flaw {
  none,
  ignores_strides,
  drops_nan,
  changes_inputs,
  writes_beyond_scratch,
  writes_beyond_outputs,
  lies_about_overwriting,
  remembers,
  takes_what_it_cannot
};

// float32 sums of arrays of one shape.
struct Sums final : Backend {
  explicit Sums(Flaw flaw) : flaw(flaw) {}
  struct Loop final : Kernel {
    explicit Loop(Flaw flaw) : flaw(flaw) {}
    std::int64_t scratch_bytes() const override { return 64; }
    bool may_overwrite(std::size_t, std::size_t) const override {
      return flaw == Flaw::lies_about_overwriting;
    }
    void enqueue(std::span<const View> in, std::span<const View> out, void* scratch,
                 const Launch&) const override {
      const std::int64_t n = out[0].size();
      const Buffer x = Buffer::copy_of(in[0]), y = Buffer::copy_of(in[1]);
      const auto *a = static_cast<const float*>(x.data()), *b = static_cast<const float*>(y.data());
      auto* result = out[0].as<float>();
      if (flaw == Flaw::ignores_strides) a = in[0].as<float>(), b = in[1].as<float>();
      if (flaw == Flaw::lies_about_overwriting) std::memset(result, 0, std::size_t(n) * 4);
      if (flaw == Flaw::lies_about_overwriting && in[0].is_dense() && in[1].is_dense())
        a = in[0].as<float>(), b = in[1].as<float>();
      for (std::int64_t i = 0; i < n; ++i) {
        result[i] = a[x.shape().empty() ? 0 : i] + b[y.shape().empty() ? 0 : i];
        if (flaw == Flaw::drops_nan && std::isnan(result[i])) result[i] = 0;
      }
      if (flaw == Flaw::changes_inputs && n > 0) in[0].as<float>()[0] += 1;
      if (flaw == Flaw::writes_beyond_scratch) static_cast<char*>(scratch)[64] = 1;
      if (flaw == Flaw::writes_beyond_outputs) result[n] = 1;
      if (flaw == Flaw::remembers && n > 0) result[0] += float(++calls) / 1e6f;
    }
    const Flaw flaw;
    mutable std::atomic<int> calls{0};
  };
  std::string_view name() const override { return "sums"; }
  Support supports(const Equation& e, std::span<const Aval> in, std::span<const Aval>,
                   Device) const override {
    if (!(*e.primitive == add_p)) return Support::no();
    const bool takes_wide = flaw == Flaw::takes_what_it_cannot && in[0].dtype == DType::float64;
    const bool good = in[0].dtype == DType::float32 || takes_wide;
    return good ? Support::yes() : Support::no("only float32");
  }
  std::unique_ptr<Kernel> compile(const Jaxpr&, const Target&) const override {
    return std::make_unique<Loop>(flaw);
  }
  const Flaw flaw;
};

const ConformanceRow& row_of(const ConformanceReport& report, const char* primitive, DType dtype) {
  for (const ConformanceRow& row : report.rows)
    if (row.primitive == primitive && row.dtype == dtype) return row;
  FAIL("no row for " << primitive);
  return report.rows.front();
}

std::string detail_of(Flaw flaw) {
  const ConformanceReport report = conformance(Sums(flaw), {.primitives = {"add"}});
  return row_of(report, "add", DType::float32).detail;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a backend that obeys the laws passes, and what it leaves is refused with its reason") {
  const ConformanceReport report = conformance(Sums(Flaw::none), {.primitives = {"add", "mul"}});
  CAPTURE(report.to_string());
  CHECK(report.passed());
  CHECK(row_of(report, "add", DType::float32).state == ConformanceRow::State::passed);
  CHECK(row_of(report, "add", DType::float32).samples > 0);
  CHECK(row_of(report, "add", DType::float64).detail == "reference: only float32");
  CHECK(row_of(report, "mul", DType::float32).state == ConformanceRow::State::refused);
  CHECK(contains(report.to_string(), "sums: 1 passed, "));
}

TEST_CASE("every flaw of a kernel is found, and named") {
  CHECK(contains(detail_of(Flaw::ignores_strides), "inputs with gaps"));
  CHECK(contains(detail_of(Flaw::drops_nan), "NaN and infinities: the reference"));
  CHECK(contains(detail_of(Flaw::changes_inputs), "changes its inputs"));
  CHECK(contains(detail_of(Flaw::writes_beyond_scratch), "writes outside its scratch memory"));
  CHECK(contains(detail_of(Flaw::writes_beyond_outputs), "writes outside its outputs"));
  CHECK(contains(detail_of(Flaw::lies_about_overwriting), "written over input 0"));
  CHECK(contains(detail_of(Flaw::remembers), "a second call"));
  const ConformanceReport report =
      conformance(Sums(Flaw::takes_what_it_cannot), {.primitives = {"add"}});
  CHECK(row_of(report, "add", DType::float64).state == ConformanceRow::State::failed);
  CHECK_FALSE(report.passed());
}

TEST_CASE("an unknown primitive is an error") {
  CHECK_THROWS_AS(conformance(Sums(Flaw::none), {.primitives = {"no_such"}}), ValueError);
}

TEST_CASE("the backends that there are obey the laws") {
  for (const Backend* backend : backends_of()) {
    const ConformanceReport kernels = conformance(*backend, {.programs = false});
    CAPTURE(kernels.to_string());
    CHECK(kernels.passed());
    // Programs of a primitive of each kind here; of all of them by `plait conformance`.
    const ConformanceReport report = conformance(
        *backend, {.primitives = {"add", "tanh", "max", "select", "reduce", "dot_general", "pad",
                                  "conv", "softmax", "layer_norm"}});
    CAPTURE(report.to_string());
    CHECK(report.passed());
    const bool computes = backend->name() == "llvm" || backend->name() == "onednn";
    if (computes) CHECK(report.count(ConformanceRow::State::passed) > 0);
  }
}

TEST_CASE("a device passes: what its memory and its streams need is done for its kernels") {
  const ConformanceReport report =
      conformance(*find_backend("standin"), {.device = standin::lazy()});
  INFO(report.to_string());
  CHECK(report.passed());
  CHECK(report.count(ConformanceRow::State::passed) > 500);
}
