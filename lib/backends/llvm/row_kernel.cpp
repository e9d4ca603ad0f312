// Groups with reductions as one generated function. See row_writer.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>

#include <numeric>

#include "base/spinning.h"
#include "kernel.h"
#include "picks.h"
#include "primitives/reduction/reduce.h"
#include "reduction.h"
#include "row_writer.h"
#include "streams.h"

namespace plait::llvm {
namespace {

int lanes_for(const JaxprData& data) {
  bool has[9] = {};
  for (const Aval& aval : data.avals)
    has[is_floating(aval.dtype) ? std::max<std::int64_t>(4, size_of(aval.dtype))
                                : size_of(aval.dtype)] = true;
  return machine().vector_bytes / (has[4] ? 4 : has[8] ? 8 : has[2] ? 2 : 1);
}

std::string describe(const Jaxpr& group, std::span<const Sizes64> strides) {
  std::string text = print(group);
  for (const Sizes64& input : strides) {
    text += "\n";
    for (std::int64_t stride : input) text += std::to_string(stride) + " ";
  }
  return text;
}

// Copies a view to dense memory, by many threads; returns that.
void* pack(const View& view, char* dst) {
  copy_elements(view, View{dst, view.dtype, view.shape, dense_strides(view.shape)});
  return dst;
}

void* pack_part(const View& view, int axis, std::int64_t first, std::int64_t count,
                std::int64_t elements, char* dst) {
  const std::int64_t size = size_of(view.dtype);
  View part = view;
  part.data = part.as<char>() + first * part.strides[axis] * size;
  part.shape[axis] = count;
  return static_cast<char*>(pack(part, dst)) - first * elements * size;
}

class RowKernel final : public Kernel {
 public:
  RowKernel(const Jaxpr& group, Rows rows, std::span<const Sizes64> strides)
      : group_(group), rows_(std::move(rows)), checks_(*group) {
    const JaxprData& data = *group_;
    lanes_ = std::max(Reduction::width, lanes_for(data));
    std::vector<int> order;
    for (int e = 0; e < int(data.equations.size()); ++e)
      if (!rows_.is_row[data.equations[e].outputs[0].id] ||
          *data.equations[e].primitive == reduce_p)
        order.push_back(e);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return rows_.pass[a] < rows_.pass[b]; });
    segments_ = make_segments(data, order, rows_.pass);
    choose_slab_axis();
    for (int i = 0; i < data.num_binders; ++i) place_input(i, strides[i]);
    if (slab_row_ > 0) slab_ = std::max<std::int64_t>(1, largest_row / slab_row_);
    for (const Equation& equation : data.equations) {
      takes_elements_ |= *equation.primitive == gather_p;
      if (rows_.is_column[equation.outputs[0].id]) place_column(equation);
    }
    code_.emplace("rows\n" + describe(group, strides), choose_streams(),
                  [this](const std::vector<bool>& streams) {
                    return write_rows(*group_, rows_, segments_, inputs_, lanes_, streams);
                  });
    double weight = 0;
    for (const Equation& equation : data.equations) weight += 0.02 * weight_of(equation);
    weight += 0.1 * double(data.num_binders + data.outputs.size());
    grain_ = std::max<std::int64_t>(1, std::int64_t(20000 / (weight * double(rows_.length))));
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream&) const override {
    checks_.run(inputs);
    std::vector<void*> memory;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      memory.push_back(packed_at_[i] < 0 || by_slab_[i]
                           ? inputs[i].data
                           : pack_rows(inputs[i], static_cast<char*>(scratch) + packed_at_[i]));
    for (const View& output : outputs) memory.push_back(output.data);
    for (const Column& column : columns_)
      memory[inputs.size() + column.output] = static_cast<char*>(scratch) + column.numbers_at;
    memory.push_back(nullptr);
    const std::int64_t slots = slot_bytes();
    auto* const function =
        code_->code_for(inputs, outputs).as<void(void* const*, std::int64_t, std::int64_t)>();
    // Threads share no block of rows whose columns are added up.
    const std::int64_t unit = columns_.empty() ? 1 : ReductionStage::column_block;
    parallel_for((rows_.count + unit - 1) / unit,
                 std::max<std::int64_t>(1, grain_while_spinning(rows_.count, grain_) / unit),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<void*> mine = memory;
                   const std::int64_t bytes = slots + slab_ * slab_row_;
                   char* const room = bytes > 0 ? static_cast<char*>(allocate(bytes)) : nullptr;
                   mine.back() = room;
                   const std::int64_t last = std::min(end * unit, rows_.count);
                   const std::int64_t step = slab_ > 0 ? slab_ : rows_.count;
                   for (std::int64_t row = begin * unit; row < last; row += step) {
                     const std::int64_t count = std::min(step, last - row);
                     pack_slab(inputs, row, count, room + slots, mine);
                     function(mine.data(), row, row + count);
                   }
                   if (room) deallocate(room, bytes);
                 });
    for (const Column& column : columns_)
      finish_reduction(column.kind, outputs[column.output].dtype, column.stages,
                       memory[inputs.size() + column.output], outputs[column.output].data);
  }

  std::int64_t scratch_bytes() const override { return scratch_bytes_; }

  // Along a row outputs are written as early as their segment runs, and later ones read inputs.
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    const int var = group_->outputs[output].var().id;
    if (size_of(group_->avals[input].dtype) != size_of(group_->avals[var].dtype)) return false;
    if (rows_.is_column[var] || (takes_elements_ && !rows_.is_row[var])) return false;
    return rows_.is_row[var] || segments_.last_read[input] <= segments_.written[var];
  }

  std::string note() const override {
    return std::to_string(lanes_) + " lanes, rows of " + std::to_string(rows_.length) + " in " +
           std::to_string(rows_.num_passes) + (rows_.num_passes == 1 ? " pass" : " passes") +
           (slab_ > 0 ? ", packed by " + std::to_string(slab_) + " rows" : "");
  }

 private:
  struct Column {
    std::size_t output;
    std::string kind;
    ReductionStages stages;
    std::int64_t numbers_at;  // in scratch
  };

  void place_column(const Equation& equation) {
    const int var = equation.outputs[0].id;
    const ReductionStages stages = reduction_stages(rows_.shape, equation.params.ints("axes"));
    for (std::size_t o = 0; o < group_->outputs.size(); ++o)
      if (group_->outputs[o].var().id == var) {
        columns_.push_back({o, equation.params.text("kind"), stages, scratch_bytes_});
        scratch_bytes_ +=
            (stages[0].num_blocks() * rows_.length * size_of(sum_dtype(group_->avals[var].dtype)) +
             63) /
            64 * 64;
      }
  }

  std::int64_t slot_bytes() const {
    const std::int64_t padded = (rows_.length + lanes_ - 1) / lanes_ * lanes_;
    return segments_.offset_of(int(segments_.slots.size()), padded);
  }

  std::vector<bool> choose_streams() const {
    std::int64_t total = 0;
    auto add = [&](int var) {
      const Aval& aval = group_->avals[var];
      if (aval.shape.to_sizes() == rows_.shape)
        total += rows_.count * rows_.length * size_of(aval.dtype);
    };
    for (int i = 0; i < group_->num_binders; ++i) add(i);
    for (const Atom& atom : group_->outputs) add(atom.var().id);
    std::vector<bool> streams;
    for (const Atom& atom : group_->outputs) {
      const std::int64_t size = size_of(group_->avals[atom.var().id].dtype);
      streams.push_back(!rows_.is_column[atom.var().id] && outgrows_caches(total) &&
                        lanes_ * size % 64 == 0 && rows_.length * size % 64 == 0);
    }
    return streams;
  }

  void place_input(int var, const Sizes64& strides) {
    using Access = RowInput::Access;
    const Sizes64 shape = group_->avals[var].shape.to_sizes();
    RowInput input;
    const bool is_full = shape == rows_.shape;
    int num_outer = int(shape.size());
    if (is_full) {
      num_outer = rows_.num_outer;
      input.access = inner_access(shape, strides);
    } else if (num_elements(shape) > 1) {
      input.access = Access::per_row;
    }
    Sizes64 mine = strides;
    packed_at_.push_back(-1);
    by_slab_.push_back(false);
    if (is_full && input.access == Access::scalar) {  // strided along the row
      input.access = Access::row;
      mine = place_packed(var, shape, strides);
    }
    for (int axis = 0; axis < num_outer; ++axis) {
      if (shape[axis] == 1) continue;
      if (!input.sizes.empty() && input.strides.back() == mine[axis] * shape[axis]) {
        input.sizes.back() *= shape[axis];
        input.strides.back() = mine[axis];
      } else {
        input.sizes.push_back(shape[axis]);
        input.strides.push_back(mine[axis]);
      }
    }
    inputs_.push_back(std::move(input));
  }

  // What is strided along rows is packed a few rows at a time, just before they are read: those
  // stay in a cache. Rows are counted along one axis then.
  void choose_slab_axis() {
    for (int axis = 0; axis < rows_.num_outer; ++axis) {
      if (rows_.shape[axis] == 1) continue;
      if (slab_axis_ >= 0) {
        slab_axis_ = -1;
        return;
      }
      slab_axis_ = axis;
    }
  }

  void pack_slab(std::span<const View> inputs, std::int64_t row, std::int64_t count, char* room,
                 std::vector<void*>& memory) const {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (by_slab_[i])
        memory[i] = pack_part(inputs[i], slab_axis_, row, count, rows_.length,
                              room + slab_ * packed_at_[i]);
  }

  // The strides of a dense copy, in which rows that are repeated lie once.
  Sizes64 place_packed(int var, const Sizes64& shape, const Sizes64& strides) {
    const std::int64_t row = (rows_.length * size_of(group_->avals[var].dtype) + 63) / 64 * 64;
    if (slab_axis_ >= 0 && strides[slab_axis_] != 0 && row <= largest_row) {
      by_slab_.back() = true;
      packed_at_.back() = slab_row_;
      slab_row_ += row;
      return dense_strides(shape);
    }
    Sizes64 kept = shape;
    for (int axis = 0; axis < rows_.num_outer; ++axis)
      if (strides[axis] == 0) kept[axis] = 1;
    packed_at_.back() = scratch_bytes_;
    scratch_bytes_ += (num_elements(kept) * size_of(group_->avals[var].dtype) + 63) / 64 * 64;
    Sizes64 packed = dense_strides(kept);
    for (int axis = 0; axis < rows_.num_outer; ++axis)
      if (strides[axis] == 0) packed[axis] = 0;
    return packed;
  }

  void* pack_rows(const View& view, char* dst) const {
    View once = view;
    for (int axis = 0; axis < rows_.num_outer; ++axis)
      if (view.strides[axis] == 0) once.shape[axis] = 1;
    return pack(once, dst);
  }

  // Of an operand's elements along a row: side by side, one for all, or neither.
  RowInput::Access inner_access(const Sizes64& shape, const Sizes64& strides) const {
    bool is_dense = true, is_same = true;
    std::int64_t expected = 1;
    for (int axis = int(shape.size()); axis-- > rows_.num_outer;) {
      if (shape[axis] == 1) continue;
      is_dense &= strides[axis] == expected;
      is_same &= strides[axis] == 0;
      expected *= shape[axis];
    }
    return is_dense  ? RowInput::Access::row
           : is_same ? RowInput::Access::same_row
                     : RowInput::Access::scalar;
  }

  const Jaxpr group_;
  const Rows rows_;
  const IndexChecks checks_;
  Segments segments_;
  std::vector<RowInput> inputs_;
  std::vector<std::int64_t> packed_at_;  // by input: offset in scratch, or -1
  std::vector<bool> by_slab_;            // by input: whether that is one in a row's slab instead
  static constexpr std::int64_t largest_row = 1 << 18;  // bytes, of a packed input
  int slab_axis_ = -1;
  std::int64_t slab_ = 0, slab_row_ = 0;  // rows packed at a time; bytes of each
  std::vector<Column> columns_;
  bool takes_elements_ = false;
  std::int64_t scratch_bytes_ = 0, grain_ = 1;
  int lanes_;
  std::optional<StreamingCode> code_;
};

}  // namespace

std::unique_ptr<Kernel> make_row_kernel(const Jaxpr& group, std::span<const Sizes64> strides) {
  std::vector<int> all(group->equations.size());
  std::iota(all.begin(), all.end(), 0);
  std::optional<Rows> rows = find_rows(*group, all);
  if (!rows) throw InternalError("llvm: a group that is not made of rows\n" + print(group));
  return std::make_unique<RowKernel>(group, *std::move(rows), strides);
}

}  // namespace plait::llvm
