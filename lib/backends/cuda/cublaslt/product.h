// A product of matrices as cuBLASLt knows it: its descriptors, and the algorithm that is chosen for
// it.
//
// cuBLASLt's matrices are column-major, and plait's results are row-major: it computes the
// transposed result, D^T = rhs^T lhs^T. So its first operand, a, is rhs, and rows of its result are
// plait's columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>
#include <plait/base/dtype.h>

#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/cublaslt/api.h"
#include "backends/cuda/cublaslt/layout.h"

namespace plait::cuda {

// Whether factors of float32 may be rounded to 10 bits: PLAIT_TF32=1.
bool allows_tf32();

struct ProductTypes {
  int operands = 0, result = 0, scale = 0, compute = 0;  // cudaDataType_t, cublasComputeType_t
  auto operator<=>(const ProductTypes&) const = default;
};
// Absent where cuBLASLt has none that adds up as plait does: 16-bit floats in float32.
std::optional<ProductTypes> product_types(DType operands, DType result);

// Of addresses: what algorithms make use of. Others are chosen for memory that is aligned less.
inline constexpr std::int64_t matrix_alignment = 16;
inline constexpr std::int64_t most_workspace = std::int64_t{32} << 20;

// All that the choice of an algorithm depends on.
struct Problem {
  ProductTypes types;
  std::int64_t batch = 1, rows = 1, columns = 1, terms = 1;  // of plait's result
  MatrixLayout lhs, rhs;
  std::optional<MatrixLayout> added;  // rows of what is added to the product
  unsigned epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t alignment = matrix_alignment, workspace = most_workspace;
  bool has_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  auto operator<=>(const Problem&) const = default;
};

struct Algorithm {
  cublasLtMatmulAlgo_t algorithm = {};
  std::size_t workspace_bytes = 0;
};
// The library's choice for a device, asked for once. Absent where it has none.
std::optional<Algorithm> algorithm_for(Device device, const Problem& problem);
// The fastest of those that it proposes, measured once (measure.h): when a program is compiled.
std::optional<Algorithm> fastest_algorithm_for(Device device, const Problem& problem);

// Memory of a call.
struct ProductMemory {
  const void *lhs = nullptr, *rhs = nullptr, *bias = nullptr, *added = nullptr;
  void *result = nullptr, *workspace = nullptr;
};

struct ProductDescriptors;

// Run from many threads at once.
class Product {
 public:
  // With an algorithm of one of these. The product is multiplied by scale before anything is
  // added.
  Product(Device device, const Problem& problem, const Algorithm& algorithm, double scale);
  ~Product();
  Product(const Product&) = delete;
  std::size_t workspace_bytes() const { return algorithm_.workspace_bytes; }
  // The device's context is current.
  void enqueue(const ProductMemory& memory, CUstream stream) const;

 private:
  const cublasLtHandle_t handle_;
  const Algorithm algorithm_;
  const bool has_bias_;
  // Numbers of the type of scales, which has 16 bytes at most.
  struct Number {
    alignas(16) unsigned char bytes[16] = {};
  };
  static Number number_of(int type, double value);
  const Number scale_, added_scale_;
  const std::unique_ptr<const ProductDescriptors> descriptors_;
  mutable std::mutex mutex_;  // of the descriptor in which a call's bias stands
};

}  // namespace plait::cuda
