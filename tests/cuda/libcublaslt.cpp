// A stand-in for cuBLASLt: it refuses what the documentation does not allow, and what was not
// described as it is then run, and computes products one by one on the streams of the driver's
// stand-in.
//
// Algorithms are bound to the problem that they were chosen for. Those of long sums want a
// workspace, and spoil it. Variable of the environment: STANDIN_RELU=drops_nan makes relu max(x,
// 0), which is 0 for NaN.
// SPDX-License-Identifier: Apache-2.0
#include "libcublaslt.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/cuda/device/plait/base/dtype.h"
#include "driver/hooks.h"

#define STANDIN_EXPORT extern "C" [[gnu::visibility("default")]]

namespace plait::cuda {
struct cublasLtContext {
  int device = 0;
};
}  // namespace plait::cuda

namespace {

using namespace plait::cuda;

constexpr std::uint64_t wanted_workspace = 1 << 20;
constexpr std::uint64_t long_sum = 64;

struct Description {
  int compute = 0, scale = 0;
  std::int32_t transposes_a = 0, transposes_b = 0;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t schemes = 7;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};

struct Problem {
  Description description;
  Layout a, b, c, d;
};

std::atomic<long> num_products{0};
std::atomic<bool> has_epilogues{true};
std::atomic<long> refused_rows{0};
std::atomic<int> last_algorithm{-1};
std::mutex mutex;
std::string last;
std::vector<int> planted{0};  // by algorithm

template <class Object, class Handle>
Object& object_of(Handle handle) {
  return *reinterpret_cast<Object*>(handle);
}
template <class Object, class Handle>
cublasStatus_t create(Handle* handle, Object object) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<Handle>(new Object(object));
  return CUBLAS_STATUS_SUCCESS;
}
template <class Object, class Handle>
cublasStatus_t destroy(Handle handle) {
  delete reinterpret_cast<Object*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t set(T& place, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof place) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&place, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t size_of(int type) {
  switch (type) {
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 0;
  }
}

// The table of cublasLtMatmul's types.
bool are_supported(const Problem& p) {
  const auto is = [&](int compute, int scale, int operands, int result) {
    return p.description.compute == compute && p.description.scale == scale &&
           p.a.type == operands && p.b.type == operands && p.c.type == result && p.d.type == result;
  };
  for (const int compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32})
    if (is(compute, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F) ||
        is(compute, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F))
      return true;
  for (const int half : {CUDA_R_16F, CUDA_R_16BF})
    for (const int result : {half, CUDA_R_32F})
      if (is(CUBLAS_COMPUTE_32F, CUDA_R_32F, half, result)) return true;
  return is(CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F) ||
         is(CUBLAS_COMPUTE_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F) ||
         is(CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I);
}

bool is_possible(const Layout& layout) {
  return layout.rows > 0 && layout.columns > 0 && layout.batch > 0 &&
         layout.leading >= std::int64_t(layout.rows) && layout.batch_stride >= 0;
}

cublasStatus_t status_of(const Problem& p) {
  const Description& how = p.description;
  for (const Layout* layout : {&p.a, &p.b, &p.c, &p.d})
    if (!is_possible(*layout) || layout->batch != p.d.batch) return CUBLAS_STATUS_INVALID_VALUE;
  const bool ta = how.transposes_a == CUBLAS_OP_T, tb = how.transposes_b == CUBLAS_OP_T;
  const std::uint64_t m = ta ? p.a.columns : p.a.rows, k = ta ? p.a.rows : p.a.columns,
                      n = tb ? p.b.rows : p.b.columns, terms = tb ? p.b.columns : p.b.rows;
  if (k != terms || p.c.rows != m || p.d.rows != m || p.c.columns != n || p.d.columns != n)
    return CUBLAS_STATUS_INVALID_VALUE;
  // Matrices that are written must lie apart.
  if (p.d.batch > 1 && p.d.batch_stride < p.d.leading * std::int64_t(n))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!are_supported(p) || long(n) == refused_rows) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.a.type == CUDA_R_8I) {
    const std::int64_t words[] = {p.a.leading,     p.b.leading,      std::int64_t(m),
                                  std::int64_t(k), p.a.batch_stride, p.b.batch_stride};
    if (!ta || tb || std::ranges::any_of(words, [](std::int64_t x) { return x % 4 != 0; }))
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (how.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  constexpr unsigned known[] = {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
                                CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU,
                                CUBLASLT_EPILOGUE_GELU_BIAS};
  if (std::ranges::find(known, how.epilogue) == std::end(known)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_real = p.d.type == CUDA_R_16F || p.d.type == CUDA_R_16BF || p.d.type == CUDA_R_32F;
  if (!is_real || !has_epilogues) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool has_bias = (how.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  return has_bias && how.bias == nullptr ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

std::uint64_t terms_of(const Problem& p) {
  return p.description.transposes_a == CUBLAS_OP_T ? p.a.rows : p.a.columns;
}

// Of all but addresses.
std::uint64_t fingerprint(const Problem& p) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&](auto value) { hash = (hash ^ std::uint64_t(value)) * 1099511628211u; };
  const Description& how = p.description;
  for (const int each : {how.compute, how.scale, how.transposes_a, how.transposes_b}) add(each);
  add(how.epilogue);
  for (const Layout* layout : {&p.a, &p.b, &p.c, &p.d}) {
    add(layout->type), add(layout->rows), add(layout->columns), add(layout->leading);
    add(layout->batch), add(layout->batch_stride);
  }
  return hash;
}

Problem problem_of(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                   cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {object_of<Description>(description), object_of<Layout>(a), object_of<Layout>(b),
          object_of<Layout>(c), object_of<Layout>(d)};
}

float activated(float x, unsigned epilogue) {
  static const bool drops_nan = [] {
    const char* relu = std::getenv("STANDIN_RELU");
    return relu != nullptr && std::string_view(relu) == "drops_nan";
  }();
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0)
    return drops_nan ? std::fmax(x, 0.0f) : x <= 0 ? 0.0f : x;
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0)
    return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  return x;
}

// A call: what there is to compute, and where.
struct Call {
  Problem problem;
  int device = 0;
  std::uint64_t a = 0, b = 0, c = 0, d = 0, workspace = 0;
  std::size_t workspace_bytes = 0;
  unsigned char alpha[16] = {}, beta[16] = {};

  std::uint64_t bytes(const Layout& layout) const {
    const std::int64_t last = layout.batch_stride * (layout.batch - 1) +
                              layout.leading * std::int64_t(layout.columns - 1) +
                              std::int64_t(layout.rows);
    return std::uint64_t(last) * size_of(layout.type);
  }
  template <class T>
  T* memory(std::uint64_t address, const Layout& layout, const char* whose) const {
    return static_cast<T*>(standin_memory(device, address, bytes(layout), whose));
  }

  // T: of operands, R: of the result, S: of sums and scales.
  template <class T, class R, class S>
  void run() const {
    const Problem& p = problem;
    const Description& how = p.description;
    S scale{}, added_scale{};
    std::memcpy(&scale, alpha, sizeof scale);
    std::memcpy(&added_scale, beta, sizeof added_scale);
    const bool adds = added_scale != S{};
    const T* const left = memory<T>(a, p.a, "a product's operand a");
    const T* const right = memory<T>(b, p.b, "a product's operand b");
    const R* const added = adds ? memory<R>(c, p.c, "what is added to a product") : nullptr;
    R* const result = memory<R>(d, p.d, "the result of a product");
    const R* bias = nullptr;
    const bool has_bias = (how.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    if (has_bias)
      bias = static_cast<const R*>(
          standin_memory(device, std::uint64_t(reinterpret_cast<std::uintptr_t>(how.bias)),
                         p.d.rows * sizeof(R), "the bias of a product"));
    if (workspace_bytes > 0) {
      void* const spoilt =
          standin_memory(device, workspace, workspace_bytes, "the workspace of a product");
      if (spoilt == nullptr) return;
      std::memset(spoilt, 0xab, workspace_bytes);
    }
    if (left == nullptr || right == nullptr || result == nullptr || (adds && added == nullptr) ||
        (has_bias && bias == nullptr))
      return;
    const bool ta = how.transposes_a == CUBLAS_OP_T, tb = how.transposes_b == CUBLAS_OP_T;
    const std::int64_t k = std::int64_t(terms_of(p));
    const std::int64_t a_row = ta ? p.a.leading : 1, a_term = ta ? 1 : p.a.leading,
                       b_column = tb ? 1 : p.b.leading, b_term = tb ? p.b.leading : 1;
    for (std::int64_t which = 0; which < p.d.batch; ++which)
      for (std::int64_t j = 0; j < std::int64_t(p.d.columns); ++j)
        for (std::int64_t i = 0; i < std::int64_t(p.d.rows); ++i) {
          const T* x = left + which * p.a.batch_stride + i * a_row;
          const T* y = right + which * p.b.batch_stride + j * b_column;
          S sum{};
          for (std::int64_t l = 0; l < k; ++l, x += a_term, y += b_term)
            sum = S(sum + S(*x) * S(*y));
          sum = scale * sum;
          if (adds) sum += added_scale * S(added[which * p.c.batch_stride + j * p.c.leading + i]);
          if constexpr (std::is_same_v<S, float>) {
            if (has_bias) sum += S(bias[i]);
            sum = activated(sum, how.epilogue);
          }
          result[which * p.d.batch_stride + j * p.d.leading + i] = R(sum);
        }
  }

  void run_by_type() const {
    switch (problem.a.type) {
      case CUDA_R_32F:
        return run<float, float, float>();
      case CUDA_R_64F:
        return run<double, double, double>();
      case CUDA_C_32F:
        return run<std::complex<float>, std::complex<float>, std::complex<float>>();
      case CUDA_C_64F:
        return run<std::complex<double>, std::complex<double>, std::complex<double>>();
      case CUDA_R_8I:
        return run<std::int8_t, std::int32_t, std::int32_t>();
      case CUDA_R_16F:
        return problem.d.type == CUDA_R_16F ? run<plait::float16, plait::float16, float>()
                                            : run<plait::float16, float, float>();
      default:
        return problem.d.type == CUDA_R_16BF ? run<plait::bfloat16, plait::bfloat16, float>()
                                             : run<plait::bfloat16, float, float>();
    }
  }
};

// "NT 64x32x16 batch 2 bias relu adds": op(a) op(b), rows x columns x terms.
std::string text_of(const Call& call) {
  const Problem& p = call.problem;
  const unsigned epilogue = p.description.epilogue;
  std::string text;
  text += p.description.transposes_a == CUBLAS_OP_T ? 'T' : 'N';
  text += p.description.transposes_b == CUBLAS_OP_T ? 'T' : 'N';
  text += " " + std::to_string(p.d.rows) + "x" + std::to_string(p.d.columns) + "x" +
          std::to_string(terms_of(p));
  if (p.d.batch > 1) text += " batch " + std::to_string(p.d.batch);
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) text += " bias";
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) text += " relu";
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) text += " gelu";
  if (std::ranges::any_of(call.beta, [](unsigned char byte) { return byte != 0; })) text += " adds";
  return text;
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

STANDIN_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const int device = standin_current_device();
  if (device < 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{device};
  return CUBLAS_STATUS_SUCCESS;
}
STANDIN_EXPORT std::size_t cublasLtGetVersion() { return 130000; }
STANDIN_EXPORT const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
}

STANDIN_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, int compute,
                                                       int scale) {
  Description made;
  made.compute = compute, made.scale = scale;
  return create(handle, made);
}
STANDIN_EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  return destroy<Description>(handle);
}
STANDIN_EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                             int attribute, const void* value,
                                                             std::size_t bytes) {
  Description& description = object_of<Description>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(description.transposes_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(description.transposes_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(description.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(description.bias, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

STANDIN_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, int type,
                                                         std::uint64_t rows, std::uint64_t columns,
                                                         std::int64_t leading) {
  if (size_of(type) == 0) return CUBLAS_STATUS_INVALID_VALUE;
  return create(handle, Layout{type, rows, columns, leading});
}
STANDIN_EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  return destroy<Layout>(handle);
}
STANDIN_EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                               int attribute, const void* value,
                                                               std::size_t bytes) {
  Layout& layout = object_of<Layout>(handle);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(layout.batch, value, bytes);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    return set(layout.batch_stride, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

STANDIN_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  return create(handle, Preference{});
}
STANDIN_EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  return destroy<Preference>(handle);
}
STANDIN_EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t handle, int attribute, const void* value, std::size_t bytes) {
  Preference& preference = object_of<Preference>(handle);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return set(preference.workspace, value, bytes);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return set(preference.schemes, value, bytes);
  const int operand = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (operand < 0 || operand > 3) return CUBLAS_STATUS_INVALID_VALUE;
  return set(preference.alignments[operand], value, bytes);
}

STANDIN_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t wishes, int most, cublasLtMatmulHeuristicResult_t* results,
    int* count) {
  if (handle == nullptr || handle->device != standin_current_device())
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (most < 1 || results == nullptr || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Problem problem = problem_of(description, a, b, c, d);
  *count = 0;
  if (const cublasStatus_t status = status_of(problem)) return status;
  const Preference& preference = object_of<Preference>(wishes);
  const bool splits = terms_of(problem) >= long_sum && (preference.schemes & 2) != 0;
  const std::lock_guard lock(mutex);
  *count = std::min(most, int(planted.size()));
  for (int which = 0; which < *count; ++which) {
    cublasLtMatmulHeuristicResult_t& result = results[which] = {};
    result.workspaceSize = splits ? std::min(wanted_workspace, preference.workspace) : 0;
    result.algo.data[0] = fingerprint(problem);
    for (int i = 0; i < 4; ++i) result.algo.data[1 + i] = preference.alignments[i];
    result.algo.data[5] = result.workspaceSize;
    result.algo.data[6] = std::uint64_t(which);
  }
  return CUBLAS_STATUS_SUCCESS;
}

STANDIN_EXPORT cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
    cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
    const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
    std::size_t workspace_bytes, CUstream stream) {
  if (handle == nullptr || handle->device != standin_current_device())
    return CUBLAS_STATUS_NOT_INITIALIZED;
  Call call{problem_of(description, a_layout, b_layout, c_layout, d_layout),
            handle->device,
            address_of(a),
            address_of(b),
            address_of(c),
            address_of(d),
            address_of(workspace),
            workspace_bytes};
  const Problem& problem = call.problem;
  if (const cublasStatus_t status = status_of(problem)) return status;
  if (algorithm == nullptr || algorithm->data[0] != fingerprint(problem) ||
      workspace_bytes < algorithm->data[5] || (workspace_bytes > 0 && call.workspace % 256 != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  const std::uint64_t addresses[] = {call.a, call.b, call.c, call.d};
  for (int i = 0; i < 4; ++i)
    if (addresses[i] == 0 || addresses[i] % algorithm->data[1 + i] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_in_place = call.c == call.d;
  if (is_in_place &&
      (problem.c.leading != problem.d.leading || problem.c.batch_stride != problem.d.batch_stride))
    return CUBLAS_STATUS_INVALID_VALUE;
  const std::size_t bytes = size_of(problem.description.scale);
  std::memcpy(call.alpha, alpha, bytes);
  std::memcpy(call.beta, beta, bytes);
  const std::size_t which = algorithm->data[6];
  std::chrono::microseconds longer{0};
  {
    const std::lock_guard lock(mutex);
    last = text_of(call);
    if (which < planted.size()) longer = std::chrono::microseconds(planted[which]);
  }
  last_algorithm = int(which);
  ++num_products;
  return standin_submit(stream,
                        [call, longer] {
                          if (longer.count() > 0) std::this_thread::sleep_for(longer);
                          call.run_by_type();
                        }) == CUDA_SUCCESS
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

STANDIN_EXPORT long standin_products() { return num_products; }
STANDIN_EXPORT const char* standin_last_product() {
  static thread_local std::string shown;
  const std::lock_guard lock(mutex);
  shown = last;
  return shown.c_str();
}
STANDIN_EXPORT void standin_set_epilogues(bool are_there) { has_epilogues = are_there; }
STANDIN_EXPORT int standin_last_algorithm() { return last_algorithm; }
STANDIN_EXPORT void standin_refuse_rows(long rows) { refused_rows = rows; }
STANDIN_EXPORT void standin_plant_algorithms(const int* microseconds, int count) {
  const std::lock_guard lock(mutex);
  planted.assign(microseconds, microseconds + count);
}
