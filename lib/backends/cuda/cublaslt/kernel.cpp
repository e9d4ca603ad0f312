// See kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/kernel.h"

#include <plait/base/error.h>
#include <plait/base/transfer.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "backends/cuda/cublaslt/epilogue.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/frame.h"
#include "backends/cuda/rest.h"
#include "backends/cuda/work.h"
#include "compile/loop_programs.h"

namespace plait::cuda {
namespace {

// Whether the library reads matrices of such a layout. Of 8-bit integers it reads only those whose
// contracted elements are neighbours, in words.
bool is_read(const ProductTypes& types, const MatrixLayout& layout) {
  if (types.operands != CUDA_R_8I) return true;
  return layout.contract_is_inner && layout.leading % 4 == 0 && layout.batch_stride % 4 == 0;
}

MatrixLayout layout_or_copy(const ProductTypes& types, const Sizes64& shape, const Sizes64& strides,
                            const OperandAxes& axes) {
  const std::optional<MatrixLayout> found = layout_of(shape, strides, axes);
  return found && is_read(types, *found) ? *found : copied_layout(sizes_of(shape, axes));
}

unsigned epilogue_number(bool has_bias, Activation activation) {
  const unsigned number = (has_bias ? CUBLASLT_EPILOGUE_BIAS : 0) |
                          (activation == Activation::relu   ? CUBLASLT_EPILOGUE_RELU
                           : activation == Activation::gelu ? CUBLASLT_EPILOGUE_GELU
                                                            : 0);
  return number == 0 ? CUBLASLT_EPILOGUE_DEFAULT : number;
}

class ProductKernel final : public Kernel {
 public:
  ProductKernel(const Jaxpr& group, const Target& target)
      : group_(group), equation_(group->equations[0]) {
    strides_ = target.strides.empty()
                   ? compile_passes::dense_inputs(group)
                   : std::vector<Sizes64>(target.strides.begin(), target.strides.end());
    if (group->outputs.size() != 1)
      throw InternalError("a product with its epilogue has " +
                          std::to_string(group->outputs.size()) + " results");
    for (int side = 0; side < 2; ++side) {
      operands_[side].input = equation_.inputs[std::size_t(side)].var().id;
      operands_[side].shape = shape_of(operands_[side].input);
    }
    choose(target.device);
    frame_.add(std::int64_t(product_->workspace_bytes()));
    for (Operand* operand : {&operands_[0], &operands_[1], &added_})
      if (operand->input >= 0 && operand->is_copied)
        operand->at = frame_.add(num_elements(operand->shape) * size_of(dtype_of(operand->input)));
    if (!rest_->is_empty()) {
      between_ = frame_.add(rest_->bytes_between());
      rest_at_ = frame_.add(rest_->scratch_bytes());
    }
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    char* const frame = static_cast<char*>(scratch);
    const auto place = [&](const Operand& operand) -> void* {
      if (operand.input < 0) return nullptr;
      const View& given = inputs[std::size_t(operand.input)];
      if (!operand.is_copied) return given.data;
      const View from = operand.is_operand ? copied_view(given, operand.axes) : given;
      copy(from, {frame + operand.at, given.dtype, from.shape, dense_strides(from.shape)},
           launch.stream);
      return frame + operand.at;
    };
    ProductMemory memory;
    memory.lhs = place(operands_[0]);
    memory.rhs = place(operands_[1]);
    memory.added = place(added_);
    if (bias_ >= 0) memory.bias = inputs[std::size_t(bias_)].data;
    memory.result = rest_->is_empty() ? outputs[0].data : frame + between_;
    memory.workspace = frame;
    {
      const CurrentContext current(launch.stream.device());
      const Product& product = product_for(alignment_of(memory), launch.stream.device());
      const void* const operands[] = {memory.lhs,  memory.rhs,    memory.added,
                                      memory.bias, memory.result, memory.workspace};
      give_library(stream_of(launch.stream), operands,
                   [&](CUstream stream) { product.enqueue(memory, stream); });
    }
    if (!rest_->is_empty())
      rest_->enqueue(inputs, memory.result, outputs, frame + rest_at_, launch);
  }

  std::exception_ptr error_of(const Failure& failure) const override {
    return rest_->is_empty() ? Kernel::error_of(failure) : rest_->kernel().error_of(failure);
  }
  std::int64_t operand_alignment() const override {
    return problem_.types.operands == CUDA_R_8I ? matrix_alignment : 1;
  }
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return !rest_->is_empty() && rest_->kernel().can_fail(); }
  std::int64_t scratch_bytes() const override { return frame_.bytes(); }
  // What is added lies as the result does: the library then reads each element before it writes it.
  bool may_overwrite(std::size_t input, std::size_t) const override {
    const int number = int(input);
    return rest_->is_empty() && number == added_.input && !added_.is_copied && number != bias_ &&
           number != operands_[0].input && number != operands_[1].input &&
           strides_[input] == dense_strides(added_.shape);
  }
  std::string note() const override {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (problem_.types.compute == CUBLAS_COMPUTE_32F_FAST_TF32) add("tf32");
    if (bias_ >= 0) add("bias");
    if (activation_ == Activation::relu) add("relu");
    if (activation_ == Activation::gelu) add("gelu");
    if (added_.input >= 0) add("adds");
    for (int side = 0; side < 2; ++side)
      if (operands_[side].is_copied) add(side == 0 ? "copies lhs" : "copies rhs");
    if (!rest_->is_empty()) add("then " + rest_->kernel().note());
    return text;
  }

 private:
  struct Operand {
    int input = -1;  // of the group; -1: there is none
    Sizes64 shape = {};
    OperandAxes axes = {};
    bool is_operand = false, is_copied = false;
    std::int64_t at = 0;  // in the scratch memory: its copy
  };

  Sizes64 shape_of(int var) const { return group_->avals[std::size_t(var)].shape.to_sizes(); }
  DType dtype_of(int var) const { return group_->avals[std::size_t(var)].dtype; }

  // With the whole epilogue, or without, from copies too where the library wants them.
  void choose(Device device) {
    const std::vector<int> uses = count_uses(*group_);
    const Epilogue epilogue = epilogue_of(*group_, uses, 0, Rows::found_before);
    if (std::optional<Problem> fused = plain_problem(false); fused && fuse(epilogue, *fused))
      if (make(device, *fused, epilogue.scale))
        return void(rest_.emplace(group_, strides_, epilogue.result, epilogue.equations, device));
    bias_ = -1, added_ = {}, activation_ = Activation::none;
    for (const bool copies : {false, true})
      if (const std::optional<Problem> plain = plain_problem(copies))
        if (make(device, *plain, 1))
          return void(rest_.emplace(group_, strides_, equation_.outputs[0], std::span<const int>(),
                                    device));
    throw BackendError("cuBLASLt has no algorithm for " +
                           group_->aval(equation_.inputs[0]).to_string() + " times " +
                           group_->aval(equation_.inputs[1]).to_string() + " as they lie",
                       "leave the library out: PLAIT_CUBLASLT=0");
  }
  bool make(Device device, const Problem& problem, double scale) {
    const std::optional<Algorithm> algorithm = fastest_algorithm_for(device, problem);
    if (!algorithm) return false;
    problem_ = problem, scale_ = scale;
    product_ = std::make_unique<const Product>(device, problem, *algorithm, scale);
    return true;
  }

  static std::int64_t alignment_of(const ProductMemory& memory) {
    std::uintptr_t all = matrix_alignment;
    for (const void* data : {memory.lhs, memory.rhs, memory.bias, memory.added,
                             static_cast<const void*>(memory.result)})
      all |= reinterpret_cast<std::uintptr_t>(data);
    return std::int64_t(all & -all);
  }
  // For memory that is aligned less, such as a view of a row, made when it is first seen.
  const Product& product_for(std::int64_t alignment, Device device) const {
    if (alignment >= matrix_alignment) return *product_;
    Unaligned& place = unaligned_[std::countr_zero(std::uint64_t(alignment))];
    std::call_once(place.once, [&] {
      Problem problem = problem_;
      problem.alignment = alignment;
      problem.workspace = std::int64_t(product_->workspace_bytes());
      const std::optional<Algorithm> algorithm = algorithm_for(device, problem);
      if (!algorithm)
        throw BackendError("cuBLASLt has no algorithm for memory that is aligned to " +
                               std::to_string(alignment) + " bytes",
                           "leave the library out: PLAIT_CUBLASLT=0");
      place.product = std::make_unique<const Product>(device, problem, *algorithm, scale_);
    });
    return *place.product;
  }

  // Also finds which operands are copied.
  std::optional<Problem> plain_problem(bool are_copied) {
    const ProductAxes axes(equation_.params, strides_[std::size_t(operands_[0].input)],
                           int(operands_[1].shape.size()));
    const std::optional<ProductTypes> types =
        product_types(dtype_of(operands_[0].input), dtype_of(equation_.outputs[0].id));
    if (!types) return std::nullopt;
    Problem problem;
    problem.types = *types;
    for (int side = 0; side < 2; ++side) {
      Operand& operand = operands_[side];
      operand.axes = side == 0 ? axes.lhs : axes.rhs;
      operand.is_operand = true;
      const Sizes64& strides = strides_[std::size_t(operand.input)];
      const std::optional<MatrixLayout> found = layout_of(operand.shape, strides, operand.axes);
      operand.is_copied = are_copied || !found || !is_read(*types, *found);
      const MatrixSizes sizes = sizes_of(operand.shape, operand.axes);
      (side == 0 ? problem.lhs : problem.rhs) = operand.is_copied ? copied_layout(sizes) : *found;
      (side == 0 ? problem.rows : problem.columns) = sizes.free;
      problem.batch = sizes.batch, problem.terms = sizes.contract;
    }
    return problem;
  }

  // Whether all of an epilogue can be part of the problem.
  bool fuse(const Epilogue& epilogue, Problem& problem) {
    const int num_columns = num_columns_of(*group_, equation_);
    const int num_batch = int(operands_[0].axes.batch.size()),
              num_rows = int(operands_[0].axes.free.size());
    for (const Var operand : epilogue.added) {
      if (operand.id >= group_->num_binders) return false;
      const Sizes64 shape = shape_of(operand.id);
      const Sizes64& strides = strides_[std::size_t(operand.id)];
      const DType dtype = dtype_of(operand.id);
      const bool takes_row = size_of(dtype) == 2 || dtype == DType::float32;
      if (bias_ < 0 && takes_row && num_columns > 0 &&
          is_repeated_row(shape, strides, num_columns)) {
        bias_ = operand.id;
      } else if (added_.input < 0) {
        added_ = {operand.id, shape};
        const std::optional<MatrixLayout> rows = rows_of(shape, strides, num_batch, num_rows);
        added_.is_copied = !rows;
        problem.added = rows
                            ? *rows
                            : MatrixLayout{true, problem.columns,
                                           problem.batch == 1 ? 0 : problem.rows * problem.columns};
      } else {
        return false;
      }
    }
    activation_ = epilogue.activation;
    problem.epilogue = epilogue_number(bias_ >= 0, activation_);
    return true;
  }

  const Jaxpr group_;
  const Equation& equation_;
  std::vector<Sizes64> strides_;  // of the group's inputs
  Operand operands_[2], added_;
  int bias_ = -1;
  Activation activation_ = Activation::none;
  Problem problem_;
  double scale_ = 1;
  std::unique_ptr<const Product> product_;
  struct Unaligned {
    std::once_flag once;
    std::unique_ptr<const Product> product;
  };
  mutable Unaligned unaligned_[std::countr_zero(std::uint64_t(matrix_alignment))];
  std::optional<Rest> rest_;
  Frame frame_;
  std::int64_t between_ = 0, rest_at_ = 0;  // in the scratch memory
};

}  // namespace

std::optional<Problem> problem_of(const Params& params, const Aval& lhs, const Aval& rhs,
                                  DType result) {
  const std::optional<ProductTypes> types = product_types(lhs.dtype, result);
  if (!types) return std::nullopt;
  const Sizes64 shapes[2] = {lhs.shape.to_sizes(), rhs.shape.to_sizes()},
                strides[2] = {dense_strides(shapes[0]), dense_strides(shapes[1])};
  const ProductAxes axes(params, strides[0], rhs.rank());
  const MatrixSizes left = sizes_of(shapes[0], axes.lhs), right = sizes_of(shapes[1], axes.rhs);
  return Problem{*types,
                 left.batch,
                 left.free,
                 right.free,
                 left.contract,
                 layout_or_copy(*types, shapes[0], strides[0], axes.lhs),
                 layout_or_copy(*types, shapes[1], strides[1], axes.rhs),
                 {}};
}

std::unique_ptr<Kernel> make_product_kernel(const Jaxpr& group, const Target& target) {
  return std::make_unique<ProductKernel>(group, target);
}

}  // namespace plait::cuda
