// See product.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/product.h"

#include <plait/base/error.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "backends/cuda/driver.h"

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

  // The first choice of the library's heuristic. A choice by measurement takes several results of
  // one such call, and runs each of them here.
  static std::optional<Algorithm> choose(cublasLtHandle_t handle, const Problem& problem) {
    const ProductDescriptors all(problem);
    const Wishes wishes = make_wishes(problem);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status = cublaslt_api()->cublasLtMatmulAlgoGetHeuristic(
        handle, all.description.get(), all.a.get(), all.b.get(), all.added(), all.d.get(),
        wishes.get(), 1, &found, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
    check_cublas(status, "choose an algorithm");
    if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
    return Algorithm{found.algo, found.workspaceSize};
  }
};

std::optional<Algorithm> algorithm_for(Device device, const Problem& problem) {
  using Key = std::pair<std::uint8_t, Problem>;
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<Key, std::optional<Algorithm>>;
  const Key key{device.index, problem};
  {
    const std::lock_guard lock(mutex);
    if (const auto at = known.find(key); at != known.end()) return at->second;
  }
  const CurrentContext current(device);
  const std::optional<Algorithm> chosen = ProductDescriptors::choose(handle_of(device), problem);
  const std::lock_guard lock(mutex);
  if (known.size() >= most_known) known.clear();
  return known.emplace(key, chosen).first->second;
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
