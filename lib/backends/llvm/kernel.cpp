// One generated function for a group: every input is loaded a vector at a time, goes through all
// equations in registers, and every output is stored; nothing in between touches memory.
//
// The function covers a range of vectors of the one loop, or a range of rows of a nest, so that
// threads share it. What is left of a row after the last whole vector runs under a constant mask.
// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <plait/base/pool.h>
#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>

#include <ctime>
#include <numeric>

#include "base/spinning.h"
#include "nest.h"
#include "primitives.h"
#include "segments.h"
#include "streams.h"

namespace plait::llvm {
namespace {

using Function = void(void* const* memory, std::int64_t begin, std::int64_t end);

double thread_ms() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

class Writer {
 public:
  Writer(const JaxprData& data, const Nest& nest, const Segments& segments, int lanes,
         const std::vector<bool>& streams)
      : data_(data),
        nest_(nest),
        segments_(segments),
        streams_(streams),
        emitter_(lanes),
        registers_(data.avals.size()) {
    // A block of what crosses cuts takes half of the first-level cache.
    block_ = lanes * std::clamp<std::int64_t>(
                         16384 / std::max<std::int64_t>(1, lanes * segments.bytes), 8, 128);
    read_parameters();
    if (nest_.loops.size() > 1)
      write_rows();
    else
      write_blocks(emitter_.parameter(1), emitter_.parameter(2), nest_.size(),
                   [](Value i) { return i; });
    emitter_.return_void();
  }
  Object compile() const { return emitter_.compile(); }

 private:
  Value constant(std::int64_t value) const { return emitter_.constant(value); }
  Type element(int var) const { return emitter_.element(data_.avals[var].dtype); }

  void read_parameters() {
    const int num_inputs = data_.num_binders, num_outputs = int(data_.outputs.size());
    for (int i = 0; i < num_inputs + num_outputs; ++i)
      memory_.push_back(
          emitter_.load(emitter_.pointer(),
                        emitter_.at(emitter_.pointer(), emitter_.parameter(0), constant(i)), 8));
    rows_.assign(num_inputs, nullptr);
    for (int i = 0; i < num_inputs; ++i)
      if (nest_.access[i] == Access::splat)
        registers_[i] = load_splat(data_.avals[i].dtype, memory_[i]);
    for (const Segments::Slot& slot : segments_.slots)
      slots_.push_back(emitter_.frame_memory(emitter_.element(slot.dtype), block_));
  }

  void write_rows() {
    const std::int64_t inner = nest_.inner();
    emitter_.loop(emitter_.parameter(1), emitter_.parameter(2), 1, [&](Value row) {
      start_row(row);
      const Value first = emitter_.multiply(row, constant(inner));
      write_blocks(constant(0), constant(inner), inner,
                   [&](Value j) { return emitter_.add(first, j); });
    });
  }

  // Where every input's row begins; what is the same along the row is loaded.
  void start_row(Value row) {
    const int last = int(nest_.loops.size()) - 1;
    std::vector<Value> index(last);
    Value rest = row;
    for (int loop = last; loop-- > 0;) {
      const Value size = constant(nest_.loops[loop]);
      index[loop] = loop == 0 ? rest : api().BuildURem(emitter_.builder(), rest, size, "");
      if (loop > 0) rest = api().BuildUDiv(emitter_.builder(), rest, size, "");
    }
    for (int i = 0; i < data_.num_binders; ++i) {
      if (nest_.access[i] != Access::rows) continue;
      Value offset = constant(0);
      for (int loop = 0; loop < last; ++loop)
        if (nest_.strides[i][loop] != 0)
          offset = emitter_.add(offset,
                                emitter_.multiply(index[loop], constant(nest_.strides[i][loop])));
      rows_[i] = emitter_.at(element(i), memory_[i], offset);
      if (nest_.strides[i][last] == 0) registers_[i] = load_splat(data_.avals[i].dtype, rows_[i]);
    }
  }

  // Elements [from, to) of a row of length elements, or of the one loop; at gives the index of one
  // in outputs. Block by block where there are cuts.
  template <class At>
  void write_blocks(Value from, Value to, std::int64_t length, const At& at) {
    auto write_all = [&](Value begin, Value end) {
      for (int s = 0; s < segments_.size(); ++s) write_segment(s, begin, end, length, at);
    };
    if (segments_.size() == 1 || length <= block_) return write_all(from, to);
    emitter_.loop(from, to, block_, [&](Value begin) {
      write_all(begin, emitter_.smaller(emitter_.add(begin, constant(block_)), to));
    });
  }

  template <class At>
  void write_segment(int segment, Value begin, Value end, std::int64_t length, const At& at) {
    const std::int64_t lanes = emitter_.lanes(), left = length % lanes;
    Value whole = end;
    if (left != 0) whole = api().BuildAnd(emitter_.builder(), end, constant(-lanes), "");
    auto write = [&](Value i, std::int64_t count) {
      write_vector(segment, at(i), i, api().BuildSub(emitter_.builder(), i, begin, ""), int(count));
    };
    if (length >= lanes) emitter_.loop(begin, whole, lanes, [&](Value i) { write(i, lanes); });
    if (left != 0) emitter_.branch_if(emitter_.is_less(whole, end), [&] { write(whole, left); });
  }

  // Elements from `index` of outputs on, `inner` of a row, `offset` of a block; count of them are.
  void write_vector(int segment, Value index, Value inner, Value offset, int count) {
    std::vector<Register> registers = registers_;  // what is the same for all vectors
    const std::vector<bool> computed = segments_.computed_by(segment, data_);
    for (int e : segments_.equations[segment])
      for (const Atom& atom : data_.equations[e].inputs) {
        if (!atom.is_var()) continue;
        const int var = atom.var().id;
        if (registers[var].v || computed[var]) continue;
        const DType dtype = data_.avals[var].dtype;
        registers[var] =
            segments_.written[var] >= 0 ? load_lanes(dtype, slot_at(var, offset), emitter_.lanes())
            : nest_.access[var] == Access::rows
                ? load_lanes(dtype, emitter_.at(element(var), rows_[var], inner), count)
                : load_lanes(dtype, emitter_.at(element(var), memory_[var], index), count);
      }
    for (int e : segments_.equations[segment]) {
      const Equation& equation = data_.equations[e];
      std::vector<Register> inputs;
      for (const Atom& atom : equation.inputs)
        inputs.push_back(atom.is_var() ? registers[atom.var().id] : constant_of(atom.literal()));
      const int out = equation.outputs[0].id;
      registers[out] = lower(equation, inputs, data_.avals[out].dtype);
      if (segments_.slot_of[out] >= 0)
        store_lanes(registers[out], slot_at(out, offset), emitter_.lanes());
    }
    for (std::size_t o = 0; o < data_.outputs.size(); ++o) {
      const int var = data_.outputs[o].var().id;
      if (segments_.written[var] != segment) continue;
      const Value address = emitter_.at(element(var), memory_[data_.num_binders + o], index);
      store_lanes(registers[var], address, count, streams_[o]);
    }
  }

  Value slot_at(int var, Value offset) const {
    return emitter_.at(element(var), slots_[segments_.slot_of[var]], offset);
  }

  const JaxprData& data_;
  const Nest& nest_;
  const Segments& segments_;
  const std::vector<bool>& streams_;  // by output: past the caches
  Emitter emitter_;
  std::int64_t block_;               // elements that a segment runs over
  std::vector<Register> registers_;  // by var: what is the same for all vectors
  std::vector<Value> memory_;        // inputs, then outputs
  std::vector<Value> rows_;          // by input: where its row begins
  std::vector<Value> slots_;
};

class LoopKernel final : public Kernel {
 public:
  LoopKernel(const Jaxpr& group, std::span<const Sizes64> strides) : group_(group) {
    const JaxprData& data = *group_;
    lanes_ = lanes_for(data);
    nest_ =
        make_nest(data.avals[data.equations[0].outputs[0].id].shape.to_sizes(), strides, lanes_);
    for (int i = 0; i < data.num_binders; ++i) {
      const bool packed = nest_.access[i] == Access::packed;
      packed_at_.push_back(packed ? scratch_bytes_ : -1);
      if (packed) scratch_bytes_ += (nest_.size() * bytes(i) + 63) / 64 * 64;
    }
    plan_slabs(strides);
    std::vector<int> order(data.equations.size());
    std::iota(order.begin(), order.end(), 0);
    segments_ = make_segments(data, order, std::vector<int>(order.size(), 0));
    if (nest_.size() == 0) return;
    code_.emplace("loops\n" + describe(group, strides), choose_streams(),
                  [this](const std::vector<bool>& s) { return write(s); });
    plan_threads();
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream&) const override {
    if (nest_.size() == 0) return;
    if (slab_ > 0) return run_slabs(inputs, outputs);
    constexpr std::size_t usual = 384;
    void* few[usual];
    std::vector<void*> many(inputs.size() + outputs.size() > usual ? inputs.size() + outputs.size()
                                                                   : 0);
    void** const memory = many.empty() ? few : many.data();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      memory[i] = packed_at_[i] < 0 ? inputs[i].data
                                    : pack(inputs[i], static_cast<char*>(scratch) + packed_at_[i]);
    for (std::size_t o = 0; o < outputs.size(); ++o) memory[inputs.size() + o] = outputs[o].data;
    Function* const function = code_->code_for(outputs).as<Function>();
    if (units_ == 1) return function(memory, 0, length_);
    parallel_for(units_, grain_while_spinning(units_, grain_),
                 [&](std::int64_t begin, std::int64_t end) {
                   function(memory, begin * unit_, std::min(end * unit_, length_));
                 });
  }

  std::int64_t scratch_bytes() const override { return scratch_bytes_; }

  // A vector is stored after all that its segment reads is loaded, so what lies in place and is not
  // read by a later segment may be written.
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    const int var = group_->outputs[output].var().id;
    return bytes(int(input)) == bytes(var) && segments_.last_read[input] <= segments_.written[var];
  }

  std::string note() const override {
    std::string text = std::to_string(lanes_) + " lanes";
    if (segments_.size() > 1) text += ", " + std::to_string(segments_.size()) + " segments";
    if (nest_.loops.size() > 1) text += ", rows of " + std::to_string(nest_.inner());
    if (scratch_bytes_ > 0) text += ", " + std::to_string(scratch_bytes_) + " bytes packed";
    if (slab_ > 0) text += ", packed by " + std::to_string(slab_) + " rows";
    return text;
  }

 private:
  std::int64_t bytes(int var) const { return size_of(group_->avals[var].dtype); }

  // What must be packed (a transposed operand) is packed by as many rows of the first axis as stay
  // in a cache, just before they are read, where that is possible.
  void plan_slabs(std::span<const Sizes64> strides) {
    constexpr std::int64_t cached = 1 << 19;
    const Sizes64 shape = group_->avals[group_->equations[0].outputs[0].id].shape.to_sizes();
    if (scratch_bytes_ == 0 || shape.size() < 2 || nest_.loops.size() > 1) return;
    std::int64_t row_bytes = 0;
    bool along_rows = nest_.size() / shape[0] % lanes_ != 0;
    for (int i = 0; i < group_->num_binders; ++i) {
      if (packed_at_[i] < 0) continue;
      row_bytes += nest_.size() / shape[0] * bytes(i);
      const bool is_next = strides[i][0] == 1 || strides[i][0] == -1;
      along_rows |= is_next && std::ranges::any_of(strides[i].begin() + 1, strides[i].end(),
                                                   [](std::int64_t s) { return s != 0; });
    }
    const std::int64_t fewest = along_rows ? std::max(16, lanes_) : 1;
    if (fewest * row_bytes > cached || shape[0] < 2 * fewest) return;
    slab_ = std::max<std::int64_t>(1, cached / row_bytes / fewest) * fewest;
    slab_bytes_ = slab_ * row_bytes + 64 * group_->num_binders;
    scratch_bytes_ = 0;
  }

  void run_slabs(std::span<const View> inputs, std::span<const View> outputs) const {
    Function* const function = code_->code_for(outputs).as<Function>();
    const std::int64_t rows = outputs[0].shape[0], row = nest_.size() / rows;
    parallel_for((rows + slab_ - 1) / slab_, 1, [&](std::int64_t begin, std::int64_t end) {
      char* const room = static_cast<char*>(allocate(slab_bytes_));
      std::vector<void*> memory;
      for (const View& input : inputs) memory.push_back(input.data);
      for (const View& output : outputs) memory.push_back(output.data);
      for (std::int64_t s = begin; s < end; ++s) {
        const std::int64_t first = s * slab_, count = std::min(slab_, rows - first);
        char* at = room;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          if (packed_at_[i] < 0) continue;
          memory[i] = pack_part(inputs[i], 0, first, count, row, at);
          at += (slab_ * row * bytes(int(i)) + 63) / 64 * 64;
        }
        function(memory.data(), first * row, (first + count) * row);
      }
      deallocate(room, slab_bytes_);
    });
  }

  std::vector<bool> choose_streams() const {
    std::int64_t total = 0;
    for (int i = 0; i < group_->num_binders; ++i)
      if (nest_.access[i] == Access::dense) total += nest_.size() * bytes(i);
    for (const Atom& atom : group_->outputs) total += nest_.size() * bytes(atom.var().id);
    const std::int64_t step = nest_.loops.size() > 1 ? nest_.inner() : lanes_;
    std::vector<bool> streams;
    for (const Atom& atom : group_->outputs) {
      const std::int64_t size = bytes(atom.var().id);
      streams.push_back(outgrows_caches(total) && lanes_ * size % 64 == 0 && step * size % 64 == 0);
    }
    return streams;
  }

  Object write(const std::vector<bool>& streams) const {
    const double start = thread_ms();
    const Writer writer(*group_, nest_, segments_, lanes_, streams);
    const double written = thread_ms();
    Object code = writer.compile();
    log_line("llvm: " + std::to_string(group_->equations.size()) +
             " equations: " + std::to_string(written - start) + " ms to write, " +
             std::to_string(thread_ms() - written) + " ms to compile");
    return code;
  }

  // What one thread takes at least: about 20 us.
  void plan_threads() {
    double nanoseconds = 0;  // an element, roughly
    for (const Aval& aval : group_->avals) nanoseconds += 0.02 * double(size_of(aval.dtype));
    for (const Equation& equation : group_->equations) nanoseconds += 0.02 * weight_of(equation);
    const bool is_line = nest_.loops.size() <= 1;
    length_ = is_line ? nest_.size() : nest_.size() / nest_.inner();
    unit_ = is_line ? 128 * lanes_ : 1;
    units_ = (length_ + unit_ - 1) / unit_;
    const double per_unit = nanoseconds * double(is_line ? unit_ : nest_.inner());
    grain_ = std::max<std::int64_t>(1, std::int64_t(20000 / per_unit));
  }

  const Jaxpr group_;
  Nest nest_;
  Segments segments_;
  int lanes_;
  std::vector<std::int64_t> packed_at_;  // by input: offset in scratch, or -1
  std::int64_t scratch_bytes_ = 0;
  std::int64_t slab_ = 0, slab_bytes_ = 0;  // rows that are packed at a time, if they are
  std::optional<StreamingCode> code_;
  // The function's range, cut into units.
  std::int64_t length_ = 0, unit_ = 1, units_ = 0, grain_ = 1;
};

}  // namespace

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

std::unique_ptr<Kernel> make_kernel(const Jaxpr& group, std::span<const Sizes64> strides) {
  return std::make_unique<LoopKernel>(group, strides);
}

}  // namespace plait::llvm
