// See product.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/product.h"

#include <plait/base/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "backends/cuda/driver.h"
#include "backends/cuda/measure.h"

namespace plait::cuda {
namespace {

constexpr std::size_t most_known = 8192;  // algorithms

// One of each device, for all threads: the library is thread-safe. Never destroyed, since kernels
// outlive main. The device's context is current.
cublasLtHandle_t handle_of(Device device) {
  static std::array<std::atomic<cublasLtHandle_t>, 256> handles{};
  static std::mutex& mutex = *new std::mutex;
  std::atomic<cublasLtHandle_t>& place = handles[device.index];
  if (cublasLtHandle_t known = place.load(std::memory_order_acquire)) return known;
  const std::lock_guard lock(mutex);
  if (cublasLtHandle_t known = place.load(std::memory_order_acquire)) return known;
  cublasLtHandle_t made = nullptr;
  check_cublas(cublaslt_api()->cublasLtCreate(&made), "start on a device");
  place.store(made, std::memory_order_release);
  return made;
}

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    (cublaslt_api()->*destroy)(object);
  }
};
template <class T, auto destroy>
using Owned = std::unique_ptr<T, Destroy<destroy>>;
using Description = Owned<cublasLtMatmulDescOpaque_t, &CublasLtApi::cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayoutOpaque_t, &CublasLtApi::cublasLtMatrixLayoutDestroy>;
using Wishes =
    Owned<cublasLtMatmulPreferenceOpaque_t, &CublasLtApi::cublasLtMatmulPreferenceDestroy>;

template <class T>
void set(cublasLtMatmulDesc_t description, int attribute, const T& value) {
  check_cublas(
      cublaslt_api()->cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
      "describe a product");
}
template <class T>
void set(cublasLtMatmulPreference_t wishes, int attribute, const T& value) {
  check_cublas(
      cublaslt_api()->cublasLtMatmulPreferenceSetAttribute(wishes, attribute, &value, sizeof value),
      "describe a product");
}

// Of a column-major matrix.
Layout make_layout(int type, std::int64_t rows, std::int64_t columns, std::int64_t leading,
                   std::int64_t batch, std::int64_t batch_stride) {
  const CublasLtApi& api = *cublaslt_api();
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(api.cublasLtMatrixLayoutCreate(&made, type, std::uint64_t(rows),
                                              std::uint64_t(columns), leading),
               "describe a matrix");
  Layout layout(made);
  if (batch == 1) return layout;
  const auto count = std::int32_t(batch);
  check_cublas(api.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &count, sizeof count),
               "describe a matrix");
  check_cublas(
      api.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &batch_stride, sizeof batch_stride),
      "describe a matrix");
  return layout;
}

// An operand [free, contract] of plait's.
Layout make_layout(const Problem& problem, std::int64_t free, const MatrixLayout& matrix) {
  const std::int64_t inner = matrix.contract_is_inner ? problem.terms : free,
                     outer = matrix.contract_is_inner ? free : problem.terms;
  return make_layout(problem.types.operands, inner, outer, matrix.leading, problem.batch,
                     matrix.batch_stride);
}

Description make_description(const Problem& problem) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(
      cublaslt_api()->cublasLtMatmulDescCreate(&made, problem.types.compute, problem.types.scale),
      "describe a product");
  Description description(made);
  set(made, CUBLASLT_MATMUL_DESC_TRANSA,
      std::int32_t(problem.rhs.contract_is_inner ? CUBLAS_OP_T : CUBLAS_OP_N));
  set(made, CUBLASLT_MATMUL_DESC_TRANSB,
      std::int32_t(problem.lhs.contract_is_inner ? CUBLAS_OP_N : CUBLAS_OP_T));
  set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t(problem.epilogue));
  // An address that is aligned as they will be: nothing follows it.
  if (problem.has_bias())
    set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
        reinterpret_cast<const void*>(std::uintptr_t(problem.alignment)));
  return description;
}

Wishes make_wishes(const Problem& problem) {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublaslt_api()->cublasLtMatmulPreferenceCreate(&made), "describe a product");
  Wishes wishes(made);
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(problem.workspace));
  for (const int alignment :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(made, alignment, std::uint32_t(problem.alignment));
  // What splits a sum keeps its parts in the type of sums, not in that of the result.
  if (problem.types.result == CUDA_R_16F || problem.types.result == CUDA_R_16BF)
    set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  return wishes;
}

}  // namespace

bool allows_tf32() {
  static const bool is_allowed = [] {
    const char* asked = std::getenv("PLAIT_TF32");
    return asked && std::string_view(asked) == "1";
  }();
  return is_allowed;
}

std::optional<ProductTypes> product_types(DType operands, DType result) {
  const int of_float = allows_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const struct {
    DType operands, result;
    ProductTypes types;
  } known[] = {
      {DType::float32, DType::float32, {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, of_float}},
      {DType::float64, DType::float64, {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F}},
      {DType::float16, DType::float16, {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F}},
      {DType::float16, DType::float32, {CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F}},
      {DType::bfloat16,
       DType::bfloat16,
       {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F}},
      {DType::bfloat16, DType::float32, {CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F}},
      {DType::complex64, DType::complex64, {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, of_float}},
      {DType::complex128,
       DType::complex128,
       {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F}},
      {DType::int8, DType::int32, {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I}},
  };
  for (const auto& each : known)
    if (each.operands == operands && each.result == result) return each.types;
  return std::nullopt;
}

struct ProductDescriptors {
  explicit ProductDescriptors(const Problem& problem)
      : description(make_description(problem)),
        a(make_layout(problem, problem.columns, problem.rhs)),
        b(make_layout(problem, problem.rows, problem.lhs)),
        d(make_layout(problem.types.result, problem.columns, problem.rows, problem.columns,
                      problem.batch, problem.rows * problem.columns)) {
    if (problem.added)
      c = make_layout(problem.types.result, problem.columns, problem.rows, problem.added->leading,
                      problem.batch, problem.added->batch_stride);
  }
  cublasLtMatrixLayout_t added() const { return c ? c.get() : d.get(); }
  Description description;
  Layout a, b, c, d;

  // What the library's heuristic proposes, most promising first.
  std::vector<Algorithm> proposals(cublasLtHandle_t handle, const Problem& problem,
                                   int most) const {
    const Wishes wishes = make_wishes(problem);
    std::vector<cublasLtMatmulHeuristicResult_t> found(std::size_t(most),
                                                       cublasLtMatmulHeuristicResult_t{});
    int count = 0;
    const cublasStatus_t status = cublaslt_api()->cublasLtMatmulAlgoGetHeuristic(
        handle, description.get(), a.get(), b.get(), added(), d.get(), wishes.get(), most,
        found.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    check_cublas(status, "choose an algorithm");
    std::vector<Algorithm> algorithms;
    for (int i = 0; i < count; ++i)
      if (const auto& each = found[std::size_t(i)]; each.state == CUBLAS_STATUS_SUCCESS)
        algorithms.push_back({each.algo, each.workspaceSize});
    return algorithms;
  }
};

namespace {

// Of algorithms by device and problem, each found once.
class KnownAlgorithms {
 public:
  using Found = std::optional<Algorithm>;
  Found find_or(Device device, const Problem& problem, const std::function<Found()>& find) {
    const Key key{device.index, problem};
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = known_.find(key); at != known_.end()) return at->second;
    }
    const Found found = find();
    const std::lock_guard lock(mutex_);
    if (known_.size() >= most_known) known_.clear();
    return known_.emplace(key, found).first->second;
  }

 private:
  using Key = std::pair<std::uint8_t, Problem>;
  std::mutex mutex_;
  std::map<Key, Found> known_;
};

// "cuBLASLt 130102, 14 14 0 68, ...": all that the choice depends on, beside the device.
std::string text_of(const Problem& problem) {
  std::string text = "cuBLASLt " + std::to_string(cublaslt_api()->cublasLtGetVersion()) + ",";
  const auto add = [&](auto... numbers) { ((text += " " + std::to_string(numbers)), ...); };
  const auto add_layout = [&](const MatrixLayout& layout) {
    add(int(layout.contract_is_inner), layout.leading, layout.batch_stride);
  };
  const ProductTypes& types = problem.types;
  add(types.operands, types.result, types.scale, types.compute);
  add(problem.batch, problem.rows, problem.columns, problem.terms);
  add_layout(problem.lhs), add_layout(problem.rhs);
  if (problem.added) text += " adds", add_layout(*problem.added);
  add(problem.epilogue, problem.alignment, problem.workspace);
  return text;
}

std::string identity_of(const Algorithm& algorithm) {
  std::string bytes(reinterpret_cast<const char*>(&algorithm.algorithm),
                    sizeof algorithm.algorithm);
  return bytes + std::to_string(algorithm.workspace_bytes);
}

// The bytes of an operand's memory.
std::size_t bytes_of(int type, std::int64_t inner, std::int64_t outer, std::int64_t batch,
                     const MatrixLayout& layout) {
  const std::int64_t elements =
      (batch - 1) * layout.batch_stride + (outer - 1) * layout.leading + inner;
  return std::size_t(elements) * (type == CUDA_R_8I                           ? 1
                                  : type == CUDA_R_16F || type == CUDA_R_16BF ? 2
                                  : type == CUDA_R_32F || type == CUDA_R_32I  ? 4
                                  : type == CUDA_C_64F                        ? 16
                                                                              : 8);
}
std::size_t bytes_of(const Problem& problem, std::int64_t free, const MatrixLayout& layout) {
  const bool is_inner = layout.contract_is_inner;
  return bytes_of(problem.types.operands, is_inner ? problem.terms : free,
                  is_inner ? free : problem.terms, problem.batch, layout);
}

// Of algorithms that are proposed, on memory of their own.
Algorithm fastest_of(Device device, const Problem& problem, std::span<const Algorithm> proposed) {
  std::vector<std::unique_ptr<const Product>> products;
  std::vector<Candidate> candidates;
  std::size_t workspace = 0;
  for (const Algorithm& algorithm : proposed) {
    products.push_back(std::make_unique<const Product>(device, problem, algorithm, 1));
    workspace = std::max(workspace, algorithm.workspace_bytes);
    candidates.push_back(
        {identity_of(algorithm),
         [&product = *products.back(), &problem](CUstream stream, std::span<void* const> memory) {
           product.enqueue({memory[0], memory[1], problem.has_bias() ? memory[2] : nullptr,
                            problem.added ? memory[3] : nullptr, memory[4], memory[5]},
                           stream);
         }});
  }
  const MatrixLayout dense{true, problem.columns, problem.rows * problem.columns};
  const auto result = [&](std::int64_t rows, const MatrixLayout& layout) {
    return bytes_of(problem.types.result, problem.columns, rows, problem.batch, layout);
  };
  const std::size_t bytes[] = {bytes_of(problem, problem.rows, problem.lhs),
                               bytes_of(problem, problem.columns, problem.rhs),
                               result(1, {true, 0, 0}),
                               problem.added ? result(problem.rows, *problem.added) : 0,
                               result(problem.rows, dense),
                               workspace};
  return proposed[fastest(device, text_of(problem), candidates, bytes)];
}

std::vector<Algorithm> proposals(Device device, const Problem& problem, int most) {
  const CurrentContext current(device);
  return ProductDescriptors(problem).proposals(handle_of(device), problem, most);
}

}  // namespace

std::optional<Algorithm> algorithm_for(Device device, const Problem& problem) {
  static auto& known = *new KnownAlgorithms;
  return known.find_or(device, problem, [&]() -> std::optional<Algorithm> {
    const std::vector<Algorithm> proposed = proposals(device, problem, 1);
    return proposed.empty() ? std::nullopt : std::optional(proposed[0]);
  });
}

std::optional<Algorithm> fastest_algorithm_for(Device device, const Problem& problem) {
  if (!measures()) return algorithm_for(device, problem);
  static auto& known = *new KnownAlgorithms;
  return known.find_or(device, problem, [&]() -> std::optional<Algorithm> {
    const std::vector<Algorithm> proposed = proposals(device, problem, most_candidates);
    return proposed.empty() ? std::nullopt : std::optional(fastest_of(device, problem, proposed));
  });
}

Product::Number Product::number_of(int type, double value) {
  Number number;
  const auto put = [&](auto converted) { std::memcpy(number.bytes, &converted, sizeof converted); };
  if (type == CUDA_R_64F || type == CUDA_C_64F)
    put(value);
  else if (type == CUDA_R_32I)
    put(std::int32_t(value));
  else
    put(float(value));
  return number;
}

Product::Product(Device device, const Problem& problem, const Algorithm& algorithm, double scale)
    : handle_([&] {
        const CurrentContext current(device);
        return handle_of(device);
      }()),
      algorithm_(algorithm),
      has_bias_(problem.has_bias()),
      scale_(number_of(problem.types.scale, scale)),
      added_scale_(number_of(problem.types.scale, problem.added ? 1 : 0)),
      descriptors_(std::make_unique<const ProductDescriptors>(problem)) {}

Product::~Product() = default;

void Product::enqueue(const ProductMemory& memory, CUstream stream) const {
  const ProductDescriptors& all = *descriptors_;
  std::unique_lock<std::mutex> lock;
  if (has_bias_) {
    lock = std::unique_lock(mutex_);
    set(all.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory.bias);
  }
  const void* const added = memory.added ? memory.added : memory.result;
  check_cublas(cublaslt_api()->cublasLtMatmul(handle_, all.description.get(), scale_.bytes,
                                              memory.rhs, all.a.get(), memory.lhs, all.b.get(),
                                              added_scale_.bytes, added, all.added(), memory.result,
                                              all.d.get(), &algorithm_.algorithm, memory.workspace,
                                              algorithm_.workspace_bytes, stream),
               "start a product");
}

}  // namespace plait::cuda
