// dot_general as matmul: any layout whose groups of axes (batch, free, contracted) have a common
// stride goes to oneDNN in place, so that a transposed operand costs no copy.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include <atomic>
#include <mutex>

#include "compile/loop_constants.h"
#include "primitives/contraction/dot.h"
#include "product.h"

namespace plait::onednn {
namespace {

using compile_passes::LoopConstants;

struct Range {
  std::int64_t size = 1, stride = 1;
};

// Axes merged into one, if strides allow it.
std::optional<Range> merge(const View& view, const std::vector<int>& axes) {
  Range range;
  bool is_first = true;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t n = view.shape[axes[i]], stride = view.strides[axes[i]];
    if (n == 1) continue;
    if (is_first)
      range.stride = stride;
    else if (stride != range.stride * range.size)
      return std::nullopt;
    is_first = false;
    range.size *= n;
  }
  return range;
}

// An operand as [batch, rows, columns] that oneDNN reads in place; nullopt when it must be copied.
std::optional<TensorSpec> as_matrices(const View& view, const std::vector<int>& batch,
                                      const std::vector<int>& rows,
                                      const std::vector<int>& columns) {
  std::optional<Range> b = merge(view, batch), r = merge(view, rows), c = merge(view, columns);
  if (!b || !r || !c) return std::nullopt;
  // Strides of axes of size 1 are arbitrary; these are those of dense memory.
  if (c->size == 1) c->stride = r->size == 1 || r->stride != 1 ? 1 : r->size;
  if (r->size == 1) r->stride = c->stride == 1 ? c->size : 1;
  const bool is_row_major = c->stride == 1 && r->stride >= c->size;
  const bool is_column_major = r->stride == 1 && c->stride >= r->size;
  if (!is_row_major && !is_column_major) return std::nullopt;
  if (b->size == 1) b->stride = r->size * c->size;
  if (b->stride < 1) return std::nullopt;
  return TensorSpec{view.dtype, {b->size, r->size, c->size}, {b->stride, r->stride, c->stride}};
}

class MatmulKernel final : public Kernel {
 public:
  explicit MatmulKernel(const Jaxpr& group)
      : equation_(group->equations[0]),
        eval_(rule<Eval>(*equation_.primitive)),
        axes_(equation_.params),
        lhs_free_(free_axes(group->aval(equation_.inputs[0]).rank(), axes_.lhs_contract,
                            axes_.lhs_batch)),
        rhs_free_(free_axes(group->aval(equation_.inputs[1]).rank(), axes_.rhs_contract,
                            axes_.rhs_batch)),
        epilogues_(group) {}
  ~MatmulKernel() override { delete direct_.load(); }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch&) const override {
    const View &lhs = inputs[equation_.inputs[0].var().id],
               &rhs = inputs[equation_.inputs[1].var().id];
    const Direct* direct = direct_.load(std::memory_order_acquire);
    if (direct && lhs.strides == direct->lhs && rhs.strides == direct->rhs) {
      void* const operands[2] = {lhs.data, rhs.data};
      if (run_packed(*direct, operands, outputs[0].data)) return;
      return direct->product->run(operands, outputs[0].data);
    }
    std::vector<Buffer> copies;
    copies.reserve(2);
    std::vector<void*> memory(2);
    std::vector<TensorSpec> specs;
    const View both[2] = {lhs, rhs};
    specs.push_back(
        spec_of(both[0], axes_.lhs_batch, lhs_free_, axes_.lhs_contract, copies, memory[0]));
    specs.push_back(
        spec_of(both[1], axes_.rhs_batch, axes_.rhs_contract, rhs_free_, copies, memory[1]));
    const std::int64_t batch = specs[0].dims[0], rows = specs[0].dims[1],
                       columns = specs[1].dims[2];
    const TensorSpec out{outputs[0].dtype, {batch, rows, columns}, {rows * columns, columns, 1}};
    epilogues_.add_operands(inputs, 2, 3, specs, memory, copies);
    const std::shared_ptr<const Product> product =
        cache_.find_or_make(specs, [&] { return Product::make(specs, out, epilogues_); });
    if (product)
      product->run(memory, outputs[0].data);
    else
      eval_(both, outputs, equation_.params);
    if (!product || !product->has_epilogues()) epilogues_.evaluate(inputs, outputs[0]);
    if (!direct && product && copies.empty() && epilogues_.empty()) {
      auto first = std::make_unique<Direct>(lhs.strides, rhs.strides, product);
      if (direct_.compare_exchange_strong(direct, first.get(), std::memory_order_release))
        first.release();
    }
  }

 private:
  // The first product that reads its operands in place, for calls with the same strides: in a
  // program, all of them. A lookup would take as long as a small product.
  struct Direct {
    Direct(const Sizes64& lhs, const Sizes64& rhs, std::shared_ptr<const Product> product)
        : lhs(lhs), rhs(rhs), product(std::move(product)) {}
    Sizes64 lhs, rhs;
    std::shared_ptr<const Product> product;
    mutable std::once_flag once = {};  // for the packed matrix, made on first use
    mutable std::shared_ptr<const Product> packed = {};
  };

  // Multiplies by a copy of a loop-invariant matrix, packed once it has been read often enough that
  // further reads are likely.
  bool run_packed(const Direct& direct, void* const (&operands)[2], void* output) const {
    constexpr int often = 3;
    LoopConstants::Derived* const derived = LoopConstants::find(number_, operands[1]);
    if (!derived || ++derived->asked < often) return false;
    if (derived->asked == often) {
      std::call_once(direct.once, [&] { direct.packed = direct.product->packed(); });
      if (!direct.packed) return false;
      Storage memory = Storage::allocate(direct.packed->packed_bytes());
      direct.packed->pack(operands[1], memory.data());
      derived->memory = std::move(memory);
    }
    if (!derived->memory.data()) return false;
    void* const packed[2] = {operands[0], derived->memory.data()};
    direct.packed->run(packed, output);
    return true;
  }

  static TensorSpec spec_of(const View& view, const std::vector<int>& batch,
                            const std::vector<int>& rows, const std::vector<int>& columns,
                            std::vector<Buffer>& copies, void*& memory) {
    memory = view.data;
    if (std::optional<TensorSpec> spec = as_matrices(view, batch, rows, columns))
      return *std::move(spec);
    View moved{view.data, view.dtype, {}, {}};
    for (const auto* group : {&batch, &rows, &columns})
      for (int axis : *group)
        moved.shape.push_back(view.shape[axis]), moved.strides.push_back(view.strides[axis]);
    copies.push_back(Buffer::copy_of(moved));
    memory = copies.back().mutable_data();
    std::int64_t sizes[3] = {1, 1, 1};
    int place = 0;
    for (const auto* group : {&batch, &rows, &columns}) {
      for (int axis : *group) sizes[place] *= view.shape[axis];
      ++place;
    }
    return {view.dtype, {sizes[0], sizes[1], sizes[2]}, {sizes[1] * sizes[2], sizes[2], 1}};
  }

  const Equation equation_;
  const Eval::Rule& eval_;
  const DotAxes axes_;
  const std::vector<int> lhs_free_, rhs_free_;
  const Epilogues epilogues_;
  const std::uint64_t number_ = LoopConstants::number_of_kernel();
  const CompiledCache<Product> cache_;
  mutable std::atomic<const Direct*> direct_{nullptr};
};

}  // namespace

Support supports_matmul(const Equation& equation, std::span<const Aval> inputs,
                        std::span<const Aval> outputs) {
  const DType dtype = inputs[0].dtype;
  if (!has_type(dtype)) return Support::no("no " + std::string(name_of(dtype)) + " here");
  const bool is_widened = size_of(dtype) == 2 && outputs[0].dtype == DType::float32;
  if (outputs[0].dtype != dtype && !is_widened)
    return Support::no("a result of another dtype, " + std::string(name_of(outputs[0].dtype)));
  for (const Atom& atom : equation.inputs)
    if (!atom.is_var()) return Support::no("a scalar operand");
  const DotAxes axes(equation.params);
  std::int64_t rows = 1, columns = 1, terms = 1;
  for (int axis : free_axes(inputs[0].rank(), axes.lhs_contract, axes.lhs_batch))
    rows *= inputs[0].shape[axis].constant();
  for (int axis : free_axes(inputs[1].rank(), axes.rhs_contract, axes.rhs_batch))
    columns *= inputs[1].shape[axis].constant();
  for (int axis : axes.lhs_contract) terms *= inputs[0].shape[axis].constant();
  if (terms == 1) return Support::no("nothing to add up");
  const std::int64_t work = outputs[0].shape.num_elements().constant() * terms;
  if (work == 0) return Support::no("nothing to compute");
  if (work <= small_work) return Support::no("small: " + std::to_string(work) + " products");
  if (dtype == DType::float32 && is_small_product(rows, terms, columns))
    return Support::no("small matrices");
  if (dtype == DType::float32 && is_vector_product(rows, terms, columns))
    return Support::no("a vector by a matrix");
  return Support::yes();
}

std::unique_ptr<Kernel> make_matmul(const Jaxpr& group) {
  return std::make_unique<MatmulKernel>(group);
}

}  // namespace plait::onednn
