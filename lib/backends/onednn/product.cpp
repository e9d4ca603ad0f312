// Products of matrices. See product.h.
// SPDX-License-Identifier: Apache-2.0
#include "product.h"

#include <plait/base/pool.h>

namespace plait::onednn {
namespace {

using Memory = dnnl::memory;

// A batch of one matrix becomes a matrix.
Memory::desc desc_of(const TensorSpec& spec, bool is_batched) {
  Dims dims = spec.dims, strides = spec.strides;
  if (!is_batched) dims.erase(dims.begin()), strides.erase(strides.begin());
  return {dims, element_of(spec.dtype), strides};
}

// Whether products of transposed matrices have the same bits: before AVX-512 they use other
// kernels.
bool takes_transposed() {
  static const bool has_avx512 =
      (unsigned(dnnl::get_effective_cpu_isa()) & unsigned(dnnl::cpu_isa::avx512_core)) ==
      unsigned(dnnl::cpu_isa::avx512_core);
  return has_avx512;
}

// The best implementation of this product; nullopt when there is only the reference implementation.
std::optional<dnnl::matmul::primitive_desc> find(const Memory::desc& lhs, const Memory::desc& rhs,
                                                 const Memory::desc& output,
                                                 const dnnl::post_ops& behind) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(behind);
  dnnl::matmul::primitive_desc found(engine(), lhs, rhs, output, attributes, true);
  if (!found || std::string_view(found.impl_info_str()).substr(0, 3) == "ref") return std::nullopt;
  return found;
}

// Kernels for AMX load tiles of this many bytes of each row of lhs, and zeros from behind rhs.
// Where a row ends within a tile, an infinity or NaN behind it times such a zero is NaN.
constexpr std::int64_t tile_bytes = 64;

bool reads_behind_rows(const dnnl::matmul::primitive_desc& found) {
  const Memory::desc lhs = found.src_desc();
  return lhs.get_dims().back() * std::int64_t(Memory::data_type_size(lhs.get_data_type())) %
                 tile_bytes !=
             0 &&
         std::string_view(found.impl_info_str()).find("amx") != std::string_view::npos;
}

}  // namespace

Product::Argument Product::matrix(int number, const TensorSpec& spec, bool is_batched) {
  Argument argument{number, desc_of(spec, is_batched)};
  if (spec.strides[2] == 1 || takes_transposed()) return argument;
  const Dims& dims = spec.dims;
  argument.copied_as = desc_of({spec.dtype, dims, {dims[1] * dims[2], dims[2], 1}}, is_batched);
  argument.copy = reorder_of(argument.desc, argument.copied_as);
  return argument;
}

// Rows that end with zeros, up to whole tiles.
Product::Argument Product::tiled(int number, const TensorSpec& spec, bool is_batched) {
  Argument argument{number, desc_of(spec, is_batched)};
  const Dims& dims = spec.dims;
  const auto bytes = std::int64_t(Memory::data_type_size(argument.desc.get_data_type()));
  const std::int64_t row = (dims[2] * bytes + tile_bytes - 1) / tile_bytes * tile_bytes;
  argument.copied_as =
      desc_of({spec.dtype, dims, {dims[1] * row / bytes, row / bytes, 1}}, is_batched);
  argument.copy = reorder_of(argument.desc, argument.copied_as);
  argument.padding = {dims[0] * dims[1], row, dims[2] * bytes};
  return argument;
}

std::shared_ptr<const Product> Product::make(std::span<const TensorSpec> operands,
                                             const TensorSpec& output, const Epilogues& epilogues) {
  const Dims &lhs = operands[0].dims, &rhs = operands[1].dims;
  const bool is_batched = lhs[0] > 1;
  const std::int64_t work = lhs[0] * lhs[1] * lhs[2] * rhs[2];
  auto product = std::make_shared<Product>();
  product->max_threads_ = work <= narrow_work ? 1 : num_threads();
  const Entered entered(product->max_threads_);
  if (entered.use.is_refused()) return nullptr;
  try {
    product->arguments_ = {matrix(DNNL_ARG_SRC, operands[0], is_batched),
                           matrix(DNNL_ARG_WEIGHTS, operands[1], is_batched)};
    std::vector<Memory::desc> descs;
    for (const Argument& argument : product->arguments_)
      descs.push_back(argument.copy ? argument.copied_as : argument.desc);
    for (const TensorSpec& spec : operands.subspan(2)) descs.push_back(desc_of(spec, is_batched));
    product->output_ = desc_of(output, is_batched);
    auto alone = find(descs[0], descs[1], product->output_, {});
    if (alone && reads_behind_rows(*alone)) {
      product->arguments_[0] = tiled(DNNL_ARG_SRC, operands[0], is_batched);
      descs[0] = product->arguments_[0].copied_as;
      alone = find(descs[0], descs[1], product->output_, {});
    }
    if (!alone) {
      log_line("onednn: no fast kernel for a product; the reference runs it");
      return nullptr;
    }
    auto chosen = alone;
    if (descs.size() > 2) {
      const auto all = find(descs[0], descs[1], product->output_,
                            epilogues.post_operations(std::span(descs).subspan(2)));
      product->has_epilogues_ =
          all && std::string_view(all->impl_info_str()) == alone->impl_info_str();
      if (product->has_epilogues_) chosen = all;
    }
    product->primitive_ = dnnl::matmul(*chosen);
    product->scratchpad_ = chosen->scratchpad_desc();
    for (std::size_t i = 2; i < descs.size() && product->has_epilogues_; ++i)
      product->arguments_.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(int(i) - 2) | DNNL_ARG_SRC_1, descs[i]});
    return product;
  } catch (const dnnl::error& error) {
    log_line(std::string("onednn: ") + error.what() + "; the reference runs the product");
    return nullptr;
  }
}

std::shared_ptr<const Product> Product::packed() const {
  if (arguments_.size() != 2 || arguments_[0].copy || arguments_[1].copy) return nullptr;
  const Entered entered(max_threads_);
  if (entered.use.is_refused()) return nullptr;
  const Memory::desc &lhs = arguments_[0].desc, &rhs = arguments_[1].desc;
  try {
    const auto found =
        find(lhs, {rhs.get_dims(), rhs.get_data_type(), Memory::format_tag::any}, output_, {});
    if (!found || found->weights_desc() == rhs) return nullptr;
    auto product = std::make_shared<Product>();
    product->primitive_ = dnnl::matmul(*found);
    product->arguments_ = {{DNNL_ARG_SRC, lhs}, {DNNL_ARG_WEIGHTS, found->weights_desc()}};
    product->output_ = output_;
    product->scratchpad_ = found->scratchpad_desc();
    product->max_threads_ = max_threads_;
    product->unpacked_ = rhs;
    product->pack_ = reorder_of(rhs, found->weights_desc());
    return product;
  } catch (const dnnl::error& error) {
    log_line(std::string("onednn: ") + error.what() + "; weights stay as they lie");
    return nullptr;
  }
}

void Product::pack(void* from, void* to) const {
  const Entered entered(max_threads_);
  entered.use.stop_if_refused();
  try {
    Memory lies(unpacked_, engine(), from), packed(arguments_[1].desc, engine(), to);
    pack_.execute(stream(), lies, packed);
    stream().wait();
  } catch (const dnnl::error& error) {
    throw_failed(error);
  }
}

std::unique_ptr<Product::Call> Product::take_call() const {
  if (Call* spare = spare_.exchange(nullptr, std::memory_order_acquire))
    return std::unique_ptr<Call>(spare);
  auto call = std::make_unique<Call>();
  call->memories.reserve(arguments_.size() + 2);
  auto add = [&](int number, const Memory::desc& desc) {
    call->memories.emplace_back(desc, engine(), nullptr);
    call->arguments.push_back({number, call->memories.back().get()});
  };
  for (const Argument& argument : arguments_)
    add(argument.number, argument.copy ? argument.copied_as : argument.desc);
  add(DNNL_ARG_DST, output_);
  if (scratchpad_.get_size() > 0) add(DNNL_ARG_SCRATCHPAD, scratchpad_);
  return call;
}

void Product::run(std::span<void* const> operands, void* output) const {
  const Entered entered(max_threads_);
  entered.use.stop_if_refused();
  const std::int64_t bytes = std::int64_t(scratchpad_.get_size());
  const Storage scratch = bytes > 0 ? Storage::allocate(std::size_t(bytes)) : Storage();
  try {
    std::unique_ptr<Call> call = take_call();
    std::vector<Storage> copies;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Argument& argument = arguments_[i];
      if (!argument.copy) {
        call->memories[i].set_data_handle(operands[i]);
        continue;
      }
      const Padding& padding = argument.padding;
      copies.push_back(Storage::allocate(
          std::max(argument.copied_as.get_size(), std::size_t(padding.rows * padding.row_bytes))));
      char* const copy = static_cast<char*>(copies.back().data());
      for (std::int64_t row = 0; row < padding.rows; ++row)
        std::fill(copy + row * padding.row_bytes + padding.used_bytes,
                  copy + (row + 1) * padding.row_bytes, 0);
      call->memories[i].set_data_handle(copy);
      Memory lies(argument.desc, engine(), operands[i]);
      argument.copy.execute(stream(), lies, call->memories[i]);
    }
    call->memories[arguments_.size()].set_data_handle(output);
    if (bytes > 0) call->memories.back().set_data_handle(scratch.data());
    // Avoids the map of arguments that the C++ interface would build.
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), stream().get(), int(call->arguments.size()),
                               call->arguments.data()),
        "could not execute a product");
    stream().wait();
    Call* expected = nullptr;
    if (spare_.compare_exchange_strong(expected, call.get(), std::memory_order_release))
      call.release();
  } catch (const dnnl::error& error) {
    throw_failed(error);
  }
}

}  // namespace plait::onednn
