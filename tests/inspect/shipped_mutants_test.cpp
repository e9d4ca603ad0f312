// Mutants of the kernels that oneDNN and generated loops run: each is the shipped kernel with one
// fault, of the kinds that such kernels have, and conformance must find and name it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/inspect/conformance.h>
#include <plait/plait.h>
#include <plait/primitives/kernels.h>

#include <algorithm>
#include <cmath>

#include "../backends/backend_here.h"

using namespace plait;

namespace {

enum class Fault {
  none,
  tail,    // what is left over behind whole vectors is wrong
  stride,  // inputs that are not dense are read as if they were
  border,  // of a large result, an element where one thread's part ends
  nan      // NaN becomes a number
};

constexpr std::int64_t vector = 8, divided = 1 << 14;

void add_one(const View& view, std::int64_t index) {
  visit_dtype(view.dtype, [&](auto element) {
    using T = decltype(element);
    T* const data = static_cast<T*>(view.data);
    if constexpr (std::is_floating_point_v<T>)
      data[index] += T(1);
    else if constexpr (detail::is_half<T>)
      data[index] = T(float(data[index]) + 1.0f);
  });
}

void drop_nan(const View& view) {
  visit_dtype(view.dtype, [&](auto element) {
    using T = decltype(element);
    T* const data = static_cast<T*>(view.data);
    if constexpr (std::is_floating_point_v<T> || detail::is_half<T>)
      for (std::int64_t i = 0; i < view.size(); ++i)
        if (std::isnan(float(data[i]))) data[i] = T(0.0f);
  });
}

// The elements of a view, the first one last: what dense reading of other memory comes to.
Buffer turned(const View& view) {
  Buffer copy = Buffer::copy_of(view);
  const std::int64_t bytes = size_of(view.dtype);
  auto* const data = static_cast<char*>(copy.mutable_data());
  std::rotate(data, data + bytes, data + copy.bytes());
  return copy;
}

class FaultyKernel final : public Kernel {
 public:
  FaultyKernel(std::unique_ptr<Kernel> kernel, Fault fault)
      : kernel_(std::move(kernel)), fault_(fault) {}
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    std::vector<std::pair<Buffer, View>> kept;
    for (const View& view : inputs)
      if (fault_ == Fault::stride && !view.is_dense() && view.size() > 1) {
        kept.emplace_back(Buffer::copy_of(view), view);
        copy_elements(turned(view).view(), view);
      }
    kernel_->enqueue(inputs, outputs, scratch, launch);
    for (const auto& [right, view] : kept) copy_elements(right.view(), view);
    const View& result = outputs[0];
    if (fault_ == Fault::tail && result.size() > vector && result.size() % vector != 0)
      add_one(result, result.size() - 1);
    if (fault_ == Fault::border && result.size() > divided) add_one(result, result.size() / 2);
    if (fault_ == Fault::nan) drop_nan(result);
  }
  std::int64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return kernel_->may_overwrite(input, output);
  }
  bool is_whole() const override { return kernel_->is_whole(); }
  std::string note() const override { return kernel_->note(); }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const Fault fault_;
};

class Faulty final : public Backend {
 public:
  Faulty(const Backend& shipped, Fault fault) : shipped_(shipped), fault_(fault) {}
  std::string_view name() const override { return shipped_.name(); }
  bool runs_on(Device device) const override { return shipped_.runs_on(device); }
  bool runs_eagerly() const override { return shipped_.runs_eagerly(); }
  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device device) const override {
    return shipped_.supports(equation, inputs, outputs, device);
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    return std::make_unique<FaultyKernel>(shipped_.compile(group, target), fault_);
  }

 private:
  const Backend& shipped_;
  const Fault fault_;
};

// What conformance says of the shipped kernels with this fault, of one primitive in float32.
std::string found(const char* backend, Fault fault, const char* primitive) {
  const ConformanceReport report = conformance(Faulty(*find_backend(backend), fault),
                                               {.primitives = {primitive}, .programs = false});
  for (const ConformanceRow& row : report.rows)
    if (row.dtype == DType::float32)
      return row.state == ConformanceRow::State::failed ? row.detail
             : row.samples == 0                         ? "not taken"
                                                        : "nothing";
  return "no row";
}

void check_mutants(const char* backend, const std::vector<const char*>& primitives,
                   const std::vector<const char*>& divided_ones) {
  auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  for (const char* primitive : primitives) {
    const std::string name = primitive;
    CAPTURE(name);
    CHECK(found(backend, Fault::none, primitive) == "nothing");
    const std::string tail = found(backend, Fault::tail, primitive);
    CAPTURE(tail);
    CHECK(holds(tail, "the reference"));
    const std::string stride = found(backend, Fault::stride, primitive);
    CAPTURE(stride);
    CHECK(holds(stride, "inputs with gaps"));
    const std::string nan = found(backend, Fault::nan, primitive);
    CAPTURE(nan);
    CHECK(holds(nan, "NaN and infinities"));
  }
  for (const char* primitive : divided_ones) {
    const std::string name = primitive, border = found(backend, Fault::border, primitive);
    CAPTURE(name);
    CAPTURE(border);
    CHECK(holds(border, " is expected"));
  }
}

}  // namespace

TEST_CASE("mutants of oneDNN's kernels are found" * needs_backend("onednn")) {
  check_mutants("onednn", {"dot_general", "conv", "layer_norm", "attention", "avg_pool"},
                {"dot_general"});
}

TEST_CASE("mutants of generated loops are found" * needs_backend("llvm")) {
  // A loop over elements, one over rows with their reductions, one over places.
  check_mutants("llvm", {"add", "exp", "reduce", "transpose"}, {"add", "exp", "reduce", "pad"});
}
